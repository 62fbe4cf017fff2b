/* Which conditions fail and what was seen instead: the walk of guard_walk.c with the explaining twins of the bodies. */
#define FG_EXPLAIN 1
#include "guards/guard_bodies.h"
#include "guards/guard_read.h"

Py_ssize_t fg_sized_of(PyObject *v)
{
    return fg_length_of(v);
}

/* What can be done about it, where that is plain. v is what was seen, NULL where there is nothing. */
static const char *hint(const fg_guard_record *guard, PyObject *v)
{
    switch ((fg_guard_kind)guard->kind) {
    case FG_GUARD_CONST:
        if (v != NULL && PyUnicode_CheckExact(v))
            return "the text decided something while tracing: each text that occurs needs a version of its own";
        return "the value decided something while tracing: pass it as an array or tensor, or keep it the same";
    case FG_GUARD_TYPE:
        if (v != NULL && (PyLong_CheckExact(v) || PyFloat_CheckExact(v)))
            return "ints, floats and bools need versions of their own: pass one type at all calls";
        return v == Py_None ? "None and a value need versions of their own: give it a default that is a value"
                            : "each type that occurs needs a version of its own";
    case FG_GUARD_TENSOR:
        return "a tensor of another shape, dtype or layout needs a version of its own: keep them the same, or pad to a few sizes";
    case FG_GUARD_GRADIENT: return "whether a tensor has a gradient, and of which shape, decided something while tracing";
    case FG_GUARD_ID:
        if (v != NULL && (PyFunction_Check(v) || PyMethod_Check(v)))
            return "another function stands here: make a lambda or an inner function once, outside, rather than at each call";
        return "another object is found under this name: do not replace it between calls";
    case FG_GUARD_DICT_KEYS:
    case FG_GUARD_SET_ITEMS:
    case FG_GUARD_LENGTH: return "a container of another length or with other keys needs a version of its own";
    case FG_GUARD_TORCH_STATE: return "the state of torch differs from that of the time of tracing: each state needs a version of its own";
    case FG_GUARD_TORCH_GLOBALS: return "code that a compiler made may have one of torch's global switches built in";
    case FG_GUARD_SAME:
    case FG_GUARD_DISTINCT:
    case FG_GUARD_NO_DICT_OF:
    case FG_GUARD_STORAGE_DISTINCT:
    case FG_GUARD_MEMORY_APART: return "which arguments are one and the same object, or share memory, differs from the time of tracing";
    case FG_GUARD_QUIET:
    case FG_GUARD_ATTR_QUIET:
    case FG_GUARD_DICT_QUIET: return "what it replaces or takes out has a finalizer, a weak reference, or parts that are not known";
    case FG_GUARD_DICT_HAS:
    case FG_GUARD_DICT_LACKS:
    case FG_GUARD_SET_HAS:
    case FG_GUARD_SET_LACKS: return "other members than at the time of tracing need a version of their own";
    case FG_GUARD_ATTR_HAS:
    case FG_GUARD_ATTR_LACKS: return "set every attribute in __init__, so that the first call sees the same ones as the later";
    case FG_GUARD_TRUTH:
    case FG_GUARD_FLOAT_NAN:
    case FG_GUARD_ITER_STATE:
    case FG_GUARD_EXPR:
    case FG_GUARD_INT_RANGE: return "a branch or an index depended on it while tracing: the other side needs a version of its own";
    case FG_GUARD_ACCEPTS: return "a guard of the program's own refuses it";
    case FG_GUARD_ABC_TOKEN: return "a class was registered with an abstract base class since: register before the first call";
    case FG_GUARD_PRESENT:
    case FG_GUARD_ABSENT: return "whether it is there decided something while tracing: set it before the first call, and leave it there";
    case FG_GUARD_NOT_NONE: return "None and a value need versions of their own: give it a default that is a value";
    case FG_GUARD_SUBTYPE:
    case FG_GUARD_NO_SUBTYPE: return "the class has other bases than at the time of tracing, or another class stands here";
    case FG_N_GUARDS: break;
    }
    return NULL;
}

