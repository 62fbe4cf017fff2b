/* What happens to an exception of a step: blocks behind the code of the steps.
 *
 *     step ──raises──►  [exception]
 *                       the traceback gets an entry for each inlined call, its newest entry the line of the call   (a step of an inlined function)
 *                       its context is the exception that was being handled                                         (a step of a handler that was traced and that is not done while handling it: foreign_step.h)
 *                       ambient states are left                                                                    (a step in a `with` that has no handler at run time)
 *                       locals := values, stack := values, temporaries dropped                                     (a step that is caught)
 *                       raise on: out of the function, or to the copy of the user's handler in the host's body
 *
 * That the exception is raised on, instead of a jump to the handler, lets the interpreter push what the handler wants below it: the place of the raising
 * instruction is that of the raise, which stands at the user's line.
 */
#include "codegen/emit_private.h"

#include "codegen/foreign_step.h"
#include "codegen/graph.h"
#include "codegen/traceback.h"

#include <string.h>

static Py_ssize_t n_slots(const fg_emit_state *e)
{
    return PyTuple_GET_SIZE(e->ir->root->code->co_localsplusnames);
}

fg_status fg_emit_catches_init(fg_emit_state *e)
{
    int32_t n = e->ir->n_catches;
    e->site_blocks = fg_arena_alloc(e->arena, (size_t)(e->ir->n_sites + 1) * sizeof *e->site_blocks);
    e->catch_blocks = fg_arena_alloc(e->arena, (size_t)(n + 1) * sizeof *e->catch_blocks);
    e->catches = fg_arena_alloc(e->arena, (size_t)(n + 1) * sizeof *e->catches);
    if (e->site_blocks == NULL || e->catch_blocks == NULL || e->catches == NULL)
        return FG_ERR_NOMEM;
    for (int32_t i = 0; i <= e->ir->n_sites; i++)
        e->site_blocks[i] = -1;
    for (int32_t i = 0; i <= n; i++)
        e->catch_blocks[i] = -1;
    return FG_OK;
}

bool fg_emit_has_catches(const fg_emit_state *e)
{
    for (int32_t i = 0; e->ir->n_catches > 0 && i < e->ir->n_steps; i++)
        if (e->ir->steps[i].caught >= 0 && !e->is_dead[i])
            return true;
    return false;
}

static fg_status add_place(fg_emit_state *e, struct fg_emit_catch *to, fg_reg reg)
{
    if (reg == FG_REG_NONE || e->ir->regs[reg].kind != FG_REG_STEP || e->ir->regs[reg].slot < 0)
        return FG_OK;
    if (to->n_places == to->cap_places) {
        int32_t cap = to->cap_places ? 2 * to->cap_places : 8;
        struct fg_emit_place *places = fg_arena_alloc(e->arena, (size_t)cap * sizeof *places);
        if (places == NULL)
            return FG_ERR_NOMEM;
        if (to->n_places)
            memcpy(places, to->places, (size_t)to->n_places * sizeof *places);
        to->places = places;
        to->cap_places = cap;
    }
    to->places[to->n_places++] = (struct fg_emit_place){reg, e->ir->regs[reg].slot};
    return FG_OK;
}

/* Where the values of a catch are now, when the first step that has it is emitted: they stay there for the others. */
static fg_status find_places(fg_emit_state *e, int32_t caught)
{
    fg_status st;
    const fg_ir_catch *c = &e->ir->catches[caught];
    struct fg_emit_catch *at = &e->catches[caught];
    if (at->live != NULL)
        return FG_OK;
    at->live = fg_arena_alloc(e->arena, (size_t)e->n_temps + 1);
    if (at->live == NULL)
        return FG_ERR_NOMEM;
    for (Py_ssize_t i = 0; i < n_slots(e); i++)
        FG_TRY(add_place(e, at, c->slots[i]));
    for (int32_t i = 0; i < c->depth; i++)
        FG_TRY(add_place(e, at, c->stack[i]));
    for (int32_t i = 0; i < c->n_cold; i++)
        for (int32_t k = 0; k < e->ir->steps[c->cold + i].n_args; k++)
            FG_TRY(add_place(e, at, e->ir->steps[c->cold + i].args[k]));
    if (e->n_temps > 0)
        memcpy(at->live, e->temp_live, (size_t)e->n_temps);
    at->n_live = e->n_temps;
    return FG_OK;
fail:
    return st;
}

