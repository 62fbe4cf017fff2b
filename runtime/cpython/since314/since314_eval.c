/* A frame that there is no C stack for: from CPython 3.14 on the evaluator measures the stack itself, and knows how to end any frame. */
#define Py_BUILD_CORE 1
#include "runtime/cpython/eval_version.h"
#include <internal/pycore_ceval.h>
#undef Py_BUILD_CORE

PyObject *fg_version_frame_refuse(PyThreadState *thread, _PyInterpreterFrame *frame, int throwflag)
{
    return _PyEval_EvalFrameDefault(thread, frame, throwflag);
}
