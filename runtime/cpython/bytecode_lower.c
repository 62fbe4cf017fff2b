/* From canonical instructions to real ones, in code order; the plan (bytecode_assemble.c) is made.
 *
 * Most are one to one (bytecode_same.def, vXYZ_same.def). The others are the mirror of the table in bytecode_decode.c and of the version's
 * (vXYZ_decode.c, vXYZ_lower.c, until312/, since312/): groups that are one opcode are put together again when nothing jumps between their members. Depths and distances are
 * counted in real slots here.
 */
#include "runtime/cpython/bytecode_lower.h"
#include <string.h>

enum { MOST_ABOVE_CALLEE = 8 };

fg_status fg_lower_refuse(fg_assembler *a, fg_status st, const char *why)
{
    a->why = why;
    return st;
}

static const uint8_t direct_ops[FG_N_COPS] = {
#define FG_SAME(NAME) [FG_OP_##NAME] = FG_RAW_##NAME,
#include "runtime/cpython/bytecode_same.def"
#include FG_VERSION_SAME
#undef FG_SAME
    [FG_OP_LOAD_GLOBAL] = FG_RAW_LOAD_GLOBAL,
    [FG_OP_LIST_APPEND] = FG_RAW_LIST_APPEND,
    [FG_OP_SET_ADD] = FG_RAW_SET_ADD,
    [FG_OP_MAP_ADD] = FG_RAW_MAP_ADD,
    [FG_OP_LIST_EXTEND] = FG_RAW_LIST_EXTEND,
    [FG_OP_SET_UPDATE] = FG_RAW_SET_UPDATE,
    [FG_OP_DICT_UPDATE] = FG_RAW_DICT_UPDATE,
    [FG_OP_DICT_MERGE] = FG_RAW_DICT_MERGE,
    [FG_OP_RERAISE] = FG_RAW_RERAISE,
    [FG_OP_COPY] = FG_RAW_COPY,
    [FG_OP_SWAP] = FG_RAW_SWAP,
    [FG_OP_YIELD_VALUE] = FG_RAW_YIELD_VALUE,
    /* The direction of jumps is settled when the order is final. */
    [FG_OP_JUMP] = FG_RAW_JUMP_FORWARD,
};

fg_real *fg_lower_put(fg_lowering *l, int32_t source, int op, int32_t arg)
{
    fg_real *real = &l->a->out[l->a->n_out++];
    *real = (fg_real){.op = (uint8_t)op, .arg = (uint32_t)arg, .target = -1, .source = source, .depth = l->depth};
    return real;
}

/* The instruction before, where one may load a NULL behind what it loads. */
static fg_real *loads_before(fg_assembler *a)
{
    return FG_NULL_FOLLOWS_CALLEE && a->n_out ? &a->out[a->n_out - 1] : NULL;
}

void fg_lower_null(fg_lowering *l, int32_t source)
{
    fg_assembler *a = l->a;
    fg_real *last = loads_before(a);
    /* One that follows its callee is part of the load of a global, if nothing jumps between the two. */
    if (last && last->op == FG_RAW_LOAD_GLOBAL && !(last->arg & 1) && last->source == source - 1 && !(a->at[source] & FG_AT_TARGET))
        last->arg |= 1;
    else
        fg_lower_put(l, source, FG_RAW_PUSH_NULL, 0);
    if (++l->depth > a->max_depth)
        a->max_depth = l->depth;
}

/* How many real slots the top n canonical values take, from the n-th up. */
static int32_t real_distance(const fg_assembler *a, int32_t n)
{
    int32_t i = a->now.n;
    while (n > 0 && i > 0) {
        const int32_t item = a->now.items[--i];
        n -= item < 0 && item != FG_ITEM_NULL;
    }
    return fg_items_real(a, &a->now, i);
}

fg_status fg_lower_name(fg_assembler *a, const fg_instr *instr, int32_t *index)
{
    if (!instr->obj || !PyUnicode_CheckExact(instr->obj))
        return fg_lower_refuse(a, FG_ERR_INVALID, "a name that is no str");
    return fg_pool_add(&a->names, instr->obj, index);
}

