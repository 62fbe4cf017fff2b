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

static int dlpack_read(const fg_tensor_adaptor *self, PyObject *object, fg_tensor_meta *meta, const char **why)
{
    const dlpack_adaptor *a = (const dlpack_adaptor *)self;
    const char *reason = NULL;
    fg_dlpack_tensor t = {0};
    if (Py_TYPE(object) != a->type) {
        reason = "not of the type that this adaptor reads";
        goto refuse;
    }
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    int r = a->table->tensor_from_object(object, &t);
    if (r != 0 && PyErr_Occurred() && (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError))) {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
        return -1;
    }
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
    if (r != 0) {
        reason = "the library does not describe this tensor through DLPack";
        goto refuse;
    }
    if (t.ndim < 0 || t.ndim > FG_TENSOR_MAX_DIM || (t.ndim > 0 && t.shape == NULL) || t.dtype.lanes > 0xff || t.device.type > INT16_MAX ||
        t.device.index > INT16_MAX || t.device.type < 0 || t.device.index < INT16_MIN) {
        reason = "a DLPack description that is out of range";
        goto refuse;
    }
    meta->adaptor = self;
    meta->type = a->type;
    meta->keys = 0;
    meta->dtype = t.dtype.code << 16 | t.dtype.bits << 8 | t.dtype.lanes;
    meta->device_type = (int16_t)t.device.type;
    meta->device_index = (int16_t)t.device.index;
    meta->requires_grad = 0;
    meta->layout = 0;
    meta->ndim = t.ndim;
    meta->sizes = t.shape;
    meta->strides = t.strides;
    if (t.strides == NULL) {
        /* Unsigned: a shape whose product overflows wraps the same way each time instead of being undefined. */
        uint64_t step = 1;
        for (int32_t i = t.ndim - 1; i >= 0; i--) {
            meta->own[i] = (int64_t)step;
            step *= (uint64_t)t.shape[i];
        }
        meta->strides = meta->own;
    }
    return 1;
refuse:
    if (why != NULL)
        *why = reason;
    return 0;
}

/* DLPack says where the data begins, not what owns it: two tensors may overlap at different addresses. */
static const void *dlpack_storage(PyObject *object)
{
    (void)object;
    return NULL;
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
    a->base = (fg_tensor_adaptor){type->tp_name, "dlpack", FG_PURE_STORAGE, dlpack_read, dlpack_read, dlpack_storage, dlpack_dtype, NULL,
                                  NULL,          NULL};
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
