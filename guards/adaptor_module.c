#include "guards/adaptor_dlpack.h"
#include "guards/adaptor_numpy.h"
#include "guards/adaptor_torch.h"

/* What the adaptors show to Python: for `doctor`, for tests, for explanations. */

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

static PyObject *meta_dict(const fg_tensor_meta *meta)
{
    PyObject *dtype = meta->adaptor->dtype_object(meta), *sizes = words_tuple(meta->sizes, meta->ndim);
    PyObject *strides = words_tuple(meta->strides, meta->ndim), *dict = NULL;
    if (dtype != NULL && sizes != NULL && strides != NULL)
        dict = Py_BuildValue("{sssssOsKsOsisisisOsisisOsO}", "adaptor", meta->adaptor->name, "layer", meta->adaptor->layer, "type",
                             (PyObject *)meta->type, "keys", (unsigned long long)meta->keys, "dtype", dtype, "dtype_number",
                             (int)meta->dtype, "device_type", (int)meta->device_type, "device_index", (int)meta->device_index,
                             "requires_grad", meta->requires_grad ? Py_True : Py_False, "layout", (int)meta->layout, "ndim",
                             (int)meta->ndim, "sizes", sizes, "strides", strides);
    Py_XDECREF(dtype);
    Py_XDECREF(sizes);
    Py_XDECREF(strides);
    return dict;
}

/* read(obj, record=True) -> dict; ValueError with the reason where the tracer would break, TypeError for no tensor type. */
static PyObject *py_read(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"", "record", NULL};
    PyObject *object;
    int record = 1;
    const char *why = "no reason was given";
    fg_tensor_meta meta;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|p:read", names, &object, &record))
        return NULL;
    const fg_tensor_adaptor *a = fg_tensor_adaptor_find(Py_TYPE(object));
    if (a == NULL)
        return PyErr_Format(PyExc_TypeError, "%.200s is no tensor type that framegate knows", Py_TYPE(object)->tp_name);
    int read = (record ? a->record : a->read)(a, object, &meta, &why);
    if (read != 1) {
        if (read == 0)
            PyErr_SetString(PyExc_ValueError, why);
        return NULL;
    }
    PyObject *dict = meta_dict(&meta);
    PyObject *storage = dict != NULL ? PyLong_FromVoidPtr((void *)a->storage(object)) : NULL;
    if (storage == NULL || PyDict_SetItemString(dict, "storage", storage) < 0)
        Py_CLEAR(dict);
    Py_XDECREF(storage);
    return dict;
}

/* tensor_layers() -> dict: adaptor name to the way of reading in use, for torch also why faster ways are not in use. */
static PyObject *py_layers(PyObject *module, PyObject *unused)
{
    static const char *const layer_names[FG_TORCH_N_LAYERS] = {"raw", "cabi", "harvest", "python"};
    (void)module;
    (void)unused;
    int torch_ready = fg_torch_setup();
    PyObject *dict = PyDict_New(), *notes = PyDict_New(), *value = NULL;
    if (dict == NULL || notes == NULL)
        goto fail;
    for (int i = 0; i < FG_TORCH_N_LAYERS; i++) {
        if (*fg_torch_layer_note((fg_torch_layer)i) == 0)
            continue;
        value = PyUnicode_FromString(fg_torch_layer_note((fg_torch_layer)i));
        if (value == NULL || PyDict_SetItemString(notes, layer_names[i], value) < 0)
            goto fail;
        Py_CLEAR(value);
    }
    const struct {
        const char *key, *text;
    } rows[] = {{"numpy", fg_numpy_array_type != NULL ? fg_numpy_adaptor->layer : NULL},
                {"torch", !torch_ready                     ? NULL
                          : fg_torch_adaptor_now() != NULL ? fg_torch_adaptor_now()->layer
                                                           : "none"},
                {"torch_state", torch_ready ? fg_torch_state_layer() : NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        value = rows[i].text != NULL ? PyUnicode_FromString(rows[i].text) : Py_NewRef(Py_None);
        if (value == NULL || PyDict_SetItemString(dict, rows[i].key, value) < 0)
            goto fail;
        Py_CLEAR(value);
    }
    for (size_t i = 0; fg_dlpack_adaptor_at(i) != NULL; i++) {
        value = PyUnicode_FromString(fg_dlpack_adaptor_at(i)->layer);
        if (value == NULL || PyDict_SetItemString(dict, fg_dlpack_adaptor_at(i)->name, value) < 0)
            goto fail;
        Py_CLEAR(value);
    }
    if (PyDict_SetItemString(dict, "torch_notes", notes) < 0)
        goto fail;
    Py_DECREF(notes);
    return dict;
fail:
    Py_XDECREF(value);
    Py_XDECREF(dict);
    Py_XDECREF(notes);
    return NULL;
}

/* torch_state() -> dict, or None where it cannot be read. */
static PyObject *py_state(PyObject *module, PyObject *unused)
{
    fg_torch_state s;
    (void)module;
    (void)unused;
    if (!fg_torch_state_read(&s))
        Py_RETURN_NONE;
    return Py_BuildValue("{sKsKsLsisisisis(ii)sO}", "keys_included", (unsigned long long)s.keys_included, "keys_excluded",
                         (unsigned long long)s.keys_excluded, "default_device", (long long)s.default_device, "autograd", (int)s.autograd,
                         "function_mode_depth", (int)s.function_mode_depth, "function_disabled", (int)s.function_disabled, "default_dtype",
                         (int)s.default_dtype, "autocast_dtype", (int)s.autocast_dtype[0], (int)s.autocast_dtype[1], "present",
                         s.present ? Py_True : Py_False);
}

static PyMethodDef methods[] = {
    {"read", (PyCFunction)(void (*)(void))py_read, METH_VARARGS | METH_KEYWORDS,
     "read(obj, record=True) -> dict\n\nMetadata of a tensor as guards see it. ValueError: why it is not captured; TypeError: no tensor."},
    {"tensor_layers", py_layers, METH_NOARGS, "tensor_layers() -> dict\n\nWhich way of reading each tensor library is in use."},
    {"torch_state", py_state, METH_NOARGS,
     "torch_state() -> dict | None\n\nThis thread's torch state as guards see it; None: not readable here."},
    {NULL, NULL, 0, NULL}};

fg_status fg_tensor_module_init(PyObject *module)
{
    fg_status st = fg_tensor_init();
    if (st != FG_OK)
        return st;
    return PyModule_AddFunctions(module, methods) < 0 ? FG_ERR_PYTHON : FG_OK;
}
