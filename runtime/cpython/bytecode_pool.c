/* Interning of constants and names: see bytecode_pool.h. Nothing here runs Python code: only exact builtin types are hashed or compared. */
#include "runtime/cpython/bytecode_pool.h"
#include <string.h>

#define MAX_NESTING 64 /* deeper tuples are told apart by identity */

static uint64_t mix(uint64_t a, uint64_t b)
{
    a ^= b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2);
    a *= 0xff51afd7ed558ccdu;
    return a ^ a >> 32;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t hash_constant(PyObject *object, int nesting)
{
    PyTypeObject *type = Py_TYPE(object);
    const uint64_t seed = (uintptr_t)type >> 4;
    if (type == &PyUnicode_Type || type == &PyLong_Type || type == &PyBytes_Type)
        return mix(seed, (uint64_t)PyObject_Hash(object));
    if (type == &PyFloat_Type)
        return mix(seed, bits_of(PyFloat_AS_DOUBLE(object)));
    if (type == &PyComplex_Type) {
        const Py_complex value = ((PyComplexObject *)object)->cval;
        return mix(mix(seed, bits_of(value.real)), bits_of(value.imag));
    }
    if (type == &PyTuple_Type && nesting < MAX_NESTING) {
        uint64_t hash = mix(seed, (uint64_t)PyTuple_GET_SIZE(object));
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); i++)
            hash = mix(hash, hash_constant(PyTuple_GET_ITEM(object, i), nesting + 1));
        return hash;
    }
    return mix(seed, (uintptr_t)object);
}

static int equal_constants(PyObject *a, PyObject *b, int nesting)
{
    PyTypeObject *type = Py_TYPE(a);
    if (a == b)
        return 1;
    if (type != Py_TYPE(b))
        return 0;
    if (type == &PyUnicode_Type || type == &PyLong_Type || type == &PyBytes_Type)
        return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
    if (type == &PyFloat_Type)
        return bits_of(PyFloat_AS_DOUBLE(a)) == bits_of(PyFloat_AS_DOUBLE(b));
    if (type == &PyComplex_Type) {
        const Py_complex x = ((PyComplexObject *)a)->cval, y = ((PyComplexObject *)b)->cval;
        return bits_of(x.real) == bits_of(y.real) && bits_of(x.imag) == bits_of(y.imag);
    }
    if (type == &PyTuple_Type && nesting < MAX_NESTING) {
        if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b))
            return 0;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); i++)
            if (!equal_constants(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i), nesting + 1))
                return 0;
        return 1;
    }
    return 0;
}

static fg_status grow(fg_pool *pool)
{
    const int32_t room = pool->room ? 2 * pool->room : 32;
    PyObject **objects = fg_arena_alloc(pool->arena, (size_t)room * sizeof *objects);
    uint64_t *hashes = fg_arena_alloc(pool->arena, (size_t)room * sizeof *hashes);
    int32_t *buckets = fg_arena_alloc(pool->arena, 2 * (size_t)room * sizeof *buckets);
    if (!objects || !hashes || !buckets)
        return FG_ERR_NOMEM;
    if (pool->n) {
        memcpy(objects, pool->objects, (size_t)pool->n * sizeof *objects);
        memcpy(hashes, pool->hashes, (size_t)pool->n * sizeof *hashes);
    }
    const uint64_t mask = 2 * (uint64_t)room - 1;
    for (int32_t i = 0; i < pool->n; i++) {
        uint64_t b = hashes[i] & mask;
        while (buckets[b])
            b = (b + 1) & mask;
        buckets[b] = i + 1;
    }
    pool->objects = objects, pool->hashes = hashes, pool->buckets = buckets, pool->room = room;
    return FG_OK;
}

fg_status fg_pool_add(fg_pool *pool, PyObject *object, int32_t *index)
{
    const uint64_t hash = hash_constant(object, 0);
    fg_status st;
    if (pool->n == pool->room && (st = grow(pool)) != FG_OK)
        return st;
    const uint64_t mask = 2 * (uint64_t)pool->room - 1;
    uint64_t b = hash & mask;
    for (; pool->buckets[b]; b = (b + 1) & mask) {
        const int32_t known = pool->buckets[b] - 1;
        if (pool->hashes[known] == hash && equal_constants(pool->objects[known], object, 0)) {
            *index = known;
            return FG_OK;
        }
    }
    pool->buckets[b] = pool->n + 1;
    pool->hashes[pool->n] = hash;
    pool->objects[pool->n] = object;
    *index = pool->n++;
    return FG_OK;
}

PyObject *fg_pool_tuple(const fg_pool *pool)
{
    PyObject *tuple = PyTuple_New(pool->n);
    for (int32_t i = 0; tuple && i < pool->n; i++)
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(pool->objects[i]));
    return tuple;
}
