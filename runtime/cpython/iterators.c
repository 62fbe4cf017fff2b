/* Iterators, deques and views.
 *
 * Their structs are private to the files that define them. Mirrors, of CPython 3.11 to 3.13: tupleiterobject (Objects/tupleobject.c), listiterobject and
 * listreviterobject (Objects/listobject.c), unicodeiterobject, striterobject and bytesiterobject (unicodeobject.c, bytesobject.c,
 * bytearrayobject.c), seqiterobject and calliterobject (Objects/iterobject.c), rangeiterobject and longrangeiterobject (Objects/rangeobject.c),
 * dictiterobject (Objects/dictobject.c), setiterobject (Objects/setobject.c), enumobject and reversedobject (Objects/enumobject.c), mapobject,
 * filterobject and zipobject (Python/bltinmodule.c), countobject, repeatobject, chainobject, isliceobject and cycleobject
 * (Modules/itertoolsmodule.c), dequeobject and dequeiterobject (Modules/_collectionsmodule.c), odictiterobject (Objects/odictobject.c), arrayobject
 * (Modules/arraymodule.c). The sizes are compared with the types' own in
 * fg_iterators_init; a type that has another size is treated as unknown.
 */
#define Py_BUILD_CORE 1
#include "runtime/cpython/iterators.h"
#include <internal/pycore_dict.h>
#undef Py_BUILD_CORE

extern PyTypeObject PyReversed_Type, PyEnum_Type, PyZip_Type, PyMap_Type, PyFilter_Type;

typedef struct sequence_iter { /* tuple, list, reversed list, str, bytes, bytearray, any sequence */
    PyObject_HEAD Py_ssize_t index;
    PyObject *sequence;
} sequence_iter;

#if PY_VERSION_HEX >> 16 == 0x030b
typedef struct range_iter {
    PyObject_HEAD long index, start, step, len;
} range_iter;

typedef struct long_range_iter {
    PyObject_HEAD PyObject *index, *start, *step, *len;
} long_range_iter;
#else /* start and len move on */
typedef struct range_iter {
    PyObject_HEAD long start, step, len;
} range_iter;

typedef struct long_range_iter {
    PyObject_HEAD PyObject *start, *step, *len;
} long_range_iter;
#endif

typedef struct table_iter { /* dict */
    PyObject_HEAD PyObject *dict;
    Py_ssize_t used, at;
    PyObject *result;
    Py_ssize_t len;
} table_iter;

typedef struct set_iter {
    PyObject_HEAD PyObject *set;
    Py_ssize_t used, at, len;
} set_iter;

typedef struct enumerate_iter {
    PyObject_HEAD Py_ssize_t index;
    PyObject *inner, *result, *long_index, *one;
} enumerate_iter;

typedef struct zip_iter {
    PyObject_HEAD Py_ssize_t n;
    PyObject *iterators, *result;
    int strict;
} zip_iter;

typedef struct pair_iter { /* map (iterators, function); filter (function, iterator); callable, sentinel; chain (source, active) */
    PyObject_HEAD PyObject *one, *two;
} pair_iter;

typedef struct count_iter {
    PyObject_HEAD Py_ssize_t next;
    PyObject *long_next, *step;
} count_iter;

typedef struct repeat_iter {
    PyObject_HEAD PyObject *element;
    Py_ssize_t times;
} repeat_iter;

typedef struct slice_iter {
    PyObject_HEAD PyObject *inner;
    Py_ssize_t next, stop, step, at;
} slice_iter;

typedef struct cycle_iter {
    PyObject_HEAD PyObject *inner, *saved;
    Py_ssize_t index;
    int first;
} cycle_iter;

#define BLOCK 64
typedef struct block {
    struct block *left;
    PyObject *data[BLOCK];
    struct block *right;
} block;

typedef struct deque {
    PyObject_VAR_HEAD block *left, *right;
    Py_ssize_t left_index, right_index;
    size_t state;
    Py_ssize_t maxlen, n_free;
    block *free[16];
    PyObject *weak;
} deque;

