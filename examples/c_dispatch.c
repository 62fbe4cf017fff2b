/* framegate from C: docs/howto/use-from-c.md walks through it.
 *
 * Part one needs no Python: threads look up specialisations of a C function by the kinds of its arguments, and publish those that are missing.
 * Part two, built with -DWITH_GUARDS, embeds an interpreter: what a call must look like is written down as a description, built into a program, evaluated
 * on calls, and explained where a call does not fit. */
#ifdef WITH_GUARDS
#include <Python.h>

#include "guards/guard_program.h"
#endif

#include "cache/cache.h"
#include "runtime/base/alloc.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- part one: a cache of specialisations ---- */

typedef enum kind { INT, FLOAT, N_KINDS } kind;
typedef struct value {
    kind kind;
    union {
        long i;
        double f;
    } as;
} value;

typedef struct call {
    value a, b;
} call;

/* The specialisations, what a compiler would make. Each is right for one pair of kinds only, and asks no more. */
static double add_int_int(const call *c)
{
    return (double)(c->a.as.i + c->b.as.i);
}
static double add_int_float(const call *c)
{
    return (double)c->a.as.i + c->b.as.f;
}
static double add_float_int(const call *c)
{
    return c->a.as.f + (double)c->b.as.i;
}
static double add_float_float(const call *c)
{
    return c->a.as.f + c->b.as.f;
}
static double (*const compiled[N_KINDS][N_KINDS])(const call *) = {{add_int_int, add_int_float}, {add_float_int, add_float_float}};

typedef struct special {
    fg_cache_entry link; /* first member */
    kind a, b;
    double (*run)(const call *);
} special;

static void special_free(fg_cache_entry *entry)
{
    fg_free(entry);
}

/* Called inside a look-up: which entry fits the call? */
static ptrdiff_t match(const fg_cache_snapshot *snapshot, const uint64_t *skip, void *query)
{
    const call *c = query;
    for (uint32_t i = 0; i < snapshot->n; i++) {
        const special *s = (const special *)snapshot->entries[i];
        if (s->a == c->a.kind && s->b == c->b.kind && !(skip[i / 64] >> (i % 64) & 1))
            return (ptrdiff_t)i;
    }
    return -1;
}

static const fg_cache_ops ops = {.match = match};
static fg_epoch epoch;
static fg_cache cache;

static double dispatch(fg_epoch_reader *reader, call *c)
{
    for (;;) {
        fg_cache_entry *entry = fg_cache_lookup(&cache, reader, c);
        if (entry != NULL) {
            double result = ((special *)entry)->run(c);
            fg_cache_entry_drop(entry);
            return result;
        }
        special *s = fg_calloc(1, sizeof *s);
        if (s == NULL)
            abort();
        fg_cache_entry_init(&s->link, FG_CACHE_THREADS, special_free);
        s->a = c->a.kind;
        s->b = c->b.kind;
        s->run = compiled[s->a][s->b];
        if (fg_cache_add(&cache, reader, &s->link) != FG_OK) /* two threads may add equals: the one that is never chosen is evicted first */
            abort();
        fg_cache_entry_drop(&s->link);
    }
}

enum { N_THREADS = 4, N_CALLS = 20000 };

static value value_of(kind k, int n)
{
    return k == INT ? (value){INT, {.i = n}} : (value){FLOAT, {.f = n + 0.5}};
}

static void *work(void *wrong)
{
    fg_epoch_reader *reader; /* one for each thread */
    if (fg_epoch_reader_new(&epoch, &reader) != FG_OK)
        abort();
    for (int i = 0; i < N_CALLS; i++) {
        call c = {value_of(i % 2, i), value_of(i / 2 % 2, 1)};
        double want = i + 1 + 0.5 * (i % 2) + 0.5 * (i / 2 % 2);
        if (dispatch(reader, &c) != want)
            fg_add_relaxed((_Atomic int *)wrong, 1);
    }
    fg_epoch_reader_free(reader);
    return NULL;
}

static void part_one(void)
{
    pthread_t threads[N_THREADS];
    _Atomic int wrong = 0;
    fg_epoch_reader *reader;
    call c = {value_of(FLOAT, 1), value_of(INT, 2)};

    fg_epoch_init(&epoch);
    fg_cache_init(&cache, FG_CACHE_THREADS, &ops, NULL, &epoch, 16);
    for (int i = 0; i < N_THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, &wrong) != 0)
            abort();
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    if (fg_epoch_reader_new(&epoch, &reader) != FG_OK)
        abort();
    printf("calls: %d, wrong: %d\n", N_THREADS * N_CALLS, wrong);
    printf("1.5 + 2 = %g\n", dispatch(reader, &c));
    fg_cache_reset(&cache, reader);
    printf("after a reset: %s\n", fg_cache_lookup(&cache, reader, &c) == NULL ? "nothing there" : "still there");
    fg_cache_fini(&cache, reader);
    fg_epoch_reader_free(reader);
    fg_epoch_fini(&epoch);
}

