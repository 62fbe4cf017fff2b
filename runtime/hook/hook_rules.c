#include "runtime/hook/hook_rules.h"

#include "runtime/cpython/dict.h"

PyObject *fg_rules_of_function(PyObject *table, PyObject *func)
{
    PyObject *key = PyLong_FromVoidPtr(func), *row = key == NULL ? NULL : PyDict_GetItemWithError(table, key);
    Py_XDECREF(key);
    if (row == NULL)
        PyErr_Clear();
    if (row == NULL || !PyTuple_CheckExact(row) || PyTuple_GET_SIZE(row) != 2 || !PyWeakref_CheckRef(PyTuple_GET_ITEM(row, 0)))
        return NULL;
    return fg_weakref_target(PyTuple_GET_ITEM(row, 0)) == func ? PyTuple_GET_ITEM(row, 1) : NULL;
}
