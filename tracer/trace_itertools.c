/* The iterators of itertools, made during the trace, and functools.reduce: each element is asked for when it is its turn, as theirs are.
 *
 * One row of the table per type: how it is made of its arguments, what it gives next. The state of one is in its value, under the undo log:
 *
 *     which one it is: super_flag          what it goes over: a, or items       a function, a value: b, c        numbers: index, tool
 *
 * Those that say all elements when they are made (product, combinations, permutations) have the positions that the real one gives over a range, in `key`.
 * Where one has to exist at run time it is called anew for what remains, if that is the same; else it breaks.
 */
#include "tracer/trace_python.h"

#include <string.h>

typedef enum tool {
    TOOL_ACCUMULATE,
    TOOL_CHAIN,
    TOOL_COMBINATIONS,
    TOOL_COMPRESS,
    TOOL_COUNT,
    TOOL_CYCLE,
    TOOL_DROPWHILE,
    TOOL_FILTERFALSE,
    TOOL_ISLICE,
    TOOL_PAIRWISE,
    TOOL_PERMUTATIONS,
    TOOL_PRODUCT,
    TOOL_REPEAT,
    TOOL_REPLACED,
    TOOL_STARMAP,
    TOOL_TAKEWHILE,
    TOOL_ZIP_LONGEST,
    N_TOOLS
} tool;

enum { MAX_ROWS = 100000 };

static const struct tool_row {
    const char *name;
    int min, max; /* positional arguments */
    bool keywords;
} rows[N_TOOLS] = {
    [TOOL_ACCUMULATE] = {"accumulate", 1, 2, true},
    [TOOL_CHAIN] = {"chain", 0, 1000, false},
    [TOOL_COMBINATIONS] = {"combinations", 2, 2, false},
    [TOOL_COMPRESS] = {"compress", 2, 2, false},
    [TOOL_COUNT] = {"count", 0, 2, true},
    [TOOL_CYCLE] = {"cycle", 1, 1, false},
    [TOOL_DROPWHILE] = {"dropwhile", 2, 2, false},
    [TOOL_FILTERFALSE] = {"filterfalse", 2, 2, false},
    [TOOL_ISLICE] = {"islice", 2, 4, false},
    [TOOL_PAIRWISE] = {"pairwise", 1, 1, false},
    [TOOL_PERMUTATIONS] = {"permutations", 1, 2, false},
    [TOOL_PRODUCT] = {"product", 0, 1000, true},
    [TOOL_REPEAT] = {"repeat", 1, 2, true},
    [TOOL_REPLACED] = {"combinations_with_replacement", 2, 2, false},
    [TOOL_STARMAP] = {"starmap", 2, 2, false},
    [TOOL_TAKEWHILE] = {"takewhile", 2, 2, false},
    [TOOL_ZIP_LONGEST] = {"zip_longest", 0, 1000, true},
};

static PyObject *types[N_TOOLS]; /* NULL: not known */
static PyObject *reduce_function, *from_iterable;

static fg_flow types_find(void)
{
    static PyObject *module, *functools;
    if (module != NULL)
        return FG_FLOW_OK;
    PyObject *found = PyImport_ImportModule("itertools");
    if (found == NULL || (functools = PyImport_ImportModule("_functools")) == NULL) {
        Py_XDECREF(found);
        return FG_FLOW_ERROR;
    }
    module = found;
    for (int i = 0; i < N_TOOLS; i++) {
        types[i] = PyDict_GetItemString(PyModule_GetDict(module), rows[i].name);
        if (types[i] != NULL && (!PyType_Check(types[i]) || !(((PyTypeObject *)types[i])->tp_flags & Py_TPFLAGS_IMMUTABLETYPE)))
            types[i] = NULL; /* somebody put another one there */
        Py_XINCREF(types[i]);
    }
    reduce_function = Py_XNewRef(PyDict_GetItemString(PyModule_GetDict(functools), "reduce"));
    from_iterable =
        types[TOOL_CHAIN] ? fg_py_type_lookup((PyTypeObject *)types[TOOL_CHAIN], PyUnicode_InternFromString("from_iterable")) : NULL;
    return FG_FLOW_OK;
}

