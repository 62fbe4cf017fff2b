/* The assembler's plan: which CALLEE is a NULL, and is the input sound?
 *
 * A canonical stack holds values; the real one has NULLs below callees (from 3.13 on: right above them). Canonical code may say where (CALLEE before the
 * callee, after it, or both), or not at all. So a CALLEE is kept on the symbolic stack as an item of its own, a *maybe NULL*:
 *
 *       CALLEE   LOAD f   CALLEE   LOAD a   CALL 1             items before the call:  [c0] f [c2] a
 *                                                              the call takes a, throws c2 away, takes f and finds c0 right below it
 *
 * A call whose callee has a maybe-NULL right below (or above: c2) makes it a real NULL (USED). One that an argument or a store removes is DROPPED: nothing
 * was ever pushed for it. Paths may treat one CALLEE differently, or arrive at a join with different ones; then it is banned (taken for
 * nothing) and the walk starts again, which ends because each round bans at least one. A call that has none:
 *   - with an argument needs none: callee and first argument go into the callee's two slots, which the interpreter takes as function, self;
 *   - without one, a NULL is pushed where the callee's own code starts if that is straight-line code before the call (fused into a
 *     LOAD_GLOBAL there), else it is pushed at the call and moved below the callee.
 * All forms mean the same to the interpreter; the last is the slowest by one to three SWAPs.
 *
 * Where some values take two slots (FG_VALUES_MAY_BE_WIDE), which ones do is found in the same rounds: what makes a wide value (BEFORE_WITH) and what needs one
 * (WITH_EXCEPT_START) says so, values that meet at a join are united, and an instruction whose result is found to be wide pushes a NULL behind it.
 *
 * Rules for changes: every item a path adds must be removed by the same path or banned; fg_items_step is used both here and by the lowering,
 * with the same results, so it may depend on nothing but the items and the AT bits.
 */
#include "runtime/cpython/bytecode_assemble.h"
#include <string.h>

static fg_status refuse(fg_assembler *a, const char *why)
{
    a->why = why;
    return FG_ERR_INVALID;
}

static fg_status push(fg_assembler *a, fg_items *items, int32_t item)
{
    if (items->n == items->room) {
        const int32_t room = items->room ? 2 * items->room : 32;
        int32_t *bigger = fg_arena_alloc(&a->arena, (size_t)room * sizeof *bigger);
        if (!bigger)
            return FG_ERR_NOMEM;
        if (items->n)
            memcpy(bigger, items->items, (size_t)items->n * sizeof *bigger);
        items->items = bigger, items->room = room;
    }
    items->items[items->n++] = item;
    items->values += fg_item_is_value(item) || item == FG_ITEM_METHOD || item == FG_ITEM_GHOST;
    return FG_OK;
}

fg_status fg_items_copy(fg_assembler *a, fg_items *to, const fg_items *from)
{
    if (to->room < from->n) {
        to->items = fg_arena_alloc(&a->arena, (size_t)from->n * sizeof *to->items);
        if (!to->items)
            return FG_ERR_NOMEM;
        to->room = from->n;
    }
    if (from->n)
        memcpy(to->items, from->items, (size_t)from->n * sizeof *to->items);
    to->n = from->n, to->values = from->values;
    return FG_OK;
}

fg_status fg_items_null(fg_assembler *a, fg_items *items)
{
    return push(a, items, FG_ITEM_NULL);
}

static int32_t root_of(const fg_assembler *a, int32_t item)
{
    int32_t variable = FG_ITEM_MADE - item;
    while (a->same_as[variable] != variable)
        variable = a->same_as[variable] = a->same_as[a->same_as[variable]];
    return variable;
}

static int is_wide(const fg_assembler *a, int32_t item)
{
    return item <= FG_ITEM_MADE && a->is_wide[root_of(a, item)];
}

static void widen(fg_assembler *a, int32_t item)
{
    if (item > FG_ITEM_MADE || is_wide(a, item))
        return;
    a->is_wide[root_of(a, item)] = 1;
    a->n_widened++;
}

/* Two values that are in one place where paths meet take as many slots. */
static void unite(fg_assembler *a, int32_t one, int32_t two)
{
    if (one > FG_ITEM_MADE || two > FG_ITEM_MADE)
        return;
    const int32_t x = root_of(a, one), y = root_of(a, two);
    if (x == y)
        return;
    a->same_as[y] = x;
    if (a->is_wide[x] != a->is_wide[y])
        a->n_widened++;
    a->is_wide[x] |= a->is_wide[y];
}

