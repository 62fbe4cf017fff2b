/* Purpose:   one body per guard kind. This header is included once with FG_EXPLAIN 0, for checks, and once with FG_EXPLAIN 1, for
 *            explanations, so that the two cannot disagree.
 * Model:     a body gets the value (never NULL, but for ABSENT, which has no body: the reader's answer is its whole condition) and the leaf, and
 *            answers 1 match, 0 mismatch, -1 out of memory (or what an impure adaptor raised). FG_SEEN says what was seen instead; it is nothing in a check.
 * Invariants: bodies are pure, but for tensors of impure adaptors (fg_guard_is_impure): they read memory of exact builtin layouts, after looking at
 *            the type themselves.
 * Threading: the GIL is held.
 * Ownership: values are borrowed. fg_why owns the text.
 */
#ifndef FG_EXPLAIN
#error "define FG_EXPLAIN"
#endif

#include "guards/adaptor_torch_globals.h"
#include "guards/guard_drop.h"
#include "guards/guard_private.h"
#include "guards/guard_read.h"
#include "runtime/base/hash.h"
#include "runtime/cpython/frame.h"
#include "runtime/cpython/iterators.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#if FG_EXPLAIN
typedef struct fg_why {
    FG_OWNED PyObject *seen; /* str, NULL if nothing was said (out of memory) */
    int64_t pair[2];         /* of a relation's sources, counted from 1; 0: none */
} fg_why;
#define FG_WHY , fg_why *why __attribute__((unused))
#define FG_SEEN(...) (why->seen == NULL ? (void)(why->seen = PyUnicode_FromFormat(__VA_ARGS__)) : (void)0)
#define FG_SEEN_PAIR(ONE, OTHER, TEXT) (why->pair[0] = (int64_t)(ONE) + 1, why->pair[1] = (int64_t)(OTHER) + 1, FG_SEEN(TEXT))
#define FG_SEEN_TEXT(TEXT) (why->seen == NULL ? (void)(why->seen = (TEXT)) : (void)0)
#define FG_SEEN_VALUE(VALUE) (why->seen == NULL ? (void)(why->seen = fg_value_brief(VALUE)) : (void)0)
#define FG_BODY(NAME) static int fg_explain_##NAME(PyObject *v, const fg_leaf *k FG_WHY)
#define FG_LONG_BODY FG_BODY
#define FG_RELATION(NAME)                                                                                                          \
    static int fg_explain_##NAME(PyObject *const *values, const fg_node *ids, int64_t n, const fg_tensor_adaptor *const *adaptors, \
                                 const fg_expr *expr __attribute__((unused)) FG_WHY)
#else
#define FG_WHY
#define FG_SEEN(...) ((void)0)
#define FG_SEEN_PAIR(ONE, OTHER, TEXT) ((void)(ONE), (void)(OTHER))
#define FG_SEEN_TEXT(TEXT) ((void)0)
#define FG_SEEN_VALUE(VALUE) ((void)0)
#define FG_BODY(NAME) static inline int fg_check_##NAME(PyObject *v, const fg_leaf *k)
/* Kept out of the evaluation loop, whose entry would pay for their registers and stack on every call. Not every file needs all of them. */
#define FG_LONG_BODY(NAME) static __attribute__((noinline, unused)) int fg_check_##NAME(PyObject *v, const fg_leaf *k)
#define FG_RELATION(NAME)                                                                                                \
    static __attribute__((noinline, unused)) int fg_check_##NAME(PyObject *const *values, const fg_node *ids, int64_t n, \
                                                                 const fg_tensor_adaptor *const *adaptors,               \
                                                                 const fg_expr *expr __attribute__((unused)))
#endif

