/* Frames that stand for inlined calls, and exceptions that stand for those which the trace has seen raised.
 *
 * The frame lies on the C stack: it is linked as the thread's current one and is never run, so the interpreter's own stack of frames need not know it. The
 * function that it names is that of the frame below; globals and builtins are borrowed from a function, so a frame that outlives the call gets one of its
 * own.
 *
 * Mirrors, of CPython 3.11 to 3.15: _PyFrame_Clear and take_ownership of Python/frame.c.
 */
#define Py_BUILD_CORE 1
#include "runtime/cpython/stand_in.h"

#include "runtime/cpython/frame.h"
#include "runtime/cpython/frame_fields.h"
#include <alloca.h>
#include <frameobject.h>
#undef Py_BUILD_CORE
#include <stddef.h>
#include <string.h>

enum { SLOTS_ON_STACK = 256 };

/* The frame object is kept: it gets the frame's contents, and a function that keeps globals and builtins alive. Out of memory, it shows those of the frame
 * below. */
static void give(PyFrameObject *object, _PyInterpreterFrame *frame, PyThreadState *tstate)
{
    PyObject *const code = fg_slot_object(*fg_field_code(frame));
    const int n = ((PyCodeObject *)code)->co_nlocalsplus;
    PyObject *func = PyFunction_New(code, frame->f_globals);
    if (func == NULL) {
        PyErr_Clear();
        func = Py_NewRef(fg_slot_object(*fg_field_func(frame)));
    }
    memcpy(object->_f_frame_data, frame, (size_t)((char *)&frame->localsplus[n] - (char *)frame));
    frame = (_PyInterpreterFrame *)(void *)object->_f_frame_data;
    object->f_frame = frame;
    *fg_field_func(frame) = fg_slot_own(func);
    frame->f_globals = ((PyFunctionObject *)func)->func_globals;
    frame->f_builtins = ((PyFunctionObject *)func)->func_builtins;
    fg_field_top_set(frame, n);
    frame->owner = FRAME_OWNED_BY_FRAME_OBJECT;
    frame->frame_obj = NULL;
    *fg_field_code(frame) = fg_slot_own(Py_NewRef(code));
    frame->previous = NULL;
    /* Making the caller's frame object may run out of memory: then the chain ends here, as in the interpreter. */
    object->f_back = PyThreadState_GetFrame(tstate);
    if (object->f_back == NULL)
        PyErr_Clear();
    if (!PyObject_GC_IsTracked((PyObject *)object))
        PyObject_GC_Track(object);
}

static __attribute__((noinline)) void clear_object(_PyInterpreterFrame *frame, PyThreadState *tstate)
{
    PyFrameObject *object = frame->frame_obj;
    PyObject *type, *value, *trace;
    frame->frame_obj = NULL;
    PyErr_Fetch(&type, &value, &trace);
    if (Py_REFCNT(object) > 1)
        give(object, frame, tstate);
    Py_DECREF(object);
    Py_CLEAR(frame->f_locals);
    PyErr_Restore(type, value, trace);
}

PyObject *fg_stand_in(PyCodeObject *code, PyObject *globals, int byte_offset, PyObject *(*run)(const void *context), const void *context)
{
    PyThreadState *tstate = fg_thread_state();
    _PyInterpreterFrame **const newest = fg_newest_frame(tstate), *const below = *newest;
    const size_t n = (size_t)code->co_nlocalsplus, size = offsetof(_PyInterpreterFrame, localsplus) + n * sizeof(PyObject *);
    _PyInterpreterFrame *frame;

    if (below == NULL)
        return run(context);
    frame = n <= SLOTS_ON_STACK ? alloca(size) : PyMem_Malloc(size);
    if (frame == NULL)
        return PyErr_NoMemory();
    *fg_field_func(frame) = fg_slot_lend(fg_slot_object(*fg_field_func(below)));
    *fg_field_code(frame) = fg_slot_lend((PyObject *)code);
    frame->f_globals = globals;
    frame->f_builtins = below->f_builtins;
    frame->f_locals = NULL;
    frame->frame_obj = NULL;
    frame->previous = below;
    *fg_field_at(frame) = _PyCode_CODE(code) + byte_offset / (int)sizeof(_Py_CODEUNIT);
    fg_field_top_set(frame, PY_VERSION_HEX < 0x030e0000 ? 0 : (int)n);
#if PY_VERSION_HEX >= 0x030e0000
    frame->visited = 0;
#endif
#if PY_VERSION_HEX >> 16 == 0x030b
    frame->is_entry = false;
#else
    frame->return_offset = 0;
#endif
    frame->owner = FRAME_OWNED_BY_THREAD;
    for (size_t i = 0; i < n; i++)
        frame->localsplus[i] = fg_slot_own(NULL);
    *newest = frame;
    PyObject *result = run(context);
    *newest = below;
    if (frame->frame_obj != NULL)
        clear_object(frame, tstate);
    if (n > SLOTS_ON_STACK)
        PyMem_Free(frame);
    return result;
}

PyObject *fg_while_handling(PyObject *exception, PyObject *(*run)(const void *context), const void *context)
{
    _PyErr_StackItem *const here = fg_thread_state()->exc_info, *around = here;
    PyObject *const before = here->exc_value;

    while ((around->exc_value == NULL || around->exc_value == Py_None) && around->previous_item != NULL)
        around = around->previous_item;
    if (around->exc_value != NULL && around->exc_value != Py_None)
        PyException_SetContext(exception, Py_NewRef(around->exc_value));
    here->exc_value = Py_NewRef(exception);
    PyObject *result = run(context);
    PyObject *after = here->exc_value;
    here->exc_value = before;
    Py_XDECREF(after);
    return result;
}
