/* Stack effects of CPython 3.13: what it has in common with others, and the end of its loops, which is an END_FOR and a POP_TOP. */
#include "runtime/cpython/since313/since313.h"
#include "runtime/cpython/from312to313/from312to313.h"
#include "runtime/cpython/until313/until313.h"

_Static_assert(PY_VERSION_HEX >> 16 == 0x030d, "this folder is for CPython 3.13");

int fg_version_may_raise(const fg_raw *op)
{
    return fg_until313_may_raise(op) && fg_from312to313_may_raise(op) && fg_since313_may_raise(op);
}

int fg_version_shape(const fg_raw *op, int jump, fg_raw_shape *out)
{
    (void)jump;
    return fg_until313_shape(op, out) || fg_from312to313_shape(op, out) || fg_since313_shape(op, out);
}

fg_status fg_version_step(fg_raw_code *raw, int32_t i, fg_raw_stack *stack, int jump, int *done)
{
    const fg_raw *op = &raw->ops[i];
    const int on_spent = stack->depth > 0 && stack->types[stack->depth - 1] == FG_SLOT_SPENT;
    switch (op->op) {
    case FG_RAW_END_FOR:
        if (!on_spent || i + 1 >= raw->n_ops || op[1].op != FG_RAW_POP_TOP || op[1].state >= 0)
            return fg_raw_refuse(raw, "END_FOR without its loop or its POP_TOP");
        stack->depth--;
        *done = 1;
        return FG_OK;
    case FG_RAW_POP_TOP:
        if (!on_spent || i < 1 || op[-1].op != FG_RAW_END_FOR)
            return FG_OK;
        stack->depth--;
        *done = 1;
        return FG_OK;
    default: {
        const fg_status st = fg_until313_step(raw, i, stack, done);
        return st != FG_OK || *done ? st : fg_since313_step(raw, i, stack, jump, done);
    }
    }
}

const char *fg_version_operand(const fg_raw_code *raw, int32_t i)
{
    return fg_since313_operand(raw, i);
}