#ifndef FG_BODY_HELPERS
#define FG_BODY_HELPERS
/* Of the constant's exact type, and not the same object. */
static __attribute__((noinline, unused)) int fg_const_equals(PyObject *v, const fg_leaf *k)
{
    if (k->hi) { /* an int that fits */
        int overflow = 0;
        return PyLong_AsLongLongAndOverflow(v, &overflow) == k->lo && !overflow;
    }
    return fg_const_same_slow(v, (PyObject *)k->p);
}

/* -1: of a kind that has no builtin truth. */
static inline int fg_truth_of(PyObject *v)
{
    PyTypeObject *type = Py_TYPE(v);
    if (v == Py_None || v == Py_False)
        return 0;
    if (v == Py_True)
        return 1;
    if (type == &PyLong_Type)
        return PyLong_Type.tp_as_number->nb_bool(v);
    if (type == &PyFloat_Type)
        return PyFloat_AS_DOUBLE(v) != 0.0;
    if (type == &PyComplex_Type)
        return PyComplex_Type.tp_as_number->nb_bool(v);
    if (type == &PyUnicode_Type)
        return PyUnicode_GET_LENGTH(v) != 0;
    if (type == &PyBytes_Type || type == &PyTuple_Type || type == &PyList_Type)
        return Py_SIZE(v) != 0;
    if (type == &PyDict_Type)
        return PyDict_GET_SIZE(v) != 0;
    if (type == &PySet_Type || type == &PyFrozenSet_Type)
        return PySet_GET_SIZE(v) != 0;
    return -1;
}

static inline Py_ssize_t fg_length_of(PyObject *v)
{
    if (PyTuple_Check(v) || PyList_Check(v) || PyBytes_Check(v))
        return Py_SIZE(v);
    if (PyDict_Check(v))
        return PyDict_GET_SIZE(v);
    if (PyUnicode_Check(v))
        return PyUnicode_GET_LENGTH(v);
    if (PyAnySet_Check(v))
        return PySet_GET_SIZE(v);
    return PyByteArray_Check(v) ? Py_SIZE(v) : fg_sized_length(v);
}

/* Lists up to this long are gathered on the C stack. */
#define FG_GATHER 256

/* First pair of equal pointers: 1 and the two positions, 0 none, -1 out of memory. Few are compared pairwise; more go through an open-addressing
 * set on the C stack; only sets beyond that size are allocated. */
#define FG_SET_STACK 1024
static inline int fg_pointers_repeat(const void *const *pointers, size_t n, size_t *one, size_t *other)
{
    if (n <= 6) {
        for (size_t i = 1; i < n; i++) {
            for (size_t j = 0; j < i; j++) {
                if (pointers[i] == pointers[j]) {
                    *one = j;
                    *other = i;
                    return 1;
                }
            }
        }
        return 0;
    }
    uint32_t few[FG_SET_STACK], *table = few;
    size_t room = 16;
    int answer = 0;
    while (room < 2 * n)
        room *= 2;
    if (room > FG_SET_STACK && (table = fg_malloc(room * sizeof *table)) == NULL)
        return -1;
    memset(table, 0, room * sizeof *table);
    unsigned shift = 64 - (unsigned)__builtin_ctzll(room);
    for (size_t i = 0; i < n && !answer; i++) {
        size_t slot = (size_t)(((uint64_t)(uintptr_t)pointers[i] * UINT64_C(0x9e3779b97f4a7c15)) >> shift);
        for (;; slot = (slot + 1) & (room - 1)) {
            size_t taken = table[slot];
            if (taken == 0)
                break;
            if (pointers[taken - 1] == pointers[i]) {
                *one = taken - 1;
                *other = i;
                answer = 1;
                break;
            }
        }
        table[slot] = (uint32_t)i + 1;
    }
    if (table != few)
        fg_free(table);
    return answer;
}

/* Whether the type's MRO has the one at this address; -1: v is no type that is ready. */
static inline int fg_mro_has(PyObject *v, const void *base)
{
    PyObject *mro = PyType_Check(v) ? ((PyTypeObject *)v)->tp_mro : NULL;
    if (mro == NULL)
        return -1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
        if ((const void *)PyTuple_GET_ITEM(mro, i) == base)
            return 1;
    }
    return 0;
}

