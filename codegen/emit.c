#include "codegen/emit_private.h"
#include "runtime/cpython/eval_hook.h"

#include <stdio.h>
#include <string.h>

/* Interned names .fg0, .fg1 …: no identifiers, so that they meet no name of the user. */
static PyObject *temp_name(int32_t i)
{
    static PyObject *names[64];
    char text[24];
    if (i < 64 && names[i] != NULL)
        return Py_NewRef(names[i]);
    snprintf(text, sizeof text, ".fg%d", (int)i);
    PyObject *name = PyUnicode_InternFromString(text);
    if (i < 64 && name != NULL)
        names[i] = Py_NewRef(name);
    return name;
}

static PyObject *all_varnames(fg_emit_state *e)
{
    int32_t n = e->n_inputs + e->n_user_vars + e->n_temps, at = 0;
    PyObject *names = PyTuple_New(n);
    for (int32_t i = 0; names != NULL && i < n; i++) {
        bool is_user = i >= e->n_inputs && i < e->n_inputs + e->n_user_vars;
        PyObject *name = is_user ? Py_NewRef(PyTuple_GET_ITEM(e->varnames, i - e->n_inputs)) : temp_name(at++);
        if (name == NULL)
            Py_CLEAR(names);
        else
            PyTuple_SET_ITEM(names, i, name);
    }
    return names;
}

/* 1 if the register is the value that the resumed frame had in this slot at the start. */
static bool is_unchanged(const fg_emit_state *e, fg_reg reg, int32_t slot, const int32_t *input_slots)
{
    const fg_ir_reg *r = &e->ir->regs[reg];
    return r->kind == FG_REG_INPUT && input_slots != NULL && input_slots[r->index] == slot;
}

/* written: NULL, or the only slots that may be. */
static bool is_to_write(const fg_emit_state *e, const fg_reg *slots, const uint8_t *written, int32_t slot)
{
    const fg_ir *ir = e->ir;
    fg_reg reg = slots[slot];
    bool is_free = ((unsigned char *)PyBytes_AS_STRING(ir->root->code->co_localspluskinds))[slot] & 0x80;
    if (is_free || (reg == FG_REG_NONE ? ir->unbound_at_start[slot] : is_unchanged(e, reg, slot, ir->input_slots)))
        return false;
    return written == NULL || written[slot];
}

fg_status fg_emit_slots(fg_emit_state *e, const fg_reg *values, const uint8_t *written, int32_t n)
{
    fg_status st;
    int32_t n_slots = (int32_t)PyTuple_GET_SIZE(e->ir->root->code->co_localsplusnames), slots_at = e->n_out;
    PyObject *slots = fg_emit_own(e, PyList_New(0));
    if (slots == NULL)
        return FG_ERR_PYTHON;
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, Py_None)); /* replaced below */
    n++;
    for (int32_t i = 0; i < n_slots; i++) {
        fg_reg reg = values[i];
        if (!is_to_write(e, values, written, i))
            continue;
        PyObject *number = PyLong_FromLong(reg == FG_REG_NONE ? ~i : i);
        if (number == NULL || PyList_Append(slots, number) < 0) {
            Py_XDECREF(number);
            return FG_ERR_PYTHON;
        }
        Py_DECREF(number);
        if (reg == FG_REG_NONE)
            FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, Py_None));
        else
            FG_TRY(fg_emit_load(e, reg));
        n++;
    }
    PyObject *tuple = fg_emit_own(e, PyList_AsTuple(slots));
    if (tuple == NULL)
        return FG_ERR_PYTHON;
    e->out[slots_at].obj = tuple;
    return fg_emit_op(e, FG_OP_BUILD_TUPLE, n, NULL);
fail:
    return st;
}

static fg_status emit_return(fg_emit_state *e)
{
    fg_status st;
    const fg_ir *ir = e->ir;
    if (ir->start_pc >= 0) { /* a segment says how it ended: 0, the value */
        PyObject *zero = fg_emit_own(e, PyLong_FromLong(0));
        if (zero == NULL)
            return FG_ERR_PYTHON;
        FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, zero));
        FG_TRY(fg_emit_load(e, ir->exit.value));
        if (ir->exit.written != NULL)
            FG_TRY(fg_emit_slots(e, ir->exit.slots, ir->exit.written, 2));
        else
            FG_TRY(fg_emit_op(e, FG_OP_BUILD_TUPLE, 2, NULL));
    } else {
        FG_TRY(fg_emit_load(e, ir->exit.value));
    }
    e->handler = -1;
    e->where = &ir->root->instrs[ir->exit.pc];
    return fg_emit_op(e, FG_OP_RETURN_VALUE, 0, NULL);
fail:
    return st;
}

