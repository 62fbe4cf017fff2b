/* Decoding what CPython 3.12 and later versions have in common; the table is in since312.h, the mirror in since312_lower.c. */
#include "runtime/cpython/since312/since312.h"
#include "runtime/cpython/since312/since312_intrinsics.h"

int64_t fg_since312_most_decoded(const fg_raw *op)
{
    switch (op->op) {
    case FG_RAW_LOAD_GLOBAL:
    case FG_RAW_LOAD_SUPER_ATTR:
    case FG_RAW_BINARY_SLICE:
    case FG_RAW_STORE_SLICE: return 2;
    default: return 0;
    }
}

fg_status fg_since312_decode_one(fg_decoder *d, int32_t i, PyObject *object, int *done)
{
    const fg_raw *op = &d->raw.ops[i];
    const int32_t n = (int32_t)op->arg;
    *done = FG_DECODED_LAST;
    switch (op->op) {
    case FG_RAW_LOAD_ATTR: fg_decoder_put(d, op, n & 1 ? FG_OP_LOAD_METHOD : FG_OP_LOAD_ATTR, 0)->obj = object; return FG_OK;
    case FG_RAW_LOAD_SUPER_ATTR:
        fg_decoder_add(d, op, FG_OP_CALL_SUPER, n & 2 ? 2 : 0);
        fg_decoder_put(d, op, n & 1 ? FG_OP_LOAD_METHOD : FG_OP_LOAD_ATTR, 0)->obj = object;
        return FG_OK;
    case FG_RAW_COMPARE_OP:
        if (n >> FG_COMPARE_SHIFT > 5)
            return fg_decoder_refuse(d, "COMPARE_OP argument out of range");
        fg_decoder_put(d, op, FG_OP_COMPARE_OP, n >> FG_COMPARE_SHIFT);
        return FG_OK;
    case FG_RAW_LOAD_FAST_CHECK: fg_decoder_put(d, op, FG_OP_LOAD_FAST, n)->flags = FG_IF_CHECK; return FG_OK;
    case FG_RAW_BINARY_SLICE:
    case FG_RAW_STORE_SLICE:
        fg_decoder_add(d, op, FG_OP_BUILD_SLICE, 2);
        fg_decoder_put(d, op, op->op == FG_RAW_BINARY_SLICE ? FG_OP_BINARY_SUBSCR : FG_OP_STORE_SUBSCR, 0);
        return FG_OK;
    case FG_RAW_CALL_INTRINSIC_1:
    case FG_RAW_CALL_INTRINSIC_2: {
        const int known = fg_intrinsic_op(op->op, op->arg);
        if (known < 0)
            return fg_decoder_refuse(d, "unknown intrinsic");
        fg_decoder_put(d, op, known, 0);
        return FG_OK;
    }
    case FG_RAW_END_FOR:
    case FG_RAW_END_SEND: *done = FG_DECODED_ALL; return FG_OK;
#define BRANCH(NAME) \
    case FG_RAW_POP_JUMP_IF_##NAME: fg_decoder_put(d, op, FG_OP_JUMP_IF_##NAME, 0)->target = op->target; return FG_OK;
        BRANCH(TRUE)
        BRANCH(FALSE)
        BRANCH(NONE)
        BRANCH(NOT_NONE)
#undef BRANCH
    default: *done = FG_DECODED_NOT; return FG_OK;
    }
}
