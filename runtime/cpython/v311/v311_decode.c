/* From real 3.11 instructions to canonical ones.
 *
 * The typed pass (v311_flow.c) says which slots are values; depths and distances are renumbered by counting only those. The second walk
 * goes through the reachable instructions in code order and emits:
 *
 *   real                                  canonical
 *   PUSH_NULL                             CALLEE
 *   LOAD_GLOBAL with its low bit          CALLEE; LOAD_GLOBAL
 *   PRECALL n; CALL n                     CALL n; with a plain first argument in the callee's two slots CALL n+1, flag PLAIN
 *   KW_NAMES c; PRECALL; CALL             LOAD_CONST c; CALL_KW
 *   LOAD_GLOBAL super; CALL 0; attribute  LOAD_GLOBAL; LOAD_DEREF __class__; first argument; CALL_SUPER 0
 *   JUMP_IF_x_OR_POP                      COPY 1 (flag OR_POP); JUMP_IF_x; POP_TOP
 *   MAKE_FUNCTION flags                   MAKE_FUNCTION; SET_FUNCTION_ATTRIBUTE 8, 4, 2, 1
 *   FORMAT_VALUE                          [CONVERT_VALUE]; FORMAT_SIMPLE, or FORMAT_WITH_SPEC
 *   LOAD_CLASSDEREF                       LOAD_LOCALS; LOAD_FROM_DICT_OR_DEREF
 *   IMPORT_STAR, PRINT_EXPR               IMPORT_STAR or PRINT; POP_TOP
 *
 * v311_assemble.c is the mirror; a change here needs its twin there.
 */
#include "runtime/base/alloc.h"
#include "runtime/cpython/canonical_shape.h"
#include "runtime/cpython/v311/v311_internal.h"
#include <string.h>

typedef struct fg_decoder {
    fg_raw_code raw;
    fg_raw_stack stack;
    fg_instr *out; /* scratch, copied into the result's block */
    int32_t n_out;
    int32_t *first;    /* real index -> first canonical index */
    int32_t *handlers; /* table entry -> handler index, -1 */
    int32_t values;    /* canonical depth now */
    int32_t max_values;
} fg_decoder;

static const uint8_t plain_ops[256] = {
#define SAME(NAME) [FG_RAW_##NAME] = FG_OP_##NAME + 1
    SAME(NOP),
    SAME(RESUME),
    SAME(LOAD_FAST),
    SAME(STORE_FAST),
    SAME(DELETE_FAST),
    SAME(LOAD_DEREF),
    SAME(STORE_DEREF),
    SAME(DELETE_DEREF),
    SAME(MAKE_CELL),
    SAME(COPY_FREE_VARS),
    SAME(STORE_GLOBAL),
    SAME(DELETE_GLOBAL),
    SAME(LOAD_NAME),
    SAME(STORE_NAME),
    SAME(DELETE_NAME),
    SAME(LOAD_CONST),
    SAME(LOAD_BUILD_CLASS),
    SAME(POP_TOP),
    SAME(SETUP_ANNOTATIONS),
    SAME(BUILD_TUPLE),
    SAME(BUILD_LIST),
    SAME(BUILD_SET),
    SAME(BUILD_STRING),
    SAME(BUILD_MAP),
    SAME(BUILD_CONST_KEY_MAP),
    SAME(BUILD_SLICE),
    SAME(LIST_TO_TUPLE),
    SAME(UNPACK_SEQUENCE),
    SAME(UNPACK_EX),
    SAME(UNARY_NEGATIVE),
    SAME(UNARY_INVERT),
    SAME(UNARY_POSITIVE),
    SAME(UNARY_NOT),
    SAME(BINARY_OP),
    SAME(COMPARE_OP),
    SAME(IS_OP),
    SAME(CONTAINS_OP),
    SAME(LOAD_ATTR),
    SAME(LOAD_METHOD),
    SAME(STORE_ATTR),
    SAME(DELETE_ATTR),
    SAME(BINARY_SUBSCR),
    SAME(STORE_SUBSCR),
    SAME(DELETE_SUBSCR),
    SAME(RETURN_VALUE),
    SAME(GET_ITER),
    SAME(GET_YIELD_FROM_ITER),
    SAME(FOR_ITER),
    SAME(PUSH_EXC_INFO),
    SAME(POP_EXCEPT),
    SAME(CHECK_EXC_MATCH),
    SAME(CHECK_EG_MATCH),
    SAME(PREP_RERAISE_STAR),
    SAME(RAISE_VARARGS),
    SAME(BEFORE_WITH),
    SAME(BEFORE_ASYNC_WITH),
    SAME(WITH_EXCEPT_START),
    SAME(GET_AWAITABLE),
    SAME(GET_AITER),
    SAME(GET_ANEXT),
    SAME(SEND),
    SAME(END_ASYNC_FOR),
    SAME(RETURN_GENERATOR),
    SAME(ASYNC_GEN_WRAP),
    SAME(IMPORT_NAME),
    SAME(IMPORT_FROM),
    SAME(GET_LEN),
    SAME(MATCH_MAPPING),
    SAME(MATCH_SEQUENCE),
    SAME(MATCH_KEYS),
    SAME(MATCH_CLASS),
#undef SAME
};

