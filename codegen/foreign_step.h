/* Purpose:   steps of functions that were inlined from another file.
 * Model:     generated code has one file name and one dict of globals, and a warning names both. A foreign step is an object that is called with the globals
 *            of the inlined function and the operands: it does the operation in a frame of that function (stand_in.h). step[(globals, operands...)] is
 *            the same without a look for signals afterwards (steady_call.h).
 * Invariants: what is done is what the instruction would do; only steps for which fg_is_foreign_kind says so.
 * Threading: the GIL is held.
 * Ownership: a foreign step owns the inlined function's code object, never its globals.
 */
#ifndef FG_CODEGEN_FOREIGN_STEP_H
#define FG_CODEGEN_FOREIGN_STEP_H

#include "codegen/ir.h"
#include <stdbool.h>

/* The operation may run in a frame of its own: it is one call in C, with one result or none. */
bool fg_is_foreign_kind(fg_step_op op);
FG_NEW PyObject *fg_foreign_step(const fg_ir *ir, const fg_step *step);

#endif
