/* Handlers of the frame that is compiled, and what steps under them may raise at run time.
 *
 * A step under a handler of the root frame need not be known not to raise: it carries a *catch*, the locals and the part of the stack that the
 * handler keeps, as registers. The code generator makes of it a block that restores them and raises on in a copy of the user's bytecode, where
 * the handler runs natively, whatever the exception is. So there is nothing to prove, and nothing that another thread, a signal, a warning
 * filter or a lack of memory could do differently.
 *
 * There is no catch (fg_is_covered says so, and what cannot be proved to succeed is a break) under a handler of an inlined function, for it has no
 * frame to go on in; in a segment, which has no host of its own; and where a compiler gets whole graphs.
 */
#include "tracer/trace.h"

#include <string.h>

static bool root_covers(const fg_trace *t)
{
    return t->root->icode->instrs[t->root->pc].handler >= 0;
}

static bool has_catches(const fg_trace *t)
{
    return !t->opaque && t->ir.start_pc < 0;
}

bool fg_is_covered_inside(fg_trace *t)
{
    return t->frame != t->root && (t->frame->covered || t->frame->icode->instrs[t->frame->pc].handler >= 0);
}

bool fg_is_caught(fg_trace *t)
{
    return root_covers(t) && has_catches(t);
}

bool fg_is_covered(fg_trace *t)
{
    return fg_is_covered_inside(t) || (root_covers(t) && !has_catches(t));
}

static fg_flow snapshot(fg_trace *t, fg_ir_catch *out)
{
    fg_tframe *f = t->root;
    const fg_instr *in = &f->icode->instrs[f->pc];
    const unsigned char *kinds = (const unsigned char *)PyBytes_AS_STRING(f->icode->code->co_localspluskinds);
    out->pc = f->pc;
    out->depth = f->icode->handlers[in->handler].depth;
    out->slots = fg_arena_alloc(&t->arena, (size_t)(f->n_locals + 1) * sizeof *out->slots);
    out->stack = fg_arena_alloc(&t->arena, (size_t)(out->depth + 1) * sizeof *out->stack);
    if (out->slots == NULL || out->stack == NULL)
        return fg_nomem();
    for (int32_t i = 0; i < f->n_locals; i++) {
        out->slots[i] = FG_REG_NONE;
        if (f->locals[i] != NULL && !(kinds[i] & 0x80)) /* a free variable comes with the function */
            FG_DO(fg_materialise(t, f->locals[i], &out->slots[i]));
    }
    for (int32_t i = 0; i < out->depth; i++)
        FG_DO(fg_materialise(t, f->stack[i], &out->stack[i]));
    return FG_FLOW_OK;
}

static bool is_same(const fg_trace *t, const fg_ir_catch *a, const fg_ir_catch *b)
{
    const fg_instr *instrs = t->root->icode->instrs;
    return instrs[a->pc].handler == instrs[b->pc].handler && instrs[a->pc].line == instrs[b->pc].line && a->depth == b->depth &&
           memcmp(a->slots, b->slots, (size_t)t->root->n_locals * sizeof *a->slots) == 0 &&
           memcmp(a->stack, b->stack, (size_t)a->depth * sizeof *a->stack) == 0;
}

fg_flow fg_catch_here(fg_trace *t, int32_t *id)
{
    *id = -1;
    if (!fg_is_caught(t) || t->catching.is_making)
        return FG_FLOW_OK;
    if (t->catching.n_root != t->n_root) { /* the frame does not change within one of its instructions */
        fg_ir_catch made;
        FG_SET(t, t->catching.is_making, true); /* what builds the values is no part of the user's statement */
        FG_DO(snapshot(t, &made));
        FG_SET(t, t->catching.is_making, false);
        int32_t at = t->ir.n_catches - 1;
        if (at < 0 || !is_same(t, &made, &t->ir.catches[at])) {
            fg_ir_catch *place = fg_ir_catch_add(&t->ir);
            if (place == NULL)
                return fg_nomem();
            *place = made;
            at++;
        }
        FG_SET(t, t->catching.id, at);
        FG_SET(t, t->catching.n_root, t->n_root);
    }
    *id = t->catching.id;
    return FG_FLOW_OK;
}
