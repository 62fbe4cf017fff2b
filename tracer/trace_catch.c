/* Handlers of the frame that is compiled, and what steps under them may raise at run time.
 *
 * A step under a handler of the root frame need not be known not to raise: it carries a *catch*, the locals and the part of the stack that the
 * handler keeps, as registers. The code generator makes of it a block that restores them and raises on in a copy of the user's bytecode, where
 * the handler runs natively, whatever the exception is. So there is nothing to prove, and nothing that another thread, a signal, a warning
 * filter or a lack of memory could do differently.
 *
 * In a handler that is traced itself (trace_raise.c) there is no exception at run time: a step carries what its own exception is to have as context.
 *
 * What the trace only knows about, an iterator or a list that was not needed yet, is built by *cold* steps of the catch itself, in its block.
 *
 * A segment has no body of its own: its block gives all that to the host, which raises.
 *
 * There is no catch (fg_is_covered says so, and what cannot be proved to succeed is a break) under a handler of an inlined function, for it has no
 * frame to go on in, and where a compiler gets whole graphs.
 */
#include "tracer/trace.h"

#include <string.h>

bool fg_has_catches(const fg_trace *t)
{
    return !t->opaque;
}

/* The handler that an exception of the current instruction of a frame comes to run, -1: none. */
static int32_t handler_of(const fg_tframe *f, int32_t *unbound)
{
    return fg_icode_handler_pass(f->icode, f->icode->instrs[f->pc].handler, unbound);
}

/* `with` statements that only leave a state do not count: fg_restore_here. */
static bool is_covered(const fg_tframe *f)
{
    int32_t handler = handler_of(f, NULL);
    while (handler >= 0 && fg_ambient_of_handler(f, handler) != NULL)
        handler = fg_icode_handler_pass(f->icode, f->icode->instrs[f->icode->handlers[handler].target].handler, NULL);
    return handler >= 0;
}

bool fg_is_covered_inside(fg_trace *t)
{
    if (t->handled == NULL) /* the common case: the callers have been asked when the frame was pushed */
        return t->frame != t->root && (t->frame->covered || t->frame->catches != NULL || is_covered(t->frame));
    for (const fg_tframe *f = t->frame; f != t->root; f = f->parent)
        if (f->catches != NULL || is_covered(f))
            return true;
    return false;
}

/* What a step raises in a handler can be given the exception that is handled as its context. */
static bool has_context(const fg_trace *t)
{
    return !t->opaque && t->handled->exception->is_complete && t->handled->outer == NULL;
}

bool fg_is_caught(fg_trace *t)
{
    return fg_has_catches(t) && (t->handled == NULL || has_context(t)) && handler_of(t->root, NULL) >= 0;
}

bool fg_is_covered(fg_trace *t)
{
    if (t->handled != NULL && !has_context(t))
        return true;
    return fg_is_covered_inside(t) || (!fg_has_catches(t) && is_covered(t->root));
}

static fg_flow snapshot(fg_trace *t, fg_ir_catch *out)
{
    fg_tframe *f = t->root;
    int32_t unbound = -1;
    const unsigned char *kinds = (const unsigned char *)PyBytes_AS_STRING(f->icode->code->co_localspluskinds);
    out->pc = f->pc;
    out->handler = handler_of(f, &unbound);
    out->depth = f->icode->handlers[out->handler].depth;
    out->slots = fg_arena_alloc(&t->arena, (size_t)(f->n_locals + 1) * sizeof *out->slots);
    out->stack = fg_arena_alloc(&t->arena, (size_t)(out->depth + 1) * sizeof *out->stack);
    if (out->slots == NULL || out->stack == NULL)
        return fg_nomem();
    for (int32_t i = 0; i < f->n_locals; i++) {
        out->slots[i] = FG_REG_NONE;
        if (f->locals[i] != NULL && i != unbound && !(kinds[i] & 0x80)) /* a free variable comes with the function */
            FG_DO(fg_materialise(t, f->locals[i], &out->slots[i]));
    }
    for (int32_t i = 0; i < out->depth; i++)
        FG_DO(fg_materialise(t, f->stack[i], &out->stack[i]));
    return FG_FLOW_OK;
}

