/* Purpose:   what the parts of the torch adaptor share: the names taken from torch, the four layers, the battery of tensors.
 * Model:     a layer is one read function. Layers are ordered from the fastest to the slowest; each is verified against the slowest, which
 *            is Python's own answer, and dropped for good on any disagreement. Each layer has an adaptor; in use is the first that stands.
 * Invariants: torch is never imported by us. Every layer refuses the same tensors (see adaptor_torch_keys.def).
 * Threading: the GIL is held. The set-up runs on a private thread, where no mode, no grad switch and no autocast of the user is on.
 * Ownership: references taken from torch are kept as long as the process lives.
 */
#ifndef FG_GUARDS_ADAPTOR_TORCH_H
#define FG_GUARDS_ADAPTOR_TORCH_H

#include "guards/adaptor_torch_raw.h"

#define FG_HIDDEN __attribute__((visibility("hidden")))

typedef enum fg_torch_layer { FG_TORCH_RAW, FG_TORCH_CABI, FG_TORCH_HARVEST, FG_TORCH_PYTHON, FG_TORCH_NONE } fg_torch_layer;
#define FG_TORCH_N_LAYERS 4
#define FG_TORCH_N_DTYPES 32
#define FG_TORCH_N_DEVICES 24

typedef struct fg_torch_names {
    FG_OWNED PyObject *torch, *c; /* the module and torch._C */
    FG_OWNED PyTypeObject *tensor, *parameter;
    FG_OWNED PyObject *dispatch_keys; /* torch._C._dispatch_keys */
    FG_OWNED PyObject *raw_repr;      /* DispatchKeySet.raw_repr, unbound */
    FG_OWNED PyObject *dtypes[FG_TORCH_N_DTYPES];
    uint8_t itemsizes[FG_TORCH_N_DTYPES];                /* bytes of an element; 0: unknown */
    FG_OWNED PyObject *device_names[FG_TORCH_N_DEVICES]; /* interned str */
    FG_OWNED PyObject *strided;                          /* torch.strided */
    FG_OWNED PyObject *mode_count;                       /* torch._C._len_torch_function_stack */
    uint64_t keys_allowed, keys_meta;                    /* masks of dispatch key bits */
} fg_torch_names;

extern FG_HIDDEN fg_torch_names fg_torch_py;

typedef int (*fg_torch_read)(PyObject *object, fg_tensor_meta *meta, const char **why);

/* One tensor of the battery, with Python's answer. */
typedef struct fg_torch_sample {
    FG_OWNED PyObject *object;
    uint64_t cdata;   /* address of the impl, as Python says */
    uint64_t storage; /* address of the storage's impl; 0: has none or not asked */
    int accepted;     /* 1: truth is its metadata; 0: every layer must refuse it */
    int fresh;        /* 1: made by a factory without grad: it has no autograd record */
    fg_tensor_meta truth;
} fg_torch_sample;

