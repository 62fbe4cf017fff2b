/* Stack effects and operands of CPython 3.12: what it has in common with older and with later versions, and its END_FOR. */
#include "runtime/cpython/from312to313/from312to313.h"
#include "runtime/cpython/since312/since312.h"
#include "runtime/cpython/until312/until312.h"
#include "runtime/cpython/until313/until313.h"

_Static_assert(PY_VERSION_HEX >> 16 == 0x030c, "this folder is for CPython 3.12");

int fg_version_may_raise(const fg_raw *op)
{
    return fg_until312_may_raise(op) && fg_until313_may_raise(op) && fg_from312to313_may_raise(op) && fg_since312_may_raise(op);
}

int fg_version_shape(const fg_raw *op, int jump, fg_raw_shape *out)
{
    (void)jump;
    return fg_until312_shape(op, out) || fg_until313_shape(op, out) || fg_from312to313_shape(op, out) || fg_since312_shape(op, out);
}

fg_status fg_version_step(fg_raw_code *raw, int32_t i, fg_raw_stack *stack, int jump, int *done)
{
    const int32_t depth = stack->depth;
    if (raw->ops[i].op != FG_RAW_END_FOR) {
        const fg_status st = fg_until313_step(raw, i, stack, done);
        return st != FG_OK || *done ? st : fg_since312_step(raw, i, stack, jump, done);
    }
    if (depth < 2 || stack->types[depth - 1] != FG_SLOT_SPENT || stack->types[depth - 2] != FG_SLOT_SPENT)
        return fg_raw_refuse(raw, "END_FOR without its loop");
    stack->depth -= 2;
    *done = 1;
    return FG_OK;
}

const char *fg_version_operand(const fg_raw_code *raw, int32_t i)
{
    const fg_raw *op = &raw->ops[i];
    if (op->op == FG_RAW_KW_NAMES && (i + 1 >= raw->n_ops || op[1].op != FG_RAW_CALL))
        return "KW_NAMES without its call";
    const char *why = fg_until312_operand(raw, i);
    return why != NULL ? why : fg_since312_operand(raw, i);
}
