/* Length, subscription, membership, unpacking and equality of containers whose parts are known. */
#include "tracer/trace_python.h"

#include <string.h>

fg_flow fg_list_load(fg_trace *t, fg_value *list)
{
    if (list->is_complete || list->node == FG_NODE_NONE) {
        FG_SET(t, list->is_complete, 1);
        return FG_FLOW_OK;
    }
    Py_ssize_t n = PyList_GET_SIZE(list->real);
    if (n > 100000)
        return fg_break(t, FG_BREAK_TOO_LONG, "list of %zd elements", n);
    FG_DO(fg_guard(t, FG_GUARD_LENGTH, list->node, NULL, n, n));
    int32_t total = (int32_t)n + list->n, cap = total < 8 ? 8 : total;
    fg_value **items = fg_arena_alloc(&t->arena, (size_t)cap * sizeof *items);
    if (items == NULL)
        return fg_nomem();
    for (Py_ssize_t i = 0; i < n; i++)
        if ((items[i] = fg_value_lazy(t, FG_ACC_LIST_ITEM, list->node, NULL, i, PyList_GET_ITEM(list->real, i))) == NULL)
            return FG_FLOW_ERROR;
    if (list->n)
        memcpy(items + n, list->items, (size_t)list->n * sizeof *items); /* what was appended before anything was asked */
    FG_SET(t, list->items, items);
    FG_SET(t, list->n, total);
    FG_SET(t, list->cap, cap);
    FG_SET(t, list->is_complete, 1);
    return FG_FLOW_OK;
}

fg_flow fg_len(fg_trace *t, fg_value *o, int64_t *len)
{
    FG_DO(fg_look(t, &o));
    switch ((fg_vkind)o->kind) {
    case FG_V_LIST:
        FG_DO(fg_list_load(t, o));
        *len = o->n;
        return FG_FLOW_OK;
    case FG_V_TUPLE:
    case FG_V_SET: *len = o->n; return FG_FLOW_OK;
    case FG_V_DICT:
        FG_DO(fg_dict_load(t, o));
        *len = o->map.n;
        return FG_FLOW_OK;
    case FG_V_SCALAR: {
        fg_node node;
        FG_DO(fg_node_of(t, o, &node));
        if ((o->type == &PyUnicode_Type || o->type == &PyBytes_Type) && node != FG_NODE_NONE) {
            *len = PyObject_Size(o->real);
            return fg_guard(t, FG_GUARD_LENGTH, node, NULL, *len, *len);
        }
        FG_DO(fg_concrete(t, o));
    } /* fall through */
    case FG_V_CONST:
        if (!fg_is_fold_const(o->real))
            return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "len of %s", o->type->tp_name);
        *len = PyObject_Size(o->real);
        return *len < 0 ? fg_break_on_error(t, FG_BREAK_RAISES, "len") : FG_FLOW_OK;
    case FG_V_TENSOR: return fg_tensor_len(t, o, len);
    case FG_V_OBJECT: {
        fg_value *out;
        bool found;
        FG_DO(fg_outer_len(t, o, len, &found));
        if (found)
            return FG_FLOW_OK;
        if (o->type == &PyODict_Type && o->node != FG_NODE_NONE && !o->is_mutated) { /* nothing that is traced changes one */
            *len = PyDict_GET_SIZE(o->real);
            return fg_guard(t, FG_GUARD_LENGTH, o->node, NULL, *len, *len);
        }
        if (fg_is_old_set(o))
            return fg_set_len(t, o, len);
        FG_DO(fg_call_special(t, o, fg_names.s_len, NULL, 0, &out, &found));
        if (!found)
            return fg_break(t, FG_BREAK_RAISES, "object of type '%s' has no len()", o->type->tp_name);
        FG_DO(fg_look(t, &out));
        if (out->type != &PyLong_Type)
            return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "__len__ of %s", o->type->tp_name);
        FG_DO(fg_index_value(t, out, len));
        return *len < 0 ? fg_break(t, FG_BREAK_RAISES, "__len__() should return >= 0") : FG_FLOW_OK;
    }
    default: return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "len of %s", o->type ? o->type->tp_name : "a run-time object");
    }
}