static fg_status refuse(fg_decoder *d, const char *why)
{
    d->raw.why = why;
    return FG_ERR_INVALID;
}

static fg_instr *emit(fg_decoder *d, const fg_raw *from, int op, int32_t arg)
{
    fg_instr *instr = &d->out[d->n_out++];
    *instr = (fg_instr){.op = (uint8_t)op,
                        .arg = arg,
                        .target = -1,
                        .handler = from->entry >= 0 ? d->handlers[from->entry] : -1,
                        .depth = d->values,
                        .line = from->line,
                        .end_line = from->end_line,
                        .col = from->col,
                        .end_col = from->end_col,
                        .offset = from->unit * 2};
    return instr;
}

/* Account for what the last emitted instruction does to the canonical stack. */
static void settle(fg_decoder *d)
{
    d->values += fg_instr_effect(&d->out[d->n_out - 1], 0);
    if (d->values > d->max_values)
        d->max_values = d->values;
}

static void add(fg_decoder *d, const fg_raw *from, int op, int32_t arg)
{
    emit(d, from, op, arg);
    settle(d);
}

/* At most this many canonical instructions come of a real one. */
static int64_t most_emitted(const fg_raw *op)
{
    switch (op->op) {
    case FG_RAW_SWAP: return (int64_t)op->arg + 1;
    case FG_RAW_MAKE_FUNCTION: return 5;
    case FG_RAW_LOAD_GLOBAL:
    case FG_RAW_FORMAT_VALUE: return 4;
    case FG_RAW_JUMP_IF_FALSE_OR_POP:
    case FG_RAW_JUMP_IF_TRUE_OR_POP: return 3;
    case FG_RAW_LOAD_CLASSDEREF:
    case FG_RAW_IMPORT_STAR:
    case FG_RAW_PRINT_EXPR: return 2;
    default: return 1;
    }
}

static int32_t values_in_top(const fg_decoder *d, int32_t n)
{
    return fg_raw_stack_values(&d->stack, d->stack.depth - n, n);
}

/* A SWAP may move a NULL (code of ours does that): then the values it jumps over keep their order and the swapped value moves past them. */
static void decode_swap(fg_decoder *d, const fg_raw *op)
{
    const int32_t n = (int32_t)op->arg, depth = d->stack.depth;
    const int low_value = d->stack.types[depth - n] == FG_SLOT_VALUE, top_value = d->stack.types[depth - 1] == FG_SLOT_VALUE;
    const int32_t between = n < 2 ? 0 : fg_raw_stack_values(&d->stack, depth - n + 1, n - 2);
    if (n < 2 || (low_value && top_value)) {
        add(d, op, FG_OP_SWAP, n < 2 ? 1 : between + 2);
    } else if (low_value) {
        for (int32_t k = 2; k <= between + 1; k++)
            add(d, op, FG_OP_SWAP, k);
    } else if (top_value) {
        for (int32_t k = between + 1; k >= 2; k--)
            add(d, op, FG_OP_SWAP, k);
    }
}

