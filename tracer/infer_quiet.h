/* Purpose:   a stretch of code that prints no warning and leaves no trace of one.
 * Model:     a filter that ignores everything is put in front of warnings.filters without telling the warnings module: its version stays, so the
 *            once-per-place registries of all modules stay as they are. NumPy's floating-point errors are ignored through the variable that its
 *            own context manager sets; none of it is Python code, where an interrupt could come up.
 * Invariants: end undoes begin in any case and keeps a pending exception.
 * Threading: the GIL is held; another thread's warnings are ignored too while it runs inside the stretch.
 * Ownership: the struct holds references between begin and end.
 */
#ifndef FG_TRACER_INFER_QUIET_H
#define FG_TRACER_INFER_QUIET_H

#include "runtime/base/status.h"
#include <Python.h>

typedef struct fg_quiet {
    FG_OWNED PyObject *filters, *row; /* the list and our row in it */
    FG_OWNED PyObject *errors;        /* token of NumPy's state before, or NULL */
} fg_quiet;

__attribute__((visibility("hidden"))) fg_status fg_quiet_begin(fg_quiet *quiet);
__attribute__((visibility("hidden"))) void fg_quiet_end(fg_quiet *quiet);

#endif