/* --- making them */

typedef struct tool_args {
    fg_value **v;
    int32_t npos, n;
    PyObject *kwnames;
} tool_args;

static fg_flow unsupported(fg_trace *t, tool which)
{
    return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "itertools.%s with these arguments", rows[which].name);
}

/* An argument by position or name; position -1: by name alone. NULL: not given. */
static fg_value *argument(const tool_args *a, int position, const char *name, int32_t *used)
{
    if (position >= 0 && position < a->npos)
        return a->v[position];
    for (int32_t i = a->npos; i < a->n; i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(a->kwnames, i - a->npos), name) == 0) {
            ++*used;
            return a->v[i];
        }
    return NULL;
}

static bool is_none(const fg_value *v)
{
    return v == NULL || (v->kind == FG_V_CONST && v->real == Py_None);
}

static fg_flow iterators(fg_trace *t, const tool_args *a, fg_value *it)
{
    if ((it->items = fg_arena_alloc(&t->arena, (size_t)(a->npos + 1) * sizeof *it->items)) == NULL)
        return fg_nomem();
    for (int32_t i = 0; i < a->npos; i++)
        FG_DO(fg_iter_new(t, a->v[i], &it->items[i]));
    it->n = a->npos;
    return FG_FLOW_OK;
}

/* All elements of an argument, taken now. */
static fg_flow pool(fg_trace *t, fg_value *of, fg_value **out)
{
    fg_value **items;
    int32_t n;
    FG_DO(fg_iterate(t, of, &items, &n));
    return (*out = fg_value_seq(t, FG_V_TUPLE, items, n)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

/* What the real one gives over positions instead of elements: a tuple of tuples. */
static fg_flow positions(fg_trace *t, tool which, PyObject *const *args, int32_t n, fg_value *it)
{
    PyObject *real = PyObject_Vectorcall(types[which], args, (size_t)n, NULL);
    PyObject *all = real != NULL ? PySequence_Tuple(real) : NULL;
    Py_XDECREF(real);
    it->key = all;
    return fg_own(t, all) ? FG_FLOW_OK : fg_break_on_error(t, FG_BREAK_RAISES, rows[which].name);
}

static fg_flow range_of(fg_trace *t, int64_t n, PyObject **out)
{
    *out = fg_own(t, PyObject_CallFunction((PyObject *)&PyRange_Type, "L", (long long)n));
    return *out ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static fg_flow make_product(fg_trace *t, const tool_args *a, fg_value *it, int32_t *used)
{
    fg_value *repeat = argument(a, -1, "repeat", used);
    int64_t times = 1, count = 1;
    if (repeat != NULL)
        FG_DO(fg_index_value(t, repeat, &times));
    if (times < 0 || times * (a->npos + 1) > 64)
        return unsupported(t, TOOL_PRODUCT);
    if ((it->items = fg_arena_alloc(&t->arena, (size_t)(a->npos * times + 1) * sizeof *it->items)) == NULL)
        return fg_nomem();
    PyObject *ranges[65];
    it->n = (int32_t)(a->npos * times);
    for (int32_t i = 0; i < a->npos; i++)
        FG_DO(pool(t, a->v[i], &it->items[i]));
    for (int32_t i = 0; i < it->n; i++) {
        it->items[i] = it->items[i % a->npos];
        count *= it->items[i]->n;
        if (count > MAX_ROWS)
            return fg_break(t, FG_BREAK_TOO_LONG, "a product of more than %d elements", MAX_ROWS);
        FG_DO(range_of(t, it->items[i]->n, &ranges[i]));
    }
    return positions(t, TOOL_PRODUCT, ranges, it->n, it);
}

/* combinations and permutations: of one pool. */
static fg_flow make_choices(fg_trace *t, tool which, const tool_args *a, fg_value *it)
{
    PyObject *args[2];
    fg_value *of;
    int64_t r = -1;
    FG_DO(pool(t, a->v[0], &of));
    if (a->npos == 2 && !(which == TOOL_PERMUTATIONS && is_none(a->v[1])))
        FG_DO(fg_index_value(t, a->v[1], &r));
    else
        r = of->n;
    double count = 1;
    for (int64_t i = 0; i < r; i++) /* no more than this many */
        count *= (double)of->n;
    if (r < 0 || count > MAX_ROWS)
        return r < 0 ? unsupported(t, which) : fg_break(t, FG_BREAK_TOO_LONG, "%s of %d elements", rows[which].name, of->n);
    FG_DO(range_of(t, of->n, &args[0]));
    if ((args[1] = fg_own(t, PyLong_FromLongLong(r))) == NULL)
        return FG_FLOW_ERROR;
    it->a = of;
    return positions(t, which, args, 2, it);
}

static fg_flow make_islice(fg_trace *t, const tool_args *a, fg_value *it)
{
    int64_t part[3] = {0, -1, 1}; /* next, stop, step */
    for (int32_t i = 1; i < a->npos; i++) {
        int at = a->npos == 2 ? 1 : i - 1;
        if (is_none(a->v[i]))
            continue;
        FG_DO(fg_index_value(t, a->v[i], &part[at]));
        if (part[at] < (at == 2) || part[at] > INT32_MAX)
            return unsupported(t, TOOL_ISLICE);
    }
    FG_DO(fg_iter_new(t, a->v[0], &it->a));
    memcpy(it->tool, part, sizeof part);
    return FG_FLOW_OK;
}

static bool is_number(const fg_value *v)
{
    return v->kind == FG_V_CONST && (v->type == &PyLong_Type || v->type == &PyFloat_Type);
}

static fg_flow make_count(fg_trace *t, const tool_args *a, fg_value *it, int32_t *used)
{
    static const char *const names[] = {"start", "step"};
    fg_value *parts[2];
    for (int i = 0; i < 2; i++) {
        if ((parts[i] = argument(a, i, names[i], used)) == NULL && (parts[i] = fg_value_const(t, fg_own(t, PyLong_FromLong(i)))) == NULL)
            return FG_FLOW_ERROR;
        if (parts[i]->kind == FG_V_SCALAR)
            FG_DO(fg_concrete(t, parts[i]));
        if (!is_number(parts[i]))
            return unsupported(t, TOOL_COUNT);
    }
    it->b = parts[0];
    it->c = parts[1];
    return FG_FLOW_OK;
}

static fg_flow make(fg_trace *t, tool which, const tool_args *a, fg_value *it)
{
    int32_t used = 0;
    fg_value *v;
    int64_t times;
    switch (which) {
    case TOOL_ACCUMULATE:
        FG_DO(fg_iter_new(t, a->v[0], &it->a));
        if (!is_none(v = argument(a, 1, "func", &used)))
            it->b = v;
        if (!is_none(v = argument(a, -1, "initial", &used))) {
            it->c = v;
            it->index = 1; /* it comes first */
        }
        break;
    case TOOL_CHAIN:
        if ((v = fg_value_seq(t, FG_V_TUPLE, a->v, a->npos)) == NULL)
            return FG_FLOW_ERROR;
        FG_DO(fg_iter_new(t, v, &it->a));
        break;
    case TOOL_COMBINATIONS:
    case TOOL_PERMUTATIONS:
    case TOOL_REPLACED: FG_DO(make_choices(t, which, a, it)); break;
    case TOOL_COMPRESS:
    case TOOL_ZIP_LONGEST:
        FG_DO(iterators(t, a, it));
        it->index = it->n;
        if (which == TOOL_ZIP_LONGEST && (it->b = argument(a, -1, "fillvalue", &used)) == NULL &&
            (it->b = fg_value_const(t, Py_None)) == NULL)
            return FG_FLOW_ERROR;
        break;
    case TOOL_COUNT: FG_DO(make_count(t, a, it, &used)); break;
    case TOOL_CYCLE:
        if ((it->b = fg_value_seq(t, FG_V_LIST, NULL, 0)) == NULL)
            return FG_FLOW_ERROR;
        FG_DO(fg_iter_new(t, a->v[0], &it->a));
        break;
    case TOOL_PAIRWISE: FG_DO(fg_iter_new(t, a->v[0], &it->a)); break;
    case TOOL_DROPWHILE:
    case TOOL_FILTERFALSE:
    case TOOL_STARMAP:
    case TOOL_TAKEWHILE:
        FG_DO(fg_iter_new(t, a->v[1], &it->a));
        it->b = a->v[0];
        break;
    case TOOL_ISLICE: FG_DO(make_islice(t, a, it)); break;
    case TOOL_PRODUCT: FG_DO(make_product(t, a, it, &used)); break;
    case TOOL_REPEAT:
        it->a = a->v[0];
        it->index = -1;
        if ((v = argument(a, 1, "times", &used)) != NULL) {
            FG_DO(fg_index_value(t, v, &times));
            it->index = times < 0 ? 0 : times;
        }
        break;
    case N_TOOLS: break;
    }
    return used == a->n - a->npos ? FG_FLOW_OK : unsupported(t, which);
}

/* functools.reduce(function, iterable[, initial]) */
static fg_flow reduce(fg_trace *t, fg_value **args, int32_t n, fg_value **out)
{
    fg_value *it, *item, *total = n == 3 ? args[2] : NULL;
    FG_DO(fg_iter_over(t, args[1], &it));
    for (;;) {
        FG_DO(fg_iter_next(t, it, &item));
        if (item == NULL)
            break;
        if (--t->budget < 0)
            return fg_break(t, FG_BREAK_TOO_LONG, "reduce");
        if (total == NULL)
            total = item;
        else
            FG_DO(fg_call_now(t, args[0], (fg_value *[]){total, item}, 2, NULL, &total));
    }
    *out = total;
    return total != NULL ? FG_FLOW_OK : fg_break(t, FG_BREAK_RAISES, "reduce() of empty iterable with no initial value");
}

static fg_flow new_tool(fg_trace *t, tool which, fg_value **out)
{
    if ((*out = fg_value_new(t, FG_V_ITER)) == NULL)
        return FG_FLOW_ERROR;
    (*out)->iter_kind = FG_ITER_TOOL;
    (*out)->super_flag = (uint8_t)which;
    (*out)->type = (PyTypeObject *)types[which];
    return FG_FLOW_OK;
}

fg_flow fg_call_itertools(fg_trace *t, PyObject *callable, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out, bool *handled)
{
    const int32_t nkw = kwnames ? (int32_t)PyTuple_GET_SIZE(kwnames) : 0;
    const tool_args a = {args, n - nkw, n, kwnames};
    *handled = false;
    if (!PyType_Check(callable) && !PyCFunction_Check(callable))
        return FG_FLOW_OK;
    FG_DO(types_find());
    int which = 0;
    while (which < N_TOOLS && types[which] != callable)
        which++;
    if (which == N_TOOLS && (callable != reduce_function || n < 2 || n > 3 || nkw > 0))
        return FG_FLOW_OK;
    *handled = true;
    for (int32_t i = 0; i < n; i++)
        FG_DO(fg_look(t, &args[i]));
    if (which == N_TOOLS)
        return reduce(t, args, n, out);
    if (a.npos < rows[which].min || a.npos > rows[which].max || (nkw > 0 && !rows[which].keywords))
        return unsupported(t, (tool)which);
    FG_DO(new_tool(t, (tool)which, out));
    return make(t, (tool)which, &a, *out);
}

/* A method of C of a class: chain.from_iterable. */
fg_flow fg_call_class_method(fg_trace *t, fg_value *cls, PyObject *descr, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out)
{
    FG_DO(types_find());
    if (descr != from_iterable || cls->real != types[TOOL_CHAIN] || n != 1 || kwnames != NULL)
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%U of class %s", ((PyMethodDescrObject *)descr)->d_common.d_name,
                        ((PyTypeObject *)cls->real)->tp_name);
    FG_DO(new_tool(t, TOOL_CHAIN, out));
    return fg_iter_new(t, args[0], &(*out)->a);
}

/* --- what they give next */

/* Where an exception of what they go over ends them for good. */
static fg_flow next_or_end(fg_trace *t, fg_value *it, fg_value *inner, fg_value **item)
{
    fg_flow flow = fg_iter_next(t, inner, item);
    if (flow == FG_FLOW_RAISE) {
        FG_SET(t, it->a, NULL);
        FG_SET(t, it->index, 0);
    }
    return flow;
}

static fg_flow accepts(fg_trace *t, fg_value *it, fg_value *item, bool *yes)
{
    fg_value *verdict = item;
    bool by_truth = is_none(it->b) || (it->b->kind == FG_V_CONST && it->b->real == (PyObject *)&PyBool_Type);
    if (!by_truth || it->super_flag != TOOL_FILTERFALSE)
        FG_DO(fg_call_now(t, it->b, &item, 1, NULL, &verdict));
    return fg_truth(t, verdict, yes);
}

static fg_flow next_accumulate(fg_trace *t, fg_value *it, fg_value **out)
{
    fg_value *item, *total = it->c;
    if (it->index == 1) {
        FG_SET(t, it->index, 0);
        *out = it->c;
        return FG_FLOW_OK;
    }
    FG_DO(fg_iter_next(t, it->a, &item));
    if (item == NULL)
        return FG_FLOW_OK;
    if (total == NULL) {
        total = item;
    } else if (it->b != NULL) {
        FG_DO(fg_call_now(t, it->b, (fg_value *[]){total, item}, 2, NULL, &total));
    } else {
        fg_tframe *before = t->frame;
        FG_DO(fg_look(t, &item));
        FG_DO(fg_look(t, &total));
        FG_DO(fg_binary(t, 0, total, item, &total));
        if (t->frame != before)
            return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "accumulate");
    }
    FG_SET(t, it->c, total);
    *out = total;
    return FG_FLOW_OK;
}

static fg_flow next_chain(fg_trace *t, fg_value *it, fg_value **out)
{
    while (it->a != NULL) {
        fg_value *of, *inner;
        if (it->b == NULL) {
            FG_DO(next_or_end(t, it, it->a, &of));
            if (of == NULL) {
                FG_SET(t, it->a, NULL);
                break;
            }
            fg_flow flow = fg_iter_new(t, of, &inner);
            if (flow == FG_FLOW_RAISE)
                FG_SET(t, it->a, NULL);
            if (flow != FG_FLOW_OK)
                return flow;
            FG_SET(t, it->b, inner);
        }
        FG_DO(fg_iter_next(t, it->b, out));
        if (*out != NULL)
            return FG_FLOW_OK;
        FG_SET(t, it->b, NULL);
    }
    return FG_FLOW_OK;
}

static fg_flow next_islice(fg_trace *t, fg_value *it, fg_value **out)
{
    const int64_t stop = it->tool[1];
    while (it->a != NULL) {
        bool is_wanted = it->index >= it->tool[0];
        if (is_wanted && stop >= 0 && it->index >= stop)
            break;
        FG_DO(next_or_end(t, it, it->a, out));
        if (*out == NULL)
            break;
        FG_SET(t, it->index, it->index + 1);
        if (is_wanted) {
            int64_t next = it->tool[0] + it->tool[2];
            FG_SET(t, it->tool[0], stop >= 0 && next > stop ? stop : next);
            return FG_FLOW_OK;
        }
    }
    FG_SET(t, it->a, NULL);
    *out = NULL;
    return FG_FLOW_OK;
}

static fg_flow next_pair(fg_trace *t, fg_value *it, fg_value **out)
{
    fg_value *item, *old = it->b;
    if (it->a == NULL)
        return FG_FLOW_OK;
    if (old == NULL)
        FG_DO(next_or_end(t, it, it->a, &old));
    if (old != NULL) {
        FG_SET(t, it->b, old);
        FG_DO(next_or_end(t, it, it->a, &item));
        if (item != NULL) {
            FG_SET(t, it->b, item);
            return (*out = fg_value_seq(t, FG_V_TUPLE, (fg_value *[]){old, item}, 2)) ? FG_FLOW_OK : FG_FLOW_ERROR;
        }
    }
    FG_SET(t, it->a, NULL);
    return FG_FLOW_OK;
}

static fg_flow next_zip_longest(fg_trace *t, fg_value *it, fg_value **out)
{
    if (it->index == 0)
        return FG_FLOW_OK;
    fg_value *row = fg_value_seq(t, FG_V_TUPLE, NULL, 0);
    if (row == NULL)
        return FG_FLOW_ERROR;
    for (int32_t i = 0; i < it->n; i++) {
        fg_value *item = NULL;
        if (it->items[i] != NULL)
            FG_DO(next_or_end(t, it, it->items[i], &item));
        if (item == NULL && it->items[i] != NULL) {
            FG_SET(t, it->items[i], NULL);
            FG_SET(t, it->index, it->index - 1);
            if (it->index == 0)
                return FG_FLOW_OK;
        }
        FG_DO(fg_seq_append(t, row, item != NULL ? item : it->b));
    }
    *out = row;
    return FG_FLOW_OK;
}

static fg_flow next_cycle(fg_trace *t, fg_value *it, fg_value **out)
{
    if (it->a != NULL) {
        FG_DO(fg_iter_next(t, it->a, out));
        if (*out != NULL)
            return fg_seq_append(t, it->b, *out);
        FG_SET(t, it->a, NULL);
    }
    if (it->b->n == 0)
        return FG_FLOW_OK;
    *out = it->b->items[it->index];
    FG_SET(t, it->index, (it->index + 1) % it->b->n);
    return FG_FLOW_OK;
}

/* compress, dropwhile, filterfalse: the first that they let through. */
static fg_flow next_wanted(fg_trace *t, fg_value *it, fg_value **out)
{
    const bool is_compress = it->super_flag == TOOL_COMPRESS;
    for (;;) {
        fg_value *item, *selector;
        bool yes;
        FG_DO(fg_iter_next(t, is_compress ? it->items[0] : it->a, &item));
        if (item == NULL)
            return FG_FLOW_OK;
        if (is_compress) {
            FG_DO(fg_iter_next(t, it->items[1], &selector));
            if (selector == NULL)
                return FG_FLOW_OK;
            FG_DO(fg_truth(t, selector, &yes));
        } else if (it->super_flag == TOOL_DROPWHILE && it->index) {
            yes = true;
        } else {
            FG_DO(accepts(t, it, item, &yes));
            yes = !yes;
        }
        if (yes) {
            FG_SET(t, it->index, 1);
            *out = item;
            return FG_FLOW_OK;
        }
        if (--t->budget < 0)
            return fg_break(t, FG_BREAK_TOO_LONG, "itertools.%s", rows[it->super_flag].name);
    }
}

static fg_flow next_starmap(fg_trace *t, fg_value *it, fg_value **out)
{
    fg_value *item, **args;
    int32_t n;
    FG_DO(fg_iter_next(t, it->a, &item));
    if (item == NULL)
        return FG_FLOW_OK;
    FG_DO(fg_iterate(t, item, &args, &n));
    fg_value *own = fg_value_seq(t, FG_V_TUPLE, args, n);
    return own ? fg_call_now(t, it->b, own->items, n, NULL, out) : FG_FLOW_ERROR;
}

static fg_flow next_choice(fg_trace *t, fg_value *it, fg_value **out)
{
    if (it->index >= PyTuple_GET_SIZE(it->key))
        return FG_FLOW_OK;
    PyObject *at = PyTuple_GET_ITEM(it->key, it->index);
    if ((*out = fg_value_seq(t, FG_V_TUPLE, NULL, 0)) == NULL)
        return FG_FLOW_ERROR;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(at); i++) {
        const fg_value *of = it->super_flag == TOOL_PRODUCT ? it->items[i] : it->a;
        FG_DO(fg_seq_append(t, *out, of->items[PyLong_AsLong(PyTuple_GET_ITEM(at, i))]));
    }
    FG_SET(t, it->index, it->index + 1);
    return FG_FLOW_OK;
}

