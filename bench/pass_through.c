/* Purpose:   the least that an evaluator of frames can do (PEP 523): pass each frame on. What is measured beside it is what framegate adds; tests have it as
 *            the evaluator of somebody else.
 * Model:     install() puts it on top of what is there, or of nothing if it is told not to chain; remove() puts back what was there before.
 * Threading: the GIL is held. Ownership: none.
 *
 * Built by bench/pass_through.py where it is needed.
 */
#include <Python.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT long n_frames;
static _PyFrameEvalFunction before, to;

static PyObject *pass(PyThreadState *thread, struct _PyInterpreterFrame *frame, int throwflag)
{
    return to(thread, frame, throwflag);
}

static PyObject *count_and_pass(PyThreadState *thread, struct _PyInterpreterFrame *frame, int throwflag)
{
    n_frames++;
    return to(thread, frame, throwflag);
}

EXPORT void install(int chains, int counts)
{
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    before = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    to = chains ? before : _PyEval_EvalFrameDefault;
    _PyInterpreterState_SetEvalFrameFunc(interpreter, counts ? count_and_pass : pass);
}

EXPORT void uninstall(void)
{
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), before);
}

EXPORT void drop_all(void)
{
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), _PyEval_EvalFrameDefault);
}

EXPORT int is_on_top(void)
{
    const _PyFrameEvalFunction top = _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get());
    return top == pass || top == count_and_pass;
}
