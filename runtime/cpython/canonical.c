/* What is known of canonical instructions on every version: names, whether they raise, and what they take from and leave on the stack. */
#include "runtime/cpython/bytecode_version.h"
#include "runtime/cpython/canonical_shape.h"

const char *fg_cop_name(int op)
{
    static const char *const names[] = {
#define FG_COP(NAME, RAISES) #NAME,
#include "runtime/cpython/canonical_ops.def"
#undef FG_COP
    };
    return op >= 0 && op < FG_N_COPS ? names[op] : "?";
}

int fg_cop_raises(int op)
{
    enum { NO, MAY, PY };
    static const uint8_t raises[] = {
#define FG_COP(NAME, RAISES) RAISES,
#include "runtime/cpython/canonical_ops.def"
#undef FG_COP
    };
    return op >= 0 && op < FG_N_COPS ? raises[op] : PY;
}

int fg_cop_falls_through(int op)
{
    return op != FG_OP_JUMP && op != FG_OP_RETURN_VALUE && op != FG_OP_RERAISE && op != FG_OP_RAISE_VARARGS;
}

int fg_cop_jumps(int op)
{
    return (op >= FG_OP_JUMP && op <= FG_OP_JUMP_IF_NOT_NONE) || op == FG_OP_FOR_ITER || op == FG_OP_SEND;
}

