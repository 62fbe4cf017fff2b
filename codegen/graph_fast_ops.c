/* Purpose: which functions of `_operator` a replay may bypass (table in graph_fast_ops.def). */
#include "codegen/graph_internal.h"

static PyObject *fg_fast_power(PyObject *a, PyObject *b)
{
    return PyNumber_Power(a, b, Py_None);
}

static PyObject *fg_fast_inplace_power(PyObject *a, PyObject *b)
{
    return PyNumber_InPlacePower(a, b, Py_None);
}

typedef struct fast_row {
    const char *name;
    fg_fast_op op;
} fast_row;

static const fast_row rows[] = {
#define FG_FAST_UNARY(NAME, FUNC) {#NAME, {FG_PLAN_UNARY, 0, FUNC, NULL}},
#define FG_FAST_BINARY(NAME, FUNC) {#NAME, {FG_PLAN_BINARY, 0, NULL, FUNC}},
#define FG_FAST_COMPARE(NAME, OPERATION) {#NAME, {FG_PLAN_COMPARE, OPERATION, NULL, NULL}},
#include "codegen/graph_fast_ops.def"
#undef FG_FAST_UNARY
#undef FG_FAST_BINARY
#undef FG_FAST_COMPARE
};

#define N_ROWS (sizeof rows / sizeof rows[0])
static PyObject *callables[N_ROWS]; /* kept for the life of the process: they are builtins */

fg_status fg_fast_op_init(void)
{
    PyObject *module = PyImport_ImportModule("_operator");
    if (module == NULL)
        return FG_ERR_PYTHON;
    for (size_t i = 0; i < N_ROWS; i++) {
        PyObject *callable = PyObject_GetAttrString(module, rows[i].name);
        if (callable == NULL) {
            Py_DECREF(module);
            return FG_ERR_PYTHON;
        }
        Py_XSETREF(callables[i], callable);
    }
    Py_DECREF(module);
    return FG_OK;
}

const fg_fast_op *fg_fast_op_find(PyObject *callable, Py_ssize_t n_args)
{
    if (!PyCFunction_CheckExact(callable)) /* a replaced operator.add is an ordinary callable */
        return NULL;
    for (size_t i = 0; i < N_ROWS; i++)
        if (callables[i] == callable) {
            const fg_fast_op *op = &rows[i].op;
            return n_args == (op->step == FG_PLAN_UNARY ? 1 : 2) ? op : NULL;
        }
    return NULL;
}