/* One line of the answer: v is the value, or NULL; seen is how it is described, and is taken. */
static int report(fg_walk *walk, const fg_guard_record *guard, PyObject *v, PyObject *seen)
{
    PyObject *sentence = fg_guard_sentence(walk->desc, guard), *origin = fg_guard_origin_text(guard);
    const char *advice = hint(guard, v);
    int bad = -1;
    if (seen != NULL && sentence != NULL && origin != NULL)
        bad = fg_text_add(walk->context, "expected %U; saw %U%U%s%s", sentence, seen, origin, advice != NULL ? "; " : "",
                          advice != NULL ? advice : "");
    Py_XDECREF(seen);
    Py_XDECREF(sentence);
    Py_XDECREF(origin);
    return bad;
}

static int explain_body(fg_walk *walk, const fg_guard_record *guard, PyObject *v, fg_why *why)
{
    const fg_leaf *k = &guard->leaf;

    switch ((fg_guard_kind)guard->kind) {
#define FG_LEAF_CASE(NAME) \
    case FG_GUARD_##NAME:  \
        return fg_explain_##NAME(v, k, why);
#define FG_CASE_NONE FG_LEAF_CASE
#define FG_CASE_OBJECT FG_LEAF_CASE
#define FG_CASE_INT FG_LEAF_CASE
#define FG_CASE_RANGE FG_LEAF_CASE
#define FG_CASE_META FG_LEAF_CASE
#define FG_CASE_STATE FG_LEAF_CASE
#define FG_CASE_EXPR(NAME) FG_CASE_NODES(NAME)
#define FG_CASE_NODES(NAME)                                                                                   \
    case FG_GUARD_##NAME: {                                                                                   \
        const fg_tensor_adaptor **adaptors = fg_calloc(guard->n_ids, sizeof *adaptors);                       \
        if (adaptors == NULL)                                                                                 \
            return -1;                                                                                        \
        if (fg_relation_reads_tensors(guard->kind))                                                           \
            fg_relation_adaptors(walk->desc, guard, adaptors);                                                \
        int one = fg_explain_##NAME(walk->values, k->p, k->lo, adaptors, fg_guard_expr(guard->kind, k), why); \
        fg_free(adaptors);                                                                                    \
        return one;                                                                                           \
    }
#define fg_explain_ABSENT(V, K, WHY) ((void)(V), (void)(K), (void)(WHY), 0)
#define FG_GUARD(NAME, TEXT, ARG) FG_CASE_##ARG(NAME)
#include "guards/guard_kinds.def"
#undef FG_GUARD
    case FG_N_GUARDS: break;
    }
    return 0;
}

/* What was seen, and of which sources of a relation. */
static PyObject *named_pair(const fg_desc *desc, const fg_guard_record *guard, const fg_why *why)
{
    const fg_node *ids = guard->owned;
    PyObject *one = fg_desc_source_str(desc, ids[why->pair[0] - 1]);
    PyObject *other = why->pair[1] > 0 ? fg_desc_source_str(desc, ids[why->pair[1] - 1]) : NULL, *text = NULL;
    if (one != NULL && (other != NULL || why->pair[1] <= 0))
        text =
            other != NULL ? PyUnicode_FromFormat("%U: %U and %U", why->seen, one, other) : PyUnicode_FromFormat("%U: %U", why->seen, one);
    Py_XDECREF(one);
    Py_XDECREF(other);
    return text;
}

static int is_namesake(const fg_desc *desc, const fg_guard_record *guard, PyObject *v)
{
    PyObject *type = guard->hold >= 0 ? fg_hold_get(&desc->holds[guard->hold]) : NULL;
    return type != NULL && PyType_Check(type) && strcmp(((PyTypeObject *)type)->tp_name, Py_TYPE(v)->tp_name) == 0;
}