static fg_flow const_fold(fg_trace *t, PyObject *result, fg_value **out)
{
    if (result == NULL)
        return fg_raise_error(t, "subscript");
    return fg_own(t, result) && (*out = fg_value_const(t, result)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

/* A slice whose parts are known, as a constant. */
static fg_flow slice_const(fg_trace *t, fg_value *k, PyObject **out)
{
    if (k->kind == FG_V_CONST) {
        *out = k->real;
        return FG_FLOW_OK;
    }
    PyObject *parts[3] = {Py_None, Py_None, Py_None};
    for (int32_t i = 0; i < k->n; i++) {
        FG_DO(fg_look(t, &k->items[i]));
        FG_DO(fg_concrete(t, k->items[i]));
        parts[i] = k->items[i]->real;
        if (!fg_is_fold_const(parts[i]))
            return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "slice of %s", Py_TYPE(parts[i])->tp_name);
    }
    *out = fg_own(t, PySlice_New(parts[0], parts[1], parts[2]));
    return *out ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static bool is_slice(const fg_value *k)
{
    return k->kind == FG_V_SLICE || (k->kind == FG_V_CONST && k->type == &PySlice_Type);
}

static fg_flow seq_slice(fg_trace *t, fg_value *o, fg_value *k, fg_value **out)
{
    PyObject *slice;
    Py_ssize_t start, stop, step;
    FG_DO(slice_const(t, k, &slice));
    if (PySlice_Unpack(slice, &start, &stop, &step) < 0)
        return fg_break_on_error(t, FG_BREAK_RAISES, "slice");
    Py_ssize_t n = PySlice_AdjustIndices(o->n, &start, &stop, step);
    if (o->kind == FG_V_TUPLE && o->type == &PyTuple_Type && n == o->n && step == 1) {
        *out = o; /* the whole tuple is the tuple itself */
        return FG_FLOW_OK;
    }
    *out = fg_value_seq(t, (fg_vkind)o->kind, NULL, 0);
    if (*out == NULL)
        return FG_FLOW_ERROR;
    for (Py_ssize_t i = 0; i < n; i++)
        FG_DO(fg_seq_append(t, *out, o->items[start + i * step]));
    return FG_FLOW_OK;
}

static fg_flow position(fg_trace *t, fg_value *k, int32_t n, int64_t *at)
{
    FG_DO(fg_index_value(t, k, at));
    if (*at < 0)
        *at += n;
    if (*at < 0 || *at >= n)
        return fg_break(t, FG_BREAK_RAISES, "index out of range");
    return FG_FLOW_OK;
}

fg_flow fg_subscr(fg_trace *t, fg_value *o, fg_value *k, fg_value **out)
{
    FG_DO(fg_look(t, &o));
    FG_DO(fg_look(t, &k));
    int64_t at;
    switch ((fg_vkind)o->kind) {
    case FG_V_VIEW:
        if (!fg_is_attrs(o))
            return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "subscript of %s", o->type->tp_name);
        FG_DO(fg_attrs_get(t, o, k, out));
        if (*out != NULL)
            return FG_FLOW_OK;
        PyObject *name;
        FG_DO(fg_key_const(t, k, &name));
        return fg_raise_key_error(t, name);
    case FG_V_LIST:
        if (!o->is_complete && o->node != FG_NODE_NONE && !o->is_mutated && !is_slice(k)) {
            /* one element: no fact about the length, unless the index counts from the end */
            FG_DO(fg_index_value(t, k, &at));
            if (at >= 0 && at < PyList_GET_SIZE(o->real))
                return (*out = fg_value_lazy(t, FG_ACC_LIST_ITEM, o->node, NULL, at, PyList_GET_ITEM(o->real, at))) ? fg_rely_on(t, *out)
                                                                                                                    : FG_FLOW_ERROR;
        }
        FG_DO(fg_list_load(t, o));
        /* fall through */
    case FG_V_TUPLE:
        if (is_slice(k))
            return seq_slice(t, o, k, out);
        FG_DO(fg_index_value(t, k, &at));
        at += at < 0 ? o->n : 0;
        if (at < 0 || at >= o->n)
            return fg_raise_new(t, PyExc_IndexError, "%s index out of range", o->kind == FG_V_LIST ? "list" : "tuple");
        *out = o->items[at];
        return FG_FLOW_OK;
    case FG_V_DICT: {
        PyObject *key;
        FG_DO(fg_dict_key(t, o, k, &key));
        FG_DO(fg_dict_get(t, o, key, out));
        return *out ? FG_FLOW_OK : fg_raise_key_error(t, key);
    }
    case FG_V_TENSOR: return fg_tensor_subscr(t, o, k, out);
    case FG_V_OBJECT: {
        bool found = false;
        if (is_slice(k) && fg_is_nn_module(o->type) && !fg_is_virtual(o)) {
            PyObject *slice;
            FG_DO(slice_const(t, k, &slice));
            FG_DO(fg_module_slice(t, o, k, slice, out, &found));
        }
        if (!found)
            FG_DO(fg_call_special(t, o, fg_names.s_getitem, &k, 1, out, &found));
        return found ? FG_FLOW_OK : fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "subscript of %s", o->type->tp_name);
    }
    case FG_V_SCALAR:
        FG_DO(fg_concrete(t, o));
        /* fall through */
    case FG_V_CONST:
        if (!fg_is_fold_const(o->real))
            return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "subscript of %s", o->type->tp_name);
        if (k->kind == FG_V_SLICE) {
            PyObject *slice;
            FG_DO(slice_const(t, k, &slice));
            return const_fold(t, PyObject_GetItem(o->real, slice), out);
        }
        FG_DO(fg_concrete(t, k));
        if (!fg_is_fold_const(k->real))
            return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "subscript");
        return const_fold(t, PyObject_GetItem(o->real, k->real), out);
    default: return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "subscript of %s", o->type ? o->type->tp_name : "a run-time object");
    }
}

