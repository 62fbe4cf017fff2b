/* Looking at a value that came from outside: the first look decides what it is and adds the fact that keeps the decision true.
 *
 * Rules for who adds a row here:
 *  1. Only read the real object by means that cannot run its code: exact types and their C layout.
 *  2. The fact added must imply everything the chosen kind relies on.
 *  3. Kinds with identity (mutable ones) go through `settle`, which makes two sources of one object one value.
 *  4. Identity facts only on types, functions, C callables and descriptors, singletons and registered operations.
 */
#include "tracer/trace.h"

#include "guards/adaptor_torch_globals.h"
#include "runtime/cpython/frame.h"
#include "tracer/trace_python.h"
#include <string.h>

fg_flow fg_source(fg_trace *t, fg_accessor acc, fg_node parent, PyObject *key, int64_t index, fg_node *out)
{
    fg_status st = fg_desc_source(t->desc, acc, parent, key, index, out);
    if (st == FG_OK)
        return FG_FLOW_OK;
    return st == FG_ERR_PYTHON ? fg_break_on_error(t, FG_BREAK_GUARD, "source") : fg_nomem();
}

fg_flow fg_node_of(fg_trace *t, fg_value *v, fg_node *node)
{
    if (v->node == FG_NODE_NONE && v->acc >= 0) {
        fg_node made;
        FG_DO(fg_source(t, (fg_accessor)v->acc, v->parent, v->key, v->index, &made));
        FG_SET(t, v->node, made);
    }
    *node = v->node;
    return FG_FLOW_OK;
}

/* The innermost line that is the user's own: not of a polyfill, and not of an installed library unless all are. */
static fg_origin origin_here(fg_trace *t)
{
    fg_tframe *f = t->frame;
    if (f == NULL)
        return (fg_origin){NULL, 0};
    while (f != NULL && (f->hidden || f->library))
        f = f->parent;
    for (f = f != NULL ? f : t->frame; f->hidden && f->parent != NULL;)
        f = f->parent;
    return (fg_origin){f->icode->code, f->icode->instrs[f->pc].line};
}

static fg_flow add_guard(fg_trace *t, fg_guard_kind kind, fg_node node, fg_guard_arg arg)
{
    fg_status st = fg_desc_guard(t->desc, kind, node, arg, origin_here(t));
    if (st == FG_OK)
        return FG_FLOW_OK;
    if (st == FG_ERR_PYTHON)
        return fg_break_on_error(t, FG_BREAK_GUARD, "guard");
    return st == FG_ERR_NOMEM ? fg_nomem() : fg_break(t, FG_BREAK_GUARD, "the value cannot be guarded");
}

fg_flow fg_guard(fg_trace *t, fg_guard_kind kind, fg_node node, PyObject *object, int64_t lo, int64_t hi)
{
    return add_guard(t, kind, node, (fg_guard_arg){.object = object, .lo = lo, .hi = hi});
}

fg_flow fg_guard_meta(fg_trace *t, fg_guard_kind kind, fg_node node, const fg_tensor_meta *meta)
{
    return add_guard(t, kind, node, (fg_guard_arg){.meta = meta});
}

static fg_flow relate(fg_trace *t, fg_guard_kind kind, const fg_node *nodes, size_t n)
{
    fg_status st = fg_desc_relation(t->desc, kind, nodes, n, origin_here(t));
    if (st == FG_OK)
        return FG_FLOW_OK;
    return st == FG_ERR_PYTHON ? FG_FLOW_ERROR : fg_nomem();
}

fg_flow fg_guard_holds(fg_trace *t, const fg_node *nodes, size_t n, const char *text)
{
    fg_status st = fg_desc_expression(t->desc, nodes, n, text, origin_here(t));
    if (st == FG_OK)
        return FG_FLOW_OK;
    return st == FG_ERR_PYTHON ? FG_FLOW_ERROR : st == FG_ERR_NOMEM ? fg_nomem() : fg_break(t, FG_BREAK_INTERNAL, "the condition %s", text);
}

/* --- one value per object */

static size_t id_slot(const struct fg_id_slot *ids, size_t cap, PyObject *object)
{
    size_t at = ((uintptr_t)object >> 4) * 0x9E3779B97F4A7C15u >> 20 & (cap - 1);
    while (ids[at].object != NULL && ids[at].object != object)
        at = (at + 1) & (cap - 1);
    return at;
}

