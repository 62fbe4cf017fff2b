/* Steps to instructions: operands, one case per step, temporaries. */
#include "codegen/emit_private.h"

#include "codegen/foreign_step.h"
#include "codegen/steady_call.h"
#include <string.h>

PyObject *fg_emit_own(fg_emit_state *e, PyObject *object)
{
    if (object == NULL)
        return NULL;
    int failed = PyList_Append(e->owned, object);
    Py_DECREF(object);
    return failed ? NULL : object;
}

fg_status fg_emit_op(fg_emit_state *e, fg_cop op, int32_t arg, PyObject *object)
{
    if (e->n_out == e->cap_out) {
        int32_t cap = e->cap_out ? 2 * e->cap_out : 128;
        fg_instr *out = fg_arena_alloc(e->arena, (size_t)cap * sizeof *out);
        if (out == NULL)
            return FG_ERR_NOMEM;
        if (e->n_out)
            memcpy(out, e->out, (size_t)e->n_out * sizeof *out);
        e->out = out;
        e->cap_out = cap;
    }
    fg_instr *in = &e->out[e->n_out++];
    *in = (fg_instr){.op = (uint8_t)op, .arg = arg, .target = -1, .handler = e->handler, .offset = -1, .obj = object};
    if (e->where != NULL) {
        in->line = e->where->line;
        in->end_line = e->where->end_line;
        in->col = e->where->col;
        in->end_col = e->where->end_col;
    } else {
        in->line = in->end_line = in->col = in->end_col = -1;
    }
    return FG_OK;
}

fg_status fg_emit_jump(fg_emit_state *e, fg_cop op, int32_t *patch)
{
    *patch = e->n_out;
    return fg_emit_op(e, op, 0, NULL);
}

/* --- temporaries */

fg_status fg_emit_temp(fg_emit_state *e, int32_t *slot)
{
    if (e->n_free > 0) {
        int32_t temp = e->free_temps[--e->n_free];
        e->temp_live[temp] = 1;
        *slot = e->temp_base + temp;
        return FG_OK;
    }
    if (e->n_temps == e->cap_temps) {
        int32_t cap = e->cap_temps ? 2 * e->cap_temps : 16;
        int32_t *free_temps = fg_arena_alloc(e->arena, (size_t)cap * sizeof *free_temps);
        uint8_t *live = fg_arena_alloc(e->arena, (size_t)cap);
        if (free_temps == NULL || live == NULL)
            return FG_ERR_NOMEM;
        if (e->n_temps)
            memcpy(live, e->temp_live, (size_t)e->n_temps);
        e->free_temps = free_temps; /* it is empty now */
        e->temp_live = live;
        e->cap_temps = cap;
    }
    e->temp_live[e->n_temps] = 1;
    *slot = e->temp_base + e->n_temps++;
    return FG_OK;
}

static fg_status store_result(fg_emit_state *e, fg_reg reg)
{
    fg_status st;
    fg_ir_reg *r = &e->ir->regs[reg];
    if (r->uses == 0)
        return fg_emit_op(e, FG_OP_POP_TOP, 0, NULL);
    FG_TRY(fg_emit_temp(e, &r->slot));
    return fg_emit_op(e, FG_OP_STORE_FAST, r->slot, NULL);
fail:
    return st;
}

/* Temporaries whose last use was within the statement that ends with step `at`. */
static fg_status free_used(fg_emit_state *e, const fg_reg *args, int32_t n, int32_t at)
{
    fg_status st;
    for (int32_t i = 0; i < n; i++) {
        if (args[i] == FG_REG_NONE)
            continue;
        fg_ir_reg *r = &e->ir->regs[args[i]];
        if (r->kind != FG_REG_STEP)
            continue;
        if (r->slot >= 0 && r->last_use <= at) {
            if (r->is_tensor && at != FG_EXIT_USE)
                FG_TRY(fg_emit_op(e, FG_OP_DELETE_FAST, r->slot, NULL));
            e->temp_live[r->slot - e->temp_base] = !r->is_tensor;
            e->free_temps[e->n_free++] = r->slot - e->temp_base;
            r->slot = -1;
        } else if (r->index >= 0 && e->is_inline[r->index]) {
            FG_TRY(free_used(e, e->ir->steps[r->index].args, e->ir->steps[r->index].n_args, at));
        }
    }
    return FG_OK;
fail:
    return st;
}

