/* Decoding what only CPython 3.13 has (the headers of the shared folders have the tables of the others):
 *
 *   real                                  canonical
 *   POP_TOP behind END_FOR                nothing
 *
 * v313_lower.c is the mirror.
 */
#include "runtime/cpython/since313/since313.h"
#include "runtime/cpython/from312to313/from312to313.h"
#include "runtime/cpython/until313/until313.h"

int64_t fg_version_most_decoded(const fg_raw *op)
{
    return op->op == FG_RAW_RETURN_CONST ? 2 : fg_since313_most_decoded(op);
}

fg_status fg_version_decode_one(fg_decoder *d, int32_t i, PyObject *object, int32_t *skip, int *done)
{
    fg_status st;
    if (d->raw.ops[i].op == FG_RAW_POP_TOP && d->stack.types[d->stack.depth - 1] == FG_SLOT_SPENT) {
        *done = FG_DECODED_ALL;
        return FG_OK;
    }
    if ((st = fg_until313_decode_one(d, i, done)) != FG_OK || *done != FG_DECODED_NOT ||
        (st = fg_from312to313_decode_one(d, i, object, done)) != FG_OK || *done != FG_DECODED_NOT)
        return st;
    return fg_since313_decode_one(d, i, object, skip, done);
}
