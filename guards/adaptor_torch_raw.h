/* Purpose:   torch metadata by plain memory reads, inlined into whoever checks guards.
 * Model:     a torch object holds, at `handle` bytes, the address of its TensorImpl; the fields of the impl are read at offsets that
 *            calibration found in this very process (adaptor_torch_raw.c) and that were verified against Python's answers.
 * Invariants: tensor is NULL while the layer is off, so that no object passes the type test. The key set is tested before anything that is
 *            only true for some kinds of tensors: kinds whose sizes are not plain memory have a key that is in keys_slow.
 * Threading: the GIL is held; the struct is written by the set-up only.
 * Ownership: sizes and strides in a meta point into the tensor.
 */
#ifndef FG_GUARDS_ADAPTOR_TORCH_RAW_H
#define FG_GUARDS_ADAPTOR_TORCH_RAW_H

#include "guards/guard_tensor.h"
#include <stdbool.h>
#include <string.h>

/* Up to this rank torch keeps sizes and strides inside the impl; above it in one block of 2 * ndim words. Verified, not assumed. */
#define FG_TORCH_INLINE_DIM 5

typedef struct fg_torch_raw {
    PyTypeObject *tensor, *parameter;        /* borrowed; NULL: layer off */
    uint64_t keys_slow;                      /* key bits of kinds that are not read raw: refused ones and Meta */
    bool (*requires_grad)(const void *impl); /* c10's own; asked only when an autograd record exists */
    uint16_t handle, storage, autograd_meta, sizes, dtype, device, keys;
    uint16_t grad_flag; /* in an autograd record: the byte that is 1 for a leaf that requires grad; 0: not found */
} fg_torch_raw;

extern __attribute__((visibility("hidden"))) fg_torch_raw fg_torch_raw_now;
/* One adaptor a layer, in the order of fg_torch_layer (adaptor_torch.h). The one of the layer in use reads, the others refuse. */
extern __attribute__((visibility("hidden"))) const fg_tensor_adaptor fg_torch_adaptors[];

static inline uint64_t fg_torch_raw_word(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* The impl of an exact Tensor or Parameter, NULL for everything else or while the layer is off. */
static inline const char *fg_torch_raw_impl(PyObject *object)
{
    const fg_torch_raw *raw = &fg_torch_raw_now;
    PyTypeObject *type = Py_TYPE(object);
    if ((type != raw->tensor) & (type != raw->parameter))
        return NULL;
    return (const char *)(uintptr_t)fg_torch_raw_word((const char *)object + raw->handle);
}

/* A leaf's own flag settles it; everything else is asked of torch. */
static inline bool fg_torch_raw_grad(const char *impl)
{
    const fg_torch_raw *raw = &fg_torch_raw_now;
    const char *record = (const char *)(uintptr_t)fg_torch_raw_word(impl + raw->autograd_meta);
    return record != NULL && ((raw->grad_flag != 0 && record[raw->grad_flag] == 1) || raw->requires_grad(impl));
}

/* All but the type, of an impl whose keys are known to be of a kind that is read raw. */
static inline void fg_torch_raw_fields(const char *impl, uint64_t keys, fg_tensor_meta *meta)
{
    const fg_torch_raw *raw = &fg_torch_raw_now;
    uint16_t dtype;
    memcpy(&dtype, impl + raw->dtype, sizeof dtype);
    const char *shape = impl + raw->sizes;
    int64_t ndim = (int64_t)fg_torch_raw_word(shape);
    meta->adaptor = &fg_torch_adaptors[0];
    meta->keys = keys;
    meta->dtype = dtype;
    meta->device_type = (int8_t)impl[raw->device];
    meta->device_index = (int8_t)impl[raw->device + 1];
    meta->layout = 0;
    meta->ndim = (int32_t)ndim;
    if (ndim <= FG_TORCH_INLINE_DIM) {
        meta->sizes = (const int64_t *)(const void *)(shape + 8);
        meta->strides = meta->sizes + FG_TORCH_INLINE_DIM;
    } else {
        meta->sizes = (const int64_t *)(uintptr_t)fg_torch_raw_word(shape + 8);
        meta->strides = meta->sizes + ndim;
    }
    meta->requires_grad = fg_torch_raw_grad(impl);
}

/* All but the type: 1, or -1 for a kind that is not read raw. */
static inline int fg_torch_raw_read_impl(const char *impl, fg_tensor_meta *meta)
{
    uint64_t keys = fg_torch_raw_word(impl + fg_torch_raw_now.keys);
    if (keys & fg_torch_raw_now.keys_slow)
        return -1;
    fg_torch_raw_fields(impl, keys, meta);
    return 1;
}

/* 1 read; 0 no torch tensor; -1 a kind that needs the adaptor's read. */
static inline int fg_torch_raw_read(PyObject *object, fg_tensor_meta *meta)
{
    const char *impl = fg_torch_raw_impl(object);
    if (impl == NULL)
        return fg_torch_raw_now.tensor == NULL ? -1 : 0;
    meta->type = Py_TYPE(object);
    return fg_torch_raw_read_impl(impl, meta);
}

/* The complete check of one tensor: 1 as recorded; 0 not; -1 ask the adaptor's read and compare (recorded Meta tensors, layer off). */
static inline int fg_torch_raw_matches(PyObject *object, const fg_tensor_meta *want)
{
    const fg_torch_raw *raw = &fg_torch_raw_now;
    if (raw->tensor == NULL || (want->keys & raw->keys_slow))
        return -1;
    if (Py_TYPE(object) != want->type)
        return 0;
    const char *impl = (const char *)(uintptr_t)fg_torch_raw_word((const char *)object + raw->handle);
    if (impl == NULL || fg_torch_raw_word(impl + raw->keys) != want->keys)
        return 0;
    uint16_t dtype;
    memcpy(&dtype, impl + raw->dtype, sizeof dtype);
    const char *shape = impl + raw->sizes;
    int64_t ndim = want->ndim;
    if ((dtype != want->dtype) | ((int8_t)impl[raw->device] != want->device_type) | ((int8_t)impl[raw->device + 1] != want->device_index) |
        ((int64_t)fg_torch_raw_word(shape) != ndim))
        return 0;
    const int64_t *sizes, *strides;
    if (ndim <= FG_TORCH_INLINE_DIM) {
        sizes = (const int64_t *)(const void *)(shape + 8);
        strides = sizes + FG_TORCH_INLINE_DIM;
    } else {
        sizes = (const int64_t *)(uintptr_t)fg_torch_raw_word(shape + 8);
        strides = sizes + ndim;
    }
    for (int64_t i = 0; i < ndim; i++)
        if ((sizes[i] != want->sizes[i]) | (strides[i] != want->strides[i]))
            return 0;
    return fg_torch_raw_grad(impl) == (want->requires_grad != 0);
}

#endif
