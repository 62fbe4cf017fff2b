/* From real instructions to canonical ones.
 *
 * The typed pass (bytecode_flow.c) says which slots are values; depths and distances are renumbered by counting only those. The second walk
 * goes through the reachable instructions in code order. Most instructions are one to one (bytecode_same.def, vXYZ_same.def). On every version:
 *
 *   real                                  canonical
 *   PUSH_NULL                             CALLEE
 *
 * vXYZ_decode.c has the table of the others. bytecode_lower.c and vXYZ_lower.c are the mirror; a change here needs its twin there.
 */
#include "runtime/cpython/bytecode_decode.h"
#include "runtime/base/alloc.h"
#include "runtime/cpython/canonical_shape.h"
#include <string.h>

static const uint8_t plain_ops[256] = {
#define FG_SAME(NAME) [FG_RAW_##NAME] = FG_OP_##NAME + 1,
#include "runtime/cpython/bytecode_same.def"
#include FG_VERSION_SAME
#undef FG_SAME
};

fg_status fg_decoder_refuse(fg_decoder *d, const char *why)
{
    d->raw.why = why;
    return FG_ERR_INVALID;
}

fg_instr *fg_decoder_put(fg_decoder *d, const fg_raw *from, int op, int32_t arg)
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

void fg_decoder_settle(fg_decoder *d)
{
    d->values += fg_instr_effect(&d->out[d->n_out - 1], 0);
    if (d->values > d->max_values)
        d->max_values = d->values;
}

void fg_decoder_add(fg_decoder *d, const fg_raw *from, int op, int32_t arg)
{
    fg_decoder_put(d, from, op, arg);
    fg_decoder_settle(d);
}

/* At most this many canonical instructions come of a real one. */
static int64_t most_emitted(const fg_raw *op)
{
    switch (op->op) {
    case FG_RAW_SWAP: return (int64_t)op->arg + 1;
    default: {
        const int64_t most = fg_version_most_decoded(op);
        return most ? most : 1;
    }
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
        fg_decoder_add(d, op, FG_OP_SWAP, n < 2 ? 1 : between + 2);
    } else if (low_value) {
        for (int32_t k = 2; k <= between + 1; k++)
            fg_decoder_add(d, op, FG_OP_SWAP, k);
    } else if (top_value) {
        for (int32_t k = between + 1; k >= 2; k--)
            fg_decoder_add(d, op, FG_OP_SWAP, k);
    }
}

fg_status fg_decoder_call(fg_decoder *d, const fg_raw *op, int keywords)
{
    const int32_t n = (int32_t)op->arg, depth = d->stack.depth - (keywords && FG_NAMES_ARE_ON_THE_STACK);
    const int plain = d->stack.types[depth - n - 2] == FG_SLOT_VALUE && d->stack.types[depth - n - 1] == FG_SLOT_VALUE;
    if (keywords && (d->n_out < 1 || d->out[d->n_out - 1].op != FG_OP_LOAD_CONST || PyTuple_GET_SIZE(d->out[d->n_out - 1].obj) > n + plain))
        return fg_decoder_refuse(d, "more keyword names than arguments");
    fg_decoder_put(d, op, keywords ? FG_OP_CALL_KW : FG_OP_CALL, n + plain)->flags = plain ? FG_IF_PLAIN : 0;
    return FG_OK;
}

static fg_status decode_name(fg_decoder *d, uint32_t index, PyObject **out)
{
    PyObject *names = d->raw.code->co_names;
    if ((Py_ssize_t)index >= PyTuple_GET_SIZE(names))
        return fg_decoder_refuse(d, "name index out of range");
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
            return fg_decoder_refuse(d, "constant index out of range");
        object = PyTuple_GET_ITEM(d->raw.code->co_consts, n);
        break;
    case FG_RAW_KIND_NAME:
    case FG_RAW_KIND_GLOBAL:
    case FG_RAW_KIND_ATTR:
    case FG_RAW_KIND_SUPER:
    case FG_RAW_KIND_IMPORT:
        if ((st = decode_name(d, fg_raw_name_index(op), &object)) != FG_OK)
            return st;
        break;
    case FG_RAW_KIND_SLOT:
        if (n >= d->raw.code->co_nlocalsplus)
            return fg_decoder_refuse(d, "slot out of range");
        break;
    case FG_RAW_KIND_SLOTS:
        if (n > 255 || n >> 4 >= d->raw.code->co_nlocalsplus || (n & 15) >= d->raw.code->co_nlocalsplus)
            return fg_decoder_refuse(d, "slot out of range");
        break;
    default: break;
    }

    int done = FG_DECODED_NOT;
    st = fg_version_decode_one(d, i, object, skip, &done);
    if (st != FG_OK || done != FG_DECODED_NOT) {
        if (st == FG_OK && done == FG_DECODED_LAST)
            fg_decoder_settle(d);
        return st;
    }
    fg_instr *instr;
    switch (op->op) {
    case FG_RAW_PUSH_NULL: fg_decoder_add(d, op, FG_OP_CALLEE, 0); return FG_OK;
    case FG_RAW_COPY: fg_decoder_put(d, op, FG_OP_COPY, values_in_top(d, n)); break;
    case FG_RAW_SWAP: decode_swap(d, op); return FG_OK;
    case FG_RAW_RERAISE: fg_decoder_put(d, op, FG_OP_RERAISE, n ? values_in_top(d, n + 1) - 1 : 0); break;
#define BELOW(NAME, POPS) \
    case FG_RAW_##NAME: fg_decoder_put(d, op, FG_OP_##NAME, values_in_top(d, n + (POPS)) - (POPS)); break;
        BELOW(LIST_APPEND, 1)
        BELOW(SET_ADD, 1)
        BELOW(MAP_ADD, 2)
        BELOW(LIST_EXTEND, 1)
        BELOW(SET_UPDATE, 1)
        BELOW(DICT_UPDATE, 1)
        BELOW(DICT_MERGE, 1)
#undef BELOW
    case FG_RAW_LOAD_FAST: fg_decoder_put(d, op, FG_OP_LOAD_FAST, n)->flags = FG_EVERY_FAST_LOAD_RAISES ? FG_IF_CHECK : 0; break;
    case FG_RAW_YIELD_VALUE:
        fg_decoder_put(d, op, FG_OP_YIELD_VALUE, i + 1 < d->raw.n_ops && op[1].op == FG_RAW_RESUME && (op[1].arg & FG_RESUME_KINDS) >= 2);
        break;
    case FG_RAW_JUMP_FORWARD:
    case FG_RAW_JUMP_BACKWARD:
    case FG_RAW_JUMP_BACKWARD_NO_INTERRUPT:
        instr = fg_decoder_put(d, op, FG_OP_JUMP, 0);
        instr->target = op->target;
        instr->flags = op->op == FG_RAW_JUMP_FORWARD ? FG_IF_FORWARD : op->op == FG_RAW_JUMP_BACKWARD ? 0 : FG_IF_QUIET;
        break;
    default:
        if (!plain_ops[op->op])
            return fg_decoder_refuse(d, "opcode without a canonical form");
        instr = fg_decoder_put(d, op, plain_ops[op->op] - 1, object || fg_raw_kinds[op->op] == FG_RAW_KIND_NONE ? 0 : n);
        instr->obj = object;
        if (op->target >= 0)
            instr->target = op->target, instr->arg = 0;
        break;
    }
    fg_decoder_settle(d);
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
        st = fg_decoder_refuse(&d, "code too large");
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