/* The same for what the catches of the steps of a statement hold. */
static fg_status free_caught(fg_emit_state *e, int32_t step, int32_t at)
{
    fg_status st;
    const fg_step *s = &e->ir->steps[step];
    for (int32_t i = 0; i < s->n_args; i++) {
        const fg_ir_reg *r = s->args[i] == FG_REG_NONE ? NULL : &e->ir->regs[s->args[i]];
        if (r != NULL && r->kind == FG_REG_STEP && r->index >= 0 && e->is_inline[r->index])
            FG_TRY(free_caught(e, r->index, at));
    }
    if (s->caught >= 0) {
        const fg_ir_catch *c = &e->ir->catches[s->caught];
        FG_TRY(free_used(e, c->slots, (int32_t)PyTuple_GET_SIZE(e->ir->root->code->co_localsplusnames), at));
        FG_TRY(free_used(e, c->stack, c->depth, at));
        for (int32_t i = 0; i < c->n_cold; i++)
            FG_TRY(free_used(e, e->ir->steps[c->cold + i].args, e->ir->steps[c->cold + i].n_args, at));
    }
    return FG_OK;
fail:
    return st;
}

/* --- operands and steps */

fg_status fg_emit_load(fg_emit_state *e, fg_reg reg)
{
    const fg_ir_reg *r = &e->ir->regs[reg];
    switch ((fg_reg_kind)r->kind) {
    case FG_REG_CONST: return fg_emit_op(e, FG_OP_LOAD_CONST, 0, r->object);
    case FG_REG_INPUT: return fg_emit_op(e, FG_OP_LOAD_FAST, r->index, NULL);
    case FG_REG_STEP: break;
    }
    if (e->is_inline[r->index]) {
        const fg_instr *where = e->where;
        int32_t handler = e->handler;
        fg_status st = fg_emit_one_step(e, r->index);
        e->where = where;
        e->handler = handler;
        return st;
    }
    return r->slot < 0 ? FG_BUG("a value is used that has no place") : fg_emit_op(e, FG_OP_LOAD_FAST, r->slot, NULL);
}

static fg_status load_all(fg_emit_state *e, const fg_reg *args, int32_t n)
{
    fg_status st;
    for (int32_t i = 0; i < n; i++)
        FG_TRY(fg_emit_load(e, args[i]));
    return FG_OK;
fail:
    return st;
}

static fg_status emit_function(fg_emit_state *e, const fg_step *s)
{
    fg_status st;
    static const int bits[5] = {8, 16, 4, 2, 1};
    for (int32_t i = s->n_args - 1; i >= 0; i--)
        FG_TRY(fg_emit_load(e, s->args[i]));
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, s->name));
    FG_TRY(fg_emit_op(e, FG_OP_MAKE_FUNCTION, 0, NULL));
    for (int i = 0; i < 5; i++)
        if (s->arg & bits[i])
            FG_TRY(fg_emit_op(e, FG_OP_SET_FUNCTION_ATTRIBUTE, bits[i], NULL));
    return FG_OK;
fail:
    return st;
}

static fg_status emit_call(fg_emit_state *e, const fg_step *s, int32_t n)
{
    fg_status st;
    if (s->kwnames != NULL && PyTuple_GET_SIZE(s->kwnames) > 0) {
        FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, s->kwnames));
        return fg_emit_op(e, FG_OP_CALL_KW, n, NULL);
    }
    return fg_emit_op(e, FG_OP_CALL, n, NULL);
fail:
    return st;
}

/* A step stands at the line that the user wrote it on: warnings name it. For a function inlined from another file that is the line of the call, and what may
 * warn runs in a frame of its own, as in a frame below those that a step has for itself. */
static fg_status place(fg_emit_state *e, int32_t step)
{
    const fg_ir *ir = e->ir;
    int32_t at = ir->steps[step].site;
    if (at < 0)
        return FG_OK;
    while (ir->sites[at].parent >= 0 &&
           (ir->sites[at].hidden || ir->steps[step].n_frames > 0 || ir->sites[at].code->co_filename != ir->root->code->co_filename))
        at = ir->sites[at].parent;
    e->where = ir->sites[at].instr;
    return fg_emit_handler_of(e, step, &e->handler);
}

