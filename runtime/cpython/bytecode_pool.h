/* Purpose:   the constants and names of a code object being made: equal ones get one index.
 * Model:     open addressing over an array in order of first use. Constants are equal if exact type and bits are: 1, True and 1.0 differ, so
 *            do 0.0 and -0.0; exact tuples are compared element by element; whatever is no builtin scalar is compared by identity.
 * Threading: the GIL is held.
 * Ownership: objects are borrowed; storage is in the arena.
 */
#ifndef FG_CPYTHON_BYTECODE_POOL_H
#define FG_CPYTHON_BYTECODE_POOL_H

#include "runtime/base/arena.h"
#include "runtime/base/status.h"
#include <Python.h>
#include <stdint.h>

typedef struct fg_pool {
    fg_arena *arena;
    PyObject **objects;
    uint64_t *hashes;
    int32_t *buckets; /* index + 1, 0 empty */
    int32_t n, room;  /* buckets: 2 * room, a power of two */
} fg_pool;

fg_status fg_pool_add(fg_pool *pool, FG_BORROWED PyObject *object, int32_t *index);
FG_NEW PyObject *fg_pool_tuple(const fg_pool *pool);

#endif
