/* The readers through one call, and what runs Python: the reader of attributes and the user's callable. */
#include "guards/guard_read.h"

fg_find fg_read_any(fg_accessor acc, const fg_view *view, PyObject *parent, PyObject *key, int64_t n, PyObject **value)
{
    switch (acc) {
#define FG_READ_CASE(NAME) \
    case FG_ACC_##NAME:    \
        return fg_read_##NAME(view, parent, key, n, value);
#define FG_ACCESSOR(NAME, TEXT, KEY) FG_READ_CASE(NAME)
#define fg_read_GETATTR(view, parent, key, n, value) FG_FIND_UNDECIDED
#include "guards/accessors.def"
#undef fg_read_GETATTR
#undef FG_ACCESSOR
    case FG_N_ACCESSORS: break;
    }
    return FG_FIND_UNDECIDED;
}

int fg_user_accepts(PyObject *callable, PyObject *value, PyObject **raised)
{
    PyObject *answer = PyObject_CallOneArg(callable, value);
    int yes = answer != NULL ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    if (yes >= 0)
        return yes;
    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError))
        return -1;
    if (raised != NULL) {
        PyObject *type, *error, *trace;
        PyErr_Fetch(&type, &error, &trace);
        *raised = type;
        Py_XDECREF(error);
        Py_XDECREF(trace);
    }
    PyErr_Clear();
    return 0;
}

int fg_read_getattr(PyObject *parent, PyObject *name, PyObject **value)
{
    *value = PyObject_GetAttr(parent, name);
    if (*value != NULL)
        return FG_FIND_FOUND;
    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError))
        return FG_READ_ERROR;
    int absent = PyErr_ExceptionMatches(PyExc_AttributeError);
    PyErr_Clear();
    return absent ? FG_FIND_ABSENT : FG_FIND_UNDECIDED;
}
