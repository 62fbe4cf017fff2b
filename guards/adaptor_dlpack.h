/* Purpose:   metadata of tensors of libraries we do not know, through the DLPack exchange table of their type.
 * Model:     a type whose MRO has `__dlpack_c_exchange_api__` (a capsule) gives a C function that fills a borrowed description of the tensor.
 * Invariants: never used for torch, whose function materialises copy-on-write tensors. The adaptor reads objects of exactly its own type.
 * Threading: the GIL is held.
 * Ownership: one adaptor per type, made at first sight; it keeps the type for the life of the process. Sizes and strides belong to the tensor.
 */
#ifndef FG_GUARDS_ADAPTOR_DLPACK_H
#define FG_GUARDS_ADAPTOR_DLPACK_H

#include "guards/guard_tensor.h"

/* The binary interface, version 1. */
typedef struct fg_dlpack_tensor {
    void *data;
    struct {
        int32_t type, index;
    } device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: C order */
    uint64_t byte_offset;
} fg_dlpack_tensor;

typedef struct fg_dlpack_table {
    struct {
        uint32_t major, minor;
    } version;
    const struct fg_dlpack_table *previous; /* an older table of the same library, NULL: none */
    int (*allocate)(fg_dlpack_tensor *prototype, void **out, void *context, void (*error)(void *, const char *, const char *));
    int (*managed_from_object)(void *object, void **out);
    int (*managed_to_object)(void *managed, void **out);
    int (*tensor_from_object)(void *object, fg_dlpack_tensor *out); /* borrowed; 0 fine, -1 a Python exception is set; may be NULL */
    int (*work_stream)(int32_t device_type, int32_t device_index, void **out);
} fg_dlpack_table;

/* The adaptor of this type, NULL if it has no usable table. Makes it at first sight; NULL too when out of memory. */
__attribute__((visibility("hidden"))) const fg_tensor_adaptor *fg_dlpack_adaptor_find(PyTypeObject *type);
/* The same for a type that was looked for before, without asking the type; NULL otherwise. */
__attribute__((visibility("hidden"))) const fg_tensor_adaptor *fg_dlpack_adaptor_known(const PyTypeObject *type);
/* The i-th adaptor made so far, NULL past the end. */
__attribute__((visibility("hidden"))) const fg_tensor_adaptor *fg_dlpack_adaptor_at(size_t i);

#endif
