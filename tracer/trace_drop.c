/* What loses a reference by what the trace does, and whether somebody could notice.
 *
 * An object that existed at entry and whose end may run code of the user's must end where it ends in plain Python, and what its finalizer does must be
 * seen by what is read later. The trace knows neither the moment nor the effect, so it leaves before the instruction that would let go of it. Held
 * to at every store and removal, this gives
 *
 *     Every reference that an object of that kind had at entry, it has throughout the trace.
 *
 * so that values which the trace itself made or copied may be dropped anywhere. Rules for who adds an effect:
 *  1. What it replaces or takes out of a place is asked for here first: by value where the trace has one, else by the place.
 *  2. Only a reference that was in that very place at entry counts; one that the trace has put there is its own.
 *
 * An object that is not quiet may still lose a reference if it keeps another one. Such objects are few: each is guarded to have more references than
 * the whole trace takes away from such objects.
 */
#include "guards/guard_drop.h"
#include "runtime/cpython/dict.h"
#include "runtime/cpython/frame.h"
#include "tracer/trace_python.h"

static const char reason[] = "a %s loses a reference and its end may run code";

/* References that the trace itself holds, and those that its caller took for the time of it: of each root and slot one. */
static Py_ssize_t held_by_trace(const fg_trace *t, const PyObject *o)
{
    const fg_view *view = t->view;
    Py_ssize_t n = (view->globals == o) + (view->builtins == o) + (view->closure == o) + (view->func == o);
    for (Py_ssize_t i = 0; i < view->n_slots; i++)
        n += view->slots[i] == o;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(t->owned); i++)
        n += PyList_GET_ITEM(t->owned, i) == o;
    return n;
}

static bool all_survive(const fg_trace *t, PyObject *o)
{
    int32_t n = t->n_survivors + 1;
    if (Py_REFCNT(o) - held_by_trace(t, o) <= n)
        return false;
    for (int32_t i = 0; i < n - 1; i++)
        if (Py_REFCNT(t->survivors[i]->real) - held_by_trace(t, t->survivors[i]->real) <= n)
            return false;
    return true;
}

fg_flow fg_drop(fg_trace *t, fg_value *v)
{
    if (v == NULL || v->real == NULL || (v->node == FG_NODE_NONE && v->acc < 0) || fg_is_scalar(v))
        return FG_FLOW_OK;
    fg_node node;
    FG_DO(fg_node_of(t, v, &node));
    if (fg_drop_is_quiet(v->real))
        return PyType_Check(v->real) && v->kind == FG_V_CONST ? FG_FLOW_OK : fg_guard(t, FG_GUARD_QUIET, node, NULL, 0, 0);
    if (!all_survive(t, v->real))
        return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, reason, Py_TYPE(v->real)->tp_name);
    return fg_push(t, &t->survivors, &t->n_survivors, &t->cap_survivors, v);
}

fg_flow fg_drop_guards(fg_trace *t)
{
    for (int32_t i = 0; i < t->n_survivors; i++) {
        fg_node node;
        FG_DO(fg_node_of(t, t->survivors[i], &node));
        FG_DO(fg_guard(t, FG_GUARD_QUIET, node, NULL, t->n_survivors, 0));
    }
    return FG_FLOW_OK;
}

/* --- the frame of a segment: its variables and its stack are references like any other */

fg_flow fg_drop_frame_init(fg_trace *t)
{
    const fg_tframe *f = t->root;
    t->held = fg_arena_alloc(&t->arena, (size_t)(f->n_locals + f->sp + 1) * sizeof *t->held);
    if (t->held == NULL)
        return fg_nomem();
    for (int32_t i = 0; i < f->n_locals + f->sp; i++) {
        fg_value *v = i < f->n_locals ? f->locals[i] : f->stack[i - f->n_locals];
        if (v != NULL)
            t->held[t->n_held++] = v;
    }
    return FG_FLOW_OK;
}

