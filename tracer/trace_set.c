/* Sets that existed at entry: whether something is in them, how many there are, and adding and taking out one thing.
 *
 * What was asked is a fact about the set, and what the trace has done lies over it: in the map of the value a key with a value is there, one with none is not, and
 * is_new says that it was not there at entry. A value that is only known at run time is no key: it would become a fact for each call. Going over a set breaks,
 * for its order is not that of its members, and nothing tells an iterator that was begun here of a change that is made behind a break.
 */
#include "runtime/cpython/dict.h"
#include "tracer/trace_python.h"

bool fg_is_old_set(const fg_value *v)
{
    return v->kind == FG_V_OBJECT && (v->type == &PySet_Type || v->type == &PyFrozenSet_Type) && v->node != FG_NODE_NONE && v->real != NULL;
}

static fg_flow member(fg_trace *t, fg_value *set, fg_value *item, PyObject **key, fg_vitem **out)
{
    PyObject *real;
    FG_DO(fg_look(t, &item));
    if (item->kind == FG_V_SCALAR)
        return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "a value of this call as member of a set");
    FG_DO(fg_key_const(t, item, key));
    Py_hash_t hash = PyObject_Hash(*key);
    if (hash == -1)
        return fg_break_on_error(t, FG_BREAK_RAISES, "hash");
    if ((*out = fg_map_find(&set->map, *key, hash)) != NULL)
        return FG_FLOW_OK;
    fg_find found = fg_set_find(set->real, *key, hash, &real);
    if (found == FG_FIND_UNDECIDED)
        return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "a member of the set has its own __eq__");
    FG_DO(fg_guard(t, found == FG_FIND_FOUND ? FG_GUARD_SET_HAS : FG_GUARD_SET_LACKS, set->node, *key, 0, 0));
    FG_DO(fg_map_set(t, &set->map, *key, hash, found == FG_FIND_FOUND ? item : NULL, found != FG_FIND_FOUND));
    *out = fg_map_find(&set->map, *key, hash);
    return FG_FLOW_OK;
}

fg_flow fg_set_contains(fg_trace *t, fg_value *set, fg_value *item, bool *found)
{
    PyObject *key;
    fg_vitem *seen;
    FG_DO(member(t, set, item, &key, &seen));
    *found = seen->value != NULL;
    return FG_FLOW_OK;
}

fg_flow fg_set_len(fg_trace *t, fg_value *set, int64_t *len)
{
    *len = PySet_GET_SIZE(set->real);
    FG_DO(fg_guard(t, FG_GUARD_LENGTH, set->node, NULL, *len, *len));
    for (int32_t i = 0; i < set->map.n; i++)
        *len += (set->map.items[i].value != NULL) - !set->map.items[i].is_new;
    return FG_FLOW_OK;
}

static fg_flow change(fg_trace *t, fg_value *set, PyObject *name, fg_vitem *at, fg_value *item, fg_value *now)
{
    fg_reg regs[2], unused;
    FG_DO(fg_mutate(t, set));
    FG_DO(fg_materialise(t, set, &regs[0]));
    FG_DO(fg_materialise(t, item, &regs[1]));
    FG_DO(fg_emit(t, FG_STEP_CALL_METHOD, FG_SF_EFFECT, 0, name, NULL, regs, 2, &unused));
    FG_SET(t, at->value, now);
    return FG_FLOW_OK;
}

fg_flow fg_set_method(fg_trace *t, fg_value *set, PyObject *name, fg_value **args, int32_t n, fg_value **out, bool *handled)
{
    static const char *const names[] = {"__contains__", "add", "discard", "remove"};
    enum { CONTAINS, ADD, DISCARD, REMOVE, N_NAMES };
    int which = 0;
    while (which < N_NAMES && PyUnicode_CompareWithASCIIString(name, names[which]) != 0)
        which++;
    *handled = which < N_NAMES && n == 1;
    if (!*handled)
        return FG_FLOW_OK;
    PyObject *key;
    fg_vitem *at;
    FG_DO(member(t, set, args[0], &key, &at));
    const bool is_in = at->value != NULL;
    if (which == REMOVE && !is_in)
        return fg_raise_key_error(t, key);
    if (which == ADD && !is_in)
        FG_DO(change(t, set, name, at, args[0], args[0]));
    if ((which == DISCARD || which == REMOVE) && is_in)
        FG_DO(change(t, set, name, at, args[0], NULL));
    *out = fg_value_const(t, which != CONTAINS ? Py_None : is_in ? Py_True : Py_False);
    return *out ? FG_FLOW_OK : FG_FLOW_ERROR;
}