/* A segment that breaks: (instruction + 1, stack top first, slots, values …). */
static fg_status emit_segment_exit(fg_emit_state *e)
{
    fg_status st;
    const fg_ir *ir = e->ir;
    PyObject *id = fg_emit_own(e, PyLong_FromLong(ir->exit.pc + 1));
    if (id == NULL)
        return FG_ERR_PYTHON;
    e->where = &ir->root->instrs[ir->exit.pc];
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, id));
    for (int32_t i = ir->exit.depth - 1; i >= 0; i--)
        FG_TRY(fg_emit_load(e, ir->exit.stack[i]));
    FG_TRY(fg_emit_op(e, FG_OP_BUILD_TUPLE, ir->exit.depth, NULL));
    FG_TRY(fg_emit_slots(e, ir->exit.slots, NULL, 2));
    return fg_emit_op(e, FG_OP_RETURN_VALUE, 0, NULL);
fail:
    return st;
}

static fg_status assemble(fg_emit_state *e, bool is_host, PyCodeObject **out)
{
    PyCodeObject *base = e->ir->root->code;
    PyObject *varnames = all_varnames(e), *empty = PyTuple_New(0);
    fg_status st = FG_ERR_PYTHON;
    int32_t drop = CO_VARARGS | CO_VARKEYWORDS | CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE | CO_NESTED;
    if (varnames != NULL && empty != NULL) {
        fg_asm input = {.instrs = e->out,
                        .n_instrs = e->n_out,
                        .handlers = e->handlers,
                        .n_handlers = e->n_handlers,
                        .base = base,
                        .varnames = varnames,
                        .cellvars = is_host ? e->cellvars : empty,
                        .freevars = is_host ? e->freevars : empty,
                        .argcount = e->n_inputs,
                        .flags = (base->co_flags & ~drop) | CO_OPTIMIZED | CO_NEWLOCALS |
                                 (is_host && PyTuple_GET_SIZE(e->freevars) ? CO_NESTED : 0),
                        .firstlineno = base->co_firstlineno};
        st = fg_assemble(&input, out);
        if (st == FG_OK && (st = fg_code_is_generated_set(*out)) != FG_OK)
            Py_CLEAR(*out);
        if (st == FG_ERR_INVALID || st == FG_ERR_UNSUPPORTED || st == FG_ERR_BUG) {
            fprintf(stderr, "framegate: generated code was refused: %s\n", fg_canonical_why());
            st = FG_ERR_BUG;
        }
    }
    Py_XDECREF(varnames);
    Py_XDECREF(empty);
    return st;
}

fg_status fg_emit_target(const fg_emit_input *input, PyCodeObject **out, uint8_t *uses_closure)
{
    fg_status st = FG_ERR_NOMEM;
    fg_ir *ir = (fg_ir *)input->ir;
    bool is_host;
    fg_emit_state e = {.input = input, .ir = ir, .arena = ir->arena, .n_inputs = ir->n_inputs, .handler = -1};
    e.is_dead = fg_arena_alloc(e.arena, (size_t)ir->n_steps + 1);
    e.is_inline = fg_arena_alloc(e.arena, (size_t)ir->n_steps + 1);
    e.owned = PyList_New(0);
    if (e.is_dead == NULL || e.is_inline == NULL || e.owned == NULL)
        goto fail;
    FG_TRY(fg_emit_catches_init(&e));
    FG_TRY(fg_emit_plan(&e));
    is_host = ir->start_pc < 0 && (ir->exit.is_break || fg_emit_has_catches(&e));
    if (is_host)
        FG_TRY(fg_emit_host_locals(&e));
    e.temp_base = e.n_inputs + e.n_user_vars;
    e.where = &ir->root->instrs[ir->start_pc >= 0 ? ir->start_pc : 0];
    if (is_host && PyTuple_GET_SIZE(e.freevars) > 0)
        FG_TRY(fg_emit_op(&e, FG_OP_COPY_FREE_VARS, (int32_t)PyTuple_GET_SIZE(e.freevars), NULL));
    /* a frame that runs already may have handlers for signals: they are not looked for here */
    FG_TRY(fg_emit_op(&e, FG_OP_RESUME, ir->start_pc >= 0 || ir->is_continued ? 2 : 0, NULL));
    FG_TRY(fg_emit_steps(&e));
    if (!ir->exit.is_break)
        FG_TRY(emit_return(&e));
    else if (!is_host)
        FG_TRY(emit_segment_exit(&e));
    if (is_host)
        FG_TRY(fg_emit_host(&e));
    else if (fg_emit_has_catches(&e))
        FG_TRY(fg_emit_catch_temps(&e));
    FG_TRY(fg_emit_handlers(&e));
    FG_TRY(assemble(&e, is_host, out));
#ifdef FRAMEGATE_DEBUG
    const char *why;
    if ((st = fg_verify_code(*out, &why)) != FG_OK) {
        if (why != NULL) /* else out of memory */
            fprintf(stderr, "framegate: generated code is wrong: %s\n", why);
        Py_CLEAR(*out);
        goto fail;
    }
#endif
    *uses_closure = is_host && PyTuple_GET_SIZE(e.freevars) > 0;
fail:
    Py_XDECREF(e.owned);
    Py_XDECREF(e.varnames);
    Py_XDECREF(e.cellvars);
    Py_XDECREF(e.freevars);
    return st;
}
