/* Merged programs against the descriptions they were built of: the bytes choose up to 70 descriptions over a fixed pool of objects and the call; each
 * entry's bit must be what the description's own check says, and the explanation must be empty exactly then. */
#include <Python.h>

#include "guards/guard_program.h"
#include "guards/guard_tensor.h"
#include "runtime/base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ENTRIES = 70, MAX_STEPS = 12, N_SLOTS = 3 };

static PyObject *pool, *names, *keys;

static void require(int condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "fuzz_guard_program: %s\n", what);
        PyErr_Print();
        abort();
    }
}

static const char set_up[] =
    "import numpy as np, collections, types\n"
    "class Plain:\n"
    "    def __init__(self, **k): self.__dict__.update(k)\n"
    "class Inline:\n"
    "    def __init__(self, a): self.a = a\n"
    "class Slots:\n"
    "    __slots__ = ('a', 'b')\n"
    "class Evil:\n"
    "    def __hash__(self): return hash('a')\n"
    "    def __eq__(self, other): raise SystemError('user code was called')\n"
    "s = Slots(); s.a = 1\n"
    "od = collections.OrderedDict(a=1, b=2); od.move_to_end('a')\n"
    "def f(x, y=1, *, z=2): return s\n"
    "arrays = [np.ones((i % 4 + 1, 3), dtype='f4' if i % 3 else 'f8') for i in range(9)]\n"
    "pool = [None, True, False, 0, 1, 1.0, -0.0, 0.0, float('nan'), 2**70, 'a', 'b', b'a', (), (1, 'a'), (1.0, 'a'), [], [1, [2]], {}, "
    "{'a': 1}, {1: 2, 'a': {}},\n"
    "        {'a': 1, 'b': 2}, {Evil(): 1}, od, Plain(a=1), Plain(), Inline(1), Inline('a'), s, f, Plain(a=1).__init__, range(3), slice(1, "
    "2), np, len, int, Plain,\n"
    "        types.CellType(1), types.CellType(), property(f), staticmethod(f), {1, 2}, frozenset(), *range(100, 120), *arrays]\n"
    "keys = ['a', 'b', 1, 1.0, True, None, (1, 'a'), int, b'a', 'x']\n"
    "names = ['a', 'b', '__init__', 'x']\n";

static void start(void)
{
    Py_Initialize();
    require(fg_tensor_init() == FG_OK, "numpy");
    PyObject *space = PyDict_New();
    require(space != NULL && PyDict_SetItemString(space, "__builtins__", PyEval_GetBuiltins()) == 0, "names");
    require(PyRun_String(set_up, Py_file_input, space, space) != NULL, "objects");
    pool = PyDict_GetItemString(space, "pool");
    keys = PyDict_GetItemString(space, "keys");
    names = PyDict_GetItemString(space, "names");
}

typedef struct bytes {
    const uint8_t *at, *end;
} bytes;

static unsigned next(bytes *b, unsigned n)
{
    return b->at < b->end ? *b->at++ % n : 0;
}

static PyObject *from(PyObject *list, bytes *b)
{
    return PyList_GET_ITEM(list, next(b, (unsigned)PyList_GET_SIZE(list)));
}

