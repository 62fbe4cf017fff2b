/* Purpose:   what CPython 3.12 and later versions have in common.
 * Model:     a version's own function does what is the version's and leaves the rest to these.
 *
 *   real                                  canonical
 *   LOAD_ATTR with its low bit            LOAD_METHOD
 *   LOAD_SUPER_ATTR                       CALL_SUPER 0 or 2; LOAD_ATTR or LOAD_METHOD
 *   LOAD_FAST_CHECK                       LOAD_FAST, flag CHECK
 *   BINARY_SLICE, STORE_SLICE             BUILD_SLICE 2; BINARY_SUBSCR or STORE_SUBSCR
 *   CALL_INTRINSIC_1, CALL_INTRINSIC_2    the instruction of that name
 *   COMPARE_OP op << shift | mask         COMPARE_OP op
 *   END_FOR, END_SEND                     nothing: they belong to the edges of FOR_ITER, SEND and CLEANUP_THROW
 *
 * Invariants: as of the functions in bytecode_raw.h, bytecode_decode.h and bytecode_lower.h whose names they have.
 * Threading: the GIL is held. Ownership: as there.
 */
#ifndef FG_CPYTHON_SINCE312_H
#define FG_CPYTHON_SINCE312_H

#include "runtime/cpython/bytecode_decode.h"
#include "runtime/cpython/bytecode_lower.h"

int fg_since312_may_raise(const fg_raw *op);
int fg_since312_shape(const fg_raw *op, fg_raw_shape *out);
fg_status fg_since312_step(fg_raw_code *raw, int32_t i, fg_raw_stack *stack, int jump, int *done);
const char *fg_since312_operand(const fg_raw_code *raw, int32_t i);
int64_t fg_since312_most_decoded(const fg_raw *op);
fg_status fg_since312_decode_one(fg_decoder *d, int32_t i, FG_BORROWED PyObject *object, int *done);
int32_t fg_since312_lower_group(fg_lowering *l, int32_t i, fg_status *st);
fg_status fg_since312_lower_one(fg_lowering *l, int32_t i, int *done);

/* Take n values, leave the types. */
fg_status fg_since312_turn(fg_raw_code *raw, fg_raw_stack *stack, int32_t n, const uint8_t *types, int n_types, const char *why);
/* A branch of the version's ops; what goes back jumps on the opposite condition. */
void fg_since312_branch(fg_lowering *l, int32_t i, int op, int opposite);
/* 1 if only the handler that every generator has is around instruction i: close() forgets a generator that waits there without running it. */
int fg_since312_waits_outermost(const fg_assembler *a, int32_t i);
/* The low bits of COMPARE_OP. */
int32_t fg_since312_compare_mask(int32_t op);

/* The version's: the real instructions at the end of a loop, and behind a branch. */
void fg_version_lower_end_for(fg_lowering *l, int32_t leader);
void fg_version_lower_not_taken(fg_lowering *l, int32_t source);

#endif
