#include "codegen/steady_call.h"

typedef struct caller {
    PyObject_HEAD PyObject *kwnames; /* a tuple of str, or NULL */
} caller;

static PyObject *call_tuple(PyObject *self, PyObject *tuple)
{
    if (!PyTuple_CheckExact(tuple) || PyTuple_GET_SIZE(tuple) < 1) {
        PyErr_SetString(PyExc_SystemError, "framegate: a call without its callable");
        return NULL;
    }
    PyObject *kwnames = ((caller *)self)->kwnames, **items = ((PyTupleObject *)tuple)->ob_item;
    Py_ssize_t n = PyTuple_GET_SIZE(tuple) - 1 - (kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0);
    return PyObject_Vectorcall(items[0], items + 1, (size_t)n, kwnames);
}

static void caller_dealloc(PyObject *self)
{
    Py_XDECREF(((caller *)self)->kwnames);
    PyObject_Free(self);
}

static PyMappingMethods caller_as_mapping = {.mp_subscript = call_tuple};

static PyTypeObject caller_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegate._core.SteadyCaller",
    .tp_basicsize = sizeof(caller),
    .tp_dealloc = caller_dealloc,
    .tp_as_mapping = &caller_as_mapping,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};

PyObject *fg_steady_caller(PyObject *kwnames)
{
    if (PyType_Ready(&caller_type) < 0)
        return NULL;
    caller *made = PyObject_New(caller, &caller_type);
    if (made != NULL)
        made->kwnames = Py_XNewRef(kwnames);
    return (PyObject *)made;
}
