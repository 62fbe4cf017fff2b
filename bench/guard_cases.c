/* Cases of bench_guards.c: descriptions are written as text and parsed, so that a row shows what it checks. */
#include "bench/guard_cases.h"
#include "runtime/base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fg_status fg_guards_module_init(PyObject *module);
fg_status fg_tensor_module_init(PyObject *module);

static const char prelude[] = "import collections, types, weakref\n"
                              "import numpy as np\n"
                              "class C:\n"
                              "    shared = 7\n"
                              "    def __init__(self, a=1): self.a = a\n"
                              "    def method(self): pass\n"
                              "class Other:\n"
                              "    def __init__(self): self.b = 1\n"
                              "class Slots:\n"
                              "    __slots__ = ('a',)\n"
                              "    def __init__(self, a): self.a = a\n"
                              "def closed(v):\n"
                              "    def inner(p=1, *, q=2): return v\n"
                              "    return inner\n"
                              "def bare(v, q=3): return v\n"
                              "here, there = closed(None), closed(1)\n"
                              "away = types.FunctionType(bare.__code__, {'C': 0, '__builtins__': {'len': 0}})\n"
                              "x, c = np.ones((4, 8)), C()\n"
                              "resolve = lambda name: eval(name.partition(':')[2], globals())\n"
                              "def chain(n, dicts):\n"
                              "    nodes, below = [], 12345\n"
                              "    for _ in range(n):\n"
                              "        below = C(below)\n"
                              "        below.count = None\n"
                              "        if dicts: below.__dict__\n"
                              "        nodes.append(below)\n"
                              "    return tuple(reversed(nodes))\n"
                              "class Layer:\n"
                              "    def __init__(self, size):\n"
                              "        self.training, self._parameters = True, {'w': np.ones(size)}\n"
                              "class Model:\n"
                              "    def __init__(self, n, last):\n"
                              "        self._modules = {str(i): Layer(last if i == n - 1 else 4) for i in range(n)}\n"
                              "def model(n, last):\n"
                              "    made = Model(n, last)\n"
                              "    return made, *(part for layer in made._modules.values() for part in (layer, layer._parameters['w']))\n";

static PyObject *namespace, *resolve;

static PyObject *eval(const char *text)
{
    PyObject *value = PyRun_String(text, Py_eval_input, namespace, namespace);
    if (!value)
        PyErr_Print();
    return value;
}

int fg_cases_start(void)
{
    Py_Initialize();
    namespace = PyDict_New();
    PyObject *name = PyUnicode_InternFromString("__name__"), *value = PyUnicode_FromString("b");
    if (!namespace || PyDict_SetItemString(namespace, "__builtins__", PyEval_GetBuiltins()) < 0 ||
        PyDict_SetItem(namespace, name, value) < 0 || !PyRun_String(prelude, Py_file_input, namespace, namespace)) {
        PyErr_Print();
        return 1;
    }
    resolve = PyDict_GetItemString(namespace, "resolve");
    PyObject *module = PyModule_New("bench_guards");
    if (!module || fg_guards_module_init(module) != FG_OK || fg_tensor_module_init(module) != FG_OK) {
        PyErr_Print();
        fprintf(stderr, "bench_guards: the guard layer does not start\n");
        return 1;
    }
    return 0;
}

static fg_guard_case *case_new(size_t n_views)
{
    fg_guard_case *c = fg_calloc(1, sizeof *c);
    if (!c || !(c->view = fg_calloc(n_views, sizeof *c->view)) || !(c->slots = fg_calloc(n_views, sizeof *c->slots)))
        return NULL;
    c->n_views = n_views;
    for (size_t i = 0; i < n_views; i++) {
        c->view[i].slots = c->slots[i];
        c->view[i].n_slots = FG_CASE_SLOTS;
        c->view[i].globals = namespace;
        c->view[i].builtins = PyEval_GetBuiltins();
    }
    return c;
}

/* The i-th call's arguments. A function in the first place is the function called: its cells, globals and builtins are the view's. */
static int view_set(fg_guard_case *c, size_t i, const char *args)
{
    PyObject *tuple = eval(args);
    if (!tuple || !PyTuple_CheckExact(tuple) || PyTuple_GET_SIZE(tuple) > FG_CASE_SLOTS)
        return -1;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(tuple); k++)
        c->slots[i][k] = PyTuple_GET_ITEM(tuple, k);
    PyObject *function = c->slots[i][0];
    if (function && PyFunction_Check(function)) {
        PyFunctionObject *f = (PyFunctionObject *)function;
        c->view[i].func = function;
        c->view[i].closure = f->func_closure;
        c->view[i].globals = f->func_globals;
        c->view[i].builtins = f->func_builtins;
    }
    return 0;
}

