/* Frames that the interpreter's own evaluator did not evaluate. In CPython 3.13 the evaluator clears and pops its frames by a function that is exported. */
#define Py_BUILD_CORE 1
#include "runtime/cpython/since312/since312_refuse.h"

#undef Py_BUILD_CORE

fg_status fg_version_eval_init(void)
{
    return FG_OK;
}

void fg_version_frame_done(PyThreadState *thread, _PyInterpreterFrame *frame)
{
    _PyEval_FrameClearAndPop(thread, frame);
}

PyObject *fg_version_frame_refuse(PyThreadState *thread, _PyInterpreterFrame *frame, int throwflag)
{
    return fg_since312_refuse(thread, frame, throwflag);
}
