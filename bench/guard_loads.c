/* Loops of bench_guards.c. All take the views in turns, so that the loop around the loads costs what the loop around the evaluation does. */
#include "bench/guard_loads.h"

/* The word at an offset behind a pointer. */
#define WORD(P, AT) (*(const void *const volatile *)((const char *)(P) + (AT)))
#define TYPE(P) WORD(P, offsetof(PyObject, ob_type))
#define SIZE(P) ((Py_ssize_t)WORD(P, offsetof(PyVarObject, ob_size)))

/* Inline values of an instance lie behind this word in front of it. */
#define VALUES (-4 * (ptrdiff_t)sizeof(void *))

#define LOOP(NAME, SUM)                                \
    uint64_t fg_loads_##NAME(void *state, size_t n)    \
    {                                                  \
        const fg_guard_case *c = state;                \
        const void *const expected = c->expected;      \
        uint64_t sum = 0;                              \
        (void)expected;                                \
        for (size_t i = 0, at = 0; i < n; i++) {       \
            const fg_view *view = &c->view[at];        \
            const void *object = WORD(view->slots, 0); \
            (void)object;                              \
            sum += (uint64_t)(SUM);                    \
            if (++at == c->n_views)                    \
                at = 0;                                \
        }                                              \
        return sum;                                    \
    }

static inline uint64_t same(const void *a, const void *b)
{
    return a == b;
}

static inline uint64_t ndarray(const void *object)
{
    struct array { /* the public layout of NumPy's arrays */
        PyObject_HEAD char *data;
        int nd;
        Py_intptr_t *dimensions, *strides;
        PyObject *base, *descr;
        int flags;
    };
    const volatile struct array *array = object;
    uint64_t sum = (array->ob_base.ob_type != NULL) + (array->descr != NULL) + (uint64_t)(array->flags & 0x500);
    const volatile Py_intptr_t *sizes = array->dimensions, *strides = array->strides;
    for (int k = 0, nd = array->nd; k < nd; k++)
        sum += (sizes[k] == 4) + (strides[k] == 8);
    return sum;
}

static inline uint64_t integer(const void *object)
{
    return same(TYPE(object), &PyLong_Type) & (SIZE(object) == 1) & ((uintptr_t)WORD(object, offsetof(PyLongObject, ob_digit)) != 7);
}

static inline uint64_t places(const fg_view *view)
{
    uint64_t sum = 0;
    for (size_t k = 0; k < FG_CASE_SLOTS; k++)
        sum += integer(WORD(view->slots, k * sizeof(void *)));
    return sum;
}

static inline uint64_t attr(const void *object, const void *type)
{
    const void *values = WORD(object, VALUES);
    return same(TYPE(object), type) + (values && WORD(values, 0));
}

static inline uint64_t list(const void *object)
{
    const void *items = WORD(object, offsetof(PyListObject, ob_item));
    return same(TYPE(object), &PyList_Type) + (SIZE(object) == 1) + same(WORD(items, 0), object);
}

LOOP(nothing, at)
LOOP(slot, same(object, expected))
LOOP(two, same(object, WORD(view->slots, sizeof(void *))))
LOOP(type, same(TYPE(object), expected))
LOOP(size, same(TYPE(object), expected) + (SIZE(object) == 2))
LOOP(float, same(TYPE(object), expected) + same(WORD(object, offsetof(PyFloatObject, ob_fval)), expected))
LOOP(int, integer(object))
LOOP(str, same(TYPE(object), expected) + (SIZE(object) == 8) + same(WORD(object, sizeof(PyASCIIObject)), expected))
LOOP(dict, same(TYPE(object), &PyDict_Type) + same(WORD(object, offsetof(PyDictObject, ma_version_tag)), expected))
LOOP(globals, same(WORD(view->globals, offsetof(PyDictObject, ma_version_tag)), expected))
LOOP(builtins, same(WORD(view->builtins, offsetof(PyDictObject, ma_version_tag)), expected))
LOOP(freevar, same(WORD(WORD(view->closure, offsetof(PyTupleObject, ob_item)), offsetof(PyCellObject, ob_ref)), expected))
LOOP(attr, attr(object, expected))
LOOP(list, list(object))
LOOP(tuple, same(TYPE(object), expected) + (SIZE(object) == 1) + same(WORD(object, offsetof(PyTupleObject, ob_item)), expected))
LOOP(field, same(TYPE(object), expected) + same(WORD(object, c->field), expected))
LOOP(version, *(const volatile unsigned *)((const char *)object + offsetof(PyTypeObject, tp_version_tag)) == 7)
LOOP(ndarray, ndarray(object))
LOOP(storage, same(WORD(object, sizeof(PyObject)), WORD(WORD(view->slots, sizeof(void *)), sizeof(PyObject))))
LOOP(places, places(view))

