/* The gradient of a tensor: what its `.grad` would say, without making a Python object for it.
 *
 * A leaf's autograd record has the address of the gradient's impl. Where, is found by setting and clearing the gradients of some leaves: the one word that is the
 * address of what was set, and that is the same in all records whose tensor has none (torch's undefined tensor). What is there is read as any impl is.
 *
 *     impl ──> autograd record ──> gradient's impl: keys, sizes … (keys 0: the undefined tensor)
 *
 * Where there is none, requires_grad says whether torch warns of the question: the tensor is a result that requires grad, whose gradient nobody keeps.
 *
 * Where the raw layer is off, Python is asked, except for what would show that warning, and the condition is impure.
 */
#include "guards/adaptor_torch.h"
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { WINDOW = 128 };

static uint16_t place; /* in the record; 0: not found */
static uint64_t none;  /* the word where there is no gradient */

/* The record of a leaf with this gradient; 0: something went wrong. */
static size_t record_with(PyObject *leaf, PyObject *gradient, char *bytes)
{
    const char *impl = fg_torch_raw_impl(leaf);
    if (impl == NULL || PyObject_SetAttrString(leaf, "grad", gradient) < 0)
        return 0;
    const char *record = (const char *)(uintptr_t)fg_torch_raw_word(impl + fg_torch_raw_now.autograd_meta);
    return record != NULL ? fg_torch_probe(record, bytes, WINDOW) : 0;
}

/* Keep the candidates that follow the gradient of a leaf of this many elements. */
static int narrow(long elements, uint8_t *candidate, uint64_t *empty)
{
    char with[WINDOW] = {0}, without[WINDOW] = {0};
    PyObject *leaf = PyObject_CallMethod(fg_torch_py.torch, "zeros", "l", elements);
    PyObject *gradient = PyObject_CallMethod(fg_torch_py.torch, "zeros", "l", elements), *on = NULL;
    if (leaf != NULL)
        on = PyObject_CallMethod(leaf, "requires_grad_", NULL);
    const char *impl = gradient != NULL ? fg_torch_raw_impl(gradient) : NULL;
    size_t n = on != NULL && impl != NULL ? record_with(leaf, gradient, with) : 0, m = n > 0 ? record_with(leaf, Py_None, without) : 0;
    for (size_t at = 0; at + 8 <= WINDOW; at += 8) {
        uint64_t word = fg_torch_raw_word(without + at);
        candidate[at / 8] = candidate[at / 8] && at > 0 && at + 8 <= n && at + 8 <= m &&
                            fg_torch_raw_word(with + at) == (uint64_t)(uintptr_t)impl && (empty[at / 8] == 0 || empty[at / 8] == word);
        empty[at / 8] = word;
    }
    Py_XDECREF(leaf);
    Py_XDECREF(gradient);
    Py_XDECREF(on);
    PyErr_Clear();
    return n > 0 && m > 0;
}

/* The reader against Python over one leaf, with and without. */
static int reads_right(void)
{
    fg_tensor_meta seen, truth;
    PyObject *leaf = PyObject_CallMethod(fg_torch_py.torch, "zeros", "ll", 2L, 3L);
    PyObject *gradient = PyObject_CallMethod(fg_torch_py.torch, "zeros", "ll", 2L, 3L);
    int ok = leaf != NULL && gradient != NULL && fg_torch_grad_raw(NULL, leaf, &seen) == 1 && seen.keys == 0;
    ok = ok && PyObject_SetAttrString(leaf, "grad", gradient) == 0 && fg_torch_grad_raw(NULL, leaf, &seen) == 1 &&
         fg_torch_raw_read(gradient, &truth) == 1 && fg_tensor_meta_same(&seen, &truth);
    ok = ok && PyObject_SetAttrString(leaf, "grad", Py_None) == 0 && fg_torch_grad_raw(NULL, leaf, &seen) == 1 && seen.keys == 0;
    Py_XDECREF(leaf);
    Py_XDECREF(gradient);
    PyErr_Clear();
    return ok;
}