static fg_flow ids_grow(fg_trace *t)
{
    size_t cap = t->cap_ids ? 2 * t->cap_ids : 64;
    struct fg_id_slot *ids = fg_arena_alloc(&t->arena, cap * sizeof *ids);
    if (ids == NULL)
        return fg_nomem();
    for (size_t i = 0; i < t->cap_ids; i++)
        if (t->ids[i].object != NULL)
            ids[id_slot(ids, cap, t->ids[i].object)] = t->ids[i];
    FG_SET(t, t->ids, ids);
    FG_SET(t, t->cap_ids, cap);
    return FG_FLOW_OK;
}

/* An object with attributes of its own; a module's are read through its dict, which is a value like any other. */
static bool has_own_dict(const fg_value *v)
{
    return v->real != NULL && Py_TYPE(v->real) != &PyModule_Type && fg_type_has_instance_dict(Py_TYPE(v->real));
}

/* What a write to the value, or to another one, may be seen through: the dict of its attributes, and the value itself where it is a dict. Either may be NULL. */
typedef struct storage {
    PyObject *attrs, *items;
} storage;

static storage storage_of(const fg_value *v, fg_vkind kind)
{
    const bool is_owner = (kind == FG_V_OBJECT || kind == FG_V_FUNC) && has_own_dict(v);
    const bool is_dict = kind == FG_V_DICT || (kind == FG_V_OBJECT && v->real != NULL && PyDict_Check(v->real));
    return (storage){is_owner ? fg_instance_dict(v->real) : NULL, is_dict ? v->real : NULL};
}

/* The overlays of an object, of the dict that holds its attributes, and of another object that has the same dict, know nothing of each other. An object
 * may be its own dict. */
static fg_flow check_dict_alias(fg_trace *t, const fg_value *v, fg_vkind kind, bool is_written)
{
    const storage own = storage_of(v, kind);
    bool shared = is_written && own.attrs != NULL && own.attrs == own.items;
    for (int32_t i = 0; (own.attrs != NULL || own.items != NULL) && i < t->n_tracked && !shared; i++) {
        const fg_value *other = t->tracked[i];
        if (other == v || other->real == v->real || (!is_written && !other->is_mutated))
            continue;
        const storage its = storage_of(other, (fg_vkind)other->kind);
        shared = (own.attrs != NULL && (own.attrs == its.attrs || own.attrs == its.items)) || (own.items != NULL && own.items == its.attrs);
    }
    return shared ? fg_break(t, FG_BREAK_ALIASING, "a %s and the __dict__ of an object, written as a dict or as attributes",
                             Py_TYPE(v->real)->tp_name)
                  : FG_FLOW_OK;
}

fg_flow fg_mutate(fg_trace *t, fg_value *v)
{
    if (!v->is_mutated)
        FG_DO(check_dict_alias(t, v, (fg_vkind)v->kind, true));
    FG_SET(t, v->is_mutated, 1);
    return FG_FLOW_OK;
}

static fg_flow settle(fg_trace *t, fg_value **pv, fg_vkind kind)
{
    fg_value *v = *pv;
    if (2 * (t->n_ids + 1) > t->cap_ids)
        FG_DO(ids_grow(t));
    size_t at = id_slot(t->ids, t->cap_ids, v->real);
    if (t->ids[at].object != NULL) {
        fg_node pair[2];
        fg_value *known = t->ids[at].value;
        FG_DO(fg_node_of(t, known, &pair[0]));
        FG_DO(fg_node_of(t, v, &pair[1]));
        if (pair[0] != pair[1])
            FG_DO(relate(t, FG_GUARD_SAME, pair, 2));
        FG_SET(t, v->is_complete, 1); /* what it is, is known under the other source */
        *pv = known;
        return FG_FLOW_OK;
    }
    FG_DO(check_dict_alias(t, v, kind, false));
    FG_DO(fg_log(t, &t->ids[at], sizeof t->ids[at]));
    t->ids[at] = (struct fg_id_slot){v->real, v};
    FG_SET(t, t->n_ids, t->n_ids + 1);
    FG_DO(fg_push(t, &t->tracked, &t->n_tracked, &t->cap_tracked, v));
    FG_SET(t, v->type, Py_TYPE(v->real));
    FG_SET(t, v->kind, (uint8_t)kind);
    return FG_FLOW_OK;
}

