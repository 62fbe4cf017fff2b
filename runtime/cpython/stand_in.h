/* Purpose:   a frame for a call that was inlined, and an exception that is being handled, while one operation runs.
 * Model:     who raises a warning in C is named by the thread's innermost frame: its file, its line, the `__name__` and the registry in its globals. The
 *            frame that is pushed here has the inlined function's own code, stands at the operation's instruction, and has no locals and nothing to run.
 * Invariants: pushed and popped around one call in C; nothing else pops it.
 * Threading: the GIL is held; the call may run anything.
 * Ownership: code and globals are borrowed while the call runs. A frame object that somebody keeps has references of its own.
 */
#ifndef FG_CPYTHON_STAND_IN_H
#define FG_CPYTHON_STAND_IN_H

#include "runtime/base/status.h"
#include <Python.h>

/* Gives what run(context) gives. byte_offset: of the instruction in the code. globals: an exact dict. */
FG_NEW PyObject *fg_stand_in(PyCodeObject *code, FG_BORROWED PyObject *globals, int byte_offset, PyObject *(*run)(const void *context),
                             const void *context);

/* Gives what run(context) gives, done while that exception is being handled. It gets as context what is being handled around it, as when it was raised. */
FG_NEW PyObject *fg_while_handling(FG_BORROWED PyObject *exception, PyObject *(*run)(const void *context), const void *context);

#endif
