/* Purpose:   what CPython 3.11 and 3.12 have in common and later versions have not: keyword names that an instruction puts aside for the call behind it,
 *            one instruction for all that formatting a value is, functions made with all their parts at once.
 * Model:     a version's own function does what is the version's and leaves the rest to these.
 *
 *   real                                  canonical
 *   KW_NAMES c; CALL                      LOAD_CONST c; CALL_KW
 *   LOAD_CLOSURE                          LOAD_FAST, flag CLOSURE
 *   MAKE_FUNCTION flags                   MAKE_FUNCTION; SET_FUNCTION_ATTRIBUTE 8, 4, 2, 1
 *   FORMAT_VALUE                          [CONVERT_VALUE]; FORMAT_SIMPLE, or FORMAT_WITH_SPEC
 *
 * Invariants: as of the functions in bytecode_raw.h, bytecode_decode.h and bytecode_lower.h whose names they have.
 * Threading: the GIL is held. Ownership: as there.
 */
#ifndef FG_CPYTHON_UNTIL312_H
#define FG_CPYTHON_UNTIL312_H

#include "runtime/cpython/bytecode_decode.h"
#include "runtime/cpython/bytecode_lower.h"

int fg_until312_may_raise(const fg_raw *op);
int fg_until312_shape(const fg_raw *op, fg_raw_shape *out);
const char *fg_until312_operand(const fg_raw_code *raw, int32_t i);
int64_t fg_until312_most_decoded(const fg_raw *op);
fg_status fg_until312_decode_one(fg_decoder *d, int32_t i, int *done);
int32_t fg_until312_lower_group(fg_lowering *l, int32_t i);
fg_status fg_until312_lower_one(fg_lowering *l, int32_t i, int *done);

#endif