static void drop_mark(fg_assembler *a, fg_items *items)
{
    a->at[items->items[--items->n]] |= FG_AT_DROPPED;
}

/* Throw away the maybe-NULLs on top. */
static void drop_marks(fg_assembler *a, fg_items *items)
{
    while (items->n && items->items[items->n - 1] >= 0)
        drop_mark(a, items);
}

static fg_status pop(fg_assembler *a, fg_items *items, int32_t wanted)
{
    drop_marks(a, items);
    if (!items->n)
        return refuse(a, "stack underflow");
    const int32_t item = items->items[items->n - 1];
    if (wanted == FG_ITEM_VALUE ? !fg_item_is_value(item) || is_wide(a, item) : item != wanted)
        return refuse(a, wanted == FG_ITEM_GHOST ? "keyword names that are no constant right before their call"
                                                 : "a lazily bound method used as a value");
    items->n--, items->values--;
    return FG_OK;
}

int32_t fg_items_real(const fg_assembler *a, const fg_items *items, int32_t from)
{
    int32_t real = 0;
    for (int32_t i = from; i < items->n; i++) {
        const int32_t item = items->items[i];
        if (item >= 0)
            real += (a->at[item] & (FG_AT_USED | FG_AT_BANNED)) == FG_AT_USED;
        else
            real += item == FG_ITEM_METHOD || is_wide(a, item) ? 2 : item != FG_ITEM_GHOST;
    }
    return real;
}

int32_t fg_items_below(const fg_items *items, int32_t depth)
{
    int32_t i = 0;
    for (; depth > 0; i++)
        depth -= items->items[i] < 0 && items->items[i] != FG_ITEM_NULL;
    return i;
}

/* Where the item that is n values from the top is, -1: nowhere. */
static int32_t find_item(const fg_items *items, int32_t n)
{
    for (int32_t i = items->n - 1; i >= 0 && n > 0; i--)
        if (items->items[i] < 0 && items->items[i] != FG_ITEM_NULL && --n == 0)
            return i;
    return -1;
}

/* That item must be a plain value. */
static fg_status look(fg_assembler *a, const fg_items *items, int32_t n)
{
    const int32_t i = n <= items->values ? find_item(items, n) : -1;
    return i < 0                               ? refuse(a, "stack underflow")
           : fg_item_is_value(items->items[i]) ? FG_OK
                                               : refuse(a, "a lazily bound method used as a value");
}

int fg_assembler_width(const fg_assembler *a, const fg_items *items, int32_t n)
{
    const int32_t i = find_item(items, n);
    return i >= 0 && (items->items[i] == FG_ITEM_METHOD || is_wide(a, items->items[i])) ? 2 : 1;
}

/* 1 if the instruction pushes the second slot of its first result itself. */
static int is_wide_by_itself(const fg_instr *instr)
{
    return instr->op == FG_OP_BEFORE_WITH || instr->op == FG_OP_BEFORE_ASYNC_WITH ||
           (FG_ITERATORS_ARE_WIDE && (instr->op == FG_OP_GET_YIELD_FROM_ITER || (instr->op == FG_OP_GET_ITER && instr->offset >= 0)));
}

int fg_assembler_widens(const fg_assembler *a, int32_t i, int32_t k)
{
    return FG_VALUES_MAY_BE_WIDE && is_wide(a, FG_ITEM_MADE - a->made[i] - k) && !(k == 0 && is_wide_by_itself(&a->in->instrs[i]));
}

/* What instruction i leaves as its result k. */
static int32_t result_item(fg_assembler *a, int32_t i, int32_t k)
{
    const int32_t item = FG_VALUES_MAY_BE_WIDE ? FG_ITEM_MADE - a->made[i] - k : FG_ITEM_VALUE;
    if (FG_VALUES_MAY_BE_WIDE && k == 0 && is_wide_by_itself(&a->in->instrs[i]))
        widen(a, item);
    return item;
}

static void swap(fg_items *items, int32_t n)
{
    int32_t *one = &items->items[find_item(items, n)], *two = &items->items[find_item(items, 1)];
    const int32_t kept = *one;
    *one = *two, *two = kept;
}

