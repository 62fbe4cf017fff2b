/* Evaluation of guard programs: one kind of fact each, then many entries of one function. Each row is followed by its lower bound: the
 * same loads and compares written by hand against the same objects. */
#include <Python.h>

#include "bench/bench_rows.h"
#include "guards/guard_program.h"
#include "runtime/base/alloc.h"

#include <stdio.h>
#include <string.h>

fg_status fg_guards_module_init(PyObject *module);
fg_status fg_tensor_module_init(PyObject *module);

enum { MAX_SLOTS = 8, MAX_ENTRIES = 64 };

typedef struct bench_program {
    fg_program *program;
    fg_view view[MAX_ENTRIES]; /* round robin over these */
    PyObject *slots[MAX_ENTRIES][MAX_SLOTS];
    PyObject *expected; /* what the lower bound compares with */
    size_t n_views;
    PyObject *inputs[64];
} bench_program;

static PyObject *namespace;

/* An object from a Python expression; the namespace has numpy as np and class C with attribute a. */
static PyObject *eval(const char *text)
{
    PyObject *value = PyRun_String(text, Py_eval_input, namespace, namespace);
    if (!value)
        PyErr_Print();
    return value;
}

int fg_bench_start(void)
{
    Py_Initialize();
    namespace = PyDict_New();
    if (!namespace || PyDict_SetItemString(namespace, "__builtins__", PyEval_GetBuiltins()) < 0)
        return 1;
    PyObject *done =
        PyRun_String("import numpy as np\nclass C:\n    def __init__(self): self.a = 1\n", Py_file_input, namespace, namespace);
    if (!done) {
        PyErr_Print();
        return 1;
    }
    Py_DECREF(done);
    PyObject *module = PyModule_New("bench_guards");
    if (!module || fg_guards_module_init(module) != FG_OK || fg_tensor_module_init(module) != FG_OK) {
        PyErr_Print();
        fprintf(stderr, "bench_guards: the guard layer does not start\n");
        return 1;
    }
    return 0;
}

static fg_status guard(fg_desc *desc, fg_guard_kind kind, fg_node node, PyObject *object, int64_t lo)
{
    fg_guard_arg arg = {.object = object, .lo = lo};
    fg_origin origin = {NULL, 0};
    return fg_desc_guard(desc, kind, node, arg, origin);
}

static fg_status arg_source(fg_desc *desc, int64_t slot, fg_node *out)
{
    return fg_desc_source(desc, FG_ACC_ARG, FG_NODE_NONE, NULL, slot, out);
}

/* Metadata and type of a tensor argument, as a trace records them, and the tensor as an output. */
static fg_status guard_tensor(fg_desc *desc, int64_t slot, PyObject *tensor)
{
    fg_status st;
    fg_node node;
    uint32_t position;
    const char *why = "no adaptor";
    const fg_tensor_adaptor *adaptor = fg_tensor_adaptor_find(Py_TYPE(tensor));
    fg_tensor_meta *meta = fg_calloc(1, sizeof *meta);
    if (!meta)
        return FG_ERR_NOMEM;
    if (!adaptor || adaptor->record(adaptor, tensor, meta, &why) != 1) {
        fprintf(stderr, "bench_guards: %s\n", why);
        fg_free(meta);
        return FG_ERR_UNSUPPORTED;
    }
    fg_guard_arg arg = {.meta = meta};
    fg_origin origin = {NULL, 0};
    FG_TRY(arg_source(desc, slot, &node));
    FG_TRY(guard(desc, FG_GUARD_TYPE, node, (PyObject *)Py_TYPE(tensor), 0));
    FG_TRY(fg_desc_guard(desc, FG_GUARD_TENSOR, node, arg, origin));
    FG_TRY(fg_desc_output(desc, node, &position));
fail:
    fg_free(meta);
    return st;
}

static fg_status child(fg_desc *desc, fg_accessor acc, fg_node parent, const char *key, int64_t index, fg_node *out)
{
    PyObject *name = key ? PyUnicode_InternFromString(key) : NULL;
    fg_status st = fg_desc_source(desc, acc, parent, name, index, out);
    Py_XDECREF(name);
    return st;
}

static bench_program *program_new(void)
{
    bench_program *b = fg_calloc(1, sizeof *b);
    for (size_t i = 0; b && i < MAX_ENTRIES; i++) {
        b->view[i].slots = b->slots[i];
        b->view[i].n_slots = MAX_SLOTS;
        b->view[i].globals = namespace;
        b->view[i].builtins = PyEval_GetBuiltins();
    }
    return b;
}

static bench_program *program_finish(bench_program *b, fg_desc *const *descs, size_t n, size_t n_views, fg_status st)
{
    if (st == FG_OK)
        st = fg_program_build((const fg_desc *const *)descs, n, NULL, &b->program);
    if (st == FG_OK && fg_program_max_inputs(b->program) > sizeof b->inputs / sizeof *b->inputs)
        st = FG_ERR_LIMIT;
    b->n_views = n_views;
    fg_eval out;
    for (size_t i = 0; st == FG_OK && i < n_views; i++)
        if (fg_program_eval(b->program, &b->view[i], NULL, NULL, b->inputs, &out) != FG_EVAL_HIT || out.winner != i)
            st = FG_BUG("an entry does not accept the arguments it was made for");
    if (st == FG_OK)
        return b;
    fprintf(stderr, "bench_guards: %s\n", fg_status_text(st));
    return NULL;
}

