#include "guards/adaptor_dlpack.h"
#include "guards/adaptor_torch.h"
#include "runtime/base/alloc.h"
#include "runtime/cpython/dict.h"
#include <limits.h>

typedef struct dlpack_adaptor {
    fg_tensor_adaptor base; /* first: an fg_tensor_adaptor is one of these */
    FG_OWNED PyTypeObject *type;
    const fg_dlpack_table *table;
    struct dlpack_adaptor *next;
} dlpack_adaptor;

static dlpack_adaptor *known;

/* 1 and the description, 0: there is none, or it is out of range; -1: an exception that is none of ours is set. */
static int describe(const dlpack_adaptor *a, PyObject *object, fg_dlpack_tensor *t, const char **reason)
{
    PyObject *type, *value, *trace;
    if (Py_TYPE(object) != a->type) {
        *reason = "not of the type that this adaptor reads";
        return 0;
    }
    PyErr_Fetch(&type, &value, &trace);
    int r = a->table->tensor_from_object(object, t);
    if (r != 0 && PyErr_Occurred() && (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError))) {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
        return -1;
    }
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
    if (r != 0) {
        *reason = "the library does not describe this tensor through DLPack";
        return 0;
    }
    if (t->ndim < 0 || t->ndim > FG_TENSOR_MAX_DIM || (t->ndim > 0 && t->shape == NULL) || t->dtype.lanes > 0xff ||
        t->device.type > INT16_MAX || t->device.index > INT16_MAX || t->device.type < 0 || t->device.index < INT16_MIN) {
        *reason = "a DLPack description that is out of range";
        return 0;
    }
    return 1;
}

static void fill(const dlpack_adaptor *a, const fg_dlpack_tensor *t, fg_tensor_meta *meta)
{
    meta->adaptor = &a->base;
    meta->type = a->type;
    meta->keys = 0;
    meta->dtype = t->dtype.code << 16 | t->dtype.bits << 8 | t->dtype.lanes;
    meta->device_type = (int16_t)t->device.type;
    meta->device_index = (int16_t)t->device.index;
    meta->requires_grad = 0;
    meta->layout = 0;
    meta->ndim = t->ndim;
    meta->sizes = t->shape;
    meta->strides = t->strides;
    if (t->strides == NULL) {
        /* Unsigned: a shape whose product overflows wraps the same way each time instead of being undefined. */
        uint64_t step = 1;
        for (int32_t i = t->ndim - 1; i >= 0; i--) {
            meta->own[i] = (int64_t)step;
            step *= (uint64_t)t->shape[i];
        }
        meta->strides = meta->own;
    }
}

static int dlpack_read(const fg_tensor_adaptor *self, PyObject *object, fg_tensor_meta *meta, const char **why)
{
    const dlpack_adaptor *a = (const dlpack_adaptor *)self;
    const char *reason = NULL;
    fg_dlpack_tensor t = {0};
    int r = describe(a, object, &t, &reason);
    if (r == 1)
        fill(a, &t, meta);
    else if (r == 0 && why != NULL)
        *why = reason;
    return r;
}

/* DLPack says where the data begins, not what owns it: all memory of a kind of device counts as one storage, whose places are addresses. So no two are known
 * to be of different storages, but two can be seen to lie apart. NULL with an exception set: as -1 of a read. */
static const void *dlpack_storage(PyObject *object)
{
    static const char spaces[64];
    const dlpack_adaptor *a = (const dlpack_adaptor *)fg_dlpack_adaptor_known(Py_TYPE(object));
    const char *reason;
    fg_dlpack_tensor t = {0};
    if (a == NULL || describe(a, object, &t, &reason) != 1 || t.device.type >= (int32_t)sizeof spaces)
        return NULL;
    return &spaces[t.device.type];
}

