#define PY_SSIZE_T_CLEAN
#include "tracer/resume_chain.h"

#include <string.h>

enum { KIND_FREE = 0x80 };

static bool is_free_slot(PyCodeObject *code, int32_t i)
{
    return ((unsigned char *)PyBytes_AS_STRING(code->co_localspluskinds))[i] & KIND_FREE;
}

/* The one input is a list of the values; it is emptied as soon as they are in the frame, so that they die where they die in plain Python. */
static fg_status take_values(fg_ir *ir, const uint8_t *bound, int32_t n_slots, int32_t depth)
{
    static PyObject *clear;
    int32_t n = depth;
    for (int32_t i = 0; i < n_slots; i++)
        n += bound[i];
    for (int32_t i = 0; i < n_slots; i++)
        ir->exit.slots[i] = FG_REG_NONE;
    if (clear == NULL && (clear = PyUnicode_InternFromString("clear")) == NULL)
        return FG_ERR_PYTHON;
    fg_reg list = fg_ir_reg_add(ir, FG_REG_INPUT, Py_None);
    if (list == FG_REG_NONE)
        return FG_ERR_NOMEM;
    ir->regs[list].index = ir->n_inputs++;
    fg_step *unpack = fg_ir_step_add(ir, FG_STEP_UNPACK, &list, 1, n);
    if (unpack == NULL)
        return FG_ERR_NOMEM;
    unpack->flags = FG_SF_EFFECT;
    fg_reg next = unpack->result;
    fg_step *empty = fg_ir_step_add(ir, FG_STEP_CALL_METHOD, &list, 1, 1);
    if (empty == NULL)
        return FG_ERR_NOMEM;
    empty->flags = FG_SF_EFFECT | FG_SF_COVERED;
    empty->name = clear;
    for (int32_t i = 0; i < n_slots + depth; i++)
        if (i >= n_slots)
            ir->exit.stack[i - n_slots] = next++;
        else if (bound[i])
            ir->exit.slots[i] = next++;
    return FG_OK;
}

static fg_status build(fg_resume_table *table, PyCodeObject *users, int32_t pc, const uint8_t *bound, int32_t n_slots, int32_t depth,
                       PyCodeObject **out)
{
    fg_arena arena;
    fg_icode *icode = NULL;
    uint8_t uses_closure;
    fg_arena_init(&arena);
    fg_status st;
    FG_TRY(fg_decode(users, &icode));
    fg_ir ir = {.arena = &arena, .root = icode, .start_pc = -1, .is_continued = 1};
    ir.exit = (fg_ir_exit){.is_break = 1, .is_raise = pc < 0, .value = FG_REG_NONE, .pc = pc < 0 ? ~pc : pc, .depth = depth};
    ir.exit.slots = fg_arena_alloc(&arena, (size_t)(n_slots + 1) * sizeof(fg_reg));
    ir.exit.stack = fg_arena_alloc(&arena, (size_t)(depth + 1) * sizeof(fg_reg));
    st = FG_ERR_NOMEM;
    if (ir.exit.slots == NULL || ir.exit.stack == NULL)
        goto fail;
    if ((st = take_values(&ir, bound, n_slots, depth)) != FG_OK)
        goto fail;
    fg_resume_maker maker;
    fg_resume_maker_init(table, &maker);
    fg_emit_input input = {.ir = &ir, .maker = &maker};
    st = fg_emit_target(&input, out, &uses_closure);
fail:
    if (icode)
        fg_icode_release(icode);
    fg_arena_fini(&arena);
    return st;
}

/* The host's code for this instruction and these bound locals, a new reference. */
static PyCodeObject *chain_code(fg_resume_table *table, PyCodeObject *users, int32_t pc, const uint8_t *bound, int32_t n_slots,
                                int32_t depth)
{
    PyCodeObject *code = NULL;
    if (table->chains == NULL && (table->chains = PyDict_New()) == NULL)
        return NULL;
    PyObject *key = Py_BuildValue("(iy#)", pc, (const char *)bound, (Py_ssize_t)n_slots);
    if (key == NULL)
        return NULL;
    code = (PyCodeObject *)Py_XNewRef(PyDict_GetItemWithError(table->chains, key));
    if (code == NULL && !PyErr_Occurred()) {
        fg_status st = build(table, users, pc, bound, n_slots, depth, &code);
        /* building may have run anything, and the table may be cut off */
        if (st != FG_OK || (table->chains != NULL && PyDict_SetItem(table->chains, key, (PyObject *)code) < 0)) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_SystemError, "framegate: no code to resume at instruction %d: %s", (int)pc, fg_status_text(st));
            Py_CLEAR(code);
        }
    }
    Py_DECREF(key);
    return code;
}

PyObject *fg_chain_run(fg_resume_table *table, int32_t pc, PyFunctionObject *func, fg_frame *frame, const int16_t *slot_map,
                       int32_t n_slots, PyObject *stack)
{
    int32_t depth = (int32_t)PyTuple_GET_SIZE(stack);
    uint8_t *bound = PyMem_Calloc((size_t)n_slots + 1, 1);
    PyObject *values = PyList_New(0), *target = NULL, *result = NULL;
    PyCodeObject *users = (PyCodeObject *)Py_NewRef(table->code), *code = NULL;
    if (bound == NULL || values == NULL)
        goto done;
    for (int32_t i = 0; i < n_slots; i++) {
        PyObject *value = fg_frame_slot(frame, slot_map[i]);
        bound[i] = !is_free_slot(users, i) && value != NULL;
        if (bound[i] && PyList_Append(values, value) < 0)
            goto done;
    }
    for (int32_t i = depth - 1; i >= 0; i--) /* it came top first */
        if (PyList_Append(values, PyTuple_GET_ITEM(stack, i)) < 0)
            goto done;
    if (pc >= 0)
        fg_resume_note_break(table, pc);
    code = chain_code(table, users, pc, bound, n_slots, depth);
    target = code ? PyFunction_New((PyObject *)code, func->func_globals) : NULL;
    if (target == NULL)
        goto done;
    Py_XSETREF(((PyFunctionObject *)target)->func_builtins, Py_NewRef(func->func_builtins));
    if (PyTuple_GET_SIZE(code->co_localsplusnames) && func->func_closure != NULL &&
        PyCode_GetNumFree(code) == PyTuple_GET_SIZE(func->func_closure) && PyFunction_SetClosure(target, func->func_closure) < 0)
        goto done;
    for (int32_t i = 0; i < n_slots; i++) /* this frame has only to return what the next one gives */
        if (bound[i])
            fg_frame_slot_set(frame, slot_map[i], NULL);
    for (int32_t i = 0; i < depth; i++) { /* a segment made the tuple, nobody else has seen it */
        PyObject *moved = PyTuple_GET_ITEM(stack, i);
        PyTuple_SET_ITEM(stack, i, Py_NewRef(Py_None));
        Py_DECREF(moved);
    }
    fg_hidden_frame hidden;
    fg_frame_hide(&hidden, frame);
    result = PyObject_Vectorcall(target, &values, 1, NULL);
    fg_frame_show(&hidden);
done:
    if (result == NULL && !PyErr_Occurred())
        PyErr_NoMemory();
    Py_XDECREF(target);
    Py_XDECREF(values);
    Py_XDECREF(code);
    Py_DECREF(users);
    PyMem_Free(bound);
    return result;
}
