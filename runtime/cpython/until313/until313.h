/* Purpose:   what CPython 3.11 to 3.13 have in common and later versions have not: `with` begins with one instruction, a subscript has one of its own, the
 *            keywords of f(*args) are only on the stack if there are any.
 * Model:     a version's own function does what is the version's and leaves the rest to these.
 *
 *   real                                  canonical
 *   LOAD_ASSERTION_ERROR                  LOAD_COMMON 0
 *   CALL_FUNCTION_EX flags                CALL_EX 0 or 1
 *
 * Invariants: as of the functions in bytecode_raw.h, bytecode_decode.h and bytecode_lower.h whose names they have.
 * Threading: the GIL is held. Ownership: as there.
 */
#ifndef FG_CPYTHON_UNTIL313_H
#define FG_CPYTHON_UNTIL313_H

#include "runtime/cpython/bytecode_decode.h"
#include "runtime/cpython/bytecode_lower.h"

int fg_until313_may_raise(const fg_raw *op);
int fg_until313_shape(const fg_raw *op, fg_raw_shape *out);
fg_status fg_until313_step(fg_raw_code *raw, int32_t i, fg_raw_stack *stack, int *done);
fg_status fg_until313_decode_one(fg_decoder *d, int32_t i, int *done);
fg_status fg_until313_lower_one(fg_lowering *l, int32_t i, int *done);

#endif
