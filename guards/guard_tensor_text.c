/* Tensor metadata and torch's state in words, for explanations and printed trees. The exact text form (guard_text.c) has the numbers. */
#include "guards/adaptor_torch_raw.h"
#include "guards/guard_private.h"
#include <stdio.h>
#include <string.h>

static PyObject *dtype_text(const fg_tensor_adaptor *adaptor, int32_t number)
{
    fg_tensor_meta meta = {.adaptor = adaptor, .dtype = number};
    PyObject *dtype = adaptor != NULL && adaptor->dtype_object != NULL ? adaptor->dtype_object(&meta) : NULL;
    PyObject *text = dtype != NULL ? PyObject_Str(dtype) : NULL;
    Py_XDECREF(dtype);
    if (text != NULL)
        return text;
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_MemoryError))
        return NULL;
    PyErr_Clear();
    return PyUnicode_FromFormat("number %d", (int)number);
}

static PyObject *device_text(int64_t type, int64_t index)
{
    const char *name = NULL;
    switch (type) {
#define FG_TORCH_DEVICE(NUMBER, NAME) \
    case NUMBER:                      \
        name = #NAME;                 \
        break;
#include "guards/adaptor_torch_devices.def"
#undef FG_TORCH_DEVICE
    }
    if (name == NULL)
        return PyUnicode_FromFormat("device type %lld", (long long)type);
    return index >= 0 ? PyUnicode_FromFormat("%s:%lld", name, (long long)index) : PyUnicode_FromString(name);
}

static const char *flag(int64_t value)
{
    return value ? "True" : "False";
}

static int add_numbers(PyObject *list, const char *before, const int64_t *numbers, int32_t n)
{
    if (fg_text_add(list, "%s(", before) < 0)
        return -1;
    for (int32_t i = 0; i < n; i++) {
        if (fg_text_add(list, i > 0 ? ", %lld" : "%lld", (long long)numbers[i]) < 0)
            return -1;
    }
    return fg_text_add(list, n == 1 ? ",)" : ")");
}

PyObject *fg_meta_sentence(const fg_meta_record *meta, PyObject *source, PyObject *type)
{
    PyObject *list = PyList_New(0), *dtype = dtype_text(meta->adaptor, meta->dtype), *device = NULL;
    int numpy = meta->adaptor != NULL && strcmp(meta->adaptor->name, "numpy") == 0;
    int torch = meta->adaptor != NULL && strcmp(meta->adaptor->name, "torch") == 0;

    if (list == NULL || dtype == NULL || fg_text_add(list, "%U is a %U of %U, shape ", source, type, dtype) < 0 ||
        add_numbers(list, "", meta->dims, meta->ndim) < 0 || add_numbers(list, ", strides ", meta->dims + meta->ndim, meta->ndim) < 0)
        goto fail;
    if (torch && ((device = device_text(meta->device_type, meta->device_index)) == NULL ||
                  fg_text_add(list, ", on %U, requires_grad %s", device, flag(meta->requires_grad)) < 0))
        goto fail;
    if (!torch && !numpy && fg_text_add(list, ", on device %d:%d", (int)meta->device_type, (int)meta->device_index) < 0)
        goto fail;
    Py_DECREF(dtype);
    Py_XDECREF(device);
    return fg_text_join(list, "");
fail:
    Py_XDECREF(list);
    Py_XDECREF(dtype);
    Py_XDECREF(device);
    return NULL;
}

static PyObject *two(const char *what, PyObject *seen, PyObject *want)
{
    PyObject *text = seen != NULL && want != NULL ? PyUnicode_FromFormat("%s %U instead of %U", what, seen, want) : NULL;
    Py_XDECREF(seen);
    Py_XDECREF(want);
    return text;
}

static PyObject *hex_text(uint64_t word)
{
    char text[24];
    snprintf(text, sizeof text, "0x%llx", (unsigned long long)word);
    return PyUnicode_FromString(text);
}