/* Mark a list as written and emit the method that does it at run time. */
fg_flow fg_list_changed(fg_trace *t, fg_value *list, const char *method, fg_value **args, int32_t n)
{
    if (fg_is_virtual(list))
        return FG_FLOW_OK;
    PyObject *name = fg_own(t, PyUnicode_InternFromString(method));
    fg_reg regs[8];
    if (name == NULL)
        return FG_FLOW_ERROR;
    FG_DO(fg_mutate(t, list));
    FG_DO(fg_materialise(t, list, &regs[0]));
    for (int32_t i = 0; i < n; i++)
        FG_DO(fg_materialise(t, args[i], &regs[i + 1]));
    fg_reg unused;
    return fg_emit(t, FG_STEP_CALL_METHOD, FG_SF_EFFECT, 0, name, NULL, regs, n + 1, &unused);
}

static fg_flow emit_store(fg_trace *t, fg_value *o, fg_value *k, fg_value *v)
{
    fg_reg regs[3];
    int32_t n = 0;
    if (fg_is_virtual(o))
        return FG_FLOW_OK;
    FG_SET(t, o->is_mutated, 1);
    if (v != NULL)
        FG_DO(fg_materialise(t, v, &regs[n++]));
    FG_DO(fg_materialise(t, o, &regs[n++]));
    FG_DO(fg_materialise(t, k, &regs[n++]));
    return fg_emit(t, v ? FG_STEP_STORE_SUBSCR : FG_STEP_DELETE_SUBSCR, FG_SF_EFFECT, 0, NULL, NULL, regs, n, NULL);
}

/* Many elements are one fact on the list rather than one each. */
static fg_flow drop_slice(fg_trace *t, fg_value *o, Py_ssize_t start, Py_ssize_t step, Py_ssize_t n)
{
    enum { FEW = 4 };
    if (n > FEW)
        return fg_drop_contents(t, o);
    for (Py_ssize_t i = 0; i < n; i++)
        FG_DO(fg_drop_element(t, o, start + i * step));
    return FG_FLOW_OK;
}

