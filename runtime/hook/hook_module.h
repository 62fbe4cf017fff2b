/* Purpose:   what the hook layer adds to framegate._core.
 * Model:     types Gate, Entry and Guards, and functions that the package framegate calls; their docstrings are the reference.
 * Invariants: runs once per process.
 * Threading: the GIL is held.
 * Ownership: the module.
 */
#ifndef FG_HOOK_MODULE_H
#define FG_HOOK_MODULE_H

#include "runtime/base/status.h"
#include <Python.h>

fg_status fg_hook_module_init(PyObject *module);

/* hook_guards.c: framegate._core.Guards, the description of an entry or of a text. */
extern PyTypeObject fg_guards_object_type;

#endif
