/* Stack effects and operands of what CPython 3.11 and 3.12 have in common (until312.h). */
#include "runtime/cpython/until312/until312.h"

int fg_until312_may_raise(const fg_raw *op)
{
    return op->op != FG_RAW_KW_NAMES;
}

int fg_until312_shape(const fg_raw *op, fg_raw_shape *out)
{
    const int64_t n = op->arg;
    int64_t pops = 0, pushes = 0;
    switch (op->op) {
    case FG_RAW_KW_NAMES: break;
    case FG_RAW_LOAD_CLOSURE: pushes = 1; break;
    case FG_RAW_FORMAT_VALUE: pops = n & 4 ? 2 : 1, pushes = 1; break;
    case FG_RAW_MAKE_FUNCTION: pops = 1 + (n & 1) + (n >> 1 & 1) + (n >> 2 & 1) + (n >> 3 & 1), pushes = 1; break;
    default: return 0;
    }
    *out = (fg_raw_shape){pops, pushes, 0};
    return 1;
}

const char *fg_until312_operand(const fg_raw_code *raw, int32_t i)
{
    const fg_raw *op = &raw->ops[i];
    switch (op->op) {
    case FG_RAW_KW_NAMES: return PyTuple_CheckExact(PyTuple_GET_ITEM(raw->code->co_consts, op->arg)) ? NULL : "keyword names are no tuple";
    case FG_RAW_FORMAT_VALUE: return op->arg <= 7 ? NULL : "FORMAT_VALUE argument out of range";
    case FG_RAW_MAKE_FUNCTION: return op->arg <= 15 ? NULL : "MAKE_FUNCTION argument out of range";
    default: return NULL;
    }
}