static inline int fg_dict_keys_same(PyObject *dict, PyObject *keys)
{
    fg_dict_iter it = {0};
    PyObject *key, *value;
    Py_ssize_t n = PyTuple_GET_SIZE(keys);
    if (PyDict_GET_SIZE(dict) != n)
        return 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!fg_dict_next(dict, &it, &key, &value) || !fg_const_same(PyTuple_GET_ITEM(keys, i), key))
            return 0;
    }
    return !fg_dict_next(dict, &it, &key, &value);
}

/* As many members as the tuple names, and each of those is there by its bits. A tuple that names one twice is no set's. */
static inline int fg_set_items_same(PyObject *set, PyObject *items)
{
    PyObject *member;
    Py_ssize_t n = PyTuple_GET_SIZE(items);
    if (PySet_GET_SIZE(set) != n)
        return 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyTuple_GET_ITEM(items, i);
        Py_hash_t hash = PyObject_Hash(item); /* plain: a builtin's hash, which cannot fail */
        if (fg_set_find(set, item, hash, &member) != FG_FIND_FOUND || !fg_const_same(item, member))
            return 0;
    }
    return 1;
}
#endif

FG_BODY(PRESENT)
{
    (void)v, (void)k;
    return 1;
}

FG_BODY(TYPE)
{
    if ((const void *)Py_TYPE(v) == k->p)
        return 1;
    FG_SEEN("%s", Py_TYPE(v)->tp_name);
    return 0;
}

FG_BODY(ID)
{
    if ((const void *)v == k->p)
        return 1;
    FG_SEEN_VALUE(v);
    return 0;
}

FG_BODY(NOT_NONE)
{
    (void)k;
    if (v != Py_None)
        return 1;
    FG_SEEN("None");
    return 0;
}

FG_BODY(CONST)
{
    if ((const void *)v == k->p || (Py_TYPE(v) == Py_TYPE((PyObject *)k->p) && fg_const_equals(v, k)))
        return 1;
    FG_SEEN_VALUE(v);
    return 0;
}

FG_LONG_BODY(SUBTYPE)
{
    if (fg_mro_has(v, k->p) == 1)
        return 1;
    FG_SEEN_VALUE(v);
    return 0;
}

FG_LONG_BODY(NO_SUBTYPE)
{
    if (fg_mro_has(v, k->p) == 0)
        return 1;
    FG_SEEN_VALUE(v);
    return 0;
}

FG_LONG_BODY(TRUTH)
{
    if (fg_truth_of(v) == (int)k->lo)
        return 1;
    FG_SEEN_VALUE(v);
    return 0;
}

FG_LONG_BODY(LENGTH)
{
    Py_ssize_t length = fg_length_of(v);
    if (length == k->lo && length >= 0)
        return 1;
    if (length < 0)
        FG_SEEN_VALUE(v);
    else
        FG_SEEN("length %zd", length);
    return 0;
}

/* Whether the container has the key, or the object the attribute. What only a user's comparison could tell is neither there nor absent. */
#define FG_MEMBER_BODY(NAME, CHECK, FIND, WANTED)                                                            \
    FG_LONG_BODY(NAME)                                                                                       \
    {                                                                                                        \
        PyObject *member;                                                                                    \
        fg_find found = CHECK(v) ? FIND(v, (PyObject *)k->p, (Py_hash_t)k->lo, &member) : FG_FIND_UNDECIDED; \
        if (found == (WANTED))                                                                               \
            return 1;                                                                                        \
        if (!CHECK(v))                                                                                       \
            FG_SEEN_VALUE(v);                                                                                \
        else                                                                                                 \
            FG_SEEN("%s %s %s", fg_article(Py_TYPE(v)->tp_name), Py_TYPE(v)->tp_name,                        \
                    found == FG_FIND_FOUND    ? "that has it"                                                \
                    : found == FG_FIND_ABSENT ? "without it"                                                 \
                                              : "of which that cannot be told without running code");        \
        return 0;                                                                                            \
    }
