/* RETURN_CONST in both directions (from312to313.h). */
#include "runtime/cpython/from312to313/from312to313.h"

int fg_version_falls_through(int op)
{
    return op != FG_RAW_RETURN_CONST;
}

int fg_from312to313_may_raise(const fg_raw *op)
{
    return op->op != FG_RAW_RETURN_CONST;
}

int fg_from312to313_shape(const fg_raw *op, fg_raw_shape *out)
{
    *out = (fg_raw_shape){0, 0, 0};
    return op->op == FG_RAW_RETURN_CONST;
}

void fg_version_lower_not_taken(fg_lowering *l, int32_t source)
{
    (void)l, (void)source;
}

fg_status fg_from312to313_decode_one(fg_decoder *d, int32_t i, PyObject *object, int *done)
{
    const fg_raw *op = &d->raw.ops[i];
    if (op->op != FG_RAW_RETURN_CONST)
        return FG_OK;
    fg_decoder_put(d, op, FG_OP_LOAD_CONST, 0)->obj = object;
    fg_decoder_settle(d);
    fg_decoder_put(d, op, FG_OP_RETURN_VALUE, 0)->flags = FG_IF_FUSED;
    *done = FG_DECODED_LAST;
    return FG_OK;
}

int32_t fg_from312to313_lower_group(fg_lowering *l, int32_t i, fg_status *st)
{
    fg_assembler *a = l->a;
    const fg_instr *instr = &a->in->instrs[i];
    int32_t index = 0;
    if (instr->op != FG_OP_LOAD_CONST || !fg_lower_follows(a, i + 1, FG_OP_RETURN_VALUE) || !(instr[1].flags & FG_IF_FUSED))
        return 0;
    if ((*st = fg_lower_constant(a, instr, &index)) != FG_OK)
        return -1;
    fg_lower_put(l, i, FG_RAW_RETURN_CONST, index);
    return 2;
}
