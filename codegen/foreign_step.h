/* Purpose:   steps that need something of the thread's state which generated code does not have.
 * Model:     generated code has one file name and one dict of globals, and a warning names both: a step of a function that was inlined from another file is
 *            done in a frame of that function (stand_in.h). What is itself Python code may count further down the stack (`stacklevel`): around that
 *            stand frames of all functions between it and the root. Generated code handles no exception: a step that stands in a traced handler is done while an
 *            exception like the one of the program is being handled, so that what it raises gets it as context, and sys.exc_info() sees it. Such a
 *            step is an object that is called with the operands behind a lead: the globals of each frame or None, and the class of the exception where there
 *            is one. step[(lead..., operands...)] is the same without a look for signals afterwards (steady_call.h).
 * Invariants: what is done is what the instruction would do; only steps for which fg_is_foreign says so.
 * Threading: the GIL is held.
 * Ownership: a foreign step owns the inlined functions' code objects, never their globals.
 */
#ifndef FG_CODEGEN_FOREIGN_STEP_H
#define FG_CODEGEN_FOREIGN_STEP_H

#include "codegen/ir.h"
#include <stdbool.h>

/* The operation may be done so: it is one call in C, with one result or none. */
bool fg_is_foreign_kind(fg_step_op op);
static inline bool fg_is_foreign(const fg_step *step)
{
    return step->n_frames > 0 || (step->context >= 0 && fg_is_foreign_kind((fg_step_op)step->op));
}
FG_NEW PyObject *fg_foreign_step(const fg_ir *ir, const fg_step *step);

#endif
