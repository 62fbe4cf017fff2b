/* What happens to an exception of a step: blocks behind the code of the steps.
 *
 *     step ──raises──►  [exception]
 *                       the traceback gets an entry for each inlined call, its newest entry the line of the call   (a step of an inlined function)
 *                       locals := values, stack := values, temporaries dropped                                     (a step that is caught)
 *                       raise on: out of the function, or to the copy of the user's handler in the host's body
 *
 * That the exception is raised on, instead of a jump to the handler, lets the interpreter push what the handler wants below it: the place of the raising
 * instruction is that of the raise, which stands at the user's line.
 */
#include "codegen/emit_private.h"

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

/* Where the values of a catch are now, when the first step that has it is emitted: they stay there for the others. */
static fg_status find_places(fg_emit_state *e, int32_t caught)
{
    const fg_ir_catch *c = &e->ir->catches[caught];
    struct fg_emit_catch *at = &e->catches[caught];
    Py_ssize_t n = n_slots(e);
    if (at->slots != NULL)
        return FG_OK;
    at->slots = fg_arena_alloc(e->arena, (size_t)(n + 1) * sizeof *at->slots);
    at->stack = fg_arena_alloc(e->arena, (size_t)(c->depth + 1) * sizeof *at->stack);
    at->live = fg_arena_alloc(e->arena, (size_t)e->n_temps + 1);
    if (at->slots == NULL || at->stack == NULL || at->live == NULL)
        return FG_ERR_NOMEM;
    for (Py_ssize_t i = 0; i < n; i++)
        at->slots[i] = c->slots[i] == FG_REG_NONE ? -1 : e->ir->regs[c->slots[i]].slot;
    for (int32_t i = 0; i < c->depth; i++)
        at->stack[i] = e->ir->regs[c->stack[i]].slot;
    if (e->n_temps > 0)
        memcpy(at->live, e->temp_live, (size_t)e->n_temps);
    at->n_live = e->n_temps;
    return FG_OK;
}

static fg_status block_new(fg_emit_state *e, int32_t site, int32_t caught, int32_t *list)
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
    e->blocks[e->n_blocks] = (struct fg_emit_block){.site = site, .caught = caught, .handler = e->n_handlers++, .next = *list};
    *list = e->n_blocks++;
    return FG_OK;
}

fg_status fg_emit_handler_of(fg_emit_state *e, int32_t step, int32_t *handler)
{
    fg_status st;
    const fg_ir *ir = e->ir;
    int32_t site = ir->steps[step].site, caught = ir->steps[step].caught;
    *handler = -1;
    while (site >= 0 && (ir->sites[site].parent < 0 || ir->sites[site].hidden))
        site = ir->sites[site].parent;
    if (site < 0 && caught < 0)
        return FG_OK;
    int32_t *list = caught >= 0 ? &e->catch_blocks[caught] : &e->site_blocks[site], at = *list;
    if (caught >= 0)
        FG_TRY(find_places(e, caught));
    while (at >= 0 && (e->blocks[at].site != site || e->blocks[at].caught != caught))
        at = e->blocks[at].next;
    if (at < 0) {
        FG_TRY(block_new(e, site, caught, list));
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
static fg_status emit_completion(fg_emit_state *e, int32_t site)
{
    fg_status st;
    PyObject *chain = fg_emit_own(e, fg_traceback_chain(e->ir, site)), *complete = fg_emit_own(e, fg_traceback_function());
    if (chain == NULL || complete == NULL)
        return FG_ERR_PYTHON;
    e->where = root_instr(e->ir, site);
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, complete));
    FG_TRY(fg_emit_op(e, FG_OP_COPY, 2, NULL));
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, chain));
    FG_TRY(fg_emit_op(e, FG_OP_CALL, 2, NULL));
    return fg_emit_op(e, FG_OP_POP_TOP, 0, NULL);
fail:
    return st;
}

static fg_status load_place(fg_emit_state *e, fg_reg reg, int32_t slot)
{
    return e->ir->regs[reg].kind == FG_REG_STEP ? fg_emit_op(e, FG_OP_LOAD_FAST, slot, NULL) : fg_emit_load(e, reg);
}

/* [exception] -> the frame of the catch, and [what the handler keeps, exception] */
static fg_status emit_restore(fg_emit_state *e, int32_t caught)
{
    fg_status st;
    const fg_ir_catch *c = &e->ir->catches[caught];
    const struct fg_emit_catch *at = &e->catches[caught];
    const unsigned char *kinds = (const unsigned char *)PyBytes_AS_STRING(e->ir->root->code->co_localspluskinds);
    e->where = &e->ir->root->instrs[c->pc];
    FG_TRY(fg_emit_op(e, FG_OP_STORE_FAST, e->exc_slot, NULL));
    for (Py_ssize_t i = 0; i < n_slots(e); i++)
        if (kinds[i] & 0x40) /* a cell: see restore_frame in emit_host.c */
            FG_TRY(fg_emit_op(e, FG_OP_MAKE_CELL, e->slot_map[i], NULL));
    for (Py_ssize_t i = 0; i < n_slots(e); i++) {
        if (c->slots[i] == FG_REG_NONE)
            continue;
        FG_TRY(load_place(e, c->slots[i], at->slots[i]));
        FG_TRY(fg_emit_op(e, FG_OP_STORE_FAST, e->slot_map[i], NULL));
    }
    for (int32_t i = 0; i < c->depth; i++)
        FG_TRY(load_place(e, c->stack[i], at->stack[i]));
    for (int32_t i = 0; i < e->n_inputs; i++)
        FG_TRY(fg_emit_op(e, FG_OP_DELETE_FAST, i, NULL));
    for (int32_t i = 0; i < at->n_live; i++)
        if (at->live[i]) {
            FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, Py_None));
            FG_TRY(fg_emit_op(e, FG_OP_STORE_FAST, e->temp_base + i, NULL));
        }
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_FAST, e->exc_slot, NULL));
    FG_TRY(fg_emit_op(e, FG_OP_DELETE_FAST, e->exc_slot, NULL));
    e->handler = e->handler_of[e->ir->root->instrs[c->pc].handler];
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
            FG_TRY(emit_completion(e, e->blocks[i].site));
        if (e->blocks[i].caught >= 0)
            FG_TRY(emit_restore(e, e->blocks[i].caught));
        FG_TRY(fg_emit_op(e, FG_OP_RERAISE, 0, NULL));
    }
    e->handler = -1;
    return FG_OK;
fail:
    return st;
}
