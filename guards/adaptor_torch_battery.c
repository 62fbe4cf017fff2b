#include "guards/adaptor_torch.h"
#include "runtime/base/alloc.h"
#include <stdlib.h>

typedef struct sample_row {
    const char *sizes, *dtype, *chain;
    int accepted;
} sample_row;

static const sample_row rows[] = {
#define FG_SAMPLE(SIZES, DTYPE, CHAIN, ACCEPTED) {SIZES, #DTYPE, CHAIN, ACCEPTED},
#include "guards/adaptor_torch_battery.def"
#undef FG_SAMPLE
};
#define N_ROWS (sizeof rows / sizeof rows[0])
/* Fewer than this of the accepted kinds would not pin every field down. */
#define MIN_ACCEPTED 40

PyObject *fg_torch_ints(const char *text)
{
    Py_ssize_t n = 0;
    long values[16];
    while (*text >= '0' && *text <= '9' && n < 16) {
        char *end;
        values[n++] = strtol(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
    PyObject *tuple = PyTuple_New(n);
    for (Py_ssize_t i = 0; tuple != NULL && i < n; i++) {
        PyObject *item = PyLong_FromLong(values[i]);
        if (item == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

static int token_is(const char *token, const char *word)
{
    size_t n = strlen(word);
    return strncmp(token, word, n) == 0 && (token[n] == 0 || token[n] == ' ');
}

/* A tensor seen from inside one vmap level; it keeps its kind after the level ends, and nothing but its keys is read. */
static PyObject *wrap_vmap(PyObject *tensor)
{
    PyObject *functorch = PyObject_GetAttrString(fg_torch_py.c, "_functorch"), *level = NULL, *wrapped = NULL, *done = NULL;
    if (functorch == NULL)
        return NULL;
    level = PyObject_CallMethod(functorch, "_vmap_increment_nesting", "is", 4, "error");
    if (level != NULL) {
        wrapped = PyObject_CallMethod(functorch, "_add_batch_dim", "OiO", tensor, 0, level);
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        done = PyObject_CallMethod(functorch, "_vmap_decrement_nesting", NULL);
        if (done == NULL)
            PyErr_Clear();
        PyErr_Restore(type, value, trace);
    }
    Py_XDECREF(done);
    Py_XDECREF(level);
    Py_DECREF(functorch);
    return wrapped;
}

static PyObject *wrap_subclass(PyObject *tensor)
{
    PyObject *type = PyObject_CallFunction((PyObject *)&PyType_Type, "s(O){}", "fg_sample", (PyObject *)fg_torch_py.tensor);
    PyObject *wrapped = type != NULL ? PyObject_CallMethod(tensor, "as_subclass", "O", type) : NULL;
    Py_XDECREF(type);
    return wrapped;
}

static PyObject *apply_step(PyObject *tensor, const char *token)
{
    if (token_is(token, "Parameter"))
        return PyObject_CallFunctionObjArgs((PyObject *)fg_torch_py.parameter, tensor,
                                            PyObject_HasAttrString(tensor, "is_floating_point") ? Py_True : Py_False, NULL);
    if (token_is(token, "vmap"))
        return wrap_vmap(tensor);
    if (token_is(token, "subclass"))
        return wrap_subclass(tensor);
    char name[32];
    size_t n = strcspn(token, ": ");
    if (n >= sizeof name)
        return NULL;
    memcpy(name, token, n);
    name[n] = 0;
    PyObject *method = PyObject_GetAttrString(tensor, name), *args = NULL, *result = NULL;
    if (method == NULL)
        return NULL;
    if (token_is(token, "requires_grad_:0"))
        args = PyTuple_Pack(1, Py_False);
    else
        args = fg_torch_ints(token[n] == ':' ? token + n + 1 : "");
    if (args != NULL)
        result = PyObject_Call(method, args, NULL);
    Py_XDECREF(args);
    Py_DECREF(method);
    return result;
}

/* NULL with an exception: this torch cannot make it. */
static PyObject *sample_make(const sample_row *row, int *fresh)
{
    PyObject *tensor = NULL, *inference = NULL, *entered = NULL, *sizes = fg_torch_ints(row->sizes), *args = NULL, *kwargs = PyDict_New();
    PyObject *factory = PyObject_GetAttrString(fg_torch_py.torch, "empty");
    PyObject *dtype = PyObject_GetAttrString(fg_torch_py.torch, row->dtype);
    const char *chain = row->chain;
    *fresh = 1;
    if (sizes == NULL || kwargs == NULL || factory == NULL || dtype == NULL || (args = PyTuple_Pack(1, sizes)) == NULL ||
        PyDict_SetItemString(kwargs, "dtype", dtype) < 0)
        goto done;
    PyObject *device = PyUnicode_FromString(token_is(chain, "meta") ? "meta" : "cpu");
    int r = device != NULL ? PyDict_SetItemString(kwargs, "device", device) : -1;
    Py_XDECREF(device);
    if (r < 0)
        goto done;
    if (token_is(chain, "inference")) {
        inference = PyObject_CallMethod(fg_torch_py.c, "_InferenceMode", "O", Py_True);
        if (inference == NULL || (entered = PyObject_CallMethod(inference, "__enter__", NULL)) == NULL)
            goto done;
    }
    tensor = PyObject_Call(factory, args, kwargs);
    if (token_is(chain, "meta") || token_is(chain, "inference")) {
        chain = strchr(chain, ' ') != NULL ? strchr(chain, ' ') + 1 : "";
    }
    while (tensor != NULL && *chain != 0) {
        PyObject *next = apply_step(tensor, chain);
        *fresh = 0;
        Py_SETREF(tensor, next);
        chain = strchr(chain, ' ') != NULL ? strchr(chain, ' ') + 1 : "";
    }
done:
    if (entered != NULL) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        PyObject *left = PyObject_CallMethod(inference, "__exit__", "OOO", Py_None, Py_None, Py_None);
        if (left == NULL)
            PyErr_Clear();
        Py_XDECREF(left);
        PyErr_Restore(type, value, trace);
    }
    Py_XDECREF(entered);
    Py_XDECREF(inference);
    Py_XDECREF(sizes);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    Py_XDECREF(factory);
    Py_XDECREF(dtype);
    return tensor;
}

static uint64_t address_attr(PyObject *object, const char *name)
{
    PyObject *number = object != NULL ? PyObject_GetAttrString(object, name) : NULL;
    uint64_t word = number != NULL ? PyLong_AsUnsignedLongLong(number) : 0;
    Py_XDECREF(number);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return word;
}

fg_status fg_torch_battery_new(fg_torch_sample **out, size_t *n_out)
{
    fg_torch_sample *samples = fg_calloc(N_ROWS, sizeof *samples);
    size_t n = 0, n_accepted = 0;
    if (samples == NULL)
        return FG_ERR_NOMEM;
    for (size_t i = 0; i < N_ROWS; i++) {
        fg_torch_sample *s = &samples[n];
        s->object = sample_make(&rows[i], &s->fresh);
        if (s->object == NULL) {
            PyErr_Clear();
            continue;
        }
        const char *why = NULL;
        s->accepted = rows[i].accepted;
        n++;
        if ((s->cdata = address_attr(s->object, "_cdata")) == 0 || fg_torch_python_read(s->object, &s->truth, &why) != s->accepted) {
            /* Python's own answer contradicts the table: this torch is not one we understand. */
            fg_torch_battery_free(samples, n);
            return FG_ERR_UNSUPPORTED;
        }
        if (s->accepted && s->truth.device_type == 0 && n_accepted % 4 == 0) {
            PyObject *storage = PyObject_CallMethod(s->object, "untyped_storage", NULL);
            if (storage == NULL)
                PyErr_Clear();
            s->storage = address_attr(storage, "_cdata");
            Py_XDECREF(storage);
        }
        n_accepted += (size_t)s->accepted;
    }
    if (n_accepted < MIN_ACCEPTED) {
        fg_torch_battery_free(samples, n);
        return FG_ERR_UNSUPPORTED;
    }
    *out = samples;
    *n_out = n;
    return FG_OK;
}

void fg_torch_battery_free(fg_torch_sample *samples, size_t n)
{
    for (size_t i = 0; i < n; i++)
        Py_XDECREF(samples[i].object);
    fg_free(samples);
}

int fg_torch_battery_agrees(const fg_torch_sample *samples, size_t n, fg_torch_read read)
{
    fg_tensor_meta meta;
    for (size_t i = 0; i < n; i++) {
        const char *why = NULL;
        int r = read(samples[i].object, &meta, &why);
        if (r != samples[i].accepted || (r == 1 && !fg_tensor_meta_same(&meta, &samples[i].truth)))
            return 0;
    }
    return 1;
}