int fg_assembler_super_attr(const fg_assembler *a, int32_t i)
{
    return i + 1 < a->in->n_instrs && (a->in->instrs[i + 1].op == FG_OP_LOAD_ATTR || a->in->instrs[i + 1].op == FG_OP_LOAD_METHOD) &&
           !(a->at[i + 1] & FG_AT_TARGET) && a->in->instrs[i + 1].handler == a->in->instrs[i].handler;
}

static fg_status step_call(fg_assembler *a, int32_t i, fg_items *items)
{
    const fg_instr *instr = &a->in->instrs[i];
    if (!FG_SUPER_FINDS_ITS_ARGUMENTS && instr->op == FG_OP_CALL_SUPER && fg_assembler_super_attr(a, i)) {
        for (int n = 3; n; n--) {
            const fg_status popped = pop(a, items, FG_ITEM_VALUE);
            if (popped != FG_OK)
                return popped;
        }
        a->form = FG_CALL_PLAIN;
        return push(a, items, result_item(a, i, 0));
    }
    const int ghosts = FG_SUPER_FINDS_ITS_ARGUMENTS && instr->op == FG_OP_CALL_SUPER && !instr->arg ? 2 : instr->op == FG_OP_CALL_KW;
    const int32_t names = instr->op == FG_OP_CALL_KW && FG_NAMES_ARE_ON_THE_STACK ? FG_ITEM_VALUE : FG_ITEM_GHOST;
    const int32_t arguments = instr->op == FG_OP_CALL_EX ? (instr->arg ? 2 : 1) : instr->op == FG_OP_CALL_SUPER ? 2 - ghosts : instr->arg;
    fg_status st;
    for (int32_t n = ghosts; n; n--)
        if ((st = pop(a, items, names)) != FG_OK)
            return st;
    for (int32_t n = arguments; n; n--)
        if ((st = pop(a, items, FG_ITEM_VALUE)) != FG_OK)
            return st;
    /* The callee, and what is beside it: the item after it, or the one before. */
    int32_t beside = FG_ITEM_VALUE;
    if (FG_NULL_FOLLOWS_CALLEE) {
        while (items->n > 1 && items->items[items->n - 1] >= 0 && items->items[items->n - 2] >= 0)
            drop_mark(a, items);
        if (items->n && (items->items[items->n - 1] >= 0 || items->items[items->n - 1] == FG_ITEM_NULL))
            beside = items->items[--items->n];
    } else {
        drop_marks(a, items);
    }
    const int32_t item = items->n ? items->items[items->n - 1] : FG_ITEM_NULL;
    const int32_t callee = is_wide(a, item) ? FG_ITEM_METHOD : fg_item_is_value(item) ? FG_ITEM_VALUE : item;
    if (callee != FG_ITEM_VALUE && callee != FG_ITEM_METHOD)
        return refuse(a, "call without a callee");
    items->n--, items->values--;
    if (!FG_NULL_FOLLOWS_CALLEE && items->n && callee == FG_ITEM_VALUE)
        beside = items->items[items->n - 1];
    const int may_be_plain = instr->op != FG_OP_CALL_EX && arguments > 0;
    if (callee == FG_ITEM_METHOD) {
        if (instr->op == FG_OP_CALL_EX || instr->op == FG_OP_CALL_SUPER || ((instr->flags & FG_IF_PLAIN) && may_be_plain))
            return refuse(a, "a lazily bound method used as a value");
        a->form = FG_CALL_METHOD;
        if (beside >= 0)
            a->at[beside] |= FG_AT_DROPPED;
    } else if ((instr->flags & FG_IF_PLAIN) && may_be_plain && instr->op != FG_OP_CALL_SUPER) {
        a->form = FG_CALL_PLAIN;
        if (FG_NULL_FOLLOWS_CALLEE && beside >= 0)
            a->at[beside] |= FG_AT_DROPPED;
    } else if (beside >= 0 && ghosts < 2) { /* other versions need no CALLEE for super(): one below it is somebody else's */
        a->at[beside] |= FG_AT_USED;
        items->n -= !FG_NULL_FOLLOWS_CALLEE;
        a->form = FG_CALL_NULL;
    } else if (beside == FG_ITEM_NULL) {
        items->n -= !FG_NULL_FOLLOWS_CALLEE;
        a->form = FG_CALL_NULL;
    } else if (may_be_plain) {
        a->form = FG_CALL_PLAIN;
    } else {
        a->at[i] |= FG_AT_BARE;
        a->form = FG_CALL_BARE;
    }
    return push(a, items, result_item(a, i, 0));
}

