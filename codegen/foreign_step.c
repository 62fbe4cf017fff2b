#include "codegen/foreign_step.h"

#include "codegen/traceback.h"
#include "runtime/cpython/operators.h"
#include "runtime/cpython/stand_in.h"
#include <stddef.h>

typedef struct foreign {
    PyObject_HEAD vectorcallfunc vectorcall;
    uint8_t op;
    int32_t arg, n_args, offset;
    PyObject *name, *kwnames; /* may be NULL */
    PyCodeObject *code;
    PyObject *handled_args, *handled_rows; /* of the exception that is being handled, NULL: none; its traceback (fg_traceback_part) */
} foreign;

typedef struct run {
    const foreign *step;
    PyObject *globals; /* or None */
    PyObject *const *args;
} run;

static PyObject *unary(int32_t cop, PyObject *o)
{
    switch (cop) {
    case FG_OP_UNARY_NEGATIVE: return PyNumber_Negative(o);
    case FG_OP_UNARY_POSITIVE: return PyNumber_Positive(o);
    default: return PyNumber_Invert(o);
    }
}

static PyObject *nothing(int failed)
{
    return failed < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *step_run(const void *context)
{
    const run *r = context;
    const foreign *s = r->step;
    PyObject *const *args = r->args;
    const size_t n = (size_t)s->n_args - (s->kwnames != NULL ? (size_t)PyTuple_GET_SIZE(s->kwnames) : 0);
    switch ((fg_step_op)s->op) {
    case FG_STEP_BINARY: return fg_binary_operators[s->arg](args[0], args[1]);
    case FG_STEP_UNARY: return unary(s->arg, args[0]);
    case FG_STEP_COMPARE: return PyObject_RichCompare(args[0], args[1], s->arg);
    case FG_STEP_SUBSCR: return PyObject_GetItem(args[0], args[1]);
    case FG_STEP_STORE_SUBSCR: return nothing(PyObject_SetItem(args[1], args[2], args[0]));
    case FG_STEP_ATTR: return PyObject_GetAttr(args[0], s->name);
    case FG_STEP_STORE_ATTR: return nothing(PyObject_SetAttr(args[1], s->name, args[0]));
    case FG_STEP_CALL: return PyObject_Vectorcall(args[0], args + 1, n - 1, s->kwnames);
    case FG_STEP_CALL_METHOD: return PyObject_VectorcallMethod(s->name, args, n, s->kwnames);
    default: break;
    }
    PyErr_SetString(PyExc_SystemError, "framegate: a step without a frame of its own");
    return NULL;
}

bool fg_is_foreign_kind(fg_step_op op)
{
    switch (op) {
    case FG_STEP_BINARY:
    case FG_STEP_UNARY:
    case FG_STEP_COMPARE:
    case FG_STEP_SUBSCR:
    case FG_STEP_STORE_SUBSCR:
    case FG_STEP_ATTR:
    case FG_STEP_STORE_ATTR:
    case FG_STEP_CALL:
    case FG_STEP_CALL_METHOD: return true;
    default: return false;
    }
}

static PyObject *step_in_frame(const void *context)
{
    const run *r = context;
    return r->globals == Py_None ? step_run(r) : fg_stand_in(r->step->code, r->globals, r->step->offset, step_run, r);
}

static PyObject *step_while_handling(const run *r, PyObject *type)
{
    PyObject *handled = PyObject_CallObject(type, r->step->handled_args), *result = NULL;
    if (handled != NULL && PyExceptionInstance_Check(handled)) {
        fg_traceback_rows(handled, r->step->handled_rows);
        result = fg_while_handling(handled, step_in_frame, r);
    } else if (handled != NULL) {
        PyErr_SetString(PyExc_SystemError, "framegate: what is being handled is no exception");
    }
    Py_XDECREF(handled);
    return result;
}

static PyObject *step_do(const foreign *s, PyObject *const *args, Py_ssize_t n)
{
    const int n_lead = s->handled_args != NULL ? 2 : 1;
    if (n != s->n_args + n_lead || !(args[0] == Py_None || PyDict_CheckExact(args[0]))) {
        PyErr_SetString(PyExc_SystemError, "framegate: operands of a step");
        return NULL;
    }
    const run r = {s, args[0], args + n_lead};
    return n_lead == 2 ? step_while_handling(&r, args[1]) : step_in_frame(&r);
}

static PyObject *step_call(PyObject *self, PyObject *const *args, size_t n, PyObject *kwnames)
{
    (void)kwnames;
    return step_do((const foreign *)self, args, PyVectorcall_NARGS(n));
}

static PyObject *step_item(PyObject *self, PyObject *tuple)
{
    if (!PyTuple_CheckExact(tuple) || PyTuple_GET_SIZE(tuple) == 0)
        return step_do((const foreign *)self, NULL, 0);
    return step_do((const foreign *)self, ((PyTupleObject *)tuple)->ob_item, PyTuple_GET_SIZE(tuple));
}

static void step_dealloc(PyObject *self)
{
    foreign *s = (foreign *)self;
    Py_XDECREF(s->name);
    Py_XDECREF(s->kwnames);
    Py_XDECREF(s->code);
    Py_XDECREF(s->handled_args);
    Py_XDECREF(s->handled_rows);
    PyObject_Free(self);
}

static PyMappingMethods step_as_mapping = {.mp_subscript = step_item};

static PyTypeObject step_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegate._core.ForeignStep",
    .tp_basicsize = sizeof(foreign),
    .tp_dealloc = step_dealloc,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(foreign, vectorcall),
    .tp_as_mapping = &step_as_mapping,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};

PyObject *fg_foreign_step(const fg_ir *ir, const fg_step *step)
{
    int32_t at = step->site;
    while (ir->sites[at].hidden && ir->sites[at].parent >= 0)
        at = ir->sites[at].parent;
    if (PyType_Ready(&step_type) < 0)
        return NULL;
    foreign *made = PyObject_New(foreign, &step_type);
    if (made == NULL)
        return NULL;
    made->vectorcall = step_call;
    made->op = step->op;
    made->arg = step->arg;
    made->n_args = step->n_args;
    made->offset = ir->sites[at].instr->offset;
    made->name = Py_XNewRef(step->name);
    made->kwnames = step->kwnames != NULL && PyTuple_GET_SIZE(step->kwnames) > 0 ? Py_NewRef(step->kwnames) : NULL;
    made->code = (PyCodeObject *)Py_NewRef((PyObject *)ir->sites[at].code);
    made->handled_args = made->handled_rows = NULL;
    if (step->context >= 0) {
        const fg_ir_context *c = &ir->contexts[step->context];
        made->handled_args = Py_NewRef(c->args);
        if ((made->handled_rows = fg_traceback_part(ir, c->site, c->levels)) == NULL)
            Py_CLEAR(made);
    }
    return (PyObject *)made;
}
