/* Purpose:   torch's half of inference: real small tensors, else fakes.
 * Model:     a CPU or meta tensor of at most a few thousand elements is made for real with the recorded strides; anything else is a FakeTensor of one
 *            process-wide mode. A call with a fake among its arguments runs inside that mode.
 * Invariants: a real stand-in reads back as exactly the metadata it was made from, or is not given out.
 * Threading: the GIL is held.
 * Ownership: results are new references.
 */
#ifndef FG_TRACER_INFER_TORCH_H
#define FG_TRACER_INFER_TORCH_H

#include "guards/guard_tensor.h"

typedef struct fg_fakes {
    FG_OWNED PyObject *mode;    /* entered, or NULL */
    int is_random;              /* no operation may be really called */
    FG_OWNED PyObject *log_was; /* what to give back to the fake mode's logger, which reports operations that fail */
} fg_fakes;

__attribute__((visibility("hidden"))) fg_status fg_standin_torch(const fg_tensor_meta *meta, FG_NEW PyObject **out);
/* Metadata of a real or fake tensor; sizes and strides in meta->own for fakes. */
__attribute__((visibility("hidden"))) int fg_standin_torch_read(PyObject *object, fg_tensor_meta *meta);
/* A plain tensor that requires grad and is a leaf. */
__attribute__((visibility("hidden"))) int fg_standin_torch_is_grad_leaf(PyObject *object, const fg_tensor_meta *meta);
/* 1 if this thread has pushed hooks for saved tensors: running an operation that is differentiated would call them. -1 with an exception. */
__attribute__((visibility("hidden"))) int fg_torch_has_saved_hooks(void);
/* Enter the fake mode if an argument is a fake, or in any case for what reads a random generator; end keeps a pending exception. */
__attribute__((visibility("hidden"))) fg_status fg_fakes_begin(fg_fakes *fakes, PyObject *const *args, size_t n, int is_random);
__attribute__((visibility("hidden"))) void fg_fakes_end(fg_fakes *fakes);

#endif