/* ---- part two: guards ---- */

#ifdef WITH_GUARDS
static void need(fg_status st)
{
    if (st != FG_OK) {
        fprintf(stderr, "%s\n", fg_status_text(st));
        if (PyErr_Occurred())
            PyErr_Print();
        exit(1);
    }
}

/* f(config, n): config is a dict with config['scale'] == 2.0, n an int; the target takes both values. */
static fg_desc *describe(void)
{
    fg_desc *desc;
    fg_node config, scale, n;
    uint32_t position;
    fg_origin nowhere = {0};
    PyObject *names = Py_BuildValue("(ss)", "config", "n"), *key = PyUnicode_InternFromString("scale"), *two = PyFloat_FromDouble(2.0);

    need(fg_desc_new(&desc));
    fg_desc_names_set(desc, names, NULL);
    need(fg_desc_source(desc, FG_ACC_ARG, FG_NODE_NONE, NULL, 0, &config));
    need(fg_desc_guard(desc, FG_GUARD_TYPE, config, (fg_guard_arg){.object = (PyObject *)&PyDict_Type}, nowhere));
    need(fg_desc_source(desc, FG_ACC_DICT_ITEM, config, key, 0, &scale));
    need(fg_desc_guard(desc, FG_GUARD_CONST, scale, (fg_guard_arg){.object = two}, nowhere));
    need(fg_desc_source(desc, FG_ACC_ARG, FG_NODE_NONE, NULL, 1, &n));
    need(fg_desc_guard(desc, FG_GUARD_TYPE, n, (fg_guard_arg){.object = (PyObject *)&PyLong_Type}, nowhere));
    need(fg_desc_output(desc, scale, &position));
    need(fg_desc_output(desc, n, &position));
    Py_DECREF(names);
    Py_DECREF(key);
    Py_DECREF(two);
    return desc;
}

static void try_call(const fg_program *program, const fg_desc *desc, const char *text)
{
    PyObject *space = PyDict_New(), *inputs[8];
    PyObject *args = PyRun_String(text, Py_eval_input, space, space);
    if (args == NULL || fg_program_max_inputs(program) > 8)
        need(FG_ERR_PYTHON);
    fg_view view = {.slots = ((PyTupleObject *)args)->ob_item, .n_slots = PyTuple_GET_SIZE(args)};
    fg_eval out = {0};
    printf("%s: ", text);
    switch (fg_program_eval(program, &view, NULL, NULL, inputs, &out)) {
    case FG_EVAL_HIT:
        printf("entry %u, inputs", out.winner);
        for (uint32_t i = 0; i < out.n_inputs; i++) {
            PyObject *repr = PyObject_Repr(inputs[i]);
            printf(" %s", PyUnicode_AsUTF8(repr));
            Py_DECREF(repr);
        }
        printf("\n");
        fg_eval_release(&out);
        break;
    case FG_EVAL_MISS: {
        PyObject *why = fg_desc_explain(desc, &view);
        if (why == NULL)
            need(FG_ERR_PYTHON);
        printf("no entry\n");
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(why); i++)
            printf("    %s\n", PyUnicode_AsUTF8(PyList_GET_ITEM(why, i)));
        Py_DECREF(why);
        break;
    }
    case FG_EVAL_BUSY: printf("busy\n"); break;
    case FG_EVAL_ERROR: need(FG_ERR_PYTHON);
    }
    Py_DECREF(args);
    Py_DECREF(space);
}

static void part_two(void)
{
    fg_program *program;
    Py_Initialize();
    fg_desc *desc = describe();
    need(fg_program_build((const fg_desc *const[]){desc}, 1, NULL, &program));
    try_call(program, desc, "({'scale': 2.0}, 7)");
    try_call(program, desc, "({'scale': 2.5}, 7)");
    try_call(program, desc, "({}, 'seven')");
    fg_program_free(program);
    fg_desc_free(desc);
    Py_Finalize();
}
#endif

int main(void)
{
    part_one();
#ifdef WITH_GUARDS
    part_two();
#endif
    return 0;
}