fg_status fg_lower_constant(fg_assembler *a, const fg_instr *instr, int32_t *index)
{
    if (!instr->obj)
        return fg_lower_refuse(a, FG_ERR_INVALID, "LOAD_CONST without an object");
    return fg_pool_add(&a->constants, instr->obj, index);
}

/* A cell variable: one after the plain variables, or an argument that is a cell as well. */
static int is_cell(const fg_assembler *a, int32_t slot)
{
    const Py_ssize_t n = PyTuple_GET_SIZE(a->in->varnames);
    if (slot >= n)
        return 1;
    for (Py_ssize_t c = 0; c < PyTuple_GET_SIZE(a->in->cellvars); c++)
        if (PyUnicode_Compare(PyTuple_GET_ITEM(a->in->varnames, slot), PyTuple_GET_ITEM(a->in->cellvars, c)) == 0)
            return 1;
    return 0;
}

/* Numbers that the interpreter would take on trust. */
static int argument_is_sound(const fg_assembler *a, const fg_instr *instr)
{
    const int32_t n = instr->arg;
    switch (instr->op) {
    case FG_OP_BINARY_OP: return n <= 25;
    case FG_OP_COMPARE_OP: return n <= 5;
    case FG_OP_IS_OP:
    case FG_OP_CONTAINS_OP:
    case FG_OP_YIELD_VALUE: return n <= 1;
    case FG_OP_SET_FUNCTION_ATTRIBUTE: return fg_function_attribute_is_known((uint32_t)n);
    case FG_OP_BUILD_SLICE: return n == 2 || n == 3;
    case FG_OP_RAISE_VARARGS:
    case FG_OP_GET_AWAITABLE: return n <= 2;
    case FG_OP_RESUME: return n <= (FG_RESUME_KINDS == 3 ? 3 : 4);
    case FG_OP_IMPORT_NAME: return n <= 2;
    case FG_OP_CONVERT_VALUE: return n >= 1 && n <= 3;
    case FG_OP_COPY_FREE_VARS: return n == PyTuple_GET_SIZE(a->in->freevars);
    case FG_OP_LOAD_FAST:
    case FG_OP_LOAD_FAST_AND_CLEAR:
    case FG_OP_STORE_FAST:
    case FG_OP_DELETE_FAST: return n < a->n_slots;
    case FG_OP_LOAD_DEREF:
    case FG_OP_STORE_DEREF:
    case FG_OP_DELETE_DEREF:
    case FG_OP_LOAD_FROM_DICT_OR_DEREF: return n < a->n_slots && (n >= a->n_slots - PyTuple_GET_SIZE(a->in->freevars) || is_cell(a, n));
    case FG_OP_MAKE_CELL:
        /* A comprehension that is part of its function may have a cell variable of the same name as a free one, and then uses that one's slot. */
        return n < a->n_slots - (FG_COMPREHENSIONS_ARE_INLINE ? 0 : PyTuple_GET_SIZE(a->in->freevars)) && is_cell(a, n);
    default: return 1;
    }
}

int fg_lower_top_width(const fg_assembler *a, int32_t n)
{
    return fg_assembler_width(a, &a->now, n);
}

int fg_lower_follows(const fg_assembler *a, int32_t i, int op)
{
    return i < a->in->n_instrs && a->in->instrs[i].op == op && !(a->at[i] & FG_AT_TARGET) &&
           a->in->instrs[i].handler == a->in->instrs[i - 1].handler;
}

