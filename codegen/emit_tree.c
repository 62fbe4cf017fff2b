/* Which steps are needed, and which stay on the stack.
 *
 * A step's operand is emitted in place when it is the result of the step right before (skipping dead ones), is used only there, and so on
 * from the last operand to the first: exactly the steps of an expression tree in program order, so emitting the tree where its root stands
 * changes no order. Dead are steps that can neither be seen nor raise and whose results nobody needs.
 */
#include "codegen/emit_private.h"

enum { MAX_TREE_DEPTH = 400 };

static void use(fg_emit_state *e, fg_reg reg, int32_t at)
{
    if (reg == FG_REG_NONE)
        return;
    fg_ir_reg *r = &e->ir->regs[reg];
    r->uses++;
    if (at > r->last_use)
        r->last_use = at;
}

static void use_exit(fg_emit_state *e)
{
    const fg_ir_exit *exit = &e->ir->exit;
    Py_ssize_t n = PyTuple_GET_SIZE(e->ir->root->code->co_localsplusnames);
    if (!exit->is_break) {
        use(e, exit->value, FG_EXIT_USE);
        for (Py_ssize_t i = 0; exit->written != NULL && i < n; i++)
            use(e, exit->slots[i], FG_EXIT_USE);
        return;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        use(e, exit->slots[i], FG_EXIT_USE);
    for (int32_t i = 0; i < exit->depth; i++)
        use(e, exit->stack[i], FG_EXIT_USE);
}

static void use_catch(fg_emit_state *e, const fg_ir_catch *c, int32_t at)
{
    Py_ssize_t n = PyTuple_GET_SIZE(e->ir->root->code->co_localsplusnames);
    for (Py_ssize_t i = 0; i < n; i++)
        use(e, c->slots[i], at);
    for (int32_t i = 0; i < c->depth; i++)
        use(e, c->stack[i], at);
    for (int32_t i = 0; i < c->n_cold; i++)
        for (int32_t k = 0; k < e->ir->steps[c->cold + i].n_args; k++)
            use(e, e->ir->steps[c->cold + i].args[k], at);
}

static int32_t before(const fg_emit_state *e, int32_t at)
{
    do
        at--;
    while (at >= 0 && e->is_dead[at]);
    return at;
}

/* Claim the operands of a list as inline trees that end right before step `at`; gives the first step that belongs to them. */
static int32_t claim(fg_emit_state *e, const fg_reg *args, int32_t n, int32_t at, int depth)
{
    for (int32_t k = n - 1; k >= 0 && depth < MAX_TREE_DEPTH; k--) {
        if (args[k] == FG_REG_NONE)
            continue;
        const fg_ir_reg *r = &e->ir->regs[args[k]];
        int32_t j = before(e, at);
        if (r->kind != FG_REG_STEP)
            continue;
        if (r->uses != 1 || r->index != j || j < 0 || e->ir->steps[j].n_results != 1 || e->is_inline[j])
            continue; /* loaded from a temporary */
        e->is_inline[j] = 1;
        at = claim(e, e->ir->steps[j].args, e->ir->steps[j].n_args, j, depth + 1);
    }
    return at;
}

fg_status fg_emit_plan(fg_emit_state *e)
{
    fg_ir *ir = e->ir;
    for (int32_t i = 0; i < ir->n_regs; i++) {
        ir->regs[i].uses = 0;
        ir->regs[i].last_use = -1;
        ir->regs[i].slot = -1;
    }
    use_exit(e);
    for (int32_t i = ir->n_steps - 1; i >= 0; i--) {
        const fg_step *s = &ir->steps[i];
        if (s->flags & FG_SF_COLD) {
            e->is_dead[i] = true; /* stands in the block of its catch */
            continue;
        }
        bool needed = (s->flags & (FG_SF_EFFECT | FG_SF_RAISES)) != 0;
        for (int32_t k = 0; !needed && k < s->n_results; k++)
            needed = ir->regs[s->result + k].uses > 0;
        e->is_dead[i] = !needed;
        for (int32_t k = 0; needed && k < s->n_args; k++)
            use(e, s->args[k], i);
        for (int32_t k = 0; needed && k < s->n_frames; k++)
            use(e, s->frames[k].globals, i);
        if (needed && s->caught >= 0)
            use_catch(e, &ir->catches[s->caught], i);
        for (int32_t k = 0; needed && s->restore >= 0 && k < ir->restores[s->restore].n; k++)
            use(e, ir->restores[s->restore].exits[k], i);
    }
    int32_t end = ir->n_steps;
    if (!ir->exit.is_break)
        end = claim(e, &ir->exit.value, 1, end, 0);
    for (int32_t i = before(e, end); i >= 0; i = before(e, i))
        if (!e->is_inline[i])
            i = claim(e, ir->steps[i].args, ir->steps[i].n_args, i, 0);
    return FG_OK;
}
