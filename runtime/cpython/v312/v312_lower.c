/* Real forms of canonical instructions that only CPython 3.12 has: the mirror of v312_decode.c. */
#include "runtime/cpython/from312to313/from312to313.h"
#include "runtime/cpython/since312/since312.h"
#include "runtime/cpython/until312/until312.h"
#include "runtime/cpython/until313/until313.h"

void fg_version_lower_end_for(fg_lowering *l, int32_t leader)
{
    fg_lower_put(l, leader, FG_RAW_END_FOR, 0);
}

int32_t fg_version_lower_group(fg_lowering *l, int32_t i, fg_status *st)
{
    int32_t length = fg_until312_lower_group(l, i);
    if (!length)
        length = fg_from312to313_lower_group(l, i, st);
    return length ? length : fg_since312_lower_group(l, i, st);
}

fg_status fg_version_lower_one(fg_lowering *l, int32_t i, int *done)
{
    const fg_instr *instr = &l->a->in->instrs[i];
    *done = 1;
    switch (instr->op) {
    case FG_OP_LOAD_FAST:
        fg_lower_put(l, i,
                     instr->flags & FG_IF_CLOSURE ? FG_RAW_LOAD_CLOSURE
                     : instr->flags & FG_IF_CHECK ? FG_RAW_LOAD_FAST_CHECK
                                                  : FG_RAW_LOAD_FAST,
                     instr->arg);
        return FG_OK;
    case FG_OP_JUMP_IF_TRUE: fg_since312_branch(l, i, FG_RAW_POP_JUMP_IF_TRUE, FG_RAW_POP_JUMP_IF_FALSE); return FG_OK;
    case FG_OP_JUMP_IF_FALSE: fg_since312_branch(l, i, FG_RAW_POP_JUMP_IF_FALSE, FG_RAW_POP_JUMP_IF_TRUE); return FG_OK;
    case FG_OP_YIELD_VALUE: fg_lower_put(l, i, FG_RAW_YIELD_VALUE, fg_since312_waits_outermost(l->a, i) ? 1 : 2); return FG_OK;
    default: {
        fg_status st;
        if ((st = fg_until312_lower_one(l, i, done)) != FG_OK || *done || (st = fg_until313_lower_one(l, i, done)) != FG_OK || *done)
            return st;
        return fg_since312_lower_one(l, i, done);
    }
    }
}

void fg_version_lower_call(fg_lowering *l, int32_t i, int32_t counted)
{
    fg_lower_put(l, i, FG_RAW_CALL, counted);
}