/* --- kinds */

static fg_flow become(fg_trace *t, fg_value *v, fg_vkind kind)
{
    FG_SET(t, v->type, Py_TYPE(v->real));
    FG_SET(t, v->kind, (uint8_t)kind);
    return FG_FLOW_OK;
}

static fg_flow pin(fg_trace *t, fg_value *v, fg_node node)
{
    FG_DO(fg_guard(t, FG_GUARD_ID, node, v->real, 0, 0));
    return become(t, v, FG_V_CONST);
}

static fg_flow look_parts(fg_trace *t, fg_value *v, fg_node node, fg_accessor acc, PyObject *const parts[3])
{
    FG_DO(fg_guard(t, FG_GUARD_TYPE, node, (PyObject *)Py_TYPE(v->real), 0, 0));
    for (int i = 0; i < 3; i++) {
        fg_node part;
        FG_DO(fg_source(t, acc, node, NULL, i, &part));
        if (PyLong_CheckExact(parts[i]))
            FG_DO(fg_guard(t, FG_GUARD_CONST, part, parts[i], 0, 0));
        else if (parts[i] == Py_None)
            FG_DO(fg_guard(t, FG_GUARD_ID, part, Py_None, 0, 0));
        else
            return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "slice of %s", Py_TYPE(parts[i])->tp_name);
    }
    return become(t, v, FG_V_CONST);
}

/* Sizes, that of torch. */
static fg_flow look_size(fg_trace *t, fg_value *v, fg_node node)
{
    const Py_ssize_t n = PyTuple_GET_SIZE(v->real);
    FG_DO(fg_guard(t, FG_GUARD_TYPE, node, (PyObject *)Py_TYPE(v->real), 0, 0));
    FG_DO(fg_guard(t, FG_GUARD_LENGTH, node, NULL, n, n));
    for (Py_ssize_t i = 0; i < n; i++) {
        fg_node item;
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(v->real, i)))
            return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "a size that is a %s", Py_TYPE(PyTuple_GET_ITEM(v->real, i))->tp_name);
        FG_DO(fg_source(t, FG_ACC_TUPLE_ITEM, node, NULL, i, &item));
        FG_DO(fg_guard(t, FG_GUARD_CONST, item, PyTuple_GET_ITEM(v->real, i), 0, 0));
    }
    return become(t, v, FG_V_CONST);
}

static fg_flow look_tuple(fg_trace *t, fg_value *v, fg_node node)
{
    Py_ssize_t n = PyTuple_GET_SIZE(v->real);
    if (n > 100000)
        return fg_break(t, FG_BREAK_TOO_LONG, "tuple of %zd elements", n);
    FG_DO(fg_guard(t, FG_GUARD_LENGTH, node, NULL, n, n));
    fg_value **items = fg_arena_alloc(&t->arena, (size_t)(n ? n : 1) * sizeof *items);
    if (items == NULL)
        return fg_nomem();
    for (Py_ssize_t i = 0; i < n; i++)
        if ((items[i] = fg_value_lazy(t, FG_ACC_TUPLE_ITEM, node, NULL, i, PyTuple_GET_ITEM(v->real, i))) == NULL)
            return FG_FLOW_ERROR;
    FG_SET(t, v->items, items);
    FG_SET(t, v->n, (int32_t)n);
    FG_SET(t, v->cap, (int32_t)n);
    FG_SET(t, v->is_complete, 1);
    return become(t, v, FG_V_TUPLE);
}

static fg_flow look_tensor(fg_trace *t, fg_value **pv, fg_node node, const fg_tensor_adaptor *adaptor)
{
    fg_tensor_meta meta;
    const char *why = NULL;
    fg_value *v = *pv;
    int r = adaptor->record(adaptor, v->real, &meta, &why);
    if (r < 0)
        return fg_break_on_error(t, FG_BREAK_UNKNOWN_TENSOR_KIND, "tensor metadata");
    if (r == 0)
        return fg_break(t, FG_BREAK_UNKNOWN_TENSOR_KIND, "%s: %s", adaptor->name, why ? why : "not captured");
    FG_DO(add_guard(t, FG_GUARD_TENSOR, node, (fg_guard_arg){.meta = &meta}));
    if (fg_py_is_torch_type(Py_TYPE(v->real)))
        FG_SET(t, t->uses_torch, true);
    FG_DO(settle(t, pv, FG_V_TENSOR));
    if (*pv == v) {
        fg_reg reg;
        FG_DO(fg_materialise(t, v, &reg));
    }
    return FG_FLOW_OK;
}

