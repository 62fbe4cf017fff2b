/* A frame that there is no C stack for: CPython 3.13 still counts levels of C calls, as 3.12 does. */
#define Py_BUILD_CORE 1
#include "runtime/cpython/since312/since312_refuse.h"
#undef Py_BUILD_CORE

PyObject *fg_version_frame_refuse(PyThreadState *thread, _PyInterpreterFrame *frame, int throwflag)
{
    return fg_since312_refuse(thread, frame, throwflag);
}