/* Where iterators are wide: those that work on one. It stays where it is until it is finished. */
static fg_status step_iterator(fg_assembler *a, int32_t i, fg_items *items, int jump)
{
    const int op = a->in->instrs[i].op;
    fg_status st;
    for (int above = op == FG_OP_CLEANUP_THROW ? 2 : op == FG_OP_SEND; above; above--)
        if ((st = pop(a, items, FG_ITEM_VALUE)) != FG_OK)
            return st;
    drop_marks(a, items);
    if (!items->n || !fg_item_is_value(items->items[items->n - 1]))
        return refuse(a, "no iterator");
    widen(a, items->items[items->n - 1]);
    if (jump || op == FG_OP_CLEANUP_THROW)
        items->n--, items->values--;
    return jump && op == FG_OP_FOR_ITER ? FG_OK : push(a, items, result_item(a, i, !jump && op != FG_OP_CLEANUP_THROW));
}

fg_status fg_items_step(fg_assembler *a, int32_t i, fg_items *items, int jump)
{
    const fg_instr *instr = &a->in->instrs[i];
    const int32_t n = instr->arg;
    fg_status st;
    switch (instr->op) {
    case FG_OP_CALLEE: return a->at[i] & FG_AT_BANNED ? FG_OK : push(a, items, i);
    case FG_OP_COPY: return (st = look(a, items, n)) != FG_OK ? st : push(a, items, result_item(a, i, 0));
    case FG_OP_SWAP:
        if ((st = look(a, items, n)) != FG_OK || (st = look(a, items, 1)) != FG_OK)
            return st;
        swap(items, n);
        return FG_OK;
    case FG_OP_POP_TOP:
        if (!FG_VALUES_MAY_BE_WIDE)
            break;
        drop_marks(a, items);
        if (!items->n || !is_wide(a, items->items[items->n - 1]))
            break;
        items->n--, items->values--;
        return FG_OK;
    case FG_OP_FOR_ITER:
    case FG_OP_SEND:
    case FG_OP_CLEANUP_THROW:
        if (FG_ITERATORS_ARE_WIDE)
            return step_iterator(a, i, items, jump);
        break;
    case FG_OP_WITH_EXCEPT_START:
        if (FG_VALUES_MAY_BE_WIDE && items->values >= 4)
            widen(a, items->items[find_item(items, 4)]);
        break;
    case FG_OP_CALL:
    case FG_OP_CALL_KW:
    case FG_OP_CALL_EX:
    case FG_OP_CALL_SUPER: return step_call(a, i, items);
    default: break;
    }
    const int reach = fg_instr_reach(instr);
    if (reach > items->values)
        return refuse(a, "stack underflow");
    if (reach > 0 && instr->op != FG_OP_DICT_MERGE && (st = look(a, items, reach)) != FG_OK)
        return st;
    const fg_shape shape = fg_instr_shape(instr, jump);
    for (int k = 0; k < shape.pops; k++)
        if ((st = pop(a, items, FG_ITEM_VALUE)) != FG_OK)
            return st;
    for (int k = 0; k < shape.pushes; k++) {
        const int32_t pushed = a->at[i] & FG_AT_GHOST           ? FG_ITEM_GHOST
                               : instr->op == FG_OP_LOAD_METHOD ? FG_ITEM_METHOD
                                                                : result_item(a, i, k);
        if ((st = push(a, items, pushed)) != FG_OK)
            return st;
    }
    return FG_OK;
}

int fg_assembler_raises(const fg_assembler *a, int32_t i)
{
    const fg_instr *instr = &a->in->instrs[i];
    if (instr->op == FG_OP_JUMP)
        return !(instr->flags & FG_IF_QUIET) && instr->target <= i;
    if ((instr->flags & FG_IF_EXACT) &&
        (instr->op == FG_OP_JUMP_IF_TRUE || instr->op == FG_OP_JUMP_IF_FALSE || instr->op == FG_OP_UNARY_NOT))
        return 0;
    if (!FG_EVERY_FAST_LOAD_RAISES && instr->op == FG_OP_LOAD_FAST)
        return (instr->flags & FG_IF_CHECK) != 0;
    return fg_cop_raises(instr->op) && !(a->at[i] & FG_AT_GHOST);
}