/* Runs after the step, which tells the form. */
static void lower_call(fg_lowering *l, int32_t i)
{
    fg_assembler *a = l->a;
    const fg_instr *instr = &a->in->instrs[i];
    const int32_t n = instr->op == FG_OP_CALL_EX ? instr->arg != 0 : instr->arg;
    if (a->form == FG_CALL_BARE) {
        /* What stands on the callee; the NULL goes below that, and on earlier versions below the callee, too. */
        const int32_t above = instr->op == FG_OP_CALL_EX ? n + 1 : instr->op == FG_OP_CALL_KW && FG_NAMES_ARE_ON_THE_STACK;
        fg_lower_null(l, i);
        for (int32_t k = above + 2 - FG_NULL_FOLLOWS_CALLEE; k >= 2; k--)
            fg_lower_put(l, i, FG_RAW_SWAP, k);
    }
    if (instr->op == FG_OP_CALL_EX) {
        fg_version_lower_call_ex(l, i);
        return;
    }
    fg_version_lower_call(l, i, a->form == FG_CALL_PLAIN ? n - 1 : n);
}

/* DICT_MERGE looks for the callee, to name it in an error, below the slot of the callee's NULL. A call that gets its NULL only when it is made has none yet:
 * something else stands there meanwhile. */
static fg_status lower_merge(fg_lowering *l, int32_t i)
{
    fg_assembler *a = l->a;
    const int32_t n = a->in->instrs[i].arg, dict = real_distance(a, n + 1) - 1, above = real_distance(a, n + 2);
    const int stands_in = (real_distance(a, n + 3) == above + 1) & FG_NULL_FOLLOWS_CALLEE;
    const fg_instr none = {.obj = Py_None};
    int32_t index = 0;
    fg_status st;
    if (stands_in) {
        if (above > MOST_ABOVE_CALLEE)
            return fg_lower_refuse(a, FG_ERR_UNSUPPORTED, "DICT_MERGE too far from its callee");
        if ((st = fg_lower_constant(a, &none, &index)) != FG_OK)
            return st;
        fg_lower_put(l, i, FG_RAW_LOAD_CONST, index);
        if (++l->depth > a->max_depth)
            a->max_depth = l->depth;
        for (int32_t k = above + 1; k >= 2; k--)
            fg_lower_put(l, i, FG_RAW_SWAP, k);
    }
    fg_lower_put(l, i, FG_RAW_DICT_MERGE, dict);
    if (stands_in) {
        l->depth--;
        for (int32_t k = 2; k <= above; k++)
            fg_lower_put(l, i, FG_RAW_SWAP, k);
        fg_lower_put(l, i, FG_RAW_POP_TOP, 0);
    }
    return FG_OK;
}

enum { MOST_MOVED = 64 };

/* Two values change places, at least one of which takes two slots: slot after slot comes from the top to where it belongs, as the compiler does it. */
static fg_status lower_wide_swap(fg_lowering *l, int32_t i, int32_t n)
{
    const fg_assembler *a = l->a;
    const int32_t low = fg_lower_top_width(a, n), high = fg_lower_top_width(a, 1), all = real_distance(a, n), between = all - low - high;
    int16_t to[MOST_MOVED]; /* where the slot that is here belongs */
    if (all > MOST_MOVED)
        return fg_lower_refuse(l->a, FG_ERR_UNSUPPORTED, "SWAP of values too far from each other");
    for (int32_t k = 0; k < all; k++)
        to[k] = (int16_t)(k < low ? k + high + between : k < low + between ? k - low + high : k - low - between);
    for (int32_t k = 0; k < all;) {
        if (to[all - 1] == all - 1 && to[k] == k) {
            k++;
            continue;
        }
        const int32_t with = to[all - 1] != all - 1 ? to[all - 1] : k;
        const int16_t kept = to[with];
        fg_lower_put(l, i, FG_RAW_SWAP, all - with);
        to[with] = to[all - 1], to[all - 1] = kept;
    }
    return FG_OK;
}

/* Behind an instruction: the second slots of those results that it has not pushed itself. */
static void lower_widened(fg_lowering *l, int32_t i, int32_t n_results)
{
    for (int32_t k = 0; k < n_results; k++) {
        if (!fg_assembler_widens(l->a, i, k))
            continue;
        l->depth = fg_items_real(l->a, &l->a->now, 0) - 1;
        fg_lower_put(l, i, FG_RAW_PUSH_NULL, 0);
        for (int32_t above = n_results - k; above >= 2; above--)
            fg_lower_put(l, i, FG_RAW_SWAP, above);
    }
}