/* A call where a handler of the user's would have to see what comes up asynchronously (steady_call.h). */
static fg_status emit_steady_call(fg_emit_state *e, int32_t at)
{
    fg_status st;
    const fg_step *s = &e->ir->steps[at];
    bool is_method = s->op == FG_STEP_CALL_METHOD, is_graph = s->op == FG_STEP_GRAPH;
    PyObject *kwnames = s->kwnames != NULL && PyTuple_GET_SIZE(s->kwnames) > 0 ? s->kwnames : NULL;
    PyObject *caller = fg_emit_own(e, fg_steady_caller(kwnames));
    if (caller == NULL)
        return FG_ERR_PYTHON;
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, caller));
    if (is_graph)
        FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, e->input->graphs[s->arg]));
    else
        FG_TRY(fg_emit_load(e, s->args[0]));
    FG_TRY(place(e, at));
    if (is_method)
        FG_TRY(fg_emit_op(e, FG_OP_LOAD_ATTR, 0, s->name));
    FG_TRY(load_all(e, is_graph ? s->args : s->args + 1, is_graph ? s->n_args : s->n_args - 1));
    FG_TRY(place(e, at));
    FG_TRY(fg_emit_op(e, FG_OP_BUILD_TUPLE, s->n_args + is_graph, NULL));
    FG_TRY(fg_emit_op(e, FG_OP_BINARY_SUBSCR, 0, NULL));
    return is_graph ? fg_emit_op(e, FG_OP_UNPACK_SEQUENCE, s->n_results, NULL) : FG_OK;
fail:
    return st;
}

/* A step of another file or of a handler; without a look for signals where plain Python would not look, or may not. */
static fg_status emit_foreign(fg_emit_state *e, int32_t at, bool is_steady)
{
    fg_status st;
    const fg_step *s = &e->ir->steps[at];
    PyObject *step = fg_emit_own(e, fg_foreign_step(e->ir, s));
    if (step == NULL)
        return FG_ERR_PYTHON;
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, step));
    for (int32_t i = 0; i < s->n_frames; i++)
        if (s->frames[i].globals != FG_REG_NONE)
            FG_TRY(fg_emit_load(e, s->frames[i].globals));
        else
            FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, Py_None));
    if (s->context >= 0)
        FG_TRY(fg_emit_load(e, e->ir->contexts[s->context].type));
    FG_TRY(load_all(e, s->args, s->n_args));
    FG_TRY(place(e, at));
    const int32_t n = s->n_args + s->n_frames + (s->context >= 0);
    if (is_steady) {
        FG_TRY(fg_emit_op(e, FG_OP_BUILD_TUPLE, n, NULL));
        FG_TRY(fg_emit_op(e, FG_OP_BINARY_SUBSCR, 0, NULL));
    } else {
        FG_TRY(fg_emit_op(e, FG_OP_CALL, n, NULL));
    }
    return s->n_results == 0 ? fg_emit_op(e, FG_OP_POP_TOP, 0, NULL) : FG_OK;
fail:
    return st;
}

