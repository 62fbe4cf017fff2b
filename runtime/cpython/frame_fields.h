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
#include <Python.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_pystate.h>

static inline _PyInterpreterFrame **fg_newest_frame(PyThreadState *thread)
{
#if PY_VERSION_HEX < 0x030d0000
    return &thread->cframe->current_frame;
#else
    return &thread->current_frame;
#endif
}

/* A code object; since 3.13 the frames of the interpreter itself may have something else there. */
static inline PyObject **fg_field_code(_PyInterpreterFrame *frame)
{
#if PY_VERSION_HEX < 0x030d0000
    return (PyObject **)(void *)&frame->f_code;
#else
    return &frame->f_executable;
#endif
}

static inline PyObject **fg_field_func(_PyInterpreterFrame *frame)
{
#if PY_VERSION_HEX >> 16 == 0x030b
    return (PyObject **)(void *)&frame->f_func;
#else
    return &frame->f_funcobj;
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