/* Objects that are pinned by identity: what they do is in C and cannot change, or is a registered promise. */
static bool is_pinned(fg_trace *t, PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    if (PyType_Check(o) || o == Py_None || o == Py_Ellipsis || o == Py_NotImplemented || fg_op_find(o) != NULL)
        return true;
    if (type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type || type == &PyClassMethodDescr_Type || type == &PyGetSetDescr_Type ||
        type == &PyMemberDescr_Type || type == &PyCode_Type)
        return true;
    if (type == &PyCFunction_Type) {
        PyObject *self = PyCFunction_GET_SELF(o);
        return self == NULL || PyModule_Check(self) || PyType_Check(self) || fg_py_is_function_record(self) ||
               fg_py_is_library_constant(Py_TYPE(self));
    }
    if (fg_py_is_library_constant(type))
        return true;
    return t->rules != NULL && (PyFunction_Check(o) || PyCallable_Check(o)) && fg_py_rule(t->rules, o) != NULL;
}

/* Wrappers of a function without weak references: an entry that kept one would keep the user's function, its module and what that leads to. The kind is
 * enough, who uses one looks at what is in it. */
static bool wraps_function(const PyTypeObject *type)
{
    return type == &PyStaticMethod_Type || type == &PyClassMethod_Type || type == &PyProperty_Type;
}

fg_flow fg_look(fg_trace *t, fg_value **pv)
{
    fg_value *v = *pv;
    FG_DO(fg_deeper(t)); /* nearly every walk over nested values looks at each of them */
    if (v->kind != FG_V_LAZY)
        return FG_FLOW_OK;
    if (v->real == NULL)
        return fg_break(t, FG_BREAK_RAISES, "unbound variable");
    PyObject *o = v->real;
    PyTypeObject *type = Py_TYPE(o);
    fg_node node;
    FG_DO(fg_node_of(t, v, &node));
    if (fg_is_scalar_type(type)) {
        FG_DO(fg_guard(t, FG_GUARD_TYPE, node, (PyObject *)type, 0, 0));
        return become(t, v, FG_V_SCALAR);
    }
    const fg_tensor_adaptor *adaptor = fg_tensor_adaptor_find(type);
    if (adaptor != NULL)
        return look_tensor(t, pv, node, adaptor);
    if (wraps_function(type)) {
        FG_DO(fg_guard(t, FG_GUARD_TYPE, node, (PyObject *)type, 0, 0));
        return settle(t, pv, FG_V_OBJECT);
    }
    if (is_pinned(t, o))
        return pin(t, v, node);
    if (type == &PyRange_Type) {
        PyObject *parts[3];
        if (fg_py_range_parts(t, o, parts) < 0)
            return FG_FLOW_ERROR;
        return look_parts(t, v, node, FG_ACC_RANGE_PART, parts);
    }
    if (type == &PySlice_Type) {
        PySliceObject *s = (PySliceObject *)o;
        return look_parts(t, v, node, FG_ACC_SLICE_PART, (PyObject *[3]){s->start, s->stop, s->step});
    }
    if (fg_py_is_torch_size(type))
        return look_size(t, v, node);
    FG_DO(fg_guard(t, FG_GUARD_TYPE, node, (PyObject *)type, 0, 0));
    if (type == &PyTuple_Type)
        return look_tuple(t, v, node);
    if (fg_is_tuple_class(type)) {
        fg_value *cls;
        FG_DO(look_tuple(t, v, node));
        FG_DO(fg_object_type(t, v, &cls));
        return fg_tuple_class_facts(t, cls, type);
    }
    if (type == &PyList_Type)
        return settle(t, pv, FG_V_LIST);
    if (type == &PyDict_Type)
        return settle(t, pv, FG_V_DICT);
    if (type == &PyFunction_Type)
        return settle(t, pv, FG_V_FUNC);
    if (fg_py_is_numpy_scalar(type)) {
        FG_SET(t, v->is_scalar, 1);
        FG_DO(become(t, v, FG_V_TENSOR));
        fg_reg reg;
        return fg_materialise(t, v, &reg);
    }
    if (type == &PyMethod_Type) {
        fg_value *a = fg_value_lazy(t, FG_ACC_METHOD_FUNC, node, NULL, 0, PyMethod_GET_FUNCTION(o));
        fg_value *b = fg_value_lazy(t, FG_ACC_METHOD_SELF, node, NULL, 0, PyMethod_GET_SELF(o));
        if (a == NULL || b == NULL)
            return FG_FLOW_ERROR;
        FG_SET(t, v->a, a);
        FG_SET(t, v->b, b);
        return become(t, v, FG_V_METHOD);
    }
    if (type == &PyCell_Type) {
        FG_DO(settle(t, pv, FG_V_CELL));
        if (*pv == v) {
            fg_value *contents = NULL;
            if (PyCell_GET(o) == NULL) {
                fg_node inside;
                FG_DO(fg_source(t, FG_ACC_CELL_CONTENTS, node, NULL, 0, &inside));
                FG_DO(fg_guard(t, FG_GUARD_ABSENT, inside, NULL, 0, 0));
            } else if ((contents = fg_value_lazy(t, FG_ACC_CELL_CONTENTS, node, NULL, 0, PyCell_GET(o))) == NULL) {
                return FG_FLOW_ERROR;
            }
            FG_SET(t, v->a, contents);
        }
        return FG_FLOW_OK;
    }
    return settle(t, pv, FG_V_OBJECT);
}

