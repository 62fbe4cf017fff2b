#include "tracer/infer_meta.h"
#include "guards/adaptor_numpy.h"
#include "guards/adaptor_torch.h"
#include "tracer/infer_quiet.h"
#include "tracer/infer_torch.h"

/* Inference by really calling.
 *
 * What a stand-in must not do is say more than it knows. An exact stand-in (small arrays, small CPU tensors) has the true strides, so everything the
 * call gives is right. A *thin* one, for a large array, is a single element behind zero strides; sizes and dtypes of results are right, but the
 * memory order of a result follows the strides of the inputs, and a view of it has zero strides too. Therefore:
 * 1. only C-ordered arrays get thin stand-ins: where all strides are equal NumPy falls back to C order, which is then the truth;
 * 2. next to a thin one every other array must be C-ordered as well, else the order of the result is unknown;
 * 3. a result that is a view of a thin one is not given out;
 * 4. nothing that would make a result of more than MAX_RESULT elements is called.
 */

#define MAX_EXACT_BYTES (64 * 1024)
#define MAX_RESULT ((int64_t)1 << 24)

/* ---- NumPy ---- */

static int array_is(PyObject *object)
{
    return Py_TYPE(object) == fg_numpy_array_type;
}

/* Made thin by us or, which is treated alike, broadcast by the user in all dimensions. */
static int array_is_thin(PyObject *object)
{
    PyArrayObject *a = (PyArrayObject *)object;
    if (PyArray_SIZE(a) <= 1)
        return 0;
    for (int i = 0; i < PyArray_NDIM(a); i++)
        if (PyArray_DIM(a, i) > 1 && PyArray_STRIDE(a, i) != 0)
            return 0;
    return 1;
}

/* Bytes from the lowest to one past the highest address of an array of this metadata, and how far its first element is from the lowest; -1: too
 * far to care. */
static int64_t span_of(const fg_tensor_meta *meta, int64_t item, int64_t *first)
{
    int64_t low = 0, high = item;
    for (int32_t i = 0; i < meta->ndim; i++) {
        int64_t reach;
        if (meta->sizes[i] == 0) {
            *first = 0;
            return item;
        }
        if (__builtin_mul_overflow(meta->sizes[i] - 1, meta->strides[i], &reach) || reach > (int64_t)1 << 48 || reach < -((int64_t)1 << 48))
            return -1;
        if (reach < 0)
            low += reach;
        else
            high += reach;
    }
    *first = -low;
    return high - low;
}

static int64_t numel_of(const int64_t *sizes, int32_t ndim)
{
    int64_t n = 1;
    for (int32_t i = 0; i < ndim; i++)
        if (__builtin_mul_overflow(n, sizes[i], &n))
            return INT64_MAX;
    return n;
}

static int is_c_order(const fg_tensor_meta *meta, int64_t item)
{
    for (int32_t i = meta->ndim - 1; i >= 0; i--) {
        if (meta->sizes[i] > 1 && meta->strides[i] != item)
            return 0;
        item *= meta->sizes[i];
    }
    return 1;
}

static void ones_fill(PyArrayObject *flat)
{
    PyObject *one = PyLong_FromLong(1);
    if (one != NULL) {
        (void)PyArray_FillWithScalar(flat, one);
        Py_DECREF(one);
    }
}

