/* The typed pass over real instructions.
 *
 * What CPython puts on its stack is more than values: PUSH_NULL and LOAD_GLOBAL's low bit push a NULL beside a callee; the load of a method
 * pushes two slots (function and self, or NULL and attribute: which of the two is known only at run time, so the pair is typed value, self).
 * The pass follows every path once from the entry and gives each slot its type; joins and handlers must agree. It also decides what is
 * reachable: a handler counts only from an instruction under it that may raise, because a table entry may cover instructions that cannot,
 * even ones whose stack is lower than the entry's depth.
 *
 * Here is what all versions have in common; vXYZ_effects.c has the rest. To add an opcode: give it a row in the version's shape (or a case in
 * its step if it moves anything but plain values), and say there if it cannot raise.
 */
#include "runtime/cpython/bytecode_raw.h"
#include <string.h>

static int may_raise(const fg_raw *op)
{
    switch (op->op) {
    case FG_RAW_CACHE:
    case FG_RAW_POP_TOP:
    case FG_RAW_PUSH_NULL:
    case FG_RAW_NOP:
    case FG_RAW_STORE_FAST:
    case FG_RAW_STORE_DEREF:
    case FG_RAW_MAKE_CELL:
    case FG_RAW_COPY_FREE_VARS:
    case FG_RAW_LOAD_CONST:
    case FG_RAW_COPY:
    case FG_RAW_SWAP:
    case FG_RAW_BUILD_TUPLE:
    case FG_RAW_BUILD_LIST:
    case FG_RAW_BUILD_STRING:
    case FG_RAW_BUILD_SLICE:
    case FG_RAW_LIST_APPEND:
    case FG_RAW_IS_OP:
    case FG_RAW_JUMP_FORWARD:
    case FG_RAW_JUMP_BACKWARD_NO_INTERRUPT:
    case FG_RAW_RETURN_VALUE:
    case FG_RAW_PUSH_EXC_INFO:
    case FG_RAW_POP_EXCEPT:
    case FG_RAW_MAKE_FUNCTION:
    case FG_RAW_MATCH_MAPPING:
    case FG_RAW_MATCH_SEQUENCE: return 0;
    default: return fg_version_may_raise(op);
    }
}

static int falls_through(int op)
{
    switch (op) {
    case FG_RAW_JUMP_FORWARD:
    case FG_RAW_JUMP_BACKWARD:
    case FG_RAW_JUMP_BACKWARD_NO_INTERRUPT:
    case FG_RAW_RETURN_VALUE:
    case FG_RAW_RERAISE:
    case FG_RAW_RAISE_VARARGS: return 0;
    default: return fg_version_falls_through(op);
    }
}