fg_flow fg_guard_const(fg_trace *t, fg_value *v)
{
    if (v->kind == FG_V_CONST)
        return FG_FLOW_OK;
    if (v->kind == FG_V_SCALAR)
        return fg_concrete(t, v);
    fg_node node;
    FG_DO(fg_node_of(t, v, &node));
    if (node == FG_NODE_NONE || v->real == NULL || (v->kind != FG_V_FUNC && v->kind != FG_V_OBJECT))
        return fg_break(t, FG_BREAK_GUARD, "an object of type %s would have to be fixed", v->type ? v->type->tp_name : "unknown");
    return fg_guard(t, FG_GUARD_ID, node, v->real, 0, 0);
}

static bool has_own_identity(const fg_value *v)
{
    switch (v->kind) {
    case FG_V_LIST:
    case FG_V_DICT:
    case FG_V_SET:
    case FG_V_FUNC:
    case FG_V_CELL:
    case FG_V_OBJECT:
    case FG_V_ITER: return true;
    default: return false;
    }
}

static bool is_singleton(const fg_value *v)
{
    return v->kind == FG_V_CONST && (v->real == Py_None || v->real == Py_True || v->real == Py_False || v->real == Py_Ellipsis ||
                                     v->real == Py_NotImplemented || !fg_is_fold_const(v->real));
}

fg_flow fg_same_object(fg_trace *t, fg_value *a, fg_value *b, int *same, bool *known)
{
    *known = true;
    *same = 0;
    if (a == b) {
        *same = 1;
        return FG_FLOW_OK;
    }
    if (fg_is_attrs(a) || fg_is_attrs(b)) { /* a dict that may be had in other ways */
        *same = fg_is_attrs(a) && fg_is_attrs(b) && a->a == b->a;
        *known = *same || is_singleton(a) || is_singleton(b);
        return FG_FLOW_OK;
    }
    /* `x is None` and `x is True` of a run-time scalar: decide by its type or its value */
    if (is_singleton(a) || is_singleton(b)) {
        fg_value *single = is_singleton(a) ? a : b, *other = single == a ? b : a;
        if (other->kind == FG_V_SCALAR && (single->real == Py_True || single->real == Py_False) && other->type == &PyBool_Type)
            FG_DO(fg_concrete(t, other));
        if (other->kind == FG_V_CONST)
            *same = other->real == single->real;
        else if (other->kind == FG_V_OPAQUE)
            *known = false;
        else if (other->kind == FG_V_TENSOR)
            *known = other->type != NULL || single->real == Py_None || PyType_Check(single->real);
        return FG_FLOW_OK;
    }
    if ((has_own_identity(a) && b->kind != FG_V_OPAQUE && !has_own_identity(b)) ||
        (has_own_identity(b) && a->kind != FG_V_OPAQUE && !has_own_identity(a)))
        return FG_FLOW_OK;
    fg_node nodes[2];
    FG_DO(fg_node_of(t, a, &nodes[0]));
    FG_DO(fg_node_of(t, b, &nodes[1]));
    if (nodes[0] != FG_NODE_NONE && nodes[1] != FG_NODE_NONE) {
        *same = a->real == b->real;
        return nodes[0] == nodes[1] ? FG_FLOW_OK : relate(t, *same ? FG_GUARD_SAME : FG_GUARD_DISTINCT, nodes, 2);
    }
    if (has_own_identity(a) && has_own_identity(b))
        return FG_FLOW_OK; /* one of them was made in this trace and is another value */
    *known = false;
    return FG_FLOW_OK;
}