/* Layers: see adaptor_torch_python.c, adaptor_torch_cabi.c, adaptor_torch_raw.c. Each find gives FG_OK or FG_ERR_UNSUPPORTED. */
FG_HIDDEN int fg_torch_python_read(PyObject *object, fg_tensor_meta *meta, const char **why);
FG_HIDDEN int fg_torch_harvest_read(PyObject *object, fg_tensor_meta *meta, const char **why);
FG_HIDDEN int fg_torch_cabi_read(PyObject *object, fg_tensor_meta *meta, const char **why);
/* 1 and the storage offset in elements, 0: unknown. For tensors that a layer has read. */
FG_HIDDEN int fg_torch_cabi_offset(PyObject *object, int64_t *offset);
FG_HIDDEN int fg_torch_raw_layer_read(PyObject *object, fg_tensor_meta *meta, const char **why);
/* For inference: 1 and the metadata of what a fake stands for; its keys are those of the fake without what makes it one. May set an exception. */
FG_HIDDEN int fg_torch_fake_read(PyObject *object, fg_tensor_meta *meta);
FG_HIDDEN fg_status fg_torch_harvest_find(void);
FG_HIDDEN fg_status fg_torch_cabi_find(const fg_torch_sample *samples, size_t n);
FG_HIDDEN fg_status fg_torch_raw_find(const fg_torch_sample *samples, size_t n);
FG_HIDDEN void fg_torch_raw_drop(void);
/* Copy up to size bytes that may not be readable; gives how many were. */
FG_HIDDEN size_t fg_torch_probe(const void *from, void *to, size_t size);
/* Memos of tensors (adaptor_torch_words.c). grad_find: where an autograd record says that a leaf requires grad; the raw layer is up. */
FG_HIDDEN void fg_torch_grad_find(void);
FG_HIDDEN int fg_torch_words(PyObject *object, fg_words *words);
/* Gradients (adaptor_torch_grad.c). gradient_find: where an autograd record has them; the raw layer is up. */
FG_HIDDEN void fg_torch_gradient_find(void);
FG_HIDDEN int fg_torch_grad_raw(const fg_tensor_adaptor *self, PyObject *object, fg_tensor_meta *meta);
FG_HIDDEN int fg_torch_grad_python(const fg_tensor_adaptor *self, PyObject *object, fg_tensor_meta *meta);
/* Storages (adaptor_torch_storage.c). storage_find: where the impl of a storage says where its memory is and how long; on the private thread. */
FG_HIDDEN void fg_torch_storage_find(void);
FG_HIDDEN int fg_torch_storage_extent(const void *storage, int64_t *lo, int64_t *hi);
/* The adaptor for subclasses, NULL: none (adaptor_torch_subclass.c). */
FG_HIDDEN const fg_tensor_adaptor *fg_torch_subclass_adaptor(PyTypeObject *type);
/* How a tensor says that it computes its sizes; the raw layer is up. */
FG_HIDDEN void fg_torch_wrappers_find(void);

/* Shared by the layers. keys_of: 1 and the key set by torch's own function, 0 on failure (nothing is set). refuse: NULL if tensors of these
 * keys are described, else the reason. slot_find: the byte offset of the address of the impl inside a Python tensor, 0: none that fits all. */
FG_HIDDEN int fg_torch_keys_of(PyObject *object, uint64_t *keys);
FG_HIDDEN const char *fg_torch_keys_refuse(uint64_t keys);
FG_HIDDEN uint16_t fg_torch_slot_find(const fg_torch_sample *samples, size_t n);
FG_HIDDEN int fg_torch_dtype_number(PyObject *dtype);              /* -1: not in the table */
FG_HIDDEN int fg_torch_raw_keys(PyObject *object, uint64_t *keys); /* by the raw offset where it was found, else 0 */

/* "3,5" -> (3, 5); stops at the first character that is neither digit nor comma. */
FG_HIDDEN FG_NEW PyObject *fg_torch_ints(const char *text);

/* The battery: *samples from fg_calloc. */
FG_HIDDEN fg_status fg_torch_battery_new(fg_torch_sample **samples, size_t *n);
FG_HIDDEN void fg_torch_battery_free(fg_torch_sample *samples, size_t n);
/* 1 if this read agrees with the truth on all samples. */
FG_HIDDEN int fg_torch_battery_agrees(const fg_torch_sample *samples, size_t n, fg_torch_read read);

/* Set torch's adaptor up if the process has torch: 1 it is up, 0 it is not (not loaded, being imported, unusable). Keeps a pending exception. */
FG_HIDDEN int fg_torch_setup(void);
/* torch's adaptor for Tensor and Parameter, NULL for other types. */
FG_HIDDEN const fg_tensor_adaptor *fg_torch_adaptor_find(PyTypeObject *type);
/* 1 if the type is or derives from torch's tensor base; pure, also before torch was ever seen. */
FG_HIDDEN int fg_torch_type_is_family(PyTypeObject *type);
/* The adaptor of the layer in use; NULL: none is. */
FG_HIDDEN const fg_tensor_adaptor *fg_torch_adaptor_now(void);
/* 1 if it is the adaptor of any of torch's layers. */
FG_HIDDEN int fg_torch_adaptor_is(const fg_tensor_adaptor *adaptor);
FG_HIDDEN const char *fg_torch_layer_note(fg_torch_layer layer); /* why a layer is not in use; "" if it stands */

/* Bits of a dispatch key by its name, 0: no such key. During the set-up. */
FG_HIDDEN uint64_t fg_torch_key_bits(const char *name);

/* The state's part of the set-up (adaptor_torch_state.c); on the private thread. */
FG_HIDDEN fg_status fg_torch_state_find(void);
FG_HIDDEN const char *fg_torch_state_layer(void);

#endif