static int widens_any(const fg_assembler *a, int32_t i)
{
    const int32_t n = FG_VALUES_MAY_BE_WIDE && i < a->in->n_instrs ? fg_instr_shape(&a->in->instrs[i], 0).pushes : 0;
    for (int32_t k = 0; k < n; k++)
        if (fg_assembler_widens(a, i, k))
            return 1;
    return 0;
}

static fg_status lower_one(fg_lowering *l, int32_t i)
{
    fg_assembler *a = l->a;
    const fg_instr *instr = &a->in->instrs[i];
    const int32_t n = instr->arg;
    int32_t index = 0;
    int done = 0;
    fg_status st = fg_version_lower_one(l, i, &done);
    if (st != FG_OK || done)
        return st;
    switch (instr->op) {
    case FG_OP_CALLEE: {
        if ((a->at[i] & (FG_AT_USED | FG_AT_BANNED)) != FG_AT_USED)
            return FG_OK;
        int32_t next = i + 1;
        while (next < a->in->n_instrs && a->in->instrs[next].op == FG_OP_CALLEE && !(a->at[next] & FG_AT_TARGET) &&
               (a->at[next] & (FG_AT_USED | FG_AT_BANNED)) != FG_AT_USED)
            next++;
        if (!FG_NULL_FOLLOWS_CALLEE && next < a->in->n_instrs && a->in->instrs[next].op == FG_OP_LOAD_GLOBAL &&
            !(a->at[next] & FG_AT_TARGET) && !a->nulls[next])
            l->fuse_null = 1;
        else
            fg_lower_null(l, i);
        return FG_OK;
    }
    case FG_OP_LOAD_GLOBAL:
        if ((st = fg_lower_name(a, instr, &index)) != FG_OK)
            return st;
        fg_lower_put(l, i, FG_RAW_LOAD_GLOBAL, index << 1 | l->fuse_null);
        l->fuse_null = 0;
        return FG_OK;
    case FG_OP_LOAD_CONST:
        if ((st = fg_lower_constant(a, instr, &index)) != FG_OK)
            return st;
        fg_lower_put(l, i, FG_RAW_LOAD_CONST, index);
        return FG_OK;
    case FG_OP_SWAP:
        if (n > 1 && (fg_lower_top_width(a, n) > 1 || fg_lower_top_width(a, 1) > 1))
            return lower_wide_swap(l, i, n);
        fg_lower_put(l, i, direct_ops[instr->op], real_distance(a, n));
        return FG_OK;
    case FG_OP_COPY: fg_lower_put(l, i, direct_ops[instr->op], real_distance(a, n)); return FG_OK;
    case FG_OP_RERAISE: fg_lower_put(l, i, FG_RAW_RERAISE, n ? real_distance(a, n + 1) - 1 : 0); return FG_OK;
    case FG_OP_LIST_APPEND:
    case FG_OP_SET_ADD:
    case FG_OP_LIST_EXTEND:
    case FG_OP_SET_UPDATE:
    case FG_OP_DICT_UPDATE: fg_lower_put(l, i, direct_ops[instr->op], real_distance(a, n + 1) - 1); return FG_OK;
    case FG_OP_DICT_MERGE: return lower_merge(l, i);
    case FG_OP_MAP_ADD: fg_lower_put(l, i, FG_RAW_MAP_ADD, real_distance(a, n + 2) - 2); return FG_OK;
    case FG_OP_JUMP:
    case FG_OP_FOR_ITER:
    case FG_OP_SEND: fg_lower_put(l, i, direct_ops[instr->op], 0)->target = instr->target; return FG_OK;
    default:
        if (!direct_ops[instr->op])
            break;
        if (fg_raw_kinds[direct_ops[instr->op]] == FG_RAW_KIND_NAME) {
            if ((st = fg_lower_name(a, instr, &index)) != FG_OK)
                return st;
        } else if (fg_raw_kinds[direct_ops[instr->op]] != FG_RAW_KIND_NONE) {
            index = n;
        }
        fg_lower_put(l, i, direct_ops[instr->op], index);
        return FG_OK;
    }
    return fg_lower_refuse(a, FG_ERR_UNSUPPORTED, fg_cop_name(instr->op));
}

