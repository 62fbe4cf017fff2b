#include "codegen/foreign_step.h"

#include "codegen/traceback.h"
#include "runtime/cpython/operators.h"
#include "runtime/cpython/stand_in.h"
#include <stdbool.h>
#include <stddef.h>

typedef struct foreign {
    PyObject_HEAD vectorcallfunc vectorcall;
    uint8_t op;
    int32_t arg, n_args, n_frames;
    PyObject *name, *kwnames; /* may be NULL */
    struct place {
        PyCodeObject *code;
        int32_t offset;
    } * frames;                            /* outermost first */
    PyObject *handled_args, *handled_rows; /* of the exception that is being handled, NULL: none; its traceback (fg_traceback_part) */
} foreign;

typedef struct run {
    const foreign *step;
    PyObject *const *globals; /* per frame: a dict, or None for those of the root */
    PyObject *const *args;
    PyObject *root;
    int32_t entered;
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
    if (r->entered == r->step->n_frames)
        return step_run(r);
    const struct place *at = &r->step->frames[r->entered];
    PyObject *globals = r->globals[r->entered] == Py_None ? r->root : r->globals[r->entered];
    run inner = *r;
    inner.entered++;
    return fg_stand_in(at->code, globals, at->offset, step_in_frame, &inner);
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
    const int n_lead = s->n_frames + (s->handled_args != NULL);
    PyObject *root = PyEval_GetGlobals();
    bool is_sound = n == s->n_args + n_lead && root != NULL;
    for (int i = 0; is_sound && i < s->n_frames; i++)
        is_sound = args[i] == Py_None || PyDict_CheckExact(args[i]);
    if (!is_sound) {
        PyErr_SetString(PyExc_SystemError, "framegate: operands of a step");
        return NULL;
    }
    const run r = {s, args, args + n_lead, root, 0};
    return n_lead > s->n_frames ? step_while_handling(&r, args[s->n_frames]) : step_in_frame(&r);
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
    for (int32_t i = 0; i < s->n_frames; i++)
        Py_DECREF(s->frames[i].code);
    PyMem_Free(s->frames);
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
    if (PyType_Ready(&step_type) < 0)
        return NULL;
    foreign *made = PyObject_New(foreign, &step_type);
    if (made == NULL)
        return NULL;
    made->vectorcall = step_call;
    made->op = step->op;
    made->arg = step->arg;
    made->n_args = step->n_args;
    made->name = Py_XNewRef(step->name);
    made->kwnames = step->kwnames != NULL && PyTuple_GET_SIZE(step->kwnames) > 0 ? Py_NewRef(step->kwnames) : NULL;
    made->handled_args = made->handled_rows = NULL;
    made->n_frames = 0;
    if ((made->frames = PyMem_New(struct place, step->n_frames + 1)) == NULL) {
        Py_DECREF(made);
        return PyErr_NoMemory();
    }
    for (int32_t i = 0; i < step->n_frames; i++)
        made->frames[made->n_frames++] =
            (struct place){(PyCodeObject *)Py_NewRef((PyObject *)step->frames[i].code), step->frames[i].offset};
    if (step->context >= 0) {
        const fg_ir_context *c = &ir->contexts[step->context];
        made->handled_args = Py_NewRef(c->args);
        if ((made->handled_rows = fg_traceback_part(ir, c->site, c->levels)) == NULL)
            Py_CLEAR(made);
    }
    return (PyObject *)made;
}
