/* Real forms of what CPython 3.12 and later versions have in common: the mirror of since312_decode.c.
 *
 * A loop's end is two places: FOR_ITER jumps to an END_FOR, which stands in front of the code that other jumps to the same instruction lead to, and so
 * does SEND to an END_SEND. Both are put in front of their instruction; code that would fall into them jumps over. CLEANUP_THROW leaves what SEND
 * leaves: the jump behind it lands at the END_SEND too, or else an END_SEND of its own follows.
 */
#include "runtime/cpython/since312/since312.h"
#include "runtime/cpython/since312/since312_intrinsics.h"

int fg_version_backward(int op, int quiet)
{
    return op == FG_RAW_END_ASYNC_FOR  ? op
           : op != FG_RAW_JUMP_FORWARD ? 0
           : quiet                     ? FG_RAW_JUMP_BACKWARD_NO_INTERRUPT
                                       : FG_RAW_JUMP_BACKWARD;
}

/* Six of any may be in front of it: two ends of two instructions, and jumps over them. */
size_t fg_version_most_lowered(int op)
{
    const int branches = op >= FG_OP_JUMP_IF_TRUE && op <= FG_OP_JUMP_IF_NOT_NONE,
              enters = op == FG_OP_BEFORE_WITH || op == FG_OP_BEFORE_ASYNC_WITH;
    return 6 + (enters ? 8 : op == FG_OP_CLEANUP_THROW || op == FG_OP_POP_TOP || branches ? 3 : 0);
}

fg_status fg_version_lower_begin(fg_lowering *l)
{
    fg_assembler *a = l->a;
    const int32_t n = a->in->n_instrs;
    for (int k = FG_LAND_END_FOR; k < FG_N_LANDINGS; k++) {
        a->landings[k] = fg_arena_alloc(&a->arena, (size_t)n * sizeof *a->landings[k]);
        a->leaders[k] = fg_arena_alloc(&a->arena, (size_t)n * sizeof *a->leaders[k]);
        if (!a->landings[k] || !a->leaders[k])
            return FG_ERR_NOMEM;
        for (int32_t i = 0; i < n; i++)
            a->landings[k][i] = a->leaders[k][i] = -1;
    }
    for (int32_t i = n; i-- > 0;) {
        const fg_instr *instr = &a->in->instrs[i];
        if (a->depths[i] >= 0 && (instr->op == FG_OP_FOR_ITER || instr->op == FG_OP_SEND))
            a->leaders[instr->op == FG_OP_FOR_ITER ? FG_LAND_END_FOR : FG_LAND_END_SEND][instr->target] = i;
    }
    return FG_OK;
}

static int falls_into(const fg_assembler *a, int32_t i)
{
    return i > 0 && a->depths[i - 1] >= 0 && fg_cop_falls_through(a->in->instrs[i - 1].op);
}

/* 1 if the END_SEND in front of instruction i is for a CLEANUP_THROW right before it, too. */
static int ends_cleanup(const fg_assembler *a, int32_t i)
{
    return falls_into(a, i) && a->in->instrs[i - 1].op == FG_OP_CLEANUP_THROW && a->leaders[FG_LAND_END_SEND][i] >= 0 &&
           a->leaders[FG_LAND_END_FOR][i] < 0;
}

static void lower_end_send(fg_lowering *l, int32_t leader)
{
    const fg_asm *in = l->a->in;
    const int32_t handler = in->instrs[leader].handler;
    fg_lower_put(l, leader, FG_RAW_END_SEND, 0);
    if (handler < 0 || in->instrs[in->handlers[handler].target].op != FG_OP_END_ASYNC_FOR)
        return;
    l->depth--; /* the way of an asynchronous loop into its body */
    fg_version_lower_not_taken(l, leader);
}

fg_status fg_version_lower_edge(fg_lowering *l, int32_t i)
{
    fg_assembler *a = l->a;
    int open = falls_into(a, i) && !ends_cleanup(a, i);
    for (int k = FG_LAND_END_FOR; k < FG_N_LANDINGS; k++) {
        const int32_t leader = a->leaders[k][i];
        if (leader < 0)
            continue;
        l->depth = a->state[i] >= 0 ? fg_items_real(a, &a->states[a->state[i]], 0) : 0;
        if (open)
            fg_lower_put(l, i, FG_RAW_JUMP_FORWARD, 0)->target = i;
        a->landings[k][i] = a->n_out;
        l->depth += (k == FG_LAND_END_FOR ? 2 : 1) + FG_ITERATORS_ARE_WIDE;
        if (k == FG_LAND_END_FOR)
            fg_version_lower_end_for(l, leader);
        else
            lower_end_send(l, leader);
        open = 1;
    }
    if (ends_cleanup(a, i))
        l->is_spent = 0;
    return FG_OK;
}

