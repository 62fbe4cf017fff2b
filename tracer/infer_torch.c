#include "tracer/infer_torch.h"
#include "guards/adaptor_torch.h"

#define MAX_REAL 4096 /* elements of the memory behind a real stand-in */

static PyObject *fake_mode, *fake_type, *fake_log;

/* torch._subclasses.fake_tensor, imported by us only when a fake is needed; torch itself is already there. */
static int fakes_ready(void)
{
    if (fake_mode != NULL)
        return 1;
    PyObject *module = PyImport_ImportModule("torch._subclasses.fake_tensor");
    PyObject *maker = module != NULL ? PyObject_GetAttrString(module, "FakeTensorMode") : NULL;
    PyObject *type = maker != NULL ? PyObject_GetAttrString(module, "FakeTensor") : NULL;
    /* Small stand-ins are real: the mode must take them beside its own. */
    PyObject *args = PyTuple_New(0), *kwargs = Py_BuildValue("{sO}", "allow_non_fake_inputs", Py_True);
    PyObject *mode = type != NULL && args != NULL && kwargs != NULL ? PyObject_Call(maker, args, kwargs) : NULL;
    PyObject *log = mode != NULL ? PyObject_GetAttrString(module, "log") : NULL; /* its logger */
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    Py_XDECREF(module);
    Py_XDECREF(maker);
    if (log == NULL) {
        Py_XDECREF(type);
        Py_XDECREF(mode);
        return 0;
    }
    fake_type = type;
    fake_log = log;
    fake_mode = mode;
    return 1;
}

static int is_fake(PyObject *object)
{
    return fake_type != NULL && (PyObject *)Py_TYPE(object) == fake_type;
}

