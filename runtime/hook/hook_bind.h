/* Purpose:   arguments of a call to the slots of a view, as CPython binds them to fast locals.
 * Model:     the shape of a code object's signature is read once; a call whose positional arguments fit exactly needs no binding (its own array is the
 *            view), every other call is bound into an array here.
 * Invariants: slot order is CPython's: positional, keyword-only, *args, **kwargs. Binding raises nothing: a call that does not fit is told as such,
 *            and the plain function raises the error that belongs to it.
 * Threading: the GIL is held.
 * Ownership: a shape owns its names. Bound slots are strong references, so that replaced defaults do not matter.
 */
#ifndef FG_HOOK_BIND_H
#define FG_HOOK_BIND_H

#include "runtime/base/status.h"
#include <Python.h>

typedef struct fg_bind_shape {
    FG_OWNED PyObject *names; /* tuple of str: co_varnames; the first n_slots are the arguments' */
    Py_ssize_t n_slots;
    int n_positional, n_positional_only, n_keyword_only;
    int has_varargs, has_varkeywords;
} fg_bind_shape;

fg_status fg_bind_shape_init(fg_bind_shape *shape, PyCodeObject *code);
void fg_bind_shape_fini(fg_bind_shape *shape);

/* Number of positional arguments with which the caller's array is the view; -1: never. */
Py_ssize_t fg_bind_shape_exact(const fg_bind_shape *shape);

/* Bind into slots (room for n_slots, strong references). 1 bound; 0 the call does not fit, or binding it could run code of the user, or no memory: run it
 * plain. Never leaves an exception set. */
int fg_bind_call(const fg_bind_shape *shape, PyObject *func, PyObject *const *args, Py_ssize_t n_args, PyObject *kwnames,
                 FG_NEW PyObject **slots);
void fg_bind_release(PyObject **slots, Py_ssize_t n_slots);

#endif
