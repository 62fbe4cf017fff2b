/* Real forms of what CPython 3.13 and later versions have in common: the mirror of since313_decode.c.
 *
 * Code that was decoded gets the pairs it had; in code of ours neighbours become a pair wherever the compiler would make one.
 */
#include "runtime/cpython/since313/since313.h"

static int same_position(const fg_instr *a, const fg_instr *b)
{
    return a->line == b->line && a->end_line == b->end_line && a->col == b->col && a->end_col == b->end_col;
}

static int is_test(const fg_instr *instr)
{
    return instr->op == FG_OP_JUMP_IF_TRUE || instr->op == FG_OP_JUMP_IF_FALSE || instr->op == FG_OP_UNARY_NOT;
}

/* Of an exact bool. */
static void put_test(fg_lowering *l, int32_t i)
{
    switch (l->a->in->instrs[i].op) {
    case FG_OP_JUMP_IF_TRUE: fg_since312_branch(l, i, FG_RAW_POP_JUMP_IF_TRUE, FG_RAW_POP_JUMP_IF_FALSE); break;
    case FG_OP_JUMP_IF_FALSE: fg_since312_branch(l, i, FG_RAW_POP_JUMP_IF_FALSE, FG_RAW_POP_JUMP_IF_TRUE); break;
    default: fg_lower_put(l, i, FG_RAW_UNARY_NOT, 0); break;
    }
}

static int32_t lower_pair(fg_lowering *l, int32_t i)
{
    const fg_assembler *a = l->a;
    const fg_instr *one = &a->in->instrs[i], *two = one + 1;
    enum { MOST = 16 };
    if (i + 1 >= a->in->n_instrs || !fg_lower_follows(a, i + 1, two->op) || one->arg >= MOST || two->arg >= MOST || a->nulls[i + 1] ||
        ((one->flags | two->flags) & (FG_IF_CHECK | FG_IF_CLOSURE)))
        return 0;
    const int op = one->op == FG_OP_LOAD_FAST && two->op == FG_OP_LOAD_FAST     ? FG_RAW_LOAD_FAST_LOAD_FAST
                   : one->op == FG_OP_STORE_FAST && two->op == FG_OP_LOAD_FAST  ? FG_RAW_STORE_FAST_LOAD_FAST
                   : one->op == FG_OP_STORE_FAST && two->op == FG_OP_STORE_FAST ? FG_RAW_STORE_FAST_STORE_FAST
                                                                                : 0;
    if (!op || !((two->flags & FG_IF_FUSED) || (one->offset < 0 && two->offset < 0 && same_position(one, two))))
        return 0;
    fg_lower_put(l, i, op, one->arg << 4 | two->arg);
    return 2;
}

/* A comparison whose result is tested at once. */
static int32_t lower_compare(fg_lowering *l, int32_t i)
{
    const fg_assembler *a = l->a;
    const fg_instr *one = &a->in->instrs[i], *two = one + 1;
    if (one->arg > 5 || i + 1 >= a->in->n_instrs || !fg_lower_follows(a, i + 1, two->op) || !same_position(one, two) || a->nulls[i + 1] ||
        !(two->op == FG_OP_TO_BOOL || (is_test(two) && !(two->flags & FG_IF_EXACT))))
        return 0;
    fg_lower_put(l, i, FG_RAW_COMPARE_OP, one->arg << FG_COMPARE_SHIFT | FG_COMPARE_GIVES_BOOL | fg_since312_compare_mask(one->arg));
    l->depth--;
    if (two->op != FG_OP_TO_BOOL)
        put_test(l, i + 1);
    return 2;
}

/* A generator that is a lambda expression has no handler of its own: only the one of a `yield from`. */
static int waits_under_one(const fg_assembler *a, int32_t i)
{
    const fg_instr *yield = &a->in->instrs[i];
    if (yield->op != FG_OP_YIELD_VALUE || yield->handler < 0)
        return 0;
    const fg_instr *handler = &a->in->instrs[a->in->handlers[yield->handler].target];
    return fg_since312_waits_outermost(a, i) || (handler->op == FG_OP_CLEANUP_THROW && handler->handler < 0);
}

int32_t fg_since313_lower_group(fg_lowering *l, int32_t i, fg_status *st)
{
    switch (l->a->in->instrs[i].op) {
    case FG_OP_LOAD_FAST:
    case FG_OP_STORE_FAST: return lower_pair(l, i);
    case FG_OP_COMPARE_OP: return lower_compare(l, i);
    default: return fg_since312_lower_group(l, i, st);
    }
}

fg_status fg_since313_lower_one(fg_lowering *l, int32_t i, int *done)
{
    const fg_assembler *a = l->a;
    const fg_instr *instr = &a->in->instrs[i];
    *done = 1;
    switch (instr->op) {
    case FG_OP_LOAD_FAST:
        fg_lower_put(l, i, (instr->flags & (FG_IF_CHECK | FG_IF_CLOSURE)) == FG_IF_CHECK ? FG_RAW_LOAD_FAST_CHECK : FG_RAW_LOAD_FAST,
                     instr->arg);
        return FG_OK;
    case FG_OP_JUMP_IF_TRUE:
    case FG_OP_JUMP_IF_FALSE:
    case FG_OP_UNARY_NOT:
        if (!(instr->flags & FG_IF_EXACT))
            fg_lower_put(l, i, FG_RAW_TO_BOOL, 0);
        put_test(l, i);
        return FG_OK;
    case FG_OP_RESUME:
        fg_lower_put(l, i, FG_RAW_RESUME, instr->arg | (instr->arg > 0 && i > 0 && waits_under_one(a, i - 1) ? FG_RESUME_OUTERMOST : 0));
        return FG_OK;
    default: return fg_since312_lower_one(l, i, done);
    }
}

void fg_version_lower_call(fg_lowering *l, int32_t i, int32_t counted)
{
    fg_lower_put(l, i, l->a->in->instrs[i].op == FG_OP_CALL_KW ? FG_RAW_CALL_KW : FG_RAW_CALL, counted);
}
