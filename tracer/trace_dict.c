/* Dicts: an overlay of what was read and written on top of what the source had at entry.
 *
 * While a dict is not complete, each key that is asked for is one fact (this item, or its absence); asking for its length or order makes it complete:
 * one fact with all its keys in order, and from then on the overlay is the dict. Order rules: an existing key keeps its place, a new one goes last.
 */
#include "runtime/cpython/dict.h"
#include "tracer/trace_python.h"

/* The interpreter hashes and compares nested tuples by calling itself, so only those of a modest depth become keys here. */
static fg_flow key_const(fg_trace *t, fg_value *key, int depth, PyObject **out)
{
    enum { MAX_DEPTH = 64 };
    if (depth > MAX_DEPTH)
        return fg_break(t, FG_BREAK_RECURSION, "a key of tuples nested too deeply");
    FG_DO(fg_look(t, &key));
    if (key->kind == FG_V_SCALAR)
        FG_DO(fg_concrete(t, key));
    if (key->kind == FG_V_TUPLE) {
        PyObject *tuple = PyTuple_New(key->n);
        if (tuple == NULL || fg_own(t, tuple) == NULL)
            return FG_FLOW_ERROR;
        for (int32_t i = 0; i < key->n; i++) {
            PyObject *part;
            FG_DO(key_const(t, key->items[i], depth + 1, &part));
            PyTuple_SET_ITEM(tuple, i, Py_NewRef(part));
        }
        *out = tuple;
        return FG_FLOW_OK;
    }
    if (key->kind != FG_V_CONST || !fg_is_key_const(key->real))
        return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "a %s as key", key->type ? key->type->tp_name : "run-time object");
    *out = key->real;
    return FG_FLOW_OK;
}

fg_flow fg_key_const(fg_trace *t, fg_value *key, PyObject **out)
{
    return key_const(t, key, 0, out);
}

static fg_flow probe(fg_trace *t, fg_value *dict, PyObject *key, Py_hash_t hash, PyObject **value)
{
    *value = NULL;
    if (fg_dict_find(dict->real, key, hash, value) == FG_FIND_UNDECIDED)
        return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "a key of the dict has its own __eq__");
    return FG_FLOW_OK;
}

static fg_flow hash_of(fg_trace *t, PyObject *key, Py_hash_t *hash)
{
    *hash = PyObject_Hash(key);
    return *hash == -1 && PyErr_Occurred() ? fg_break_on_error(t, FG_BREAK_RAISES, "hash") : FG_FLOW_OK;
}

fg_flow fg_dict_get(fg_trace *t, fg_value *dict, PyObject *key, fg_value **out)
{
    Py_hash_t hash;
    FG_DO(hash_of(t, key, &hash));
    fg_vitem *item = fg_map_find(&dict->map, key, hash);
    *out = item ? item->value : NULL;
    if (item != NULL || dict->is_complete || dict->node == FG_NODE_NONE)
        return FG_FLOW_OK;
    PyObject *real;
    FG_DO(probe(t, dict, key, hash, &real));
    if (real == NULL)
        FG_DO(fg_guard(t, FG_GUARD_DICT_LACKS, dict->node, key, 0, 0));
    else if ((*out = fg_value_lazy(t, FG_ACC_DICT_ITEM, dict->node, key, 0, real)) == NULL)
        return FG_FLOW_ERROR;
    else
        FG_DO(fg_rely_on(t, *out));
    return fg_map_set(t, &dict->map, key, hash, *out, 0);
}

