/* Symbolic values: making them, growing their parts under the undo log, and telling constants apart. */
#include "tracer/trace_python.h"

#include <string.h>

fg_value *fg_value_new(fg_trace *t, fg_vkind kind)
{
    fg_value *v = fg_arena_alloc(&t->arena, sizeof *v);
    if (v == NULL) {
        fg_nomem();
        return NULL;
    }
    v->kind = (uint8_t)kind;
    v->acc = -1;
    v->node = v->parent = FG_NODE_NONE;
    v->reg = FG_REG_NONE;
    v->step = -1;
    v->born = t->now;
    return v;
}

fg_value *fg_value_const(fg_trace *t, PyObject *object)
{
    fg_value *v = fg_value_new(t, FG_V_CONST);
    if (v == NULL || fg_keep(t, object) == NULL)
        return NULL;
    v->real = object;
    v->type = Py_TYPE(object);
    return v;
}

fg_value *fg_value_lazy(fg_trace *t, fg_accessor acc, fg_node parent, PyObject *key, int64_t index, PyObject *real)
{
    fg_value *v = fg_value_new(t, FG_V_LAZY);
    if (v == NULL || (real != NULL && fg_keep(t, real) == NULL) || (key != NULL && fg_keep(t, key) == NULL))
        return NULL;
    v->acc = (int8_t)acc;
    v->parent = parent;
    v->key = key;
    v->index = index;
    v->real = real;
    return v;
}

fg_value *fg_value_step(fg_trace *t, fg_vkind kind, fg_reg reg, PyTypeObject *type, PyObject *example)
{
    fg_value *v = fg_value_new(t, kind);
    if (v == NULL || (example != NULL && fg_keep(t, example) == NULL))
        return NULL;
    v->reg = reg;
    v->type = type;
    v->real = example;
    if (t->ir.regs[reg].kind == FG_REG_STEP)
        t->ir.regs[reg].object = example; /* kept by the trace; backends get it as the example */
    v->step = t->ir.regs[reg].kind == FG_REG_STEP ? t->ir.regs[reg].index : -1;
    return v;
}

fg_value *fg_value_seq(fg_trace *t, fg_vkind kind, fg_value *const *items, int32_t n)
{
    fg_value *v = fg_value_new(t, kind);
    if (v == NULL)
        return NULL;
    v->n = v->cap = n;
    v->is_complete = 1;
    v->type = kind == FG_V_LIST ? &PyList_Type : kind == FG_V_TUPLE ? &PyTuple_Type : kind == FG_V_SET ? &PySet_Type : &PySlice_Type;
    if (n > 0) {
        v->items = fg_arena_alloc(&t->arena, (size_t)n * sizeof *v->items);
        if (v->items == NULL) {
            fg_nomem();
            return NULL;
        }
        memcpy(v->items, items, (size_t)n * sizeof *items);
    }
    return v;
}

fg_flow fg_push(fg_trace *t, fg_value ***items, int32_t *n, int32_t *cap, fg_value *v)
{
    if (*n == *cap) {
        int32_t wanted = *cap ? 2 * *cap : 8;
        fg_value **grown = fg_arena_alloc(&t->arena, (size_t)wanted * sizeof *grown);
        if (grown == NULL)
            return fg_nomem();
        if (*n)
            memcpy(grown, *items, (size_t)*n * sizeof *grown);
        FG_SET(t, *items, grown);
        FG_SET(t, *cap, wanted);
    }
    FG_SET(t, (*items)[*n], v);
    FG_SET(t, *n, *n + 1);
    return FG_FLOW_OK;
}

fg_flow fg_todo_push(fg_trace *t, fg_todo *todo, fg_value *v)
{
    if (todo->n == todo->cap) {
        size_t wanted = todo->cap ? 2 * todo->cap : 64;
        fg_value **more = fg_arena_alloc(&t->arena, wanted * sizeof *more);
        if (more == NULL)
            return fg_nomem();
        if (todo->n)
            memcpy(more, todo->items, todo->n * sizeof *more);
        todo->items = more;
        todo->cap = wanted;
    }
    todo->items[todo->n++] = v;
    return FG_FLOW_OK;
}

fg_vitem *fg_map_find(const fg_vmap *map, PyObject *key, Py_hash_t hash)
{
    for (int32_t i = 0; i < map->n; i++)
        if (map->items[i].hash == hash &&
            (map->items[i].key == key || (map->items[i].key && PyObject_RichCompareBool(map->items[i].key, key, Py_EQ) == 1)))
            return &map->items[i];
    return NULL;
}

