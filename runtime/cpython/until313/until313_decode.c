/* Decoding what CPython 3.11 to 3.13 have in common; the table is in until313.h, the mirror in until313_lower.c. */
#include "runtime/cpython/until313/until313.h"

fg_status fg_until313_decode_one(fg_decoder *d, int32_t i, int *done)
{
    const fg_raw *op = &d->raw.ops[i];
    *done = FG_DECODED_LAST;
    switch (op->op) {
    case FG_RAW_LOAD_ASSERTION_ERROR: fg_decoder_put(d, op, FG_OP_LOAD_COMMON, FG_COMMON_ASSERTION_ERROR); return FG_OK;
    case FG_RAW_CALL_FUNCTION_EX: fg_decoder_put(d, op, FG_OP_CALL_EX, (int32_t)op->arg & 1); return FG_OK;
    default: *done = FG_DECODED_NOT; return FG_OK;
    }
}