/* list[start:stop:step] = values, or del when values is NULL. */
static fg_flow store_slice(fg_trace *t, fg_value *o, fg_value *k, fg_value *v)
{
    PyObject *slice;
    Py_ssize_t start, stop, step;
    fg_value **values = NULL;
    int32_t n_values = 0;
    FG_DO(slice_const(t, k, &slice));
    if (PySlice_Unpack(slice, &start, &stop, &step) < 0)
        return fg_break_on_error(t, FG_BREAK_RAISES, "slice");
    const int32_t n_before = o->n;
    Py_ssize_t n = PySlice_AdjustIndices(o->n, &start, &stop, step);
    if (v != NULL)
        FG_DO(fg_iterate(t, v, &values, &n_values));
    if (o->n != n_before) /* iterating ran code of the user's */
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "a list that changes while what is stored into it is iterated");
    if (step != 1) {
        if (v == NULL || n != n_values)
            return fg_break(t, FG_BREAK_RAISES, "extended slice");
    } else if (stop < start) {
        stop = start;
    }
    fg_value *list = fg_value_seq(t, FG_V_LIST, NULL, 0), *source = fg_value_seq(t, FG_V_LIST, values, n_values);
    if (list == NULL || source == NULL)
        return FG_FLOW_ERROR;
    if (step == 1) {
        for (Py_ssize_t i = 0; i < start; i++)
            FG_DO(fg_seq_append(t, list, o->items[i]));
        for (int32_t i = 0; i < n_values; i++)
            FG_DO(fg_seq_append(t, list, values[i]));
        for (Py_ssize_t i = stop; i < o->n; i++)
            FG_DO(fg_seq_append(t, list, o->items[i]));
    } else {
        for (int32_t i = 0; i < o->n; i++)
            FG_DO(fg_seq_append(t, list, o->items[i]));
        for (int32_t i = 0; i < n_values; i++)
            list->items[start + i * step] = values[i];
    }
    FG_DO(drop_slice(t, o, start, step, n));
    FG_DO(emit_store(t, o, k, v ? source : NULL));
    FG_SET(t, o->items, list->items);
    FG_SET(t, o->n, list->n);
    FG_SET(t, o->cap, list->cap);
    return FG_FLOW_OK;
}

fg_flow fg_store_subscr(fg_trace *t, fg_value *o, fg_value *k, fg_value *v)
{
    FG_DO(fg_look(t, &o));
    FG_DO(fg_look(t, &k));
    FG_DO(fg_look(t, &v));
    switch ((fg_vkind)o->kind) {
    case FG_V_LIST: {
        int64_t at;
        FG_DO(fg_list_load(t, o));
        if (is_slice(k))
            return store_slice(t, o, k, v);
        FG_DO(position(t, k, o->n, &at));
        if (v != o->items[at])
            FG_DO(fg_drop_element(t, o, at));
        FG_DO(emit_store(t, o, k, v));
        FG_SET(t, o->items[at], v);
        return FG_FLOW_OK;
    }
    case FG_V_DICT: return fg_dict_set(t, o, k, v);
    case FG_V_TENSOR: return fg_tensor_store_subscr(t, o, k, v);
    case FG_V_OBJECT: {
        fg_value *unused;
        bool found;
        FG_DO(fg_call_special(t, o, fg_names.s_setitem, (fg_value *[]){k, v}, 2, &unused, &found));
        return found ? FG_FLOW_OK : fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "item assignment to %s", o->type->tp_name);
    }
    default: return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "item assignment to %s", o->type ? o->type->tp_name : "a run-time object");
    }
}

fg_flow fg_delete_subscr(fg_trace *t, fg_value *o, fg_value *k)
{
    FG_DO(fg_look(t, &o));
    FG_DO(fg_look(t, &k));
    if (o->kind == FG_V_DICT) {
        PyObject *key;
        fg_value *seen;
        FG_DO(fg_dict_key(t, o, k, &key));
        FG_DO(fg_dict_get(t, o, key, &seen));
        return seen ? fg_dict_delete(t, o, key) : fg_break(t, FG_BREAK_RAISES, "KeyError");
    }
    if (o->kind != FG_V_LIST)
        return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "item deletion from %s", o->type ? o->type->tp_name : "a run-time object");
    int64_t at;
    FG_DO(fg_list_load(t, o));
    if (is_slice(k))
        return store_slice(t, o, k, NULL);
    FG_DO(position(t, k, o->n, &at));
    FG_DO(fg_drop_element(t, o, at));
    FG_DO(emit_store(t, o, k, NULL));
    fg_value **items = fg_arena_alloc(&t->arena, (size_t)o->cap * sizeof *items);
    if (items == NULL)
        return fg_nomem();
    memcpy(items, o->items, (size_t)at * sizeof *items);
    memcpy(items + at, o->items + at + 1, (size_t)(o->n - at - 1) * sizeof *items);
    FG_SET(t, o->items, items);
    FG_SET(t, o->n, o->n - 1);
    return FG_FLOW_OK;
}