fg_shape fg_instr_shape(const fg_instr *instr, int jump)
{
    const int n = instr->arg;
#define SHAPE(POPS, PUSHES) \
    return (fg_shape)       \
    {                       \
        (POPS), (PUSHES)    \
    }
    switch ((fg_cop)instr->op) {
    case FG_OP_NOP:
    case FG_OP_RESUME:
    case FG_OP_CALLEE:
    case FG_OP_DELETE_FAST:
    case FG_OP_DELETE_DEREF:
    case FG_OP_MAKE_CELL:
    case FG_OP_COPY_FREE_VARS:
    case FG_OP_DELETE_GLOBAL:
    case FG_OP_DELETE_NAME:
    case FG_OP_SWAP:
    case FG_OP_SETUP_ANNOTATIONS:
    case FG_OP_JUMP: SHAPE(0, 0);
    case FG_OP_LOAD_FAST:
    case FG_OP_LOAD_FAST_AND_CLEAR:
    case FG_OP_LOAD_DEREF:
    case FG_OP_LOAD_GLOBAL:
    case FG_OP_LOAD_NAME:
    case FG_OP_LOAD_LOCALS:
    case FG_OP_LOAD_CONST:
    case FG_OP_LOAD_COMMON:
    case FG_OP_LOAD_BUILD_CLASS:
    case FG_OP_COPY:
    case FG_OP_RETURN_GENERATOR:
    case FG_OP_WITH_EXCEPT_START: SHAPE(0, 1);
    case FG_OP_STORE_FAST:
    case FG_OP_STORE_DEREF:
    case FG_OP_STORE_GLOBAL:
    case FG_OP_STORE_NAME:
    case FG_OP_POP_TOP:
    case FG_OP_LIST_APPEND:
    case FG_OP_SET_ADD:
    case FG_OP_LIST_EXTEND:
    case FG_OP_SET_UPDATE:
    case FG_OP_DICT_UPDATE:
    case FG_OP_DICT_MERGE:
    case FG_OP_DELETE_ATTR:
    case FG_OP_JUMP_IF_TRUE:
    case FG_OP_JUMP_IF_FALSE:
    case FG_OP_JUMP_IF_NONE:
    case FG_OP_JUMP_IF_NOT_NONE:
    case FG_OP_RETURN_VALUE:
    case FG_OP_POP_EXCEPT:
    case FG_OP_RERAISE: SHAPE(1, 0);
    case FG_OP_MAP_ADD:
    case FG_OP_STORE_ATTR:
    case FG_OP_DELETE_SUBSCR:
    case FG_OP_END_ASYNC_FOR: SHAPE(2, 0);
    case FG_OP_STORE_SUBSCR: SHAPE(3, 0);
    case FG_OP_BUILD_TUPLE:
    case FG_OP_BUILD_LIST:
    case FG_OP_BUILD_SET:
    case FG_OP_BUILD_STRING:
    case FG_OP_BUILD_SLICE: SHAPE(n, 1);
    case FG_OP_BUILD_MAP: SHAPE(2 * n, 1);
    case FG_OP_BUILD_CONST_KEY_MAP: SHAPE(n + 1, 1);
    case FG_OP_UNPACK_SEQUENCE: SHAPE(1, n);
    case FG_OP_UNPACK_EX: SHAPE(1, (n & 255) + 1 + (n >> 8));
    case FG_OP_LOAD_FROM_DICT_OR_GLOBALS:
    case FG_OP_LOAD_FROM_DICT_OR_DEREF:
    case FG_OP_LIST_TO_TUPLE:
    case FG_OP_UNARY_NEGATIVE:
    case FG_OP_UNARY_INVERT:
    case FG_OP_UNARY_POSITIVE:
    case FG_OP_UNARY_NOT:
    case FG_OP_TO_BOOL:
    case FG_OP_LOAD_ATTR:
    case FG_OP_LOAD_METHOD:
    case FG_OP_LOAD_SPECIAL:
    case FG_OP_GET_ITER:
    case FG_OP_GET_YIELD_FROM_ITER:
    case FG_OP_GET_AWAITABLE:
    case FG_OP_GET_AITER:
    case FG_OP_YIELD_VALUE:
    case FG_OP_ASYNC_GEN_WRAP:
    case FG_OP_STOPITERATION_ERROR:
    case FG_OP_MAKE_FUNCTION:
    case FG_OP_IMPORT_STAR:
    case FG_OP_CONVERT_VALUE:
    case FG_OP_FORMAT_SIMPLE:
    case FG_OP_TYPEVAR:
    case FG_OP_PARAMSPEC:
    case FG_OP_TYPEVARTUPLE:
    case FG_OP_SUBSCRIPT_GENERIC:
    case FG_OP_TYPEALIAS:
    case FG_OP_PRINT: SHAPE(1, 1);
    case FG_OP_BINARY_OP:
    case FG_OP_COMPARE_OP:
    case FG_OP_IS_OP:
    case FG_OP_CONTAINS_OP:
    case FG_OP_BINARY_SUBSCR:
    case FG_OP_PREP_RERAISE_STAR:
    case FG_OP_SET_FUNCTION_ATTRIBUTE:
    case FG_OP_IMPORT_NAME:
    case FG_OP_FORMAT_WITH_SPEC:
    case FG_OP_BUILD_TEMPLATE:
    case FG_OP_TYPEVAR_WITH_BOUND:
    case FG_OP_TYPEVAR_WITH_CONSTRAINTS:
    case FG_OP_SET_FUNCTION_TYPE_PARAMS:
    case FG_OP_SET_TYPEPARAM_DEFAULT: SHAPE(2, 1);
    case FG_OP_CALL: SHAPE(n + 1, 1);
    case FG_OP_CALL_KW: SHAPE(n + 2, 1);
    case FG_OP_CALL_EX: SHAPE(n ? 3 : 2, 1);
    case FG_OP_CALL_SUPER:
    case FG_OP_CLEANUP_THROW:
    case FG_OP_MATCH_CLASS: SHAPE(3, 1);
    case FG_OP_FOR_ITER: SHAPE(1, jump ? 0 : 2);
    case FG_OP_SEND: SHAPE(2, jump ? 1 : 2);
    case FG_OP_PUSH_EXC_INFO:
    case FG_OP_BEFORE_WITH:
    case FG_OP_BEFORE_ASYNC_WITH:
    case FG_OP_GET_ANEXT:
    case FG_OP_IMPORT_FROM:
    case FG_OP_GET_LEN:
    case FG_OP_MATCH_MAPPING:
    case FG_OP_MATCH_SEQUENCE: SHAPE(1, 2);
    case FG_OP_CHECK_EXC_MATCH:
    case FG_OP_CHECK_EG_MATCH: SHAPE(2, 2);
    case FG_OP_RAISE_VARARGS: SHAPE(n, 0);
    case FG_OP_MATCH_KEYS: SHAPE(2, 3);
    case FG_OP_BUILD_INTERPOLATION: SHAPE(2 + (n & 1), 1);
    case FG_N_COPS: break;
    }
#undef SHAPE
    return (fg_shape){0, 0};
}