fg_flow fg_map_set(fg_trace *t, fg_vmap *map, PyObject *key, Py_hash_t hash, fg_value *value, uint8_t is_new)
{
    fg_vitem *item = fg_map_find(map, key, hash);
    if (item != NULL) {
        FG_SET(t, item->value, value);
        return FG_FLOW_OK;
    }
    if (fg_keep(t, key) == NULL)
        return FG_FLOW_ERROR;
    if (map->n == map->cap) {
        int32_t cap = map->cap ? 2 * map->cap : 4;
        fg_vitem *items = fg_arena_alloc(&t->arena, (size_t)cap * sizeof *items);
        if (items == NULL)
            return fg_nomem();
        if (map->n)
            memcpy(items, map->items, (size_t)map->n * sizeof *items);
        FG_SET(t, map->items, items);
        FG_SET(t, map->cap, cap);
    }
    FG_DO(fg_log(t, &map->items[map->n], sizeof *map->items));
    map->items[map->n] = (fg_vitem){.key = key, .hash = hash, .value = value, .is_new = is_new};
    FG_SET(t, map->n, map->n + 1);
    return FG_FLOW_OK;
}

fg_flow fg_map_remove(fg_trace *t, fg_vmap *map, fg_vitem *item)
{
    int32_t at = (int32_t)(item - map->items);
    fg_vitem *items = fg_arena_alloc(&t->arena, (size_t)(map->cap ? map->cap : 1) * sizeof *items);
    if (items == NULL)
        return fg_nomem();
    memcpy(items, map->items, (size_t)at * sizeof *items);
    memcpy(items + at, map->items + at + 1, (size_t)(map->n - at - 1) * sizeof *items);
    FG_SET(t, map->items, items);
    FG_SET(t, map->n, map->n - 1);
    FG_SET(t, map->n_removed, map->n_removed + 1);
    return FG_FLOW_OK;
}

bool fg_is_scalar_type(PyTypeObject *type)
{
    return type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type || type == &PyUnicode_Type || type == &PyComplex_Type ||
           type == &PyBytes_Type;
}

bool fg_is_scalar(const fg_value *v)
{
    return (v->kind == FG_V_SCALAR || v->kind == FG_V_CONST) && v->type != NULL && fg_is_scalar_type(v->type);
}

/* Constants nested deeper are no constants to the tracer: whoever walks them (guards, graphs, the interpreter's hash) may then call itself. */
enum { MAX_CONST_DEPTH = 64 };

static bool is_fold_const(PyObject *o, int depth)
{
    if (o == Py_None || o == Py_Ellipsis || o == Py_NotImplemented || fg_is_scalar_type(Py_TYPE(o)))
        return true;
    if (depth >= MAX_CONST_DEPTH)
        return false;
    if (PyTuple_CheckExact(o) || fg_py_is_torch_size(Py_TYPE(o))) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++)
            if (!is_fold_const(PyTuple_GET_ITEM(o, i), depth + 1))
                return false;
        return true;
    }
    if (PyFrozenSet_CheckExact(o)) {
        Py_ssize_t pos = 0;
        PyObject *item;
        while (fg_set_next(o, &pos, &item))
            if (!is_fold_const(item, depth + 1))
                return false;
        return true;
    }
    if (Py_TYPE(o) == &PySlice_Type) {
        PySliceObject *s = (PySliceObject *)o;
        return is_fold_const(s->start, depth + 1) && is_fold_const(s->stop, depth + 1) && is_fold_const(s->step, depth + 1);
    }
    return Py_TYPE(o) == &PyRange_Type;
}

bool fg_is_fold_const(PyObject *o)
{
    return is_fold_const(o, 0);
}

static bool is_key_const(PyObject *key, int depth)
{
    if (key == Py_None || fg_is_scalar_type(Py_TYPE(key)))
        return true;
    if (PyType_Check(key))
        return Py_TYPE(key) == &PyType_Type;
    if (!PyTuple_CheckExact(key) || depth >= MAX_CONST_DEPTH)
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++)
        if (!is_key_const(PyTuple_GET_ITEM(key, i), depth + 1))
            return false;
    return true;
}

bool fg_is_key_const(PyObject *key)
{
    return is_key_const(key, 0);
}