/* super() without arguments, used at once for an attribute: gives the slot of __class__, or -1. */
static int32_t zero_argument_super(const fg_decoder *d, int32_t i, PyObject *name)
{
    const fg_raw *op = &d->raw.ops[i];
    const PyCodeObject *code = d->raw.code;
    if (!(op->arg & 1) || i + 3 >= d->raw.n_ops || op[1].op != FG_RAW_PRECALL || op[2].op != FG_RAW_CALL || op[2].arg != 0 ||
        (op[3].op != FG_RAW_LOAD_ATTR && op[3].op != FG_RAW_LOAD_METHOD) || op[1].state >= 0 || op[2].state >= 0 || op[3].state >= 0 ||
        code->co_argcount < 1 || PyUnicode_CompareWithASCIIString(name, "super") != 0)
        return -1;
    for (int32_t slot = code->co_nlocalsplus - code->co_nfreevars; slot < code->co_nlocalsplus; slot++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(code->co_localsplusnames, slot), "__class__") == 0)
            return slot;
    return -1;
}

static fg_status decode_name(fg_decoder *d, uint32_t index, PyObject **out)
{
    PyObject *names = d->raw.code->co_names;
    if ((Py_ssize_t)index >= PyTuple_GET_SIZE(names))
        return refuse(d, "name index out of range");
    *out = PyTuple_GET_ITEM(names, index);
    return FG_OK;
}

