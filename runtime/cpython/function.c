#include "runtime/cpython/function.h"

#if PY_VERSION_HEX >> 16 > 0x030b
vectorcallfunc fg_function_ordinary;

/* The interpreter does not export its own: that of a new function is it. */
int fg_function_init(void)
{
    if (fg_function_ordinary != NULL)
        return 0;
    PyObject *globals = PyDict_New(), *func = NULL;
    PyCodeObject *code = PyCode_NewEmpty("<framegate>", "ordinary", 1);
    if (code != NULL && globals != NULL && (func = PyFunction_New((PyObject *)code, globals)) != NULL)
        fg_function_ordinary = ((PyFunctionObject *)func)->vectorcall;
    Py_XDECREF(func);
    Py_XDECREF(globals);
    Py_XDECREF(code);
    return fg_function_ordinary != NULL ? 0 : -1;
}
#endif
