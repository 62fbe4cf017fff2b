/* Purpose:   calls in generated code at which no signal handler runs.
 * Model:     after a CALL the interpreter looks for signals and other asynchronous exceptions. In generated code that stands for a `try` block the
 *            handlers of the block are not there, so one that came up would pass them by. caller[(f, args...)] calls f without that look: the
 *            exception comes up at the next instruction of the user's own that looks for it.
 * Threading: the GIL is held.
 * Ownership: a caller owns its keyword names.
 */
#ifndef FG_CODEGEN_STEADY_CALL_H
#define FG_CODEGEN_STEADY_CALL_H

#include "runtime/base/status.h"
#include <Python.h>

/* kwnames: names of the last arguments, or NULL. */
FG_NEW PyObject *fg_steady_caller(PyObject *kwnames);

#endif