static fg_status decode_one(fg_decoder *d, int32_t i, int32_t *skip)
{
    const fg_raw *op = &d->raw.ops[i];
    const int32_t n = (int32_t)op->arg;
    PyObject *object = NULL;
    fg_status st;

    switch (fg_raw_kinds[op->op]) {
    case FG_RAW_KIND_CONST:
        if (n >= PyTuple_GET_SIZE(d->raw.code->co_consts))
            return refuse(d, "constant index out of range");
        object = PyTuple_GET_ITEM(d->raw.code->co_consts, n);
        break;
    case FG_RAW_KIND_NAME:
    case FG_RAW_KIND_GLOBAL:
        if ((st = decode_name(d, fg_raw_kinds[op->op] == FG_RAW_KIND_GLOBAL ? op->arg >> 1 : op->arg, &object)) != FG_OK)
            return st;
        break;
    case FG_RAW_KIND_SLOT:
        if (n >= d->raw.code->co_nlocalsplus)
            return refuse(d, "slot out of range");
        break;
    default: break;
    }

    fg_instr *instr;
    switch (op->op) {
    case FG_RAW_PUSH_NULL: add(d, op, FG_OP_CALLEE, 0); return FG_OK;
    case FG_RAW_LOAD_GLOBAL: {
        const int32_t slot = zero_argument_super(d, i, object);
        if (slot >= 0) {
            const fg_raw *call = &d->raw.ops[i + 2];
            const int cell = PyBytes_AS_STRING(d->raw.code->co_localspluskinds)[0] & 0x40;
            emit(d, op, FG_OP_LOAD_GLOBAL, 0)->obj = object;
            settle(d);
            add(d, call, FG_OP_LOAD_DEREF, slot);
            add(d, call, cell ? FG_OP_LOAD_DEREF : FG_OP_LOAD_FAST, 0);
            if (!cell)
                d->out[d->n_out - 1].flags = FG_IF_CHECK;
            add(d, call, FG_OP_CALL_SUPER, 0);
            *skip = 2;
            return FG_OK;
        }
        if (op->arg & 1)
            add(d, op, FG_OP_CALLEE, 0);
        emit(d, op, FG_OP_LOAD_GLOBAL, 0)->obj = object;
        break;
    }
    case FG_RAW_PRECALL:
        if (i + 1 >= d->raw.n_ops || d->raw.ops[i + 1].op != FG_RAW_CALL || d->raw.ops[i + 1].arg != op->arg ||
            d->raw.ops[i + 1].state >= 0)
            return refuse(d, "PRECALL without its CALL");
        return FG_OK;
    case FG_RAW_KW_NAMES:
        if (i + 2 >= d->raw.n_ops || d->raw.ops[i + 1].op != FG_RAW_PRECALL || d->raw.ops[i + 1].state >= 0 || !PyTuple_CheckExact(object))
            return refuse(d, "KW_NAMES without its call");
        emit(d, op, FG_OP_LOAD_CONST, 0)->obj = object;
        break;
    case FG_RAW_CALL: {
        if (i < 1 || d->raw.ops[i - 1].op != FG_RAW_PRECALL)
            return refuse(d, "CALL without its PRECALL");
        const int plain =
            d->stack.types[d->stack.depth - n - 2] == FG_SLOT_VALUE && d->stack.types[d->stack.depth - n - 1] == FG_SLOT_VALUE;
        const int keywords = i >= 2 && d->raw.ops[i - 2].op == FG_RAW_KW_NAMES;
        if (keywords &&
            (d->n_out < 1 || d->out[d->n_out - 1].op != FG_OP_LOAD_CONST || PyTuple_GET_SIZE(d->out[d->n_out - 1].obj) > n + plain))
            return refuse(d, "more keyword names than arguments");
        emit(d, op, keywords ? FG_OP_CALL_KW : FG_OP_CALL, n + plain)->flags = plain ? FG_IF_PLAIN : 0;
        break;
    }
    case FG_RAW_CALL_FUNCTION_EX: emit(d, op, FG_OP_CALL_EX, n & 1); break;
    case FG_RAW_COPY: emit(d, op, FG_OP_COPY, values_in_top(d, n)); break;
    case FG_RAW_SWAP: decode_swap(d, op); return FG_OK;
    case FG_RAW_RERAISE: emit(d, op, FG_OP_RERAISE, n ? values_in_top(d, n + 1) - 1 : 0); break;
#define BELOW(NAME, POPS) \
    case FG_RAW_##NAME: emit(d, op, FG_OP_##NAME, values_in_top(d, n + (POPS)) - (POPS)); break;
        BELOW(LIST_APPEND, 1)
        BELOW(SET_ADD, 1)
        BELOW(MAP_ADD, 2)
        BELOW(LIST_EXTEND, 1)
        BELOW(SET_UPDATE, 1)
        BELOW(DICT_UPDATE, 1)
        BELOW(DICT_MERGE, 1)
#undef BELOW
    case FG_RAW_LOAD_CLOSURE: emit(d, op, FG_OP_LOAD_FAST, n)->flags = FG_IF_CHECK | FG_IF_CLOSURE; break;
    case FG_RAW_LOAD_FAST: emit(d, op, FG_OP_LOAD_FAST, n)->flags = FG_IF_CHECK; break;
    case FG_RAW_LOAD_CLASSDEREF:
        add(d, op, FG_OP_LOAD_LOCALS, 0);
        emit(d, op, FG_OP_LOAD_FROM_DICT_OR_DEREF, n);
        break;
    case FG_RAW_LOAD_ASSERTION_ERROR: emit(d, op, FG_OP_LOAD_COMMON, 0); break;
    case FG_RAW_IMPORT_STAR:
    case FG_RAW_PRINT_EXPR:
        add(d, op, op->op == FG_RAW_IMPORT_STAR ? FG_OP_IMPORT_STAR : FG_OP_PRINT, 0);
        emit(d, op, FG_OP_POP_TOP, 0);
        break;
    case FG_RAW_FORMAT_VALUE:
        if (n > 7)
            return refuse(d, "FORMAT_VALUE argument out of range");
        if (n & 3) {
            if (n & 4)
                add(d, op, FG_OP_SWAP, 2);
            add(d, op, FG_OP_CONVERT_VALUE, n & 3);
            if (n & 4)
                add(d, op, FG_OP_SWAP, 2);
        }
        emit(d, op, n & 4 ? FG_OP_FORMAT_WITH_SPEC : FG_OP_FORMAT_SIMPLE, 0);
        break;
    case FG_RAW_MAKE_FUNCTION:
        if (n > 15)
            return refuse(d, "MAKE_FUNCTION argument out of range");
        add(d, op, FG_OP_MAKE_FUNCTION, 0);
        for (int bit = 8; bit; bit >>= 1)
            if (n & bit)
                add(d, op, FG_OP_SET_FUNCTION_ATTRIBUTE, bit);
        return FG_OK;
    case FG_RAW_YIELD_VALUE:
        emit(d, op, FG_OP_YIELD_VALUE, i + 1 < d->raw.n_ops && op[1].op == FG_RAW_RESUME && (op[1].arg & 3) >= 2);
        break;
    case FG_RAW_JUMP_FORWARD:
    case FG_RAW_JUMP_BACKWARD:
    case FG_RAW_JUMP_BACKWARD_NO_INTERRUPT:
        instr = emit(d, op, FG_OP_JUMP, 0);
        instr->target = op->target;
        instr->flags = op->op == FG_RAW_JUMP_FORWARD ? FG_IF_FORWARD : op->op == FG_RAW_JUMP_BACKWARD ? 0 : FG_IF_QUIET;
        break;
    case FG_RAW_JUMP_IF_FALSE_OR_POP:
    case FG_RAW_JUMP_IF_TRUE_OR_POP:
        emit(d, op, FG_OP_COPY, 1)->flags = FG_IF_OR_POP;
        settle(d);
        emit(d, op, op->op == FG_RAW_JUMP_IF_TRUE_OR_POP ? FG_OP_JUMP_IF_TRUE : FG_OP_JUMP_IF_FALSE, 0)->target = op->target;
        settle(d);
        emit(d, op, FG_OP_POP_TOP, 0);
        break;
#define BRANCH(NAME)                        \
    case FG_RAW_POP_JUMP_FORWARD_IF_##NAME: \
    case FG_RAW_POP_JUMP_BACKWARD_IF_##NAME: emit(d, op, FG_OP_JUMP_IF_##NAME, 0)->target = op->target; break;
        BRANCH(TRUE)
        BRANCH(FALSE)
        BRANCH(NONE)
        BRANCH(NOT_NONE)
#undef BRANCH
    default:
        if (!plain_ops[op->op])
            return refuse(d, "opcode without a canonical form");
        instr = emit(d, op, plain_ops[op->op] - 1, object || fg_raw_kinds[op->op] == FG_RAW_KIND_NONE ? 0 : n);
        instr->obj = object;
        if (op->target >= 0)
            instr->target = op->target, instr->arg = 0;
        break;
    }
    settle(d);
    return FG_OK;
}