#define FG_ANY_CHECK(V) ((void)(V), 1)
FG_MEMBER_BODY(DICT_HAS, PyDict_Check, fg_dict_find, FG_FIND_FOUND)
FG_MEMBER_BODY(DICT_LACKS, PyDict_Check, fg_dict_find, FG_FIND_ABSENT)
FG_MEMBER_BODY(SET_HAS, PyAnySet_Check, fg_set_find, FG_FIND_FOUND)
FG_MEMBER_BODY(SET_LACKS, PyAnySet_Check, fg_set_find, FG_FIND_ABSENT)
FG_MEMBER_BODY(ATTR_HAS, FG_ANY_CHECK, fg_attr_find, FG_FIND_FOUND)
FG_MEMBER_BODY(ATTR_LACKS, FG_ANY_CHECK, fg_attr_find, FG_FIND_ABSENT)
#undef FG_MEMBER_BODY

FG_LONG_BODY(DICT_KEYS)
{
    if (PyDict_Check(v) && fg_dict_keys_same(v, (PyObject *)k->p))
        return 1;
    FG_SEEN_VALUE(v);
    return 0;
}

FG_LONG_BODY(SET_ITEMS)
{
    if (PyAnySet_Check(v) && fg_set_items_same(v, (PyObject *)k->p))
        return 1;
    FG_SEEN_VALUE(v);
    return 0;
}

FG_LONG_BODY(QUIET)
{
    if (fg_drop_passes(v) || (k->lo > 0 && Py_REFCNT(v) > k->lo))
        return 1;
    FG_SEEN("%s %s whose end may run code", fg_article(Py_TYPE(v)->tp_name), Py_TYPE(v)->tp_name);
    return 0;
}

#define FG_QUIET_BODY(NAME, CHECK, FIND)                                                                            \
    FG_LONG_BODY(NAME)                                                                                              \
    {                                                                                                               \
        PyObject *value;                                                                                            \
        fg_find found = CHECK(v) ? FIND(v, (PyObject *)k->p, (Py_hash_t)k->lo, &value) : FG_FIND_UNDECIDED;         \
        if (found == FG_FIND_ABSENT || (found == FG_FIND_FOUND && fg_drop_passes(value)))                           \
            return 1;                                                                                               \
        if (!CHECK(v))                                                                                              \
            FG_SEEN_VALUE(v);                                                                                       \
        else                                                                                                        \
            FG_SEEN("%s %s with one whose end may run code", fg_article(Py_TYPE(v)->tp_name), Py_TYPE(v)->tp_name); \
        return 0;                                                                                                   \
    }
FG_QUIET_BODY(ATTR_QUIET, FG_ANY_CHECK, fg_attr_find)
FG_QUIET_BODY(DICT_QUIET, PyDict_Check, fg_dict_find)
#undef FG_QUIET_BODY
#undef FG_ANY_CHECK

FG_LONG_BODY(FLOAT_NAN)
{
    (void)k;
    if (PyFloat_CheckExact(v) && isnan(PyFloat_AS_DOUBLE(v)))
        return 1;
    FG_SEEN_VALUE(v);
    return 0;
}

FG_LONG_BODY(INT_RANGE)
{
    if (PyLong_CheckExact(v)) {
        int overflow = 0;
        long long value = PyLong_AsLongLongAndOverflow(v, &overflow);
        if (!overflow && value >= k->lo && value <= k->hi)
            return 1;
    }
    FG_SEEN_VALUE(v);
    return 0;
}