static int raw_shape(const fg_raw *op, int jump, fg_raw_shape *out)
{
    const int64_t n = op->arg;
    int64_t pops = 0, pushes = 0, reach = 0;
    switch ((fg_raw_op)op->op) {
    case FG_RAW_NOP:
    case FG_RAW_RESUME:
    case FG_RAW_MAKE_CELL:
    case FG_RAW_COPY_FREE_VARS:
    case FG_RAW_SETUP_ANNOTATIONS:
    case FG_RAW_JUMP_FORWARD:
    case FG_RAW_JUMP_BACKWARD:
    case FG_RAW_JUMP_BACKWARD_NO_INTERRUPT:
    case FG_RAW_DELETE_NAME:
    case FG_RAW_DELETE_GLOBAL:
    case FG_RAW_DELETE_FAST:
    case FG_RAW_DELETE_DEREF: break;
    case FG_RAW_LOAD_CONST:
    case FG_RAW_LOAD_NAME:
    case FG_RAW_LOAD_FAST:
    case FG_RAW_LOAD_DEREF:
    case FG_RAW_LOAD_BUILD_CLASS:
    case FG_RAW_RETURN_GENERATOR: pushes = 1; break;
    case FG_RAW_GET_LEN:
    case FG_RAW_MATCH_MAPPING:
    case FG_RAW_MATCH_SEQUENCE:
    case FG_RAW_GET_ANEXT:
    case FG_RAW_IMPORT_FROM:
    case FG_RAW_PUSH_EXC_INFO: pops = 1, pushes = 2; break;
    case FG_RAW_MATCH_KEYS: pops = 2, pushes = 3; break;
    case FG_RAW_POP_TOP:
    case FG_RAW_RETURN_VALUE:
    case FG_RAW_POP_EXCEPT:
    case FG_RAW_STORE_NAME:
    case FG_RAW_STORE_GLOBAL:
    case FG_RAW_STORE_FAST:
    case FG_RAW_STORE_DEREF:
    case FG_RAW_DELETE_ATTR: pops = 1; break;
    case FG_RAW_LIST_APPEND:
    case FG_RAW_SET_ADD:
    case FG_RAW_LIST_EXTEND:
    case FG_RAW_SET_UPDATE:
    case FG_RAW_DICT_UPDATE:
    case FG_RAW_RERAISE: pops = 1, reach = n; break;
    case FG_RAW_DICT_MERGE: pops = 1, reach = n + 2 + FG_NULL_FOLLOWS_CALLEE; break;
    case FG_RAW_MAP_ADD: pops = 2, reach = n; break;
    case FG_RAW_DELETE_SUBSCR:
    case FG_RAW_STORE_ATTR: pops = 2; break;
    case FG_RAW_STORE_SUBSCR: pops = 3; break;
    case FG_RAW_UNARY_NEGATIVE:
    case FG_RAW_UNARY_NOT:
    case FG_RAW_UNARY_INVERT:
    case FG_RAW_GET_AITER:
    case FG_RAW_GET_AWAITABLE:
    case FG_RAW_YIELD_VALUE: pops = pushes = 1; break;
    case FG_RAW_CHECK_EXC_MATCH:
    case FG_RAW_CHECK_EG_MATCH: pops = pushes = 2; break;
    case FG_RAW_BINARY_OP:
    case FG_RAW_COMPARE_OP:
    case FG_RAW_IS_OP:
    case FG_RAW_CONTAINS_OP:
    case FG_RAW_IMPORT_NAME: pops = 2, pushes = 1; break;
    case FG_RAW_MATCH_CLASS: pops = 3, pushes = 1; break;
    case FG_RAW_UNPACK_SEQUENCE: pops = 1, pushes = n; break;
    case FG_RAW_UNPACK_EX: pops = 1, pushes = (n & 255) + 1 + (n >> 8); break;
    case FG_RAW_BUILD_TUPLE:
    case FG_RAW_BUILD_LIST:
    case FG_RAW_BUILD_SET:
    case FG_RAW_BUILD_STRING: pops = n, pushes = 1; break;
    case FG_RAW_BUILD_SLICE: pops = n == 3 ? 3 : 2, pushes = 1; break;
    case FG_RAW_BUILD_MAP: pops = 2 * n, pushes = 1; break;
    case FG_RAW_RAISE_VARARGS: pops = n; break;
    default: return fg_version_shape(op, jump, out);
    }
    *out = (fg_raw_shape){pops, pushes, reach};
    return 1;
}

fg_status fg_raw_refuse(fg_raw_code *raw, const char *why)
{
    raw->why = why;
    return FG_ERR_INVALID;
}

int fg_raw_are_values(const fg_raw_stack *stack, int64_t from, int64_t n)
{
    for (int64_t i = from; i < from + n; i++)
        if (stack->types[i] != FG_SLOT_VALUE)
            return 0;
    return 1;
}

int fg_raw_is_callee(const fg_raw_stack *stack, int32_t at)
{
    const int first = stack->types[at], second = stack->types[at + 1];
    if (first == FG_SLOT_VALUE && (second == FG_SLOT_VALUE || second == FG_SLOT_SELF))
        return 1;
    return FG_NULL_FOLLOWS_CALLEE ? first == FG_SLOT_VALUE && second == FG_SLOT_NULL : first == FG_SLOT_NULL && second == FG_SLOT_VALUE;
}

int fg_raw_is_null_callee(const fg_raw_stack *stack, int32_t at)
{
    return stack->types[at + FG_NULL_FOLLOWS_CALLEE] == FG_SLOT_NULL && stack->types[at + !FG_NULL_FOLLOWS_CALLEE] == FG_SLOT_VALUE;
}

fg_status fg_raw_push(fg_raw_code *raw, fg_raw_stack *stack, int type)
{
    if (stack->depth >= raw->room)
        return fg_raw_refuse(raw, "stack deeper than co_stacksize");
    stack->types[stack->depth++] = (uint8_t)type;
    return FG_OK;
}