static fg_flow drop_lost(fg_trace *t)
{
    const fg_tframe *f = t->root;
    int32_t n = t->n_held;
    t->held_stamp++;
    for (int32_t i = 0; i < f->n_locals; i++)
        if (f->locals[i] != NULL)
            f->locals[i]->stamp = t->held_stamp;
    for (int32_t i = 0; i < f->sp; i++)
        f->stack[i]->stamp = t->held_stamp;
    t->n_held = 0;
    for (int32_t i = 0; i < n; i++)
        if (t->held[i]->stamp == t->held_stamp)
            t->held[t->n_held++] = t->held[i];
        else
            FG_DO(fg_drop(t, t->held[i]));
    return FG_FLOW_OK;
}

fg_flow fg_drop_frame(fg_trace *t, fg_trace_mark before)
{
    fg_flow flow = drop_lost(t);
    if (flow != FG_FLOW_BREAK)
        return flow;
    fg_trace_rewind(t, before);
    PyObject *context = Py_NewRef(t->broke.context); /* again, as it is the instruction before that breaks */
    flow = fg_break(t, t->broke.reason, "%U", context);
    Py_DECREF(context);
    return flow;
}

/* Its end may be seen, or that of a part of it. What the trace has made and what is reached by the globals may not: nothing else than a place of the
 * user's is the last to hold it. */
static bool is_seen(const fg_value *v, int depth)
{
    if (v == NULL || fg_is_scalar(v))
        return false;
    if (v->kind == FG_V_CONST)
        return v->acc == FG_ACC_ARG;
    if (v->node != FG_NODE_NONE || v->acc >= 0 || depth > 16)
        return true;
    if (v->kind == FG_V_TENSOR)
        return false;
    if (v->kind == FG_V_FUNC) /* its globals stay */
        return is_seen(v->a, depth + 1) || is_seen(v->b, depth + 1) || is_seen(v->c, depth + 1) ||
               (v->items != NULL && (is_seen(v->items[0], depth + 1) || is_seen(v->items[1], depth + 1)));
    for (int32_t i = 0; i < v->n; i++)
        if (is_seen(v->items[i], depth + 1))
            return true;
    for (int32_t i = 0; i < v->map.n; i++)
        if (is_seen(v->map.items[i].value, depth + 1) || is_seen(v->map.items[i].keyval, depth + 1))
            return true;
    return is_seen(v->a, depth + 1) || is_seen(v->b, depth + 1) || is_seen(v->c, depth + 1) || is_seen(v->d, depth + 1);
}

/* The frame that goes on behind a segment still has in a slot what it had there at the start. */
static bool is_as_before(const fg_trace *t, int32_t slot)
{
    const fg_value *v = t->root->locals[slot];
    return v == NULL ? t->view->slots[slot] == NULL : v->acc == FG_ACC_ARG && v->parent == FG_NODE_NONE && v->index == slot;
}

/* Variables end in the order of their slots, when the frame does. The one that returns is not the segment's but the one behind it: it gets what may be seen
 * to end. A value without a run-time form stays away. */
fg_flow fg_drop_at_return(fg_trace *t)
{
    const fg_tframe *f = t->root;
    fg_ir_exit *exit = &t->ir.exit;
    bool any = false;
    for (int32_t i = 0; i < f->n_locals && !any; i++)
        any = !is_as_before(t, i) && (is_seen(f->locals[i], 0) || (t->view->slots[i] != NULL && !fg_drop_is_quiet(t->view->slots[i])));
    if (!any)
        return FG_FLOW_OK;
    exit->slots = fg_arena_alloc(&t->arena, (size_t)(f->n_locals + 1) * sizeof *exit->slots);
    exit->written = fg_arena_alloc(&t->arena, (size_t)f->n_locals + 1);
    if (exit->slots == NULL || exit->written == NULL)
        return fg_nomem();
    for (int32_t i = 0; i < f->n_locals; i++) {
        const PyObject *old = t->view->slots[i];
        exit->slots[i] = FG_REG_NONE;
        exit->written[i] = !is_as_before(t, i) && (is_seen(f->locals[i], 0) || (old != NULL && !fg_drop_is_trivial(old)));
        if (!exit->written[i] || f->locals[i] == NULL)
            continue;
        fg_trace_mark mark = fg_trace_mark_get(t);
        fg_flow flow = fg_materialise(t, f->locals[i], &exit->slots[i]);
        if (flow == FG_FLOW_BREAK) {
            fg_trace_rewind(t, mark);
            exit->slots[i] = FG_REG_NONE;
            exit->written[i] = 0;
        } else if (flow != FG_FLOW_OK) {
            return flow;
        }
    }
    return FG_FLOW_OK;
}

