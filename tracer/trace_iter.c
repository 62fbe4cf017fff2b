/* Iterators made during the trace, over values whose elements are known. An iterator that has become a run-time object is not advanced any more. */
#include "runtime/cpython/iterators.h"
#include "tracer/trace_python.h"

#include <string.h>

static fg_flow iter_over(fg_trace *t, fg_iter_kind kind, fg_value *of, fg_value **out)
{
    fg_value *it = fg_value_new(t, FG_V_ITER);
    if (it == NULL)
        return FG_FLOW_ERROR;
    it->iter_kind = (uint8_t)kind;
    it->a = of;
    *out = it;
    return FG_FLOW_OK;
}

static fg_flow const_items(fg_trace *t, PyObject *real, fg_value **out)
{
    PyObject *all = fg_own(t, PySequence_Tuple(real));
    if (all == NULL)
        return FG_FLOW_ERROR;
    fg_value *seq = fg_value_seq(t, FG_V_TUPLE, NULL, 0);
    for (Py_ssize_t i = 0; seq && i < PyTuple_GET_SIZE(all); i++) {
        fg_value *item = fg_value_const(t, PyTuple_GET_ITEM(all, i));
        if (item == NULL)
            return FG_FLOW_ERROR;
        FG_DO(fg_seq_append(t, seq, item));
    }
    *out = seq;
    return seq ? FG_FLOW_OK : FG_FLOW_ERROR;
}

fg_flow fg_iter_new(fg_trace *t, fg_value *o, fg_value **out)
{
    FG_DO(fg_look(t, &o));
    switch ((fg_vkind)o->kind) {
    case FG_V_ITER: *out = o; return FG_FLOW_OK;
    case FG_V_LIST: FG_DO(fg_list_load(t, o)); return iter_over(t, FG_ITER_SEQ, o, out);
    case FG_V_TUPLE: return iter_over(t, FG_ITER_SEQ, o, out);
    case FG_V_DICT:
    case FG_V_VIEW: {
        if (fg_is_attrs(o))
            return fg_break(t, FG_BREAK_ITERATOR, "iteration over the __dict__ of a %s", o->a->type->tp_name);
        fg_value *dict = o->kind == FG_V_DICT ? o : o->a;
        FG_DO(fg_dict_load(t, dict));
        FG_DO(iter_over(t, FG_ITER_ITEMS, dict, out));
        (*out)->super_flag = o->kind == FG_V_DICT ? 0 : o->iter_kind;
        (*out)->b = o;
        (*out)->n = dict->map.n;
        (*out)->map = dict->map; /* the keys at the start */
        return FG_FLOW_OK;
    }
    case FG_V_SCALAR:
        FG_DO(fg_concrete(t, o));
        /* fall through */
    case FG_V_CONST:
        if (o->type == &PyRange_Type)
            return iter_over(t, FG_ITER_RANGE, o, out);
        if (PyTuple_Check(o->real) || PyUnicode_CheckExact(o->real) || PyBytes_CheckExact(o->real) || PyFrozenSet_CheckExact(o->real)) {
            fg_value *seq;
            if (!fg_is_fold_const(o->real))
                return fg_break(t, FG_BREAK_ITERATOR, "iteration over %s", o->type->tp_name);
            FG_DO(const_items(t, o->real, &seq));
            FG_DO(iter_over(t, FG_ITER_SEQ, seq, out));
            (*out)->b = o; /* what it is an iterator of at run time */
            return FG_FLOW_OK;
        }
        return fg_break(t, FG_BREAK_ITERATOR, "iteration over %s", o->type->tp_name);
    case FG_V_TENSOR: {
        fg_value **items;
        int32_t n;
        FG_DO(fg_tensor_length(t, o, &n));
        if (fg_tensor_library(o) ==
            FG_LIB_NUMPY) /* reads each element when it is asked for; torch makes all views at once, and a tuple of them */
            return iter_over(t, FG_ITER_ROWS, o, out);
        FG_DO(fg_tensor_rows(t, o, &items, &n));
        fg_value *seq = fg_value_seq(t, FG_V_TUPLE, items, n);
        return seq ? iter_over(t, FG_ITER_SEQ, seq, out) : FG_FLOW_ERROR;
    }
    case FG_V_OBJECT: {
        bool found;
        if (o->node != FG_NODE_NONE && !(o->type->tp_flags & Py_TPFLAGS_HEAPTYPE) && o->type->tp_iter == PyObject_SelfIter) {
            *out = o; /* it is its own, and stands where it stands */
            return FG_FLOW_OK;
        }
        FG_DO(fg_call_special(t, o, fg_names.s_iter, NULL, 0, out, &found));
        if (!found || (*out)->kind != FG_V_ITER)
            return fg_break(t, FG_BREAK_ITERATOR, "iteration over %s", o->type->tp_name);
        return FG_FLOW_OK;
    }
    default: return fg_break(t, FG_BREAK_ITERATOR, "iteration over %s", o->type ? o->type->tp_name : "a run-time object");
    }
}

