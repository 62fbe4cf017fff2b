/* What is a member of sets and a key of dicts by its identity: instances whose class has the __eq__ and __hash__ of object, functions, torch tensors.
 *
 * Two values of such a kind are one object where they are one value, and else not: what is used so is told apart from all others of its type by one fact
 * at the end of the trace (`distinct`). Rules:
 *  1. A tensor that an operation gave may be one of its operands: it is no key.
 *  2. The real object stands for the key in a dict that the trace has made, so it has to be one that was there; no fact and no code gets to have it.
 */
#include "tracer/trace_python.h"

/* The value was looked at. */
static fg_flow by_identity(fg_trace *t, fg_value *v, bool *yes)
{
    const PyTypeObject *base = &PyBaseObject_Type;
    fg_value *type, *found;
    fg_node node;
    *yes = false;
    if (v->kind == FG_V_TENSOR) {
        FG_DO(fg_node_of(t, v, &node));
        *yes = node != FG_NODE_NONE && v->real != NULL && fg_tensor_library(v) == FG_LIB_TORCH; /* all tensors are told apart */
        return FG_FLOW_OK;
    }
    if (v->kind == FG_V_OBJECT && v->type->tp_hash == base->tp_hash && v->type->tp_richcompare == base->tp_richcompare) {
        FG_DO(fg_object_type(t, v, &type)); /* a class may grow an __eq__ */
        FG_DO(fg_type_lookup(t, type, v->type, fg_names.s_eq, &found));
        if (found != NULL)
            FG_DO(fg_look(t, &found));
        FG_DO(fg_type_lookup(t, type, v->type, fg_names.s_hash, &found));
        if (found != NULL)
            FG_DO(fg_look(t, &found));
    } else if (v->kind != FG_V_FUNC) {
        return FG_FLOW_OK;
    }
    *yes = true;
    if (!v->is_told_apart)
        FG_SET(t, v->is_told_apart, 1);
    return FG_FLOW_OK;
}

/* What may be asked for in a set that the trace has made, or put into it. Unhashable items raise. */
fg_flow fg_set_member(fg_trace *t, fg_value *item)
{
    PyObject *key;
    bool yes;
    FG_DO(fg_look(t, &item));
    FG_DO(by_identity(t, item, &yes));
    return yes ? FG_FLOW_OK : fg_key_const(t, item, &key);
}

static bool has_identity(const fg_value *v)
{
    return v->kind == FG_V_TENSOR || v->kind == FG_V_OBJECT || v->kind == FG_V_FUNC;
}

/* Where an item is in a set that the trace has made; -1: nowhere. */
fg_flow fg_set_find_member(fg_trace *t, fg_value *set, fg_value *item, int32_t *at)
{
    bool same = false;
    FG_DO(fg_look(t, &item));
    FG_DO(fg_set_member(t, item));
    for (*at = 0; *at < set->n; ++*at) {
        FG_DO(fg_look(t, &set->items[*at]));
        if (has_identity(item) || has_identity(set->items[*at]))
            same = item == set->items[*at];
        else
            FG_DO(fg_equal(t, item, set->items[*at], &same));
        if (same)
            return FG_FLOW_OK;
    }
    *at = -1;
    return FG_FLOW_OK;
}

/* A dict key as an object: a guarded constant, or in a dict that the trace has made also what is a key by its identity. */
fg_flow fg_dict_key(fg_trace *t, const fg_value *dict, fg_value *key, PyObject **out)
{
    bool yes = false;
    fg_node node;
    FG_DO(fg_look(t, &key));
    if (dict->node == FG_NODE_NONE && dict->acc < 0) {
        FG_DO(by_identity(t, key, &yes));
        if (yes)
            FG_DO(fg_node_of(t, key, &node));
    }
    if (!yes || node == FG_NODE_NONE || key->real == NULL)
        return fg_key_const(t, key, out);
    *out = key->real;
    return FG_FLOW_OK;
}
