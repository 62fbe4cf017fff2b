/* Where the memory of a torch storage lies. Two storages may be of one memory: tensors made of one array (from_numpy, frombuffer, DLPack), or copies that are
 * made when they are written. So that they are told by what the impl says, not by which impl it is.
 *
 * The offsets are found as those of the raw layer are (adaptor_torch_raw.c): by the answers of Python for tensors that are made here. For memory of torch's own
 * the word after the address of the data is equal to it, so that one of the tensors is of a buffer of ours. The address is read and nothing is asked of torch,
 * which would make the copies.
 */
#include "guards/adaptor_torch.h"

#define WINDOW 96
enum { N_SAMPLES = 5 };

static uint16_t at_data, at_size; /* 0: not found */

typedef struct sample {
    FG_OWNED PyObject *tensor;
    uint64_t impl, data, size;
    char window[WINDOW];
    size_t length;
} sample;

static uint64_t number_of(PyObject *object, const char *name)
{
    PyObject *found = PyObject_GetAttrString(object, name);
    if (found != NULL && PyCallable_Check(found))
        Py_SETREF(found, PyObject_CallNoArgs(found));
    uint64_t number = found != NULL ? PyLong_AsUnsignedLongLong(found) : 0;
    Py_XDECREF(found);
    return number;
}

static int sample_make(sample *s, int i)
{
    static const int sizes[N_SAMPLES] = {7, 129, 1000, 33, 0};
    PyObject *buffer = NULL, *args = NULL, *kwargs = NULL, *make = NULL, *storage = NULL;
    PyObject *bytes = fg_torch_py.dtypes[0]; /* uint8 */
    int ok = 0;
    if (sizes[i] == 0) {
        buffer = PyByteArray_FromStringAndSize(NULL, 61);
        make = PyObject_GetAttrString(fg_torch_py.torch, "frombuffer");
        args = buffer != NULL ? PyTuple_Pack(1, buffer) : NULL;
    } else {
        make = PyObject_GetAttrString(fg_torch_py.torch, "empty");
        args = Py_BuildValue("(i)", sizes[i]);
    }
    kwargs = bytes != NULL ? Py_BuildValue("{sO}", "dtype", bytes) : NULL;
    if (make == NULL || args == NULL || kwargs == NULL)
        goto done;
    if (sizes[i] != 0 && PyDict_SetItemString(kwargs, "device", fg_torch_py.device_names[0]) < 0)
        goto done;
    if ((s->tensor = PyObject_Call(make, args, kwargs)) == NULL ||
        (storage = PyObject_CallMethod(s->tensor, "untyped_storage", NULL)) == NULL)
        goto done;
    s->impl = number_of(storage, "_cdata");
    s->data = number_of(storage, "data_ptr");
    s->size = number_of(storage, "nbytes");
    s->length = s->impl != 0 ? fg_torch_probe((const void *)(uintptr_t)s->impl, s->window, WINDOW) : 0;
    ok = !PyErr_Occurred() && s->data != 0 && s->size != 0 && s->length > 16;
done:
    Py_XDECREF(storage);
    Py_XDECREF(kwargs);
    Py_XDECREF(args);
    Py_XDECREF(make);
    Py_XDECREF(buffer);
    PyErr_Clear();
    return ok;
}

/* The one offset at which all samples have what is wanted of them; 0: none, or several. */
static uint16_t offset_of(const sample *samples, int wants_size)
{
    uint16_t found = 0;
    for (uint16_t at = 8; at + 8 <= WINDOW; at += 8) {
        int i = 0;
        while (i < N_SAMPLES && (size_t)at + 8 <= samples[i].length &&
               fg_torch_raw_word(samples[i].window + at) == (wants_size ? samples[i].size : samples[i].data))
            i++;
        if (i < N_SAMPLES)
            continue;
        if (found != 0)
            return 0;
        found = at;
    }
    return found;
}

void fg_torch_storage_find(void)
{
    sample samples[N_SAMPLES] = {{0}};
    int ok = 1;
    for (int i = 0; i < N_SAMPLES; i++)
        ok &= sample_make(&samples[i], i);
    uint16_t data = ok ? offset_of(samples, 0) : 0, size = ok ? offset_of(samples, 1) : 0;
    if (data != 0 && size != 0) {
        at_data = data;
        at_size = size;
    }
    for (int i = 0; i < N_SAMPLES; i++)
        Py_XDECREF(samples[i].tensor);
}

int fg_torch_storage_extent(const void *storage, int64_t *lo, int64_t *hi)
{
    if (at_data == 0)
        return -1;
    int64_t data = (int64_t)fg_torch_raw_word((const char *)storage + at_data),
            size = (int64_t)fg_torch_raw_word((const char *)storage + at_size);
    if (size < 0) /* symbolic */
        return -1;
    if (data == 0 || size == 0)
        return 0;
    *lo = data;
    return __builtin_add_overflow(data, size, hi) ? -1 : 1;
}
