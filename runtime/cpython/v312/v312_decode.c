/* The instructions of CPython 3.12 that are not one to one:
 *
 *   real                                  canonical
 *   LOAD_GLOBAL with its low bit          CALLEE; LOAD_GLOBAL
 *   CALL n                                CALL n; with a plain first argument in the callee's two slots CALL n+1, flag PLAIN
 *   KW_NAMES c; CALL                      LOAD_CONST c; CALL_KW
 *   LOAD_ATTR with its low bit            LOAD_METHOD
 *   LOAD_SUPER_ATTR                       CALL_SUPER 0 or 2; LOAD_ATTR or LOAD_METHOD
 *   COMPARE_OP op << 4 | mask             COMPARE_OP op
 *   LOAD_FAST_CHECK                       LOAD_FAST, flag CHECK
 *   RETURN_CONST                          LOAD_CONST; RETURN_VALUE, flag FUSED
 *   BINARY_SLICE, STORE_SLICE             BUILD_SLICE 2; BINARY_SUBSCR or STORE_SUBSCR
 *   CALL_INTRINSIC_1, CALL_INTRINSIC_2    the instruction of that name
 *   POP_JUMP_IF_x                         JUMP_IF_x
 *   END_FOR, END_SEND                     nothing: they belong to the edges of FOR_ITER, SEND and CLEANUP_THROW
 *
 * v312_lower.c is the mirror.
 */
#include "runtime/cpython/bytecode_decode.h"
#include "runtime/cpython/v312/v312_intrinsics.h"

int64_t fg_version_most_decoded(const fg_raw *op)
{
    switch (op->op) {
    case FG_RAW_LOAD_GLOBAL:
    case FG_RAW_LOAD_SUPER_ATTR:
    case FG_RAW_RETURN_CONST:
    case FG_RAW_BINARY_SLICE:
    case FG_RAW_STORE_SLICE: return 2;
    default: return 0;
    }
}

fg_status fg_version_decode_one(fg_decoder *d, int32_t i, PyObject *object, int32_t *skip, int *done)
{
    const fg_raw *op = &d->raw.ops[i];
    const int32_t n = (int32_t)op->arg;

    (void)skip;
    *done = FG_DECODED_LAST;
    switch (op->op) {
    case FG_RAW_LOAD_GLOBAL:
        if (n & 1)
            fg_decoder_add(d, op, FG_OP_CALLEE, 0);
        fg_decoder_put(d, op, FG_OP_LOAD_GLOBAL, 0)->obj = object;
        return FG_OK;
    case FG_RAW_KW_NAMES:
        if (i + 1 >= d->raw.n_ops || op[1].op != FG_RAW_CALL || op[1].state >= 0 || !PyTuple_CheckExact(object))
            return fg_decoder_refuse(d, "KW_NAMES without its call");
        fg_decoder_put(d, op, FG_OP_LOAD_CONST, 0)->obj = object;
        return FG_OK;
    case FG_RAW_CALL: return fg_decoder_call(d, op, i >= 1 && op[-1].op == FG_RAW_KW_NAMES);
    case FG_RAW_LOAD_ATTR: fg_decoder_put(d, op, n & 1 ? FG_OP_LOAD_METHOD : FG_OP_LOAD_ATTR, 0)->obj = object; return FG_OK;
    case FG_RAW_LOAD_SUPER_ATTR:
        fg_decoder_add(d, op, FG_OP_CALL_SUPER, n & 2 ? 2 : 0);
        fg_decoder_put(d, op, n & 1 ? FG_OP_LOAD_METHOD : FG_OP_LOAD_ATTR, 0)->obj = object;
        return FG_OK;
    case FG_RAW_COMPARE_OP:
        if (n >> 4 > 5)
            return fg_decoder_refuse(d, "COMPARE_OP argument out of range");
        fg_decoder_put(d, op, FG_OP_COMPARE_OP, n >> 4);
        return FG_OK;
    case FG_RAW_LOAD_FAST_CHECK: fg_decoder_put(d, op, FG_OP_LOAD_FAST, n)->flags = FG_IF_CHECK; return FG_OK;
    case FG_RAW_RETURN_CONST:
        fg_decoder_put(d, op, FG_OP_LOAD_CONST, 0)->obj = object;
        fg_decoder_settle(d);
        fg_decoder_put(d, op, FG_OP_RETURN_VALUE, 0)->flags = FG_IF_FUSED;
        return FG_OK;
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