fg_flow fg_rely_on(fg_trace *t, fg_value *v)
{
    return fg_push(t, &t->found, &t->n_found, &t->cap_found, v);
}

/* --- the facts that belong to the trace as a whole */

/* Some step may look at memory beyond the elements of its tensors: other strides over the same storage, a user's operation. */
static bool reaches_beyond(const fg_trace *t)
{
    for (int32_t i = 0; i < t->ir.n_steps; i++) {
        const fg_op_row *row = t->ir.steps[i].row;
        if (row == NULL)
            continue;
        const char *name = PyUnicode_AsUTF8(row->name);
        if (name == NULL)
            PyErr_Clear();
        if (name == NULL || row->signature == NULL || strstr(name, "as_strided") != NULL)
            return true;
    }
    return false;
}

/* Whether the elements of two tensors may have a byte in common, or all of their storages. */
static bool meet(const fg_tensor_memory *a, const fg_tensor_memory *b, bool whole)
{
    if (a->space != b->space)
        return false;
    if (whole || !a->is_placed || !b->is_placed)
        return a->lo < b->hi && b->lo < a->hi;
    return a->elements < a->end && b->elements < b->end && a->elements < b->end && b->elements < a->end;
}

/* A compiler of graphs that writes inputs takes their memory for separate. Mostly no two have a storage in common, which is quick to check; views of
 * one storage are told apart by where their elements lie. A call whose inputs overlap is not compiled. */
static fg_flow memory_apart(fg_trace *t, int32_t from, fg_guard_kind *kind)
{
    fg_tensor_memory *seen = fg_arena_alloc(&t->arena, (size_t)(t->n_tracked + 1) * sizeof *seen);
    const fg_tensor_adaptor *first = NULL;
    int32_t n = 0;
    if (seen == NULL)
        return fg_nomem();
    for (int32_t i = from; i < t->n_tracked; i++) {
        const fg_value *v = t->tracked[i];
        if (v->kind != FG_V_TENSOR)
            continue;
        const fg_tensor_adaptor *adaptor = v->real != NULL ? fg_tensor_adaptor_find(Py_TYPE(v->real)) : NULL;
        if (adaptor != NULL && first == NULL)
            first = adaptor;
        int told = adaptor != NULL && adaptor->storage == first->storage ? fg_tensor_memory_of(adaptor, v->real, &seen[n]) : 0;
        if (told < 0)
            return fg_break_on_error(t, FG_BREAK_SHARED_MEMORY, "memory");
        if (told == 0)
            return fg_break(t, FG_BREAK_SHARED_MEMORY, "in-place changes beside an array whose memory cannot be told");
        for (int32_t k = 0; k < n; k++) {
            if (!meet(&seen[k], &seen[n], true))
                continue;
            if (meet(&seen[k], &seen[n], false) || (*kind == FG_GUARD_STORAGE_DISTINCT && reaches_beyond(t)))
                return fg_break(t, FG_BREAK_SHARED_MEMORY, "in-place changes where inputs share memory");
            *kind = FG_GUARD_MEMORY_APART;
        }
        n++;
    }
    return FG_FLOW_OK;
}

static fg_flow distinct_group(fg_trace *t, int32_t from, fg_node *nodes)
{
    fg_value *first = t->tracked[from];
    bool wanted = first->kind == FG_V_TENSOR;
    size_t n = 0;
    for (int32_t i = from; i < t->n_tracked; i++) {
        fg_value *v = t->tracked[i];
        if (v->kind != first->kind || (v->kind != FG_V_TENSOR && v->type != first->type))
            continue;
        wanted |= v->is_mutated || v->is_told_apart;
        FG_DO(fg_node_of(t, v, &nodes[n]));
        n++;
    }
    if (!wanted || n < 2)
        return FG_FLOW_OK;
    FG_DO(relate(t, FG_GUARD_DISTINCT, nodes, n));
    if (first->kind == FG_V_TENSOR && t->opaque && t->mutates_input) {
        fg_guard_kind kind = FG_GUARD_STORAGE_DISTINCT;
        FG_DO(memory_apart(t, from, &kind));
        FG_DO(relate(t, kind, nodes, n));
    }
    return FG_FLOW_OK;
}

