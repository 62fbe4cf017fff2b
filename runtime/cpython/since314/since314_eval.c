/* Frames that the interpreter's own evaluator did not evaluate: from CPython 3.14 on none is offered to anybody yet (FG_FACT_FRAMES_ARE_OFFERED), so all go on to it. */
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

PyObject *fg_version_frame_refuse(PyThreadState *thread, _PyInterpreterFrame *frame, int throwflag)
{
    return _PyEval_EvalFrameDefault(thread, frame, throwflag);
}
