#include "codegen/partition.h"

#include "codegen/graph.h"
#include "codegen/graph_build.h"
#include <string.h>

/* What the exit needs, one after another: the frame as it is left (slots without a value are FG_REG_NONE), then the stack of a break or the value
 * that is returned; NULL: no more. */
static fg_reg *exit_reg(const fg_ir *ir, int32_t i)
{
    const fg_ir_exit *exit = &ir->exit;
    int32_t n_slots = exit->is_break || exit->written != NULL ? (int32_t)PyTuple_GET_SIZE(ir->root->code->co_localsplusnames) : 0;
    if (i < n_slots)
        return &exit->slots[i];
    if (exit->is_break)
        return i - n_slots < exit->depth ? &exit->stack[i - n_slots] : NULL;
    return i == n_slots ? (fg_reg *)&exit->value : NULL;
}

/* Where a register is needed by something that is no graph step of the given set. */
static void mark_uses(const fg_ir *ir, const uint8_t *in_group, uint8_t *needed)
{
    for (int32_t i = 0; i < ir->n_steps; i++) {
        const fg_step *s = &ir->steps[i];
        for (int32_t k = 0; !in_group[i] && k < s->n_args; k++)
            if (s->args[k] != FG_REG_NONE)
                needed[s->args[k]] = 1;
    }
    fg_reg *reg;
    for (int32_t at = 0; (reg = exit_reg(ir, at)) != NULL; at++)
        if (*reg != FG_REG_NONE)
            needed[*reg] = 1;
}

/* Structures that only graph steps of the group use are no use outside. */
static void forgive_structures(const fg_ir *ir, uint8_t *in_group)
{
    for (int32_t i = 0; i < ir->n_steps; i++) {
        if (!fg_step_is_structure(&ir->steps[i]))
            continue;
        fg_reg made = ir->steps[i].result;
        bool inside = true, used = false;
        for (int32_t k = 0; k < ir->n_steps && inside; k++)
            for (int32_t a = 0; a < ir->steps[k].n_args; a++)
                if (ir->steps[k].args[a] == made) {
                    used = true;
                    inside &= in_group[k];
                }
        fg_reg *reg;
        for (int32_t at = 0; (reg = exit_reg(ir, at)) != NULL; at++)
            inside &= *reg != made;
        if (inside && used)
            in_group[i] = 1;
    }
}

static fg_status outputs_of(fg_ir *ir, const int32_t *group, int32_t n, fg_reg **outputs, int32_t *n_outputs)
{
    uint8_t *in_group = fg_arena_alloc(ir->arena, (size_t)ir->n_steps + 1), *needed = fg_arena_alloc(ir->arena, (size_t)ir->n_regs + 1);
    *outputs = fg_arena_alloc(ir->arena, (size_t)(ir->n_regs + 1) * sizeof **outputs);
    if (in_group == NULL || needed == NULL || *outputs == NULL)
        return FG_ERR_NOMEM;
    for (int32_t i = 0; i < n; i++)
        in_group[group[i]] = 1;
    if (ir->n_steps < 4000)
        forgive_structures(ir, in_group);
    mark_uses(ir, in_group, needed);
    *n_outputs = 0;
    for (int32_t i = 0; i < n; i++) {
        const fg_step *s = &ir->steps[group[i]];
        for (int32_t k = 0; k < s->n_results; k++)
            if (needed[s->result + k])
                (*outputs)[(*n_outputs)++] = s->result + k;
    }
    return FG_OK;
}

fg_status fg_graph_describe(fg_ir *ir, PyObject **out)
{
    fg_status st;
    int32_t *group = fg_arena_alloc(ir->arena, (size_t)(ir->n_steps + 1) * sizeof *group), n = 0, n_outputs;
    fg_reg *outputs;
    *out = NULL;
    if (group == NULL)
        return FG_ERR_NOMEM;
    for (int32_t i = 0; i < ir->n_steps; i++)
        if (ir->steps[i].flags & FG_SF_GRAPH)
            group[n++] = i;
    if (n == 0)
        return FG_OK;
    FG_TRY(outputs_of(ir, group, n, &outputs, &n_outputs));
    fg_graph_builder builder = {.ir = ir};
    FG_TRY(fg_graph_build(&builder, group, n, outputs, n_outputs));
    *out = builder.graph;
fail:
    return st;
}

/* --- the schedule */

typedef struct fg_schedule {
    fg_ir *ir;
    int32_t *group, n_group;     /* graph steps of the running graph */
    int32_t *waiting, n_waiting; /* steps to run after it */
    uint8_t *late;               /* per register: made by the running graph or by what waits */
    uint8_t *by_graph;           /* per register: made by the running graph */
    bool effect_waits;
    fg_reg *map; /* register now, FG_REG_NONE: itself */
    fg_step *out;
    int32_t n_out;
    fg_backend_call backend;
    void *context;
    PyObject *graphs, *callables;
    int32_t n_calls;
} fg_schedule;