fg_status fg_raw_step(fg_raw_code *raw, int32_t i, fg_raw_stack *stack, int jump)
{
    const fg_raw *op = &raw->ops[i];
    const int64_t n = op->arg, depth = stack->depth;
    fg_status st;
    switch (op->op) {
    case FG_RAW_PUSH_NULL: return fg_raw_push(raw, stack, FG_SLOT_NULL);
    case FG_RAW_LOAD_GLOBAL:
        if (!(op->arg & 1))
            return fg_raw_push(raw, stack, FG_SLOT_VALUE);
        if ((st = fg_raw_push(raw, stack, FG_NULL_FOLLOWS_CALLEE ? FG_SLOT_VALUE : FG_SLOT_NULL)) != FG_OK)
            return st;
        return fg_raw_push(raw, stack, FG_NULL_FOLLOWS_CALLEE ? FG_SLOT_NULL : FG_SLOT_VALUE);
    case FG_RAW_COPY:
        if (n < 1 || depth < n || !fg_raw_are_values(stack, depth - n, 1))
            return fg_raw_refuse(raw, "COPY of no value");
        if (n > 1 && stack->types[depth - n + 1] == FG_SLOT_SELF)
            return fg_raw_refuse(raw, "COPY of half a method pair");
        return fg_raw_push(raw, stack, FG_SLOT_VALUE);
    case FG_RAW_SWAP: {
        if (n < 1 || depth < n)
            return fg_raw_refuse(raw, "SWAP below the stack");
        uint8_t *a = &stack->types[depth - n], *b = &stack->types[depth - 1], kept = *a;
        if (FG_VALUES_MAY_BE_WIDE ? *a == FG_SLOT_SPENT || *b == FG_SLOT_SPENT
                                  : *a >= FG_SLOT_SELF || *b >= FG_SLOT_SELF || (n > 1 && a[1] == FG_SLOT_SELF))
            return fg_raw_refuse(raw, "SWAP of half a method pair");
        *a = *b, *b = kept;
        return FG_OK;
    }
    case FG_RAW_CALL: {
        if (depth < n + 2 || !fg_raw_are_values(stack, depth - n, n))
            return fg_raw_refuse(raw, "CALL with arguments that are no values");
        if (!fg_raw_is_callee(stack, (int32_t)(depth - n - 2)))
            return fg_raw_refuse(raw, "CALL without a callee pair");
        stack->depth -= (int32_t)n + 2;
        return fg_raw_push(raw, stack, FG_SLOT_VALUE);
    }
    default: {
        fg_raw_shape shape;
        int done = 0;
        st = fg_version_step(raw, i, stack, jump, &done);
        if (st != FG_OK || done)
            return st;
        if (!raw_shape(op, jump, &shape))
            return fg_raw_refuse(raw, "opcode without a known stack effect");
        if (depth < shape.pops + shape.reach)
            return fg_raw_refuse(raw, "stack underflow");
        if (!fg_raw_are_values(stack, depth - shape.pops, shape.pops))
            return fg_raw_refuse(raw, "NULL or half a method pair used as a value");
        if (depth - shape.pops + shape.pushes > raw->room)
            return fg_raw_refuse(raw, "stack deeper than co_stacksize");
        stack->depth -= (int32_t)shape.pops;
        memset(stack->types + stack->depth, FG_SLOT_VALUE, (size_t)shape.pushes);
        stack->depth += (int32_t)shape.pushes;
        return FG_OK;
    }
    }
}

int32_t fg_raw_stack_values(const fg_raw_stack *stack, int32_t from, int32_t n)
{
    int32_t values = 0;
    for (int32_t i = from; i < from + n; i++)
        values += stack->types[i] == FG_SLOT_VALUE;
    return values;
}

fg_status fg_raw_stack_new(fg_raw_code *raw, fg_raw_stack *out)
{
    out->depth = 0;
    out->types = fg_arena_alloc(&raw->arena, (size_t)raw->room + 2);
    return out->types ? FG_OK : FG_ERR_NOMEM;
}

void fg_raw_stack_enter(const fg_raw_code *raw, int32_t i, fg_raw_stack *stack)
{
    const int32_t s = raw->ops[i].state;
    if (s >= 0) {
        memcpy(stack->types, raw->states[s].types, (size_t)raw->states[s].depth);
        stack->depth = raw->states[s].depth;
    }
}