/* Handlers that are told apart: equal table entries are one handler. Their targets are real indices until finish(). */
static fg_status intern_handlers(fg_decoder *d, fg_handler **out, int32_t *n_out)
{
    fg_raw_code *raw = &d->raw;
    fg_handler *handlers = fg_arena_alloc(&raw->arena, ((size_t)raw->n_entries + 1) * sizeof *handlers);
    int32_t *latest = fg_arena_alloc(&raw->arena, (size_t)raw->n_states * sizeof *latest); /* handler of each join, +1 */
    d->handlers = fg_arena_alloc(&raw->arena, ((size_t)raw->n_entries + 1) * sizeof *d->handlers);
    if (!handlers || !latest || !d->handlers)
        return FG_ERR_NOMEM;
    int32_t n = 0;
    for (int32_t e = 0; e < raw->n_entries; e++) {
        const fg_raw_entry *entry = &raw->entries[e];
        int32_t *known = &latest[raw->ops[entry->target].state];
        d->handlers[e] = -1;
        if (entry->values < 0)
            continue;
        if (!*known || handlers[*known - 1].depth != entry->values || handlers[*known - 1].lasti != entry->lasti) {
            handlers[n] = (fg_handler){entry->target, entry->values, entry->lasti};
            *known = ++n;
        }
        d->handlers[e] = *known - 1;
    }
    *out = handlers, *n_out = n;
    return FG_OK;
}

