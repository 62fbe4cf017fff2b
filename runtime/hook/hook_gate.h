/* Purpose:   framegate._core.Gate, the callable that stands for a Python function.
 * Model:     a vectorcall that binds, dispatches through its site, and otherwise calls the function. Attributes are the function's, live.
 * Invariants: the function never changes. code and site are those of the function's __code__ at the last call; each call compares.
 * Threading: the GIL is held.
 * Ownership: a gate owns its function and targets, and counts its site.
 */
#ifndef FG_HOOK_GATE_H
#define FG_HOOK_GATE_H

#include "runtime/hook/hook_bind.h"
#include "runtime/hook/hook_site.h"

typedef struct fg_gate {
    PyObject_HEAD vectorcallfunc vectorcall;
    FG_OWNED PyObject *func;
    FG_OWNED PyCodeObject *code; /* NULL: not prepared yet */
    Py_ssize_t n_exact;          /* fg_bind_shape_exact */
    uint8_t always_plain;        /* generators and the like, or a site could not be had */
    uint8_t drops_args;          /* the code may let go of an argument before it returns (hook_handover.h) */
    fg_site_owner owner;
    fg_bind_shape shape;
    fg_site_options options;
    PyObject *weakrefs;
} fg_gate;

extern PyTypeObject fg_gate_type;
extern PyMethodDef fg_gate_methods[];
extern PyGetSetDef fg_gate_getset[];

static inline int fg_gate_check(PyObject *object)
{
    return PyObject_TypeCheck(object, &fg_gate_type);
}

/* A gate over a Python function. options: dict or NULL. */
FG_NEW PyObject *fg_gate_new(FG_BORROWED PyObject *func, FG_BORROWED PyObject *options);

/* A vectorcall of a gate. */
FG_NEW PyObject *fg_gate_call(PyObject *gate, PyObject *const *args, size_t nargsf, PyObject *kwnames);

/* A gate that is lent a function for one call at a time (hook_gate_lent.c): between calls it refers to nothing of the user's. */
FG_NEW PyObject *fg_gate_new_lent(FG_BORROWED PyObject *options);
/* The gate for one call of this function. NULL: it is in use, or (with an exception) there is no memory. */
FG_NEW PyObject *fg_gate_lend(PyObject *gate, FG_BORROWED PyObject *func);

/* Let its site, which must be there, keep and make at least so many versions. */
void fg_gate_allow_many(fg_gate *gate, uint32_t n);

/* Bring code, shape and site up to date with the function's __code__. */
fg_status fg_gate_prepare(fg_gate *gate);

/* Bind a call as the gate would and use its view. FG_ERR_INVALID: the arguments do not fit (no exception is set). Otherwise what use gave. */
fg_status fg_gate_with_view(fg_gate *gate, PyObject *const *args, Py_ssize_t n_args, PyObject *kwnames,
                            fg_status (*use)(fg_gate *gate, const fg_view *view, void *arg), void *arg);

/* hook_gate_attrs.c */
FG_NEW PyObject *fg_gate_getattro(PyObject *self, PyObject *name);
int fg_gate_setattro(PyObject *self, PyObject *name, PyObject *value);
FG_NEW PyObject *fg_gate_repr(PyObject *self);
/* callable(gate) -> what __reduce__ returns where the gate cannot be pickled by name; NULL or None: pickling then fails. */
void fg_gate_reducer_set(FG_BORROWED PyObject *reducer);

#endif