/* --- equality and membership of known values */

static bool has_default_eq(const fg_value *v)
{
    return v->kind == FG_V_FUNC || (v->kind == FG_V_OBJECT && v->type->tp_richcompare == PyBaseObject_Type.tp_richcompare);
}

static fg_flow equal_at(fg_trace *t, fg_value *a, fg_value *b, int depth, bool *equal)
{
    FG_DO(fg_look(t, &a));
    FG_DO(fg_look(t, &b));
    *equal = false;
    if (--t->budget < 0)
        return fg_break(t, FG_BREAK_TOO_LONG, "too many comparisons in one trace");
    if (depth > 60) /* plain Python counts this as recursion */
        return fg_break(t, FG_BREAK_TOO_LONG, "comparison of values nested deep");
    if ((a->kind == FG_V_SCALAR || a->kind == FG_V_CONST) && (b->kind == FG_V_SCALAR || b->kind == FG_V_CONST)) {
        FG_DO(fg_concrete(t, a));
        FG_DO(fg_concrete(t, b));
        if (!fg_is_fold_const(a->real) || !fg_is_fold_const(b->real)) {
            PyTypeObject *ta = Py_TYPE(a->real), *tb = Py_TYPE(b->real);
            if ((!fg_is_fold_const(a->real) && ta->tp_richcompare != PyBaseObject_Type.tp_richcompare && !PyType_Check(a->real)) ||
                (!fg_is_fold_const(b->real) && tb->tp_richcompare != PyBaseObject_Type.tp_richcompare && !PyType_Check(b->real)) ||
                (PyType_Check(a->real) && ta != &PyType_Type) || (PyType_Check(b->real) && tb != &PyType_Type)) {
                if (!(fg_py_is_library_constant(ta) && (fg_py_is_library_constant(tb) || PyType_Check(b->real) || b->real == Py_None)))
                    return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "comparison of %s and %s", ta->tp_name, tb->tp_name);
            }
        }
        if ((PyFloat_CheckExact(a->real) && a->real == b->real && PyFloat_AS_DOUBLE(a->real) != PyFloat_AS_DOUBLE(a->real)))
            return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "a NaN compared inside a container, where identity decides");
        int r = PyObject_RichCompareBool(a->real, b->real, Py_EQ);
        *equal = r == 1;
        return r < 0 ? fg_break_on_error(t, FG_BREAK_RAISES, "comparison") : FG_FLOW_OK;
    }
    if (a == b && a->kind != FG_V_TENSOR) {
        *equal = true;
        return FG_FLOW_OK;
    }
    if ((a->kind == FG_V_LIST || a->kind == FG_V_TUPLE) && a->kind == b->kind) {
        if (a->kind == FG_V_LIST) {
            FG_DO(fg_list_load(t, a));
            FG_DO(fg_list_load(t, b));
        }
        if (a->n != b->n)
            return FG_FLOW_OK;
        for (int32_t i = 0; i < a->n; i++) {
            FG_DO(equal_at(t, a->items[i], b->items[i], depth + 1, equal));
            if (!*equal)
                return FG_FLOW_OK;
        }
        *equal = true;
        return FG_FLOW_OK;
    }
    if (a->kind == FG_V_DICT && b->kind == FG_V_DICT) {
        FG_DO(fg_dict_load(t, a));
        FG_DO(fg_dict_load(t, b));
        if (a->map.n != b->map.n)
            return FG_FLOW_OK;
        for (int32_t i = 0; i < a->map.n; i++) {
            fg_vitem *other = fg_map_find(&b->map, a->map.items[i].key, a->map.items[i].hash);
            if (other == NULL) {
                *equal = false;
                return FG_FLOW_OK;
            }
            FG_DO(equal_at(t, a->map.items[i].value, other->value, depth + 1, equal));
            if (!*equal)
                return FG_FLOW_OK;
        }
        *equal = true;
        return FG_FLOW_OK;
    }
    if (has_default_eq(a) && has_default_eq(b)) {
        fg_value *type, *unused;
        for (int i = 0; i < 2; i++) {
            fg_value *v = i ? b : a;
            if (v->kind != FG_V_OBJECT)
                continue;
            FG_DO(fg_object_type(t, v, &type));
            FG_DO(fg_type_lookup(t, type, v->type, fg_names.s_eq, &unused)); /* a class may grow one */
            if (unused != NULL)
                FG_DO(fg_look(t, &unused));
        }
        int same;
        bool known;
        FG_DO(fg_same_object(t, a, b, &same, &known));
        *equal = same != 0;
        return known ? FG_FLOW_OK : fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "comparison of run-time objects");
    }
    static const uint8_t plain[] = {
        [FG_V_CONST] = 1, [FG_V_SCALAR] = 1, [FG_V_LIST] = 1, [FG_V_TUPLE] = 1, [FG_V_DICT] = 1, [FG_V_FUNC] = 1, [FG_V_CELL] = 1};
    if (a->kind < sizeof plain && b->kind < sizeof plain && plain[a->kind] && plain[b->kind] && a->kind != b->kind &&
        (a->kind != FG_V_CONST || fg_is_fold_const(a->real)) && (b->kind != FG_V_CONST || fg_is_fold_const(b->real)) &&
        !(a->kind == FG_V_CONST && (PyTuple_Check(a->real) || PyFrozenSet_CheckExact(a->real))) &&
        !(b->kind == FG_V_CONST && (PyTuple_Check(b->real) || PyFrozenSet_CheckExact(b->real))))
        return FG_FLOW_OK; /* builtins of different kinds are never equal */
    if (a->kind == FG_V_TUPLE && b->kind == FG_V_CONST && PyTuple_Check(b->real))
        return equal_at(t, b, a, depth + 1, equal);
    if (a->kind == FG_V_CONST && PyTuple_Check(a->real) && b->kind == FG_V_TUPLE) {
        if (PyTuple_GET_SIZE(a->real) != b->n)
            return FG_FLOW_OK;
        for (int32_t i = 0; i < b->n; i++) {
            fg_value *part = fg_value_const(t, PyTuple_GET_ITEM(a->real, i));
            if (part == NULL)
                return FG_FLOW_ERROR;
            FG_DO(equal_at(t, part, b->items[i], depth + 1, equal));
            if (!*equal)
                return FG_FLOW_OK;
        }
        *equal = true;
        return FG_FLOW_OK;
    }
    PyObject *of_members;
    FG_DO(fg_enum_compare(t, Py_EQ, a, b, &of_members));
    if (of_members != NULL) {
        *equal = of_members == Py_True;
        return FG_FLOW_OK;
    }
    return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "comparison of %s and %s", a->type ? a->type->tp_name : "a run-time object",
                    b->type ? b->type->tp_name : "a run-time object");
}