static fg_status standin_numpy(const fg_tensor_meta *meta, PyObject **out)
{
    npy_intp sizes[FG_TENSOR_MAX_DIM], strides[FG_TENSOR_MAX_DIM], count;
    if (meta->dtype < 0 || meta->dtype >= FG_NUMPY_N_TYPES || fg_numpy_descrs[meta->dtype] == NULL ||
        (meta->keys & (FG_NUMPY_SWAPPED | FG_NUMPY_TAGGED)))
        return FG_ERR_UNSUPPORTED;
    PyArray_Descr *descr = fg_numpy_descrs[meta->dtype];
    int64_t item = (int64_t)PyDataType_ELSIZE(descr), first = 0, span = span_of(meta, item, &first);
    int exact = span >= 0 && span <= MAX_EXACT_BYTES && (meta->keys & FG_NUMPY_ALIGNED);
    if (!exact && (!is_c_order(meta, item) || !(meta->keys & FG_NUMPY_ALIGNED)))
        return FG_ERR_UNSUPPORTED;
    for (int32_t i = 0; i < meta->ndim; i++) {
        sizes[i] = meta->sizes[i];
        strides[i] = exact ? meta->strides[i] : 0;
    }
    count = exact ? (span + item - 1) / item : 1;
    if (exact && (span % item != 0 || first % item != 0))
        count += 1; /* strides that are no multiple of the item: room for the last one */
    Py_INCREF(descr);
    PyObject *memory = PyArray_NewFromDescr(&PyArray_Type, descr, 1, &count, NULL, NULL, 0, NULL);
    if (memory == NULL)
        return FG_ERR_PYTHON;
    ones_fill((PyArrayObject *)memory);
    if (PyErr_Occurred()) {
        Py_DECREF(memory);
        return FG_ERR_PYTHON;
    }
    int order = exact && meta->ndim == 1 && meta->strides[0] == item && meta->sizes[0] == count;
    if (order && (meta->keys & FG_NUMPY_WRITEABLE)) {
        *out = memory; /* owns its data, like most inputs */
        return FG_OK;
    }
    Py_INCREF(descr);
    PyObject *array =
        PyArray_NewFromDescr(&PyArray_Type, descr, meta->ndim, sizes, strides, PyArray_BYTES((PyArrayObject *)memory) + (exact ? first : 0),
                             (meta->keys & FG_NUMPY_WRITEABLE) ? NPY_ARRAY_WRITEABLE : 0, NULL);
    if (array == NULL || PyArray_SetBaseObject((PyArrayObject *)array, memory) < 0) { /* steals memory, also when it fails */
        if (array == NULL)
            Py_DECREF(memory);
        Py_XDECREF(array);
        return FG_ERR_PYTHON;
    }
    fg_tensor_meta made;
    if (exact && (!fg_numpy_read(array, &made) || !fg_tensor_meta_same(&made, meta))) {
        Py_DECREF(array);
        return FG_ERR_UNSUPPORTED;
    }
    *out = array;
    return FG_OK;
}

fg_status fg_standin_new(const fg_tensor_meta *meta, PyObject **out)
{
    *out = NULL;
    if (meta->adaptor == fg_numpy_adaptor)
        return standin_numpy(meta, out);
    if (fg_torch_adaptor_is(meta->adaptor))
        return fg_standin_torch(meta, out);
    return FG_ERR_UNSUPPORTED;
}

/* ---- what may be called ---- */

/* NumPy functions and methods whose result can be larger than all broadcast inputs, so that sizes multiply. */
static int name_grows(PyObject *callable, PyObject *name)
{
    static const char *const grows[] = {"repeat",
                                        "tile",
                                        "kron",
                                        "outer",
                                        "resize",
                                        "pad",
                                        "einsum",
                                        "tensordot",
                                        "vander",
                                        "meshgrid",
                                        "indices",
                                        "full",
                                        "zeros",
                                        "ones",
                                        "empty",
                                        "arange",
                                        "linspace",
                                        "eye",
                                        "identity",
                                        "tri",
                                        "broadcast_to",
                                        "convolve",
                                        "repeat_interleave",
                                        "expand_copy",
                                        "cartesian_prod",
                                        "rand",
                                        "new_zeros",
                                        "new_ones",
                                        "new_full",
                                        "new_empty"};
    PyObject *owned = NULL;
    int found = 0;
    if (name == NULL)
        name = owned = PyObject_GetAttrString(callable, "__name__");
    for (size_t i = 0; name != NULL && PyUnicode_Check(name) && !found && i < sizeof grows / sizeof grows[0]; i++)
        found = PyUnicode_CompareWithASCIIString(name, grows[i]) == 0;
    Py_XDECREF(owned);
    PyErr_Clear();
    return found;
}

