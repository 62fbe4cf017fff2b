/* Frames that the interpreter's own evaluator did not evaluate. From CPython 3.13 on the function by which the evaluator clears and pops its frames is exported. */
#define Py_BUILD_CORE 1
#include "runtime/cpython/eval_version.h"
#include <internal/pycore_ceval.h>
#undef Py_BUILD_CORE

fg_status fg_version_eval_init(void)
{
    return FG_OK;
}

void fg_version_frame_done(PyThreadState *thread, _PyInterpreterFrame *frame)
{
    _PyEval_FrameClearAndPop(thread, frame);
}