fg_status fg_emit_catch_temps(fg_emit_state *e)
{
    fg_status st;
    int32_t most = 0, slot;
    e->n_free = 0; /* none that belongs to a step */
    FG_TRY(fg_emit_temp(e, &e->exc_slot));
    e->temp_live[e->exc_slot - e->temp_base] = 0;
    for (int32_t i = 0; i < e->n_blocks; i++) {
        int32_t n = 0, caught = e->blocks[i].caught;
        for (int32_t k = 0; caught >= 0 && k < e->ir->catches[caught].n_cold; k++)
            n += e->ir->steps[e->ir->catches[caught].cold + k].n_results;
        most = n > most ? n : most;
    }
    for (int32_t i = 0; i < most; i++) {
        FG_TRY(fg_emit_temp(e, &slot));
        e->temp_live[slot - e->temp_base] = 0;
        if (i == 0)
            e->cold_slots = slot;
    }
    return FG_OK;
fail:
    return st;
}

/* The same for what restores ambient states. It stays there as well: the way without an exception ends with the same calls. */
static fg_status find_exits(fg_emit_state *e, struct fg_emit_block *block)
{
    const fg_ir_restore *r = &e->ir->restores[block->restore];
    block->exits = fg_arena_alloc(e->arena, (size_t)(r->n + 1) * sizeof *block->exits);
    if (block->exits == NULL)
        return FG_ERR_NOMEM;
    for (int32_t i = 0; i < r->n; i++) {
        const fg_ir_reg *reg = &e->ir->regs[r->exits[i]];
        if (reg->kind == FG_REG_STEP && reg->slot < 0)
            return FG_BUG("an ambient state is left that has no place");
        block->exits[i] = reg->kind == FG_REG_STEP ? reg->slot : -1;
    }
    return FG_OK;
}

static fg_status block_new(fg_emit_state *e, PyObject *graph, int32_t site, int32_t caught, int32_t context, int32_t restore, int32_t *list)
{
    if (e->n_blocks == e->cap_blocks) {
        int32_t cap = e->cap_blocks ? 2 * e->cap_blocks : 16;
        struct fg_emit_block *blocks = fg_arena_alloc(e->arena, (size_t)cap * sizeof *blocks);
        if (blocks == NULL)
            return FG_ERR_NOMEM;
        if (e->n_blocks)
            memcpy(blocks, e->blocks, (size_t)e->n_blocks * sizeof *blocks);
        e->blocks = blocks;
        e->cap_blocks = cap;
    }
    if (e->n_handlers == e->cap_handlers) {
        int32_t cap = e->cap_handlers ? 2 * e->cap_handlers : 16;
        fg_handler *handlers = fg_arena_alloc(e->arena, (size_t)cap * sizeof *handlers);
        if (handlers == NULL)
            return FG_ERR_NOMEM;
        if (e->n_handlers)
            memcpy(handlers, e->handlers, (size_t)e->n_handlers * sizeof *handlers);
        e->handlers = handlers;
        e->cap_handlers = cap;
    }
    e->handlers[e->n_handlers] = (fg_handler){.target = -1, .depth = 0, .lasti = 0};
    e->blocks[e->n_blocks] = (struct fg_emit_block){
        .graph = graph, .site = site, .caught = caught, .context = context, .restore = restore, .handler = e->n_handlers++, .next = *list};
    *list = e->n_blocks++;
    return restore >= 0 ? find_exits(e, &e->blocks[*list]) : FG_OK;
}

fg_status fg_emit_handler_of(fg_emit_state *e, int32_t step, int32_t *handler)
{
    fg_status st;
    const fg_ir *ir = e->ir;
    int32_t site = ir->steps[step].site, caught = ir->steps[step].caught;
    int32_t context = fg_is_foreign(&ir->steps[step]) ? -1 : ir->steps[step].context;
    int32_t restore = ir->steps[step].restore;
    PyObject *graph = ir->steps[step].graph;
    *handler = -1;
    while (graph == NULL && site >= 0 && (ir->sites[site].parent < 0 || ir->sites[site].hidden))
        site = ir->sites[site].parent;
    if (site < 0 && caught < 0 && context < 0 && restore < 0)
        return FG_OK;
    int32_t *list = caught >= 0 ? &e->catch_blocks[caught] : &e->site_blocks[site < 0 ? ir->n_sites : site], at = *list;
    if (caught >= 0)
        FG_TRY(find_places(e, caught));
    while (at >= 0 && (e->blocks[at].graph != graph || e->blocks[at].site != site || e->blocks[at].caught != caught ||
                       e->blocks[at].context != context || e->blocks[at].restore != restore))
        at = e->blocks[at].next;
    if (at < 0) {
        FG_TRY(block_new(e, graph, site, caught, context, restore, list));
        at = *list;
    }
    *handler = e->blocks[at].handler;
    return FG_OK;
fail:
    return st;
}

