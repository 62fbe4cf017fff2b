/* Frames and tracebacks.
 *
 * A frame is the interpreter's own struct (internal/pycore_frame.h); it links to its caller. What runs before a frame's first RESUME is not
 * a frame to anybody (sys._getframe skips it too), so it is skipped here.
 */
#define Py_BUILD_CORE 1
#include "runtime/cpython/frame.h"

#include "runtime/cpython/frame_fields.h"
#include <internal/pycore_interp.h>
#include <frameobject.h>
#undef Py_BUILD_CORE
#include <stddef.h>

_Static_assert(offsetof(_PyInterpreterFrame, localsplus) == (PY_VERSION_HEX < 0x030e0000 ? 9 : 10) * sizeof(PyObject *),
               "frame layout (pycore_frame.h, since 3.14 pycore_interpframe_structs.h)");
_Static_assert(sizeof(_Py_CODEUNIT) == 2, "code unit");

static _PyInterpreterFrame *real(fg_frame *frame)
{
    return (_PyInterpreterFrame *)frame;
}

fg_frame *fg_frame_current(void)
{
    _PyInterpreterFrame *frame = *fg_newest_frame(PyThreadState_Get());
    while (frame && _PyFrame_IsIncomplete(frame))
        frame = frame->previous;
    return (fg_frame *)frame;
}

PyCodeObject *fg_frame_code(fg_frame *frame)
{
    return (PyCodeObject *)fg_slot_object(*fg_field_code(real(frame)));
}

PyObject *fg_frame_func(fg_frame *frame)
{
    return fg_slot_object(*fg_field_func(real(frame)));
}

void fg_frame_hide(fg_hidden_frame *hidden, fg_frame *frame)
{
    _Py_CODEUNIT **at = fg_field_at(real(frame));
    PyCodeObject *code = fg_frame_code(frame);
    *hidden = (fg_hidden_frame){frame, *at};
    *at = _PyCode_CODE(code) + code->_co_firsttraceable - 1;
}

void fg_frame_show(const fg_hidden_frame *hidden)
{
    *fg_field_at(real(hidden->frame)) = (_Py_CODEUNIT *)(uintptr_t)hidden->at;
}

#if PY_VERSION_HEX < 0x030e0000
/* A call gets the very slots. */
fg_frame_args *fg_frame_args_find(PyObject *callee, PyObject *const *values, Py_ssize_t n)
{
    _PyInterpreterFrame *frame = *fg_newest_frame(PyThreadState_Get());
    (void)callee;
    if (frame == NULL || !PyCode_Check(fg_slot_object(*fg_field_code(frame))))
        return NULL;
    const PyCodeObject *code = fg_frame_code((fg_frame *)frame);
    PyObject *const *first = frame->localsplus + code->co_nlocalsplus, *const *end = first + code->co_stacksize;
    return (uintptr_t)values >= (uintptr_t)first && (uintptr_t)(values + n) <= (uintptr_t)end ? (fg_frame_args *)values : NULL;
}

int fg_frame_args_take(fg_frame_args *args, Py_ssize_t i)
{
    ((PyObject **)args)[i] = Py_NewRef(Py_None);
    return 1;
}
#else
/* A call gets an array of its own: the stack has tags. What stands on top of the stack, below keyword names if there are any, belongs to this call if the
 * callee stands below it; nothing that the callee calls has this frame as the newest one and that callee. */
fg_frame_args *fg_frame_args_find(PyObject *callee, PyObject *const *values, Py_ssize_t n)
{
    _PyInterpreterFrame *frame = *fg_newest_frame(PyThreadState_Get());
    if (frame == NULL || frame->owner >= FRAME_OWNED_BY_INTERPRETER || callee == NULL)
        return NULL;
    _PyStackRef *const bottom = frame->localsplus + _PyFrame_GetCode(frame)->co_nlocalsplus;
    for (Py_ssize_t names = 0; names < 2; names++) {
        _PyStackRef *const first = frame->stackpointer - names - n;
        if (first - 1 < bottom)
            return NULL;
        const int is_callee = fg_slot_object(first[-1]) == callee ||
                              (first - 2 >= bottom && PyStackRef_IsNull(first[-1]) && fg_slot_object(first[-2]) == callee);
        Py_ssize_t same = 0;
        while (is_callee && same < n && fg_slot_object(first[same]) == values[same])
            same++;
        if (is_callee && same == n)
            return (fg_frame_args *)first;
    }
    return NULL;
}

int fg_frame_args_take(fg_frame_args *args, Py_ssize_t i)
{
    _PyStackRef *slot = (_PyStackRef *)args + i;
    if (!PyStackRef_RefcountOnObject(*slot))
        return 0;
    *slot = PyStackRef_None;
    return 1;
}
#endif

PyObject *fg_interpreter_modules(void)
{
    const PyInterpreterState *interp = PyThreadState_Get()->interp;
#if PY_VERSION_HEX >> 16 == 0x030b
    return interp->modules;
#else
    return interp->imports.modules;
#endif
}

PyObject *const *fg_frame_arguments(fg_frame *frame, Py_ssize_t n, PyObject **room)
{
#if PY_VERSION_HEX < 0x030e0000
    (void)n;
    (void)room;
    return real(frame)->localsplus;
#else
    for (Py_ssize_t i = 0; i < n; i++)
        room[i] = fg_slot_object(real(frame)->localsplus[i]);
    return room;
#endif
}

void fg_frame_slot_forget(fg_frame *frame, Py_ssize_t index)
{
    real(frame)->localsplus[index] = fg_slot_own(NULL);
}

void fg_frame_slot_drop(fg_frame *frame, Py_ssize_t index)
{
    fg_slot slot = real(frame)->localsplus[index];
    real(frame)->localsplus[index] = fg_slot_own(NULL);
    fg_slot_drop(slot);
}

PyObject *fg_frame_slot(fg_frame *frame, Py_ssize_t index)
{
    return fg_slot_object(real(frame)->localsplus[index]);
}

void fg_frame_values(fg_frame *frame, Py_ssize_t first, Py_ssize_t n, PyObject **out)
{
    const PyCodeObject *code = fg_frame_code(frame);
    const Py_ssize_t end = code->co_nlocalsplus + code->co_stacksize;
    for (Py_ssize_t i = 0; i < n; i++) {
        out[i] = NULL;
        while (out[i] == NULL && first < end)
            out[i] = fg_frame_slot(frame, first++);
    }
}

void fg_frame_slot_set(fg_frame *frame, Py_ssize_t index, PyObject *value)
{
    fg_slot old = real(frame)->localsplus[index];
    real(frame)->localsplus[index] = fg_slot_own(value);
    fg_slot_drop(old);
}

int fg_frame_line(fg_frame *frame)
{
    return PyCode_Addr2Line(fg_frame_code(frame), _PyInterpreterFrame_LASTI(real(frame)) * (int)sizeof(_Py_CODEUNIT));
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
    *fg_field_at(frame->f_frame) = _PyCode_CODE(code) + byte_offset / (int)sizeof(_Py_CODEUNIT);
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