static void ban(fg_assembler *a, int32_t callee)
{
    a->n_banned += !(a->at[callee] & FG_AT_BANNED);
    a->at[callee] |= FG_AT_BANNED;
}

static fg_status reach(fg_assembler *a, int32_t to, const fg_items *items, int32_t *queue, int32_t *n_queued)
{
    fg_items *kept = &a->states[a->state[to]];
    if (kept->values < 0) {
        queue[(*n_queued)++] = to;
        return fg_items_copy(a, kept, items);
    }
    int32_t k = 0, n = 0;
    while (k < kept->n || n < items->n) {
        if (k < kept->n && n < items->n && fg_item_is_value(kept->items[k]) && fg_item_is_value(items->items[n]))
            unite(a, kept->items[k++], items->items[n++]);
        else if (k < kept->n && n < items->n && kept->items[k] == items->items[n])
            k++, n++;
        else if (k < kept->n && kept->items[k] >= 0)
            ban(a, kept->items[k++]);
        else if (n < items->n && items->items[n] >= 0)
            ban(a, items->items[n++]);
        else
            return refuse(a, "stacks disagree where paths meet");
    }
    return FG_OK;
}

static fg_status reach_handler(fg_assembler *a, int32_t i, int32_t *queue, int32_t *n_queued)
{
    const fg_handler *handler = &a->in->handlers[a->in->instrs[i].handler];
    fg_status st;
    if (a->now.values < handler->depth)
        return refuse(a, "stack below a handler's depth at an instruction that may raise");
    const int32_t n = a->now.n, values = a->now.values;
    a->now.n = fg_items_below(&a->now, handler->depth);
    a->now.values = handler->depth;
    st = fg_items_copy(a, &a->other, &a->now);
    a->now.n = n, a->now.values = values;
    for (int32_t k = 0; st == FG_OK && k < 1 + (handler->lasti != 0); k++)
        st = push(a, &a->other, FG_VALUES_MAY_BE_WIDE ? FG_ITEM_MADE : FG_ITEM_VALUE);
    return st == FG_OK ? reach(a, handler->target, &a->other, queue, n_queued) : st;
}

static fg_status walk_paths(fg_assembler *a, int32_t *queue)
{
    const fg_asm *in = a->in;
    int32_t n_queued = 0;
    fg_status st;
    for (int32_t s = 0; s < a->n_states; s++)
        a->states[s].n = 0, a->states[s].values = -1;
    for (int32_t i = 0; i < in->n_instrs; i++) {
        a->at[i] &= (uint8_t) ~(FG_AT_USED | FG_AT_DROPPED | FG_AT_BARE);
        a->depths[i] = -1;
    }
    a->now.n = a->now.values = 0;
    if ((st = reach(a, 0, &a->now, queue, &n_queued)) != FG_OK)
        return st;
    while (n_queued) {
        int32_t i = queue[--n_queued];
        if ((st = fg_items_copy(a, &a->now, &a->states[a->state[i]])) != FG_OK)
            return st;
        for (;;) {
            const fg_instr *instr = &in->instrs[i];
            a->depths[i] = a->now.values;
            if (instr->handler >= 0 && fg_assembler_raises(a, i) && (st = reach_handler(a, i, queue, &n_queued)) != FG_OK)
                return st;
            if (fg_cop_jumps(instr->op) &&
                ((st = fg_items_copy(a, &a->other, &a->now)) != FG_OK || (st = fg_items_step(a, i, &a->other, 1)) != FG_OK ||
                 (st = reach(a, instr->target, &a->other, queue, &n_queued)) != FG_OK))
                return st;
            if ((st = fg_items_step(a, i, &a->now, 0)) != FG_OK)
                return st;
            if (!fg_cop_falls_through(instr->op))
                break;
            if (++i >= in->n_instrs)
                return refuse(a, "the code runs past its end");
            if (a->state[i] >= 0) {
                if ((st = reach(a, i, &a->now, queue, &n_queued)) != FG_OK)
                    return st;
                break;
            }
        }
    }
    return FG_OK;
}

