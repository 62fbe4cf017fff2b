/* The instructions of CPython 3.15 that are not one to one and that it does not share with 3.14 (since314.h has the others):
 *
 *   real                                  canonical
 *   GET_ITER 0                            GET_ITER: its result is one value in two slots
 *   GET_ITER 3                            GET_YIELD_FROM_ITER: the same
 *   PUSH_NULL that makes an iterator of what GET_AWAITABLE, GET_ANEXT or a call gave
 *                                         nothing
 *   IMPORT_NAME name << 2 | laziness      IMPORT_NAME, laziness
 *   LOAD_COMMON_CONSTANT 7 to 11          LOAD_CONST
 *
 * v315_lower.c is the mirror.
 */
#include "runtime/cpython/frame.h"
#include "runtime/cpython/since314/since314.h"
#include "runtime/cpython/v315/v315_bits.h"
#define Py_BUILD_CORE 1
#include <internal/pycore_interp.h>
#undef Py_BUILD_CORE

PyObject *fg_version_common_constant(uint32_t arg)
{
    return arg >= FG_COMMON_NONE && arg < FG_N_COMMON ? fg_thread_state()->interp->common_consts[arg] : NULL;
}

int64_t fg_version_most_decoded(const fg_raw *op)
{
    return fg_since314_most_decoded(op);
}

static int makes_iterator(const fg_decoder *d, int32_t i)
{
    const fg_raw *op = &d->raw.ops[i];
    if (i + 1 < d->raw.n_ops && op[1].op == FG_RAW_FOR_ITER)
        return 1;
    return i > 0 && op->state < 0 && (op[-1].op == FG_RAW_GET_AWAITABLE || op[-1].op == FG_RAW_GET_ANEXT);
}

fg_status fg_version_decode_one(fg_decoder *d, int32_t i, PyObject *object, int32_t *skip, int *done)
{
    const fg_raw *op = &d->raw.ops[i];
    *done = FG_DECODED_LAST;
    switch (op->op) {
    case FG_RAW_GET_ITER:
        if (op->arg != FG_GET_ITER_PLAIN && op->arg != FG_GET_ITER_DELEGATES)
            return fg_decoder_refuse(d, "GET_ITER argument out of range");
        fg_decoder_put(d, op, op->arg == FG_GET_ITER_PLAIN ? FG_OP_GET_ITER : FG_OP_GET_YIELD_FROM_ITER, 0);
        return FG_OK;
    case FG_RAW_IMPORT_NAME: fg_decoder_put(d, op, FG_OP_IMPORT_NAME, (int32_t)op->arg & 3)->obj = object; return FG_OK;
    case FG_RAW_PUSH_NULL:
        if (!makes_iterator(d, i))
            break;
        *done = FG_DECODED_ALL;
        return FG_OK;
    default: break;
    }
    *done = FG_DECODED_NOT;
    return fg_since314_decode_one(d, i, object, skip, done);
}