typedef struct array {
    PyObject_VAR_HEAD char *items;
    Py_ssize_t allocated;
    const void *descr;
    PyObject *weak;
    Py_ssize_t exports;
} array;

typedef struct tuple_field {
    PyObject_HEAD Py_ssize_t index;
    PyObject *doc;
} tuple_field;

typedef struct odict_iter {
    PyObject_HEAD int kind;
    PyObject *dict;
    Py_ssize_t size;
    size_t state;
    PyObject *result, *current;
} odict_iter;

typedef struct deque_iter {
    PyObject_HEAD block *at;
    Py_ssize_t index;
    PyObject *deque;
    size_t state;
    Py_ssize_t remaining;
} deque_iter;

static PyTypeObject *count_type, *repeat_type, *chain_type, *islice_type, *cycle_type, *deque_type, *deque_iter_type, *array_type,
    *tuple_field_type, *ascii_type;

/* The type of that name, kept for the life of the process; NULL where it is not there or is of another size. No exception is left. */
static PyTypeObject *type_take(const char *module, const char *name, size_t size)
{
    PyObject *from = PyImport_ImportModule(module);
    PyObject *type = from != NULL ? PyObject_GetAttrString(from, name) : NULL;
    Py_XDECREF(from);
    PyErr_Clear();
    if (type != NULL && PyType_Check(type) && (size_t)((PyTypeObject *)type)->tp_basicsize == size)
        return (PyTypeObject *)type;
    Py_XDECREF(type);
    return NULL;
}

fg_status fg_iterators_init(void)
{
    static int done;
    if (done)
        return FG_OK;
    done = 1;
    count_type = type_take("itertools", "count", sizeof(count_iter));
    repeat_type = type_take("itertools", "repeat", sizeof(repeat_iter));
    chain_type = type_take("itertools", "chain", sizeof(pair_iter));
    islice_type = type_take("itertools", "islice", sizeof(slice_iter));
    cycle_type = type_take("itertools", "cycle", sizeof(cycle_iter));
    deque_type = type_take("_collections", "deque", sizeof(deque));
    deque_iter_type = type_take("_collections", "_deque_iterator", sizeof(deque_iter));
    tuple_field_type = type_take("_collections", "_tuplegetter", sizeof(tuple_field));
    array_type = type_take("array", "array", sizeof(array));
    PyObject *empty = PyUnicode_FromString(""), *over = empty != NULL ? PyObject_GetIter(empty) : NULL;
    if (over != NULL && Py_TYPE(over)->tp_basicsize == sizeof(sequence_iter))
        ascii_type = Py_TYPE(over);
    Py_XDECREF(empty);
    Py_XDECREF(over);
    PyErr_Clear();
    return FG_OK;
}

static int tell(fg_iterator *out, PyObject *part, int n_state, int64_t one, int64_t two, int64_t three)
{
    out->parts[0] = part;
    out->parts[1] = NULL;
    out->n_parts = 1;
    out->state[0] = one;
    out->state[1] = two;
    out->state[2] = three;
    out->n_state = n_state;
    return 1;
}

static int tell_pair(fg_iterator *out, PyObject *one, PyObject *two)
{
    tell(out, one, 0, 0, 0, 0);
    out->parts[1] = two;
    out->n_parts = 2;
    return 1;
}

static Py_ssize_t sequence_size(PyObject *v)
{
    return PyUnicode_Check(v) ? PyUnicode_GET_LENGTH(v) : Py_SIZE(v);
}

/* Used up: whatever its position was, nothing comes any more. */
static int tell_sequence(fg_iterator *out, const sequence_iter *it, int backwards)
{
    if (it->sequence == NULL)
        return tell(out, NULL, 2, -1, 0, 0);
    Py_ssize_t size = sequence_size(it->sequence), left = backwards ? it->index + 1 : size - it->index;
    if (left < 0 || (backwards && it->index >= size))
        left = 0;
    return tell(out, it->sequence, 2, it->index, left, 0);
}

static int small(PyObject *number, int64_t *out)
{
    int overflow = 0;
    if (!PyLong_Check(number))
        return 0;
    *out = PyLong_AsLongLongAndOverflow(number, &overflow);
    return !overflow;
}