FG_LONG_BODY(ITER_STATE)
{
    PyObject *want = (PyObject *)k->p;
    fg_iterator it;
    if (!fg_iterator_read(v, &it) || it.n_state != PyTuple_GET_SIZE(want)) {
        FG_SEEN_VALUE(v);
        return 0;
    }
    for (int i = 0; i < it.n_state; i++) {
        if (PyLong_AsLongLong(PyTuple_GET_ITEM(want, i)) != it.state[i]) { /* an int of 64 bits */
            FG_SEEN_VALUE(v);
            return 0;
        }
    }
    return 1;
}

/* The one body that is impure: guard_walk.c calls it after everything else. */
FG_LONG_BODY(ACCEPTS)
{
#if FG_EXPLAIN
    PyObject *raised = NULL, *brief;
    int yes = fg_user_accepts((PyObject *)k->p, v, &raised);
    if (raised != NULL && (brief = fg_value_brief(v)) != NULL) {
        FG_SEEN("%U, for which it raised %s", brief, ((PyTypeObject *)raised)->tp_name);
        Py_DECREF(brief);
    } else if (yes == 0) {
        FG_SEEN_VALUE(v);
    }
    Py_XDECREF(raised);
    return yes;
#else
    return fg_user_accepts((PyObject *)k->p, v, NULL);
#endif
}

/* Fields that are compared and their names, in the order in which a difference is reported. */
#define FG_META_FIELDS(F)             \
    F(ndim, "ndim")                   \
    F(dtype, "dtype")                 \
    F(keys, "key set")                \
    F(device_type, "device type")     \
    F(device_index, "device index")   \
    F(requires_grad, "requires_grad") \
    F(layout, "layout")

#if FG_EXPLAIN
static int fg_explain_meta(const fg_tensor_meta *seen, const fg_meta_record *want FG_WHY)
#else
static inline int fg_check_meta(const fg_tensor_meta *seen, const fg_meta_record *want)
#endif
{
#define FG_META_FIELD(FIELD, NAME)                                                                         \
    if (seen->FIELD != want->FIELD) {                                                                      \
        FG_SEEN_TEXT(fg_meta_difference(NAME, want->adaptor, (int64_t)seen->FIELD, (int64_t)want->FIELD)); \
        return 0;                                                                                          \
    }
    FG_META_FIELDS(FG_META_FIELD)
#undef FG_META_FIELD
    for (int32_t i = 0; i < want->ndim; i++) {
        if (seen->sizes[i] != want->dims[i]) {
            FG_SEEN("size %lld instead of %lld in dimension %d", (long long)seen->sizes[i], (long long)want->dims[i], (int)i);
            return 0;
        }
    }
    for (int32_t i = 0; i < want->ndim; i++) {
        if (seen->strides[i] != want->dims[want->ndim + i]) {
            FG_SEEN("stride %lld instead of %lld in dimension %d", (long long)seen->strides[i], (long long)want->dims[want->ndim + i],
                    (int)i);
            return 0;
        }
    }
    return 1;
}

FG_LONG_BODY(TENSOR)
{
    const fg_meta_record *want = k->p;
    fg_tensor_meta seen;
    const char *why_not = NULL;

    if (Py_TYPE(v) != want->type || want->adaptor == NULL) {
        FG_SEEN("%s", Py_TYPE(v)->tp_name);
        return 0;
    }
    int read = want->adaptor->read(want->adaptor, v, &seen, &why_not);
    if (read != 1) {
        if (read < 0)
            return -1;
        FG_SEEN("a tensor that cannot be read%s%s", why_not != NULL ? ": " : "", why_not != NULL ? why_not : "");
        return 0;
    }
#if FG_EXPLAIN
    return fg_explain_meta(&seen, want, why);
#else
    return fg_check_meta(&seen, want);
#endif
}

