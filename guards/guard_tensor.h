/* Purpose:   tensor metadata and its readers, one adaptor per tensor type, without linking any framework.
 * Model:     an adaptor reads the metadata of one object into a flat struct; guards compare fields; the tracer records them.
 * Invariants: what an adaptor declares pure can neither run Python, allocate objects nor raise, as long as the adaptor lives: where
 *            a library's way of reading changes, another adaptor takes over and the earlier one refuses. Sizes and strides point into the tensor
 *            or into the struct's own storage and are valid until the tensor changes.
 * Threading: the GIL is held.
 * Ownership: nothing is owned by a meta; fg_desc copies what it records.
 */
#ifndef FG_GUARD_TENSOR_H
#define FG_GUARD_TENSOR_H

#include "runtime/base/status.h"
#include "runtime/cpython/words.h"
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FG_TENSOR_MAX_DIM 64

typedef struct fg_tensor_adaptor fg_tensor_adaptor;

typedef struct fg_tensor_meta {
    const fg_tensor_adaptor *adaptor;
    PyTypeObject *type;
    uint64_t keys;       /* torch: dispatch key set; numpy: flags that matter (byte order, writeable); else 0 */
    int32_t dtype;       /* the library's own number: NPY_TYPES, c10 ScalarType, DLPack code<<16|bits<<8|lanes */
    int16_t device_type; /* DLPack / c10 device type; CPU is as the library says */
    int16_t device_index;
    uint8_t requires_grad;
    uint8_t layout;
    int32_t ndim;
    const int64_t *sizes;               /* ndim elements */
    const int64_t *strides;             /* ndim elements; in bytes for numpy, in elements for torch and DLPack */
    int64_t own[2 * FG_TENSOR_MAX_DIM]; /* storage for readers that must copy; last so that plain readers never touch it */
} fg_tensor_meta;

/* 1 read; 0 not a tensor this adaptor can describe (guards: mismatch; tracer: break with *why, a static string). Impure ones only: -1 for what a
 * library raised that is no Exception, or MemoryError. */
typedef int (*fg_tensor_read)(const fg_tensor_adaptor *self, PyObject *object, fg_tensor_meta *meta, const char **why);

/* Where a tensor's elements lie, in bytes. Places of tensors with one storage can be compared, no others. */
typedef struct fg_tensor_place {
    int64_t first;  /* of the element at index 0 */
    int64_t lo, hi; /* all elements are at lo or above and end at hi or below; lo == hi: there are none */
} fg_tensor_place;
/* From the first element, the sizes and the strides in units of `unit` bytes. 1, or 0 where the bounds leave 64 bits. */
int fg_tensor_place_of(int64_t first, int64_t itemsize, int64_t unit, const fg_tensor_meta *meta, fg_tensor_place *place);

/* Which of an adaptor's functions only read memory, or go through a C interface that can neither run Python nor raise: read and place; storage; gradient. A
 * condition that needs another one is impure (fg_guard_is_impure). */
enum { FG_PURE_READ = 1, FG_PURE_STORAGE = 2, FG_PURE_GRADIENT = 4 };

struct fg_tensor_adaptor {
    const char *name;      /* "numpy", "torch", a library's own */
    const char *layer;     /* the way of reading, for `doctor` */
    unsigned pure;         /* FG_PURE_ bits */
    fg_tensor_read read;   /* for guards */
    fg_tensor_read record; /* for the tracer: read plus every check that a capture needs (kind of keys, subclass, symbolic …) */
    /* Address that identifies the storage among those that the same function tells, NULL: unknown; never materialises copy-on-write. Impure ones: NULL with an
     * exception set as for -1 of a read. */
    const void *(*storage)(PyObject *object);
    FG_NEW PyObject *(*dtype_object)(const fg_tensor_meta *meta); /* library dtype object, for explanations and examples */
    /* For memos: put down the words that read gives this object's metadata from, its type being proven. 0: it cannot. NULL: it never can. */
    int (*words)(PyObject *object, fg_words *words);
    /* 1 and where its elements lie, 0: unknown; -1 as a read. Pure where read is. NULL: it never can. */
    int (*place)(const fg_tensor_adaptor *self, PyObject *object, fg_tensor_place *place);
    /* Where all of a storage lies, as addresses: 1; 0: it has no memory; -1: unknown. A read of memory. NULL: two storages never share memory. */
    int (*extent)(const void *storage, int64_t *lo, int64_t *hi);
    /* 1 and the metadata of its gradient, of the tensor's own type, with keys 0 where it has none; 0: unknown; -1 as read. NULL: such tensors have none. */
    int (*gradient)(const fg_tensor_adaptor *self, PyObject *object, fg_tensor_meta *meta);
};

/* The memory of one tensor, to be compared with that of others of the same `storage` function: where there is one space, byte ranges can be compared. */
typedef struct fg_tensor_memory {
    const void *space;
    int64_t lo, hi;        /* all of the storage */
    int64_t elements, end; /* its elements */
    bool is_placed;        /* elements and end are known */
} fg_tensor_memory;
/* 1, 0: unknown, -1: an impure adaptor raised. */
int fg_tensor_memory_of(const fg_tensor_adaptor *adaptor, PyObject *object, fg_tensor_memory *memory);

/* Same type, keys, dtype, device, requires_grad, layout, sizes and strides. */
int fg_tensor_meta_same(const fg_tensor_meta *a, const fg_tensor_meta *b);

/* Import NumPy's C interface; once per process, before any find. FG_ERR_PYTHON: no usable NumPy. */
fg_status fg_tensor_init(void);

/* Add tensor_layers(), read(obj) and torch_state() to the extension module; calls fg_tensor_init. */
fg_status fg_tensor_module_init(PyObject *module);

/* The adaptor for this exact type, NULL if it is no tensor type we know. First sight of torch sets its adaptor up. */
const fg_tensor_adaptor *fg_tensor_adaptor_find(PyTypeObject *type);
/* The same for descriptions: also for the subclasses of tensor types whose metadata can be read, though they are no tensors to the tracer. */
const fg_tensor_adaptor *fg_tensor_adaptor_describe(PyTypeObject *type);
/* As find, for a type that was looked for before; runs nothing, and does not look at the type. NULL otherwise. */
const fg_tensor_adaptor *fg_tensor_adaptor_known(const PyTypeObject *type);

/* Thread-local state of torch that an entry depends on. Without torch all zero, always equal. */
typedef struct fg_torch_state {
    uint64_t keys_included, keys_excluded; /* raw thread-local dispatch key words */
    int64_t default_device; /* (type << 16 | index) as torch hashes it, under torch.set_default_device or `with torch.device`; else -1 */
    uint8_t autograd;       /* the AutogradState byte: grad, inference, forward grad, multithreading, view replay */
    uint8_t function_mode_depth;
    uint8_t function_disabled; /* 0 enabled, 1 subclasses off, 2 all off */
    int8_t default_dtype;
    int8_t autocast_dtype[2]; /* CPU, CUDA; -1 where autocast is off */
    uint8_t present;          /* 0: torch is not loaded */
    uint8_t reserved;         /* always 0; makes the struct comparable with memcmp */
} fg_torch_state;

/* Read the state now. 1 read, 0 torch is loaded but its state cannot be read here (the tracer then breaks). */
int fg_torch_state_read(fg_torch_state *state);

#ifdef __cplusplus
}
#endif

#endif