static fg_flow next_number(fg_trace *t, fg_value *it, fg_value **out)
{
    *out = it->b;
    PyObject *next = PyNumber_Add(it->b->real, it->c->real);
    fg_value *number = fg_own(t, next) ? fg_value_const(t, next) : NULL;
    if (number == NULL)
        return FG_FLOW_ERROR;
    FG_SET(t, it->b, number);
    return FG_FLOW_OK;
}

fg_flow fg_itertool_next(fg_trace *t, fg_value *it, fg_value **out)
{
    bool yes;
    *out = NULL;
    if (--t->budget < 0) /* some never end */
        return fg_break(t, FG_BREAK_TOO_LONG, "itertools.%s", rows[it->super_flag].name);
    switch ((tool)it->super_flag) {
    case TOOL_ACCUMULATE: return next_accumulate(t, it, out);
    case TOOL_CHAIN: return next_chain(t, it, out);
    case TOOL_COMBINATIONS:
    case TOOL_PERMUTATIONS:
    case TOOL_REPLACED:
    case TOOL_PRODUCT: return next_choice(t, it, out);
    case TOOL_COMPRESS:
    case TOOL_DROPWHILE:
    case TOOL_FILTERFALSE: return next_wanted(t, it, out);
    case TOOL_COUNT: return next_number(t, it, out);
    case TOOL_CYCLE: return next_cycle(t, it, out);
    case TOOL_ISLICE: return next_islice(t, it, out);
    case TOOL_PAIRWISE: return next_pair(t, it, out);
    case TOOL_REPEAT:
        if (it->index == 0)
            return FG_FLOW_OK;
        *out = it->a;
        FG_SET(t, it->index, it->index < 0 ? -1 : it->index - 1);
        return FG_FLOW_OK;
    case TOOL_STARMAP: return next_starmap(t, it, out);
    case TOOL_TAKEWHILE:
        if (it->index)
            return FG_FLOW_OK;
        FG_DO(fg_iter_next(t, it->a, out));
        if (*out == NULL)
            return FG_FLOW_OK;
        FG_DO(accepts(t, it, *out, &yes));
        if (!yes) {
            FG_SET(t, it->index, 1);
            *out = NULL;
        }
        return FG_FLOW_OK;
    case TOOL_ZIP_LONGEST: return next_zip_longest(t, it, out);
    case N_TOOLS: break;
    }
    return fg_break(t, FG_BREAK_INTERNAL, "iterator");
}

