/* `.grad` of a torch tensor, read and written.
 *
 * Whether there is one, and of which metadata, is the fact `gradient` about the tensor, which is checked without making an object. One that is used is an
 * input like any other: a source of its own (a getattr behind that fact), so that two ways to one object are one value. What the trace puts there lies over
 * it, in the map of the tensor's value. Rules:
 *  1. Only tensors that were there at entry: where torch would warn of the question, and of what operations gave, it breaks.
 *  2. Nothing that is captured changes a gradient's place: a backward pass breaks the graph, and what follows it starts anew.
 */
#include "guards/guard_drop.h"
#include "tracer/trace_python.h"

bool fg_is_gradient(const fg_value *o, PyObject *name)
{
    return name == fg_names.s_grad && fg_tensor_library(o) == FG_LIB_TORCH;
}

/* torch's own attribute, on a tensor of one of its own types, with nobody in between. */
static fg_flow is_plain(fg_trace *t, const fg_value *o, PyObject *name)
{
    fg_torch_state state;
    if (o->node == FG_NODE_NONE || o->real == NULL || o->step >= 0)
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of what an operation gave", name);
    const PyObject *descr = fg_py_type_lookup(o->type, name);
    if (descr == NULL || Py_TYPE(descr) != &PyGetSetDescr_Type || !fg_torch_state_read(&state) || state.function_mode_depth != 0)
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of a tensor, in a way that is not torch's own", name);
    return FG_FLOW_OK;
}

fg_flow fg_gradient_load(fg_trace *t, fg_value *o, PyObject *name, fg_value **out)
{
    const fg_vitem *item = fg_map_find(&o->map, name, PyObject_Hash(name));
    fg_tensor_meta meta;
    if (item != NULL) {
        *out = item->value;
        return FG_FLOW_OK;
    }
    FG_DO(is_plain(t, o, name));
    const fg_tensor_adaptor *adaptor = fg_tensor_adaptor_find(o->type);
    int r = adaptor != NULL && adaptor->gradient != NULL ? adaptor->gradient(adaptor, o->real, &meta) : 0;
    if (r < 0)
        return fg_break_on_error(t, FG_BREAK_UNKNOWN_TENSOR_KIND, "gradient");
    if (r == 0 || (meta.keys == 0 && meta.requires_grad))
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of a tensor that is no leaf, or that cannot be read", name);
    if (o->is_mutated) { /* a leaf that requires grad stays one, any other tensor may have become a result */
        const char *why;
        fg_tensor_meta own;
        if (adaptor->read(adaptor, o->real, &own, &why) != 1 || !own.requires_grad)
            return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of a tensor that was changed", name);
    }
    meta.adaptor = adaptor;
    FG_DO(fg_guard_meta(t, FG_GUARD_GRADIENT, o->node, &meta));
    FG_SET(t, t->uses_torch, true);
    if (meta.keys == 0) {
        *out = fg_value_const(t, Py_None);
    } else {
        PyObject *real = PyObject_GetAttr(o->real, name);
        if (real == NULL)
            return fg_break_on_error(t, FG_BREAK_RAISES, "gradient");
        if (fg_own(t, real) == NULL)
            return FG_FLOW_ERROR;
        *out = fg_value_lazy(t, FG_ACC_GETATTR, o->node, name, 0, real);
    }
    return *out ? fg_map_set(t, &o->map, name, PyObject_Hash(name), *out, 0) : FG_FLOW_ERROR;
}

/* None is always taken; a tensor of another shape, dtype or device is refused when it is stored. */
fg_flow fg_gradient_store(fg_trace *t, fg_value *o, PyObject *name, fg_value *v)
{
    fg_value *old;
    fg_reg regs[2];
    const bool is_none = v->kind == FG_V_CONST && v->real == Py_None;
    if (!is_none && !(v->kind == FG_V_TENSOR && fg_tensor_library(v) == FG_LIB_TORCH))
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "assignment of a %s to '%U'", v->type ? v->type->tp_name : "run-time object",
                        name);
    FG_DO(fg_gradient_load(t, o, name, &old));
    FG_DO(fg_look(t, &old));
    if (!is_none && fg_is_covered(t))
        return fg_break(t, FG_BREAK_MAY_RAISE_IN_TRY, "assignment to '%U'", name);
    if (old->acc == FG_ACC_GETATTR && old->parent == o->node && old != v) {
        if (!fg_drop_is_quiet(old->real)) /* the engine holds one more reference, so how many there are says nothing */
            return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "a gradient loses a reference and its end may run code");
        FG_DO(fg_drop(t, old));
    }
    FG_DO(fg_materialise(t, v, &regs[0]));
    FG_DO(fg_materialise(t, o, &regs[1]));
    FG_DO(fg_emit(t, FG_STEP_STORE_ATTR, FG_SF_EFFECT | (is_none ? 0 : FG_SF_RAISES), 0, name, NULL, regs, 2, NULL));
    return fg_map_set(t, &o->map, name, PyObject_Hash(name), v, 1);
}