static int tell_range(fg_iterator *out, int64_t index, int64_t start, int64_t step, int64_t len)
{
    int64_t next;
    if (__builtin_mul_overflow(index, step, &next) || __builtin_add_overflow(start, next, &next))
        return 0;
    tell(out, NULL, 3, next, step, len - index);
    out->n_parts = 0;
    return 1;
}

/* How many items are behind it. */
#if PY_VERSION_HEX >> 16 == 0x030b
static int64_t range_index(const range_iter *it)
{
    return it->index;
}

static int long_range_index(const long_range_iter *it, int64_t *index)
{
    return small(it->index, index);
}
#else
static int64_t range_index(const range_iter *it)
{
    (void)it;
    return 0;
}

static int long_range_index(const long_range_iter *it, int64_t *index)
{
    (void)it, (void)index;
    return 1;
}
#endif

static int read_builtin(PyObject *v, const PyTypeObject *type, fg_iterator *out)
{
    if (type == &PyTupleIter_Type || type == &PyListIter_Type || type == &PyUnicodeIter_Type || type == ascii_type ||
        type == &PyBytesIter_Type || type == &PyByteArrayIter_Type)
        return tell_sequence(out, (sequence_iter *)v, 0);
    if (type == &PyListRevIter_Type)
        return tell_sequence(out, (sequence_iter *)v, 1);
    if (type == &PyRangeIter_Type) {
        const range_iter *it = (range_iter *)v;
        return tell_range(out, range_index(it), it->start, it->step, it->len);
    }
    if (type == &PyLongRangeIter_Type) {
        const long_range_iter *it = (long_range_iter *)v;
        int64_t index = 0, start, step, len;
        return long_range_index(it, &index) && small(it->start, &start) && small(it->step, &step) && small(it->len, &len) &&
               tell_range(out, index, start, step, len);
    }
    if (type == &PyDictIterKey_Type || type == &PyDictIterValue_Type || type == &PyDictIterItem_Type || type == &PyDictRevIterKey_Type ||
        type == &PyDictRevIterValue_Type || type == &PyDictRevIterItem_Type) {
        const table_iter *it = (table_iter *)v;
        int same = it->dict == NULL || it->used == ((PyDictObject *)it->dict)->ma_used;
        return tell(out, it->dict, 2, it->dict != NULL ? it->len : 0, same, 0);
    }
    if (type == &PySetIter_Type) {
        const set_iter *it = (set_iter *)v;
        int same = it->set == NULL || it->used == ((PySetObject *)it->set)->used;
        return tell(out, it->set, 2, it->set != NULL ? it->len : 0, same, 0);
    }
    if (type == &PyODictIter_Type) {
        const odict_iter *it = (odict_iter *)v;
        tell_pair(out, it->dict, it->current);
        out->n_state = 1;
        out->state[0] = it->dict == NULL || it->size == ((PyDictObject *)it->dict)->ma_used;
        return 1;
    }
    if (type == &PySeqIter_Type || type == &PyReversed_Type) {
        const sequence_iter *it = (sequence_iter *)v;
        return tell(out, it->sequence, 1, it->sequence != NULL ? it->index : -1, 0, 0);
    }
    if (type == &PyEnum_Type) {
        const enumerate_iter *it = (enumerate_iter *)v;
        int64_t next = it->index;
        if (it->long_index != NULL && !small(it->long_index, &next))
            return 0;
        return tell(out, it->inner, 1, next, 0, 0);
    }
    if (type == &PyZip_Type)
        return tell(out, ((zip_iter *)v)->iterators, 1, ((zip_iter *)v)->strict != 0, 0, 0);
    const pair_iter *pair = (pair_iter *)v;
    if (type == &PyMap_Type || type == &PyCallIter_Type)
        return tell_pair(out, pair->one, pair->two);
    return type == &PyFilter_Type && tell_pair(out, pair->two, pair->one);
}

