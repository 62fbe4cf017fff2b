/* Stack effects and operands of what CPython 3.12 and later versions have in common (since312.h).
 *
 * FOR_ITER leaves its iterator and a second slot to the END_FOR it jumps to (the interpreter passes over both where the iterator is one of its own),
 * SEND its receiver below the result to END_SEND; CLEANUP_THROW leaves the same picture as SEND.
 */
#include "runtime/cpython/canonical.h"
#include "runtime/cpython/since312/since312.h"
#include "runtime/cpython/since312/since312_intrinsics.h"

int fg_since312_may_raise(const fg_raw *op)
{
    switch (op->op) {
    case FG_RAW_LOAD_FAST:
    case FG_RAW_LOAD_FAST_AND_CLEAR:
    case FG_RAW_END_FOR:
    case FG_RAW_END_SEND:
    case FG_RAW_POP_JUMP_IF_NONE:
    case FG_RAW_POP_JUMP_IF_NOT_NONE: return 0;
    case FG_RAW_CALL_INTRINSIC_1:
    case FG_RAW_CALL_INTRINSIC_2: return fg_cop_raises(fg_intrinsic_op(op->op, op->arg)) != 0;
    default: return 1;
    }
}

int fg_since312_shape(const fg_raw *op, fg_raw_shape *out)
{
    int64_t pops = 0, pushes = 0;
    switch ((fg_raw_op)op->op) {
    case FG_RAW_LOAD_FAST_CHECK:
    case FG_RAW_LOAD_FAST_AND_CLEAR:
    case FG_RAW_LOAD_LOCALS: pushes = 1; break;
    case FG_RAW_POP_JUMP_IF_FALSE:
    case FG_RAW_POP_JUMP_IF_TRUE:
    case FG_RAW_POP_JUMP_IF_NONE:
    case FG_RAW_POP_JUMP_IF_NOT_NONE: pops = 1; break;
    case FG_RAW_LOAD_FROM_DICT_OR_GLOBALS:
    case FG_RAW_LOAD_FROM_DICT_OR_DEREF:
    case FG_RAW_CALL_INTRINSIC_1: pops = pushes = 1; break;
    case FG_RAW_CALL_INTRINSIC_2: pops = 2, pushes = 1; break;
    case FG_RAW_BINARY_SLICE: pops = 3, pushes = 1; break;
    case FG_RAW_STORE_SLICE: pops = 4; break;
    default: return 0;
    }
    *out = (fg_raw_shape){pops, pushes, 0};
    return 1;
}

fg_status fg_since312_turn(fg_raw_code *raw, fg_raw_stack *stack, int32_t n, const uint8_t *types, int n_types, const char *why)
{
    fg_status st = FG_OK;
    if (stack->depth < n || !fg_raw_are_values(stack, stack->depth - n, n))
        return fg_raw_refuse(raw, why);
    stack->depth -= n;
    for (int k = 0; k < n_types && st == FG_OK; k++)
        st = fg_raw_push(raw, stack, types[k]);
    return st;
}

static int leads_to(const fg_raw_code *raw, const fg_raw *op, int wanted)
{
    return op->target >= 0 && raw->ops[op->target].op == wanted;
}

fg_status fg_since312_step(fg_raw_code *raw, int32_t i, fg_raw_stack *stack, int jump, int *done)
{
    static const uint8_t pair[] = {FG_SLOT_VALUE, FG_SLOT_SELF}, two[] = {FG_SLOT_VALUE, FG_SLOT_VALUE},
                         spent[] = {FG_SLOT_SPENT, FG_SLOT_SPENT}, sent[] = {FG_SLOT_SPENT, FG_SLOT_VALUE};
    const fg_raw *op = &raw->ops[i];
    const int32_t depth = stack->depth;
    *done = 1;
    switch (op->op) {
    case FG_RAW_LOAD_ATTR: return fg_since312_turn(raw, stack, 1, pair, 1 + (int)(op->arg & 1), "LOAD_ATTR of no value");
    case FG_RAW_LOAD_SUPER_ATTR: return fg_since312_turn(raw, stack, 3, pair, 1 + (int)(op->arg & 1), "LOAD_SUPER_ATTR of no values");
    case FG_RAW_FOR_ITER:
        if (!leads_to(raw, op, FG_RAW_END_FOR))
            return fg_raw_refuse(raw, "FOR_ITER does not lead to END_FOR");
        return fg_since312_turn(raw, stack, 1, jump ? spent : two, 2, "FOR_ITER of no value");
    case FG_RAW_SEND:
        if (!leads_to(raw, op, FG_RAW_END_SEND))
            return fg_raw_refuse(raw, "SEND does not lead to END_SEND");
        return fg_since312_turn(raw, stack, 2, jump ? sent : two, 2, "SEND of no value");
    case FG_RAW_CLEANUP_THROW: return fg_since312_turn(raw, stack, 3, sent, 2, "CLEANUP_THROW of no values");
    case FG_RAW_END_SEND:
        if (depth < 2 || stack->types[depth - 1] != FG_SLOT_VALUE || stack->types[depth - 2] != FG_SLOT_SPENT)
            return fg_raw_refuse(raw, "END_SEND without its SEND");
        stack->types[depth - 2] = FG_SLOT_VALUE;
        stack->depth--;
        return FG_OK;
    default: *done = 0; return FG_OK;
    }
}

const char *fg_since312_operand(const fg_raw_code *raw, int32_t i)
{
    const fg_raw *op = &raw->ops[i];
    switch (op->op) {
    case FG_RAW_LOAD_FROM_DICT_OR_DEREF:
        return PyBytes_AS_STRING(raw->code->co_localspluskinds)[op->arg] & 0xc0 ? NULL : "cell operation on a slot that is no cell";
    case FG_RAW_COMPARE_OP: return op->arg >> FG_COMPARE_SHIFT <= 5 ? NULL : "COMPARE_OP argument out of range";
    case FG_RAW_CALL_INTRINSIC_1:
    case FG_RAW_CALL_INTRINSIC_2: return fg_intrinsic_op(op->op, op->arg) >= 0 ? NULL : "unknown intrinsic";
    default: return NULL;
    }
}
