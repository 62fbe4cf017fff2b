/* Stack effects of CPython 3.14: what it has in common with later versions, and the end of its loops, which is an END_FOR and a POP_ITER. */
#include "runtime/cpython/since314/since314.h"
#include "runtime/cpython/until314/until314.h"

_Static_assert(PY_VERSION_HEX >> 16 == 0x030e, "this folder is for CPython 3.14");

int fg_version_may_raise(const fg_raw *op)
{
    return fg_since314_may_raise(op);
}

int fg_version_shape(const fg_raw *op, int jump, fg_raw_shape *out)
{
    (void)jump;
    if (op->op != FG_RAW_POP_ITER)
        return fg_until314_shape(op, out) || fg_since314_shape(op, out);
    *out = (fg_raw_shape){1, 0, 0};
    return 1;
}

fg_status fg_version_step(fg_raw_code *raw, int32_t i, fg_raw_stack *stack, int jump, int *done)
{
    if (raw->ops[i].op != FG_RAW_POP_ITER || stack->depth < 1 || stack->types[stack->depth - 1] != FG_SLOT_SPENT)
        return fg_since314_step(raw, i, stack, jump, done);
    stack->depth--;
    *done = 1;
    return FG_OK;
}

const char *fg_version_operand(const fg_raw_code *raw, int32_t i)
{
    const fg_raw *op = &raw->ops[i];
    if (op->op == FG_RAW_LOAD_COMMON_CONSTANT && op->arg > FG_COMMON_ANY)
        return "LOAD_COMMON_CONSTANT argument out of range";
    return fg_since314_operand(raw, i);
}
