/* Purpose:   a frame that there is no C stack for, on versions whose evaluator clears its frames and counts levels of C calls (3.12, 3.13).
 * Model:     a fresh frame is disposed of like one that was evaluated; that of a generator belongs to its generator, which only the evaluator can end: it is
 *            told that no level is left.
 * Threading: the GIL is held.
 * Ownership: as in eval_version.h.
 */
#ifndef FG_CPYTHON_SINCE312_REFUSE_H
#define FG_CPYTHON_SINCE312_REFUSE_H

#include "runtime/cpython/eval_version.h"
#include <internal/pycore_ceval.h>

static inline PyObject *fg_since312_refuse(PyThreadState *thread, _PyInterpreterFrame *frame, int throwflag)
{
    if (frame->owner == FRAME_OWNED_BY_THREAD && !throwflag) {
        PyErr_Format(PyExc_RecursionError, "maximum recursion depth exceeded: no C stack is left to call %U",
                     ((PyCodeObject *)*fg_field_code(frame))->co_qualname);
        fg_version_frame_done(thread, frame);
        return NULL;
    }
    const int levels = thread->c_recursion_remaining;
    thread->c_recursion_remaining = 0;
    PyObject *result = _PyEval_EvalFrameDefault(thread, frame, throwflag);
    thread->c_recursion_remaining = levels;
    return result;
}

#endif
