/* Frames that the interpreter's own evaluator did not evaluate. In CPython 3.11 whoever calls an evaluator clears the frame: _PyEval_Vector of
 * Python/ceval.c, gen_send_ex2 of Objects/genobject.c.
 */
#define Py_BUILD_CORE 1
#include "runtime/cpython/eval_version.h"

#undef Py_BUILD_CORE

fg_status fg_version_eval_init(void)
{
    return FG_OK;
}

void fg_version_frame_done(PyThreadState *thread, _PyInterpreterFrame *frame)
{
    (void)thread, (void)frame;
}

PyObject *fg_version_frame_refuse(PyThreadState *thread, _PyInterpreterFrame *frame, int throwflag)
{
    (void)thread, (void)throwflag;
    PyErr_Format(PyExc_RecursionError, "maximum recursion depth exceeded: no C stack is left to call %U", frame->f_code->co_qualname);
    return NULL;
}
