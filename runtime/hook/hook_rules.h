/* Purpose:   what the package's table says about one function, for whoever is to treat functions as they were told to.
 * Model:     framegate._rules keeps a dict. A Python function has its row under its address, as a tuple of a weak reference and what is to be done, so that
 *            the table keeps no function alive; the row goes when the function does. Any other callable is its own key.
 * Invariants: a row that stands for a function that has died is not one for what has the address now.
 * Threading: the GIL is held.
 * Ownership: what is returned is borrowed from the table.
 */
#ifndef FG_HOOK_RULES_H
#define FG_HOOK_RULES_H

#include "runtime/base/status.h"
#include <Python.h>

/* NULL without an exception: there is none. */
FG_BORROWED PyObject *fg_rules_of_function(FG_BORROWED PyObject *table, FG_BORROWED PyObject *func);

#endif