/* What operations ask when they run, and a compiler when it compiles: torch's switches, and that there is no level of forward differentiation, which
 * its code does not know. */
static fg_flow compilers_state(fg_trace *t)
{
    fg_torch_globals globals;
    if (fg_torch_globals_read(&globals) != 1)
        return fg_break(t, FG_BREAK_TORCH_STATE, "forward differentiation, hooks for saved tensors, or switches that cannot be read");
    return add_guard(t, FG_GUARD_TORCH_GLOBALS, FG_NODE_NONE, (fg_guard_arg){.lo = globals.bits, .hi = globals.threads});
}

/* What was kept apart above is so in each call: what is written from each object whose attributes are read, and each such object that is written from
 * all dicts. */
static fg_flow no_dict_aliases(fg_trace *t, fg_node *nodes)
{
    for (int32_t i = 0; i < t->n_tracked; i++) {
        fg_value *written = t->tracked[i];
        const bool is_dict = written->kind == FG_V_DICT || (written->kind == FG_V_OBJECT && PyDict_Check(written->real));
        const bool is_owner = (written->kind == FG_V_OBJECT || written->kind == FG_V_FUNC) && has_own_dict(written);
        size_t n = 1;
        if (!written->is_mutated || (!is_dict && !is_owner))
            continue;
        for (int32_t k = 0; k < t->n_tracked; k++) {
            fg_value *v = t->tracked[k];
            if (v == written || (v->is_mutated && k < i))
                continue;
            if (((v->kind == FG_V_OBJECT || (v->kind == FG_V_FUNC && (v->is_asked || v->is_mutated))) && has_own_dict(v)) ||
                (is_owner && (v->kind == FG_V_DICT || (v->kind == FG_V_OBJECT && PyDict_Check(v->real)))))
                FG_DO(fg_node_of(t, v, &nodes[n++]));
        }
        FG_DO(fg_node_of(t, written, &nodes[0]));
        if (n == 1 && is_dict && is_owner)
            nodes[n++] = nodes[0];
        if (n > 1)
            FG_DO(relate(t, FG_GUARD_NO_DICT_OF, nodes, n));
    }
    return FG_FLOW_OK;
}

fg_flow fg_finish_guards(fg_trace *t)
{
    for (int32_t i = 0; i < t->n_found; i++)
        if (t->found[i]->kind == FG_V_LAZY && t->found[i]->reg == FG_REG_NONE && !t->found[i]->is_complete) {
            fg_node node;
            FG_DO(fg_node_of(t, t->found[i], &node));
            FG_DO(fg_guard(t, FG_GUARD_PRESENT, node, NULL, 0, 0));
        }
    FG_DO(fg_drop_guards(t));
    fg_node *nodes = fg_arena_alloc(&t->arena, (size_t)(t->n_tracked + 2) * sizeof *nodes);
    if (nodes == NULL)
        return fg_nomem();
    FG_DO(no_dict_aliases(t, nodes));
    for (int32_t i = 0; i < t->n_tracked; i++) {
        bool seen = false;
        for (int32_t k = 0; k < i && !seen; k++)
            seen = t->tracked[k]->kind == t->tracked[i]->kind &&
                   (t->tracked[k]->kind == FG_V_TENSOR || t->tracked[k]->type == t->tracked[i]->type);
        if (!seen)
            FG_DO(distinct_group(t, i, nodes));
    }
    if (t->uses_torch) {
        fg_torch_state state;
        memset(&state, 0, sizeof state);
        if (!fg_torch_state_read(&state))
            return fg_break(t, FG_BREAK_TORCH_STATE, "torch's thread state");
        FG_DO(add_guard(t, FG_GUARD_TORCH_STATE, FG_NODE_NONE, (fg_guard_arg){.state = &state}));
        if (t->opaque)
            FG_DO(compilers_state(t));
    }
    return FG_FLOW_OK;
}
