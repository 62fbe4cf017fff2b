/* Purpose:   the state of a library that context managers have set where a step stands: no_grad, autocast, errstate and their like.
 * Model:     a chain of managers, innermost first, that the trace has entered and not left: each as its class and the constants it is made with. Whoever computes
 *            something in the place of a step (inference, a backend) makes and enters managers of his own, and leaves them again.
 * Threading: the GIL is held; the state belongs to the thread.
 * Ownership: nodes are in the trace's arena, their objects in its owner list.
 */
#ifndef FG_CODEGEN_AMBIENT_H
#define FG_CODEGEN_AMBIENT_H

#include "runtime/base/status.h"
#include <Python.h>

typedef struct fg_ambient {
    const struct fg_ambient *outer;
    PyObject *manager; /* its class */
    PyObject *args;    /* tuple: positional ones, then those named by kwnames */
    PyObject *kwnames; /* or NULL */
    uint8_t kind;      /* fg_ambient_kind of the tracer */
    uint8_t is_entered;
} fg_ambient;

/* Enter all of a chain. *entered NULL: there was nothing to do. On failure an exception is set and nothing is entered. */
fg_status fg_ambient_enter(const fg_ambient *chain, FG_NEW PyObject **entered);
/* Leave it again; keeps a pending exception. */
void fg_ambient_leave(FG_STEALS PyObject *entered);

#endif