int32_t fg_since312_lower_group(fg_lowering *l, int32_t i, fg_status *st)
{
    fg_assembler *a = l->a;
    const fg_instr *instr = &a->in->instrs[i];
    int32_t index = 0;
    switch (instr->op) {
    case FG_OP_BUILD_SLICE:
        if (instr->arg != 2 || !(fg_lower_follows(a, i + 1, FG_OP_BINARY_SUBSCR) || fg_lower_follows(a, i + 1, FG_OP_STORE_SUBSCR)))
            return 0;
        fg_lower_put(l, i, instr[1].op == FG_OP_BINARY_SUBSCR ? FG_RAW_BINARY_SLICE : FG_RAW_STORE_SLICE, 0);
        return 2;
    case FG_OP_CALL_SUPER:
        if (!fg_assembler_super_attr(a, i)) {
            if (!instr->arg)
                *st = fg_lower_refuse(a, FG_ERR_UNSUPPORTED, "CALL_SUPER 0 without its attribute");
            return 0;
        }
        if ((*st = fg_lower_name(a, &instr[1], &index)) != FG_OK)
            return -1;
        fg_lower_put(l, i, FG_RAW_LOAD_SUPER_ATTR, index << 2 | (instr->arg ? 2 : 0) | (instr[1].op == FG_OP_LOAD_METHOD));
        return 2;
    default: return 0;
    }
}

void fg_since312_branch(fg_lowering *l, int32_t i, int op, int opposite)
{
    const fg_instr *instr = &l->a->in->instrs[i];
    if (instr->target > i) {
        fg_lower_put(l, i, op, 0)->target = instr->target;
        l->depth--;
        fg_version_lower_not_taken(l, i);
        return;
    }
    fg_lower_put(l, i, opposite, 0)->target = i + 1;
    l->depth--;
    fg_version_lower_not_taken(l, i);
    fg_lower_put(l, i, FG_RAW_JUMP_FORWARD, 0)->target = instr->target;
}

int fg_since312_waits_outermost(const fg_assembler *a, int32_t i)
{
    const int32_t h = a->in->instrs[i].handler;
    return h < 0 || a->in->instrs[a->in->handlers[h].target].op == FG_OP_STOPITERATION_ERROR;
}

/* Mirrors compare_masks of Python/compile.c: unordered 1, less 2, greater 4, equal 8. */
int32_t fg_since312_compare_mask(int32_t op)
{
    static const uint8_t masks[] = {2, 2 | 8, 8, 1 | 2 | 4, 4, 4 | 8};
    return masks[op];
}

fg_status fg_since312_lower_one(fg_lowering *l, int32_t i, int *done)
{
    fg_assembler *a = l->a;
    const fg_instr *instr = &a->in->instrs[i];
    const int32_t n = instr->arg;
    int32_t index = 0;
    fg_status st;
    *done = 1;
    switch (instr->op) {
    case FG_OP_LOAD_ATTR:
    case FG_OP_LOAD_METHOD:
        if ((st = fg_lower_name(a, instr, &index)) != FG_OK)
            return st;
        fg_lower_put(l, i, FG_RAW_LOAD_ATTR, index << 1 | (instr->op == FG_OP_LOAD_METHOD));
        return FG_OK;
    case FG_OP_COMPARE_OP: fg_lower_put(l, i, FG_RAW_COMPARE_OP, n << FG_COMPARE_SHIFT | fg_since312_compare_mask(n)); return FG_OK;
    case FG_OP_JUMP_IF_NONE: fg_since312_branch(l, i, FG_RAW_POP_JUMP_IF_NONE, FG_RAW_POP_JUMP_IF_NOT_NONE); return FG_OK;
    case FG_OP_JUMP_IF_NOT_NONE: fg_since312_branch(l, i, FG_RAW_POP_JUMP_IF_NOT_NONE, FG_RAW_POP_JUMP_IF_NONE); return FG_OK;
    case FG_OP_FOR_ITER:
    case FG_OP_SEND: {
        fg_real *real = fg_lower_put(l, i, instr->op == FG_OP_FOR_ITER ? FG_RAW_FOR_ITER : FG_RAW_SEND, 0);
        real->target = instr->target;
        real->landing = instr->op == FG_OP_FOR_ITER ? FG_LAND_END_FOR : FG_LAND_END_SEND;
        return FG_OK;
    }
    case FG_OP_CLEANUP_THROW:
        fg_lower_put(l, i, FG_RAW_CLEANUP_THROW, 0);
        if (i + 1 < a->in->n_instrs && instr[1].op == FG_OP_JUMP && !(a->at[i + 1] & FG_AT_TARGET) &&
            a->leaders[FG_LAND_END_SEND][instr[1].target] >= 0)
            l->is_spent = 1;
        else if (i + 1 >= a->in->n_instrs || !ends_cleanup(a, i + 1))
            fg_lower_put(l, i, FG_RAW_END_SEND, 0);
        return FG_OK;
    case FG_OP_JUMP: {
        fg_real *real = fg_lower_put(l, i, FG_RAW_JUMP_FORWARD, 0);
        real->target = instr->target;
        real->landing = l->is_spent ? FG_LAND_END_SEND : FG_LAND_CODE;
        l->is_spent = 0;
        return FG_OK;
    }
    default: {
        const fg_intrinsic *intrinsic = fg_intrinsic_of(instr->op);
        *done = intrinsic != NULL;
        if (intrinsic != NULL)
            fg_lower_put(l, i, intrinsic->raw, intrinsic->number);
        return FG_OK;
    }
    }
}