FG_LONG_BODY(GRADIENT)
{
    const fg_meta_record *want = k->p;
    fg_tensor_meta seen;

    if (Py_TYPE(v) != want->type || want->adaptor == NULL || want->adaptor->gradient == NULL) {
        FG_SEEN("%s", Py_TYPE(v)->tp_name);
        return 0;
    }
    int read = want->adaptor->gradient(want->adaptor, v, &seen);
    if (read < 0)
        return -1;
    if (read == 0 || (seen.keys == 0) != (want->keys == 0)) {
        FG_SEEN("%s", read == 0 ? "a gradient that cannot be read" : seen.keys == 0 ? "None" : "a gradient");
        return 0;
    }
    if (want->keys == 0) {
        if (seen.requires_grad == want->requires_grad)
            return 1;
        FG_SEEN("%s", seen.requires_grad ? "None, and a warning of the question" : "None, without a warning");
        return 0;
    }
#if FG_EXPLAIN
    return fg_explain_meta(&seen, want, why);
#else
    return fg_check_meta(&seen, want);
#endif
}

/* v is NULL: the state is on no source. */
FG_LONG_BODY(TORCH_STATE)
{
    const fg_torch_state *want = k->p;
    fg_torch_state seen;

    (void)v;
    memset(&seen, 0, sizeof seen);
    if (fg_torch_state_read(&seen) != 1) {
        FG_SEEN("a torch whose state cannot be read");
        return 0;
    }
#define FG_STATE_FIELD(FIELD, NAME)                                                         \
    if (seen.FIELD != want->FIELD) {                                                        \
        FG_SEEN_TEXT(fg_state_difference(NAME, (int64_t)seen.FIELD, (int64_t)want->FIELD)); \
        return 0;                                                                           \
    }
    FG_STATE_FIELD(present, "torch present")
    FG_STATE_FIELD(autograd, "autograd state")
    FG_STATE_FIELD(function_mode_depth, "torch function modes")
    FG_STATE_FIELD(function_disabled, "__torch_function__ switch")
    FG_STATE_FIELD(default_device, "default device")
    FG_STATE_FIELD(default_dtype, "default dtype")
    FG_STATE_FIELD(autocast_dtype[0], "autocast on CPU")
    FG_STATE_FIELD(autocast_dtype[1], "autocast on CUDA")
    /* last: much of what is above shows in them too */
    FG_STATE_FIELD(keys_included, "included dispatch keys")
    FG_STATE_FIELD(keys_excluded, "excluded dispatch keys")
#undef FG_STATE_FIELD
    return 1;
}

/* As TORCH_STATE. lo: bits, hi: threads. */
FG_LONG_BODY(TORCH_GLOBALS)
{
    fg_torch_globals seen;

    (void)v;
    if (fg_torch_globals_read(&seen) != 1) {
        FG_SEEN("a torch whose switches cannot be read, or hooks for saved tensors");
        return 0;
    }
    if (seen.bits != k->lo) {
        FG_SEEN_TEXT(fg_torch_globals_difference(seen.bits, k->lo));
        return 0;
    }
    if (seen.threads != k->hi) {
        FG_SEEN("%lld threads instead of %lld", (long long)seen.threads, (long long)k->hi);
        return 0;
    }
    return 1;
}

/* v is NULL. */
FG_LONG_BODY(ABC_TOKEN)
{
    const uint64_t *at = fg_abc_token_at();
    (void)v;
    if (at != NULL && *at == (uint64_t)k->lo)
        return 1;
    FG_SEEN("%llu registrations", at != NULL ? (unsigned long long)*at : 0);
    return 0;
}

/* ---- relations: values[ids[i]] are present ---- */

FG_RELATION(SAME)
{
    (void)adaptors;
    for (int64_t i = 1; i < n; i++) {
        if (values[ids[i]] != values[ids[0]]) {
            FG_SEEN_PAIR(0, i, "two objects");
            return 0;
        }
    }
    return 1;
}

