/* Purpose:   ndarray metadata by NumPy's own struct, inlined into whoever checks guards.
 * Model:     exact numpy.ndarray only; subclasses are other types with other rules.
 * Invariants: fg_numpy_array_type is NULL until fg_tensor_init, so that no object passes the type test before.
 * Threading: the GIL is held.
 * Ownership: sizes and strides in a meta point into the array; strides are in bytes.
 */
#ifndef FG_GUARDS_ADAPTOR_NUMPY_H
#define FG_GUARDS_ADAPTOR_NUMPY_H

#include "guards/guard_tensor.h"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#ifndef PY_ARRAY_UNIQUE_SYMBOL
#define PY_ARRAY_UNIQUE_SYMBOL fg_numpy_api
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
#include <string.h>

_Static_assert(sizeof(npy_intp) == sizeof(int64_t), "sizes and strides are used in place");

enum {                       /* meta.keys */
       FG_NUMPY_SWAPPED = 1, /* byte order is not this machine's */
       FG_NUMPY_WRITEABLE = 2,
       FG_NUMPY_ALIGNED = 4,
       FG_NUMPY_TAGGED = 8 /* the dtype object carries metadata of its own */
};
#define FG_NUMPY_N_TYPES 24 /* up to NPY_HALF */

extern __attribute__((visibility("hidden"))) PyTypeObject *fg_numpy_array_type;
extern __attribute__((visibility("hidden"))) PyArray_Descr *fg_numpy_descrs[FG_NUMPY_N_TYPES]; /* the usual dtype objects, NULL elsewhere */
extern __attribute__((visibility("hidden"))) const fg_tensor_adaptor *const fg_numpy_adaptor;
/* Flags of a dtype object that is not one of the usual ones. */
__attribute__((visibility("hidden"))) uint64_t fg_numpy_descr_keys(PyArray_Descr *descr);

/* 1 if the object is a dtype that refers to nothing but numbers, text and dtypes of that kind; 0: one that refers to something else; -1: no dtype. */
__attribute__((visibility("hidden"))) int fg_numpy_dtype_is_plain(PyObject *object);

static inline uint64_t fg_numpy_keys(PyArrayObject *array)
{
    PyArray_Descr *descr = PyArray_DESCR(array);
    int flags = PyArray_FLAGS(array);
    uint64_t keys = ((flags & NPY_ARRAY_WRITEABLE) ? FG_NUMPY_WRITEABLE : 0) | ((flags & NPY_ARRAY_ALIGNED) ? FG_NUMPY_ALIGNED : 0);
    if ((unsigned)descr->type_num < FG_NUMPY_N_TYPES && fg_numpy_descrs[descr->type_num] == descr)
        return keys;
    return keys | fg_numpy_descr_keys(descr);
}

/* 1 read, 0 not an exact ndarray. */
static inline int fg_numpy_read(PyObject *object, fg_tensor_meta *meta)
{
    if (Py_TYPE(object) != fg_numpy_array_type)
        return 0;
    PyArrayObject *array = (PyArrayObject *)object;
    meta->adaptor = fg_numpy_adaptor;
    meta->type = fg_numpy_array_type;
    meta->keys = fg_numpy_keys(array);
    meta->dtype = PyArray_TYPE(array);
    meta->device_type = 1;
    meta->device_index = 0;
    meta->requires_grad = 0;
    meta->layout = 0;
    meta->ndim = PyArray_NDIM(array);
    meta->sizes = (const int64_t *)PyArray_DIMS(array);
    meta->strides = (const int64_t *)PyArray_STRIDES(array);
    return 1;
}

/* 1 if the exact ndarray has this metadata. What is the same of every ndarray (device, layout, gradient) is the caller's to compare, once. */
static inline int fg_numpy_is(PyArrayObject *array, int ndim, int dtype, const int64_t *sizes, const int64_t *strides, uint64_t keys)
{
    if ((PyArray_NDIM(array) != ndim) | (PyArray_TYPE(array) != dtype))
        return 0;
    const npy_intp *has = PyArray_DIMS(array), *steps = PyArray_STRIDES(array);
    for (int i = 0; i < ndim; i++) {
        if ((has[i] != sizes[i]) | (steps[i] != strides[i]))
            return 0;
    }
    return fg_numpy_keys(array) == keys;
}

#endif
