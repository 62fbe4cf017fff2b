/* Builtin functions and types that are known: one row each. Everything here is either decided now from guarded values or becomes a step. */
#include "tracer/trace_python.h"

#include <string.h>

typedef struct fg_bargs {
    fg_value **v;
    int32_t n; /* all */
    int32_t npos;
    PyObject *kwnames; /* NULL: none */
    PyObject *callable;
} fg_bargs;

typedef fg_flow (*builtin_body)(fg_trace *t, const fg_bargs *a, fg_value **out);

static fg_flow give(fg_trace *t, FG_STEALS PyObject *object, fg_value **out)
{
    return fg_own(t, object) && (*out = fg_value_const(t, object)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static fg_flow give_bool(fg_trace *t, bool value, fg_value **out)
{
    return (*out = fg_value_const(t, value ? Py_True : Py_False)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static fg_flow unsupported(fg_trace *t, const fg_bargs *a)
{
    PyObject *name = fg_own(t, fg_py_callable_name(a->callable));
    return name ? fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%U with these arguments", name) : FG_FLOW_ERROR;
}

static fg_value *keyword(const fg_bargs *a, const char *name)
{
    for (int32_t i = a->npos; i < a->n; i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(a->kwnames, i - a->npos), name) == 0)
            return a->v[i];
    return NULL;
}

static fg_flow b_len(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    int64_t n;
    FG_DO(fg_len(t, a->v[0]->kind == FG_V_VIEW && !fg_is_attrs(a->v[0]) ? a->v[0]->a : a->v[0], &n));
    return give(t, PyLong_FromLongLong(n), out);
}

static fg_flow b_range(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    PyObject *parts[3];
    for (int32_t i = 0; i < a->n; i++) {
        int64_t unused;
        FG_DO(fg_index_value(t, a->v[i], &unused));
        parts[i] = a->v[i]->real;
    }
    PyObject *range = PyObject_Vectorcall((PyObject *)&PyRange_Type, parts, (size_t)a->n, NULL);
    return range ? give(t, range, out) : fg_break_on_error(t, FG_BREAK_RAISES, "range");
}

static fg_flow text_of_none(fg_trace *t, fg_value **out)
{
    PyObject *text = PyObject_Str(Py_None);
    return text ? give(t, text, out) : FG_FLOW_ERROR;
}

static fg_flow b_scalar(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    for (int32_t i = 0; i < a->n; i++)
        if (!fg_is_scalar(a->v[i])) {
            if (a->n == 1 && fg_is_exception(a->v[0]) && a->callable == (PyObject *)&PyUnicode_Type)
                return fg_exception_text(t, a->v[0], 1, out);
            if (a->n == 1 && a->callable == (PyObject *)&PyUnicode_Type && a->v[0]->kind == FG_V_CONST && a->v[0]->real == Py_None)
                return text_of_none(t, out);
            if (a->n == 1 && a->v[0]->kind == FG_V_CONST && PyType_Check(a->v[0]->real) &&
                (a->callable == (PyObject *)&PyUnicode_Type ||
                 (PyCFunction_Check(a->callable) && strcmp(((PyCFunctionObject *)a->callable)->m_ml->ml_name, "repr") == 0)))
                return fg_convert_value(t, a->v[0], 1, out);
            if (a->n == 1 && fg_is_exception(a->v[0]) && PyType_Check(a->callable) == 0)
                return fg_convert_value(t, a->v[0], 2, out);
            if (a->n == 1 && a->v[0]->kind == FG_V_TENSOR &&
                (a->callable == (PyObject *)&PyFloat_Type || a->callable == (PyObject *)&PyLong_Type) && !fg_is_covered(t)) {
                fg_reg regs[2], reg;
                if ((regs[0] = fg_ir_reg_add(&t->ir, FG_REG_CONST, a->callable)) == FG_REG_NONE)
                    return fg_nomem();
                FG_DO(fg_materialise(t, a->v[0], &regs[1]));
                FG_DO(fg_emit(t, FG_STEP_CALL, FG_SF_RAISES, 0, NULL, NULL, regs, 2, &reg));
                return (*out = fg_value_step(t, FG_V_SCALAR, reg, (PyTypeObject *)a->callable, NULL)) ? FG_FLOW_OK : FG_FLOW_ERROR;
            }
            return unsupported(t, a);
        }
    if (a->n == 0) {
        PyObject *empty = PyObject_CallNoArgs(a->callable);
        return empty ? give(t, empty, out) : fg_break_on_error(t, FG_BREAK_RAISES, "call");
    }
    return fg_scalar_call(t, a->callable, a->v, a->n, out);
}

static fg_flow b_bool(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    bool truth;
    if (a->n == 1 && a->v[0]->kind == FG_V_SCALAR)
        return fg_scalar_call(t, a->callable, a->v, 1, out);
    if (a->n == 0)
        return give_bool(t, false, out);
    FG_DO(fg_truth(t, a->v[0], &truth));
    return give_bool(t, truth, out);
}

/* math.* of scalars: a step of the type that the example has, or a constant. */
static fg_flow b_math(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    PyObject *stack[4] = {NULL};
    bool all_const = true;
    if (a->n > 4)
        return unsupported(t, a);
    for (int32_t i = 0; i < a->n; i++) {
        if (!fg_is_scalar(a->v[i]) || a->v[i]->real == NULL)
            return unsupported(t, a);
        all_const &= a->v[i]->kind == FG_V_CONST;
        stack[i] = a->v[i]->real;
    }
    if (!all_const && (t->opaque || fg_is_covered(t)))
        for (int32_t i = 0; i < a->n; i++)
            FG_DO(fg_concrete(t, a->v[i]));
    PyObject *example = PyObject_Vectorcall(a->callable, stack, (size_t)a->n, NULL);
    if (example == NULL)
        return all_const ? fg_raise_error(t, "math") : fg_break_on_error(t, FG_BREAK_RAISES, "math");
    if (all_const || t->opaque || fg_is_covered(t))
        return give(t, example, out);
    if (fg_own(t, example) == NULL)
        return FG_FLOW_ERROR;
    if (!PyFloat_CheckExact(example)) { /* its type may depend on the value */
        for (int32_t i = 0; i < a->n; i++)
            FG_DO(fg_concrete(t, a->v[i]));
        return (*out = fg_value_const(t, example)) ? FG_FLOW_OK : FG_FLOW_ERROR;
    }
    fg_reg regs[5], reg;
    if ((regs[0] = fg_ir_reg_add(&t->ir, FG_REG_CONST, a->callable)) == FG_REG_NONE)
        return fg_nomem();
    for (int32_t i = 0; i < a->n; i++)
        FG_DO(fg_materialise(t, a->v[i], &regs[i + 1]));
    FG_DO(fg_emit(t, FG_STEP_CALL, FG_SF_RAISES, 0, NULL, NULL, regs, a->n + 1, &reg));
    fg_value *v = fg_value_step(t, FG_V_SCALAR, reg, &PyFloat_Type, example);
    if (v == NULL || (v->items = fg_arena_alloc(&t->arena, (size_t)(a->n + 1) * sizeof *v->items)) == NULL)
        return fg_nomem();
    memcpy(v->items, a->v, (size_t)a->n * sizeof *v->items);
    v->n = v->cap = a->n;
    *out = v;
    return FG_FLOW_OK;
}

/* --- types */

static fg_flow b_isinstance(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    bool yes;
    FG_DO(fg_isinstance(t, a->v[0], a->v[1], &yes));
    return give_bool(t, yes, out);
}

static fg_flow b_issubclass(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    bool yes;
    FG_DO(fg_issubclass(t, a->v[0], a->v[1], &yes));
    return give_bool(t, yes, out);
}

/* What abc.ABCMeta asks in C. */
static fg_flow b_abc(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    bool yes;
    if (a->n != 2)
        return unsupported(t, a);
    FG_DO(fg_abc_check(t, a->callable, a->v[0], a->v[1], &yes));
    return give_bool(t, yes, out);
}

static fg_flow b_type(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    PyTypeObject *type = NULL;
    if (a->v[0]->kind == FG_V_OBJECT)
        return fg_object_type(t, a->v[0], out);
    FG_DO(fg_runtime_type(t, a->v[0], &type));
    return (*out = fg_value_const(t, (PyObject *)type)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static fg_flow b_callable(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    fg_value *v = a->v[0];
    if (v->kind == FG_V_OPAQUE || (v->kind == FG_V_OBJECT && v->node == FG_NODE_NONE))
        return unsupported(t, a);
    if (v->kind == FG_V_FUNC || v->kind == FG_V_METHOD)
        return give_bool(t, true, out);
    return give_bool(t, v->real != NULL && PyCallable_Check(v->real), out);
}

/* --- iterables */

static fg_flow b_list(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    fg_value **items = NULL;
    int32_t n = 0;
    fg_vkind kind = a->callable == (PyObject *)&PyList_Type ? FG_V_LIST : FG_V_TUPLE;
    if (a->n == 1 && kind == FG_V_TUPLE && a->v[0]->kind == FG_V_TUPLE && a->v[0]->type == &PyTuple_Type) {
        *out = a->v[0];
        return FG_FLOW_OK;
    }
    if (a->n == 1)
        FG_DO(fg_iterate(t, a->v[0], &items, &n));
    return (*out = fg_value_seq(t, kind, items, n)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static fg_flow b_set(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    fg_value *it, *item, *unused;
    PyObject *add = fg_own(t, PyUnicode_InternFromString("add"));
    if (add == NULL || (*out = fg_value_seq(t, FG_V_SET, NULL, 0)) == NULL)
        return FG_FLOW_ERROR;
    if (a->n == 0)
        return FG_FLOW_OK;
    FG_DO(fg_iter_over(t, a->v[0], &it));
    for (;;) {
        FG_DO(fg_iter_next(t, it, &item));
        if (item == NULL)
            return FG_FLOW_OK;
        FG_DO(fg_container_method(t, *out, add, &item, 1, NULL, &unused));
    }
}

static fg_flow b_dict(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    fg_value *dict = fg_value_new(t, FG_V_DICT), *unused, *key;
    if (dict == NULL)
        return FG_FLOW_ERROR;
    dict->is_complete = 1;
    dict->type = &PyDict_Type;
    if (a->npos == 1 && a->v[0]->kind == FG_V_DICT) {
        PyObject *update = fg_own(t, PyUnicode_InternFromString("update"));
        if (update == NULL)
            return FG_FLOW_ERROR;
        FG_DO(fg_container_method(t, dict, update, a->v, 1, NULL, &unused));
    } else if (a->npos == 1) {
        fg_value *it, *item, *pair[2];
        FG_DO(fg_iter_over(t, a->v[0], &it));
        for (;;) {
            FG_DO(fg_iter_next(t, it, &item));
            if (item == NULL)
                break;
            FG_DO(fg_unpack(t, item, 2, pair));
            FG_DO(fg_look(t, &pair[0]));
            FG_DO(fg_dict_set(t, dict, pair[0], pair[1]));
        }
    }
    for (int32_t i = a->npos; i < a->n; i++) {
        if ((key = fg_value_const(t, PyTuple_GET_ITEM(a->kwnames, i - a->npos))) == NULL)
            return FG_FLOW_ERROR;
        FG_DO(fg_dict_set(t, dict, key, a->v[i]));
    }
    *out = dict;
    return FG_FLOW_OK;
}

static fg_flow b_iter(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    return fg_iter_new(t, a->v[0], out);
}

static fg_flow raise_stop(fg_trace *t, const fg_value *it)
{
    if (it->iter_kind == FG_ITER_GENERATOR && it->frame->yielded != NULL &&
        !(it->frame->yielded->kind == FG_V_CONST && it->frame->yielded->real == Py_None))
        return fg_break(t, FG_BREAK_RAISES, "StopIteration with a value");
    PyErr_SetNone(PyExc_StopIteration);
    return fg_raise_error(t, "StopIteration");
}

static fg_flow b_next(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    FG_DO(fg_iter_next(t, a->v[0], out));
    if (*out != NULL)
        return FG_FLOW_OK;
    if (a->n == 1)
        return raise_stop(t, a->v[0]);
    *out = a->v[1];
    return FG_FLOW_OK;
}

static fg_flow new_iter(fg_trace *t, fg_iter_kind kind, PyTypeObject *type, fg_value **out)
{
    if ((*out = fg_value_new(t, FG_V_ITER)) == NULL)
        return FG_FLOW_ERROR;
    (*out)->iter_kind = (uint8_t)kind;
    (*out)->type = type;
    return FG_FLOW_OK;
}

static fg_flow b_enumerate(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    fg_value *start = a->npos == 2 ? a->v[1] : keyword(a, "start"), *inner;
    if (start == NULL && a->n != 1)
        return unsupported(t, a);
    if (start == NULL && (start = fg_value_const(t, fg_own(t, PyLong_FromLong(0)))) == NULL)
        return FG_FLOW_ERROR;
    int64_t unused;
    FG_DO(fg_index_value(t, start, &unused));
    FG_DO(fg_iter_new(t, a->v[0], &inner));
    FG_DO(new_iter(t, FG_ITER_ENUMERATE, &PyEnum_Type, out));
    (*out)->a = inner;
    (*out)->b = start;
    return FG_FLOW_OK;
}

static fg_flow b_zip(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    if (a->n != a->npos)
        return unsupported(t, a);
    FG_DO(new_iter(t, FG_ITER_ZIP, &PyZip_Type, out));
    fg_value *zip = *out;
    if ((zip->items = fg_arena_alloc(&t->arena, (size_t)(a->n + 1) * sizeof *zip->items)) == NULL)
        return fg_nomem();
    for (int32_t i = 0; i < a->n; i++)
        FG_DO(fg_iter_new(t, a->v[i], &zip->items[i]));
    zip->n = a->n;
    return FG_FLOW_OK;
}

/* By its own __reversed__, or by length and index from the end: each element is asked for when it is its turn. */
static fg_flow reversed_object(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    fg_value *v = a->v[0], *type, *getitem;
    int64_t n;
    bool found;
    if (fg_is_old_set(v) || v->type == &PyODict_Type)
        return unsupported(t, a);
    FG_DO(fg_call_special(t, v, fg_names.s_reversed, NULL, 0, out, &found));
    if (found)
        return FG_FLOW_OK;
    FG_DO(fg_object_type(t, v, &type));
    FG_DO(fg_type_lookup(t, type, v->type, fg_names.s_getitem, &getitem));
    if (getitem == NULL)
        return unsupported(t, a);
    FG_DO(fg_len(t, v, &n));
    if (n > INT32_MAX)
        return unsupported(t, a);
    FG_DO(new_iter(t, FG_ITER_REVERSED, &PyReversed_Type, out));
    (*out)->a = v;
    (*out)->index = n - 1;
    return FG_FLOW_OK;
}

static fg_flow b_reversed(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    fg_value *v = a->v[0], **items;
    int32_t n;
    if (v->kind == FG_V_OBJECT)
        return reversed_object(t, a, out);
    if (v->kind != FG_V_LIST && v->kind != FG_V_TUPLE &&
        !(v->kind == FG_V_CONST && (PyTuple_CheckExact(v->real) || v->type == &PyRange_Type)))
        return unsupported(t, a);
    if (v->type == &PyRange_Type) {
        PyObject *slice = fg_own(t, PySlice_New(NULL, NULL, fg_own(t, PyLong_FromLong(-1))));
        PyObject *backwards = slice ? fg_own(t, PyObject_GetItem(v->real, slice)) : NULL;
        fg_value *range = backwards ? fg_value_const(t, backwards) : NULL;
        return range ? fg_iter_new(t, range, out) : FG_FLOW_ERROR;
    }
    FG_DO(fg_iterate(t, v, &items, &n));
    FG_DO(new_iter(t, FG_ITER_REVERSED, v->kind == FG_V_LIST ? &PyListRevIter_Type : &PyReversed_Type, out));
    (*out)->a = v->kind == FG_V_CONST ? fg_value_seq(t, FG_V_TUPLE, items, n) : v;
    (*out)->index = n - 1;
    return (*out)->a ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static fg_flow b_sorted(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    fg_value *key = keyword(a, "key"), *reverse = keyword(a, "reverse"), **items;
    int32_t n;
    bool backwards = false;
    if (a->npos != 1)
        return unsupported(t, a);
    if (reverse != NULL)
        FG_DO(fg_truth(t, reverse, &backwards));
    FG_DO(fg_iterate(t, a->v[0], &items, &n));
    if (key == NULL || (key->kind == FG_V_CONST && key->real == Py_None))
        return fg_sorted(t, items, n, NULL, backwards, out);
    fg_value **keys = fg_arena_alloc(&t->arena, (size_t)(n + 1) * sizeof *keys);
    if (keys == NULL)
        return fg_nomem();
    for (int32_t i = 0; i < n; i++)
        FG_DO(fg_call_now(t, key, &items[i], 1, NULL, &keys[i]));
    return fg_sorted(t, items, n, keys, backwards, out);
}

static fg_flow b_sum(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    fg_value *it, *item, *start = a->npos == 2 ? a->v[1] : keyword(a, "start"), *total;
    if (start == NULL && a->n != 1)
        return unsupported(t, a);
    FG_DO(fg_iter_over(t, a->v[0], &it));
    if (start == NULL && (start = fg_value_const(t, fg_own(t, PyLong_FromLong(0)))) == NULL)
        return FG_FLOW_ERROR;
    if (start->type == &PyUnicode_Type || start->type == &PyBytes_Type)
        return fg_break(t, FG_BREAK_RAISES, "sum of strings");
    total = start;
    for (;;) {
        fg_tframe *before = t->frame;
        FG_DO(fg_iter_next(t, it, &item));
        if (item == NULL)
            break;
        FG_DO(fg_look(t, &item));
        if (item->kind == FG_V_OBJECT)
            return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "sum of %s objects", item->type->tp_name);
        FG_DO(fg_binary(t, 0, total, item, &total));
        if (t->frame != before)
            return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "sum");
    }
    *out = total;
    return FG_FLOW_OK;
}

/* One element at a time: what comes after the deciding one is never computed. */
static fg_flow b_any_all(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    fg_value *it, *item;
    PyObject *name = fg_own(t, fg_py_callable_name(a->callable));
    if (name == NULL)
        return FG_FLOW_ERROR;
    bool all = PyUnicode_CompareWithASCIIString(name, "all") == 0, truth;
    FG_DO(fg_iter_new(t, a->v[0], &it));
    for (;;) {
        FG_DO(fg_iter_next(t, it, &item));
        if (item == NULL)
            return give_bool(t, all, out);
        FG_DO(fg_truth(t, item, &truth));
        if (truth != all)
            return give_bool(t, truth, out);
    }
}

static fg_flow b_min_max(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    fg_value **items = a->v;
    int32_t n = a->n;
    if (a->n != a->npos)
        return unsupported(t, a);
    if (a->n == 1)
        FG_DO(fg_iterate(t, a->v[0], &items, &n));
    if (n == 0)
        return fg_break(t, FG_BREAK_RAISES, "min or max of nothing");
    PyObject *reals = fg_own(t, PyTuple_New(n));
    if (reals == NULL)
        return FG_FLOW_ERROR;
    fg_value *seq = fg_value_seq(t, FG_V_TUPLE, items, n);
    if (seq == NULL)
        return FG_FLOW_ERROR;
    for (int32_t i = 0; i < n; i++) {
        FG_DO(fg_look(t, &seq->items[i]));
        if (!fg_is_scalar(seq->items[i]))
            return unsupported(t, a);
        FG_DO(fg_concrete(t, seq->items[i]));
        PyTuple_SET_ITEM(reals, i, Py_NewRef(seq->items[i]->real));
    }
    PyObject *best = PyObject_CallOneArg(a->callable, reals);
    if (best == NULL)
        return fg_break_on_error(t, FG_BREAK_RAISES, "min or max");
    for (int32_t i = 0; i < n; i++)
        if (seq->items[i]->real == best) {
            Py_DECREF(best);
            *out = seq->items[i];
            return FG_FLOW_OK;
        }
    return give(t, best, out);
}

static fg_flow b_map(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    fg_value **items = fg_arena_alloc(&t->arena, (size_t)a->n * sizeof *items);
    if (items == NULL)
        return fg_nomem();
    for (int32_t i = 1; i < a->n; i++)
        FG_DO(fg_iter_new(t, a->v[i], &items[i - 1]));
    FG_DO(new_iter(t, FG_ITER_MAP, &PyMap_Type, out));
    (*out)->a = a->v[0];
    (*out)->items = items;
    (*out)->n = a->n - 1;
    return FG_FLOW_OK;
}

static fg_flow b_filter(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    fg_value *inner;
    FG_DO(fg_iter_new(t, a->v[1], &inner));
    FG_DO(new_iter(t, FG_ITER_FILTER, &PyFilter_Type, out));
    (*out)->a = a->v[0]->kind == FG_V_CONST && a->v[0]->real == Py_None ? NULL : a->v[0];
    (*out)->b = inner;
    return FG_FLOW_OK;
}

/* --- attributes */

static fg_flow attr_name(fg_trace *t, fg_value *v, PyObject **name)
{
    if (v->kind != FG_V_SCALAR && v->kind != FG_V_CONST)
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "attribute name");
    FG_DO(fg_concrete(t, v));
    if (!PyUnicode_CheckExact(v->real))
        return fg_break(t, FG_BREAK_RAISES, "attribute name must be string");
    PyObject *text = Py_NewRef(v->real);
    PyUnicode_InternInPlace(&text);
    *name = fg_own(t, text);
    return *name ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static fg_flow b_getattr(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    PyObject *name = NULL;
    FG_DO(attr_name(t, a->v[1], &name));
    if (a->n == 2)
        return fg_attr_load(t, a->v[0], name, out);
    FG_DO(fg_attr_lookup(t, a->v[0], name, out));
    if (*out == NULL)
        *out = a->v[2];
    return FG_FLOW_OK;
}

static fg_flow b_hasattr(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    PyObject *name = NULL;
    fg_value *seen;
    FG_DO(attr_name(t, a->v[1], &name));
    FG_DO(fg_attr_lookup(t, a->v[0], name, &seen));
    return give_bool(t, seen != NULL, out);
}

static fg_flow b_setattr(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    PyObject *name = NULL;
    fg_tframe *before = t->frame;
    FG_DO(attr_name(t, a->v[1], &name));
    FG_DO(fg_attr_store(t, a->v[0], name, a->v[2]));
    if (t->frame != before)
        return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "setattr of a property");
    return (*out = fg_value_const(t, Py_None)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static fg_flow b_vars(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    if (a->v[0]->kind != FG_V_OBJECT || a->v[0]->type == &PyModule_Type)
        return unsupported(t, a);
    FG_DO(fg_attr_lookup(t, a->v[0], fg_names.s_dict, out));
    return *out != NULL ? FG_FLOW_OK : fg_break(t, FG_BREAK_RAISES, "vars() argument must have __dict__ attribute");
}

static fg_flow b_slice(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    fg_value *none = fg_value_const(t, Py_None), *parts[3] = {none, none, none};
    if (none == NULL)
        return FG_FLOW_ERROR;
    if (a->n == 1)
        parts[1] = a->v[0];
    else
        memcpy(parts, a->v, (size_t)a->n * sizeof *parts);
    return (*out = fg_value_seq(t, FG_V_SLICE, parts, 3)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static fg_flow b_object(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    fg_reg f, reg;
    if ((f = fg_ir_reg_add(&t->ir, FG_REG_CONST, a->callable)) == FG_REG_NONE)
        return fg_nomem();
    FG_DO(fg_emit(t, FG_STEP_CALL, 0, 0, NULL, NULL, &f, 1, &reg));
    return (*out = fg_value_step(t, FG_V_OPAQUE, reg, &PyBaseObject_Type, NULL)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

/* --- operator.* */

static fg_flow b_operator(fg_trace *t, const fg_bargs *a, fg_value **out)
{
    static const struct {
        const char *name;
        int op;
    } binary[] = {{"add", 0},  {"and_", 1},  {"floordiv", 2}, {"lshift", 3}, {"matmul", 4},   {"mul", 5},
                  {"mod", 6},  {"or_", 7},   {"pow", 8},      {"rshift", 9}, {"sub", 10},     {"truediv", 11},
                  {"xor", 12}, {"iadd", 13}, {"imul", 18},    {"isub", 23},  {"itruediv", 24}};
    static const struct {
        const char *name;
        int op;
    } compare[] = {{"lt", 0}, {"le", 1}, {"eq", 2}, {"ne", 3}, {"gt", 4}, {"ge", 5}};
    PyObject *name = fg_own(t, PyObject_GetAttr(a->callable, fg_names.s_name));
    if (name == NULL)
        return FG_FLOW_ERROR;
    for (size_t i = 0; a->n == 2 && i < sizeof binary / sizeof *binary; i++)
        if (PyUnicode_CompareWithASCIIString(name, binary[i].name) == 0)
            return fg_binary(t, binary[i].op, a->v[0], a->v[1], out);
    for (size_t i = 0; a->n == 2 && i < sizeof compare / sizeof *compare; i++)
        if (PyUnicode_CompareWithASCIIString(name, compare[i].name) == 0)
            return fg_compare(t, compare[i].op, a->v[0], a->v[1], out);
    if (a->n == 2 && PyUnicode_CompareWithASCIIString(name, "getitem") == 0)
        return fg_subscr(t, a->v[0], a->v[1], out);
    return unsupported(t, a);
}

static const struct builtin_row {
    const char *name;
    int min, max;
    bool keywords;
    builtin_body body;
} rows[] = {
    {"len", 1, 1, false, b_len},
    {"range", 1, 3, false, b_range},
    {"isinstance", 2, 2, false, b_isinstance},
    {"issubclass", 2, 2, false, b_issubclass},
    {"type", 1, 1, false, b_type},
    {"callable", 1, 1, false, b_callable},
    {"int", 0, 2, false, b_scalar},
    {"float", 0, 1, false, b_scalar},
    {"str", 0, 1, false, b_scalar},
    {"complex", 0, 2, false, b_scalar},
    {"abs", 1, 1, false, b_scalar},
    {"round", 1, 2, false, b_scalar},
    {"divmod", 2, 2, false, b_scalar},
    {"pow", 2, 3, false, b_scalar},
    {"ord", 1, 1, false, b_scalar},
    {"chr", 1, 1, false, b_scalar},
    {"repr", 1, 1, false, b_scalar},
    {"hex", 1, 1, false, b_scalar},
    {"bin", 1, 1, false, b_scalar},
    {"bool", 0, 1, false, b_bool},
    {"list", 0, 1, false, b_list},
    {"tuple", 0, 1, false, b_list},
    {"set", 0, 1, false, b_set},
    {"dict", 0, 1, true, b_dict},
    {"iter", 1, 1, false, b_iter},
    {"next", 1, 2, false, b_next},
    {"enumerate", 1, 2, true, b_enumerate},
    {"zip", 0, 64, true, b_zip},
    {"reversed", 1, 1, false, b_reversed},
    {"sorted", 1, 1, true, b_sorted},
    {"sum", 1, 2, true, b_sum},
    {"any", 1, 1, false, b_any_all},
    {"all", 1, 1, false, b_any_all},
    {"min", 1, 64, true, b_min_max},
    {"max", 1, 64, true, b_min_max},
    {"getattr", 2, 3, false, b_getattr},
    {"hasattr", 2, 2, false, b_hasattr},
    {"setattr", 3, 3, false, b_setattr},
    {"vars", 1, 1, false, b_vars},
    {"slice", 1, 3, false, b_slice},
    {"object", 0, 0, false, b_object},
    {"map", 2, 8, false, b_map},
    {"filter", 2, 2, false, b_filter},
};

static PyObject *table; /* builtin object -> index of its row; made once from the real builtins */

static fg_flow table_make(void)
{
    PyObject *made = PyDict_New(), *module = PyImport_ImportModule("builtins");
    for (size_t i = 0; made && module && i < sizeof rows / sizeof *rows; i++) {
        PyObject *object = PyObject_GetAttrString(module, rows[i].name), *index = PyLong_FromSize_t(i);
        int failed = object == NULL || index == NULL || !(PyCFunction_Check(object) || PyType_Check(object)) ||
                     PyDict_SetItem(made, object, index) < 0;
        Py_XDECREF(object);
        Py_XDECREF(index);
        if (failed && PyErr_Occurred())
            Py_CLEAR(made);
    }
    Py_XDECREF(module);
    table = made;
    return made ? FG_FLOW_OK : FG_FLOW_ERROR;
}

bool fg_is_own_builtin(PyObject *callable, bool *yes)
{
    if (table == NULL && table_make() != FG_FLOW_OK)
        return false;
    *yes = (PyCFunction_Check(callable) || PyType_Check(callable)) && PyDict_GetItemWithError(table, callable) != NULL;
    return !PyErr_Occurred();
}

fg_flow fg_call_builtin(fg_trace *t, fg_value *f, PyObject *callable, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out,
                        bool *handled)
{
    (void)f;
    *handled = false;
    if (!PyCFunction_Check(callable) && !PyType_Check(callable))
        return FG_FLOW_OK;
    if (table == NULL)
        FG_DO(table_make());
    int32_t nkw = kwnames ? (int32_t)PyTuple_GET_SIZE(kwnames) : 0;
    fg_bargs a = {args, n, n - nkw, nkw ? kwnames : NULL, callable};
    PyObject *index = PyDict_GetItemWithError(table, callable);
    builtin_body body = NULL;
    if (index != NULL) {
        const struct builtin_row *row = &rows[PyLong_AsLong(index)];
        if (a.npos < row->min || a.npos > row->max || (nkw && !row->keywords))
            return unsupported(t, &a);
        body = row->body;
    } else if (PyErr_Occurred()) {
        return FG_FLOW_ERROR;
    } else if (PyCFunction_CheckExact(callable) && nkw == 0) {
        int module = fg_py_pure_module(callable);
        body = module == 1 ? b_math : module == 2 ? b_operator : fg_is_abc_check(callable) ? b_abc : NULL;
    }
    if (body == NULL)
        return FG_FLOW_OK;
    *handled = true;
    for (int32_t i = 0; i < n; i++)
        FG_DO(fg_look(t, &args[i]));
    return body(t, &a, out);
}