/* A step of one catch and the step at the same place of the other do the same with the same. */
static bool is_same_cold(const fg_trace *t, const fg_ir_catch *a, const fg_ir_catch *b, fg_reg first_a, fg_reg first_b)
{
    for (int32_t i = 0; i < a->n_cold; i++) {
        const fg_step *x = &t->ir.steps[a->cold + i], *y = &t->ir.steps[b->cold + i];
        if (x->op != y->op || x->flags != y->flags || x->arg != y->arg || x->name != y->name || x->kwnames != y->kwnames ||
            x->n_args != y->n_args || x->n_results != y->n_results)
            return false;
        for (int32_t k = 0; k < x->n_args; k++)
            if (x->args[k] != y->args[k] && (x->args[k] < first_a || y->args[k] < first_b || x->args[k] - first_a != y->args[k] - first_b ||
                                             t->ir.regs[x->args[k]].kind != t->ir.regs[y->args[k]].kind ||
                                             t->ir.regs[x->args[k]].object != t->ir.regs[y->args[k]].object))
                return false;
    }
    return true;
}

static bool is_same_values(const fg_reg *a, const fg_reg *b, int32_t n, fg_reg first_a, fg_reg first_b)
{
    for (int32_t i = 0; i < n; i++)
        if (a[i] != b[i] && (a[i] < first_a || b[i] < first_b || a[i] - first_a != b[i] - first_b))
            return false;
    return true;
}

static bool is_same(const fg_trace *t, const fg_ir_catch *a, const fg_ir_catch *b)
{
    const fg_reg first_a = a->first, first_b = b->first;
    const fg_instr *instrs = t->root->icode->instrs;
    return a->handler == b->handler && instrs[a->pc].line == instrs[b->pc].line && a->depth == b->depth && a->n_cold == b->n_cold &&
           is_same_values(a->slots, b->slots, t->root->n_locals, first_a, first_b) &&
           is_same_values(a->stack, b->stack, a->depth, first_a, first_b) && is_same_cold(t, a, b, first_a, first_b);
}

/* What had no run-time form gets one in steps of the catch alone, and then has none again: in the program's own course nothing was made. */
static fg_flow make(fg_trace *t, fg_ir_catch *out)
{
    enum { MAX_COLD = 256, MAX_COLD_OF_ALL = 50000 };
    FG_SET(t, t->catching.is_making, true);
    FG_SET(t, t->catching.n_made, 0);
    out->cold = t->ir.n_steps;
    out->first = t->ir.n_regs;
    FG_DO(snapshot(t, out));
    out->n_cold = t->ir.n_steps - out->cold;
    FG_SET(t, t->catching.is_making, false);
    FG_SET(t, t->catching.n_cold, t->catching.n_cold + out->n_cold);
    if (out->n_cold > MAX_COLD || t->catching.n_cold > MAX_COLD_OF_ALL) { /* too much to say again for each instruction: it is made here */
        for (int32_t i = 0; i < out->n_cold; i++)
            t->ir.steps[out->cold + i].flags &= (uint8_t)~FG_SF_COLD;
        out->n_cold = 0;
        return FG_FLOW_OK;
    }
    for (int32_t i = 0; i < t->catching.n_made; i++)
        FG_SET(t, t->catching.made[i]->reg, FG_REG_NONE);
    return FG_FLOW_OK;
}

fg_flow fg_catch_here(fg_trace *t, int32_t *id)
{
    *id = -1;
    if (t->catching.is_making || !fg_is_caught(t))
        return FG_FLOW_OK;
    fg_ir_catch made; /* anew for each step: what is only known about may have changed within an instruction */
    FG_DO(make(t, &made));
    int32_t at = t->ir.n_catches - 1;
    if (at >= 0 && is_same(t, &t->ir.catches[at], &made)) {
        if (made.n_cold > 0)
            t->ir.n_steps = made.cold;
    } else {
        fg_ir_catch *place = fg_ir_catch_add(&t->ir);
        if (place == NULL)
            return fg_nomem();
        *place = made;
        at++;
    }
    *id = at;
    return FG_FLOW_OK;
}