/* --- at run time */

static fg_flow number(fg_trace *t, int64_t n, fg_reg *reg)
{
    PyObject *o = fg_own(t, n < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(n));
    return o && (*reg = fg_ir_reg_add(&t->ir, FG_REG_CONST, o)) != FG_REG_NONE ? FG_FLOW_OK : fg_nomem();
}

fg_flow fg_itertool_materialise(fg_trace *t, fg_value *it, fg_reg *reg)
{
    fg_reg regs[5];
    int32_t n = 1;
    if ((regs[0] = fg_ir_reg_add(&t->ir, FG_REG_CONST, types[it->super_flag])) == FG_REG_NONE)
        return fg_nomem();
    switch (it->super_flag) {
    case TOOL_COUNT:
        FG_DO(fg_materialise(t, it->b, &regs[n++]));
        FG_DO(fg_materialise(t, it->c, &regs[n++]));
        break;
    case TOOL_REPEAT:
        FG_DO(fg_materialise(t, it->a, &regs[n++]));
        if (it->index >= 0)
            FG_DO(number(t, it->index, &regs[n++]));
        break;
    case TOOL_ISLICE:
        if (it->a == NULL)
            return fg_break(t, FG_BREAK_ITERATOR, "an exhausted iterator");
        FG_DO(fg_materialise(t, it->a, &regs[n++]));
        FG_DO(number(t, it->tool[0] - it->index, &regs[n++]));
        FG_DO(number(t, it->tool[1] < 0 ? -1 : it->tool[1] - it->index, &regs[n++]));
        FG_DO(number(t, it->tool[2], &regs[n++]));
        break;
    default: return fg_break(t, FG_BREAK_ITERATOR, "an iterator of itertools.%s", rows[it->super_flag].name);
    }
    return fg_emit(t, FG_STEP_CALL, 0, 0, NULL, NULL, regs, n, reg);
}