fg_flow fg_equal(fg_trace *t, fg_value *a, fg_value *b, bool *equal)
{
    return equal_at(t, a, b, 0, equal);
}

fg_flow fg_contains(fg_trace *t, fg_value *item, fg_value *o, bool *found)
{
    FG_DO(fg_look(t, &item));
    FG_DO(fg_look(t, &o));
    *found = false;
    if (fg_is_attrs(o)) {
        fg_value *seen;
        FG_DO(fg_attrs_get(t, o, item, &seen));
        *found = seen != NULL;
        return FG_FLOW_OK;
    }
    if (o->kind == FG_V_DICT) {
        PyObject *key;
        fg_value *seen;
        FG_DO(fg_dict_key(t, o, item, &key));
        FG_DO(fg_dict_get(t, o, key, &seen));
        *found = seen != NULL;
        return FG_FLOW_OK;
    }
    if (o->kind == FG_V_LIST)
        FG_DO(fg_list_load(t, o));
    if (o->kind == FG_V_SET) {
        int32_t at;
        FG_DO(fg_set_find_member(t, o, item, &at));
        *found = at >= 0;
        return FG_FLOW_OK;
    }
    if (o->kind == FG_V_LIST || o->kind == FG_V_TUPLE) {
        for (int32_t i = 0; i < o->n && !*found; i++)
            FG_DO(fg_equal(t, item, o->items[i], found));
        return FG_FLOW_OK;
    }
    if (fg_is_old_set(o))
        return fg_set_contains(t, o, item, found);
    if (o->kind == FG_V_OBJECT) {
        fg_value *out;
        bool has;
        FG_DO(fg_call_special(t, o, fg_names.s_contains, &item, 1, &out, &has));
        if (has)
            return fg_truth(t, out, found);
        FG_DO(fg_iter_over(t, o, &out)); /* element by element */
        for (;;) {
            fg_value *next;
            FG_DO(fg_iter_next(t, out, &next));
            if (next == NULL)
                return FG_FLOW_OK;
            FG_DO(fg_equal(t, next, item, found));
            if (*found)
                return FG_FLOW_OK;
        }
    }
    if (o->kind == FG_V_SCALAR)
        FG_DO(fg_concrete(t, o));
    if (item->kind == FG_V_OBJECT && o->kind == FG_V_CONST && PyTuple_CheckExact(o->real)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o->real) && !*found; i++) {
            fg_value *part = fg_value_const(t, PyTuple_GET_ITEM(o->real, i));
            if (part == NULL)
                return FG_FLOW_ERROR;
            FG_DO(fg_equal(t, item, part, found));
        }
        return FG_FLOW_OK;
    }
    if (o->kind == FG_V_CONST && fg_is_fold_const(o->real)) {
        if (item->kind == FG_V_SCALAR)
            FG_DO(fg_concrete(t, item));
        PyObject *key;
        if (item->kind == FG_V_TUPLE)
            FG_DO(fg_key_const(t, item, &key));
        else if (item->kind == FG_V_CONST && fg_is_fold_const(item->real))
            key = item->real;
        else
            return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "membership of %s", item->type ? item->type->tp_name : "a run-time object");
        int r = PySequence_Contains(o->real, key);
        *found = r == 1;
        return r < 0 ? fg_break_on_error(t, FG_BREAK_RAISES, "in") : FG_FLOW_OK;
    }
    return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "membership in %s", o->type ? o->type->tp_name : "a run-time object");
}