/* Steps that are refused are passed over: what can be built is what counts. */
static void fill(fg_desc *desc, bytes *b)
{
    fg_node nodes[2 * MAX_STEPS];
    unsigned n = 0, steps = 1 + next(b, MAX_STEPS);
    uint32_t position;
    fg_origin origin = {0};

    for (unsigned i = 0; i < steps; i++) {
        fg_accessor acc = next(b, n == 0 ? 2 : FG_N_ACCESSORS);
        fg_node parent = acc <= FG_ACC_CONST || n == 0 ? FG_NODE_NONE : nodes[next(b, n)];
        PyObject *key = acc == FG_ACC_DICT_ITEM ? from(keys, b) : acc == FG_ACC_CONST ? from(pool, b) : from(names, b);
        int64_t index = acc == FG_ACC_SLOT_ATTR ? 8 * (int64_t)next(b, 6) : (int64_t)next(b, 4) - (acc == FG_ACC_LIST_ITEM);
        fg_status st = fg_desc_source(desc, acc, parent, key, index, &nodes[n]);
        require(st == FG_OK || st == FG_ERR_INVALID || st == FG_ERR_UNSUPPORTED, "source");
        if (st != FG_OK)
            continue;
        fg_node node = nodes[n++];
        for (unsigned k = next(b, 3); k > 0; k--) {
            fg_guard_kind kind = next(b, FG_N_GUARDS);
            PyObject *object = from(pool, b);
            fg_guard_arg arg = {.object = object, .lo = (int64_t)next(b, 4), .hi = 200};
            fg_tensor_meta meta;
            const char *why = NULL;
            if (kind == FG_GUARD_TYPE || kind == FG_GUARD_SUBTYPE || kind == FG_GUARD_NO_SUBTYPE)
                arg.object = (PyObject *)Py_TYPE(object);
            else if (kind == FG_GUARD_DICT_HAS || kind == FG_GUARD_DICT_LACKS || kind == FG_GUARD_SET_HAS || kind == FG_GUARD_SET_LACKS)
                arg.object = from(keys, b);
            else if (kind == FG_GUARD_ATTR_HAS || kind == FG_GUARD_ATTR_LACKS)
                arg.object = from(names, b);
            if (kind == FG_GUARD_TENSOR) {
                const fg_tensor_adaptor *adaptor = fg_tensor_adaptor_find(Py_TYPE(object));
                memset(&meta, 0, sizeof meta);
                if (adaptor == NULL || adaptor->read(adaptor, object, &meta, &why) != 1)
                    continue;
                arg.meta = &meta;
            }
            if (kind == FG_GUARD_TORCH_STATE)
                continue;
            st = fg_desc_guard(desc, kind, node, arg, origin);
            require(st == FG_OK || st == FG_ERR_INVALID || st == FG_ERR_UNSUPPORTED, "condition");
        }
        if (next(b, 3) == 0)
            (void)fg_desc_output(desc, node, &position); /* what only a weak reference keeps is refused */
    }
    if (n >= 2 && next(b, 3) == 0) {
        fg_status st = fg_desc_relation(desc, FG_GUARD_SAME + next(b, 3), nodes, n, origin);
        require(st == FG_OK, "relation");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fg_desc *descs[MAX_ENTRIES];
    PyObject *slots[N_SLOTS];
    fg_program *program;
    bytes b = {data, data + size};

    if (pool == NULL)
        start();
    fg_view view = {.slots = slots, .n_slots = N_SLOTS};
    for (int i = 0; i < N_SLOTS; i++)
        slots[i] = from(pool, &b);
    unsigned n = next(&b, 4) == 0 ? MAX_ENTRIES : 1 + next(&b, 6);
    for (unsigned i = 0; i < n; i++) {
        require(fg_desc_new(&descs[i]) == FG_OK, "description");
        fill(descs[i], &b);
    }
    require(fg_program_build((const fg_desc *const *)descs, n, NULL, &program) == FG_OK, "building");
    PyObject **inputs = malloc((fg_program_max_inputs(program) + 1) * sizeof *inputs);
    unsigned first = n;
    for (unsigned i = 0; i < n; i++) {
        uint64_t usable[2] = {0, 0};
        fg_eval out = {0};
        usable[i / 64] = UINT64_C(1) << (i % 64);
        int ok = fg_desc_check(descs[i], &view);
        require(ok >= 0 && !PyErr_Occurred(), "check");
        fg_eval_result answer = fg_program_eval(program, &view, NULL, usable, inputs, &out);
        require(answer == (ok ? FG_EVAL_HIT : FG_EVAL_MISS), "program and check disagree");
        require(!ok || out.winner == i, "another entry won");
        fg_eval_release(&out);
        if (ok && first == n)
            first = i;
        if (i < 8) {
            PyObject *why = fg_desc_explain(descs[i], &view);
            require(why != NULL && (PyList_GET_SIZE(why) == 0) == ok, "explanation and check disagree");
            Py_DECREF(why);
        }
    }
    fg_eval out = {0};
    fg_eval_result answer = fg_program_eval(program, &view, NULL, NULL, inputs, &out);
    require(answer == (first < n ? FG_EVAL_HIT : FG_EVAL_MISS) && (first == n || out.winner == first), "the first match does not win");
    fg_eval_release(&out);
    free(inputs);
    fg_program_free(program);
    for (unsigned i = 0; i < n; i++)
        fg_desc_free(descs[i]);
    return 0;
}