/* A bare call: put its NULL where the callee's code starts (or, on versions where it follows, ends), if nothing enters or leaves the code from there to
 * the call. */
static void place_null(fg_assembler *a, int32_t call)
{
    const fg_instr *instrs = a->in->instrs;
    const int32_t depth = a->depths[call] - fg_instr_shape(&instrs[call], 0).pops + FG_NULL_FOLLOWS_CALLEE;
    if (a->depths[call] == depth || (instrs[call].handler >= 0 && a->in->handlers[instrs[call].handler].depth > depth))
        return;
    for (int32_t i = call; i > 0 && !(a->at[i] & FG_AT_TARGET);) {
        const fg_instr *instr = &instrs[--i];
        if (a->depths[i] < depth || fg_cop_jumps(instr->op) || !fg_cop_falls_through(instr->op))
            return;
        if (instr->handler >= 0 && a->in->handlers[instr->handler].depth > depth)
            return;
        if (a->depths[i] - fg_instr_reach(instr) < depth && a->depths[i] > depth)
            return;
        if (a->depths[i] == depth) {
            if (fg_instr_reach(instr) == 0 && fg_instr_shape(instr, 0).pushes == 1 && a->nulls[i] < 255)
                a->nulls[i]++;
            return;
        }
    }
}

static fg_status check_input(fg_assembler *a)
{
    const fg_asm *in = a->in;
    if (!in->base || !PyCode_Check(in->base) || in->n_instrs < 1 || in->n_instrs > (1 << 26) || in->n_handlers < 0)
        return refuse(a, "no instructions, or no base code object");
    for (int32_t h = 0; h < in->n_handlers; h++)
        if (in->handlers[h].target < 0 || in->handlers[h].target >= in->n_instrs || in->handlers[h].depth < 0)
            return refuse(a, "handler out of the code");
    for (int32_t i = 0; i < in->n_instrs; i++) {
        const fg_instr *instr = &in->instrs[i];
        if (instr->op >= FG_N_COPS || instr->arg < 0 || instr->arg > INT32_MAX / 4)
            return refuse(a, "instruction or argument out of range");
        if (instr->handler >= in->n_handlers)
            return refuse(a, "handler index out of range");
        if (fg_cop_jumps(instr->op)) {
            if (instr->target < 0 || instr->target >= in->n_instrs)
                return refuse(a, "jump out of the code");
            a->at[instr->target] |= FG_AT_TARGET;
        }
        if (instr->handler >= 0)
            a->at[in->handlers[instr->handler].target] |= FG_AT_TARGET;
    }
    return FG_OK;
}

static int is_names_constant(const fg_instr *instr, int32_t n_arguments)
{
    if (instr->op != FG_OP_LOAD_CONST || !instr->obj || !PyTuple_CheckExact(instr->obj) || PyTuple_GET_SIZE(instr->obj) > n_arguments)
        return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(instr->obj); i++)
        if (!PyUnicode_Check(PyTuple_GET_ITEM(instr->obj, i)))
            return 0;
    return 1;
}

/* Keyword names and the arguments that super() finds by itself are in the canonical code only. */
static fg_status find_ghosts(fg_assembler *a)
{
    const fg_instr *instrs = a->in->instrs;
    for (int32_t i = 0; i < a->in->n_instrs; i++) {
        if (instrs[i].op == FG_OP_CALL_KW) {
            if (i < 1 || (a->at[i] & FG_AT_TARGET) || !is_names_constant(&instrs[i - 1], instrs[i].arg))
                return refuse(a, "keyword names that are no constant right before their call");
            if (!FG_NAMES_ARE_ON_THE_STACK)
                a->at[i - 1] |= FG_AT_GHOST;
        } else if (instrs[i].op == FG_OP_CALL_SUPER && !instrs[i].arg && FG_SUPER_FINDS_ITS_ARGUMENTS) {
            const int first = i >= 3 ? instrs[i - 1].op : FG_OP_NOP;
            if (i < 3 || ((a->at[i] | a->at[i - 1] | a->at[i - 2]) & FG_AT_TARGET) || instrs[i - 2].op != FG_OP_LOAD_DEREF ||
                (first != FG_OP_LOAD_FAST && first != FG_OP_LOAD_DEREF) || instrs[i - 1].arg != 0 || a->in->argcount < 1)
                return refuse(a, "CALL_SUPER 0 without its __class__ cell and first argument right before it");
            a->at[i - 1] |= FG_AT_GHOST;
            a->at[i - 2] |= FG_AT_GHOST;
        } else if (instrs[i].op == FG_OP_CALL_SUPER && instrs[i].arg != 2 && instrs[i].arg != 0) {
            return refuse(a, "CALL_SUPER argument is neither 0 nor 2");
        }
    }
    return FG_OK;
}

