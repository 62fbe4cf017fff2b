/* Real forms of canonical instructions that only CPython 3.15 has: the mirror of v315_decode.c.
 *
 * In code of ours GET_ITER is an operator of an object of ours, so that no list stands for its iterator: what waits on the stack of a frame is an object.
 */
#include "runtime/cpython/since314/since314.h"
#include "runtime/cpython/v315/v315_bits.h"

int32_t fg_version_common_arg(PyObject *constant)
{
    if (constant == Py_None)
        return FG_COMMON_NONE;
    if (constant == Py_True || constant == Py_False)
        return constant == Py_True ? FG_COMMON_TRUE : FG_COMMON_FALSE;
    if (constant != NULL && PyUnicode_CheckExact(constant) && PyUnicode_GET_LENGTH(constant) == 0)
        return FG_COMMON_EMPTY_STR;
    int overflow = 0;
    if (constant != NULL && PyLong_CheckExact(constant) && PyLong_AsLongAndOverflow(constant, &overflow) == -1 && !overflow)
        return FG_COMMON_MINUS_ONE;
    return -1;
}

static fg_status lower_get_iter(fg_lowering *l, int32_t i)
{
    const fg_instr *instr = &l->a->in->instrs[i];
    if (instr->offset >= 0 || instr->op == FG_OP_GET_YIELD_FROM_ITER) {
        fg_lower_put(l, i, FG_RAW_GET_ITER, instr->op == FG_OP_GET_ITER ? FG_GET_ITER_PLAIN : FG_GET_ITER_DELEGATES);
        return FG_OK;
    }
    return fg_lower_applied(l, i, FG_APPLIED_ITER, 1);
}

int32_t fg_version_lower_group(fg_lowering *l, int32_t i, fg_status *st)
{
    return fg_since314_lower_group(l, i, st);
}

fg_status fg_version_lower_one(fg_lowering *l, int32_t i, int *done)
{
    const fg_instr *instr = &l->a->in->instrs[i];
    int32_t index = 0;
    fg_status st;
    *done = 1;
    switch (instr->op) {
    case FG_OP_GET_ITER:
    case FG_OP_GET_YIELD_FROM_ITER: return lower_get_iter(l, i);
    case FG_OP_IMPORT_NAME:
        if ((st = fg_lower_name(l->a, instr, &index)) != FG_OK)
            return st;
        fg_lower_put(l, i, FG_RAW_IMPORT_NAME, index << 2 | instr->arg);
        return FG_OK;
    default: return fg_since314_lower_one(l, i, done);
    }
}