/* A path reaches a join with this stack: keep it and queue the join, or check that it agrees. */
static fg_status reach(fg_raw_code *raw, int32_t to, const fg_raw_stack *stack, int32_t *queue, int32_t *n_queued)
{
    fg_raw_stack *kept = &raw->states[raw->ops[to].state];
    if (kept->depth < 0) {
        kept->types = fg_arena_alloc(&raw->arena, (size_t)stack->depth + 1);
        if (!kept->types)
            return FG_ERR_NOMEM;
        memcpy(kept->types, stack->types, (size_t)stack->depth);
        kept->depth = stack->depth;
        queue[(*n_queued)++] = to;
        return FG_OK;
    }
    if (kept->depth != stack->depth || memcmp(kept->types, stack->types, (size_t)stack->depth) != 0)
        return fg_raw_refuse(raw, "stacks disagree where paths meet");
    return FG_OK;
}

static fg_status reach_handler(fg_raw_code *raw, int32_t e, const fg_raw_stack *stack, fg_raw_stack *scratch, int32_t *queue,
                               int32_t *n_queued)
{
    fg_raw_entry *entry = &raw->entries[e];
    if (stack->depth < entry->depth)
        return fg_raw_refuse(raw, "stack below a handler's depth at an instruction that may raise");
    const int32_t pushed = entry->depth + 1 + entry->lasti;
    if (pushed > raw->room)
        return fg_raw_refuse(raw, "handler entry deeper than co_stacksize");
    memcpy(scratch->types, stack->types, (size_t)entry->depth);
    scratch->types[entry->depth] = FG_SLOT_VALUE;
    scratch->types[entry->depth + 1] = FG_SLOT_VALUE;
    scratch->depth = pushed;
    if (pushed > raw->max_depth)
        raw->max_depth = pushed;
    entry->values = fg_raw_stack_values(scratch, 0, entry->depth);
    return reach(raw, entry->target, scratch, queue, n_queued);
}

fg_status fg_raw_flow(fg_raw_code *raw)
{
    fg_status st;
    fg_raw_stack stack, other;
    int32_t n_queued = 0;
    if (raw->code->co_stacksize < 0 || raw->code->co_stacksize > (1 << 24))
        return fg_raw_refuse(raw, "co_stacksize out of range");
    raw->room = raw->code->co_stacksize;

    for (int32_t i = -1; i < raw->n_ops + raw->n_entries; i++) {
        const int32_t to = i < 0 ? 0 : i < raw->n_ops ? raw->ops[i].target : raw->entries[i - raw->n_ops].target;
        if (to >= 0 && raw->ops[to].state < 0)
            raw->ops[to].state = raw->n_states++;
    }
    raw->states = fg_arena_alloc(&raw->arena, (size_t)raw->n_states * sizeof *raw->states);
    int32_t *queue = fg_arena_alloc(&raw->arena, (size_t)raw->n_states * sizeof *queue);
    if (!raw->states || !queue)
        return FG_ERR_NOMEM;
    for (int32_t s = 0; s < raw->n_states; s++)
        raw->states[s].depth = -1;
    if ((st = fg_raw_stack_new(raw, &stack)) != FG_OK || (st = fg_raw_stack_new(raw, &other)) != FG_OK ||
        (st = reach(raw, 0, &stack, queue, &n_queued)) != FG_OK)
        return st;

    while (n_queued) {
        int32_t i = queue[--n_queued];
        fg_raw_stack_enter(raw, i, &stack);
        for (;;) {
            fg_raw *op = &raw->ops[i];
            op->reachable = 1;
            if (op->entry >= 0 && may_raise(op) && (st = reach_handler(raw, op->entry, &stack, &other, queue, &n_queued)) != FG_OK)
                return st;
            if (op->target >= 0) {
                memcpy(other.types, stack.types, (size_t)stack.depth);
                other.depth = stack.depth;
                if ((st = fg_raw_step(raw, i, &other, 1)) != FG_OK || (st = reach(raw, op->target, &other, queue, &n_queued)) != FG_OK)
                    return st;
            }
            if ((st = fg_raw_step(raw, i, &stack, 0)) != FG_OK)
                return st;
            if (stack.depth > raw->max_depth)
                raw->max_depth = stack.depth;
            if (!falls_through(op->op))
                break;
            if (++i >= raw->n_ops)
                return fg_raw_refuse(raw, "the code runs past its end");
            if (raw->ops[i].state >= 0) {
                if ((st = reach(raw, i, &stack, queue, &n_queued)) != FG_OK)
                    return st;
                break;
            }
        }
    }
    return FG_OK;
}