typedef struct survey {
    int n_thin, n_unordered, n_tensors, n_grad_leaf;
    int64_t product; /* of the elements of all tensors and of all ints above 1 */
    int64_t shape[FG_TENSOR_MAX_DIM];
    int32_t ndim; /* -1: the tensors do not broadcast */
    int64_t largest_int;
} survey;

static int64_t times(int64_t a, int64_t b)
{
    int64_t r;
    return a == 0 ? 0 : __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

static void survey_shape(survey *s, const int64_t *sizes, int32_t ndim)
{
    s->n_tensors++;
    s->product = times(s->product, numel_of(sizes, ndim));
    if (s->ndim < 0)
        return;
    for (int32_t i = 1; i <= ndim; i++) {
        int64_t *have = &s->shape[FG_TENSOR_MAX_DIM - i], size = sizes[ndim - i];
        if (i > s->ndim)
            *have = 1;
        if (*have == 1)
            *have = size;
        else if (size != 1 && size != *have) {
            s->ndim = -1;
            return;
        }
    }
    if (ndim > s->ndim)
        s->ndim = ndim;
}

static void survey_add(survey *s, PyObject *object, int depth)
{
    if (array_is(object)) {
        PyArrayObject *a = (PyArrayObject *)object;
        if (array_is_thin(object))
            s->n_thin++;
        else if (PyArray_NDIM(a) > 1 && !PyArray_IS_C_CONTIGUOUS(a))
            s->n_unordered++;
        survey_shape(s, (const int64_t *)PyArray_DIMS(a), PyArray_NDIM(a));
    } else if (PyLong_CheckExact(object)) {
        int overflow;
        int64_t value = PyLong_AsLongLongAndOverflow(object, &overflow);
        if (value > 1) {
            s->product = times(s->product, value);
            s->largest_int = value > s->largest_int ? value : s->largest_int;
        }
    } else if (depth < 3 && (PyTuple_CheckExact(object) || PyList_CheckExact(object))) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); i++)
            survey_add(s, PySequence_Fast_GET_ITEM(object, i), depth + 1);
    } else {
        fg_tensor_meta meta;
        if (fg_torch_type_is_family(Py_TYPE(object)) && fg_standin_torch_read(object, &meta)) {
            survey_shape(s, meta.sizes, meta.ndim);
            s->n_grad_leaf += fg_standin_torch_is_grad_leaf(object, &meta);
        }
    }
}

/* 1: the call is small enough and says what the real one would. */
static int survey_allows(const survey *s, PyObject *callable, PyObject *name)
{
    if (s->n_thin && s->n_unordered)
        return 0;
    if (name_grows(callable, name))
        return s->product <= MAX_RESULT;
    if (s->n_tensors > 0 && s->ndim >= 0)
        return numel_of(s->shape + FG_TENSOR_MAX_DIM - s->ndim, s->ndim) <= MAX_RESULT;
    return s->product <= MAX_RESULT || s->n_tensors > 0;
}

/* Does the result, or what it is a view of, go back to zero strides of ours? */
static int result_is_thin_view(PyObject *result, int depth)
{
    if (array_is(result)) {
        PyArrayObject *a = (PyArrayObject *)result;
        if (PyArray_SIZE(a) <= 1 && PyArray_NDIM(a) == 0)
            return 0;
        if (PyArray_SIZE(a) > 1)
            for (int i = 0; i < PyArray_NDIM(a); i++)
                if (PyArray_DIM(a, i) > 1 && PyArray_STRIDE(a, i) == 0)
                    return 1;
        for (int hops = 0; hops < 8 && PyArray_BASE(a) != NULL && array_is(PyArray_BASE(a)); hops++) {
            a = (PyArrayObject *)PyArray_BASE(a);
            if (array_is_thin((PyObject *)a))
                return 1;
        }
        return 0;
    }
    if (depth < 2 && (PyTuple_Check(result) || PyList_Check(result)))
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); i++)
            if (result_is_thin_view(PySequence_Fast_GET_ITEM(result, i), depth + 1))
                return 1;
    return 0;
}

