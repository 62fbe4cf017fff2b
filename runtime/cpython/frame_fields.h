/* Purpose:   the fields of the interpreter's frame that have other names in other versions.
 * Model:     each function gives the place of one field, or of the thread's newest frame.
 * Threading: the GIL is held.
 * Ownership: as the interpreter has it: code, function and locals are references of the frame's own.
 */
#ifndef FG_CPYTHON_FRAME_FIELDS_H
#define FG_CPYTHON_FRAME_FIELDS_H

#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1 /* a file that includes this defines it before anything of the interpreter */
#endif
#include "runtime/base/status.h"
#include <Python.h>
#include <internal/pycore_frame.h>
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_interpframe.h>
#include <internal/pycore_stackref.h>
#endif
#include <internal/pycore_pystate.h>

static inline _PyInterpreterFrame **fg_newest_frame(PyThreadState *thread)
{
#if PY_VERSION_HEX < 0x030d0000
    return &thread->cframe->current_frame;
#else
    return &thread->current_frame;
#endif
}

/* Code (since 3.13 the frames of the interpreter itself may have something else there), function, and the slots of variables and stack. Since 3.14 each is
 * a word with a tag, which may also say that the frame only borrows the object. fg_slot_object gives the object, borrowed, NULL: there is none; fg_slot_lend
 * makes a word that does not own its object, fg_slot_own one that takes a reference over. */
#if PY_VERSION_HEX < 0x030e0000
typedef PyObject *fg_slot;
static inline PyObject *fg_slot_object(fg_slot slot)
{
    return slot;
}

static inline fg_slot fg_slot_lend(PyObject *object)
{
    return object;
}

static inline fg_slot fg_slot_own(FG_STEALS PyObject *object)
{
    return object;
}

static inline void fg_slot_drop(fg_slot slot)
{
    Py_XDECREF(slot);
}
#else
typedef _PyStackRef fg_slot;
static inline PyObject *fg_slot_object(fg_slot slot)
{
    return PyStackRef_IsNullOrInt(slot) ? NULL : PyStackRef_AsPyObjectBorrow(slot);
}

static inline fg_slot fg_slot_lend(PyObject *object)
{
    return PyStackRef_FromPyObjectBorrow(object);
}

static inline fg_slot fg_slot_own(FG_STEALS PyObject *object)
{
    return object == NULL ? PyStackRef_NULL : PyStackRef_FromPyObjectSteal(object);
}

static inline void fg_slot_drop(fg_slot slot)
{
    PyStackRef_XCLOSE(slot);
}
#endif

static inline fg_slot *fg_field_code(_PyInterpreterFrame *frame)
{
#if PY_VERSION_HEX < 0x030d0000
    return (PyObject **)(void *)&frame->f_code;
#else
    return &frame->f_executable;
#endif
}

static inline fg_slot *fg_field_func(_PyInterpreterFrame *frame)
{
#if PY_VERSION_HEX >> 16 == 0x030b
    return (PyObject **)(void *)&frame->f_func;
#else
    return &frame->f_funcobj;
#endif
}

/* n slots are in use; 0: the loop runs the frame and knows. */
static inline void fg_field_top_set(_PyInterpreterFrame *frame, int n)
{
#if PY_VERSION_HEX < 0x030e0000
    frame->stacktop = n ? n : -1;
#else
    frame->stackpointer = frame->localsplus + n;
#endif
}

/* The instruction that the frame is at. */
static inline _Py_CODEUNIT **fg_field_at(_PyInterpreterFrame *frame)
{
#if PY_VERSION_HEX < 0x030d0000
    return &frame->prev_instr;
#else
    return &frame->instr_ptr;
#endif
}

#endif
