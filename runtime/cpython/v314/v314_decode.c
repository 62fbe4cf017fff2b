/* Decoding for CPython 3.14: all of it is common to later versions (since314.h). */
#include "runtime/cpython/since314/since314.h"

PyObject *fg_version_common_constant(uint32_t arg)
{
    (void)arg;
    return NULL;
}

int64_t fg_version_most_decoded(const fg_raw *op)
{
    return fg_since314_most_decoded(op);
}

fg_status fg_version_decode_one(fg_decoder *d, int32_t i, PyObject *object, int32_t *skip, int *done)
{
    return fg_since314_decode_one(d, i, object, skip, done);
}