static const fg_instr *root_instr(const fg_ir *ir, int32_t site)
{
    while (ir->sites[site].parent >= 0)
        site = ir->sites[site].parent;
    return ir->sites[site].instr;
}

/* [exception] -> [exception] */
static fg_status emit_completion(fg_emit_state *e, PyObject *graph, int32_t site)
{
    fg_status st;
    PyObject *chain = fg_emit_own(e, graph ? fg_traceback_places(e->ir, graph) : fg_traceback_chain(e->ir, site)),
             *complete = fg_emit_own(e, graph ? fg_traceback_graph_function() : fg_traceback_function());
    if (chain == NULL || complete == NULL)
        return FG_ERR_PYTHON;
    /* instructions for the entry to stand at */
    for (Py_ssize_t i = 0; graph != NULL && i < fg_graph_n_nodes(graph); i++) {
        const int32_t of = fg_graph_site(graph, i);
        const fg_instr *at = of >= 0 ? root_instr(e->ir, of) : e->where;
        if (at != e->where) {
            e->where = at;
            FG_TRY(fg_emit_op(e, FG_OP_NOP, 0, NULL));
        }
    }
    e->where = root_instr(e->ir, site);
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, complete));
    FG_TRY(fg_emit_op(e, FG_OP_COPY, 2, NULL));
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, chain));
    FG_TRY(fg_emit_op(e, FG_OP_CALL, 2, NULL));
    return fg_emit_op(e, FG_OP_POP_TOP, 0, NULL);
fail:
    return st;
}

/* [exception] -> [exception] */
static fg_status emit_context(fg_emit_state *e, int32_t context)
{
    fg_status st;
    const fg_ir_context *c = &e->ir->contexts[context];
    PyObject *chain = fg_emit_own(e, fg_traceback_part(e->ir, c->site, c->levels)), *add = fg_emit_own(e, fg_traceback_context_function());
    if (chain == NULL || add == NULL)
        return FG_ERR_PYTHON;
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, add));
    FG_TRY(fg_emit_op(e, FG_OP_COPY, 2, NULL));
    FG_TRY(fg_emit_load(e, c->type));
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, c->args));
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, chain));
    FG_TRY(fg_emit_op(e, FG_OP_CALL, 4, NULL));
    return fg_emit_op(e, FG_OP_POP_TOP, 0, NULL);
fail:
    return st;
}

/* [exception] -> [exception] */
static fg_status emit_exits(fg_emit_state *e, const struct fg_emit_block *block)
{
    fg_status st;
    const fg_ir_restore *r = &e->ir->restores[block->restore];
    for (int32_t i = 0; i < r->n; i++) {
        if (block->exits[i] >= 0)
            FG_TRY(fg_emit_op(e, FG_OP_LOAD_FAST, block->exits[i], NULL));
        else
            FG_TRY(fg_emit_load(e, r->exits[i]));
        for (int k = 0; k < 3; k++)
            FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, Py_None));
        FG_TRY(fg_emit_op(e, FG_OP_CALL, 3, NULL));
        FG_TRY(fg_emit_op(e, FG_OP_POP_TOP, 0, NULL));
    }
    return FG_OK;
fail:
    return st;
}

/* The cold steps, each result in a temporary. */
static fg_status emit_cold(fg_emit_state *e, const fg_ir_catch *c, int32_t *n_used)
{
    fg_status st;
    int32_t slot = e->cold_slots;
    for (int32_t i = 0; i < c->n_cold; i++) {
        const fg_step *s = &e->ir->steps[c->cold + i];
        FG_TRY(fg_emit_one_step(e, c->cold + i));
        for (int32_t k = 0; k < s->n_results; k++) {
            e->ir->regs[s->result + k].slot = slot;
            FG_TRY(fg_emit_op(e, FG_OP_STORE_FAST, slot++, NULL));
        }
    }
    *n_used = slot - e->cold_slots;
    e->handler = -1;
    return FG_OK;
fail:
    return st;
}

static fg_status drop_temp(fg_emit_state *e, int32_t slot)
{
    fg_status st = fg_emit_op(e, FG_OP_LOAD_CONST, 0, Py_None);
    return st == FG_OK ? fg_emit_op(e, FG_OP_STORE_FAST, slot, NULL) : st;
}

/* What this frame has for the steps: an exception's traceback keeps the frame. */
static fg_status drop_all(fg_emit_state *e, const struct fg_emit_catch *at, int32_t n_cold)
{
    fg_status st = FG_OK;
    for (int32_t i = 0; i < e->n_inputs; i++)
        FG_TRY(fg_emit_op(e, FG_OP_DELETE_FAST, i, NULL));
    for (int32_t i = 0; i < at->n_live; i++)
        if (at->live[i])
            FG_TRY(drop_temp(e, e->temp_base + i));
    for (int32_t i = 0; i < n_cold; i++)
        FG_TRY(drop_temp(e, e->cold_slots + i));
    return fg_emit_op(e, FG_OP_DELETE_FAST, e->exc_slot, NULL);
fail:
    return st;
}