/* --- places */

static bool is_of(const fg_value *v, const fg_value *place, fg_accessor acc)
{
    return v != NULL && v->acc == (int8_t)acc && v->parent == place->node && place->node != FG_NODE_NONE;
}

fg_flow fg_drop_attr(fg_trace *t, fg_value *o, PyObject *name)
{
    Py_hash_t hash = PyObject_Hash(name);
    fg_vitem *item = fg_map_find(&o->map, name, hash);
    if (item != NULL)
        return is_of(item->value, o, FG_ACC_INSTANCE_ATTR) || is_of(item->value, o, FG_ACC_SLOT_ATTR) ? fg_drop(t, item->value)
                                                                                                      : FG_FLOW_OK;
    if (o->is_complete || o->node == FG_NODE_NONE || !fg_type_has_instance_dict(o->type))
        return FG_FLOW_OK;
    PyObject *real = NULL;
    if (fg_attr_find(o->real, name, hash, &real) == FG_FIND_UNDECIDED)
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of a %s with attribute names that are no plain strings", name,
                        o->type->tp_name);
    if (real == NULL || fg_drop_is_quiet(real))
        return fg_guard(t, FG_GUARD_ATTR_QUIET, o->node, name, 0, 0);
    return fg_drop(t, fg_value_lazy(t, FG_ACC_INSTANCE_ATTR, o->node, name, 0, real));
}

fg_flow fg_drop_item(fg_trace *t, fg_value *dict, PyObject *key)
{
    Py_hash_t hash = PyObject_Hash(key);
    fg_vitem *item = fg_map_find(&dict->map, key, hash);
    if (item != NULL)
        return is_of(item->value, dict, FG_ACC_DICT_ITEM) ? fg_drop(t, item->value) : FG_FLOW_OK;
    if (dict->is_complete || dict->node == FG_NODE_NONE)
        return FG_FLOW_OK;
    PyObject *real = NULL;
    if (fg_dict_find(dict->real, key, hash, &real) == FG_FIND_UNDECIDED)
        return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "a key of the dict has its own __eq__");
    if (real == NULL || fg_drop_is_quiet(real))
        return fg_guard(t, FG_GUARD_DICT_QUIET, dict->node, key, 0, 0);
    return fg_drop(t, fg_value_lazy(t, FG_ACC_DICT_ITEM, dict->node, key, 0, real));
}

fg_flow fg_drop_cell(fg_trace *t, fg_value *cell)
{
    return is_of(cell->a, cell, FG_ACC_CELL_CONTENTS) ? fg_drop(t, cell->a) : FG_FLOW_OK;
}

fg_flow fg_drop_element(fg_trace *t, fg_value *list, int64_t at)
{
    return is_of(list->items[at], list, FG_ACC_LIST_ITEM) ? fg_drop(t, list->items[at]) : FG_FLOW_OK;
}

fg_flow fg_drop_contents(fg_trace *t, fg_value *container)
{
    if (container->node == FG_NODE_NONE)
        return FG_FLOW_OK;
    if (!fg_drop_is_quiet(container->real))
        return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, reason, "part of a container");
    return fg_guard(t, FG_GUARD_QUIET, container->node, NULL, 0, 0);
}
