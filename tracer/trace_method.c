/* Methods of builtin containers and scalars. Each change of a container that exists at run time is emitted as the same method call, in order. */
#include "tracer/trace_python.h"

#include <string.h>

typedef struct fg_call_args {
    fg_value **v;
    int32_t n;
    PyObject *kwnames;
} fg_call_args;

typedef fg_flow (*method_body)(fg_trace *t, fg_value *self, const fg_call_args *args, fg_value **out);

static fg_flow give_none(fg_trace *t, fg_value **out)
{
    return (*out = fg_value_const(t, Py_None)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static fg_flow give_int(fg_trace *t, int64_t n, fg_value **out)
{
    PyObject *o = fg_own(t, PyLong_FromLongLong(n));
    return o && (*out = fg_value_const(t, o)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static fg_flow replace_items(fg_trace *t, fg_value *seq, fg_value **items, int32_t n)
{
    fg_value *copy = fg_value_seq(t, FG_V_LIST, items, n);
    if (copy == NULL)
        return FG_FLOW_ERROR;
    FG_SET(t, seq->items, copy->items);
    FG_SET(t, seq->n, n);
    FG_SET(t, seq->cap, n);
    return FG_FLOW_OK;
}

static fg_flow remove_at(fg_trace *t, fg_value *seq, int64_t at)
{
    fg_value **items = fg_arena_alloc(&t->arena, (size_t)seq->n * sizeof *items);
    if (items == NULL)
        return fg_nomem();
    memcpy(items, seq->items, (size_t)at * sizeof *items);
    memcpy(items + at, seq->items + at + 1, (size_t)(seq->n - at - 1) * sizeof *items);
    FG_SET(t, seq->items, items);
    FG_SET(t, seq->cap, seq->n);
    FG_SET(t, seq->n, seq->n - 1);
    return FG_FLOW_OK;
}

/* --- list */

static fg_flow list_append(fg_trace *t, fg_value *self, const fg_call_args *a, fg_value **out)
{
    FG_DO(fg_list_changed(t, self, "append", a->v, 1));
    FG_DO(fg_seq_append(t, self, a->v[0]));
    return give_none(t, out);
}

static fg_flow list_extend(fg_trace *t, fg_value *self, const fg_call_args *a, fg_value **out)
{
    fg_value **items, *item, *it;
    int32_t n;
    FG_DO(fg_look(t, &a->v[0]));
    if (a->v[0]->kind == FG_V_ITER ||
        a->v[0]->kind == FG_V_OBJECT) { /* what it runs may raise half way, and may look at the list or change it */
        FG_DO(fg_iter_over(t, a->v[0], &it));
        for (n = 0;; n++) {
            FG_DO(fg_iter_next(t, it, &item));
            if (item == NULL)
                return give_none(t, out);
            if (n > 200000)
                return fg_break(t, FG_BREAK_TOO_LONG, "more than 200000 elements");
            FG_DO(fg_list_changed(t, self, "append", &item, 1));
            FG_DO(fg_seq_append(t, self, item));
        }
    }
    FG_DO(fg_iterate(t, a->v[0], &items, &n));
    fg_value *copy = fg_value_seq(t, FG_V_LIST, items, n);
    if (copy == NULL)
        return FG_FLOW_ERROR;
    FG_DO(fg_list_changed(t, self, "extend", &copy, 1));
    for (int32_t i = 0; i < n; i++)
        FG_DO(fg_seq_append(t, self, copy->items[i]));
    return give_none(t, out);
}

/* The dict of a call's own keyword arguments: nobody else has it yet. */
static bool is_own_kwargs(fg_trace *t, const fg_value *self)
{
    const PyCodeObject *code = t->root->icode->code;
    return self->kind == FG_V_DICT && (code->co_flags & CO_VARKEYWORDS) && t->ir.start_pc < 0 && t->view->slots != NULL &&
           self->real == t->view->slots[code->co_argcount + code->co_kwonlyargcount + ((code->co_flags & CO_VARARGS) != 0)];
}

/* Take something out of a container. Two threads must not take the same thing, and what one of them takes may be another thing than the guards have seen: it
 * is what the call gives at run time. */
static fg_flow take_out(fg_trace *t, fg_value *self, const fg_call_args *a, fg_value **item)
{
    fg_reg regs[3], reg;
    PyObject *name = fg_own(t, PyUnicode_InternFromString("pop"));
    if (name == NULL)
        return FG_FLOW_ERROR;
    if (fg_is_virtual(self))
        return FG_FLOW_OK;
    bool is_own = is_own_kwargs(t, self);
    if (!is_own && fg_is_covered(t))
        return fg_break(t, FG_BREAK_MAY_RAISE_IN_TRY, "pop from a %s that another thread may change", self->type->tp_name);
    FG_DO(fg_mutate(t, self));
    FG_DO(fg_materialise(t, self, &regs[0]));
    for (int32_t i = 0; i < a->n; i++)
        FG_DO(fg_materialise(t, a->v[i], &regs[i + 1]));
    FG_DO(fg_emit(t, FG_STEP_CALL_METHOD, FG_SF_EFFECT, 0, name, NULL, regs, a->n + 1, &reg));
    if (!is_own)
        *item = fg_value_step(t, FG_V_OPAQUE, reg, NULL, NULL);
    return *item ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static fg_flow list_pop(fg_trace *t, fg_value *self, const fg_call_args *a, fg_value **out)
{
    FG_DO(fg_list_load(t, self));
    int64_t at = -1;
    if (a->n == 1)
        FG_DO(fg_index_value(t, a->v[0], &at));
    if (at < 0)
        at += self->n;
    if (at < 0 || at >= self->n)
        return fg_break(t, FG_BREAK_RAISES, "pop from an empty list or index out of range");
    *out = self->items[at];
    FG_DO(fg_drop_element(t, self, at));
    FG_DO(take_out(t, self, a, out));
    return remove_at(t, self, at);
}

static fg_flow list_insert(fg_trace *t, fg_value *self, const fg_call_args *a, fg_value **out)
{
    int64_t at;
    FG_DO(fg_list_load(t, self));
    FG_DO(fg_index_value(t, a->v[0], &at));
    at = at < 0 ? at + self->n : at;
    at = at < 0 ? 0 : at > self->n ? self->n : at;
    FG_DO(fg_list_changed(t, self, "insert", a->v, 2));
    fg_value **items = fg_arena_alloc(&t->arena, (size_t)(self->n + 1) * sizeof *items);
    if (items == NULL)
        return fg_nomem();
    if (self->n) {
        memcpy(items, self->items, (size_t)at * sizeof *items);
        memcpy(items + at + 1, self->items + at, (size_t)(self->n - at) * sizeof *items);
    }
    items[at] = a->v[1];
    FG_DO(replace_items(t, self, items, self->n + 1));
    return give_none(t, out);
}

static fg_flow seq_find(fg_trace *t, fg_value *self, fg_value *item, int32_t *at)
{
    if (self->kind == FG_V_LIST)
        FG_DO(fg_list_load(t, self));
    for (int32_t i = 0; i < self->n; i++) {
        bool equal;
        FG_DO(fg_equal(t, self->items[i], item, &equal));
        if (equal) {
            *at = i;
            return FG_FLOW_OK;
        }
    }
    *at = -1;
    return FG_FLOW_OK;
}

static fg_flow list_remove(fg_trace *t, fg_value *self, const fg_call_args *a, fg_value **out)
{
    int32_t at;
    FG_DO(seq_find(t, self, a->v[0], &at));
    if (at < 0)
        return fg_break(t, FG_BREAK_RAISES, "list.remove(x): x not in list");
    fg_value *index = fg_value_const(t, fg_own(t, PyLong_FromLong(at)));
    if (index == NULL)
        return FG_FLOW_ERROR;
    FG_DO(fg_drop_element(t, self, at));
    FG_DO(fg_list_changed(t, self, "pop", &index, 1));
    FG_DO(remove_at(t, self, at));
    return give_none(t, out);
}

static fg_flow seq_index(fg_trace *t, fg_value *self, const fg_call_args *a, fg_value **out)
{
    int32_t at;
    FG_DO(seq_find(t, self, a->v[0], &at));
    return at < 0 ? fg_break(t, FG_BREAK_RAISES, "value is not in the sequence") : give_int(t, at, out);
}

static fg_flow seq_count(fg_trace *t, fg_value *self, const fg_call_args *a, fg_value **out)
{
    int64_t n = 0;
    if (self->kind == FG_V_LIST)
        FG_DO(fg_list_load(t, self));
    for (int32_t i = 0; i < self->n; i++) {
        bool equal;
        FG_DO(fg_equal(t, self->items[i], a->v[0], &equal));
        n += equal;
    }
    return give_int(t, n, out);
}

static fg_flow list_reverse(fg_trace *t, fg_value *self, const fg_call_args *a, fg_value **out)
{
    FG_DO(fg_list_load(t, self));
    FG_DO(fg_list_changed(t, self, "reverse", a->v, 0));
    fg_value *copy = fg_value_seq(t, FG_V_LIST, self->items, self->n);
    if (copy == NULL)
        return FG_FLOW_ERROR;
    for (int32_t i = 0; i < self->n; i++)
        copy->items[i] = self->items[self->n - 1 - i];
    FG_DO(replace_items(t, self, copy->items, self->n));
    return give_none(t, out);
}

static fg_flow list_clear(fg_trace *t, fg_value *self, const fg_call_args *a, fg_value **out)
{
    FG_DO(fg_drop_contents(t, self));
    FG_DO(fg_list_changed(t, self, "clear", a->v, 0));
    FG_SET(t, self->is_complete, 1);
    FG_DO(replace_items(t, self, NULL, 0));
    return give_none(t, out);
}

static fg_flow list_copy(fg_trace *t, fg_value *self, const fg_call_args *a, fg_value **out)
{
    (void)a;
    FG_DO(fg_list_load(t, self));
    return (*out = fg_value_seq(t, FG_V_LIST, self->items, self->n)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

/* Sort values that are known scalars: stable, by Python's own comparison of the constants. */
fg_flow fg_sorted(fg_trace *t, fg_value **items, int32_t n, fg_value **keys, bool reverse, fg_value **out)
{
    PyObject *pairs = fg_own(t, PyList_New(n));
    fg_value *list = fg_value_seq(t, FG_V_LIST, keys ? keys : items, n);
    if (pairs == NULL || list == NULL)
        return FG_FLOW_ERROR;
    for (int32_t i = 0; i < n; i++) {
        FG_DO(fg_look(t, &list->items[i]));
        if (list->items[i]->kind != FG_V_SCALAR && !(list->items[i]->kind == FG_V_CONST && fg_is_fold_const(list->items[i]->real)))
            return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "sorting of %s",
                            list->items[i]->type ? list->items[i]->type->tp_name : "run-time objects");
        FG_DO(fg_concrete(t, list->items[i]));
        PyObject *real = list->items[i]->real;
        if (PyFloat_CheckExact(real) && PyFloat_AS_DOUBLE(real) != PyFloat_AS_DOUBLE(real))
            return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "sorting of NaN");
        PyObject *pair = Py_BuildValue("(Oi)", real, reverse ? -i : i);
        if (pair == NULL)
            return FG_FLOW_ERROR;
        PyList_SET_ITEM(pairs, i, pair);
    }
    if (PyList_Sort(pairs) < 0)
        return fg_break_on_error(t, FG_BREAK_RAISES, "sort");
    if (reverse && PyList_Reverse(pairs) < 0)
        return FG_FLOW_ERROR;
    fg_value *sorted = fg_value_seq(t, FG_V_LIST, items, n);
    if (sorted == NULL)
        return FG_FLOW_ERROR;
    for (int32_t i = 0; i < n; i++) {
        long at = PyLong_AsLong(PyTuple_GET_ITEM(PyList_GET_ITEM(pairs, i), 1));
        sorted->items[i] = items[reverse ? -at : at];
    }
    *out = sorted;
    return FG_FLOW_OK;
}

static fg_flow list_sort(fg_trace *t, fg_value *self, const fg_call_args *a, fg_value **out)
{
    fg_value *sorted;
    FG_DO(fg_list_load(t, self));
    FG_DO(fg_sorted(t, self->items, self->n, NULL, false, &sorted));
    FG_DO(fg_list_changed(t, self, "sort", a->v, 0));
    FG_DO(replace_items(t, self, sorted->items, sorted->n));
    return give_none(t, out);
}

/* --- dict */

static fg_flow dict_get(fg_trace *t, fg_value *self, const fg_call_args *a, fg_value **out)
{
    PyObject *key;
    FG_DO(fg_dict_key(t, self, a->v[0], &key));
    FG_DO(fg_dict_get(t, self, key, out));
    if (*out != NULL)
        return FG_FLOW_OK;
    if (a->n == 2)
        *out = a->v[1];
    return a->n == 2 ? FG_FLOW_OK : give_none(t, out);
}

static fg_flow dict_setdefault(fg_trace *t, fg_value *self, const fg_call_args *a, fg_value **out)
{
    PyObject *key;
    FG_DO(fg_dict_key(t, self, a->v[0], &key));
    FG_DO(fg_dict_get(t, self, key, out));
    if (*out != NULL)
        return FG_FLOW_OK;
    if (a->n == 2)
        *out = a->v[1];
    else
        FG_DO(give_none(t, out));
    return fg_dict_set(t, self, a->v[0], *out);
}

static fg_flow dict_pop(fg_trace *t, fg_value *self, const fg_call_args *a, fg_value **out)
{
    PyObject *key;
    FG_DO(fg_dict_key(t, self, a->v[0], &key));
    FG_DO(fg_dict_get(t, self, key, out));
    if (*out != NULL) {
        FG_DO(fg_dict_load(t, self)); /* a later insertion of the key goes last: the order must be known */
        FG_DO(fg_drop_item(t, self, key));
        FG_DO(take_out(t, self, a, out));
        return fg_map_remove(t, &self->map, fg_map_find(&self->map, key, PyObject_Hash(key)));
    }
    if (a->n == 1)
        return fg_break(t, FG_BREAK_RAISES, "KeyError");
    *out = a->v[1];
    return FG_FLOW_OK;
}

static fg_flow view_new(fg_trace *t, fg_value *self, int kind, fg_value **out)
{
    fg_value *v = fg_value_new(t, FG_V_VIEW);
    if (v == NULL)
        return FG_FLOW_ERROR;
    v->a = self;
    v->iter_kind = (uint8_t)kind;
    v->type = kind == 0 ? &PyDictKeys_Type : kind == 1 ? &PyDictValues_Type : &PyDictItems_Type;
    *out = v;
    return FG_FLOW_OK;
}

static fg_flow dict_keys(fg_trace *t, fg_value *self, const fg_call_args *a, fg_value **out)
{
    (void)a;
    return view_new(t, self, 0, out);
}

static fg_flow dict_values(fg_trace *t, fg_value *self, const fg_call_args *a, fg_value **out)
{
    (void)a;
    return view_new(t, self, 1, out);
}

static fg_flow dict_items(fg_trace *t, fg_value *self, const fg_call_args *a, fg_value **out)
{
    (void)a;
    return view_new(t, self, 2, out);
}

static fg_flow item_key(fg_trace *t, fg_vitem *item, fg_value **key)
{
    *key = item->keyval ? item->keyval : fg_value_const(t, item->key);
    return *key ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static fg_flow dict_update(fg_trace *t, fg_value *self, const fg_call_args *a, fg_value **out)
{
    fg_value *other = a->v[0], *key;
    FG_DO(fg_look(t, &other));
    if (other->kind != FG_V_DICT || other == self)
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "dict.update with %s", other->type ? other->type->tp_name : "a run-time object");
    FG_DO(fg_dict_load(t, other));
    fg_vmap map = other->map;
    for (int32_t i = 0; i < map.n; i++) {
        FG_DO(item_key(t, &map.items[i], &key));
        FG_DO(fg_dict_set(t, self, key, map.items[i].value));
    }
    return give_none(t, out);
}

static fg_flow dict_copy(fg_trace *t, fg_value *self, const fg_call_args *a, fg_value **out)
{
    (void)a;
    FG_DO(fg_dict_load(t, self));
    fg_value *copy = fg_value_new(t, FG_V_DICT), *key;
    if (copy == NULL)
        return FG_FLOW_ERROR;
    copy->is_complete = 1;
    copy->type = &PyDict_Type;
    for (int32_t i = 0; i < self->map.n; i++) {
        FG_DO(item_key(t, &self->map.items[i], &key));
        FG_DO(fg_dict_set(t, copy, key, self->map.items[i].value));
    }
    *out = copy;
    return FG_FLOW_OK;
}

static fg_flow dict_clear(fg_trace *t, fg_value *self, const fg_call_args *a, fg_value **out)
{
    FG_DO(fg_drop_contents(t, self));
    FG_DO(fg_list_changed(t, self, "clear", a->v, 0));
    FG_SET(t, self->map, (fg_vmap){.n_removed = self->map.n_removed + 1});
    FG_SET(t, self->is_complete, 1);
    return give_none(t, out);
}

/* --- set */

static fg_flow set_add(fg_trace *t, fg_value *self, const fg_call_args *a, fg_value **out)
{
    bool found;
    FG_DO(fg_contains(t, a->v[0], self, &found));
    FG_DO(fg_list_changed(t, self, "add", a->v, 1));
    if (!found)
        FG_DO(fg_seq_append(t, self, a->v[0]));
    return give_none(t, out);
}

static fg_flow set_discard(fg_trace *t, fg_value *self, const fg_call_args *a, fg_value **out)
{
    int32_t at;
    FG_DO(fg_set_find_member(t, self, a->v[0], &at));
    FG_DO(fg_list_changed(t, self, "discard", a->v, 1));
    if (at >= 0)
        FG_DO(remove_at(t, self, at));
    return give_none(t, out);
}

static const struct method_row {
    PyTypeObject *type;
    const char *name;
    int min, max;
    method_body body;
} rows[] = {
    {&PyList_Type, "append", 1, 1, list_append},
    {&PyList_Type, "extend", 1, 1, list_extend},
    {&PyList_Type, "pop", 0, 1, list_pop},
    {&PyList_Type, "insert", 2, 2, list_insert},
    {&PyList_Type, "remove", 1, 1, list_remove},
    {&PyList_Type, "index", 1, 1, seq_index},
    {&PyList_Type, "count", 1, 1, seq_count},
    {&PyList_Type, "reverse", 0, 0, list_reverse},
    {&PyList_Type, "clear", 0, 0, list_clear},
    {&PyList_Type, "copy", 0, 0, list_copy},
    {&PyList_Type, "sort", 0, 0, list_sort},
    {&PyTuple_Type, "index", 1, 1, seq_index},
    {&PyTuple_Type, "count", 1, 1, seq_count},
    {&PyDict_Type, "get", 1, 2, dict_get},
    {&PyDict_Type, "setdefault", 1, 2, dict_setdefault},
    {&PyDict_Type, "pop", 1, 2, dict_pop},
    {&PyDict_Type, "keys", 0, 0, dict_keys},
    {&PyDict_Type, "values", 0, 0, dict_values},
    {&PyDict_Type, "items", 0, 0, dict_items},
    {&PyDict_Type, "update", 1, 1, dict_update},
    {&PyDict_Type, "copy", 0, 0, dict_copy},
    {&PyDict_Type, "clear", 0, 0, dict_clear},
    {&PySet_Type, "add", 1, 1, set_add},
    {&PySet_Type, "discard", 1, 1, set_discard},
};

static fg_flow call_row(fg_trace *t, fg_value *self, PyObject *name, const fg_call_args *args, fg_value **out)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].type == self->type && PyUnicode_CompareWithASCIIString(name, rows[i].name) == 0) {
            if (args->kwnames != NULL && PyTuple_GET_SIZE(args->kwnames) > 0)
                break;
            if (args->n < rows[i].min || args->n > rows[i].max)
                break;
            return rows[i].body(t, self, args, out);
        }
    return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%s.%U", self->type->tp_name, name);
}

/* Methods of immutable builtin scalars: pure, so they are folded over the constants. */
static fg_flow call_scalar(fg_trace *t, fg_value *self, PyObject *name, const fg_call_args *args, fg_value **out)
{
    int32_t n = args->n;
    PyObject **stack = fg_arena_alloc(&t->arena, (size_t)(n + 1) * sizeof *stack);
    if (stack == NULL)
        return fg_nomem();
    FG_DO(fg_concrete(t, self));
    stack[0] = self->real;
    for (int32_t i = 0; i < n; i++) {
        fg_value *v = args->v[i];
        FG_DO(fg_look(t, &v));
        if (v->kind == FG_V_LIST || v->kind == FG_V_TUPLE || v->kind == FG_V_ITER) { /* join, startswith, format */
            fg_value **items;
            int32_t count;
            FG_DO(fg_iterate(t, v, &items, &count));
            PyObject *tuple = fg_own(t, PyTuple_New(count));
            if (tuple == NULL)
                return FG_FLOW_ERROR;
            for (int32_t k = 0; k < count; k++) {
                fg_value *part = items[k];
                FG_DO(fg_look(t, &part));
                FG_DO(fg_concrete(t, part));
                if (!fg_is_fold_const(part->real))
                    return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "%s.%U", self->type->tp_name, name);
                PyTuple_SET_ITEM(tuple, k, Py_NewRef(part->real));
            }
            if (v->kind != FG_V_TUPLE && PyUnicode_CompareWithASCIIString(name, "join") != 0)
                return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%s.%U", self->type->tp_name, name);
            stack[i + 1] = tuple;
            continue;
        }
        FG_DO(fg_concrete(t, v));
        if (!fg_is_fold_const(v->real))
            return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "%s.%U", self->type->tp_name, name);
        stack[i + 1] = v->real;
    }
    Py_ssize_t nkw = args->kwnames ? PyTuple_GET_SIZE(args->kwnames) : 0;
    PyObject *result = PyObject_VectorcallMethod(name, stack, (size_t)(n - nkw + 1), args->kwnames);
    if (result == NULL)
        return fg_raise_error(t, "method");
    if (fg_own(t, result) == NULL)
        return FG_FLOW_ERROR;
    if (fg_is_fold_const(result))
        return (*out = fg_value_const(t, result)) ? FG_FLOW_OK : FG_FLOW_ERROR;
    if (!PyList_CheckExact(result))
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%s.%U", self->type->tp_name, name);
    if ((*out = fg_value_seq(t, FG_V_LIST, NULL, 0)) == NULL)
        return FG_FLOW_ERROR;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(result); i++) { /* split, splitlines */
        fg_value *part = fg_value_const(t, PyList_GET_ITEM(result, i));
        if (part == NULL)
            return FG_FLOW_ERROR;
        FG_DO(fg_seq_append(t, *out, part));
    }
    return FG_FLOW_OK;
}

fg_flow fg_container_method(fg_trace *t, fg_value *self, PyObject *name, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out)
{
    fg_call_args a = {args, n, kwnames};
    for (int32_t i = 0; i < n; i++)
        FG_DO(fg_look(t, &args[i]));
    if (fg_is_attrs(self))
        return fg_attrs_method(t, self, name, args, n, kwnames, out);
    if (self->kind == FG_V_SCALAR || (self->kind == FG_V_CONST && fg_is_fold_const(self->real)))
        return call_scalar(t, self, name, &a, out);
    return call_row(t, self, name, &a, out);
}