/* ---- trees ---------------------------------------------------------------------------------------------------------------------------- */

uint64_t fg_loads_modules(void *state, size_t n)
{
    const fg_guard_case *c = state;
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < c->n_nodes; k++)
            sum += attr(c->nodes[2 * k], c->expected) + ndarray(c->nodes[2 * k + 1]);
    }
    return sum;
}

static PyObject *count_name;

static inline void count(const fg_guard_case *c, size_t i)
{
    for (size_t k = 0; k < c->n_counting; k++)
        (void)PyObject_SetAttr(c->nodes[k], count_name, c->numbers[i & 1]);
}

static void count_start(void)
{
    if (!count_name)
        count_name = PyUnicode_InternFromString("count");
}

uint64_t fg_idle_tree(void *state, size_t n)
{
    const fg_guard_case *c = state;
    count_start();
    for (size_t i = 0; i < n; i++)
        count(c, i);
    return n;
}

/* From an object of the chain to the next: by its inline values, or by its dict. */
static inline const void *next_inline(const void *object, const void *type, uint64_t *sum)
{
    *sum += same(TYPE(object), type);
    return WORD(WORD(object, VALUES), 0);
}

static inline const void *next_in_dict(const void *object, const void *type, uint64_t *sum)
{
    const void *dict = WORD(object, VALUES + (ptrdiff_t)sizeof(void *));
    *sum += same(TYPE(object), type) + same(WORD(dict, offsetof(PyDictObject, ma_keys)), type);
    return WORD(WORD(dict, offsetof(PyDictObject, ma_values)), 0);
}

#define TREE_LOOP(NAME, NEXT)                                                          \
    uint64_t fg_loads_##NAME(void *state, size_t n)                                    \
    {                                                                                  \
        const fg_guard_case *c = state;                                                \
        uint64_t sum = 0;                                                              \
        count_start();                                                                 \
        for (size_t i = 0; i < n; i++) {                                               \
            count(c, i);                                                               \
            const void *object = WORD(c->view[0].slots, 0), *type = TYPE(c->nodes[0]); \
            for (size_t k = 0; k < c->n_nodes; k++)                                    \
                object = NEXT(object, type, &sum);                                     \
            sum += same(object, c->nodes[c->n_nodes]);                                 \
        }                                                                              \
        return sum;                                                                    \
    }
TREE_LOOP(tree, next_inline)
TREE_LOOP(dicts, next_in_dict)

/* ---- the engine ------------------------------------------------------------------------------------------------------------------------ */

uint64_t fg_run_eval(void *state, size_t n)
{
    fg_guard_case *c = state;
    uint64_t sum = 0;
    fg_eval out;
    for (size_t i = 0, at = 0; i < n; i++) {
        if (fg_program_eval(c->program, &c->view[at], NULL, NULL, c->inputs, &out) == FG_EVAL_HIT)
            sum += out.winner + 1;
        if (++at == c->n_views)
            at = 0;
    }
    return sum;
}

uint64_t fg_run_tree(void *state, size_t n)
{
    fg_guard_case *c = state;
    uint64_t sum = 0;
    fg_eval out;
    count_start();
    for (size_t i = 0; i < n; i++) {
        count(c, i);
        if (fg_program_eval(c->program, &c->view[0], NULL, NULL, c->inputs, &out) == FG_EVAL_HIT)
            sum++;
    }
    return sum;
}