int fg_instr_effect(const fg_instr *instr, int jump)
{
    const fg_shape shape = fg_instr_shape(instr, jump);
    return shape.pushes - shape.pops;
}

int fg_instr_reach(const fg_instr *instr)
{
    const int n = instr->arg;
    switch (instr->op) {
    case FG_OP_COPY:
    case FG_OP_SWAP: return n;
    case FG_OP_LIST_APPEND:
    case FG_OP_SET_ADD:
    case FG_OP_LIST_EXTEND:
    case FG_OP_SET_UPDATE:
    case FG_OP_DICT_UPDATE:
    case FG_OP_RERAISE: return n + 1;
    case FG_OP_MAP_ADD: return n + 2;
    case FG_OP_DICT_MERGE: return n + 3;
    case FG_OP_WITH_EXCEPT_START: return 4;
    default: return fg_instr_shape(instr, 0).pops;
    }
}

static int is_super(const fg_icode *icode, int32_t i)
{
    return FG_SUPER_FINDS_ITS_ARGUMENTS && i >= 2 && i < icode->n_instrs && icode->instrs[i].op == FG_OP_CALL_SUPER &&
           icode->instrs[i].arg == 0;
}

int32_t fg_icode_group_end(const fg_icode *icode, int32_t i)
{
    if (icode->instrs[i].op == FG_OP_LOAD_CONST && i + 1 < icode->n_instrs && icode->instrs[i + 1].op == FG_OP_CALL_KW)
        return i + 1;
    return is_super(icode, i + 2) ? i + 2 : is_super(icode, i + 1) ? i + 1 : i;
}

int32_t fg_icode_group_start(const fg_icode *icode, int32_t i)
{
    if (icode->instrs[i].op == FG_OP_CALL_KW)
        return i - 1;
    return is_super(icode, i) ? i - 2 : is_super(icode, i + 1) ? i - 1 : i;
}

/* The instruction that ends a run of clean-up, -1: it does more than that. */
static int32_t end_of_cleanup(const fg_icode *icode, int32_t i)
{
    for (; i < icode->n_instrs; i++) {
        switch (icode->instrs[i].op) {
        case FG_OP_SWAP:
        case FG_OP_POP_TOP:
        case FG_OP_STORE_FAST:
        case FG_OP_STOPITERATION_ERROR: continue;
        case FG_OP_RERAISE: return i;
        default: return -1;
        }
    }
    return -1;
}

int fg_icode_handler_is_quiet(const fg_icode *icode, int32_t h)
{
    /* Each round goes to the handler of an instruction inside a handler: an outer one. */
    for (int rounds = 0; h >= 0; rounds++) {
        const int32_t first = icode->handlers[h].target, op = icode->instrs[first].op;
        if (rounds > 64 || (op != FG_OP_SWAP && op != FG_OP_STOPITERATION_ERROR && op != FG_OP_CLEANUP_THROW))
            return 0;
        const int32_t last = op == FG_OP_CLEANUP_THROW ? first : end_of_cleanup(icode, first);
        if (last < 0)
            return 0;
        h = icode->instrs[last].handler;
    }
    return 1;
}

int fg_icode_has_saved(const fg_icode *icode, int32_t i)
{
    if (!FG_COMPREHENSIONS_ARE_INLINE || i >= icode->n_instrs)
        return 0;
    for (int32_t k = i, lowest = icode->instrs[i].depth; k-- > 0;) {
        const fg_instr *instr = &icode->instrs[k];
        if (instr->op == FG_OP_LOAD_FAST_AND_CLEAR && lowest > instr->depth)
            return 1;
        if (instr->depth < lowest)
            lowest = instr->depth;
    }
    return 0;
}