/* -> the frame of the catch, and [what the handler keeps, exception] */
static fg_status emit_frame(fg_emit_state *e, const fg_ir_catch *c, int32_t n_cold)
{
    fg_status st;
    const unsigned char *kinds = (const unsigned char *)PyBytes_AS_STRING(e->ir->root->code->co_localspluskinds);
    for (Py_ssize_t i = 0; i < n_slots(e); i++)
        if (kinds[i] & 0x40) /* a cell: see restore_frame in emit_host.c */
            FG_TRY(fg_emit_op(e, FG_OP_MAKE_CELL, e->slot_map[i], NULL));
    for (Py_ssize_t i = 0; i < n_slots(e); i++) {
        if (c->slots[i] == FG_REG_NONE)
            continue;
        FG_TRY(fg_emit_load(e, c->slots[i]));
        FG_TRY(fg_emit_op(e, FG_OP_STORE_FAST, e->slot_map[i], NULL));
    }
    for (int32_t i = 0; i < c->depth; i++)
        FG_TRY(fg_emit_load(e, c->stack[i]));
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_FAST, e->exc_slot, NULL));
    return drop_all(e, &e->catches[c - e->ir->catches], n_cold);
fail:
    return st;
}

/* In a segment -> [(~place, (exception, what the handler keeps, top first), slots, values …)], for the host to raise it there. */
static fg_status emit_handover(fg_emit_state *e, const fg_ir_catch *c, int32_t n_cold)
{
    fg_status st;
    PyObject *id = fg_emit_own(e, PyLong_FromLong(~(long)fg_icode_raise_place(e->ir->root, c->pc)));
    if (id == NULL)
        return FG_ERR_PYTHON;
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, id));
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_FAST, e->exc_slot, NULL));
    for (int32_t i = c->depth - 1; i >= 0; i--)
        FG_TRY(fg_emit_load(e, c->stack[i]));
    FG_TRY(fg_emit_op(e, FG_OP_BUILD_TUPLE, c->depth + 1, NULL));
    FG_TRY(fg_emit_slots(e, c->slots, NULL, 2));
    FG_TRY(drop_all(e, &e->catches[c - e->ir->catches], n_cold));
    return fg_emit_op(e, FG_OP_RETURN_VALUE, 0, NULL);
fail:
    return st;
}

/* [exception] -> the frame of the catch, and [what the handler keeps, exception] */
static fg_status emit_restore(fg_emit_state *e, int32_t caught)
{
    fg_status st;
    const fg_ir_catch *c = &e->ir->catches[caught];
    const struct fg_emit_catch *at = &e->catches[caught];
    int32_t n_cold;
    for (int32_t i = 0; i < at->n_places; i++)
        e->ir->regs[at->places[i].reg].slot = at->places[i].slot;
    e->where = &e->ir->root->instrs[c->pc];
    FG_TRY(fg_emit_op(e, FG_OP_STORE_FAST, e->exc_slot, NULL));
    FG_TRY(emit_cold(e, c, &n_cold));
    e->where = &e->ir->root->instrs[c->pc];
    if (e->ir->start_pc >= 0)
        return emit_handover(e, c, n_cold);
    FG_TRY(emit_frame(e, c, n_cold));
    e->handler = e->handler_of[c->handler];
    return FG_OK;
fail:
    return st;
}

fg_status fg_emit_handlers(fg_emit_state *e)
{
    fg_status st;
    for (int32_t i = 0; i < e->n_blocks; i++) {
        e->handler = -1;
        e->handlers[e->blocks[i].handler].target = e->n_out;
        if (e->blocks[i].site >= 0)
            FG_TRY(emit_completion(e, e->blocks[i].graph, e->blocks[i].site));
        if (e->blocks[i].context >= 0)
            FG_TRY(emit_context(e, e->blocks[i].context));
        if (e->blocks[i].restore >= 0)
            FG_TRY(emit_exits(e, &e->blocks[i]));
        if (e->blocks[i].caught >= 0)
            FG_TRY(emit_restore(e, e->blocks[i].caught));
        if (e->blocks[i].caught < 0 || e->ir->start_pc < 0)
            FG_TRY(fg_emit_op(e, FG_OP_RERAISE, 0, NULL));
    }
    e->handler = -1;
    return FG_OK;
fail:
    return st;
}
