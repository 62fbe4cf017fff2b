/* Stack effects of CPython 3.15: what it has in common with 3.14, and iterators, which take two slots until the end of their loop: the second has the index into
 * a list or tuple that stands for its own iterator, or NULL.
 */
#include "runtime/cpython/since314/since314.h"
#include "runtime/cpython/v315/v315_bits.h"

_Static_assert(PY_VERSION_HEX >> 16 == 0x030f, "this folder is for CPython 3.15");

int fg_version_may_raise(const fg_raw *op)
{
    return fg_since314_may_raise(op);
}

int fg_version_shape(const fg_raw *op, int jump, fg_raw_shape *out)
{
    (void)jump;
    if (op->op != FG_RAW_END_ASYNC_FOR)
        return fg_since314_shape(op, out);
    *out = (fg_raw_shape){2, 0, 0};
    return 1;
}

/* An iterator in the two slots from `at` up. */
static int is_iterator(const fg_raw_stack *stack, int32_t at)
{
    return at >= 0 && stack->types[at] == FG_SLOT_VALUE && (stack->types[at + 1] == FG_SLOT_SELF || stack->types[at + 1] == FG_SLOT_NULL);
}

static int is_spent(const fg_raw_stack *stack, int32_t at, int32_t n)
{
    for (int32_t i = at; at >= 0 && i < at + n; i++)
        if (stack->types[i] != FG_SLOT_SPENT)
            return 0;
    return at >= 0;
}

static int leads_to(const fg_raw_code *raw, const fg_raw *op, int wanted)
{
    return op->target >= 0 && raw->ops[op->target].op == wanted;
}

fg_status fg_version_step(fg_raw_code *raw, int32_t i, fg_raw_stack *stack, int jump, int *done)
{
    static const uint8_t pair[] = {FG_SLOT_VALUE, FG_SLOT_SELF};
    const fg_raw *op = &raw->ops[i];
    const int32_t depth = stack->depth;
    *done = 1;
    switch (op->op) {
    case FG_RAW_GET_ITER: return fg_since312_turn(raw, stack, 1, pair, 2, "GET_ITER of no value");
    case FG_RAW_FOR_ITER:
        if (!leads_to(raw, op, FG_RAW_END_FOR) || !is_iterator(stack, depth - 2))
            return fg_raw_refuse(raw, "FOR_ITER of no iterator, or it does not lead to END_FOR");
        if (jump)
            stack->types[depth - 1] = stack->types[depth - 2] = FG_SLOT_SPENT;
        return fg_raw_push(raw, stack, jump ? FG_SLOT_SPENT : FG_SLOT_VALUE);
    case FG_RAW_SEND:
        if (!leads_to(raw, op, FG_RAW_END_SEND) || !is_iterator(stack, depth - 3) || stack->types[depth - 1] != FG_SLOT_VALUE)
            return fg_raw_refuse(raw, "SEND to no iterator, or it does not lead to END_SEND");
        if (jump)
            stack->types[depth - 3] = stack->types[depth - 2] = FG_SLOT_SPENT;
        return FG_OK;
    case FG_RAW_CLEANUP_THROW:
        if (!is_iterator(stack, depth - 4) || !fg_raw_are_values(stack, depth - 2, 2))
            return fg_raw_refuse(raw, "CLEANUP_THROW without its iterator");
        stack->types[depth - 4] = stack->types[depth - 3] = FG_SLOT_SPENT;
        stack->depth--;
        return FG_OK;
    case FG_RAW_END_SEND:
        if (!is_spent(stack, depth - 3, 2) || stack->types[depth - 1] != FG_SLOT_VALUE)
            return fg_raw_refuse(raw, "END_SEND without its SEND");
        stack->types[depth - 3] = FG_SLOT_VALUE;
        stack->depth -= 2;
        return FG_OK;
    case FG_RAW_POP_ITER:
        if (!is_spent(stack, depth - 2, 2) && !is_iterator(stack, depth - 2))
            return fg_raw_refuse(raw, "POP_ITER of no iterator");
        stack->depth -= 2;
        return FG_OK;
    default: return fg_since314_step(raw, i, stack, jump, done);
    }
}

const char *fg_version_operand(const fg_raw_code *raw, int32_t i)
{
    const fg_raw *op = &raw->ops[i];
    switch (op->op) {
    case FG_RAW_LOAD_COMMON_CONSTANT: return op->arg < FG_N_COMMON ? NULL : "LOAD_COMMON_CONSTANT argument out of range";
    case FG_RAW_GET_ITER: return op->arg == FG_GET_ITER_PLAIN || op->arg == FG_GET_ITER_DELEGATES ? NULL : "GET_ITER argument out of range";
    case FG_RAW_IMPORT_NAME: return (op->arg & 3) <= 2 ? NULL : "IMPORT_NAME argument out of range";
    default: return fg_since314_operand(raw, i);
    }
}