int32_t fg_icode_handler_pass(const fg_icode *icode, int32_t handler, int32_t *unbound)
{
    while (handler >= 0) {
        const fg_instr *at = &icode->instrs[icode->handlers[handler].target];
        const int forgets = at->op == FG_OP_COPY && at[1].op == FG_OP_POP_EXCEPT && at[2].op == FG_OP_RERAISE;
        const int unbinds = at->op == FG_OP_LOAD_CONST && (at[1].op == FG_OP_STORE_FAST || at[1].op == FG_OP_STORE_DEREF) &&
                            (at[2].op == FG_OP_DELETE_FAST || at[2].op == FG_OP_DELETE_DEREF) && at[3].op == FG_OP_RERAISE;
        if (!forgets && !unbinds)
            return fg_icode_handler_is_quiet(icode, handler) ? -1 : handler;
        if (unbinds && unbound != NULL && at[1].op == FG_OP_STORE_FAST)
            *unbound = at[1].arg;
        handler = at->handler;
    }
    return -1;
}

int32_t fg_icode_raise_place(const fg_icode *icode, int32_t pc)
{
    while (pc > 0 && icode->instrs[pc - 1].handler == icode->instrs[pc].handler && icode->instrs[pc - 1].line == icode->instrs[pc].line)
        pc--;
    return pc;
}

int fg_icode_remakes_cell(const fg_icode *icode)
{
    if (!FG_COMPREHENSIONS_ARE_INLINE || !icode->code->co_nfreevars)
        return 0;
    const int32_t frees = icode->code->co_nlocalsplus - icode->code->co_nfreevars;
    for (int32_t i = 0; i < icode->n_instrs; i++)
        if (icode->instrs[i].op == FG_OP_MAKE_CELL && icode->instrs[i].arg >= frees)
            return 1;
    return 0;
}

int32_t fg_icode_class_slot(const fg_icode *icode)
{
    const PyCodeObject *code = icode->code;
    for (int32_t slot = code->co_nlocalsplus - code->co_nfreevars; slot < code->co_nlocalsplus; slot++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(code->co_localsplusnames, slot), "__class__") == 0)
            return slot;
    return -1;
}

static int loads_super(const fg_instr *in)
{
    return in->op == FG_OP_LOAD_GLOBAL && PyUnicode_CompareWithASCIIString(in->obj, "super") == 0;
}

/* The name is loaded at i: is it called with the few values that are loaded right behind it? */
static int is_called_at_once(const fg_icode *icode, int32_t i)
{
    int32_t n = 0;
    for (int32_t k = i + 1; k < icode->n_instrs; k++) {
        const fg_instr *in = &icode->instrs[k];
        switch ((fg_cop)in->op) {
        case FG_OP_LOAD_FAST:
        case FG_OP_LOAD_DEREF:
        case FG_OP_LOAD_GLOBAL:
        case FG_OP_LOAD_CONST: n++; break;
        case FG_OP_LOAD_ATTR:
            if (n == 0)
                return 0;
            break;
        case FG_OP_CALL_SUPER: return n == 2;
        case FG_OP_CALL: return in->arg == n;
        default: return 0;
        }
    }
    return 0;
}

fg_super_use fg_icode_super_at(const fg_icode *icode, int32_t i)
{
    const fg_instr *in = &icode->instrs[i];
    if (in->op != FG_OP_CALL && in->op != FG_OP_CALL_EX)
        return FG_SUPER_NOT;
    if (in->op == FG_OP_CALL && in->arg != 0)
        return FG_SUPER_NOT;
    if (in->op == FG_OP_CALL && i > 0 && loads_super(&icode->instrs[i - 1]))
        return FG_SUPER_SURELY;
    for (int32_t k = 0; k < icode->n_instrs; k++)
        if (loads_super(&icode->instrs[k]) && !is_called_at_once(icode, k))
            return FG_SUPER_PERHAPS;
    return FG_SUPER_NOT;
}

int fg_icode_unpacks_for_super(const fg_icode *icode)
{
    for (int32_t i = 0; i < icode->n_instrs; i++)
        if (icode->instrs[i].op == FG_OP_CALL_EX && fg_icode_super_at(icode, i) != FG_SUPER_NOT)
            return 1;
    return 0;
}