/* --- iteration over everything */

fg_flow fg_iterate(fg_trace *t, fg_value *o, fg_value ***items, int32_t *n)
{
    FG_DO(fg_look(t, &o));
    if (o->kind == FG_V_LIST)
        FG_DO(fg_list_load(t, o));
    if (o->kind == FG_V_LIST || o->kind == FG_V_TUPLE) {
        *items = o->items;
        *n = o->n;
        return FG_FLOW_OK;
    }
    if (o->kind == FG_V_TENSOR) /* nothing happens in between */
        return fg_tensor_rows(t, o, items, n);
    fg_value *it, *next, *seq = fg_value_seq(t, FG_V_LIST, NULL, 0);
    if (seq == NULL)
        return FG_FLOW_ERROR;
    FG_DO(fg_iter_new(t, o, &it));
    for (;;) {
        FG_DO(fg_iter_next(t, it, &next));
        if (next == NULL)
            break;
        if (seq->n > 200000)
            return fg_break(t, FG_BREAK_TOO_LONG, "more than 200000 elements");
        FG_DO(fg_seq_append(t, seq, next));
    }
    *items = seq->items;
    *n = seq->n;
    return FG_FLOW_OK;
}

fg_flow fg_unpack(fg_trace *t, fg_value *o, int32_t n, fg_value **out)
{
    fg_value *it, *more;
    FG_DO(fg_look(t, &o));
    if (o->kind == FG_V_TENSOR)
        return fg_tensor_unpack(t, o, n, out);
    if (o->kind == FG_V_LIST)
        FG_DO(fg_list_load(t, o));
    if (o->kind == FG_V_LIST || o->kind == FG_V_TUPLE) {
        if (o->n < n)
            return fg_raise_new(t, PyExc_ValueError, "not enough values to unpack (expected %d, got %d)", n, o->n);
        if (o->n > n)
            return fg_raise_new(t, PyExc_ValueError, "too many values to unpack (expected %d)", n);
        memcpy(out, o->items, (size_t)n * sizeof *out);
        return FG_FLOW_OK;
    }
    FG_DO(fg_iter_new(t, o, &it));
    for (int32_t i = 0; i < n; i++) {
        FG_DO(fg_iter_next(t, it, &out[i]));
        if (out[i] == NULL)
            return fg_raise_new(t, PyExc_ValueError, "not enough values to unpack (expected %d, got %d)", n, i);
    }
    FG_DO(fg_iter_next(t, it, &more)); /* one more is asked for, and no further one */
    return more == NULL ? FG_FLOW_OK : fg_raise_new(t, PyExc_ValueError, "too many values to unpack (expected %d)", n);
}