enum { KIND_TYPE, KIND_ID, KIND_INT, KIND_STR, KIND_LENGTH, KIND_DICT_ITEM, KIND_INSTANCE_ATTR, KIND_GLOBAL_ITEM, KIND_NDARRAY };

static void *setup_kind(int64_t kind)
{
    static const char *const examples[] = {
        [KIND_TYPE] = "object()",     [KIND_ID] = "None",       [KIND_INT] = "12345",
        [KIND_STR] = "'a string'",    [KIND_LENGTH] = "[1, 2]", [KIND_DICT_ITEM] = "{'lr': 7}",
        [KIND_INSTANCE_ATTR] = "C()", [KIND_GLOBAL_ITEM] = "0", [KIND_NDARRAY] = "np.ones((4, 8))",
    };
    fg_desc *desc = NULL;
    fg_status st;
    fg_node root, node;
    bench_program *b = program_new();
    PyObject *value = eval(examples[kind]);
    if (!b || !value)
        return NULL;
    b->slots[0][0] = value;
    b->expected = value;
    PyObject *type = (PyObject *)Py_TYPE(value);
    FG_TRY(fg_desc_new(&desc));
    FG_TRY(arg_source(desc, 0, &root));
    switch (kind) {
    case KIND_TYPE: FG_TRY(guard(desc, FG_GUARD_TYPE, root, type, 0)); break;
    case KIND_ID: FG_TRY(guard(desc, FG_GUARD_ID, root, value, 0)); break;
    case KIND_INT:
    case KIND_STR: FG_TRY(guard(desc, FG_GUARD_CONST, root, value, 0)); break;
    case KIND_LENGTH:
        FG_TRY(guard(desc, FG_GUARD_TYPE, root, type, 0));
        FG_TRY(guard(desc, FG_GUARD_LENGTH, root, NULL, 2));
        break;
    case KIND_DICT_ITEM:
        FG_TRY(guard(desc, FG_GUARD_TYPE, root, type, 0));
        FG_TRY(child(desc, FG_ACC_DICT_ITEM, root, "lr", 0, &node));
        FG_TRY(guard(desc, FG_GUARD_CONST, node, PyDict_GetItemString(value, "lr"), 0));
        break;
    case KIND_INSTANCE_ATTR:
        FG_TRY(guard(desc, FG_GUARD_TYPE, root, type, 0));
        FG_TRY(child(desc, FG_ACC_INSTANCE_ATTR, root, "a", 0, &node));
        FG_TRY(guard(desc, FG_GUARD_CONST, node, eval("1"), 0));
        break;
    case KIND_GLOBAL_ITEM:
        FG_TRY(fg_desc_source(desc, FG_ACC_GLOBALS, FG_NODE_NONE, NULL, 0, &root));
        FG_TRY(child(desc, FG_ACC_DICT_ITEM, root, "C", 0, &node));
        FG_TRY(guard(desc, FG_GUARD_ID, node, PyDict_GetItemString(namespace, "C"), 0));
        break;
    case KIND_NDARRAY: FG_TRY(guard_tensor(desc, 0, value)); break;
    }
    st = FG_OK;
fail:
    return program_finish(b, &desc, 1, 1, st);
}

/* n entries whose one array argument differs in its size. */
static void *setup_sizes(int64_t n)
{
    fg_desc *descs[MAX_ENTRIES] = {NULL};
    fg_status st = FG_OK;
    bench_program *b = program_new();
    for (int64_t i = 0; b && i < n; i++) {
        char text[64];
        snprintf(text, sizeof text, "np.ones(%d)", (int)i + 1);
        if (!(b->slots[i][0] = eval(text)))
            return NULL;
        FG_TRY(fg_desc_new(&descs[i]));
        FG_TRY(guard_tensor(descs[i], 0, b->slots[i][0]));
    }
fail:
    return b ? program_finish(b, descs, (size_t)n, (size_t)n, st) : NULL;
}

/* n entries over eight arguments: entry i differs from the others in the value of argument i % 8. */
static void *setup_places(int64_t n)
{
    fg_desc *descs[MAX_ENTRIES] = {NULL};
    fg_status st = FG_OK;
    fg_node node;
    bench_program *b = program_new();
    for (int64_t i = 0; b && i < n; i++) {
        FG_TRY(fg_desc_new(&descs[i]));
        for (int64_t k = 0; k < MAX_SLOTS; k++) {
            PyObject *value = PyLong_FromLongLong(k == i % MAX_SLOTS ? 1000 + i : 1);
            if (!(b->slots[i][k] = value))
                return NULL;
            FG_TRY(arg_source(descs[i], k, &node));
            FG_TRY(guard(descs[i], FG_GUARD_CONST, node, value, 0));
        }
    }
fail:
    return b ? program_finish(b, descs, (size_t)n, (size_t)n, st) : NULL;
}