static void copy_step(fg_schedule *s, int32_t at)
{
    fg_step *step = &s->out[s->n_out];
    *step = s->ir->steps[at];
    s->n_out++;
    for (int32_t i = 0; i < step->n_args; i++)
        if (step->args[i] != FG_REG_NONE && s->map[step->args[i]] != FG_REG_NONE)
            step->args[i] = s->map[step->args[i]];
}

static PyObject *examples_of(const fg_schedule *s, const fg_graph_builder *b)
{
    PyObject *examples = PyList_New(b->n_inputs);
    for (int32_t i = 0; examples != NULL && i < b->n_inputs; i++) {
        const fg_ir_reg *r = &s->ir->regs[b->inputs[i]];
        PyObject *example = r->object ? r->object : r->standin;
        if (example == NULL) { /* the backend cannot be given this input: our own replay runs the graph */
            Py_CLEAR(examples);
            return NULL;
        }
        PyList_SET_ITEM(examples, i, Py_NewRef(example));
    }
    return examples;
}

/* What the root frame does, and that only, says where an operation stands that raises. */
static bool stand_apart(const fg_schedule *s)
{
    const fg_ir *ir = s->ir;
    const int32_t first = ir->steps[s->group[0]].site;
    for (int32_t i = 0; first >= 0 && i < s->n_group; i++) {
        const int32_t site = ir->steps[s->group[i]].site;
        if (site < 0 || ir->sites[site].parent >= 0 || ir->sites[site].instr->line != ir->sites[first].instr->line)
            return true;
    }
    return false;
}

/* Put the running graph's call into the output, then what waited for it. */
static fg_status flush(fg_schedule *s)
{
    fg_status st;
    fg_ir *ir = s->ir;
    if (s->n_group > 0) {
        fg_reg *outputs;
        int32_t n_outputs;
        FG_TRY(outputs_of(ir, s->group, s->n_group, &outputs, &n_outputs));
        fg_graph_builder b = {.ir = ir};
        FG_TRY(fg_graph_build(&b, s->group, s->n_group, outputs, n_outputs));
        PyObject *examples = examples_of(s, &b), *callable;
        if (examples == NULL && PyErr_Occurred()) {
            Py_DECREF(b.graph);
            return FG_ERR_PYTHON;
        }
        PyObject *entered = NULL;
        const fg_step *some = &ir->steps[s->group[0]]; /* all of them stand in one state */
        if (examples != NULL && fg_ambient_enter(some->ambient, &entered) != FG_OK)
            callable = NULL;
        else
            callable = examples ? s->backend(s->context, b.graph, examples) : Py_NewRef(b.graph);
        fg_ambient_leave(entered);
        Py_XDECREF(examples);
        int failed = callable == NULL || PyList_Append(s->graphs, b.graph) < 0 || PyList_Append(s->callables, callable) < 0;
        Py_DECREF(b.graph);
        Py_XDECREF(callable);
        if (failed)
            return FG_ERR_PYTHON;
        fg_step *step = &s->out[s->n_out];
        int covered = 0;
        for (int32_t i = 0; i < s->n_group; i++)
            covered |= ir->steps[s->group[i]].flags & FG_SF_COVERED;
        *step = (fg_step){.op = FG_STEP_GRAPH,
                          .caught = -1,
                          .context = -1,
                          .restore = ir->steps[s->group[0]].restore,
                          .ambient = ir->steps[s->group[0]].ambient,
                          .flags = (uint8_t)(FG_SF_EFFECT | FG_SF_RAISES | covered),
                          .arg = s->n_calls++,
                          .n_args = b.n_inputs,
                          .n_results = n_outputs,
                          .result = n_outputs ? ir->n_regs : FG_REG_NONE,
                          .graph = stand_apart(s) ? PyList_GET_ITEM(s->graphs, PyList_GET_SIZE(s->graphs) - 1) : NULL,
                          .site = ir->steps[s->group[0]].site};
        step->args = fg_arena_alloc(ir->arena, (size_t)(b.n_inputs + 1) * sizeof *step->args);
        if (step->args == NULL)
            return FG_ERR_NOMEM;
        for (int32_t i = 0; i < b.n_inputs; i++)
            step->args[i] = s->map[b.inputs[i]] != FG_REG_NONE ? s->map[b.inputs[i]] : b.inputs[i];
        for (int32_t i = 0; i < n_outputs; i++) {
            fg_reg made = fg_ir_reg_add(ir, FG_REG_STEP, NULL);
            if (made == FG_REG_NONE)
                return FG_ERR_NOMEM;
            ir->regs[made].is_tensor = 1;
            ir->regs[made].standin = ir->regs[outputs[i]].standin;
            s->map[outputs[i]] = made;
        }
        s->n_out++;
    }
    for (int32_t i = 0; i < s->n_waiting; i++)
        copy_step(s, s->waiting[i]);
    s->n_group = s->n_waiting = 0;
    s->effect_waits = false;
    memset(s->late, 0, (size_t)ir->cap_regs);
    memset(s->by_graph, 0, (size_t)ir->cap_regs);
    return FG_OK;
fail:
    return st;
}