/* 1 or 0 as the check would say, -1 error. */
static int explain_fact(fg_walk *walk, const fg_guard_record *guard, PyObject *v)
{
    fg_why why = {0};
    int one = explain_body(walk, guard, v, &why);
    if (one == 0) {
        if (why.seen == NULL && !PyErr_Occurred())
            why.seen = PyUnicode_FromString("something else");
        if (guard->kind == FG_GUARD_TYPE && why.seen != NULL && is_namesake(walk->desc, guard, v))
            Py_SETREF(why.seen, PyUnicode_FromFormat("another class of that name, %U", why.seen));
        if (why.pair[0] > 0 && why.seen != NULL)
            Py_SETREF(why.seen, named_pair(walk->desc, guard, &why));
        return report(walk, guard, v, why.seen);
    }
    Py_XDECREF(why.seen);
    if (one < 0 && !PyErr_Occurred())
        PyErr_NoMemory();
    return one;
}

/* A source that has no value where one is needed, or has one where none may be. */
static int explain_unreadable(fg_walk *walk, fg_node node, int found)
{
    const fg_desc *desc = walk->desc;
    const char *seen = found == FG_FIND_ABSENT ? "nothing there" : "an object in which it cannot be looked up";
    int said = 0;

    for (uint32_t i = walk->want.first[node]; i < walk->want.first[node + 1]; i++) {
        const fg_guard_record *guard = &desc->guards[walk->want.by_node[i]];
        PyObject *v = found == FG_FIND_FOUND ? walk->values[node] : NULL;
        if (report(walk, guard, v, v != NULL ? fg_value_brief(v) : PyUnicode_FromString(seen)) < 0)
            return -1;
        said = 1;
    }
    if (said)
        return 0;
    PyObject *name = fg_desc_source_str(desc, node);
    int bad = name == NULL || fg_text_add(walk->context, "expected %U to be there; saw %s", name, seen) < 0;
    Py_XDECREF(name);
    return bad ? -1 : 0;
}

static int explain_never(const fg_desc *desc, const fg_want *want, PyObject *list)
{
    int said = 0;
    if (desc->dead)
        return fg_text_add(list, "an object that these guards depend on no longer exists: they match nothing any more");
    for (uint32_t i = 0; i < desc->n_holds; i++) {
        if (desc->holds[i].label != NULL &&
            (said = 1, fg_text_add(list, "expected %U, which names nothing here: it never matches", desc->holds[i].label) < 0))
            return -1;
    }
    for (uint32_t i = 0; i < desc->n_nodes; i++) {
        if (want->of_node[i] != (FG_WANT_PRESENT | FG_WANT_ABSENT))
            continue;
        PyObject *name = fg_desc_source_str(desc, (fg_node)i);
        int bad = name == NULL || fg_text_add(list, "expected %U both to be there and not to be there", name) < 0;
        Py_XDECREF(name);
        if (bad)
            return -1;
        said = 1;
    }
    return said ? 0
                : fg_text_add(list, "a condition needs a tensor reader or the exact type of an object with __slots__, which is not given: "
                                    "these guards match nothing");
}

PyObject *fg_desc_explain(const fg_desc *desc, const fg_view *view)
{
    PyObject *list = PyList_New(0);
    fg_walk walk = {.desc = desc, .view = view, .keep_going = 1, .fact = explain_fact, .unreadable = explain_unreadable, .context = list};
    int ok = -1;

    if (list == NULL)
        return NULL;
    if (fg_want_init(desc, &walk.want) != FG_OK)
        PyErr_NoMemory();
    else if (walk.want.never)
        ok = explain_never(desc, &walk.want, list);
    else
        ok = fg_walk_run(&walk);
    fg_eval held = {.held = walk.held, .n_held = walk.n_held};
    fg_eval_release(&held);
    fg_free(walk.values);
    fg_free(walk.failed);
    fg_want_fini(&walk.want);
    if (ok == 0 && !walk.want.never && PyList_GET_SIZE(list) == 0 && fg_text_add(list, "the guards do not hold") < 0)
        ok = -1;
    if (ok < 0)
        Py_CLEAR(list);
    return list;
}
