/* Purpose:   what CPython 3.14 and later versions have in common and 3.13 has not: a context manager's exit in two slots, borrowed loads, small integers and
 *            common constants without a place in co_consts, a subscript that is an operator, keywords of f(*args) that are always on the stack.
 * Model:     a version's own function does what is the version's and leaves the rest to these.
 *
 *   real                                  canonical
 *   LOAD_FAST_BORROW and its pair         LOAD_FAST: what lowering puts is the counted load
 *   LOAD_SMALL_INT                        LOAD_CONST
 *   LOAD_COMMON_CONSTANT                  LOAD_COMMON
 *   BINARY_OP 26                          BINARY_SUBSCR
 *   CALL_FUNCTION_EX                      CALL_EX 0 if a NULL is on top, else 1
 *   PUSH_NULL, low bit of LOAD_GLOBAL     nothing right before a CALL_FUNCTION_EX, for which they are the keywords; else as in 3.13
 *   COPY 1; LOAD_SPECIAL; SWAP 2; SWAP 3; LOAD_SPECIAL; CALL 0
 *                                         BEFORE_WITH or BEFORE_ASYNC_WITH
 *   NOT_TAKEN                             nothing: it follows each branch
 *   POP_ITER                              POP_TOP, flag ITER; behind END_FOR nothing
 *   POP_TOP of the second half of an exit nothing
 *
 * The exit that `with` leaves on the stack is one canonical value in two slots, as a method that was loaded. In code of ours the second slot is NULL, so that
 * what is no value of a frame that waits is NULL (emit_host.c, rule 4).
 *
 * Invariants: as of the functions in bytecode_raw.h, bytecode_decode.h and bytecode_lower.h whose names they have.
 * Threading: the GIL is held. Ownership: as there.
 */
#ifndef FG_CPYTHON_SINCE314_H
#define FG_CPYTHON_SINCE314_H

#include "runtime/cpython/since313/since313.h"

enum { FG_BINARY_OP_SUBSCR = 26, FG_MOST_SMALL_INT = 255 };

/* The arg of LOAD_SPECIAL. */
enum { FG_SPECIAL_ENTER, FG_SPECIAL_EXIT, FG_SPECIAL_ASYNC_ENTER, FG_SPECIAL_ASYNC_EXIT };

int fg_since314_may_raise(const fg_raw *op);
int fg_since314_shape(const fg_raw *op, fg_raw_shape *out);
fg_status fg_since314_step(fg_raw_code *raw, int32_t i, fg_raw_stack *stack, int jump, int *done);
const char *fg_since314_operand(const fg_raw_code *raw, int32_t i);
int64_t fg_since314_most_decoded(const fg_raw *op);
fg_status fg_since314_decode_one(fg_decoder *d, int32_t i, FG_BORROWED PyObject *object, int32_t *skip, int *done);
int32_t fg_since314_lower_group(fg_lowering *l, int32_t i, fg_status *st);
fg_status fg_since314_lower_one(fg_lowering *l, int32_t i, int *done);

/* Objects that do something to the right side of `@`: give a context manager's exit as one object, looked up and bound as LOAD_SPECIAL does, with the error that
 * it raises; give an iterator. */
typedef enum fg_applied { FG_APPLIED_EXIT, FG_APPLIED_ITER, FG_N_APPLIED } fg_applied;
FG_BORROWED PyObject *fg_applied_object(fg_applied which);
fg_status fg_lower_applied(fg_lowering *l, int32_t i, fg_applied which, int32_t copied);
/* The object that LOAD_COMMON loads; NULL: no constant to the tracer. */
FG_BORROWED PyObject *fg_common_object(int which);

/* The version's: the object of LOAD_COMMON_CONSTANT where it is a plain constant, NULL: it is not. And back: the arg for a constant, -1: none. */
FG_BORROWED PyObject *fg_version_common_constant(uint32_t arg);
int32_t fg_version_common_arg(PyObject *constant);

#endif
