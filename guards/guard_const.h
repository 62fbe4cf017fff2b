/* Purpose:   equality and hash of constants by exact type and bits, never by `==`.
 * Model:     0.0 and -0.0 differ, a NaN equals the NaN of the same bits, True is not 1. Tuples compare item by item; anything that is neither a
 *            builtin scalar nor a tuple is equal to itself only.
 * Invariants: nothing here allocates, raises or runs Python.
 * Threading: the GIL is held.
 * Ownership: none is taken.
 */
#ifndef FG_GUARD_CONST_H
#define FG_GUARD_CONST_H

#include "runtime/base/status.h"
#include <Python.h>
#include <stdint.h>

/* 1 for an exact int, bool, float, complex, str or bytes: what the kind CONST can hold. */
int fg_const_is_scalar(PyObject *object);

/* Both are of one and the same exact type, and not the same object. */
int fg_const_same_slow(PyObject *a, PyObject *b);
static inline int fg_const_same(PyObject *a, PyObject *b)
{
    return a == b || (Py_TYPE(a) == Py_TYPE(b) && fg_const_same_slow(a, b));
}

/* Agrees with fg_const_same. */
uint64_t fg_const_hash(PyObject *object);

#endif