static PyObject *words_tuple(const int64_t *words, int32_t n)
{
    PyObject *tuple = PyTuple_New(n);
    for (int32_t i = 0; tuple != NULL && i < n; i++) {
        PyObject *item = PyLong_FromLongLong(words[i]);
        if (item == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

static int enter(PyObject *context)
{
    PyObject *r = context != NULL ? PyObject_CallMethod(context, "__enter__", NULL) : NULL;
    Py_XDECREF(r);
    return r != NULL;
}

/* Keeps a pending exception. */
static void leave(PyObject *context)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *r = PyObject_CallMethod(context, "__exit__", "OOO", Py_None, Py_None, Py_None);
    if (r == NULL)
        PyErr_WriteUnraisable(context);
    Py_XDECREF(r);
    PyErr_Restore(type, value, trace);
}

/* Replace a tensor by the result of a method of it; NULL with an exception. */
static PyObject *then(PyObject *tensor, const char *method, PyObject *argument)
{
    PyObject *next = NULL;
    if (tensor != NULL)
        next = argument != NULL ? PyObject_CallMethod(tensor, method, "O", argument) : PyObject_CallMethod(tensor, method, NULL);
    Py_XDECREF(tensor);
    return next;
}

/* torch.empty_strided of the metadata on its device, filled with ones, with conj, neg and grad as recorded. */
static PyObject *tensor_make(const fg_tensor_meta *meta, int fill)
{
    PyObject *sizes = words_tuple(meta->sizes, meta->ndim), *strides = words_tuple(meta->strides, meta->ndim), *device = NULL;
    PyObject *factory = PyObject_GetAttrString(fg_torch_py.torch, "empty_strided"), *kwargs = NULL, *args = NULL, *tensor = NULL;
    PyObject *name = meta->device_type >= 0 && meta->device_type < FG_TORCH_N_DEVICES ? fg_torch_py.device_names[meta->device_type] : NULL;
    PyObject *dtype = meta->dtype >= 0 && meta->dtype < FG_TORCH_N_DTYPES ? fg_torch_py.dtypes[meta->dtype] : NULL;
    PyObject *one = PyLong_FromLong(1);
    uint64_t conj = fg_torch_key_bits("Conjugate"), neg = fg_torch_key_bits("Negative");
    if (name == NULL || dtype == NULL) {
        PyErr_SetString(PyExc_ValueError, "no stand-in for this device or dtype");
        goto done;
    }
    device = meta->device_index > 0 ? PyUnicode_FromFormat("%U:%d", name, meta->device_index) : Py_NewRef(name);
    if (sizes == NULL || strides == NULL || factory == NULL || device == NULL || one == NULL ||
        (kwargs = Py_BuildValue("{sOsO}", "dtype", dtype, "device", device)) == NULL || (args = PyTuple_Pack(2, sizes, strides)) == NULL)
        goto done;
    tensor = PyObject_Call(factory, args, kwargs);
    if (fill)
        tensor = then(tensor, "fill_", one);
    if (meta->keys & conj)
        tensor = then(tensor, "conj", NULL);
    if (meta->keys & neg)
        tensor = then(tensor, "_neg_view", NULL);
    if (meta->type == fg_torch_py.parameter && tensor != NULL)
        Py_SETREF(tensor,
                  PyObject_CallFunctionObjArgs((PyObject *)fg_torch_py.parameter, tensor, meta->requires_grad ? Py_True : Py_False, NULL));
    else if (meta->requires_grad)
        tensor = then(tensor, "requires_grad_", NULL);
done:
    Py_XDECREF(sizes);
    Py_XDECREF(strides);
    Py_XDECREF(factory);
    Py_XDECREF(device);
    Py_XDECREF(kwargs);
    Py_XDECREF(args);
    Py_XDECREF(one);
    return tensor;
}

fg_status fg_standin_torch(const fg_tensor_meta *meta, PyObject **out)
{
    uint64_t no_grad_key = fg_torch_key_bits("ADInplaceOrView");
    int64_t reach = 1;
    int overlap = 0;
    for (int32_t i = 0; i < meta->ndim; i++) {
        int64_t step;
        if (meta->sizes[i] == 0) {
            reach = 0;
            break;
        }
        overlap |= meta->strides[i] == 0 && meta->sizes[i] > 1;
        if (__builtin_mul_overflow(meta->sizes[i] - 1, meta->strides[i], &step) || __builtin_add_overflow(reach, step, &reach) ||
            reach < 0) {
            reach = INT64_MAX;
            break;
        }
    }
    int real = meta->device_type == 14 || (meta->device_type == 0 && reach <= MAX_REAL);
    int inference = !(meta->keys & no_grad_key), ok = 1;
    PyObject *context = NULL, *tensor = NULL;
    if (!real) {
        if (inference || !fakes_ready()) {
            PyErr_Clear();
            return FG_ERR_UNSUPPORTED;
        }
        context = Py_NewRef(fake_mode);
        ok = enter(context);
    } else {
        /* An ordinary tensor must not become an inference tensor because the caller is in inference mode, nor the other way round. */
        context = PyObject_CallMethod(fg_torch_py.c, "_InferenceMode", "O", inference ? Py_True : Py_False);
        ok = enter(context);
    }
    if (ok) {
        tensor = tensor_make(meta, real && meta->device_type != 14 && !overlap);
        leave(context);
    }
    Py_XDECREF(context);
    fg_tensor_meta made;
    if (tensor != NULL && real) {
        const char *why = NULL;
        const fg_tensor_adaptor *adaptor = fg_torch_adaptor_now();
        if (adaptor == NULL || adaptor->read(adaptor, tensor, &made, &why) != 1 || !fg_tensor_meta_same(&made, meta))
            Py_CLEAR(tensor);
    }
    if (tensor == NULL) {
        PyErr_Clear();
        return FG_ERR_UNSUPPORTED;
    }
    *out = tensor;
    return FG_OK;
}

int fg_standin_torch_read(PyObject *object, fg_tensor_meta *meta)
{
    const char *why = NULL;
    const fg_tensor_adaptor *adaptor = fg_tensor_adaptor_find(Py_TYPE(object));
    if (adaptor != NULL && fg_torch_adaptor_is(adaptor))
        return adaptor->record(adaptor, object, meta, &why);
    if (!is_fake(object))
        return 0;
    /* A fake carries the keys of what it stands for, and Python keys besides. */
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    int ok = fg_torch_fake_read(object, meta);
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
    return ok;
}

int fg_standin_torch_is_grad_leaf(PyObject *object, const fg_tensor_meta *meta)
{
    if (!meta->requires_grad || meta->type == fg_torch_py.parameter)
        return 0;
    PyObject *leaf = PyObject_GetAttrString(object, "is_leaf");
    int is = leaf == Py_True;
    Py_XDECREF(leaf);
    PyErr_Clear();
    return is;
}

int fg_torch_has_saved_hooks(void)
{
    static PyObject *top;
    if (top == NULL) {
        PyObject *loaded = PySys_GetObject("modules"), *torch = loaded != NULL ? PyDict_GetItemString(loaded, "torch") : NULL;
        PyObject *c = torch != NULL ? PyObject_GetAttrString(torch, "_C") : NULL;
        PyObject *autograd = c != NULL ? PyObject_GetAttrString(c, "_autograd") : NULL;
        top = autograd != NULL ? PyObject_GetAttrString(autograd, "_top_saved_tensors_default_hooks") : NULL;
        Py_XDECREF(c);
        Py_XDECREF(autograd);
        if (top == NULL) { /* no torch yet, or one that does not tell */
            PyErr_Clear();
            return 0;
        }
    }
    PyObject *hooks = PyObject_CallOneArg(top, Py_False);
    int has = hooks == NULL ? -1 : hooks != Py_None;
    Py_XDECREF(hooks);
    return has;
}

static int any_fake(PyObject *object, int depth)
{
    if (is_fake(object))
        return 1;
    if (depth < 3 && (PyTuple_CheckExact(object) || PyList_CheckExact(object)))
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); i++)
            if (any_fake(PySequence_Fast_GET_ITEM(object, i), depth + 1))
                return 1;
    return 0;
}

