/* Real forms of what CPython 3.11 and 3.12 have in common: the mirror of until312_decode.c. */
#include "runtime/cpython/until312/until312.h"

int32_t fg_until312_lower_group(fg_lowering *l, int32_t i)
{
    fg_assembler *a = l->a;
    const fg_instr *instr = &a->in->instrs[i];
    switch (instr->op) {
    case FG_OP_MAKE_FUNCTION: {
        int32_t flags = 0, n = 1;
        for (int last = 16; fg_lower_follows(a, i + n, FG_OP_SET_FUNCTION_ATTRIBUTE); n++) {
            const int bit = instr[n].arg;
            if (bit >= last || (bit != 1 && bit != 2 && bit != 4 && bit != 8))
                break;
            flags |= last = bit;
        }
        fg_lower_put(l, i, FG_RAW_MAKE_FUNCTION, flags);
        return n;
    }
    case FG_OP_CONVERT_VALUE:
        /* Alone (a jump leads between the two) it is formatted as well, which leaves the str that a conversion gives as it is. */
        fg_lower_put(l, i, FG_RAW_FORMAT_VALUE, instr->arg);
        return fg_lower_follows(a, i + 1, FG_OP_FORMAT_SIMPLE) ? 2 : 1;
    case FG_OP_SWAP:
        if (instr->arg != 2 || !fg_lower_follows(a, i + 1, FG_OP_CONVERT_VALUE) || !fg_lower_follows(a, i + 2, FG_OP_SWAP) ||
            instr[2].arg != 2 || !fg_lower_follows(a, i + 3, FG_OP_FORMAT_WITH_SPEC))
            return 0;
        fg_lower_put(l, i, FG_RAW_FORMAT_VALUE, instr[1].arg | 4);
        return 4;
    default: return 0;
    }
}

fg_status fg_until312_lower_one(fg_lowering *l, int32_t i, int *done)
{
    fg_assembler *a = l->a;
    const fg_instr *instr = &a->in->instrs[i];
    int32_t index = 0;
    fg_status st;
    *done = 1;
    switch (instr->op) {
    case FG_OP_LOAD_CONST:
        if (!(a->at[i] & FG_AT_GHOST))
            break;
        if ((st = fg_lower_constant(a, instr, &index)) != FG_OK)
            return st;
        fg_lower_put(l, i, FG_RAW_KW_NAMES, index);
        return FG_OK;
    case FG_OP_TO_BOOL:
        fg_lower_put(l, i, FG_RAW_UNARY_NOT, 0);
        fg_lower_put(l, i, FG_RAW_UNARY_NOT, 0);
        return FG_OK;
    case FG_OP_FORMAT_SIMPLE:
    case FG_OP_FORMAT_WITH_SPEC: fg_lower_put(l, i, FG_RAW_FORMAT_VALUE, instr->op == FG_OP_FORMAT_SIMPLE ? 0 : 4); return FG_OK;
    default: break;
    }
    *done = 0;
    return FG_OK;
}