static int dlpack_place(const fg_tensor_adaptor *self, PyObject *object, fg_tensor_place *place)
{
    const dlpack_adaptor *a = (const dlpack_adaptor *)self;
    const char *reason;
    fg_dlpack_tensor t = {0};
    fg_tensor_meta meta;
    int64_t first;
    int r = describe(a, object, &t, &reason);
    if (r != 1)
        return r;
    int64_t itemsize = ((int64_t)t.dtype.bits * t.dtype.lanes + 7) / 8; /* elements of less than a byte: more than they take */
    if (__builtin_add_overflow((int64_t)(intptr_t)t.data, t.byte_offset, &first))
        return 0;
    fill(a, &t, &meta);
    return fg_tensor_place_of(first, itemsize, itemsize, &meta, place);
}

static PyObject *dlpack_dtype(const fg_tensor_meta *meta)
{
    static const char *const names[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
    int code = meta->dtype >> 16, bits = (meta->dtype >> 8) & 0xff, lanes = meta->dtype & 0xff;
    if (code < 0 || code >= (int)(sizeof names / sizeof names[0]))
        return PyUnicode_FromFormat("dlpack%d_%dx%d", code, bits, lanes);
    if (lanes != 1)
        return PyUnicode_FromFormat("%s%dx%d", names[code], bits, lanes);
    return PyUnicode_FromFormat("%s%d", names[code], bits);
}

/* The capsule in the type's MRO, by its dicts alone: no descriptor and no metaclass code runs. */
static const fg_dlpack_table *table_of(PyTypeObject *type)
{
    static PyObject *name;
    PyObject *mro = type->tp_mro;
    if (name == NULL && (name = PyUnicode_InternFromString("__dlpack_c_exchange_api__")) == NULL) {
        PyErr_Clear();
        return NULL;
    }
    for (Py_ssize_t i = 0; mro != NULL && i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *dict = fg_type_dict((PyTypeObject *)PyTuple_GET_ITEM(mro, i));
        PyObject *capsule = dict != NULL ? PyDict_GetItemWithError(dict, name) : NULL;
        if (capsule == NULL) {
            PyErr_Clear();
            continue;
        }
        if (!PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
            return NULL;
        const fg_dlpack_table *table = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
        while (table != NULL && table->version.major != 1)
            table = table->previous;
        return table != NULL && table->tensor_from_object != NULL ? table : NULL;
    }
    return NULL;
}

const fg_tensor_adaptor *fg_dlpack_adaptor_known(const PyTypeObject *type)
{
    for (dlpack_adaptor *a = known; a != NULL; a = a->next)
        if (a->type == type)
            return &a->base;
    return NULL;
}

const fg_tensor_adaptor *fg_dlpack_adaptor_find(PyTypeObject *type)
{
    const fg_tensor_adaptor *seen = fg_dlpack_adaptor_known(type);
    if (seen != NULL)
        return seen;
    if (fg_torch_type_is_family(type))
        return NULL;
    PyObject *error, *value, *trace;
    PyErr_Fetch(&error, &value, &trace);
    const fg_dlpack_table *table = table_of(type);
    PyErr_Restore(error, value, trace);
    dlpack_adaptor *a = table != NULL ? fg_calloc(1, sizeof *a) : NULL;
    if (a == NULL)
        return NULL;
    /* A library's DLPack function is its own code: it raises where it refuses, and is only expected, not known, to run no Python. */
    a->base = (fg_tensor_adaptor){type->tp_name, "dlpack",     0,    dlpack_read, dlpack_read, dlpack_storage, dlpack_dtype,
                                  NULL,          dlpack_place, NULL, NULL};
    a->type = (PyTypeObject *)Py_NewRef((PyObject *)type);
    a->table = table;
    a->next = known;
    known = a;
    return &a->base;
}

const fg_tensor_adaptor *fg_dlpack_adaptor_at(size_t i)
{
    dlpack_adaptor *a = known;
    while (a != NULL && i-- > 0)
        a = a->next;
    return a != NULL ? &a->base : NULL;
}
