#define PY_ARRAY_UNIQUE_SYMBOL fg_numpy_api
#include "guards/adaptor_numpy.h"
#include "guards/adaptor_numpy_init.h"
#include <stddef.h>

PyTypeObject *fg_numpy_array_type;
PyArray_Descr *fg_numpy_descrs[FG_NUMPY_N_TYPES];

uint64_t fg_numpy_descr_keys(PyArray_Descr *descr)
{
    uint64_t keys = 0;
    if (descr->byteorder != '=' && descr->byteorder != '|' && descr->byteorder != NPY_NATBYTE)
        keys |= FG_NUMPY_SWAPPED;
    /* Only dtypes of the old kind have a slot for it; new kinds have no number below the user types. */
    if (descr->type_num >= 0 && descr->type_num < NPY_USERDEF && PyDataType_METADATA(descr) != NULL)
        keys |= FG_NUMPY_TAGGED;
    return keys;
}

static int dtype_is_plain(PyArray_Descr *descr, int depth);

/* What a dtype says of one name: (dtype, offset) or (dtype, offset, title). */
static int field_is_plain(PyObject *field, int depth)
{
    if (!PyTuple_Check(field) || PyTuple_GET_SIZE(field) < 2 || !PyArray_DescrCheck(PyTuple_GET_ITEM(field, 0)))
        return 0;
    return (PyTuple_GET_SIZE(field) == 2 || PyUnicode_CheckExact(PyTuple_GET_ITEM(field, 2))) &&
           dtype_is_plain((PyArray_Descr *)PyTuple_GET_ITEM(field, 0), depth);
}

static int dtype_is_plain(PyArray_Descr *descr, int depth)
{
    if (depth > 16 || descr->type_num < 0 || descr->type_num >= NPY_USERDEF || PyDataType_METADATA(descr) != NULL)
        return 0;
    if (PyDataType_HASSUBARRAY(descr))
        return dtype_is_plain(PyDataType_SUBARRAY(descr)->base, depth + 1);
    PyObject *fields = PyDataType_HASFIELDS(descr) ? PyDataType_FIELDS(descr) : NULL, *name, *field; /* all borrowed */
    for (Py_ssize_t at = 0; fields != NULL && PyDict_Next(fields, &at, &name, &field);) {
        if (!PyUnicode_CheckExact(name) || !field_is_plain(field, depth + 1))
            return 0;
    }
    return 1;
}

int fg_numpy_dtype_is_plain(PyObject *object)
{
    if (fg_numpy_array_type == NULL || !PyArray_DescrCheck(object))
        return -1;
    return dtype_is_plain((PyArray_Descr *)object, 0);
}

static int numpy_read(const fg_tensor_adaptor *self, PyObject *object, fg_tensor_meta *meta, const char **why)
{
    (void)self;
    int r = fg_numpy_read(object, meta);
    if (r == 0 && why != NULL)
        *why = "not an exact numpy.ndarray";
    return r;
}

static int numpy_record(const fg_tensor_adaptor *self, PyObject *object, fg_tensor_meta *meta, const char **why)
{
    const char *reason = NULL;
    (void)self;
    if (!fg_numpy_read(object, meta))
        reason = "not an exact numpy.ndarray";
    else if (meta->dtype == NPY_OBJECT)
        reason = "an array of Python objects";
    else if (meta->dtype < 0 || meta->dtype >= FG_NUMPY_N_TYPES || fg_numpy_descrs[meta->dtype] == NULL)
        reason = "an array whose dtype is not a plain number (structured, text, date or user-defined)";
    else if (meta->keys & FG_NUMPY_SWAPPED)
        reason = "an array in foreign byte order";
    else if (meta->keys & FG_NUMPY_TAGGED)
        reason = "an array whose dtype carries metadata";
    if (reason != NULL && why != NULL)
        *why = reason;
    return reason == NULL;
}

/* The object that owns the memory: the last ndarray of the base chain if the memory is its own, or the bytes object under it. Anything else
 * (memory maps, other libraries, ctypes) may share memory with a second owner that we cannot tell, so it is unknown. */
