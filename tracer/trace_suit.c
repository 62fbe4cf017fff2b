/* What a graph for a backend may contain.
 *
 * With the default backend operations are emitted where they stand and nothing here applies. A compiler of graphs knows tensors and constants: scalars
 * of the run become constants with a value fact, containers of operands are taken apart, and what a compiler of torch graphs would misread (NumPy
 * values, results whose shape depends on data) breaks the graph.
 */
#include "tracer/trace_python.h"

fg_flow fg_bake_scalars(fg_trace *t, fg_value *v, int depth)
{
    if (v->kind == FG_V_SCALAR)
        return fg_concrete(t, v);
    if ((v->kind == FG_V_LIST || v->kind == FG_V_TUPLE || v->kind == FG_V_SLICE) && depth < 8)
        for (int32_t i = 0; i < v->n; i++)
            FG_DO(fg_bake_scalars(t, v->items[i], depth + 1));
    return FG_FLOW_OK;
}

static bool has_library(fg_value **operands, int32_t n, int lib)
{
    for (int32_t i = 0; i < n; i++) {
        fg_value *v = operands[i];
        if (v->kind == FG_V_TENSOR && fg_tensor_library(v) == lib)
            return true;
        if ((v->kind == FG_V_LIST || v->kind == FG_V_TUPLE || v->kind == FG_V_SLICE) && has_library(v->items, v->n, lib))
            return true;
    }
    return false;
}

/* Of the last graph step, FG_LIB_TORCH or FG_LIB_NUMPY; -1: there is none yet. */
static int library_so_far(const fg_trace *t)
{
    for (int32_t i = t->ir.n_steps - 1; i >= 0; i--) {
        const fg_step *step = &t->ir.steps[i];
        if (!(step->flags & FG_SF_GRAPH))
            continue;
        if (step->n_results > 0 && t->ir.regs[step->result].is_tensor == FG_TORCH_RESULT)
            return FG_LIB_TORCH;
        for (int32_t k = 0; k < step->n_args; k++) {
            const fg_ir_reg *r = &t->ir.regs[step->args[k]];
            if (r->is_tensor == FG_TORCH_RESULT || (r->is_tensor && r->object != NULL && fg_py_is_torch_type(Py_TYPE(r->object))))
                return FG_LIB_TORCH;
        }
        return FG_LIB_NUMPY;
    }
    return -1;
}

/* What looks at data is called as it is, after one graph and before the next. Not what may give a view: graphs know which of their inputs share memory, and
 * what is between them would be none of theirs. */
bool fg_stands_between_graphs(const fg_op_row *row, fg_value **operands, int32_t n)
{
    return row != NULL && (row->flags & (FG_OPF_NEEDS_DATA | FG_OPF_VIEW)) == FG_OPF_NEEDS_DATA && has_library(operands, n, FG_LIB_TORCH);
}

/* A compiler of torch graphs knows torch's values only: it would take an array or a NumPy scalar, and every Python scalar, for a constant, and cannot
 * have a result whose shape depends on data. */
fg_flow fg_suit_compiler(fg_trace *t, int lib, const fg_op_row *row, fg_value **operands, int32_t n)
{
    int before = library_so_far(t);
    if (before >= 0 && before != lib)
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "operations of NumPy and of torch in one graph for a backend");
    if (lib == FG_LIB_TORCH && has_library(operands, n, FG_LIB_NUMPY))
        return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "a NumPy value in a torch graph for a backend");
    if (lib == FG_LIB_TORCH && row != NULL && (row->flags & FG_OPF_DATA_OUTPUT))
        return fg_break(t, FG_BREAK_DATA_DEPENDENT_SHAPE, "the result of %U", row->name);
    if (row != NULL && (row->flags & FG_OPF_NEEDS_DATA) && has_library(operands, n, FG_LIB_TORCH) &&
        !fg_stands_between_graphs(row, operands, n))
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%U, which looks at data, in a graph for a backend", row->name);
    for (int32_t i = 0; i < n && (lib == FG_LIB_TORCH || t->uses_torch); i++)
        FG_DO(fg_bake_scalars(t, operands[i], 0));
    return FG_FLOW_OK;
}

/* An argument of a call as a constant: by position or one of two names; `missing` where it is not given, NULL where it is no constant. */
static PyObject *constant_argument(fg_value *const *args, int32_t n, PyObject *kwnames, int32_t at, const char *name, const char *other,
                                   PyObject *missing)
{
    const int32_t npos = n - (kwnames != NULL ? (int32_t)PyTuple_GET_SIZE(kwnames) : 0);
    const fg_value *v = at < npos ? args[at] : NULL;
    for (int32_t i = npos; v == NULL && i < n; i++) {
        PyObject *given = PyTuple_GET_ITEM(kwnames, i - npos);
        if (PyUnicode_CompareWithASCIIString(given, name) == 0 || PyUnicode_CompareWithASCIIString(given, other) == 0)
            v = args[i];
    }
    return v == NULL ? missing : v->kind == FG_V_CONST ? v->real : NULL;
}

/* Dropout that drops nothing gives its argument itself. torch's compilers make a copy of it, which what writes to either would tell: it is left out. */
bool fg_is_idle_dropout(const fg_op_row *row, fg_value *const *args, int32_t n, PyObject *kwnames)
{
    const char *name = PyUnicode_AsUTF8(row->name), *dot = name != NULL ? strrchr(name, '.') : NULL;
    if (name == NULL)
        PyErr_Clear();
    if (dot == NULL || strcmp(dot, ".dropout") != 0 || n < 1 || args[0]->kind != FG_V_TENSOR)
        return false;
    PyObject *p = constant_argument(args, n, kwnames, 1, "p", "p", Py_None),
             *training = constant_argument(args, n, kwnames, 2, "training", "train", Py_True);
    if (p == NULL || training == NULL || !PyBool_Check(training) || !(p == Py_None || PyFloat_CheckExact(p) || PyLong_CheckExact(p)))
        return false;
    const double rate = p == Py_None ? 0.5 : PyFloat_AsDouble(p);
    if (PyErr_Occurred())
        PyErr_Clear();
    return rate >= 0 && rate <= 1 && (training == Py_False || rate == 0);
}

fg_flow fg_elements_of_now(fg_trace *t, fg_value **pv)
{
    fg_value *v = *pv;
    if (v->kind != FG_V_LIST && v->kind != FG_V_TUPLE)
        return FG_FLOW_OK;
    fg_value **items = fg_arena_alloc(&t->arena, (size_t)(v->n ? v->n : 1) * sizeof *items);
    if (items == NULL)
        return fg_nomem();
    for (int32_t i = 0; i < v->n; i++) {
        items[i] = v->items[i];
        FG_DO(fg_elements_of_now(t, &items[i]));
    }
    *pv = fg_value_seq(t, (fg_vkind)v->kind, items, v->n);
    return *pv ? FG_FLOW_OK : FG_FLOW_ERROR;
}
