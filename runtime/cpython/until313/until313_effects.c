/* Stack effects of what CPython 3.11 to 3.13 have in common (until313.h). */
#include "runtime/cpython/until313/until313.h"
#include "runtime/cpython/until314/until314.h"

int fg_until313_may_raise(const fg_raw *op)
{
    return op->op != FG_RAW_LOAD_ASSERTION_ERROR;
}

int fg_until313_shape(const fg_raw *op, fg_raw_shape *out)
{
    int64_t pops = 0, pushes = 0, reach = 0;
    switch (op->op) {
    case FG_RAW_LOAD_ASSERTION_ERROR: pushes = 1; break;
    case FG_RAW_BEFORE_WITH:
    case FG_RAW_BEFORE_ASYNC_WITH: pops = 1, pushes = 2; break;
    case FG_RAW_WITH_EXCEPT_START: pushes = 1, reach = 4; break;
    case FG_RAW_BINARY_SUBSCR: pops = 2, pushes = 1; break;
    case FG_RAW_BUILD_CONST_KEY_MAP: pops = (int64_t)op->arg + 1, pushes = 1; break;
    default: return fg_until314_shape(op, out);
    }
    *out = (fg_raw_shape){pops, pushes, reach};
    return 1;
}

fg_status fg_until313_step(fg_raw_code *raw, int32_t i, fg_raw_stack *stack, int *done)
{
    if (raw->ops[i].op != FG_RAW_CALL_FUNCTION_EX)
        return FG_OK;
    *done = 1;
    const int32_t arguments = 1 + (int32_t)(raw->ops[i].arg & 1), pair = stack->depth - arguments - 2;
    if (pair < 0 || !fg_raw_are_values(stack, stack->depth - arguments, arguments) || !fg_raw_is_null_callee(stack, pair))
        return fg_raw_refuse(raw, "CALL_FUNCTION_EX without a callee and a NULL");
    stack->depth = pair;
    return fg_raw_push(raw, stack, FG_SLOT_VALUE);
}
