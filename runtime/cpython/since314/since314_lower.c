/* Real forms of what CPython 3.14 and later versions have in common: the mirror of since314_decode.c. */
#include "runtime/cpython/since314/since314.h"

void fg_version_lower_not_taken(fg_lowering *l, int32_t source)
{
    fg_lower_put(l, source, FG_RAW_NOT_TAKEN, 0);
}

/* [value] -> [result], or with `copied` 2 [value, result]. An operator: a call would be an event to a profiler. */
fg_status fg_lower_applied(fg_lowering *l, int32_t i, fg_applied which, int32_t copied)
{
    enum { MATRIX_MULTIPLY = 4 };
    const fg_instr applied = {.obj = fg_applied_object(which)};
    int32_t index = 0;
    fg_status st;
    if (applied.obj == NULL)
        return FG_ERR_PYTHON;
    if ((st = fg_lower_constant(l->a, &applied, &index)) != FG_OK)
        return st;
    fg_lower_put(l, i, FG_RAW_LOAD_CONST, index);
    if (l->depth + copied > l->a->max_depth)
        l->a->max_depth = l->depth + copied;
    fg_lower_put(l, i, copied == 2 ? FG_RAW_COPY : FG_RAW_SWAP, 2);
    fg_lower_put(l, i, FG_RAW_BINARY_OP, MATRIX_MULTIPLY);
    return FG_OK;
}

/* [manager] -> [exit, its second slot, what entering gave]. */
static fg_status lower_with(fg_lowering *l, int32_t i)
{
    fg_assembler *a = l->a;
    const fg_instr *instr = &a->in->instrs[i];
    const int is_async = instr->op == FG_OP_BEFORE_ASYNC_WITH;
    const int32_t deepest = l->depth + 3;
    if (instr->offset >= 0 || is_async) {
        fg_lower_put(l, i, FG_RAW_COPY, 1);
        fg_lower_put(l, i, FG_RAW_LOAD_SPECIAL, is_async ? FG_SPECIAL_ASYNC_EXIT : FG_SPECIAL_EXIT);
    } else {
        const fg_status st = fg_lower_applied(l, i, FG_APPLIED_EXIT, 2);
        if (st != FG_OK)
            return st;
        fg_lower_put(l, i, FG_RAW_PUSH_NULL, 0);
    }
    if (deepest > a->max_depth)
        a->max_depth = deepest;
    fg_lower_put(l, i, FG_RAW_SWAP, 2);
    fg_lower_put(l, i, FG_RAW_SWAP, 3);
    fg_lower_put(l, i, FG_RAW_LOAD_SPECIAL, is_async ? FG_SPECIAL_ASYNC_ENTER : FG_SPECIAL_ENTER);
    fg_lower_put(l, i, FG_RAW_CALL, 0);
    return FG_OK;
}

void fg_version_lower_end_for(fg_lowering *l, int32_t leader)
{
    fg_lower_put(l, leader, FG_RAW_END_FOR, 0);
    l->depth--;
    fg_lower_put(l, leader, FG_RAW_POP_ITER, 0);
}

void fg_version_lower_call_ex(fg_lowering *l, int32_t i)
{
    if (!l->a->in->instrs[i].arg)
        fg_lower_null(l, i);
    fg_lower_put(l, i, FG_RAW_CALL_FUNCTION_EX, 0);
}

static int32_t small_int(PyObject *constant)
{
    int overflow = 0;
    if (constant == NULL || !PyLong_CheckExact(constant))
        return -1;
    const long n = PyLong_AsLongAndOverflow(constant, &overflow);
    return !overflow && n >= 0 && n <= FG_MOST_SMALL_INT ? (int32_t)n : -1;
}

/* END_ASYNC_FOR says how far back the END_SEND of its loop is. */
static void lower_end_async_for(fg_lowering *l, int32_t i)
{
    const fg_asm *in = l->a->in;
    fg_real *real = fg_lower_put(l, i, FG_RAW_END_ASYNC_FOR, 0);
    for (int32_t k = 0; k < i; k++)
        if (in->instrs[k].op == FG_OP_SEND && in->instrs[k].handler >= 0 && in->handlers[in->instrs[k].handler].target == i &&
            in->instrs[k].target < i) {
            real->target = in->instrs[k].target;
            real->landing = FG_LAND_END_SEND;
        }
}

int32_t fg_since314_lower_group(fg_lowering *l, int32_t i, fg_status *st)
{
    const fg_assembler *a = l->a;
    const fg_instr *instr = &a->in->instrs[i];
    /* A value in two slots that a return leaves on the stack goes away from under the result. */
    if (instr->op == FG_OP_SWAP && instr->arg == 2 && fg_lower_follows(a, i + 1, FG_OP_POP_TOP) && fg_lower_top_width(a, 2) == 2 &&
        fg_lower_top_width(a, 1) == 1) {
        fg_lower_put(l, i, FG_RAW_SWAP, 3);
        fg_lower_put(l, i + 1, FG_RAW_POP_TOP, 0);
        l->depth--;
        fg_lower_put(l, i + 1, FG_RAW_POP_TOP, 0);
        return 2;
    }
    return fg_since313_lower_group(l, i, st);
}

fg_status fg_since314_lower_one(fg_lowering *l, int32_t i, int *done)
{
    const fg_assembler *a = l->a;
    const fg_instr *instr = &a->in->instrs[i];
    int32_t number;
    *done = 1;
    switch (instr->op) {
    case FG_OP_LOAD_CONST:
        if ((number = small_int(instr->obj)) >= 0)
            fg_lower_put(l, i, FG_RAW_LOAD_SMALL_INT, number);
        else if ((number = fg_version_common_arg(instr->obj)) >= 0)
            fg_lower_put(l, i, FG_RAW_LOAD_COMMON_CONSTANT, number);
        else
            break;
        return FG_OK;
    case FG_OP_LOAD_COMMON: fg_lower_put(l, i, FG_RAW_LOAD_COMMON_CONSTANT, instr->arg); return FG_OK;
    case FG_OP_BINARY_SUBSCR: fg_lower_put(l, i, FG_RAW_BINARY_OP, FG_BINARY_OP_SUBSCR); return FG_OK;
    case FG_OP_BEFORE_WITH:
    case FG_OP_BEFORE_ASYNC_WITH: return lower_with(l, i);
    case FG_OP_END_ASYNC_FOR: lower_end_async_for(l, i); return FG_OK;
    case FG_OP_POP_TOP:
        if ((instr->flags & FG_IF_ITER) && (!FG_ITERATORS_ARE_WIDE || fg_lower_top_width(a, 1) == 2)) {
            fg_lower_put(l, i, FG_RAW_POP_ITER, 0);
            return FG_OK;
        }
        for (int width = fg_lower_top_width(a, 1); width > 0; width--, l->depth--)
            fg_lower_put(l, i, FG_RAW_POP_TOP, 0);
        return FG_OK;
    default: break;
    }
    return fg_since313_lower_one(l, i, done);
}
