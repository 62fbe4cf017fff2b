/* Purpose:   arguments that only the caller's stack keeps alive belong to the function that is called, as between functions of Python.
 * Model:     the interpreter gives the references on its stack to the frame of a Python function, but only lends them to any other callable, and a gate is
 *            one. Where the frame that a gate runs may let go of an argument and somebody could notice, the gate hands over what it was lent: the
 *            caller's stack gets None in its place, and the frame takes the only reference.
 * Invariants: only from the stack of the frame that runs, and only what has no other reference. Between the moment when the count is zero and the call that
 *            takes the arguments nothing happens: a Python function takes them first of all.
 * Threading: the GIL is held.
 * Ownership: see the model.
 */
#ifndef FG_HOOK_HANDOVER_H
#define FG_HOOK_HANDOVER_H

#include "guards/guard_view.h"

/* Call a Python function with the arguments of a gate's call; gate is the object that was called, or NULL. */
FG_NEW PyObject *fg_handover_plain(PyObject *gate, PyObject *func, PyObject *const *args, size_t nargsf, PyObject *kwnames);
/* Right before the inputs are given to a target that goes on in the user's own code. */
void fg_handover_inputs(PyObject *gate, const fg_view *view, PyObject *const *inputs, uint32_t n_inputs);
/* 1 if an argument has only this one reference and its end may run code of the user's. */
int fg_handover_hears(PyObject *arg);
static inline int fg_handover_is_heard(PyObject *const *args, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++)
        if (Py_REFCNT(args[i]) == 1 && fg_handover_hears(args[i]))
            return 1;
    return 0;
}
/* 1 if the code may let go of an argument before it returns. */
int fg_handover_drops_args(PyCodeObject *code);

#endif
