/* Global names: an item of the function's globals, else one of its builtins. Stores lie over the dict that both a function and its module have. */
#include "runtime/cpython/dict.h"
#include "tracer/trace.h"

fg_flow fg_no_lazy_import(fg_trace *t, PyObject *name, const fg_value *v)
{
    return v->real != NULL && fg_is_lazy_import(v->real)
               ? fg_break(t, FG_BREAK_UNSUPPORTED_INSTRUCTION, "'%U' is imported when it is used, which is now", name)
               : FG_FLOW_OK;
}

fg_flow fg_global_load(fg_trace *t, fg_tframe *f, PyObject *name, fg_value **out)
{
    FG_DO(fg_look(t, &f->globals));
    FG_DO(fg_dict_get(t, f->globals, name, out));
    if (*out == NULL) {
        FG_DO(fg_look(t, &f->builtins));
        FG_DO(fg_dict_get(t, f->builtins, name, out));
    }
    if (*out == NULL)
        return fg_break(t, FG_BREAK_RAISES, "name '%U' is not defined", name);
    return fg_no_lazy_import(t, name, *out);
}

/* v NULL deletes. */
fg_flow fg_global_store(fg_trace *t, fg_tframe *f, PyObject *name, fg_value *v)
{
    FG_DO(fg_look(t, &f->globals));
    FG_DO(fg_look(t, &t->root->globals));
    fg_value *globals = f->globals, *seen;
    if (v == NULL) {
        FG_DO(fg_dict_get(t, globals, name, &seen));
        if (seen == NULL)
            return fg_break(t, FG_BREAK_RAISES, "name '%U' is not defined", name);
        if (globals->is_complete)
            return fg_break(t, FG_BREAK_UNSUPPORTED_INSTRUCTION, "del of a global after the globals were listed");
    }
    FG_DO(fg_drop_item(t, globals, name));
    FG_DO(fg_mutate(t, globals));
    fg_reg regs[3];
    int32_t n = 0;
    if (v != NULL)
        FG_DO(fg_materialise(t, v, &regs[n++]));
    if (globals == t->root->globals) {
        FG_DO(fg_emit(t, v ? FG_STEP_STORE_GLOBAL : FG_STEP_DELETE_GLOBAL, FG_SF_EFFECT, 0, name, NULL, regs, n, NULL));
    } else {
        FG_DO(fg_materialise(t, globals, &regs[n++]));
        if ((regs[n++] = fg_ir_reg_add(&t->ir, FG_REG_CONST, name)) == FG_REG_NONE)
            return fg_nomem();
        FG_DO(fg_emit(t, v ? FG_STEP_STORE_SUBSCR : FG_STEP_DELETE_SUBSCR, FG_SF_EFFECT, 0, NULL, NULL, regs, n, NULL));
    }
    return fg_map_set(t, &globals->map, name, PyObject_Hash(name), v, 1);
}
