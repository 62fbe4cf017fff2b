/* Decoding what CPython 3.11 and 3.12 have in common; the table is in until312.h, the mirror in until312_lower.c. */
#include "runtime/cpython/until312/until312.h"

int64_t fg_until312_most_decoded(const fg_raw *op)
{
    return op->op == FG_RAW_MAKE_FUNCTION ? 5 : op->op == FG_RAW_FORMAT_VALUE ? 4 : 0;
}

fg_status fg_until312_decode_one(fg_decoder *d, int32_t i, int *done)
{
    const fg_raw *op = &d->raw.ops[i];
    const int32_t n = (int32_t)op->arg;
    *done = FG_DECODED_LAST;
    switch (op->op) {
    case FG_RAW_LOAD_CLOSURE: fg_decoder_put(d, op, FG_OP_LOAD_FAST, n)->flags = FG_IF_CHECK | FG_IF_CLOSURE; return FG_OK;
    case FG_RAW_FORMAT_VALUE:
        if (n > 7)
            return fg_decoder_refuse(d, "FORMAT_VALUE argument out of range");
        if (n & 3) {
            if (n & 4)
                fg_decoder_add(d, op, FG_OP_SWAP, 2);
            fg_decoder_add(d, op, FG_OP_CONVERT_VALUE, n & 3);
            if (n & 4)
                fg_decoder_add(d, op, FG_OP_SWAP, 2);
        }
        fg_decoder_put(d, op, n & 4 ? FG_OP_FORMAT_WITH_SPEC : FG_OP_FORMAT_SIMPLE, 0);
        return FG_OK;
    case FG_RAW_MAKE_FUNCTION:
        if (n > 15)
            return fg_decoder_refuse(d, "MAKE_FUNCTION argument out of range");
        fg_decoder_add(d, op, FG_OP_MAKE_FUNCTION, 0);
        for (int bit = 8; bit; bit >>= 1)
            if (n & bit)
                fg_decoder_add(d, op, FG_OP_SET_FUNCTION_ATTRIBUTE, bit);
        *done = FG_DECODED_ALL;
        return FG_OK;
    default: *done = FG_DECODED_NOT; return FG_OK;
    }
}