static fg_status desc_parse(const char *text, fg_desc **out)
{
    PyObject *whole = PyUnicode_FromFormat("framegate-guards 1\n%s", text);
    if (!whole)
        return FG_ERR_PYTHON;
    fg_status st = fg_desc_from_text(whole, resolve, out);
    Py_DECREF(whole);
    return st;
}

static void *case_finish(const fg_bench_row *row, fg_guard_case *c, fg_desc *const *descs, size_t n, int miss, fg_status st)
{
    fg_eval out = {0};
    if (st == FG_OK)
        st = fg_program_build((const fg_desc *const *)descs, n, NULL, &c->program);
    if (st == FG_OK && !(c->inputs = fg_calloc(fg_program_max_inputs(c->program) + 1, sizeof *c->inputs)))
        st = FG_ERR_NOMEM;
    for (size_t i = 0; st == FG_OK && i < c->n_views; i++) {
        fg_eval_result result = fg_program_eval(c->program, &c->view[i], NULL, NULL, c->inputs, &out);
        if (miss ? result != FG_EVAL_MISS : result != FG_EVAL_HIT || out.winner != i)
            st = FG_BUG("a case does not answer as its row says");
    }
    if (!c->expected)
        c->expected = c->slots[0][0];
    if (st == FG_OK)
        return c;
    if (PyErr_Occurred())
        PyErr_Print();
    fprintf(stderr, "bench_guards: %s: %s\n", row->name, fg_status_text(st));
    return NULL;
}

void *fg_case_fact(const fg_bench_row *row)
{
    fg_desc *desc = NULL;
    fg_guard_case *c = case_new(1);
    if (!c || view_set(c, 0, row->args) < 0)
        return NULL;
    c->field = (size_t)row->size;
    return case_finish(row, c, &desc, 1, row->option == FG_CASE_MISS, desc_parse(row->text, &desc));
}

/* Writes the description of entry i and the arguments that it accepts, or with miss some that no entry does. */
typedef void (*entry_writer)(int i, int miss, char *text, char *args);
enum { ENTRY_TEXT = 1024, ENTRY_ARGS = 256 };

static void *case_entries(const fg_bench_row *row, entry_writer write)
{
    fg_desc *descs[FG_CASE_ENTRIES] = {NULL};
    fg_status st = FG_OK;
    fg_guard_case *c = case_new((size_t)row->size);
    int miss = row->option == FG_CASE_MISS;
    for (size_t i = 0; c && st == FG_OK && i < c->n_views; i++) {
        char text[ENTRY_TEXT], args[ENTRY_ARGS];
        write((int)i, miss, text, args);
        if (view_set(c, i, args) < 0)
            return NULL;
        st = desc_parse(text, &descs[i]);
    }
    return c ? case_finish(row, c, descs, c->n_views, miss, st) : NULL;
}

static void write_size(int i, int miss, char *text, char *args)
{
    snprintf(args, ENTRY_ARGS, "(np.ones(%d),)", i + 1 + (miss ? 1000 : 0));
    snprintf(text, ENTRY_TEXT,
             "n0 = arg 0\nguard n0 tensor 'numpy' @'b:np.ndarray' keys=6 dtype=12 device=1:0 grad=0 layout=0 sizes=(%d,) strides=(8,)\n"
             "output n0\n",
             i + 1);
}

void *fg_case_sizes(const fg_bench_row *row)
{
    return case_entries(row, write_size);
}

static void write_places(int i, int miss, char *text, char *args)
{
    size_t n_text = 0, n_args = (size_t)snprintf(args, ENTRY_ARGS, "(");
    for (int k = 0; k < FG_CASE_SLOTS; k++) {
        int other = k == i % FG_CASE_SLOTS, value = other ? 1000 + i : 1;
        n_text += (size_t)snprintf(text + n_text, ENTRY_TEXT - n_text, "n%d = arg %d\nguard n%d equals %d\n", k, k, k, value);
        n_args += (size_t)snprintf(args + n_args, ENTRY_ARGS - n_args, "int('%d'),", miss && other ? 5000 : value);
    }
    snprintf(args + n_args, ENTRY_ARGS - n_args, ")");
}

