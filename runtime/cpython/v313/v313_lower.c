/* Real forms of canonical instructions that only CPython 3.13 has: the mirror of v313_decode.c. */
#include "runtime/cpython/since313/since313.h"
#include "runtime/cpython/from312to313/from312to313.h"
#include "runtime/cpython/until313/until313.h"

void fg_version_lower_end_for(fg_lowering *l, int32_t leader)
{
    fg_lower_put(l, leader, FG_RAW_END_FOR, 0);
    l->depth--;
    fg_lower_put(l, leader, FG_RAW_POP_TOP, 0);
}

int32_t fg_version_lower_group(fg_lowering *l, int32_t i, fg_status *st)
{
    const int32_t length = fg_from312to313_lower_group(l, i, st);
    return length ? length : fg_since313_lower_group(l, i, st);
}

fg_status fg_version_lower_one(fg_lowering *l, int32_t i, int *done)
{
    const fg_status st = fg_until313_lower_one(l, i, done);
    return st != FG_OK || *done ? st : fg_since313_lower_one(l, i, done);
}