/* ---- the calls ---- */

enum how { HOW_CALL, HOW_METHOD, HOW_ATTR };

static fg_status run(enum how how, int is_random, PyObject *what, PyObject *const *args, size_t nargs, PyObject *kwnames, PyObject **out,
                     int *unsupported)
{
    survey s = {0};
    fg_quiet quiet;
    PyObject *result = NULL;
    size_t total = nargs + (kwnames != NULL ? (size_t)PyTuple_GET_SIZE(kwnames) : 0);
    *out = NULL;
    *unsupported = 1;
    s.product = 1;
    for (size_t i = 0; i < total; i++)
        survey_add(&s, args[i], 0);
    if (!survey_allows(&s, how == HOW_CALL ? what : NULL, how == HOW_CALL ? NULL : what))
        return FG_OK;
    fg_status st = fg_quiet_begin(&quiet);
    if (st != FG_OK)
        return st;
    fg_fakes fakes;
    int with_fakes = 0;
    st = fg_fakes_begin(&fakes, args, total, is_random);
    if (st == FG_OK) {
        with_fakes = fakes.mode != NULL;
        switch (how) {
        case HOW_CALL: result = PyObject_Vectorcall(what, args, nargs, kwnames); break;
        case HOW_METHOD: result = PyObject_VectorcallMethod(what, args, nargs, kwnames); break;
        case HOW_ATTR: result = PyObject_GetAttr(args[0], what); break;
        }
        fg_fakes_end(&fakes);
    }
    fg_quiet_end(&quiet); /* keeps the exception of the call */
    if (result == NULL) {
        if (!PyErr_Occurred())
            return st != FG_OK ? st : FG_ERR_BUG;
        /* Out of memory says something about stand-ins, not about the call. Fakes refuse in words of their own. An in-place change of a leaf that requires grad is refused by torch,
         * and whether the real tensor is a leaf is not recorded. */
        if (PyErr_ExceptionMatches(PyExc_MemoryError) || s.n_grad_leaf > 0 || with_fakes) {
            PyErr_Clear();
            return FG_OK;
        }
        *unsupported = 0;
        return FG_ERR_PYTHON;
    }
    if (s.n_thin && result_is_thin_view(result, 0)) {
        Py_DECREF(result);
        return FG_OK;
    }
    *out = result;
    *unsupported = 0;
    return FG_OK;
}

fg_status fg_standin_call(PyObject *callable, PyObject *const *args, size_t nargs, PyObject *kwnames, PyObject **out, int *unsupported)
{
    return run(HOW_CALL, 0, callable, args, nargs, kwnames, out, unsupported);
}

fg_status fg_standin_method(PyObject *name, PyObject *const *args, size_t nargs, PyObject *kwnames, PyObject **out, int *unsupported)
{
    return run(HOW_METHOD, 0, name, args, nargs, kwnames, out, unsupported);
}

fg_status fg_standin_random(PyObject *callable, PyObject *name, PyObject *const *args, size_t nargs, PyObject *kwnames, PyObject **out,
                            int *unsupported)
{
    return run(callable != NULL ? HOW_CALL : HOW_METHOD, 1, callable != NULL ? callable : name, args, nargs, kwnames, out, unsupported);
}

fg_status fg_standin_attr(PyObject *object, PyObject *name, PyObject **out, int *unsupported)
{
    return run(HOW_ATTR, 0, name, &object, 1, NULL, out, unsupported);
}

int fg_standin_read(PyObject *object, fg_tensor_meta *meta)
{
    if (array_is(object))
        return fg_numpy_adaptor->record(fg_numpy_adaptor, object, meta, NULL) && !array_is_thin(object);
    return fg_torch_type_is_family(Py_TYPE(object)) && fg_standin_torch_read(object, meta);
}
