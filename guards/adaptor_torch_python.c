#include "guards/adaptor_torch.h"

/* The two layers that ask Python objects: by attribute, which is the truth that all others are verified against, and by the C functions
 * behind those attributes (getset and method descriptors), which needs no name lookup.
 *
 * With a torch function mode on, both would enter the mode's Python code, so they refuse then. Errors are swallowed here: an attribute that
 * raises makes the tensor one that cannot be described; a pending exception of the caller is kept.
 */

static PyGetSetDef *getset_shape, *getset_dtype, *getset_device, *getset_requires_grad;
static PyMethodDef *method_stride;

int fg_torch_dtype_number(PyObject *dtype)
{
    for (int i = 0; i < FG_TORCH_N_DTYPES; i++)
        if (fg_torch_py.dtypes[i] == dtype && dtype != NULL)
            return i;
    return -1;
}

int fg_torch_keys_of(PyObject *object, uint64_t *keys)
{
    PyObject *set = PyObject_CallOneArg(fg_torch_py.dispatch_keys, object);
    PyObject *number = set != NULL ? PyObject_CallOneArg(fg_torch_py.raw_repr, set) : NULL;
    Py_XDECREF(set);
    if (number == NULL) {
        PyErr_Clear();
        return 0;
    }
    *keys = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    if (*keys == (uint64_t)-1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

static int modes_are_on(void)
{
    PyObject *count = PyObject_CallNoArgs(fg_torch_py.mode_count);
    long n = count != NULL ? PyLong_AsLong(count) : -1;
    Py_XDECREF(count);
    if (n == -1)
        PyErr_Clear();
    return n != 0;
}

static int read_words(PyObject *sequence, int64_t *out, int32_t *n)
{
    if (sequence == NULL || !PyTuple_Check(sequence) || PyTuple_GET_SIZE(sequence) > FG_TENSOR_MAX_DIM)
        return 0;
    *n = (int32_t)PyTuple_GET_SIZE(sequence);
    for (int32_t i = 0; i < *n; i++) {
        PyObject *item = PyTuple_GET_ITEM(sequence, i);
        if (!PyLong_CheckExact(item)) /* a symbolic size: asking for its number would specialise it */
            return 0;
        out[i] = PyLong_AsLongLong(item);
        if (out[i] == -1 && PyErr_Occurred())
            return 0;
    }
    return 1;
}

static int read_device(PyObject *device, fg_tensor_meta *meta)
{
    PyObject *type = device != NULL ? PyObject_GetAttrString(device, "type") : NULL;
    PyObject *index = type != NULL ? PyObject_GetAttrString(device, "index") : NULL;
    int found = 0;
    if (index != NULL && PyUnicode_Check(type)) {
        for (int i = 0; i < FG_TORCH_N_DEVICES && !found; i++)
            if (fg_torch_py.device_names[i] != NULL && PyUnicode_Compare(type, fg_torch_py.device_names[i]) == 0) {
                meta->device_type = (int16_t)i;
                found = 1;
            }
        long number = index == Py_None ? -1 : PyLong_AsLong(index);
        if (number == -1 && PyErr_Occurred())
            found = 0;
        meta->device_index = (int16_t)number;
    }
    Py_XDECREF(type);
    Py_XDECREF(index);
    return found;
}

/* What both layers do with the five objects they got; drops them. */
static int read_parts(PyObject *object, PyObject *shape, PyObject *stride, PyObject *dtype, PyObject *device, PyObject *grad,
                      fg_tensor_meta *meta)
{
    int32_t n_strides = 0;
    int ok = shape != NULL && stride != NULL && dtype != NULL && device != NULL && grad != NULL;
    meta->adaptor = fg_torch_adaptor_now();
    meta->type = Py_TYPE(object);
    meta->layout = 0;
    ok = ok && read_words(shape, meta->own, &meta->ndim) && read_words(stride, meta->own + FG_TENSOR_MAX_DIM, &n_strides) &&
         n_strides == meta->ndim;
    meta->sizes = meta->own;
    meta->strides = meta->own + FG_TENSOR_MAX_DIM;
    ok = ok && (meta->dtype = fg_torch_dtype_number(dtype)) >= 0 && read_device(device, meta) && PyBool_Check(grad);
    meta->requires_grad = grad == Py_True;
    Py_XDECREF(shape);
    Py_XDECREF(stride);
    Py_XDECREF(dtype);
    Py_XDECREF(device);
    Py_XDECREF(grad);
    return ok;
}

/* A fake tensor's metadata as that of the tensor it stands for: the keys that make it a fake, and Meta under them, are turned back. */
int fg_torch_fake_read(PyObject *object, fg_tensor_meta *meta)
{
    uint64_t keys;
    if (!fg_torch_keys_of(object, &keys))
        return 0;
    PyObject *shape = PyObject_GetAttrString(object, "shape");
    PyObject *stride = shape != NULL ? PyObject_CallMethod(object, "stride", NULL) : NULL;
    PyObject *dtype = stride != NULL ? PyObject_GetAttrString(object, "dtype") : NULL;
    PyObject *device = dtype != NULL ? PyObject_GetAttrString(object, "device") : NULL;
    PyObject *grad = device != NULL ? PyObject_GetAttrString(object, "requires_grad") : NULL;
    if (!read_parts(object, shape, stride, dtype, device, grad, meta))
        return 0;
    PyObject *layout = PyObject_GetAttrString(object, "layout");
    Py_XDECREF(layout);
    meta->type = fg_torch_py.tensor;
    meta->keys = keys & fg_torch_py.keys_allowed & ~fg_torch_py.keys_meta;
    return layout == fg_torch_py.strided;
}

/* Everything before the five parts: 1 go on. */
static int read_kind(PyObject *object, fg_tensor_meta *meta, const char **why)
{
    const char *reason = NULL;
    if (Py_TYPE(object) != fg_torch_py.tensor && Py_TYPE(object) != fg_torch_py.parameter)
        reason = "not an exact torch.Tensor or torch.nn.Parameter";
    else if (!fg_torch_keys_of(object, &meta->keys))
        reason = "torch does not tell the tensor's dispatch keys";
    else if ((reason = fg_torch_keys_refuse(meta->keys)) == NULL && modes_are_on())
        reason = "a torch function mode is on and only the slow ways of reading a tensor are available";
    if (reason != NULL && why != NULL)
        *why = reason;
    return reason == NULL;
}

static int read_end(int ok, const char **why, PyObject *type, PyObject *value, PyObject *trace)
{
    if (!ok && why != NULL && *why == NULL)
        *why = "torch does not answer for this tensor's metadata";
    if (PyErr_Occurred())
        PyErr_Clear();
    PyErr_Restore(type, value, trace);
    return ok;
}

int fg_torch_python_read(PyObject *object, fg_tensor_meta *meta, const char **why)
{
    PyObject *type, *value, *trace, *layout = NULL;
    const char *reason = NULL;
    PyErr_Fetch(&type, &value, &trace);
    int ok = read_kind(object, meta, &reason);
    if (ok) {
        PyObject *shape = PyObject_GetAttrString(object, "shape");
        PyObject *stride = shape != NULL ? PyObject_CallMethod(object, "stride", NULL) : NULL;
        PyObject *dtype = stride != NULL ? PyObject_GetAttrString(object, "dtype") : NULL;
        PyObject *device = dtype != NULL ? PyObject_GetAttrString(object, "device") : NULL;
        PyObject *grad = device != NULL ? PyObject_GetAttrString(object, "requires_grad") : NULL;
        ok = read_parts(object, shape, stride, dtype, device, grad, meta);
    }
    if (ok) {
        layout = PyObject_GetAttrString(object, "layout");
        ok = layout == fg_torch_py.strided;
        Py_XDECREF(layout);
    }
    ok = read_end(ok, &reason, type, value, trace);
    if (why != NULL && !ok)
        *why = reason;
    return ok;
}

static PyObject *method_call(PyMethodDef *method, PyObject *self)
{
    /* The table stores every calling convention under one pointer type; going through void (*)(void) is how C lets one cast it back. */
    void (*plain)(void) = (void (*)(void))method->ml_meth;
    int flags = method->ml_flags & (METH_VARARGS | METH_NOARGS | METH_KEYWORDS);
    if (flags == METH_NOARGS)
        return method->ml_meth(self, NULL);
    PyObject *empty = PyTuple_New(0), *result = NULL;
    if (empty == NULL)
        return NULL;
    if (flags == METH_VARARGS)
        result = method->ml_meth(self, empty);
    else
        result = ((PyCFunctionWithKeywords)plain)(self, empty, NULL);
    Py_DECREF(empty);
    return result;
}

int fg_torch_harvest_read(PyObject *object, fg_tensor_meta *meta, const char **why)
{
    PyObject *type, *value, *trace;
    const char *reason = NULL;
    PyErr_Fetch(&type, &value, &trace);
    int ok = read_kind(object, meta, &reason);
    if (ok) {
        PyObject *shape = getset_shape->get(object, getset_shape->closure);
        PyObject *stride = shape != NULL ? method_call(method_stride, object) : NULL;
        PyObject *dtype = stride != NULL ? getset_dtype->get(object, getset_dtype->closure) : NULL;
        PyObject *device = dtype != NULL ? getset_device->get(object, getset_device->closure) : NULL;
        PyObject *grad = device != NULL ? getset_requires_grad->get(object, getset_requires_grad->closure) : NULL;
        ok = read_parts(object, shape, stride, dtype, device, grad, meta);
    }
    ok = read_end(ok, &reason, type, value, trace);
    if (why != NULL && !ok)
        *why = reason;
    return ok;
}

/* The getset row behind a name of torch's tensor base, NULL if it is none. The type keeps the descriptor alive. */
static PyGetSetDef *getset_of(PyObject *base, const char *name)
{
    PyObject *descriptor = PyObject_GetAttrString(base, name);
    PyGetSetDef *row = NULL;
    if (descriptor != NULL && Py_TYPE(descriptor) == &PyGetSetDescr_Type)
        row = ((PyGetSetDescrObject *)descriptor)->d_getset;
    Py_XDECREF(descriptor);
    return row != NULL && row->get != NULL ? row : NULL;
}

fg_status fg_torch_harvest_find(void)
{
    PyObject *base = PyObject_GetAttrString(fg_torch_py.c, "TensorBase");
    PyObject *stride = base != NULL ? PyObject_GetAttrString(base, "stride") : NULL;
    if (stride != NULL && Py_TYPE(stride) == &PyMethodDescr_Type) {
        PyMethodDef *method = ((PyMethodDescrObject *)stride)->d_method;
        int flags = method->ml_flags & (METH_VARARGS | METH_NOARGS | METH_KEYWORDS | METH_O | METH_FASTCALL | METH_CLASS | METH_STATIC);
        if (flags == METH_NOARGS || flags == METH_VARARGS || flags == (METH_VARARGS | METH_KEYWORDS))
            method_stride = method;
    }
    if (base != NULL) {
        getset_shape = getset_of(base, "shape");
        getset_dtype = getset_of(base, "dtype");
        getset_device = getset_of(base, "device");
        getset_requires_grad = getset_of(base, "requires_grad");
    }
    Py_XDECREF(base);
    Py_XDECREF(stride);
    PyErr_Clear();
    if (method_stride == NULL || getset_shape == NULL || getset_dtype == NULL || getset_device == NULL || getset_requires_grad == NULL)
        return FG_ERR_UNSUPPORTED;
    return FG_OK;
}
