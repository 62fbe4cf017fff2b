/* What the instructions that only CPython 3.11 has do to the stack, and what their operands must be. */
#include "runtime/cpython/until312/until312.h"
#include "runtime/cpython/until313/until313.h"
#define Py_BUILD_CORE 1
#define NEED_OPCODE_TABLES 1 /* the interpreter does not export them */
#include <internal/pycore_opcode.h>
#undef NEED_OPCODE_TABLES
#undef Py_BUILD_CORE

_Static_assert(PY_VERSION_HEX >> 16 == 0x030b, "this folder is for CPython 3.11");

int fg_version_live_caches(PyCodeObject *code, Py_ssize_t u)
{
    return _PyOpcode_Caches[_PyOpcode_Deopt[(uint8_t)code->co_code_adaptive[2 * u]]];
}

int fg_version_may_raise(const fg_raw *op)
{
    switch (op->op) {
    case FG_RAW_LIST_TO_TUPLE:
    case FG_RAW_POP_JUMP_FORWARD_IF_NONE:
    case FG_RAW_POP_JUMP_FORWARD_IF_NOT_NONE:
    case FG_RAW_ASYNC_GEN_WRAP: return 0;
    default: return fg_until312_may_raise(op) && fg_until313_may_raise(op);
    }
}

int fg_version_falls_through(int op)
{
    (void)op;
    return 1;
}

int fg_version_shape(const fg_raw *op, int jump, fg_raw_shape *out)
{
    int64_t pops = 0, pushes = 0;
    switch ((fg_raw_op)op->op) {
    case FG_RAW_PRECALL: break;
    case FG_RAW_LOAD_CLASSDEREF: pushes = 1; break;
    case FG_RAW_PRINT_EXPR:
    case FG_RAW_IMPORT_STAR:
    case FG_RAW_POP_JUMP_FORWARD_IF_FALSE:
    case FG_RAW_POP_JUMP_FORWARD_IF_TRUE:
    case FG_RAW_POP_JUMP_FORWARD_IF_NONE:
    case FG_RAW_POP_JUMP_FORWARD_IF_NOT_NONE:
    case FG_RAW_POP_JUMP_BACKWARD_IF_FALSE:
    case FG_RAW_POP_JUMP_BACKWARD_IF_TRUE:
    case FG_RAW_POP_JUMP_BACKWARD_IF_NONE:
    case FG_RAW_POP_JUMP_BACKWARD_IF_NOT_NONE: pops = 1; break;
    case FG_RAW_JUMP_IF_FALSE_OR_POP:
    case FG_RAW_JUMP_IF_TRUE_OR_POP: pops = 1, pushes = jump; break;
    case FG_RAW_UNARY_POSITIVE:
    case FG_RAW_LIST_TO_TUPLE:
    case FG_RAW_ASYNC_GEN_WRAP:
    case FG_RAW_LOAD_ATTR: pops = pushes = 1; break;
    case FG_RAW_PREP_RERAISE_STAR: pops = 2, pushes = 1; break;
    case FG_RAW_FOR_ITER: pops = 1, pushes = jump ? 0 : 2; break;
    case FG_RAW_SEND: pops = 2, pushes = jump ? 1 : 2; break;
    default: return fg_until312_shape(op, out) || fg_until313_shape(op, out);
    }
    *out = (fg_raw_shape){pops, pushes, 0};
    return 1;
}

fg_status fg_version_step(fg_raw_code *raw, int32_t i, fg_raw_stack *stack, int jump, int *done)
{
    (void)jump;
    if (raw->ops[i].op != FG_RAW_LOAD_METHOD)
        return fg_until313_step(raw, i, stack, done);
    if (stack->depth < 1 || !fg_raw_are_values(stack, stack->depth - 1, 1))
        return fg_raw_refuse(raw, "LOAD_METHOD of no value");
    *done = 1;
    return fg_raw_push(raw, stack, FG_SLOT_SELF);
}

const char *fg_version_operand(const fg_raw_code *raw, int32_t i)
{
    const fg_raw *op = &raw->ops[i];
    switch (op->op) {
    case FG_RAW_LOAD_CLASSDEREF:
        if (!(PyBytes_AS_STRING(raw->code->co_localspluskinds)[op->arg] & 0xc0))
            return "cell operation on a slot that is no cell";
        break;
    case FG_RAW_KW_NAMES:
        if (i + 2 >= raw->n_ops || op[1].op != FG_RAW_PRECALL || op[2].op != FG_RAW_CALL)
            return "KW_NAMES without its call";
        break;
    case FG_RAW_PRECALL:
        if (i + 1 >= raw->n_ops || op[1].op != FG_RAW_CALL || op[1].arg != op->arg || op[1].state >= 0)
            return "PRECALL without its CALL";
        break;
    case FG_RAW_CALL:
        if (i < 1 || op[-1].op != FG_RAW_PRECALL)
            return "CALL without its PRECALL";
        break;
    case FG_RAW_COMPARE_OP:
        if (op->arg > 5)
            return "COMPARE_OP argument out of range";
        break;
    case FG_RAW_SEND:
        if (op->unit != op->start)
            return "SEND jumps too far";
        break;
    default: break;
    }
    return fg_until312_operand(raw, i);
}
