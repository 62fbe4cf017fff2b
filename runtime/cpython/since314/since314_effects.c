/* Stack effects and operands of what CPython 3.14 and later versions have in common (since314.h). */
#include "runtime/cpython/since314/since314.h"

int fg_version_falls_through(int op)
{
    (void)op;
    return 1;
}

int fg_since314_may_raise(const fg_raw *op)
{
    switch (op->op) {
    case FG_RAW_NOT_TAKEN:
    case FG_RAW_POP_ITER:
    case FG_RAW_LOAD_SMALL_INT:
    case FG_RAW_LOAD_COMMON_CONSTANT:
    case FG_RAW_LOAD_FAST_BORROW:
    case FG_RAW_LOAD_FAST_BORROW_LOAD_FAST_BORROW: return 0;
    default: return fg_since313_may_raise(op);
    }
}

int fg_since314_shape(const fg_raw *op, fg_raw_shape *out)
{
    int64_t pops = 0, pushes = 0, reach = 0;
    switch (op->op) {
    case FG_RAW_NOT_TAKEN: break;
    case FG_RAW_LOAD_SMALL_INT:
    case FG_RAW_LOAD_COMMON_CONSTANT:
    case FG_RAW_LOAD_FAST_BORROW: pushes = 1; break;
    case FG_RAW_LOAD_FAST_BORROW_LOAD_FAST_BORROW: pushes = 2; break;
    case FG_RAW_BUILD_INTERPOLATION: pops = 2 + (op->arg & 1), pushes = 1; break;
    case FG_RAW_BUILD_TEMPLATE: pops = 2, pushes = 1; break;
    case FG_RAW_WITH_EXCEPT_START: pushes = 1, reach = 5; break;
    default: return fg_since313_shape(op, out);
    }
    *out = (fg_raw_shape){pops, pushes, reach};
    return 1;
}

static fg_status call_ex(fg_raw_code *raw, fg_raw_stack *stack)
{
    const int32_t top = stack->depth - 1, pair = stack->depth - 4;
    if (pair < 0 || (stack->types[top] != FG_SLOT_VALUE && stack->types[top] != FG_SLOT_NULL) || !fg_raw_are_values(stack, top - 1, 1) ||
        !fg_raw_is_null_callee(stack, pair))
        return fg_raw_refuse(raw, "CALL_FUNCTION_EX without a callee and a NULL");
    stack->depth = pair;
    return fg_raw_push(raw, stack, FG_SLOT_VALUE);
}

fg_status fg_since314_step(fg_raw_code *raw, int32_t i, fg_raw_stack *stack, int jump, int *done)
{
    static const uint8_t pair[] = {FG_SLOT_VALUE, FG_SLOT_SELF};
    const fg_raw *op = &raw->ops[i];
    const int top = stack->depth > 0 ? stack->types[stack->depth - 1] : FG_SLOT_VALUE;
    *done = 1;
    switch (op->op) {
    case FG_RAW_LOAD_SPECIAL: return fg_since312_turn(raw, stack, 1, pair, 2, "LOAD_SPECIAL of no value");
    case FG_RAW_CALL_FUNCTION_EX: return call_ex(raw, stack);
    case FG_RAW_END_FOR:
        if (top != FG_SLOT_SPENT || i + 1 >= raw->n_ops || op[1].op != FG_RAW_POP_ITER || op[1].state >= 0)
            return fg_raw_refuse(raw, "END_FOR without its loop or its POP_ITER");
        stack->depth--;
        return FG_OK;
    case FG_RAW_POP_TOP:
        if (top != FG_SLOT_SELF && top != FG_SLOT_NULL)
            break;
        stack->depth--;
        return FG_OK;
    default: return fg_since313_step(raw, i, stack, jump, done);
    }
    *done = 0;
    return FG_OK;
}

const char *fg_since314_operand(const fg_raw_code *raw, int32_t i)
{
    const fg_raw *op = &raw->ops[i];
    switch (op->op) {
    case FG_RAW_LOAD_SMALL_INT: return op->arg <= FG_MOST_SMALL_INT ? NULL : "LOAD_SMALL_INT argument out of range";
    case FG_RAW_LOAD_SPECIAL: return op->arg <= FG_SPECIAL_ASYNC_EXIT ? NULL : "LOAD_SPECIAL argument out of range";
    default: return fg_since313_operand(raw, i);
    }
}
