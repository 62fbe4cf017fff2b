/* Purpose:   descriptions and programs as Python objects, for tests, fuzzers and tools; no policy.
 * Model:     GuardDesc wraps a description (building, checking, explaining, text), GuardProgram the merged program of several.
 * Invariants: a description is not added to while a program that was built of it lives.
 * Threading: the GIL is held.
 * Ownership: GuardDesc owns its description; GuardProgram owns its program and holds the GuardDesc objects.
 */
#ifndef FG_GUARD_PYTHON_H
#define FG_GUARD_PYTHON_H

#include "guards/guard_program.h"

/* Add GuardDesc, GuardProgram and their tables of kinds and accessors to the module. */
fg_status fg_guards_module_init(PyObject *module);

/* The description inside a GuardDesc, or NULL with TypeError. */
FG_BORROWED fg_desc *fg_guard_desc_get(PyObject *object);
/* A GuardDesc that owns the description (which is freed when this fails). */
FG_NEW PyObject *fg_guard_desc_wrap(FG_STEALS fg_desc *desc);

#endif
