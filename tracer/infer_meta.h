/* Purpose:   what an operation would give, without touching the user's data: the operation is really called, on stand-ins of the same metadata.
 * Model:     a stand-in is an object of the tensor's own library with the recorded type, dtype, sizes and strides, filled with ones. Large NumPy arrays
 *            are one element seen through zero strides; large or non-CPU torch tensors are fakes. The result of a call is a stand-in again.
 * Invariants: no warning is shown or noted, NumPy's floating-point errors are ignored, grad mode and modes are the caller's. Random generators
 *            are not touched: rows with FG_OPF_STATE come here by fg_standin_random only, which knows no real stand-ins.
 * Threading: the GIL is held; operations may release it.
 * Ownership: results are new references.
 */
#ifndef FG_TRACER_INFER_META_H
#define FG_TRACER_INFER_META_H

#include "guards/guard_tensor.h"
#include <stdint.h>

/* A stand-in of exactly this metadata. FG_ERR_UNSUPPORTED: none can be made (no exception is set). */
fg_status fg_standin_new(const fg_tensor_meta *meta, FG_NEW PyObject **out);

/* Call on stand-ins and constants, vectorcall convention (args holds nargs positional ones, then those named by kwnames).
 * FG_OK with *unsupported 1 and *out NULL: nothing can be said (too large, a stand-in would differ from the real thing, memory ran out).
 * FG_ERR_PYTHON: the operation raised, which is what the real call would raise. */
fg_status fg_standin_call(PyObject *callable, PyObject *const *args, size_t nargs, PyObject *kwnames, FG_NEW PyObject **out,
                          int *unsupported);
/* The same for a method of args[0]. */
fg_status fg_standin_method(PyObject *name, PyObject *const *args, size_t nargs, PyObject *kwnames, FG_NEW PyObject **out,
                            int *unsupported);
/* The same for an operation of torch's that reads a random generator, a function or (callable NULL) the method of that name: it is called on fakes only,
 * whose operations compute nothing. */
fg_status fg_standin_random(PyObject *callable, PyObject *name, PyObject *const *args, size_t nargs, PyObject *kwnames,
                            FG_NEW PyObject **out, int *unsupported);
/* The same for an attribute that is a tensor or tensor metadata (T, real, shape). */
fg_status fg_standin_attr(PyObject *object, PyObject *name, FG_NEW PyObject **out, int *unsupported);

/* Metadata of a stand-in or of a result: the adaptor's, or read through Python for fakes (sizes and strides are then in meta->own). 1, or 0 if the
 * object is no tensor, or one that a run-time value of this metadata would not look like. */
int fg_standin_read(PyObject *object, fg_tensor_meta *meta);

#endif
