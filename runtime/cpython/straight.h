/* Purpose:   run short straight-line code without the interpreter's loop.
 * Model:     most targets are a handful of instructions in a row: load, operate, return. The interpreter's way to them (binding, a frame on its
 *            data stack, the loop's entry) costs more than they do. A plan has those instructions; running it pushes a real frame, so that
 *            warnings, tracebacks and sys._getframe see what they would see, and does each instruction by the function that the loop would call.
 * Invariants: only for code without jumps, handlers, cells or nested code; what an instruction does is what the interpreter does.
 * Threading: the GIL is held; instructions may run anything.
 * Ownership: a plan borrows the code object. Running borrows the function and the inputs; the frame has references of its own.
 */
#ifndef FG_CPYTHON_STRAIGHT_H
#define FG_CPYTHON_STRAIGHT_H

#include "runtime/base/status.h"
#include <Python.h>

#define FG_STRAIGHT_OPS 40
#define FG_STRAIGHT_SLOTS 24 /* locals and stack */

typedef struct fg_straight {
    uint8_t n_ops, n_locals;
    struct {
        uint8_t op, arg;
        uint16_t unit; /* of the instruction in its code */
    } ops[];
} fg_straight;

/* *out NULL: not code of that kind (or a CPython for which there is no such way). Freed by fg_free. */
fg_status fg_straight_plan(PyCodeObject *code, fg_straight **out);

static inline size_t fg_straight_nbytes(const fg_straight *plan)
{
    return sizeof *plan + plan->n_ops * sizeof plan->ops[0];
}

/* The plan must live until it returns. Call the function, whose code the plan is of, with as many inputs as it has arguments. */
FG_NEW PyObject *fg_straight_run(const fg_straight *plan, PyObject *func, PyObject *const *inputs);

#endif