void *fg_case_places(const fg_bench_row *row)
{
    return case_entries(row, write_places);
}

/* The description of a chain: the type of each object, then its attribute, and at the end a number. */
static char *tree_text(int depth, int leaf)
{
    size_t room = 128 * (size_t)(depth + 2), n = 0;
    char *text = malloc(room);
    if (!text)
        return NULL;
    n += (size_t)snprintf(text, room, "n0 = arg 0\n");
    for (int i = 0; i < depth; i++)
        n += (size_t)snprintf(text + n, room - n, "guard n%d type_is @'b:C'\nn%d = instance_attr n%d 'a'\n", i, i + 1, i);
    snprintf(text + n, room - n, "guard n%d equals %d\n", depth, leaf);
    return text;
}

void *fg_case_tree(const fg_bench_row *row)
{
    fg_desc *desc = NULL;
    int depth = (int)row->size, miss = (row->option & FG_TREE_MISS) != 0, change = row->option & FG_TREE_CHANGE;
    char expression[64], *text = tree_text(depth, miss ? 54321 : 12345);
    fg_guard_case *c = case_new(1);
    snprintf(expression, sizeof expression, "chain(%d, %d)", depth, (row->option & FG_TREE_DICTS) != 0);
    PyObject *objects = eval(expression), *last;
    if (!c || !text || !objects || !(c->nodes = fg_calloc((size_t)depth + 1, sizeof *c->nodes)))
        return NULL;
    for (int i = 0; i < depth; i++)
        c->nodes[i] = PyTuple_GET_ITEM(objects, i);
    last = c->nodes[depth - 1];
    c->nodes[depth] = PyObject_GetAttrString(last, "a");
    c->slots[0][0] = c->nodes[0];
    c->n_nodes = (size_t)depth;
    c->n_counting = change == FG_TREE_STILL ? 0 : change == FG_TREE_ROOT_COUNTS ? 1 : (size_t)depth;
    c->numbers[0] = PyLong_FromLong(1000);
    c->numbers[1] = PyLong_FromLong(1001);
    void *done = case_finish(row, c, &desc, 1, miss, desc_parse(text, &desc));
    free(text);
    return done;
}

/* The type of each layer, its flag, and its array's metadata. */
static char *modules_text(int n)
{
    size_t room = 400 * (size_t)(n + 1), at = 0;
    char *text = malloc(room);
    if (!text)
        return NULL;
    at += (size_t)snprintf(text, room, "n0 = arg 0\nguard n0 type_is @'b:Model'\nn1 = instance_attr n0 '_modules'\n");
    for (int i = 0, k = 2; i < n; i++, k += 4)
        at += (size_t)snprintf(
            text + at, room - at,
            "n%d = dict_item n1 '%d'\nguard n%d type_is @'b:Layer'\nn%d = instance_attr n%d 'training'\nguard n%d is True\n"
            "n%d = instance_attr n%d '_parameters'\nn%d = dict_item n%d 'w'\n"
            "guard n%d tensor 'numpy' @'b:np.ndarray' keys=6 dtype=12 device=1:0 grad=0 layout=0 sizes=(4,) strides=(8,)\n",
            k, i, k, k + 1, k, k + 1, k + 2, k, k + 3, k + 2, k + 3);
    return text;
}

void *fg_case_modules(const fg_bench_row *row)
{
    fg_desc *desc = NULL;
    int n = (int)row->size, miss = row->option == FG_CASE_MISS;
    char expression[64], *text = modules_text(n);
    fg_guard_case *c = case_new(1);
    snprintf(expression, sizeof expression, "model(%d, %d)", n, miss ? 5 : 4);
    PyObject *objects = eval(expression);
    if (!c || !text || !objects || !(c->nodes = fg_calloc(2 * (size_t)n, sizeof *c->nodes)))
        return NULL;
    for (int i = 0; i < 2 * n; i++)
        c->nodes[i] = PyTuple_GET_ITEM(objects, i + 1);
    c->slots[0][0] = PyTuple_GET_ITEM(objects, 0);
    c->n_nodes = (size_t)n;
    void *done = case_finish(row, c, &desc, 1, miss, desc_parse(text, &desc));
    free(text);
    return done;
}
