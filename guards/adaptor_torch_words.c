/* Tensors in memos: the words of a TensorImpl that the raw layer reads, and the flag of a leaf in its autograd record.
 *
 * A tensor requires grad when its record's flag is set or when it has a gradient function. The flag's place is found by switching it on and off on
 * leaves and looking which byte follows, and is right only if it stays 0 in a result that requires grad by its function. A record whose flag is 0 is
 * not put into words: what else it says is not known here.
 */
#include "guards/adaptor_torch.h"
#include "guards/adaptor_torch_raw.h"

#define RECORD 256

typedef struct snapshot {
    const char *record;
    size_t n;
    char bytes[RECORD];
} snapshot;

/* The autograd record of the tensor as it is now; 0: it has none. */
static int record_take(PyObject *tensor, snapshot *out)
{
    const char *impl = fg_torch_raw_impl(tensor);
    if (impl == NULL)
        return 0;
    out->record = (const char *)(uintptr_t)fg_torch_raw_word(impl + fg_torch_raw_now.autograd_meta);
    if (out->record == NULL)
        return 0;
    out->n = fg_torch_probe(out->record, out->bytes, RECORD);
    return out->n > 0;
}

static int grad_switch(PyObject *tensor, int on, snapshot *out)
{
    PyObject *done = PyObject_CallMethod(tensor, "requires_grad_", "O", on ? Py_True : Py_False);
    Py_XDECREF(done);
    return done != NULL && record_take(tensor, out);
}

/* Keep the candidates that follow the switch on a leaf of this many elements and are 0 in a result of it. */
static int narrow(long elements, uint8_t *candidate)
{
    snapshot on, off, again, result;
    PyObject *leaf = PyObject_CallMethod(fg_torch_py.torch, "zeros", "l", elements), *sum = NULL;
    int ok = leaf != NULL && grad_switch(leaf, 1, &on) && grad_switch(leaf, 0, &off) && grad_switch(leaf, 1, &again);

    ok = ok && on.record == off.record && on.record == again.record;
    if (ok)
        sum = PyNumber_Add(leaf, leaf);
    ok = sum != NULL && record_take(sum, &result);
    for (size_t i = 0; ok && i < RECORD; i++)
        candidate[i] = candidate[i] && i < on.n && i < off.n && i < again.n && i < result.n && on.bytes[i] == 1 && off.bytes[i] == 0 &&
                       again.bytes[i] == 1 && result.bytes[i] == 0;
    Py_XDECREF(leaf);
    Py_XDECREF(sum);
    PyErr_Clear();
    return ok;
}

void fg_torch_grad_find(void)
{
    uint8_t candidate[RECORD];
    size_t found = 0, count = 0;

    memset(candidate, 1, sizeof candidate);
    for (long elements = 1; elements <= 3; elements++) {
        if (!narrow(elements, candidate))
            return;
    }
    for (size_t i = 1; i < RECORD; i++) {
        if (candidate[i]) {
            found = i;
            count++;
        }
    }
    if (count == 1)
        fg_torch_raw_now.grad_flag = (uint16_t)found;
}

/* The aligned word that has this byte. */
static void add_around(fg_words *words, const char *at)
{
    fg_words_add(words, at - (uintptr_t)at % 8);
}

int fg_torch_words(PyObject *object, fg_words *words)
{
    const fg_torch_raw *raw = &fg_torch_raw_now;
    const char *impl = fg_torch_raw_impl(object);

    if (impl == NULL || (fg_torch_raw_word(impl + raw->keys) & raw->keys_slow))
        return 0;
    const char *record = (const char *)(uintptr_t)fg_torch_raw_word(impl + raw->autograd_meta);
    if (record != NULL && (raw->grad_flag == 0 || record[raw->grad_flag] != 1))
        return 0;
    const char *shape = impl + raw->sizes;
    int64_t ndim = (int64_t)fg_torch_raw_word(shape);
    fg_words_add(words, (const char *)object + raw->handle);
    fg_words_add(words, impl + raw->keys);
    add_around(words, impl + raw->dtype);
    add_around(words, impl + raw->device);
    fg_words_add(words, impl + raw->autograd_meta);
    if (record != NULL)
        add_around(words, record + raw->grad_flag);
    fg_words_add(words, shape);
    if (ndim > FG_TORCH_INLINE_DIM)
        fg_words_add(words, shape + 8);
    const char *sizes = ndim <= FG_TORCH_INLINE_DIM ? shape + 8 : (const char *)(uintptr_t)fg_torch_raw_word(shape + 8);
    int64_t strides_at = ndim <= FG_TORCH_INLINE_DIM ? FG_TORCH_INLINE_DIM : ndim;
    for (int64_t i = 0; i < ndim; i++) {
        fg_words_add(words, sizes + 8 * i);
        fg_words_add(words, sizes + 8 * (strides_at + i));
    }
    return 1;
}