static int read_module(PyObject *v, const PyTypeObject *type, fg_iterator *out)
{
    if (type == count_type) {
        const count_iter *it = (count_iter *)v;
        tell_pair(out, it->long_next, it->step);
        out->n_state = it->long_next == NULL;
        out->state[0] = it->next;
        return 1;
    }
    if (type == repeat_type)
        return tell(out, ((repeat_iter *)v)->element, 1, ((repeat_iter *)v)->times, 0, 0);
    if (type == chain_type)
        return tell_pair(out, ((pair_iter *)v)->one, ((pair_iter *)v)->two);
    if (type == islice_type) {
        const slice_iter *it = (slice_iter *)v;
        tell(out, it->inner, 4, it->next, it->stop, it->step);
        out->state[3] = it->at;
        return 1;
    }
    if (type == cycle_type) {
        const cycle_iter *it = (cycle_iter *)v;
        tell_pair(out, it->inner, it->saved);
        out->n_state = 2;
        out->state[0] = it->index;
        out->state[1] = it->first != 0;
        return 1;
    }
    if (type == deque_iter_type) {
        const deque_iter *it = (deque_iter *)v;
        return tell(out, it->deque, 2, it->remaining, it->state == ((const deque *)it->deque)->state, 0);
    }
    return 0;
}

int fg_iterator_read(PyObject *v, fg_iterator *out)
{
    const PyTypeObject *type = Py_TYPE(v);
    return read_builtin(v, type, out) || read_module(v, type, out);
}

fg_find fg_iterator_item(PyObject *v, int64_t ahead, PyObject **value)
{
    const PyTypeObject *type = Py_TYPE(v);
    int forwards = type == &PyTupleIter_Type || type == &PyListIter_Type;
    if (!forwards && type != &PyListRevIter_Type)
        return FG_FIND_UNDECIDED;
    const sequence_iter *it = (sequence_iter *)v;
    if (it->sequence == NULL || ahead < 0 || ahead > PY_SSIZE_T_MAX / 2 || it->index < 0)
        return FG_FIND_ABSENT;
    Py_ssize_t size = Py_SIZE(it->sequence), at = forwards ? it->index + ahead : it->index - ahead;
    if (at < 0 || at >= size || it->index >= size) /* a reversed one whose list has shrunk below it ends */
        return FG_FIND_ABSENT;
    *value = type == &PyTupleIter_Type ? PyTuple_GET_ITEM(it->sequence, at) : PyList_GET_ITEM(it->sequence, at);
    return *value != NULL ? FG_FIND_FOUND : FG_FIND_ABSENT;
}

int fg_is_count(PyObject *object)
{
    return count_type != NULL && Py_IS_TYPE(object, count_type);
}

int fg_is_tuple_field(PyObject *object)
{
    return tuple_field_type != NULL && Py_IS_TYPE(object, tuple_field_type);
}

int fg_is_deque(PyObject *object)
{
    return deque_type != NULL && PyObject_TypeCheck(object, deque_type);
}

PyObject *fg_deque_item(PyObject *object, int64_t index)
{
    const deque *d = (const deque *)object;
    if (index < 0 || index >= Py_SIZE(d))
        return NULL;
    Py_ssize_t n = d->left_index + (Py_ssize_t)index, blocks = n / BLOCK;
    const block *at = d->left;
    if (index < Py_SIZE(d) / 2) {
        while (blocks-- > 0)
            at = at->right;
    } else {
        at = d->right;
        for (blocks = (d->left_index + Py_SIZE(d) - 1) / BLOCK - blocks; blocks > 0; blocks--)
            at = at->left;
    }
    return at->data[n % BLOCK];
}

Py_ssize_t fg_sized_length(PyObject *object)
{
    if (fg_is_deque(object) || (array_type != NULL && PyObject_TypeCheck(object, array_type)))
        return Py_SIZE(object);
    if (PyRange_Check(object)) {
        int64_t length;
        return small(fg_range_part(object, 3), &length) ? (Py_ssize_t)length : -1;
    }
    return -1;
}

PyObject *fg_view_dict(PyObject *object)
{
    if (!PyDictViewSet_Check(object) && !PyDictValues_Check(object))
        return NULL;
    return (PyObject *)((_PyDictViewObject *)object)->dv_dict;
}
