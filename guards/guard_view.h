/* Purpose:   what a guard program reads: the five roots of one call.
 * Model:     everything that is not in the code object belongs to the call: argument slots, this function's cells, its globals, its
 *            builtins, the function itself. An entry holds none of them.
 * Invariants: slots[i] is NULL for an unbound slot. closure is NULL or a tuple of cells.
 * Threading: the GIL is held.
 * Ownership: all borrowed for the time of the evaluation and of the call that follows.
 */
#ifndef FG_GUARD_VIEW_H
#define FG_GUARD_VIEW_H

#include "runtime/base/status.h"
#include <Python.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fg_view {
    FG_BORROWED PyObject *const *slots;
    Py_ssize_t n_slots;
    FG_BORROWED PyObject *closure;
    FG_BORROWED PyObject *globals;
    FG_BORROWED PyObject *builtins;
    FG_BORROWED PyObject *func;
    FG_BORROWED PyObject *const *lent; /* the arguments as the call gave them, or NULL: slots, or what slots were bound from */
    Py_ssize_t n_lent;
    FG_BORROWED void *frame; /* NULL, or an fg_frame that nobody runs: lent are its slots, and their references may be taken */
} fg_view;

#ifdef __cplusplus
}
#endif

#endif
