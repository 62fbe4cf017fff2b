/* Real forms of canonical instructions that only CPython 3.11 has: the mirror of v311_decode.c. */
#include "runtime/cpython/until312/until312.h"
#include "runtime/cpython/until313/until313.h"

int fg_version_backward(int op, int quiet)
{
    switch (op) {
    case FG_RAW_JUMP_FORWARD: return quiet ? FG_RAW_JUMP_BACKWARD_NO_INTERRUPT : FG_RAW_JUMP_BACKWARD;
    case FG_RAW_POP_JUMP_FORWARD_IF_TRUE: return FG_RAW_POP_JUMP_BACKWARD_IF_TRUE;
    case FG_RAW_POP_JUMP_FORWARD_IF_FALSE: return FG_RAW_POP_JUMP_BACKWARD_IF_FALSE;
    case FG_RAW_POP_JUMP_FORWARD_IF_NONE: return FG_RAW_POP_JUMP_BACKWARD_IF_NONE;
    case FG_RAW_POP_JUMP_FORWARD_IF_NOT_NONE: return FG_RAW_POP_JUMP_BACKWARD_IF_NOT_NONE;
    default: return 0;
    }
}

size_t fg_version_most_lowered(int op)
{
    return op == FG_OP_IMPORT_STAR || op == FG_OP_PRINT;
}

fg_status fg_version_lower_begin(fg_lowering *l)
{
    (void)l;
    return FG_OK;
}

fg_status fg_version_lower_edge(fg_lowering *l, int32_t i)
{
    (void)l, (void)i;
    return FG_OK;
}

int32_t fg_version_lower_group(fg_lowering *l, int32_t i, fg_status *st)
{
    fg_assembler *a = l->a;
    const fg_instr *instr = &a->in->instrs[i];
    (void)st;
    switch (instr->op) {
    case FG_OP_COPY:
        if (!(instr->flags & FG_IF_OR_POP) || instr->arg != 1 || i + 2 >= a->in->n_instrs ||
            (instr[1].op != FG_OP_JUMP_IF_TRUE && instr[1].op != FG_OP_JUMP_IF_FALSE) || instr[2].op != FG_OP_POP_TOP ||
            ((a->at[i + 1] | a->at[i + 2]) & FG_AT_TARGET) || instr[1].target <= i + 2)
            return 0;
        fg_lower_put(l, i + 1, instr[1].op == FG_OP_JUMP_IF_TRUE ? FG_RAW_JUMP_IF_TRUE_OR_POP : FG_RAW_JUMP_IF_FALSE_OR_POP, 0)->target =
            instr[1].target;
        return 3;
    case FG_OP_LOAD_LOCALS:
        if (!fg_lower_follows(a, i + 1, FG_OP_LOAD_FROM_DICT_OR_DEREF))
            return 0;
        fg_lower_put(l, i, FG_RAW_LOAD_CLASSDEREF, instr[1].arg);
        return 2;
    case FG_OP_IMPORT_STAR:
    case FG_OP_PRINT:
        if (!fg_lower_follows(a, i + 1, FG_OP_POP_TOP))
            return 0;
        fg_lower_put(l, i, instr->op == FG_OP_PRINT ? FG_RAW_PRINT_EXPR : FG_RAW_IMPORT_STAR, 0);
        return 2;
    default: return fg_until312_lower_group(l, i);
    }
}

fg_status fg_version_lower_one(fg_lowering *l, int32_t i, int *done)
{
    fg_assembler *a = l->a;
    const fg_instr *instr = &a->in->instrs[i];
    int32_t index = 0;
    fg_status st;
    *done = 1;
    switch (instr->op) {
    case FG_OP_LOAD_FAST:
        fg_lower_put(l, i, instr->flags & FG_IF_CLOSURE ? FG_RAW_LOAD_CLOSURE : FG_RAW_LOAD_FAST, instr->arg);
        return FG_OK;
#define BRANCH(NAME) \
    case FG_OP_JUMP_IF_##NAME: fg_lower_put(l, i, FG_RAW_POP_JUMP_FORWARD_IF_##NAME, 0)->target = instr->target; return FG_OK;
        BRANCH(TRUE)
        BRANCH(FALSE)
        BRANCH(NONE)
        BRANCH(NOT_NONE)
#undef BRANCH
    case FG_OP_IMPORT_STAR:
    case FG_OP_PRINT: {
        const fg_instr none = {.obj = Py_None};
        fg_lower_put(l, i, instr->op == FG_OP_PRINT ? FG_RAW_PRINT_EXPR : FG_RAW_IMPORT_STAR, 0);
        if ((st = fg_lower_constant(a, &none, &index)) != FG_OK)
            return st;
        fg_lower_put(l, i, FG_RAW_LOAD_CONST, index);
        return FG_OK;
    }
    default: st = fg_until312_lower_one(l, i, done); return st != FG_OK || *done ? st : fg_until313_lower_one(l, i, done);
    }
}

void fg_version_lower_call(fg_lowering *l, int32_t i, int32_t counted)
{
    fg_lower_put(l, i, FG_RAW_PRECALL, counted);
    fg_lower_put(l, i, FG_RAW_CALL, counted);
}