fg_status fg_emit_one_step(fg_emit_state *e, int32_t at)
{
    fg_status st;
    const fg_step *s = &e->ir->steps[at];
    bool is_steady = s->caught < 0 || (s->flags & FG_SF_AMBIENT); /* no handler leaves a state before it is seen to be entered */
    if (fg_is_foreign(s))
        return emit_foreign(e, at, (s->flags & FG_SF_COVERED) && is_steady);
    if ((s->flags & FG_SF_COVERED) && is_steady && (s->op == FG_STEP_CALL || s->op == FG_STEP_CALL_METHOD || s->op == FG_STEP_GRAPH))
        return emit_steady_call(e, at);
    if (s->op != FG_STEP_MAKE_FUNCTION && s->op != FG_STEP_CALL_METHOD && s->op != FG_STEP_GRAPH)
        FG_TRY(load_all(e, s->args, s->n_args));
    FG_TRY(place(e, at));
    switch ((fg_step_op)s->op) {
    case FG_STEP_BINARY: return fg_emit_op(e, FG_OP_BINARY_OP, s->arg, NULL);
    case FG_STEP_UNARY: return fg_emit_op(e, (fg_cop)s->arg, 0, NULL);
    case FG_STEP_COMPARE: return fg_emit_op(e, FG_OP_COMPARE_OP, s->arg, NULL);
    case FG_STEP_IS: return fg_emit_op(e, FG_OP_IS_OP, s->arg, NULL);
    case FG_STEP_CONTAINS: return fg_emit_op(e, FG_OP_CONTAINS_OP, s->arg, NULL);
    case FG_STEP_SUBSCR: return fg_emit_op(e, FG_OP_BINARY_SUBSCR, 0, NULL);
    case FG_STEP_STORE_SUBSCR: return fg_emit_op(e, FG_OP_STORE_SUBSCR, 0, NULL);
    case FG_STEP_DELETE_SUBSCR: return fg_emit_op(e, FG_OP_DELETE_SUBSCR, 0, NULL);
    case FG_STEP_ATTR: return fg_emit_op(e, FG_OP_LOAD_ATTR, 0, s->name);
    case FG_STEP_STORE_ATTR: return fg_emit_op(e, FG_OP_STORE_ATTR, 0, s->name);
    case FG_STEP_DELETE_ATTR: return fg_emit_op(e, FG_OP_DELETE_ATTR, 0, s->name);
    case FG_STEP_CALL: return emit_call(e, s, s->n_args - 1);
    case FG_STEP_CALL_METHOD:
        FG_TRY(fg_emit_load(e, s->args[0]));
        FG_TRY(place(e, at));
        FG_TRY(fg_emit_op(e, FG_OP_LOAD_METHOD, 0, s->name));
        FG_TRY(load_all(e, s->args + 1, s->n_args - 1));
        FG_TRY(place(e, at));
        return emit_call(e, s, s->n_args - 1);
    case FG_STEP_CALL_EX: return fg_emit_op(e, FG_OP_CALL_EX, s->n_args == 3, NULL);
    case FG_STEP_BUILD_TUPLE: return fg_emit_op(e, FG_OP_BUILD_TUPLE, s->n_args, NULL);
    case FG_STEP_BUILD_LIST: return fg_emit_op(e, FG_OP_BUILD_LIST, s->n_args, NULL);
    case FG_STEP_BUILD_SET: return fg_emit_op(e, FG_OP_BUILD_SET, s->n_args, NULL);
    case FG_STEP_BUILD_MAP: return fg_emit_op(e, FG_OP_BUILD_MAP, s->n_args / 2, NULL);
    case FG_STEP_BUILD_STRING: return fg_emit_op(e, FG_OP_BUILD_STRING, s->n_args, NULL);
    case FG_STEP_BUILD_SLICE: return fg_emit_op(e, FG_OP_BUILD_SLICE, s->n_args, NULL);
    case FG_STEP_FORMAT: return fg_emit_op(e, s->n_args == 2 ? FG_OP_FORMAT_WITH_SPEC : FG_OP_FORMAT_SIMPLE, 0, NULL);
    case FG_STEP_UNPACK: return fg_emit_op(e, FG_OP_UNPACK_SEQUENCE, s->n_results, NULL);
    case FG_STEP_MAKE_FUNCTION: return emit_function(e, s);
    case FG_STEP_STORE_GLOBAL: return fg_emit_op(e, FG_OP_STORE_GLOBAL, 0, s->name);
    case FG_STEP_DELETE_GLOBAL: return fg_emit_op(e, FG_OP_DELETE_GLOBAL, 0, s->name);
    case FG_STEP_GRAPH:
        FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, e->input->graphs[s->arg]));
        FG_TRY(load_all(e, s->args, s->n_args));
        FG_TRY(place(e, at));
        FG_TRY(fg_emit_op(e, FG_OP_CALL, s->n_args, NULL));
        return fg_emit_op(e, FG_OP_UNPACK_SEQUENCE, s->n_results, NULL);
    case FG_N_STEPS: break;
    }
    return FG_BUG("step without a case");
fail:
    return st;
}

fg_status fg_emit_steps(fg_emit_state *e)
{
    fg_status st;
    for (int32_t i = 0; i < e->ir->n_steps; i++) {
        const fg_step *s = &e->ir->steps[i];
        if (e->is_dead[i] || e->is_inline[i])
            continue;
        e->handler = -1;
        FG_TRY(fg_emit_one_step(e, i));
        for (int32_t k = 0; k < s->n_results; k++)
            FG_TRY(store_result(e, s->result + k));
        e->handler = -1;
        FG_TRY(free_used(e, s->args, s->n_args, i));
        for (int32_t k = 0; k < s->n_frames; k++)
            FG_TRY(free_used(e, &s->frames[k].globals, 1, i));
        if (e->ir->n_catches > 0)
            FG_TRY(free_caught(e, i, i));
    }
    e->handler = -1;
    return FG_OK;
fail:
    return st;
}