FG_RELATION(DISTINCT)
{
    const void *small[FG_GATHER], **all = small;
    size_t one = 0, other = 0;

    (void)adaptors;
    if (n <= 0)
        return 1;
    if (n > FG_GATHER && (all = fg_malloc((size_t)n * sizeof *all)) == NULL)
        return -1;
    for (int64_t i = 0; i < n; i++)
        all[i] = values[ids[i]];
    int repeat = fg_pointers_repeat(all, (size_t)n, &one, &other);
    if (all != small)
        fg_free(all);
    if (repeat == 1)
        FG_SEEN_PAIR(one, other, "one object");
    return repeat < 0 ? -1 : !repeat;
}

FG_RELATION(NO_DICT_OF)
{
    PyObject *first = values[ids[0]], *attrs = PyDict_CheckExact(first) ? NULL : fg_instance_dict(first);
    (void)adaptors;
    if (attrs == NULL && !PyDict_Check(first))
        return 1;
    if (attrs == first) {
        FG_SEEN_PAIR(0, -1, "its own __dict__");
        return 0;
    }
    for (int64_t i = 1; i < n; i++) {
        PyObject *v = values[ids[i]], *its = v == first || PyDict_CheckExact(v) ? NULL : fg_instance_dict(v);
        if (v == attrs || (its != NULL && (its == first || its == attrs))) {
            FG_SEEN_PAIR(0, i,
                         v == attrs     ? "the second is the __dict__ of the first"
                         : its == first ? "the first is the __dict__ of the second"
                                        : "they have one __dict__");
            return 0;
        }
    }
    return 1;
}

#ifndef FG_STORAGE_HELPERS
#define FG_STORAGE_HELPERS
/* The storage of one tensor of a relation: 1; 0: cannot be told, or not beside the first one's, since a library knows nothing of what another one calls a storage
 * (an array and a tensor may be made of the same memory); -1: an impure adaptor raised. */
static __attribute__((unused)) int fg_storage_of(const fg_tensor_adaptor *const *adaptors, int64_t i, PyObject *v, const void **storage)
{
    const fg_tensor_adaptor *adaptor = adaptors[i], *first = adaptors[0];
    if (adaptor == NULL || adaptor->storage == NULL || first == NULL || adaptor->storage != first->storage)
        return 0;
    *storage = adaptor->storage(v);
    return *storage != NULL ? 1 : !(adaptor->pure & FG_PURE_STORAGE) && PyErr_Occurred() ? -1 : 0;
}
#endif

#ifndef FG_APART_HELPERS
#define FG_APART_HELPERS
typedef struct fg_block {
    const void *space;
    int64_t lo, hi;
    size_t number; /* of the source */
} fg_block;

static __attribute__((unused)) int fg_block_order(const void *a, const void *b)
{
    const fg_block *one = a, *other = b;
    if (one->space != other->space)
        return (uintptr_t)one->space < (uintptr_t)other->space ? -1 : 1;
    return (one->lo > other->lo) - (one->lo < other->lo);
}

/* Two of the blocks that meet: 1 and their numbers; 0 none. Blocks are put in order. */
static __attribute__((unused)) int fg_blocks_meet(fg_block *blocks, size_t n, size_t *one, size_t *other)
{
    size_t reach = 0; /* of those before, in the same space: the one that ends last */
    qsort(blocks, n, sizeof *blocks, fg_block_order);
    for (size_t i = 1; i < n; i++) {
        if (blocks[i].space != blocks[reach].space) {
            reach = i;
            continue;
        }
        if (blocks[i].lo < blocks[reach].hi && blocks[i].lo < blocks[i].hi && blocks[reach].lo < blocks[reach].hi) {
            *one = blocks[reach].number;
            *other = blocks[i].number;
            return 1;
        }
        if (blocks[i].hi > blocks[reach].hi)
            reach = i;
    }
    return 0;
}

/* The same of all of the storages, which are not one: some are of memory that somebody else owns, who may have given it to several. -1: out of memory; one and
 * other are the same number where a storage cannot be told. */