/* 1 if a graph step would need something that waits and is no structure of graph values. */
static bool needs_waiting(const fg_schedule *s, fg_reg reg, int depth)
{
    const fg_ir_reg *r = &s->ir->regs[reg];
    if (reg == FG_REG_NONE || r->kind != FG_REG_STEP || !s->late[reg] || s->by_graph[reg])
        return false;
    const fg_step *maker = &s->ir->steps[r->index];
    if (!fg_step_is_structure(maker) || depth > 15)
        return true;
    for (int32_t i = 0; i < maker->n_args; i++)
        if (needs_waiting(s, maker->args[i], depth + 1))
            return true;
    return false;
}

static fg_status schedule_step(fg_schedule *s, int32_t at)
{
    fg_status st;
    const fg_step *step = &s->ir->steps[at];
    if (step->flags & FG_SF_GRAPH) {
        bool cut = s->effect_waits && (step->flags & FG_SF_RAISES) && !(step->flags & FG_SF_CHECKED);
        for (int32_t i = 0; i < step->n_args && !cut; i++)
            cut = needs_waiting(s, step->args[i], 0);
        if (cut)
            FG_TRY(flush(s));
        s->group[s->n_group++] = at;
        for (int32_t i = 0; i < step->n_results; i++)
            s->late[step->result + i] = s->by_graph[step->result + i] = 1;
        return FG_OK;
    }
    if (step->flags & FG_SF_AMBIENT) {
        FG_TRY(flush(s));
        copy_step(s, at);
        return FG_OK;
    }
    bool wait = s->n_group > 0 && (step->flags & (FG_SF_EFFECT | FG_SF_RAISES));
    for (int32_t i = 0; i < step->n_args && !wait; i++)
        wait = step->args[i] != FG_REG_NONE && s->late[step->args[i]];
    if (!wait) {
        copy_step(s, at);
        return FG_OK;
    }
    s->waiting[s->n_waiting++] = at;
    s->effect_waits |= (step->flags & (FG_SF_EFFECT | FG_SF_RAISES)) != 0;
    for (int32_t i = 0; i < step->n_results; i++)
        s->late[step->result + i] = 1;
    return FG_OK;
fail:
    return st;
}

static void map_reg(const fg_schedule *s, fg_reg *reg)
{
    if (*reg != FG_REG_NONE && s->map[*reg] != FG_REG_NONE)
        *reg = s->map[*reg];
}

fg_status fg_partition(fg_ir *ir, fg_backend_call backend, void *context, PyObject *graphs, PyObject *callables)
{
    fg_status st = FG_ERR_NOMEM;
    /* room for all registers that the calls will add: at most one per present register */
    size_t n = (size_t)ir->n_steps + 1, regs = 2 * (size_t)ir->n_regs + 64;
    fg_schedule s = {.ir = ir, .backend = backend, .context = context, .graphs = graphs, .callables = callables};
    s.group = fg_arena_alloc(ir->arena, n * sizeof *s.group);
    s.waiting = fg_arena_alloc(ir->arena, n * sizeof *s.waiting);
    s.out = fg_arena_alloc(ir->arena, 2 * n * sizeof *s.out);
    s.map = fg_arena_alloc(ir->arena, regs * sizeof *s.map);
    fg_ir_reg *grown = fg_arena_alloc(ir->arena, regs * sizeof *grown);
    s.late = fg_arena_alloc(ir->arena, regs);
    s.by_graph = fg_arena_alloc(ir->arena, regs);
    if (!s.group || !s.waiting || !s.out || !s.map || !s.late || !s.by_graph || !grown)
        return st;
    if (ir->n_regs)
        memcpy(grown, ir->regs, (size_t)ir->n_regs * sizeof *grown);
    ir->regs = grown;
    ir->cap_regs = (int32_t)regs;
    for (size_t i = 0; i < regs; i++)
        s.map[i] = FG_REG_NONE;
    int32_t n_steps = ir->n_steps;
    for (int32_t i = 0; i < n_steps; i++)
        FG_TRY(schedule_step(&s, i));
    FG_TRY(flush(&s));
    fg_reg *reg;
    for (int32_t at = 0; (reg = exit_reg(ir, at)) != NULL; at++)
        map_reg(&s, reg);
    ir->steps = s.out;
    ir->n_steps = s.n_out;
    for (int32_t i = 0; i < s.n_out; i++)
        for (int32_t k = 0; k < s.out[i].n_results; k++)
            ir->regs[s.out[i].result + k].index = i;
    ir->cap_steps = (int32_t)(2 * n);
    st = FG_OK;
fail:
    return st;
}