PyObject *fg_meta_difference(const char *field, const fg_tensor_adaptor *adaptor, int64_t seen, int64_t want)
{
    if (strcmp(field, "dtype") == 0)
        return two(field, dtype_text(adaptor, (int32_t)seen), dtype_text(adaptor, (int32_t)want));
    if (strcmp(field, "device type") == 0 && strcmp(adaptor->name, "torch") == 0)
        return two("device", device_text(seen, -1), device_text(want, -1));
    if (strcmp(field, "requires_grad") == 0)
        return PyUnicode_FromFormat("requires_grad %s instead of %s", flag(seen), flag(want));
    if (strcmp(field, "key set") == 0)
        return two("another kind of tensor (inference mode, conjugated or negated view, byte order, device or layout): key set",
                   hex_text((uint64_t)seen), hex_text((uint64_t)want));
    return PyUnicode_FromFormat("%s %lld instead of %lld", field, (long long)seen, (long long)want);
}

static const char *const autograd_bits[] = {"grad mode", "inference mode", "forward differentiation", "multithreaded backward",
                                            "replay of views"};
enum { N_AUTOGRAD = sizeof autograd_bits / sizeof *autograd_bits };

static const char *on_off(int64_t value)
{
    return value ? "on" : "off";
}

static PyObject *autocast_text(int64_t dtype)
{
    return dtype < 0 ? PyUnicode_FromString("off") : dtype_text(&fg_torch_adaptors[0], (int32_t)dtype); /* any layer names them */
}

/* As torch hashes a device. */
static PyObject *default_device_text(int64_t device)
{
    return device < 0 ? PyUnicode_FromString("none") : device_text(device >> 16 & 0xff, (int8_t)(device & 0xff));
}

static const char *switch_text(int64_t disabled)
{
    return disabled == 0 ? "on" : disabled == 1 ? "off for subclasses" : "off";
}

PyObject *fg_state_difference(const char *field, int64_t seen, int64_t want)
{
    if (strcmp(field, "autograd state") == 0) {
        for (int i = 0; i < N_AUTOGRAD; i++)
            if ((seen ^ want) >> i & 1)
                return PyUnicode_FromFormat("%s %s instead of %s", autograd_bits[i], on_off(seen >> i & 1), on_off(want >> i & 1));
    }
    if (strcmp(field, "default dtype") == 0)
        return two(field, autocast_text(seen), autocast_text(want));
    if (strncmp(field, "autocast", 8) == 0)
        return two(field, autocast_text(seen), autocast_text(want));
    if (strcmp(field, "default device") == 0)
        return two(field, default_device_text(seen), default_device_text(want));
    if (strcmp(field, "__torch_function__ switch") == 0)
        return PyUnicode_FromFormat("__torch_function__ %s instead of %s", switch_text(seen), switch_text(want));
    if (strstr(field, "dispatch keys") != NULL)
        return two(field, hex_text((uint64_t)seen), hex_text((uint64_t)want));
    return PyUnicode_FromFormat("%s %lld instead of %lld", field, (long long)seen, (long long)want);
}

static int add_word(PyObject *list, const char *what, FG_STEALS PyObject *text)
{
    int bad = text == NULL || fg_text_add(list, ", %s %U", what, text) < 0;
    Py_XDECREF(text);
    return bad ? -1 : 0;
}

/* What is usual is not said, but for the grad mode and the dtype. */
PyObject *fg_state_sentence(const fg_torch_state *state)
{
    PyObject *list = state->present ? PyList_New(0) : NULL;
    if (!state->present)
        return PyUnicode_FromString("torch is not loaded");
    if (list == NULL ||
        fg_text_add(list, "torch state: grad mode %s, inference mode %s", on_off(state->autograd & 1), on_off(state->autograd & 2)) < 0 ||
        add_word(list, "default dtype", autocast_text(state->default_dtype)) < 0)
        goto fail;
    if ((state->autocast_dtype[0] >= 0 && add_word(list, "autocast on CPU", autocast_text(state->autocast_dtype[0])) < 0) ||
        (state->autocast_dtype[1] >= 0 && add_word(list, "autocast on CUDA", autocast_text(state->autocast_dtype[1])) < 0) ||
        (state->default_device >= 0 && add_word(list, "default device", default_device_text(state->default_device)) < 0) ||
        (state->function_disabled != 0 && fg_text_add(list, ", __torch_function__ %s", switch_text(state->function_disabled)) < 0) ||
        (state->function_mode_depth > 0 && fg_text_add(list, ", %d function modes", (int)state->function_mode_depth) < 0))
        goto fail;
    return fg_text_join(list, "");
fail:
    Py_XDECREF(list);
    return NULL;
}