/* The real depth at which a handler is entered must be the same from everywhere. */
static fg_status note_handler(fg_assembler *a, int32_t i)
{
    const int32_t h = a->in->instrs[i].handler;
    if (h < 0 || !fg_assembler_raises(a, i))
        return FG_OK;
    const fg_handler *handler = &a->in->handlers[h];
    fg_items below = a->now;
    below.n = fg_items_below(&a->now, handler->depth);
    const int32_t depth = fg_items_real(a, &below, 0);
    if (a->handler_depth[h] >= 0 && a->handler_depth[h] != depth)
        return fg_lower_refuse(a, FG_ERR_INVALID, "a handler with different real depths");
    a->handler_depth[h] = depth;
    const int32_t entered = depth + 1 + (handler->lasti != 0);
    if (entered > a->max_depth)
        a->max_depth = entered;
    return FG_OK;
}

static int is_call(int op)
{
    return op == FG_OP_CALL || op == FG_OP_CALL_KW || op == FG_OP_CALL_EX || op == FG_OP_CALL_SUPER;
}

static fg_status lower_at(fg_lowering *l, int32_t *at)
{
    fg_assembler *a = l->a;
    const int32_t i = *at;
    const fg_instr *instr = &a->in->instrs[i];
    fg_status st;
    if (a->state[i] >= 0 && (st = fg_items_copy(a, &a->now, &a->states[a->state[i]])) != FG_OK)
        return st;
    l->depth = fg_items_real(a, &a->now, 0) - (l->fuse_null && a->state[i] < 0) + (l->is_spent ? 1 + FG_ITERATORS_ARE_WIDE : 0);
    for (int k = 0; k < a->nulls[i]; k++) {
        if (!FG_NULL_FOLLOWS_CALLEE && k == a->nulls[i] - 1 && instr->op == FG_OP_LOAD_GLOBAL)
            l->fuse_null = 1;
        else
            fg_lower_null(l, i);
    }
    st = FG_OK;
    int32_t length = widens_any(a, i) ? 0 : fg_version_lower_group(l, i, &st);
    if (st != FG_OK)
        return st;
    if (!length) {
        length = 1;
        if (!argument_is_sound(a, instr))
            return fg_lower_refuse(a, FG_ERR_INVALID, "argument out of range");
        if (!is_call(instr->op) && !((a->at[i] & FG_AT_GHOST) && instr->op != FG_OP_LOAD_CONST) && (st = lower_one(l, i)) != FG_OK)
            return st;
    } else {
        for (int32_t k = i; k < i + length; k++)
            if (!argument_is_sound(a, &a->in->instrs[k]))
                return fg_lower_refuse(a, FG_ERR_INVALID, "argument out of range");
    }
    for (int k = 0; k < a->nulls[i]; k++)
        if ((st = fg_items_null(a, &a->now)) != FG_OK)
            return st;
    for (int32_t k = i; k < i + length; k++) {
        a->first[k] = k == i ? a->first[k] : a->n_out;
        if ((st = note_handler(a, k)) != FG_OK || (st = fg_items_step(a, k, &a->now, 0)) != FG_OK)
            return st;
    }
    if (is_call(instr->op) && length == 1)
        lower_call(l, i);
    if (FG_VALUES_MAY_BE_WIDE)
        lower_widened(l, i + length - 1, fg_instr_shape(&instr[length - 1], 0).pushes);
    const int32_t depth = fg_items_real(a, &a->now, 0);
    if (depth > a->max_depth)
        a->max_depth = depth;
    *at = i + length;
    return FG_OK;
}