fg_flow fg_dict_load(fg_trace *t, fg_value *dict)
{
    if (dict->is_complete || dict->node == FG_NODE_NONE) {
        FG_SET(t, dict->is_complete, 1);
        return FG_FLOW_OK;
    }
    Py_ssize_t n = PyDict_GET_SIZE(dict->real), at = 0;
    if (n > 4096)
        return fg_break(t, FG_BREAK_TOO_LONG, "dict of %zd items", n);
    PyObject *keys = PyTuple_New(n);
    if (keys == NULL || fg_own(t, keys) == NULL)
        return FG_FLOW_ERROR;
    fg_vmap map = {.n_removed = dict->map.n_removed};
    fg_dict_iter it = {0};
    PyObject *key, *real;
    while (at < n && fg_dict_next(dict->real, &it, &key, &real)) {
        if (!fg_is_key_const(key))
            return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "a dict with %s keys", Py_TYPE(key)->tp_name);
        PyTuple_SET_ITEM(keys, at++, Py_NewRef(key));
        Py_hash_t hash;
        FG_DO(hash_of(t, key, &hash));
        fg_vitem *seen = fg_map_find(&dict->map, key, hash);
        fg_value *v = seen ? seen->value : fg_value_lazy(t, FG_ACC_DICT_ITEM, dict->node, key, 0, real);
        if (v == NULL && seen == NULL)
            return FG_FLOW_ERROR;
        if (v != NULL)
            FG_DO(fg_map_set(t, &map, key, hash, v, 0));
    }
    FG_DO(fg_guard(t, FG_GUARD_DICT_KEYS, dict->node, keys, 0, 0));
    for (int32_t i = 0; i < dict->map.n; i++) {
        fg_vitem *item = &dict->map.items[i];
        if (item->value != NULL && fg_map_find(&map, item->key, item->hash) == NULL)
            FG_DO(fg_map_set(t, &map, item->key, item->hash, item->value, 1));
    }
    FG_SET(t, dict->map, map);
    FG_SET(t, dict->is_complete, 1);
    return FG_FLOW_OK;
}

static fg_flow emit_item(fg_trace *t, fg_value *dict, fg_step_op op, fg_value *key, fg_value *v)
{
    fg_reg regs[3];
    int32_t n = 0;
    if (v != NULL)
        FG_DO(fg_materialise(t, v, &regs[n++]));
    FG_DO(fg_materialise(t, dict, &regs[n++]));
    FG_DO(fg_materialise(t, key, &regs[n++]));
    return fg_emit(t, op, FG_SF_EFFECT, 0, NULL, NULL, regs, n, NULL);
}

fg_flow fg_dict_set(fg_trace *t, fg_value *dict, fg_value *key, fg_value *v)
{
    PyObject *k = NULL;
    Py_hash_t hash;
    FG_DO(fg_look(t, &key));
    FG_DO(fg_dict_key(t, dict, key, &k));
    FG_DO(hash_of(t, k, &hash));
    if (dict->map.n > 4096)
        return fg_break(t, FG_BREAK_TOO_LONG, "dict of more than 4096 items");
    FG_DO(fg_drop_item(t, dict, k));
    if (!fg_is_virtual(dict)) {
        FG_DO(fg_mutate(t, dict));
        FG_DO(emit_item(t, dict, FG_STEP_STORE_SUBSCR, key, v));
    }
    bool is_new = fg_map_find(&dict->map, k, hash) == NULL;
    FG_DO(fg_map_set(t, &dict->map, k, hash, v, 1));
    if (is_new) {
        fg_vitem *item = &dict->map.items[dict->map.n - 1];
        FG_SET(t, item->keyval, key->node != FG_NODE_NONE || key->kind == FG_V_TUPLE ? key : NULL);
    }
    return FG_FLOW_OK;
}

/* The key is known to be there. */
fg_flow fg_dict_delete(fg_trace *t, fg_value *dict, PyObject *key)
{
    Py_hash_t hash;
    FG_DO(hash_of(t, key, &hash));
    FG_DO(fg_dict_load(t, dict)); /* a later insertion of the key goes last: the order must be known */
    fg_vitem *item = fg_map_find(&dict->map, key, hash);
    if (item == NULL)
        return fg_break(t, FG_BREAK_RAISES, "KeyError");
    FG_DO(fg_drop_item(t, dict, key));
    if (!fg_is_virtual(dict)) {
        fg_value *k = item->keyval != NULL ? item->keyval : fg_value_const(t, key);
        if (k == NULL)
            return FG_FLOW_ERROR;
        FG_DO(fg_mutate(t, dict));
        FG_DO(emit_item(t, dict, FG_STEP_DELETE_SUBSCR, k, NULL));
    }
    return fg_map_remove(t, &dict->map, item);
}
