/* Stack effects and operands of what CPython 3.13 and later versions have in common (since313.h): calls with keyword names on the stack, pairs of loads and
 * stores, the first half of a loop's end.
 */
#include "runtime/cpython/since313/since313.h"

int fg_since313_may_raise(const fg_raw *op)
{
    switch (op->op) {
    case FG_RAW_LOAD_FAST_LOAD_FAST:
    case FG_RAW_STORE_FAST_LOAD_FAST:
    case FG_RAW_STORE_FAST_STORE_FAST:
    case FG_RAW_SET_FUNCTION_ATTRIBUTE:
    case FG_RAW_UNARY_NOT: /* of an exact bool, as the branches */
    case FG_RAW_POP_JUMP_IF_TRUE:
    case FG_RAW_POP_JUMP_IF_FALSE: return 0;
    default: return fg_since312_may_raise(op);
    }
}

int fg_since313_shape(const fg_raw *op, fg_raw_shape *out)
{
    int64_t pops = 0, pushes = 0;
    switch ((fg_raw_op)op->op) {
    case FG_RAW_LOAD_FAST_LOAD_FAST: pushes = 2; break;
    case FG_RAW_STORE_FAST_STORE_FAST: pops = 2; break;
    case FG_RAW_STORE_FAST_LOAD_FAST:
    case FG_RAW_TO_BOOL:
    case FG_RAW_CONVERT_VALUE:
    case FG_RAW_FORMAT_SIMPLE:
    case FG_RAW_MAKE_FUNCTION: pops = pushes = 1; break;
    case FG_RAW_FORMAT_WITH_SPEC:
    case FG_RAW_SET_FUNCTION_ATTRIBUTE: pops = 2, pushes = 1; break;
    default: return fg_since312_shape(op, out);
    }
    *out = (fg_raw_shape){pops, pushes, 0};
    return 1;
}

fg_status fg_since313_step(fg_raw_code *raw, int32_t i, fg_raw_stack *stack, int jump, int *done)
{
    const fg_raw *op = &raw->ops[i];
    const int32_t n = (int32_t)op->arg, depth = stack->depth;
    *done = 1;
    switch (op->op) {
    case FG_RAW_CALL_KW:
        if (depth < n + 3 || !fg_raw_are_values(stack, depth - n - 1, n + 1) || !fg_raw_is_callee(stack, depth - n - 3))
            return fg_raw_refuse(raw, "CALL_KW without a callee pair, or with arguments that are no values");
        stack->depth -= n + 3;
        return fg_raw_push(raw, stack, FG_SLOT_VALUE);
    default: return fg_since312_step(raw, i, stack, jump, done);
    }
}

const char *fg_since313_operand(const fg_raw_code *raw, int32_t i)
{
    const fg_raw *op = &raw->ops[i];
    switch (op->op) {
    case FG_RAW_CALL_KW:
        if (i < 1 || op->state >= 0 || op[-1].op != FG_RAW_LOAD_CONST ||
            !PyTuple_CheckExact(PyTuple_GET_ITEM(raw->code->co_consts, op[-1].arg)))
            return "keyword names are no constant tuple";
        break;
    case FG_RAW_CONVERT_VALUE: return op->arg >= 1 && op->arg <= 3 ? NULL : "CONVERT_VALUE argument out of range";
    case FG_RAW_SET_FUNCTION_ATTRIBUTE:
        return fg_function_attribute_is_known(op->arg) ? NULL : "SET_FUNCTION_ATTRIBUTE argument out of range";
    default: break;
    }
    return fg_since312_operand(raw, i);
}