static __attribute__((unused)) int fg_storages_meet(const fg_tensor_adaptor *adaptor, const void *const *storages, size_t n, size_t *one,
                                                    size_t *other)
{
    fg_block small[FG_GATHER], *all = small;
    size_t n_blocks = 0;
    int meet = 0;
    if (n > FG_GATHER && (all = fg_malloc(n * sizeof *all)) == NULL)
        return -1;
    for (size_t i = 0; i < n && !meet; i++) {
        fg_block *block = &all[n_blocks];
        int r = adaptor->extent(storages[i], &block->lo, &block->hi);
        block->space = NULL;
        block->number = i;
        if (r < 0) {
            *one = *other = i;
            meet = 1;
        }
        n_blocks += r == 1;
    }
    if (!meet)
        meet = fg_blocks_meet(all, n_blocks, one, other);
    if (all != small)
        fg_free(all);
    return meet;
}
#endif

FG_RELATION(STORAGE_DISTINCT)
{
    const void *small[FG_GATHER], **all = small;
    size_t one = 0, other = 0;
    int repeat = 0;

    if (n <= 0)
        return 1;
    if (n > FG_GATHER && (all = fg_malloc((size_t)n * sizeof *all)) == NULL)
        return -1;
    for (int64_t i = 0; i < n; i++) {
        int told = fg_storage_of(adaptors, i, values[ids[i]], &all[i]);
        if (told <= 0) {
            if (told == 0)
                FG_SEEN_PAIR(i, -1, "a storage that cannot be told from the others");
            repeat = told == 0 ? 1 : -1;
            goto done;
        }
    }
    repeat = fg_pointers_repeat(all, (size_t)n, &one, &other);
    if (repeat == 1)
        FG_SEEN_PAIR(one, other, "one storage");
    if (repeat == 0 && adaptors[0]->extent != NULL && (repeat = fg_storages_meet(adaptors[0], all, (size_t)n, &one, &other)) == 1) {
        if (one == other)
            FG_SEEN_PAIR(one, -1, "a storage of unknown extent");
        else
            FG_SEEN_PAIR(one < other ? one : other, one < other ? other : one, "storages of one memory");
    }
done:
    if (all != small)
        fg_free(all);
    return repeat < 0 ? -1 : !repeat;
}

FG_RELATION(MEMORY_APART)
{
    fg_block small[FG_GATHER], *all = small;
    size_t one = 0, other = 0;
    int meet = 0;

    if (n <= 0)
        return 1;
    if (n > FG_GATHER && (all = fg_malloc((size_t)n * sizeof *all)) == NULL)
        return -1;
    for (int64_t i = 0; i < n; i++) {
        const fg_tensor_adaptor *adaptor = adaptors[i];
        fg_tensor_memory memory;
        int told = adaptor == NULL || adaptors[0] == NULL || adaptor->storage != adaptors[0]->storage
                       ? 0
                       : fg_tensor_memory_of(adaptor, values[ids[i]], &memory);
        if (told <= 0 || !memory.is_placed) {
            if (told >= 0)
                FG_SEEN_PAIR(i, -1, "memory that cannot be told from the others'");
            meet = told >= 0 ? 1 : -1;
            goto done;
        }
        all[i] = (fg_block){memory.space, memory.elements, memory.end, (size_t)i};
    }
    meet = fg_blocks_meet(all, (size_t)n, &one, &other);
    if (meet)
        FG_SEEN_PAIR(one < other ? one : other, one < other ? other : one, "memory in common");
done:
    if (all != small)
        fg_free(all);
    return meet < 0 ? -1 : !meet;
}

FG_RELATION(EXPR)
{
    (void)n;
    int one = fg_expr_holds(expr, values, ids, adaptors);
#if FG_EXPLAIN
    if (one == 0)
        why->seen = fg_expr_seen(expr, values, ids, adaptors);
#endif
    return one;
}
