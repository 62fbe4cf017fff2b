/* CPython 3.12 and later versions have no way around the interpreter's loop here: their targets are called as functions. */
#include "runtime/cpython/straight.h"

fg_status fg_straight_plan(PyCodeObject *code, fg_straight **out)
{
    (void)code;
    *out = NULL;
    return FG_OK;
}

PyObject *fg_straight_run(const fg_straight *plan, PyObject *func, PyObject *const *inputs)
{
    (void)plan;
    const PyCodeObject *code = (PyCodeObject *)((PyFunctionObject *)func)->func_code;
    return PyObject_Vectorcall(func, inputs, (size_t)code->co_argcount, NULL);
}