static fg_status count_slots(fg_assembler *a)
{
    const fg_asm *in = a->in;
    PyObject *const tuples[] = {in->varnames, in->cellvars, in->freevars};
    for (int t = 0; t < 3; t++) {
        if (!tuples[t] || !PyTuple_Check(tuples[t]))
            return fg_lower_refuse(a, FG_ERR_INVALID, "variable names that are no tuple");
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuples[t]); i++)
            if (!PyUnicode_Check(PyTuple_GET_ITEM(tuples[t], i)))
                return fg_lower_refuse(a, FG_ERR_INVALID, "a variable name that is no str");
    }
    Py_ssize_t n = PyTuple_GET_SIZE(in->varnames) + PyTuple_GET_SIZE(in->freevars);
    for (Py_ssize_t c = 0; c < PyTuple_GET_SIZE(in->cellvars); c++) {
        const int known = PySequence_Contains(in->varnames, PyTuple_GET_ITEM(in->cellvars, c));
        if (known < 0)
            return FG_ERR_PYTHON;
        n += !known;
    }
    if (n > INT32_MAX / 8)
        return fg_lower_refuse(a, FG_ERR_INVALID, "too many variables");
    a->n_slots = (int32_t)n;
    return FG_OK;
}

/* At most this many real instructions come of a canonical one, NULLs placed before it aside. */
static size_t most_put(int op)
{
    const size_t most = is_call(op)                                        ? 8
                        : op == FG_OP_DICT_MERGE && FG_NULL_FOLLOWS_CALLEE ? 2 * MOST_ABOVE_CALLEE + 3
                        : op == FG_OP_TO_BOOL                              ? 2
                                                                           : 1;
    return most + fg_version_most_lowered(op);
}

/* The same for the moves of values in two slots. */
static size_t most_widened(const fg_assembler *a, int32_t i)
{
    const int32_t n = FG_VALUES_MAY_BE_WIDE ? fg_instr_shape(&a->in->instrs[i], 0).pushes : 0;
    size_t most = FG_VALUES_MAY_BE_WIDE && a->in->instrs[i].op == FG_OP_SWAP ? (size_t)2 * MOST_MOVED : 0;
    for (int32_t k = 0; k < n; k++)
        most += fg_assembler_widens(a, i, k) ? (size_t)(n - k) : 0;
    return most;
}

fg_status fg_assembler_lower(fg_assembler *a)
{
    const int32_t n = a->in->n_instrs;
    fg_status st = count_slots(a);
    if (st != FG_OK)
        return st;
    size_t room = 0;
    for (int32_t i = 0; i < n; i++)
        room += most_put(a->in->instrs[i].op) + a->nulls[i] + most_widened(a, i);
    a->out = fg_arena_alloc(&a->arena, room * sizeof *a->out);
    a->first = fg_arena_alloc(&a->arena, (size_t)n * sizeof *a->first);
    a->handler_depth = fg_arena_alloc(&a->arena, ((size_t)a->in->n_handlers + 1) * sizeof *a->handler_depth);
    if (!a->out || !a->first || !a->handler_depth)
        return FG_ERR_NOMEM;
    for (int32_t h = 0; h < a->in->n_handlers; h++)
        a->handler_depth[h] = -1;

    /* The interpreter takes a str in co_consts[0] for the docstring, so a function without one gets None there. */
    int32_t index;
    PyObject *first = a->in->first_const ? a->in->first_const : a->in->flags & CO_OPTIMIZED ? Py_None : NULL;
    if (first && (st = fg_pool_add(&a->constants, first, &index)) != FG_OK)
        return st;
    fg_lowering l = {.a = a};
    if ((st = fg_version_lower_begin(&l)) != FG_OK)
        return st;
    for (int32_t i = 0; i < n;) {
        if (a->depths[i] >= 0 && (st = fg_version_lower_edge(&l, i)) != FG_OK)
            return st;
        a->first[i] = a->n_out;
        if (a->depths[i] < 0) {
            i++;
            continue;
        }
        if ((st = lower_at(&l, &i)) != FG_OK)
            return st;
    }
    return FG_OK;
}