static const void *numpy_storage(PyObject *object)
{
    for (int hops = 0; hops < 64; hops++) {
        if (PyBytes_CheckExact(object) || PyByteArray_CheckExact(object))
            return object;
        if (PyMemoryView_Check(object)) {
            object = PyMemoryView_GET_BUFFER(object)->obj;
        } else if (fg_numpy_array_type != NULL && PyObject_TypeCheck(object, fg_numpy_array_type)) {
            PyArrayObject *array = (PyArrayObject *)object;
            if (PyArray_BASE(array) == NULL)
                return (PyArray_FLAGS(array) & NPY_ARRAY_OWNDATA) ? object : NULL;
            object = PyArray_BASE(array);
        } else {
            return NULL;
        }
        if (object == NULL)
            return NULL;
    }
    return NULL;
}

static PyObject *numpy_dtype(const fg_tensor_meta *meta)
{
    if (meta->dtype >= 0 && meta->dtype < FG_NUMPY_N_TYPES && fg_numpy_descrs[meta->dtype] != NULL)
        return Py_NewRef((PyObject *)fg_numpy_descrs[meta->dtype]);
    return PyUnicode_FromFormat("numpy type %d", meta->dtype);
}

/* Only for the usual dtype objects: they live for ever, so their address says all of them. */
static int numpy_words(PyObject *object, fg_words *words)
{
    const PyArrayObject_fields *array = (const PyArrayObject_fields *)object;
    int number = array->descr->type_num;

    if (Py_TYPE(object) != fg_numpy_array_type || (unsigned)number >= FG_NUMPY_N_TYPES || fg_numpy_descrs[number] != array->descr)
        return 0;
    fg_words_add_short(words, &array->nd, sizeof array->nd);
    fg_words_add(words, &array->dimensions);
    fg_words_add(words, &array->strides);
    fg_words_add(words, &array->descr);
    fg_words_add_short(words, &array->flags, sizeof array->flags);
    for (int i = 0; i < array->nd; i++) {
        fg_words_add(words, &array->dimensions[i]);
        fg_words_add(words, &array->strides[i]);
    }
    return 1;
}
_Static_assert(offsetof(PyArrayObject_fields, nd) == offsetof(PyArrayObject_fields, data) + 8 &&
                   offsetof(PyArrayObject_fields, flags) == offsetof(PyArrayObject_fields, descr) + 8,
               "what is read with a field is another one");

static int numpy_place(const fg_tensor_adaptor *self, PyObject *object, fg_tensor_place *place)
{
    fg_tensor_meta meta;
    (void)self;
    if (!fg_numpy_read(object, &meta))
        return 0;
    PyArrayObject *array = (PyArrayObject *)object;
    return fg_tensor_place_of((int64_t)(intptr_t)PyArray_DATA(array), PyArray_ITEMSIZE(array), 1, &meta, place);
}

static const fg_tensor_adaptor adaptor = {
    "numpy", "struct", FG_PURE_READ | FG_PURE_STORAGE, numpy_read, numpy_record, numpy_storage, numpy_dtype, numpy_words, numpy_place,
    NULL,    NULL};
const fg_tensor_adaptor *const fg_numpy_adaptor = &adaptor;

fg_status fg_numpy_init(void)
{
    if (fg_numpy_array_type != NULL)
        return FG_OK;
    if (PyArray_ImportNumPyAPI() < 0)
        return FG_ERR_PYTHON;
    for (int i = 0; i < FG_NUMPY_N_TYPES; i++)
        if (i <= NPY_CLONGDOUBLE || i == NPY_HALF) {
            PyArray_Descr *descr = PyArray_DescrFromType(i);
            if (descr == NULL)
                return FG_ERR_PYTHON;
            fg_numpy_descrs[i] = descr; /* kept for the life of the process */
        }
    fg_numpy_array_type = &PyArray_Type;
    return FG_OK;
}
