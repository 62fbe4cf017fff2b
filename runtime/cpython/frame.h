/* Purpose:   the interpreter's frame, dicts and types, as far as the rest of the engine may look at them.
 * Model:     one implementation per CPython version; nothing outside runtime/cpython/ includes an internal header.
 * Threading: the GIL is held.
 */
#ifndef FG_CPYTHON_FRAME_H
#define FG_CPYTHON_FRAME_H

#include "runtime/base/status.h"
#include <Python.h>
#include <stdint.h>

/* The innermost Python frame of this thread (the caller, when asked from a C function that it calls). */
typedef struct fg_frame fg_frame;
fg_frame *fg_frame_current(void); /* NULL: no Python frame */
FG_BORROWED PyCodeObject *fg_frame_code(fg_frame *frame);
FG_BORROWED PyObject *fg_frame_func(fg_frame *frame);
/* Its fast locals followed by its stack. Slots may be NULL. On 3.11 the stack depth of a running frame is not recorded: the caller knows it. */
PyObject **fg_frame_slots(fg_frame *frame);
/* Replace one slot (steals value; NULL unbinds); the old value is dropped last. */
void fg_frame_slot_set(fg_frame *frame, Py_ssize_t index, FG_STEALS PyObject *value);
int fg_frame_line(fg_frame *frame);

/* 1 if this thread is being traced or profiled (settrace, setprofile), so that the user's own code should run. */
int fg_thread_traced(void);

/* Bytes of C stack left to this thread before the guard zone; measured from the thread's own bounds. */
size_t fg_stack_left(void);

/* An attribute's value in the instance dict or the inline values of an object, borrowed, or NULL. Never materialises a dict, never raises. name is interned. */
FG_BORROWED PyObject *fg_instance_attr(PyObject *object, PyObject *name);
/* Number of instance attributes and the i-th one in insertion order (name, value borrowed); 0 past the end. For the tracer. */
int fg_instance_attr_next(PyObject *object, Py_ssize_t *position, PyObject **name, PyObject **value);
/* 1 if the type keeps instance attributes in a dict or inline values. */
int fg_type_has_instance_dict(PyTypeObject *type);

/* Versions; 0 means none is available, never equal to a recorded one. */
uint64_t fg_dict_version(PyObject *dict);
uint64_t fg_type_version(PyTypeObject *type); /* assigns one where the interpreter allows */

/* Put a traceback entry (user's code object, byte offset of the instruction) for an inlined call between the exception's newest entry and what is below it. */
fg_status fg_traceback_add(PyObject *exception, PyCodeObject *code, PyObject *globals, int byte_offset, int line);

#endif