static fg_flow next_item(fg_trace *t, fg_value *it, fg_value **out)
{
    fg_value *dict = it->a;
    if (dict->map.n != it->n || dict->map.n_removed != it->map.n_removed)
        return fg_break(t, FG_BREAK_RAISES, "dictionary changed during iteration");
    if (it->index >= it->n) {
        *out = NULL;
        return FG_FLOW_OK;
    }
    fg_vitem *item = &dict->map.items[it->index];
    fg_value *key = item->keyval ? item->keyval : fg_value_const(t, item->key);
    if (key == NULL)
        return FG_FLOW_ERROR;
    FG_SET(t, it->index, it->index + 1);
    if (it->super_flag == 0)
        *out = key;
    else if (it->super_flag == 1)
        *out = item->value;
    else
        *out = fg_value_seq(t, FG_V_TUPLE, (fg_value *[]){key, item->value}, 2);
    return *out ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static fg_flow next_zip(fg_trace *t, fg_value *it, fg_value **out)
{
    fg_value *row = fg_value_seq(t, FG_V_TUPLE, NULL, 0);
    if (row == NULL)
        return FG_FLOW_ERROR;
    *out = NULL;
    for (int32_t i = 0; i < it->n; i++) {
        fg_value *item;
        FG_DO(fg_iter_next(t, it->items[i], &item));
        if (item == NULL)
            return FG_FLOW_OK;
        FG_DO(fg_seq_append(t, row, item));
    }
    *out = it->n ? row : NULL;
    return FG_FLOW_OK;
}

static fg_flow next_map(fg_trace *t, fg_value *it, fg_value **out)
{
    fg_value **args = fg_arena_alloc(&t->arena, (size_t)(it->n + 1) * sizeof *args);
    if (args == NULL)
        return fg_nomem();
    for (int32_t i = 0; i < it->n; i++) {
        FG_DO(fg_iter_next(t, it->items[i], &args[i]));
        if (args[i] == NULL) {
            *out = NULL;
            return FG_FLOW_OK;
        }
    }
    return fg_call_now(t, it->a, args, it->n, NULL, out);
}

static fg_flow next_filter(fg_trace *t, fg_value *it, fg_value **out)
{
    for (;;) {
        fg_value *item, *verdict;
        bool keep;
        FG_DO(fg_iter_next(t, it->b, &item));
        if (item == NULL) {
            *out = NULL;
            return FG_FLOW_OK;
        }
        verdict = item;
        if (it->a != NULL)
            FG_DO(fg_call_now(t, it->a, &item, 1, NULL, &verdict));
        FG_DO(fg_truth(t, verdict, &keep));
        if (keep) {
            *out = item;
            return FG_FLOW_OK;
        }
    }
}

static fg_flow next_row(fg_trace *t, fg_value *it, fg_value **out)
{
    int32_t n;
    *out = NULL;
    FG_DO(fg_tensor_length(t, it->a, &n));
    if (it->index >= n)
        return FG_FLOW_OK;
    PyObject *index = fg_own(t, PyLong_FromLongLong(it->index));
    fg_value *key = index ? fg_value_const(t, index) : NULL;
    if (key == NULL)
        return FG_FLOW_ERROR;
    FG_SET(t, it->index, it->index + 1);
    return fg_tensor_subscr(t, it->a, key, out);
}

/* An IndexError or StopIteration of __getitem__ would be the end, so nothing in there may raise at run time. */
static fg_flow next_reversed(fg_trace *t, fg_value *it, fg_value **out)
{
    bool found;
    int32_t before = t->ir.n_steps;
    *out = NULL;
    if (it->index < 0)
        return FG_FLOW_OK;
    PyObject *index = fg_own(t, PyLong_FromLongLong(it->index));
    fg_value *key = index ? fg_value_const(t, index) : NULL;
    if (key == NULL)
        return FG_FLOW_ERROR;
    FG_SET(t, it->index, it->index - 1);
    fg_flow flow = fg_call_special(t, it->a, fg_names.s_getitem, &key, 1, out, &found);
    if (flow == FG_FLOW_RAISE || (flow == FG_FLOW_OK && (!found || t->ir.n_steps != before)))
        return fg_break(t, FG_BREAK_ITERATOR, "reversed() of a %s whose __getitem__ may raise", it->a->type->tp_name);
    return flow;
}

static fg_flow advance(fg_trace *t, fg_value *it, fg_value **out)
{
    fg_value *a = it->a;
    switch ((fg_iter_kind)it->iter_kind) {
    case FG_ITER_SEQ: *out = it->index < a->n ? a->items[it->index] : NULL; break;
    case FG_ITER_REVERSED:
        if (a->kind == FG_V_OBJECT)
            return next_reversed(t, it, out);
        *out = it->index >= 0 && it->index < a->n ? a->items[it->index] : NULL;
        FG_SET(t, it->index, it->index - 1);
        return FG_FLOW_OK;
    case FG_ITER_RANGE:
        if (it->index < PyObject_Size(a->real)) {
            PyObject *item = fg_own(t, PySequence_GetItem(a->real, (Py_ssize_t)it->index));
            if (item == NULL || (*out = fg_value_const(t, item)) == NULL)
                return FG_FLOW_ERROR;
        } else {
            PyErr_Clear();
            *out = NULL;
        }
        break;
    case FG_ITER_ROWS: return next_row(t, it, out);
    case FG_ITER_ITEMS: return next_item(t, it, out);
    case FG_ITER_ENUMERATE: {
        fg_value *item;
        FG_DO(fg_iter_next(t, a, &item));
        *out = NULL;
        if (item != NULL) {
            PyObject *count = fg_own(t, PyNumber_Add(it->b->real, fg_own(t, PyLong_FromLongLong(it->index))));
            fg_value *number = count ? fg_value_const(t, count) : NULL;
            if (number == NULL || (*out = fg_value_seq(t, FG_V_TUPLE, (fg_value *[]){number, item}, 2)) == NULL)
                return FG_FLOW_ERROR;
        }
        break;
    }
    case FG_ITER_ZIP: return next_zip(t, it, out);
    case FG_ITER_MAP: return next_map(t, it, out);
    case FG_ITER_FILTER: return next_filter(t, it, out);
    case FG_ITER_GENERATOR: return fg_trace_resume(t, it->frame, out);
    case FG_ITER_TOOL: return fg_itertool_next(t, it, out);
    }
    FG_SET(t, it->index, it->index + 1);
    return FG_FLOW_OK;
}

/* The iterator at run time goes on as well. */
static fg_flow emit_next(fg_trace *t, fg_value *it, fg_reg *result)
{
    static PyObject *next;
    fg_reg regs[3];
    if (next == NULL && (next = PyMapping_GetItemString(PyEval_GetBuiltins(), "next")) == NULL)
        return FG_FLOW_ERROR;
    if (!PyCFunction_CheckExact(next))
        return fg_break(t, FG_BREAK_ITERATOR, "builtins.next was replaced");
    regs[0] = fg_ir_reg_add(&t->ir, FG_REG_CONST, next);
    FG_DO(fg_materialise(t, it, &regs[1]));
    regs[2] = fg_ir_reg_add(&t->ir, FG_REG_CONST, Py_None);
    if (regs[0] == FG_REG_NONE || regs[2] == FG_REG_NONE)
        return fg_nomem();
    return fg_emit(t, FG_STEP_CALL, FG_SF_EFFECT, 0, NULL, NULL, regs, 3, result);
}

/* itertools.count by ones, before it leaves the machine's integers: what it gives is an int, whichever. */
static fg_flow next_count(fg_trace *t, fg_value *it, const fg_iterator *state, fg_value **out)
{
    fg_node number;
    fg_reg reg;
    int64_t value;
    if (__builtin_add_overflow(state->state[0], (int64_t)it->n, &value))
        return fg_break(t, FG_BREAK_ITERATOR, "a count that ends the machine's integers");
    PyObject *example = fg_own(t, PyLong_FromLongLong(value));
    if (example == NULL)
        return FG_FLOW_ERROR;
    FG_DO(fg_source(t, FG_ACC_ITER_PART, it->node, NULL, 0, &number));
    FG_DO(fg_guard(t, FG_GUARD_ABSENT, number, NULL, 0, 0));
    FG_DO(fg_mutate(t, it));
    FG_SET(t, it->n, it->n + 1);
    FG_DO(emit_next(t, it, &reg));
    return (*out = fg_value_step(t, FG_V_SCALAR, reg, &PyLong_Type, example)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

/* Where an iterator stands, as a fact: only while a function runs as a whole, and while calls find it at the same place. What moves on from call to call
 * would have a version for each place. */
static fg_flow stands_at(fg_trace *t, const fg_value *it, const fg_iterator *state)
{
    PyObject *place = fg_own(t, PyTuple_New(state->n_state));
    for (int i = 0; place != NULL && i < state->n_state; i++) {
        PyObject *number = PyLong_FromLongLong(state->state[i]);
        if (number == NULL)
            return FG_FLOW_ERROR;
        PyTuple_SET_ITEM(place, i, number);
    }
    if (place == NULL)
        return FG_FLOW_ERROR;
    bool moves = t->ir.start_pc >= 0;
    for (uint32_t i = 0; i < t->n_before && !moves; i++)
        moves = fg_desc_fixes_otherwise(t->before[i], t->desc, FG_GUARD_ITER_STATE, it->node, place);
    if (moves && it->type != &PyZip_Type) /* its state never changes */
        return fg_break(t, FG_BREAK_ITERATOR, "a %s that was there before and moves on", it->type->tp_name);
    return fg_guard(t, FG_GUARD_ITER_STATE, it->node, place, 0, 0);
}

static fg_flow give_number(fg_trace *t, int64_t n, fg_value **out)
{
    PyObject *number = fg_own(t, PyLong_FromLongLong(n));
    return number != NULL && (*out = fg_value_const(t, number)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static fg_flow peek_range(fg_trace *t, const fg_value *it, const fg_iterator *state, fg_value **out)
{
    *out = NULL;
    FG_DO(stands_at(t, it, state));
    return it->n < state->state[2] ? give_number(t, state->state[0] + it->n * state->state[1], out) : FG_FLOW_OK;
}

static fg_flow peek_sequence(fg_trace *t, fg_value *it, const fg_iterator *state, fg_value **out)
{
    fg_value *list;
    fg_node item;
    *out = NULL;
    if (it->super_flag)
        return FG_FLOW_OK;
    if (state->parts[0] == NULL) { /* it has let go of it */
        FG_DO(fg_source(t, FG_ACC_ITER_PART, it->node, NULL, 0, &item));
        return fg_guard(t, FG_GUARD_ABSENT, item, NULL, 0, 0);
    }
    if ((list = fg_value_lazy(t, FG_ACC_ITER_PART, it->node, NULL, 0, state->parts[0])) == NULL)
        return FG_FLOW_ERROR;
    FG_DO(fg_look(t, &list)); /* it is told apart from what the trace writes */
    if (list->is_mutated)
        return fg_break(t, FG_BREAK_ITERATOR, "an iterator over a list that was changed");
    PyObject *real = NULL;
    fg_find found = fg_iterator_item(it->real, it->n, &real);
    if (found == FG_FIND_UNDECIDED)
        return fg_break(t, FG_BREAK_ITERATOR, "an iterator that exists at run time");
    if (found == FG_FIND_FOUND) {
        if ((*out = fg_value_lazy(t, FG_ACC_ITER_ITEM, it->node, NULL, it->n, real)) == NULL)
            return FG_FLOW_ERROR;
        return fg_rely_on(t, *out);
    }
    FG_DO(fg_drop(t, list)); /* it lets go of it now */
    FG_DO(fg_source(t, FG_ACC_ITER_ITEM, it->node, NULL, it->n, &item));
    FG_DO(fg_guard(t, FG_GUARD_ABSENT, item, NULL, 0, 0));
    FG_SET(t, it->super_flag, 1);
    return FG_FLOW_OK;
}

static fg_flow peek(fg_trace *t, fg_value **pit, fg_value **out);

/* (number, item); the number is counted on only if there is an item. */
static fg_flow peek_enumerate(fg_trace *t, const fg_value *it, const fg_iterator *state, fg_value **out)
{
    fg_value *inner = fg_value_lazy(t, FG_ACC_ITER_PART, it->node, NULL, 0, state->parts[0]), *item, *number;
    int64_t n;
    *out = NULL;
    if (inner == NULL)
        return FG_FLOW_ERROR;
    FG_DO(stands_at(t, it, state));
    FG_DO(peek(t, &inner, &item));
    if (item == NULL)
        return FG_FLOW_OK;
    if (__builtin_add_overflow(state->state[0], (int64_t)it->n, &n))
        return fg_break(t, FG_BREAK_ITERATOR, "an enumerate that ends the machine's integers");
    FG_DO(give_number(t, n, &number));
    return (*out = fg_value_seq(t, FG_V_TUPLE, (fg_value *[]){number, item}, 2)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

/* One of each, up to the first that has none. */
static fg_flow peek_zip(fg_trace *t, const fg_value *it, const fg_iterator *state, fg_value **out)
{
    fg_value *inner = fg_value_lazy(t, FG_ACC_ITER_PART, it->node, NULL, 0, state->parts[0]), *row = fg_value_seq(t, FG_V_TUPLE, NULL, 0);
    *out = NULL;
    if (inner == NULL || row == NULL)
        return FG_FLOW_ERROR;
    FG_DO(stands_at(t, it, state));
    FG_DO(fg_look(t, &inner));
    if (inner->kind != FG_V_TUPLE)
        return fg_break(t, FG_BREAK_ITERATOR, "a zip of no tuple");
    for (int32_t i = 0; i < inner->n; i++) {
        fg_value *item;
        FG_DO(peek(t, &inner->items[i], &item));
        if (item == NULL && state->state[0])
            return fg_break(t, FG_BREAK_ITERATOR, "the end of a zip that is strict");
        if (item == NULL)
            return FG_FLOW_OK;
        FG_DO(fg_seq_append(t, row, item));
    }
    *out = inner->n > 0 ? row : NULL;
    return FG_FLOW_OK;
}

/* What an iterator that was there before gives next, as facts about it and what it goes over; *out NULL: it is exhausted. n in its value: how often it was
 * asked; super_flag: it is exhausted. Where one of a list or tuple stands is no fact, only what comes next. */
static fg_flow peek(fg_trace *t, fg_value **pit, fg_value **out)
{
    fg_iterator state;
    FG_DO(fg_deeper(t));
    FG_DO(fg_look(t, pit));
    fg_value *it = *pit;
    const PyTypeObject *type = it->type;
    if (it->kind != FG_V_OBJECT || it->node == FG_NODE_NONE || !fg_iterator_read(it->real, &state))
        return fg_break(t, FG_BREAK_ITERATOR, "a %s that was there before", type != NULL ? type->tp_name : "run-time iterator");
    if (type == &PyTupleIter_Type || type == &PyListIter_Type || type == &PyListRevIter_Type)
        FG_DO(peek_sequence(t, it, &state, out));
    else if (type == &PyRangeIter_Type)
        FG_DO(peek_range(t, it, &state, out));
    else if (type == &PyEnum_Type && state.parts[0] != NULL)
        FG_DO(peek_enumerate(t, it, &state, out));
    else if (type == &PyZip_Type && state.parts[0] != NULL)
        FG_DO(peek_zip(t, it, &state, out));
    else
        return fg_break(t, FG_BREAK_ITERATOR, "a %s that was there before", type->tp_name);
    FG_DO(fg_mutate(t, it));
    FG_SET(t, it->n, it->n + 1);
    return FG_FLOW_OK;
}

static fg_flow next_existing(fg_trace *t, fg_value *it, fg_value **out)
{
    fg_iterator state;
    fg_reg unused;
    FG_DO(fg_look(t, &it));
    if (it->kind == FG_V_OBJECT && it->node != FG_NODE_NONE && fg_is_count(it->real) && fg_iterator_read(it->real, &state) &&
        state.n_state == 1)
        return next_count(t, it, &state, out);
    FG_DO(peek(t, &it, out));
    return emit_next(t, it, &unused);
}

fg_flow fg_iter_next(fg_trace *t, fg_value *it, fg_value **out)
{
    FG_DO(fg_deeper(t));
    if (it->kind != FG_V_ITER)
        return next_existing(t, it, out);
    bool is_there = it->reg != FG_REG_NONE; /* it was built, and goes on with it */
    if (is_there && it->iter_kind != FG_ITER_SEQ && it->iter_kind != FG_ITER_RANGE && it->iter_kind != FG_ITER_REVERSED)
        return fg_break(t, FG_BREAK_ITERATOR, "an iterator that exists at run time");
    if (it->is_complete) {
        *out = NULL; /* exhausted once, exhausted for good */
        return FG_FLOW_OK;
    }
    FG_DO(advance(t, it, out));
    fg_reg unused;
    if (is_there)
        FG_DO(emit_next(t, it, &unused));
    bool asks_others = it->iter_kind == FG_ITER_ENUMERATE || it->iter_kind == FG_ITER_ZIP || it->iter_kind == FG_ITER_MAP ||
                       it->iter_kind == FG_ITER_FILTER || it->iter_kind == FG_ITER_TOOL; /* each time again */
    if (*out == NULL && !asks_others)
        FG_SET(t, it->is_complete, 1);
    return FG_FLOW_OK;
}

static fg_flow call_const(fg_trace *t, PyObject *callable, const fg_reg *args, int32_t n, fg_reg *out)
{
    fg_reg regs[4];
    if ((regs[0] = fg_ir_reg_add(&t->ir, FG_REG_CONST, callable)) == FG_REG_NONE)
        return fg_nomem();
    memcpy(regs + 1, args, (size_t)n * sizeof *args);
    return fg_emit(t, FG_STEP_CALL, 0, 0, NULL, NULL, regs, n + 1, out);
}

/* An iterator that is exhausted has let go of its sequence: it becomes one over an empty sequence of the same type. */
static fg_flow empty_sequence(fg_trace *t, const fg_value *of, fg_value **out)
{
    PyTypeObject *type = of->kind == FG_V_LIST ? &PyList_Type : of->kind == FG_V_TUPLE ? &PyTuple_Type : of->type;
    if (type == &PyList_Type)
        return (*out = fg_value_seq(t, FG_V_LIST, NULL, 0)) ? FG_FLOW_OK : FG_FLOW_ERROR;
    PyObject *empty = type == &PyRange_Type ? PyObject_CallFunction((PyObject *)type, "i", 0) : PyObject_CallNoArgs((PyObject *)type);
    return fg_own(t, empty) && (*out = fg_value_const(t, empty)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static fg_flow sequence_iterator(fg_trace *t, fg_value *it, PyObject *iter, fg_reg *reg)
{
    fg_value *of = it->b != NULL ? it->b : it->a;
    fg_reg seq, state[2], unused;
    bool is_empty = it->is_complete && it->iter_kind != FG_ITER_ROWS; /* of an array the state says it */
    if (is_empty)
        FG_DO(empty_sequence(t, of, &of));
    FG_DO(fg_materialise(t, of, &seq));
    FG_DO(call_const(t, it->iter_kind == FG_ITER_REVERSED ? (PyObject *)&PyReversed_Type : iter, &seq, 1, reg));
    if ((it->index == 0 && it->iter_kind != FG_ITER_REVERSED) || is_empty)
        return FG_FLOW_OK;
    if (of->kind == FG_V_CONST && PyFrozenSet_CheckExact(of->real)) {
        for (int64_t i = 0; i < it->index; i++)
            FG_DO(fg_emit(t, FG_STEP_CALL_METHOD, FG_SF_EFFECT, 0, fg_names.s_next, NULL, reg, 1, &unused));
        return FG_FLOW_OK;
    }
    PyObject *index = fg_own(t, PyLong_FromLongLong(it->index));
    state[0] = *reg;
    if (index == NULL || (state[1] = fg_ir_reg_add(&t->ir, FG_REG_CONST, index)) == FG_REG_NONE)
        return fg_nomem();
    return fg_emit(t, FG_STEP_CALL_METHOD, FG_SF_EFFECT, 0, fg_names.s_setstate, NULL, state, 2, &unused);
}

fg_flow fg_iter_materialise(fg_trace *t, fg_value *it, fg_reg *reg)
{
    PyObject *builtins = PyEval_GetBuiltins(), *iter = PyDict_GetItemString(builtins, "iter");
    if (iter == NULL || !PyCFunction_Check(iter))
        return fg_break(t, FG_BREAK_ITERATOR, "builtins.iter was replaced");
    switch ((fg_iter_kind)it->iter_kind) {
    case FG_ITER_SEQ:
    case FG_ITER_RANGE:
    case FG_ITER_ROWS:
    case FG_ITER_REVERSED:
        if (it->a->kind == FG_V_OBJECT) /* making one asks for the length again */
            return fg_break(t, FG_BREAK_ITERATOR, "reversed() of a %s that lives on", it->a->type->tp_name);
        return sequence_iterator(t, it, iter, reg);
    case FG_ITER_ITEMS: {
        fg_reg view, unused;
        if (it->is_complete)
            return fg_break(t, FG_BREAK_ITERATOR, "an exhausted iterator over a dict");
        if (it->a->map.n != it->n ||
            it->a->map.n_removed !=
                it->map.n_removed) /* it would see the change from its start: a new iterator could not say what the old one has to */
            return fg_break(t, FG_BREAK_ITERATOR, "an iterator over a dict that was changed since");
        FG_DO(fg_materialise(t, it->b, &view));
        FG_DO(call_const(t, iter, &view, 1, reg));
        for (int64_t i = 0; i < it->index; i++)
            FG_DO(fg_emit(t, FG_STEP_CALL_METHOD, FG_SF_EFFECT, 0, fg_names.s_next, NULL, reg, 1, &unused));
        return FG_FLOW_OK;
    }
    case FG_ITER_ENUMERATE: {
        fg_reg regs[2];
        FG_DO(fg_materialise(t, it->a, &regs[0]));
        PyObject *count = fg_own(t, PyNumber_Add(it->b->real, fg_own(t, PyLong_FromLongLong(it->index))));
        if (count == NULL || (regs[1] = fg_ir_reg_add(&t->ir, FG_REG_CONST, count)) == FG_REG_NONE)
            return fg_nomem();
        return call_const(t, (PyObject *)&PyEnum_Type, regs, 2, reg);
    }
    case FG_ITER_ZIP: {
        fg_reg *regs = fg_arena_alloc(&t->arena, (size_t)(it->n + 1) * sizeof *regs);
        if (regs == NULL)
            return fg_nomem();
        if ((regs[0] = fg_ir_reg_add(&t->ir, FG_REG_CONST, (PyObject *)&PyZip_Type)) == FG_REG_NONE)
            return fg_nomem();
        for (int32_t i = 0; i < it->n; i++)
            FG_DO(fg_materialise(t, it->items[i], &regs[i + 1]));
        return fg_emit(t, FG_STEP_CALL, 0, 0, NULL, NULL, regs, it->n + 1, reg);
    }
    case FG_ITER_TOOL: return fg_itertool_materialise(t, it, reg);
    default: return fg_break(t, FG_BREAK_ITERATOR, "iterator");
    }
}

fg_flow fg_iter_over(fg_trace *t, fg_value *o, fg_value **it)
{
    fg_value **rows;
    int32_t n;
    FG_DO(fg_look(t, &o));
    if (o->kind == FG_V_TENSOR) {
        FG_DO(fg_tensor_rows(t, o, &rows, &n));
        if ((o = fg_value_seq(t, FG_V_TUPLE, rows, n)) == NULL)
            return FG_FLOW_ERROR;
    }
    return fg_iter_new(t, o, it);
}
