/* Frames, tracing state and tracebacks.
 *
 * A frame is the interpreter's own struct (internal/pycore_frame.h); it links to its caller. What runs before a frame's first RESUME is not
 * a frame to anybody (sys._getframe skips it too), so it is skipped here.
 */
#define Py_BUILD_CORE 1
#include "runtime/cpython/frame.h"
#include <frameobject.h>
#include <internal/pycore_ceval.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_pystate.h>
#include <internal/pycore_runtime.h>
#undef Py_BUILD_CORE
#include <stddef.h>

_Static_assert(offsetof(_PyInterpreterFrame, localsplus) == 9 * sizeof(PyObject *), "frame layout of 3.11 to 3.13 (pycore_frame.h)");
_Static_assert(sizeof(_Py_CODEUNIT) == 2, "code unit");

static _PyInterpreterFrame *real(fg_frame *frame)
{
    return (_PyInterpreterFrame *)frame;
}

fg_frame *fg_frame_current(void)
{
    const PyThreadState *tstate = PyThreadState_Get();
#if PY_VERSION_HEX < 0x030d0000
    _PyInterpreterFrame *frame = tstate->cframe->current_frame;
#else
    _PyInterpreterFrame *frame = tstate->current_frame;
#endif
    while (frame && _PyFrame_IsIncomplete(frame))
        frame = frame->previous;
    return (fg_frame *)frame;
}

PyCodeObject *fg_frame_code(fg_frame *frame)
{
#if PY_VERSION_HEX < 0x030d0000
    return real(frame)->f_code;
#else
    return _PyFrame_GetCode(real(frame));
#endif
}

PyObject *fg_frame_func(fg_frame *frame)
{
#if PY_VERSION_HEX >> 16 == 0x030b
    return (PyObject *)real(frame)->f_func;
#else
    return real(frame)->f_funcobj;
#endif
}

PyObject **fg_frame_stack(PyObject *const *values, Py_ssize_t n)
{
    const _PyInterpreterFrame *frame = PyThreadState_Get()->cframe->current_frame;
    if (frame == NULL)
        return NULL;
    const PyCodeObject *code = frame->f_code;
    PyObject *const *first = frame->localsplus + code->co_nlocalsplus, *const *end = first + code->co_stacksize;
    return (uintptr_t)values >= (uintptr_t)first && (uintptr_t)(values + n) <= (uintptr_t)end ? (PyObject **)values : NULL;
}

PyObject *fg_interpreter_modules(void)
{
    const PyInterpreterState *interp = PyThreadState_Get()->interp;
#if PY_VERSION_HEX >> 16 == 0x030b
    return interp->modules;
#else
    return interp->imports.modules;
#endif
}

PyObject **fg_frame_slots(fg_frame *frame)
{
    return real(frame)->localsplus;
}

void fg_frame_slot_set(fg_frame *frame, Py_ssize_t index, PyObject *value)
{
    PyObject *old = real(frame)->localsplus[index];
    real(frame)->localsplus[index] = value;
    Py_XDECREF(old);
}

int fg_frame_line(fg_frame *frame)
{
    return PyCode_Addr2Line(fg_frame_code(frame), _PyInterpreterFrame_LASTI(real(frame)) * (int)sizeof(_Py_CODEUNIT));
}

int fg_signal_is_pending(void)
{
    const PyThreadState *tstate = PyThreadState_Get();
#if PY_VERSION_HEX < 0x030d0000
    return tstate->async_exc != NULL ||
           (_Py_atomic_load_relaxed(&_PyRuntime.ceval.signals_pending) && PyThread_get_thread_ident() == _PyRuntime.main_thread);
#else /* the bit is set for the main thread alone */
    return tstate->async_exc != NULL || (tstate->eval_breaker & _PY_SIGNALS_PENDING_BIT) != 0;
#endif
}

int fg_thread_traced(void)
{
    const PyThreadState *tstate = PyThreadState_Get();
    const uint8_t *monitors = fg_thread_monitors(tstate);
    return tstate->c_tracefunc != NULL || tstate->c_profilefunc != NULL || (monitors != NULL && fg_any_monitor(monitors));
}

const uint8_t *fg_thread_monitors(const PyThreadState *thread)
{
#if PY_VERSION_HEX >= 0x030c0000
    return thread->interp->monitors.tools;
#else
    (void)thread;
    return NULL;
#endif
}

fg_status fg_traceback_add(PyObject *exception, PyCodeObject *code, PyObject *globals, int byte_offset, int line)
{
    PyObject *type, *value, *trace, *newest = NULL, *below = NULL, *entry = NULL;
    PyFrameObject *frame = NULL;
    fg_status st = FG_ERR_PYTHON;
    if (!PyExceptionInstance_Check(exception) || !PyDict_Check(globals))
        return FG_ERR_INVALID;
    PyErr_Fetch(&type, &value, &trace);
    if (byte_offset < 0 || byte_offset >= (int)(Py_SIZE(code) * (Py_ssize_t)sizeof(_Py_CODEUNIT)))
        byte_offset = code->_co_firsttraceable * (int)sizeof(_Py_CODEUNIT);
    newest = PyException_GetTraceback(exception);
    if (newest && !(below = PyObject_GetAttrString(newest, "tb_next")))
        goto fail;
    frame = PyFrame_New(PyThreadState_Get(), code, globals, NULL);
    if (!frame)
        goto fail;
    /* The frame never ran: f_lineno and f_lasti should still say where the call stood. */
    _Py_CODEUNIT *at = _PyCode_CODE(code) + byte_offset / (int)sizeof(_Py_CODEUNIT);
#if PY_VERSION_HEX < 0x030d0000
    frame->f_frame->prev_instr = at;
#else
    frame->f_frame->instr_ptr = at;
#endif
    entry = PyObject_CallFunction((PyObject *)&PyTraceBack_Type, "OOii", below ? below : Py_None, frame, byte_offset, line);
    if (!entry)
        goto fail;
    if (newest ? PyObject_SetAttrString(newest, "tb_next", entry) < 0 : PyException_SetTraceback(exception, entry) < 0)
        goto fail;
    st = FG_OK;
fail:
    Py_XDECREF(entry);
    Py_XDECREF(frame);
    Py_XDECREF(below);
    Py_XDECREF(newest);
    if (st == FG_OK) {
        PyErr_Restore(type, value, trace);
    } else {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    }
    return st;
}