/* What has no kernel for fakes is called on real memory otherwise. */
static int allow_real_calls(int allow)
{
    return PyObject_SetAttrString(fake_mode, "allow_fallback_kernels", allow ? Py_True : Py_False);
}

fg_status fg_fakes_begin(fg_fakes *fakes, PyObject *const *args, size_t n, int is_random)
{
    int needed = is_random;
    *fakes = (fg_fakes){0};
    for (size_t i = 0; fake_type != NULL && i < n && !needed; i++)
        needed = any_fake(args[i], 0);
    if (!needed)
        return FG_OK;
    if (!fakes_ready())
        return FG_ERR_PYTHON;
    fakes->log_was = PyObject_GetAttrString(fake_log, "disabled");
    if (fakes->log_was == NULL || PyObject_SetAttrString(fake_log, "disabled", Py_True) < 0)
        goto fail;
    fakes->is_random = is_random;
    if ((is_random && allow_real_calls(0) < 0) || !enter(fake_mode))
        goto fail;
    fakes->mode = Py_NewRef(fake_mode);
    return FG_OK;
fail:
    fg_fakes_end(fakes);
    return FG_ERR_PYTHON;
}

void fg_fakes_end(fg_fakes *fakes)
{
    if (fakes->mode != NULL)
        leave(fakes->mode);
    if (fakes->log_was != NULL) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        if ((fakes->is_random && allow_real_calls(1) < 0) || PyObject_SetAttrString(fake_log, "disabled", fakes->log_was) < 0)
            PyErr_Clear();
        PyErr_Restore(type, value, trace);
    }
    Py_CLEAR(fakes->mode);
    Py_CLEAR(fakes->log_was);
}
