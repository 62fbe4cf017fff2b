/* Purpose: what a backend returned, made safe to unpack: a callable that hands its arguments on and checks that as many outputs come back as the graph has.
 * Model:   the result is always a tuple of exactly that many values (a list is converted), so generated code unpacks it without a test of its own.
 *          With n < 0 the graph returns one value as it is, and nothing is checked.
 */
#include "codegen/graph_internal.h"
#include <structmember.h>

typedef struct checked_call {
    PyObject_HEAD vectorcallfunc vectorcall;
    FG_OWNED PyObject *callable;
    FG_OWNED PyObject *label; /* for messages */
    Py_ssize_t n;
} checked_call;

static PyTypeObject checked_call_type;

static FG_NEW PyObject *wrong_outputs(const checked_call *self, FG_STEALS PyObject *result)
{
    PyObject *module = PyImport_ImportModule("framegate.exc");
    PyObject *class = module == NULL ? NULL : PyObject_GetAttrString(module, "BackendCompilerFailed");
    PyObject *message = NULL, *error = NULL;
    if (class != NULL && (PyTuple_Check(result) || PyList_Check(result)))
        message =
            PyUnicode_FromFormat("returned too %s outputs when it was called: %zd, but the graph has %zd",
                                 PySequence_Fast_GET_SIZE(result) < self->n ? "few" : "many", PySequence_Fast_GET_SIZE(result), self->n);
    else if (class != NULL)
        message = PyUnicode_FromFormat("returned a %s when it was called; a compiled graph returns a tuple of its %zd outputs",
                                       Py_TYPE(result)->tp_name, self->n);
    if (message != NULL)
        error = PyObject_CallFunction(class, "OOO", self->label, Py_None, message);
    if (error != NULL)
        PyErr_SetObject(class, error);
    Py_XDECREF(error);
    Py_XDECREF(message);
    Py_XDECREF(class);
    Py_XDECREF(module);
    Py_DECREF(result);
    return NULL;
}

static PyObject *checked_vectorcall(PyObject *self_object, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    checked_call *self = (checked_call *)self_object;
    PyObject *result = PyObject_Vectorcall(self->callable, args, nargsf, kwnames);
    if (result == NULL || self->n < 0 || (PyTuple_CheckExact(result) && PyTuple_GET_SIZE(result) == self->n))
        return result;
    if ((!PyTuple_Check(result) && !PyList_Check(result)) || PySequence_Fast_GET_SIZE(result) != self->n)
        return wrong_outputs(self, result);
    Py_SETREF(result, PySequence_Tuple(result));
    if (result != NULL && (!PyTuple_CheckExact(result) || PyTuple_GET_SIZE(result) != self->n))
        return wrong_outputs(self, result);
    return result;
}

static int checked_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((checked_call *)self)->callable);
    return 0;
}

static void checked_dealloc(PyObject *self_object)
{
    checked_call *self = (checked_call *)self_object;
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->callable);
    Py_CLEAR(self->label);
    PyObject_GC_Del(self);
}

static PyObject *checked_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<%U>", ((checked_call *)self)->label);
}

static PyMemberDef checked_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(checked_call, callable), READONLY, "What the backend returned."},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject checked_call_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegate._core.CheckedCall",
    .tp_basicsize = sizeof(checked_call),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "A compiled graph whose number of outputs is checked at each call.",
    .tp_vectorcall_offset = offsetof(checked_call, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_dealloc = checked_dealloc,
    .tp_traverse = checked_traverse,
    .tp_repr = checked_repr,
    .tp_members = checked_members,
};

static PyObject *checked_new(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *callable, *label;
    Py_ssize_t n;
    if (!PyArg_ParseTuple(args, "OnU:checked_call", &callable, &n, &label))
        return NULL;
    if (!PyCallable_Check(callable)) {
        PyErr_SetString(PyExc_TypeError, "checked_call takes a callable");
        return NULL;
    }
    checked_call *self = PyObject_GC_New(checked_call, &checked_call_type);
    if (self == NULL)
        return NULL;
    self->vectorcall = checked_vectorcall;
    self->callable = Py_NewRef(callable);
    self->label = Py_NewRef(label);
    self->n = n;
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

static PyMethodDef checked_functions[] = {
    {"checked_call", checked_new, METH_VARARGS,
     "checked_call(callable, n_outputs, label, /)\n--\n\nA callable that checks that n_outputs values come back, as a tuple (n_outputs < "
     "0: anything)."},
    {NULL, NULL, 0, NULL},
};

fg_status fg_graph_checked_init(PyObject *module)
{
    if (PyType_Ready(&checked_call_type) < 0 || PyModule_AddFunctions(module, checked_functions) < 0)
        return FG_ERR_PYTHON;
    return FG_OK;
}
