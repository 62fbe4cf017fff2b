/* Purpose:   what only CPython 3.12 and 3.13 have: one instruction that loads a constant and returns it.
 * Model:     a version's own function does what is the version's and leaves the rest to these.
 *
 *   real                                  canonical
 *   RETURN_CONST                          LOAD_CONST; RETURN_VALUE, flag FUSED
 *
 * Invariants: as of the functions in bytecode_decode.h and bytecode_lower.h whose names they have.
 * Threading: the GIL is held. Ownership: as there.
 */
#ifndef FG_CPYTHON_FROM312TO313_H
#define FG_CPYTHON_FROM312TO313_H

#include "runtime/cpython/bytecode_decode.h"
#include "runtime/cpython/bytecode_lower.h"

int fg_from312to313_may_raise(const fg_raw *op);
int fg_from312to313_shape(const fg_raw *op, fg_raw_shape *out);
fg_status fg_from312to313_decode_one(fg_decoder *d, int32_t i, FG_BORROWED PyObject *object, int *done);
int32_t fg_from312to313_lower_group(fg_lowering *l, int32_t i, fg_status *st);

#endif
