/* The instructions of CPython 3.12 that are not one to one and that it shares with no later version (until312.h and since312.h have the others):
 *
 *   real                                  canonical
 *   LOAD_GLOBAL with its low bit          CALLEE; LOAD_GLOBAL
 *   CALL n                                CALL n; with a plain first argument in the callee's two slots CALL n+1, flag PLAIN
 *
 * v312_lower.c is the mirror.
 */
#include "runtime/cpython/from312to313/from312to313.h"
#include "runtime/cpython/since312/since312.h"
#include "runtime/cpython/until312/until312.h"
#include "runtime/cpython/until313/until313.h"

int64_t fg_version_most_decoded(const fg_raw *op)
{
    const int64_t most = fg_until312_most_decoded(op);
    return most ? most : op->op == FG_RAW_RETURN_CONST ? 2 : fg_since312_most_decoded(op);
}

fg_status fg_version_decode_one(fg_decoder *d, int32_t i, PyObject *object, int32_t *skip, int *done)
{
    const fg_raw *op = &d->raw.ops[i];
    (void)skip;
    *done = FG_DECODED_LAST;
    switch (op->op) {
    case FG_RAW_LOAD_GLOBAL:
        if (op->arg & 1)
            fg_decoder_add(d, op, FG_OP_CALLEE, 0);
        fg_decoder_put(d, op, FG_OP_LOAD_GLOBAL, 0)->obj = object;
        return FG_OK;
    case FG_RAW_KW_NAMES:
        if (i + 1 >= d->raw.n_ops || op[1].op != FG_RAW_CALL || op[1].state >= 0 || !PyTuple_CheckExact(object))
            return fg_decoder_refuse(d, "KW_NAMES without its call");
        fg_decoder_put(d, op, FG_OP_LOAD_CONST, 0)->obj = object;
        return FG_OK;
    case FG_RAW_CALL: return fg_decoder_call(d, op, i >= 1 && op[-1].op == FG_RAW_KW_NAMES);
    default: {
        fg_status st;
        if ((st = fg_until312_decode_one(d, i, done)) != FG_OK || *done != FG_DECODED_NOT ||
            (st = fg_until313_decode_one(d, i, done)) != FG_OK || *done != FG_DECODED_NOT ||
            (st = fg_from312to313_decode_one(d, i, object, done)) != FG_OK || *done != FG_DECODED_NOT)
            return st;
        return fg_since312_decode_one(d, i, object, done);
    }
    }
}