/* Each result of an instruction is a variable. */
static fg_status count_variables(fg_assembler *a)
{
    a->made = fg_arena_alloc(&a->arena, (size_t)a->in->n_instrs * sizeof *a->made);
    if (!a->made)
        return FG_ERR_NOMEM;
    int64_t n = 1; /* the first is what handlers are given */
    for (int32_t i = 0; i < a->in->n_instrs; i++) {
        a->made[i] = (int32_t)n;
        n += 1 + fg_instr_shape(&a->in->instrs[i], 0).pushes;
        if (n > INT32_MAX / 4)
            return refuse(a, "code too large");
    }
    a->n_variables = (int32_t)n;
    a->same_as = fg_arena_alloc(&a->arena, (size_t)n * sizeof *a->same_as);
    a->is_wide = fg_arena_alloc(&a->arena, (size_t)n);
    if (!a->same_as || !a->is_wide)
        return FG_ERR_NOMEM;
    for (int32_t v = 0; v < n; v++)
        a->same_as[v] = v;
    return FG_OK;
}

static fg_status plan(fg_assembler *a)
{
    const int32_t n = a->in->n_instrs;
    fg_status st;
    a->state = fg_arena_alloc(&a->arena, (size_t)n * sizeof *a->state);
    a->depths = fg_arena_alloc(&a->arena, (size_t)n * sizeof *a->depths);
    a->nulls = fg_arena_alloc(&a->arena, (size_t)n);
    if (!a->state || !a->depths || !a->nulls)
        return FG_ERR_NOMEM;
    for (int32_t i = 0; i < n; i++)
        a->state[i] = i == 0 || (a->at[i] & FG_AT_TARGET) ? a->n_states++ : -1;
    a->states = fg_arena_alloc(&a->arena, (size_t)a->n_states * sizeof *a->states);
    int32_t *queue = fg_arena_alloc(&a->arena, (size_t)a->n_states * sizeof *queue);
    if (!a->states || !queue)
        return FG_ERR_NOMEM;
    if (FG_VALUES_MAY_BE_WIDE && (st = count_variables(a)) != FG_OK)
        return st;
    for (int32_t banned = -1, widened = -1; banned != a->n_banned || widened != a->n_widened;) {
        banned = a->n_banned, widened = a->n_widened;
        if ((st = walk_paths(a, queue)) != FG_OK)
            return st;
        for (int32_t i = 0; i < n; i++)
            if ((a->at[i] & (FG_AT_USED | FG_AT_DROPPED)) == (FG_AT_USED | FG_AT_DROPPED))
                ban(a, i);
    }
    if (FG_VALUES_MAY_BE_WIDE && is_wide(a, FG_ITEM_MADE))
        return refuse(a, "an exception as a value in two slots");
    for (int32_t i = 0; i < n; i++)
        if (a->at[i] & FG_AT_BARE)
            place_null(a, i);
    return FG_OK;
}

fg_status fg_assemble(const fg_asm *input, PyCodeObject **out)
{
    fg_status st;
    fg_assembler a;
    memset(&a, 0, sizeof a);
    a.in = input;
    fg_arena_init(&a.arena);
    a.constants.arena = a.names.arena = &a.arena;
    if (input->n_instrs < 1 || !(a.at = fg_arena_alloc(&a.arena, (size_t)input->n_instrs))) {
        st = input->n_instrs < 1 ? refuse(&a, "no instructions") : FG_ERR_NOMEM;
        goto fail;
    }
    FG_TRY(check_input(&a));
    FG_TRY(find_ghosts(&a));
    FG_TRY(plan(&a));
    FG_TRY(fg_assembler_lower(&a));
    FG_TRY(fg_assembler_emit(&a, out));
fail:
    fg_canonical_why_set(st == FG_OK ? NULL : a.why);
    fg_arena_fini(&a.arena);
    return st;
}
