/* Frames that the interpreter's own evaluator did not evaluate. In CPython 3.12 the evaluator clears and pops its frames, by functions that are not
 * exported: so it is given one that holds nothing any more and returns at once.
 */
#define Py_BUILD_CORE 1
#include "runtime/cpython/since312/since312_refuse.h"

#include <opcode.h>
#undef Py_BUILD_CORE

/* Code that returns None and does nothing else, not even begin: so no event is due. Lives as long as the process. */
static PyCodeObject *returning;

fg_status fg_version_eval_init(void)
{
    static const char bytes[] = {(char)RETURN_CONST, 0};
    PyObject *none = PyTuple_Pack(1, Py_None), *empty = PyTuple_New(0), *text = PyUnicode_FromString("<framegate>"),
             *bytecode = PyBytes_FromStringAndSize(bytes, sizeof bytes), *table = PyBytes_FromStringAndSize(NULL, 0);
    if (none && empty && text && bytecode && table)
        returning = PyUnstable_Code_NewWithPosOnlyArgs(0, 0, 0, 0, 1, CO_OPTIMIZED | CO_NEWLOCALS, bytecode, none, empty, empty, empty,
                                                       empty, text, text, text, 1, table, table);
    Py_XDECREF(none);
    Py_XDECREF(empty);
    Py_XDECREF(text);
    Py_XDECREF(bytecode);
    Py_XDECREF(table);
    return returning == NULL ? FG_ERR_PYTHON : FG_OK;
}

void fg_version_frame_done(PyThreadState *thread, _PyInterpreterFrame *frame)
{
    enum { LEVELS = 64 };
    PyObject *error = PyErr_GetRaisedException();
    PyCodeObject *const code = returning, *const old = frame->f_code;
    const int n = old->co_nlocalsplus;
    for (int i = 0; i < n; i++)
        Py_CLEAR(frame->localsplus[i]);
    frame->stacktop = 0;
    frame->f_code = (PyCodeObject *)Py_NewRef(code);
    Py_DECREF(old);
    frame->prev_instr = _PyCode_CODE(code) - 1;
    thread->datastack_top = (PyObject **)frame + code->co_framesize;
    /* A frame of nothing has room at any depth. */
    thread->c_recursion_remaining += LEVELS;
    thread->py_recursion_remaining += LEVELS;
    PyObject *none = _PyEval_EvalFrameDefault(thread, frame, 0);
    thread->py_recursion_remaining -= LEVELS;
    thread->c_recursion_remaining -= LEVELS;
    Py_XDECREF(none);
    PyErr_SetRaisedException(error);
}

PyObject *fg_version_frame_refuse(PyThreadState *thread, _PyInterpreterFrame *frame, int throwflag)
{
    return fg_since312_refuse(thread, frame, throwflag);
}
