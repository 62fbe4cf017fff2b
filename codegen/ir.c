#include "codegen/ir.h"

#include <string.h>

static const char *const step_names[FG_N_STEPS] = {
#define FG_STEP(NAME, TEXT) TEXT,
#include "codegen/steps.def"
#undef FG_STEP
};

const char *fg_step_name(int op)
{
    return op >= 0 && op < FG_N_STEPS ? step_names[op] : "?";
}

/* The old array stays in the arena: an undo log may still point into it. */
static void *grow(fg_arena *arena, void *old, int32_t n, int32_t *cap, size_t size)
{
    if (n < *cap)
        return old;
    int32_t wanted = *cap ? 2 * *cap : 32;
    void *made = fg_arena_alloc(arena, (size_t)wanted * size);
    if (made == NULL)
        return NULL;
    if (n > 0)
        memcpy(made, old, (size_t)n * size);
    *cap = wanted;
    return made;
}

fg_reg fg_ir_reg_add(fg_ir *ir, fg_reg_kind kind, PyObject *object)
{
    fg_ir_reg *regs = grow(ir->arena, ir->regs, ir->n_regs, &ir->cap_regs, sizeof *regs);
    if (regs == NULL)
        return FG_REG_NONE;
    ir->regs = regs;
    regs[ir->n_regs] = (fg_ir_reg){.kind = (uint8_t)kind, .index = -1, .frame_slot = -1, .slot = -1, .object = object};
    return ir->n_regs++;
}

fg_step *fg_ir_step_add(fg_ir *ir, fg_step_op op, const fg_reg *args, int32_t n_args, int32_t n_results)
{
    fg_step *steps = grow(ir->arena, ir->steps, ir->n_steps, &ir->cap_steps, sizeof *steps);
    fg_reg *copy = fg_arena_alloc(ir->arena, (size_t)(n_args ? n_args : 1) * sizeof *copy);
    if (steps == NULL || copy == NULL)
        return NULL;
    ir->steps = steps;
    if (n_args > 0)
        memcpy(copy, args, (size_t)n_args * sizeof *copy);
    fg_reg result = FG_REG_NONE;
    for (int32_t i = 0; i < n_results; i++) {
        fg_reg reg = fg_ir_reg_add(ir, FG_REG_STEP, NULL);
        if (reg == FG_REG_NONE)
            return NULL;
        ir->regs[reg].index = ir->n_steps;
        if (i == 0)
            result = reg;
    }
    fg_step *step = &ir->steps[ir->n_steps++];
    *step = (fg_step){.op = (uint8_t)op,
                      .args = copy,
                      .n_args = n_args,
                      .result = result,
                      .n_results = n_results,
                      .site = -1,
                      .caught = -1,
                      .context = -1,
                      .restore = -1};
    return step;
}

fg_ir_catch *fg_ir_catch_add(fg_ir *ir)
{
    fg_ir_catch *catches = grow(ir->arena, ir->catches, ir->n_catches, &ir->cap_catches, sizeof *catches);
    if (catches == NULL)
        return NULL;
    ir->catches = catches;
    return &catches[ir->n_catches++];
}

fg_ir_context *fg_ir_context_add(fg_ir *ir)
{
    fg_ir_context *contexts = grow(ir->arena, ir->contexts, ir->n_contexts, &ir->cap_contexts, sizeof *contexts);
    if (contexts == NULL)
        return NULL;
    ir->contexts = contexts;
    return &contexts[ir->n_contexts++];
}

fg_ir_restore *fg_ir_restore_add(fg_ir *ir)
{
    fg_ir_restore *restores = grow(ir->arena, ir->restores, ir->n_restores, &ir->cap_restores, sizeof *restores);
    if (restores == NULL)
        return NULL;
    ir->restores = restores;
    return &restores[ir->n_restores++];
}

static int append_reg(PyObject *parts, const fg_ir *ir, fg_reg reg)
{
    PyObject *text;
    if (reg == FG_REG_NONE)
        text = PyUnicode_FromString("-");
    else if (ir->regs[reg].kind == FG_REG_CONST)
        text = PyUnicode_FromFormat("<%s>", Py_TYPE(ir->regs[reg].object)->tp_name);
    else
        text = PyUnicode_FromFormat("%s%d", ir->regs[reg].kind == FG_REG_INPUT ? "i" : "r",
                                    ir->regs[reg].kind == FG_REG_INPUT ? ir->regs[reg].index : reg);
    if (text == NULL)
        return -1;
    int failed = PyList_Append(parts, text);
    Py_DECREF(text);
    return failed;
}

PyObject *fg_ir_str(const fg_ir *ir)
{
    PyObject *lines = PyList_New(0), *parts = NULL, *text = NULL, *sep = PyUnicode_FromString(", "), *newline = PyUnicode_FromString("\n");
    if (lines == NULL || sep == NULL || newline == NULL)
        goto done;
    for (int32_t i = 0; i < ir->n_steps; i++) {
        const fg_step *s = &ir->steps[i];
        if ((parts = PyList_New(0)) == NULL)
            goto done;
        for (int32_t k = 0; k < s->n_args; k++)
            if (append_reg(parts, ir, s->args[k]) < 0)
                goto done;
        PyObject *joined = PyUnicode_Join(sep, parts);
        PyObject *line = joined == NULL ? NULL
                         : s->name && PyUnicode_Check(s->name)
                             ? PyUnicode_FromFormat("r%d = %s.%U(%U) arg=%d%s", s->result, step_names[s->op], s->name, joined, s->arg,
                                                    s->flags & FG_SF_GRAPH ? " graph" : "")
                             : PyUnicode_FromFormat("r%d = %s(%U) arg=%d%s", s->result, step_names[s->op], joined, s->arg,
                                                    s->flags & FG_SF_GRAPH ? " graph" : "");
        Py_XDECREF(joined);
        Py_CLEAR(parts);
        if (line == NULL || PyList_Append(lines, line) < 0) {
            Py_XDECREF(line);
            goto done;
        }
        Py_DECREF(line);
    }
    text = PyUnicode_Join(newline, lines);
done:
    Py_XDECREF(parts);
    Py_XDECREF(lines);
    Py_XDECREF(sep);
    Py_XDECREF(newline);
    return text;
}