static uint64_t run_eval(void *state, size_t n)
{
    bench_program *b = state;
    uint64_t sum = 0;
    fg_eval out;
    for (size_t i = 0, at = 0; i < n; i++) {
        if (fg_program_eval(b->program, &b->view[at], NULL, NULL, b->inputs, &out) == FG_EVAL_HIT)
            sum += out.winner + 1;
        if (++at == b->n_views)
            at = 0;
    }
    return sum;
}

/* The type word of the first slot against a known one. */
static uint64_t run_load_type(void *state, size_t n)
{
    bench_program *b = state;
    uint64_t sum = 0;
    PyTypeObject *type = Py_TYPE(b->expected);
    for (size_t i = 0, at = 0; i < n; i++) {
        PyObject *const volatile *slots = b->slots[at];
        sum += ((volatile PyObject *)slots[0])->ob_type == type;
        if (++at == b->n_views)
            at = 0;
    }
    return sum;
}

static uint64_t run_load_id(void *state, size_t n)
{
    bench_program *b = state;
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        PyObject *const volatile *slots = b->slots[0];
        sum += slots[0] == b->expected;
    }
    return sum;
}

/* Type, length word and first two digits: what an exact int costs at least. */
static uint64_t run_load_int(void *state, size_t n)
{
    bench_program *b = state;
    uint64_t sum = 0;
    for (size_t i = 0, at = 0; i < n; i++) {
        PyObject *const volatile *slots = b->slots[at];
        volatile PyVarObject *value = (volatile PyVarObject *)slots[0];
        sum += value->ob_base.ob_type == &PyLong_Type && value->ob_size == 1;
        if (++at == b->n_views)
            at = 0;
    }
    return sum;
}

/* All eight slots of one view: type and size word of each. */
static uint64_t run_load_places(void *state, size_t n)
{
    bench_program *b = state;
    uint64_t sum = 0;
    for (size_t i = 0, at = 0; i < n; i++) {
        PyObject *const volatile *slots = b->slots[at];
        for (size_t k = 0; k < MAX_SLOTS; k++) {
            volatile PyVarObject *value = (volatile PyVarObject *)slots[k];
            sum += value->ob_base.ob_type == &PyLong_Type && value->ob_size == 1;
        }
        if (++at == b->n_views)
            at = 0;
    }
    return sum;
}

/* The words that decide an ndarray: type, ndim, the sizes and strides, the dtype pointer, in the public layout of NumPy. */
static uint64_t run_load_ndarray(void *state, size_t n)
{
    struct array {
        PyObject_HEAD char *data;
        int nd;
        Py_intptr_t *dimensions, *strides;
        PyObject *base, *descr;
        int flags;
    };
    bench_program *b = state;
    uint64_t sum = 0;
    for (size_t i = 0, at = 0; i < n; i++) {
        PyObject *const volatile *slots = b->slots[at];
        volatile struct array *array = (volatile struct array *)slots[0];
        int nd = array->nd;
        volatile Py_intptr_t *sizes = array->dimensions, *strides = array->strides;
        sum += (array->ob_base.ob_type != NULL) + (array->descr != NULL) + (uint64_t)(array->flags & 0x500);
        for (int k = 0; k < nd; k++)
            sum += (sizes[k] == 4) + (strides[k] == 8);
        if (++at == b->n_views)
            at = 0;
    }
    return sum;
}

#define ROW(NAME, SETUP, ARG, LOADS)     \
    {NAME, SETUP, run_eval, ARG},        \
    {                                    \
        NAME "/loads", SETUP, LOADS, ARG \
    }

const fg_bench_row fg_bench_rows[] = {
    ROW("type", setup_kind, KIND_TYPE, run_load_type),
    ROW("is", setup_kind, KIND_ID, run_load_id),
    ROW("int", setup_kind, KIND_INT, run_load_int),
    ROW("str", setup_kind, KIND_STR, run_load_type),
    ROW("length", setup_kind, KIND_LENGTH, run_load_type),
    ROW("dict_item", setup_kind, KIND_DICT_ITEM, run_load_type),
    ROW("instance_attr", setup_kind, KIND_INSTANCE_ATTR, run_load_type),
    ROW("global_item", setup_kind, KIND_GLOBAL_ITEM, run_load_id),
    ROW("ndarray", setup_kind, KIND_NDARRAY, run_load_ndarray),
    ROW("sizes/1", setup_sizes, 1, run_load_ndarray),
    ROW("sizes/8", setup_sizes, 8, run_load_ndarray),
    ROW("sizes/64", setup_sizes, 64, run_load_ndarray),
    ROW("places/1", setup_places, 1, run_load_places),
    ROW("places/8", setup_places, 8, run_load_places),
    ROW("places/64", setup_places, 64, run_load_places),
    {NULL, NULL, NULL, 0},
};
