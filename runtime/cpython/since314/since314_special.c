/* Objects that instructions of CPython 3.14 and later versions find by a number. */
#include "runtime/cpython/frame.h"
#include "runtime/cpython/since314/since314.h"
#define Py_BUILD_CORE 1
#include <internal/pycore_ceval.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_object.h>
#include <internal/pycore_stackref.h>
#undef Py_BUILD_CORE

/* Mirrors _LOAD_SPECIAL of Python/bytecodes.c, and binds. */
static PyObject *special_exit(PyObject *module, PyObject *manager)
{
    (void)module;
    const _Py_SpecialMethod *special = &_Py_SpecialMethods[FG_SPECIAL_EXIT];
    _PyStackRef found[2] = {PyStackRef_NULL, PyStackRef_FromPyObjectNew(manager)};
    const int status = _PyObject_LookupSpecialMethod(special->name, found);
    if (status <= 0) {
        if (status == 0)
            PyErr_Format(PyExc_TypeError,
                         _PyEval_SpecialMethodCanSuggest(manager, FG_SPECIAL_EXIT) ? special->error_suggestion : special->error, manager);
        PyStackRef_XCLOSE(found[1]);
        return NULL;
    }
    PyObject *function = PyStackRef_AsPyObjectSteal(found[0]);
    if (PyStackRef_IsNull(found[1]))
        return function;
    PyObject *self = PyStackRef_AsPyObjectSteal(found[1]), *bound = PyMethod_New(function, self);
    Py_DECREF(function);
    Py_DECREF(self);
    return bound;
}

static PyMethodDef exit_def = {"special_exit", special_exit, METH_O, NULL};

PyObject *fg_special_exit_function(void)
{
    static PyObject *function;
    if (function == NULL)
        function = PyCFunction_New(&exit_def, NULL);
    return function;
}

/* AssertionError is none: what a failing `assert` does is not foreseen. */
PyObject *fg_common_object(int which)
{
    return which == FG_COMMON_ASSERTION_ERROR ? NULL : fg_thread_state()->interp->common_consts[which];
}
