#include "runtime/cpython/function.h"

#if PY_VERSION_HEX >> 16 == 0x030b
int fg_function_runs_its_code(const PyFunctionObject *func)
{
    (void)func;
    return 1;
}
#else
/* The interpreter does not export its own: that of a new function is it. */
static vectorcallfunc find_ordinary(void)
{
    vectorcallfunc found = NULL;
    PyObject *error = PyErr_GetRaisedException(), *globals = PyDict_New(), *func = NULL;
    PyCodeObject *code = PyCode_NewEmpty("<framegate>", "ordinary", 1);
    if (code != NULL && globals != NULL && (func = PyFunction_New((PyObject *)code, globals)) != NULL)
        found = ((PyFunctionObject *)func)->vectorcall;
    Py_XDECREF(func);
    Py_XDECREF(globals);
    Py_XDECREF(code);
    PyErr_SetRaisedException(error);
    return found;
}

int fg_function_runs_its_code(const PyFunctionObject *func)
{
    static vectorcallfunc ordinary;
    if (ordinary == NULL)
        ordinary = find_ordinary();
    return func->vectorcall == ordinary;
}
#endif
