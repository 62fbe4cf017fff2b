#define PY_SSIZE_T_CLEAN
#include "tracer/resume_chain.h"

#include <string.h>

enum { KIND_FREE = 0x80 };

static bool is_free_slot(PyCodeObject *code, int32_t i)
{
    return ((unsigned char *)PyBytes_AS_STRING(code->co_localspluskinds))[i] & KIND_FREE;
}

static fg_status build(fg_resume_table *table, int32_t pc, const uint8_t *bound, int32_t n_slots, int32_t depth, PyCodeObject **out)
{
    fg_arena arena;
    fg_icode *icode = NULL;
    uint8_t uses_closure;
    fg_arena_init(&arena);
    fg_status st;
    FG_TRY(fg_decode(table->code, &icode));
    fg_ir ir = {.arena = &arena, .root = icode, .start_pc = -1};
    ir.exit = (fg_ir_exit){.is_break = 1, .value = FG_REG_NONE, .pc = pc, .depth = depth};
    ir.exit.slots = fg_arena_alloc(&arena, (size_t)(n_slots + 1) * sizeof(fg_reg));
    ir.exit.stack = fg_arena_alloc(&arena, (size_t)(depth + 1) * sizeof(fg_reg));
    st = FG_ERR_NOMEM;
    if (ir.exit.slots == NULL || ir.exit.stack == NULL)
        goto fail;
    for (int32_t i = 0; i < n_slots + depth; i++) {
        fg_reg *to = i < n_slots ? &ir.exit.slots[i] : &ir.exit.stack[i - n_slots];
        *to = FG_REG_NONE;
        if (i < n_slots && !bound[i])
            continue;
        if ((*to = fg_ir_reg_add(&ir, FG_REG_INPUT, Py_None)) == FG_REG_NONE)
            goto fail;
        ir.regs[*to].index = ir.n_inputs++;
    }
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

/* The host's code for this instruction and these bound locals; borrowed from the table. */
static PyCodeObject *chain_code(fg_resume_table *table, int32_t pc, const uint8_t *bound, int32_t n_slots, int32_t depth)
{
    PyCodeObject *code = NULL;
    if (table->chains == NULL && (table->chains = PyDict_New()) == NULL)
        return NULL;
    PyObject *key = Py_BuildValue("(iy#)", pc, (const char *)bound, (Py_ssize_t)n_slots);
    if (key == NULL)
        return NULL;
    code = (PyCodeObject *)PyDict_GetItemWithError(table->chains, key);
    if (code == NULL && !PyErr_Occurred()) {
        fg_status st = build(table, pc, bound, n_slots, depth, &code);
        if (st != FG_OK || PyDict_SetItem(table->chains, key, (PyObject *)code) < 0) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_SystemError, "framegate: no code to resume at instruction %d: %s", (int)pc, fg_status_text(st));
            Py_CLEAR(code);
        } else {
            Py_DECREF(code); /* the dict has it */
        }
    }
    Py_DECREF(key);
    return code;
}

PyObject *fg_chain_run(fg_resume_table *table, int32_t pc, PyFunctionObject *func, PyObject **fast, const int16_t *slot_map,
                       int32_t n_slots, PyObject *stack)
{
    int32_t depth = (int32_t)PyTuple_GET_SIZE(stack), n = 0;
    uint8_t *bound = PyMem_Calloc((size_t)n_slots + 1, 1);
    PyObject **args = PyMem_Calloc((size_t)(n_slots + depth) + 1, sizeof *args), *result = NULL;
    if (bound == NULL || args == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    for (int32_t i = 0; i < n_slots; i++)
        if ((bound[i] = !is_free_slot(table->code, i) && fast[slot_map[i]] != NULL))
            args[n++] = Py_NewRef(fast[slot_map[i]]);
    for (int32_t i = depth - 1; i >= 0; i--)
        args[n++] = Py_NewRef(PyTuple_GET_ITEM(stack, i)); /* it came top first */
    fg_resume_note_break(table, pc);
    PyCodeObject *code = chain_code(table, pc, bound, n_slots, depth);
    PyObject *target = code ? PyFunction_New((PyObject *)code, func->func_globals) : NULL;
    if (target != NULL && PyTuple_GET_SIZE(code->co_localsplusnames) && func->func_closure != NULL &&
        PyCode_GetNumFree(code) == PyTuple_GET_SIZE(func->func_closure) && PyFunction_SetClosure(target, func->func_closure) < 0)
        Py_CLEAR(target);
    if (target != NULL)
        result = PyObject_Vectorcall(target, args, (size_t)n, NULL);
    Py_XDECREF(target);
done:
    for (int32_t i = 0; args != NULL && i < n; i++)
        Py_DECREF(args[i]);
    PyMem_Free(bound);
    PyMem_Free(args);
    return result;
}
