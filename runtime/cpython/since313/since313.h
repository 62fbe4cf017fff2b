/* Purpose:   what CPython 3.13 and later versions have in common and 3.12 has not: keyword names and the NULL of a callee where later versions have them, pairs
 *            of loads and stores, tests for truth apart from their branch.
 * Model:     a version's own function does what is the version's and leaves the rest to these.
 *
 *   real                                  canonical
 *   LOAD_GLOBAL with its low bit          LOAD_GLOBAL; CALLEE
 *   CALL n                                CALL n; with a plain first argument in the callee's two slots CALL n+1, flag PLAIN
 *   CALL_KW n                             the same, CALL_KW
 *   LOAD_FAST_LOAD_FAST and its like      two loads or stores, the second with the flag FUSED
 *   TO_BOOL; POP_JUMP_IF_x or UNARY_NOT   JUMP_IF_x or UNARY_NOT: canonical ones test for truth themselves
 *   the same of a COMPARE_OP with bit 16  COMPARE_OP; JUMP_IF_x or UNARY_NOT
 *   POP_JUMP_IF_x or UNARY_NOT alone      the same with the flag EXACT
 *   RESUME kind | bits                    RESUME kind
 *
 * Invariants: as of the functions in bytecode_raw.h, bytecode_decode.h and bytecode_lower.h whose names they have.
 * Threading: the GIL is held. Ownership: as there.
 */
#ifndef FG_CPYTHON_SINCE313_H
#define FG_CPYTHON_SINCE313_H

#include "runtime/cpython/since312/since312.h"

enum { FG_COMPARE_GIVES_BOOL = 16 /* COMPARE_OP tests its result for truth, too */ };

int fg_since313_may_raise(const fg_raw *op);
int fg_since313_shape(const fg_raw *op, fg_raw_shape *out);
fg_status fg_since313_step(fg_raw_code *raw, int32_t i, fg_raw_stack *stack, int jump, int *done);
const char *fg_since313_operand(const fg_raw_code *raw, int32_t i);
int64_t fg_since313_most_decoded(const fg_raw *op);
fg_status fg_since313_decode_one(fg_decoder *d, int32_t i, FG_BORROWED PyObject *object, int32_t *skip, int *done);
int32_t fg_since313_lower_group(fg_lowering *l, int32_t i, fg_status *st);
fg_status fg_since313_lower_one(fg_lowering *l, int32_t i, int *done);

/* A pair of loads or stores. */
void fg_since313_put_pair(fg_decoder *d, const fg_raw *op, int first, int second);

#endif