static fg_status finish(fg_decoder *d, const fg_handler *handlers, int32_t n_handlers, fg_icode **out)
{
    const size_t instrs_size = (size_t)d->n_out * sizeof(fg_instr), handlers_size = (size_t)n_handlers * sizeof(fg_handler);
    fg_icode *icode = fg_icode_block_new(instrs_size + handlers_size);
    if (!icode)
        return FG_ERR_NOMEM;
    icode->instrs = fg_icode_block_data(icode);
    icode->handlers = (fg_handler *)(icode->instrs + d->n_out);
    memcpy(icode->instrs, d->out, instrs_size);
    if (handlers_size)
        memcpy(icode->handlers, handlers, handlers_size);
    icode->n_instrs = d->n_out;
    icode->n_handlers = n_handlers;
    icode->max_depth = d->max_values;
    for (int32_t i = 0; i < d->n_out; i++)
        if (icode->instrs[i].target >= 0)
            icode->instrs[i].target = d->first[icode->instrs[i].target];
    for (int32_t h = 0; h < n_handlers; h++) {
        icode->handlers[h].target = d->first[icode->handlers[h].target];
        const int32_t entered = icode->handlers[h].depth + 1 + icode->handlers[h].lasti;
        if (entered > icode->max_depth)
            icode->max_depth = entered;
    }
    *out = icode;
    return FG_OK;
}

fg_status fg_version_decode(PyCodeObject *code, fg_icode **out, const char **why)
{
    fg_status st;
    fg_decoder d = {.n_out = 0};
    fg_handler *handlers;
    int32_t n_handlers;
    FG_TRY(fg_raw_read(code, &d.raw));
    FG_TRY(fg_raw_flow(&d.raw));
    FG_TRY(fg_raw_stack_new(&d.raw, &d.stack));
    FG_TRY(intern_handlers(&d, &handlers, &n_handlers));

    int64_t room = 0;
    for (int32_t i = 0; i < d.raw.n_ops; i++)
        room += most_emitted(&d.raw.ops[i]);
    if (room > (1 << 28)) {
        st = refuse(&d, "code too large");
        goto fail;
    }
    d.out = fg_malloc((size_t)room * sizeof *d.out);
    d.first = fg_arena_alloc(&d.raw.arena, (size_t)d.raw.n_ops * sizeof *d.first);
    if (!d.out || !d.first) {
        st = FG_ERR_NOMEM;
        goto fail;
    }

    for (int32_t i = 0; i < d.raw.n_ops; i++) {
        int32_t skip = 0;
        d.first[i] = d.n_out;
        if (!d.raw.ops[i].reachable)
            continue;
        if (d.raw.ops[i].state >= 0) {
            fg_raw_stack_enter(&d.raw, i, &d.stack);
            d.values = fg_raw_stack_values(&d.stack, 0, d.stack.depth);
            if (d.values > d.max_values)
                d.max_values = d.values;
        }
        FG_TRY(decode_one(&d, i, &skip));
        for (int32_t last = i + skip;; d.first[++i] = d.n_out) {
            FG_TRY(fg_raw_step(&d.raw, i, &d.stack, 0));
            if (i == last)
                break;
        }
    }
    FG_TRY(finish(&d, handlers, n_handlers, out));
fail:
    *why = d.raw.why;
    fg_free(d.out);
    fg_raw_fini(&d.raw);
    return st;
}
