/* Real forms of what CPython 3.11 to 3.13 have in common: the mirror of until313_decode.c. */
#include "runtime/cpython/until313/until313.h"

void fg_version_lower_call_ex(fg_lowering *l, int32_t i)
{
    fg_lower_put(l, i, FG_RAW_CALL_FUNCTION_EX, l->a->in->instrs[i].arg != 0);
}

fg_status fg_until313_lower_one(fg_lowering *l, int32_t i, int *done)
{
    const fg_instr *instr = &l->a->in->instrs[i];
    *done = instr->op == FG_OP_LOAD_COMMON && instr->arg == FG_COMMON_ASSERTION_ERROR;
    if (*done)
        fg_lower_put(l, i, FG_RAW_LOAD_ASSERTION_ERROR, 0);
    return FG_OK;
}