void fg_torch_gradient_find(void)
{
    uint8_t candidate[WINDOW / 8];
    uint64_t empty[WINDOW / 8] = {0};
    int count = 0;

    memset(candidate, 1, sizeof candidate);
    for (long elements = 1; elements <= 3; elements++) {
        if (!narrow(elements, candidate, empty))
            return;
    }
    for (int i = 0; i < WINDOW / 8; i++) {
        if (candidate[i]) {
            place = (uint16_t)(8 * i);
            none = empty[i];
            count++;
        }
    }
    if (count != 1 || !reads_right())
        place = 0;
}

static int no_gradient(PyObject *object, bool is_result, fg_tensor_meta *meta)
{
    memset(meta, 0, offsetof(fg_tensor_meta, own));
    meta->type = Py_TYPE(object);
    meta->requires_grad = is_result;
    meta->sizes = meta->strides = meta->own;
    return 1;
}

int fg_torch_grad_raw(const fg_tensor_adaptor *self, PyObject *object, fg_tensor_meta *meta)
{
    const fg_torch_raw *raw = &fg_torch_raw_now;
    const char *impl = fg_torch_raw_impl(object);
    (void)self;
    if (place == 0 || impl == NULL || (fg_torch_raw_word(impl + raw->keys) & raw->keys_slow))
        return 0;
    const char *record = (const char *)(uintptr_t)fg_torch_raw_word(impl + raw->autograd_meta);
    uint64_t gradient = record != NULL ? fg_torch_raw_word(record + place) : 0;
    if (gradient == 0 || gradient == none) {
        bool is_result = fg_torch_raw_grad(impl) && record[raw->grad_flag] != 1;
        return is_result && raw->grad_flag == 0 ? 0 : no_gradient(object, is_result, meta);
    }
    meta->type = Py_TYPE(object);
    return fg_torch_raw_read_impl((const char *)(uintptr_t)gradient, meta) == 1;
}

int fg_torch_grad_python(const fg_tensor_adaptor *self, PyObject *object, fg_tensor_meta *meta)
{
    fg_torch_state state;
    PyObject *type, *value, *trace;
    /* A function mode's code would be asked, and answer what it likes. */
    if (self != fg_torch_adaptor_now() || !fg_torch_state_read(&state) || state.function_mode_depth != 0)
        return 0;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *is_leaf = PyObject_GetAttrString(object, "is_leaf"), *kept = is_leaf ? PyObject_GetAttrString(object, "retains_grad") : NULL;
    PyObject *gradient = kept != NULL && (is_leaf == Py_True || kept == Py_True) ? PyObject_GetAttrString(object, "grad") : NULL;
    int r = kept != NULL && is_leaf != Py_True && kept != Py_True ? no_gradient(object, true, meta) : 0;
    Py_XDECREF(is_leaf);
    Py_XDECREF(kept);
    if (r == 1) { /* one that was put there although nobody keeps it is not asked for */
    } else if (gradient == Py_None) {
        r = no_gradient(object, false, meta);
        Py_DECREF(gradient);
    } else if (gradient != NULL) {
        r = self->read(self, gradient, meta, NULL);
        if (r == 1 && meta->sizes != meta->own) { /* they belong to the gradient */
            memcpy(meta->own, meta->sizes, (size_t)meta->ndim * sizeof *meta->own);
            memcpy(meta->own + FG_TENSOR_MAX_DIM, meta->strides, (size_t)meta->ndim * sizeof *meta->own);
            meta->sizes = meta->own;
            meta->strides = meta->own + FG_TENSOR_MAX_DIM;
        }
        meta->type = Py_TYPE(object);
        Py_DECREF(gradient);
    } else if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError)) {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
        return -1;
    }
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
    return r;
}
