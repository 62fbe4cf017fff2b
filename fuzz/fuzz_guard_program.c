/* Merged programs against the descriptions they were built of, over objects that change between evaluations.
 *
 * The bytes make the objects of one call (fuzz/guard_objects.py), then up to 70 descriptions of it. A description walks the real objects, so that most
 * of its conditions are true and programs get past their first facts. Then rounds follow: the program is evaluated several times, so that it records and
 * uses memos (guards/guard_memo.h), and objects change in between. At each evaluation an entry must win exactly when fg_desc_check, which has no memory,
 * says that it is the first in the order asked for; its inputs must be the objects that the description reads. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "guards/adaptor_torch_globals.h"
#include "guards/guard_drop.h"
#include "guards/guard_private.h"
#include "guards/guard_read.h"
#include "guards/guard_tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ENTRIES = 70, MAX_STEPS = 24, MAX_ROUNDS = 12, N_SLOTS = 3, MAKE_BYTES = 48, N_WORDS = (MAX_ENTRIES + 63) / 64 };

static PyObject *make, *change, *keys, *names, *users;

static void require(int condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "fuzz_guard_program: %s\n", what);
        PyErr_Print();
        abort();
    }
}

static void start(void)
{
    Py_Initialize();
    require(fg_tensor_init() == FG_OK && fg_iterators_init() == FG_OK && fg_drop_init() == FG_OK, "numpy");
    require(PyRun_SimpleString("import sys; sys.dont_write_bytecode = True; sys.path.insert(0, '" FG_SOURCE_DIR "/fuzz')") == 0, "path");
    PyObject *module = PyImport_ImportModule("guard_objects");
    require(module != NULL, "guard_objects");
    make = PyObject_GetAttrString(module, "make");
    change = PyObject_GetAttrString(module, "change");
    keys = PyObject_GetAttrString(module, "keys");
    names = PyObject_GetAttrString(module, "names");
    users = PyObject_GetAttrString(module, "users");
    require(users != NULL && make != NULL && change != NULL && keys != NULL && names != NULL, "functions");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names); i++) {
        Py_INCREF(PyList_GET_ITEM(names, i));
        PyUnicode_InternInPlace(&((PyListObject *)names)->ob_item[i]);
    }
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

/* ---- the call ---- */

typedef struct subject {
    PyObject *call; /* (slots, closure, globals, builtins, function) */
    PyObject *slots[N_SLOTS];
    fg_view view;
} subject;

static void subject_read(subject *s)
{
    PyObject *slots = PyTuple_GET_ITEM(s->call, 0);
    for (int i = 0; i < N_SLOTS; i++)
        s->slots[i] = PyList_GET_ITEM(slots, i);
    s->view = (fg_view){.slots = s->slots,
                        .n_slots = N_SLOTS,
                        .closure = PyTuple_GET_ITEM(s->call, 1),
                        .globals = PyTuple_GET_ITEM(s->call, 2),
                        .builtins = PyTuple_GET_ITEM(s->call, 3),
                        .func = PyTuple_GET_ITEM(s->call, 4)};
}

static void subject_make(subject *s, bytes *b)
{
    Py_ssize_t n = b->end - b->at < MAKE_BYTES ? b->end - b->at : MAKE_BYTES;
    s->call = PyObject_CallFunction(make, "y#", (const char *)b->at, n);
    b->at += n;
    require(s->call != NULL, "make");
    subject_read(s);
}

static void subject_change(subject *s, bytes *b)
{
    unsigned what = next(b, 256), where = next(b, 256), x = next(b, 256), y = next(b, 256);
    PyObject *done = PyObject_CallFunction(change, "OIIII", s->call, what, where, x, y);
    require(done != NULL, "change");
    Py_DECREF(done);
    subject_read(s);
}

/* ---- a description that is mostly true of the call ---- */

typedef struct known {
    fg_node node;
    PyObject *value; /* borrowed; NULL: absent, or not ours to read */
} known;

static fg_accessor accessor_for(PyObject *v, bytes *b)
{
    unsigned dice = next(b, 128);
    if (dice >= 120)
        return FG_ACC_CELL_CONTENTS + next(b, FG_N_ACCESSORS - FG_ACC_CELL_CONTENTS);
    dice %= 16;
    fg_iterator it;
    if (v == NULL || dice >= 14)
        return dice % 2 ? FG_ACC_TYPE : FG_ACC_GETATTR;
    if (PyDict_Check(v))
        return dice < 10 ? FG_ACC_DICT_ITEM : FG_ACC_DICT_KEY;
    if (PyList_Check(v))
        return FG_ACC_LIST_ITEM;
    if (PyTuple_Check(v))
        return FG_ACC_TUPLE_ITEM;
    if (PyCell_Check(v))
        return FG_ACC_CELL_CONTENTS;
    if (PyType_Check(v))
        return dice < 8 ? FG_ACC_TYPE_LOOKUP : dice < 10 ? FG_ACC_TYPE_PART : dice < 12 ? FG_ACC_MRO : FG_ACC_BASES;
    if (PyModule_Check(v))
        return FG_ACC_MODULE_DICT;
    if (PyFunction_Check(v) && dice < 10)
        return dice < 6 ? FG_ACC_FUNC_CODE + dice : FG_ACC_FUNC_PART;
    if (PyCode_Check(v))
        return dice % 2 ? FG_ACC_CODE_CONSTS : FG_ACC_CODE_PART;
    if (PyCFunction_Check(v))
        return FG_ACC_BUILTIN_SELF;
    if (PyWeakref_Check(v))
        return FG_ACC_WEAKREF;
    if (Py_IS_TYPE(v, &PyDictProxy_Type))
        return FG_ACC_PROXY_MAPPING;
    if (fg_is_deque(v))
        return FG_ACC_DEQUE_ITEM;
    if (fg_view_dict(v) != NULL)
        return FG_ACC_VIEW_DICT;
    if (fg_iterator_read(v, &it))
        return dice % 2 ? FG_ACC_ITER_PART : FG_ACC_ITER_ITEM;
    if (PyMethod_Check(v))
        return dice % 2 ? FG_ACC_METHOD_FUNC : FG_ACC_METHOD_SELF;
    if (Py_IS_TYPE(v, &PyStaticMethod_Type) || Py_IS_TYPE(v, &PyClassMethod_Type))
        return FG_ACC_DESCR_FUNC;
    if (Py_IS_TYPE(v, &PyProperty_Type))
        return FG_ACC_PROPERTY_PART;
    if (PyRange_Check(v))
        return FG_ACC_RANGE_PART;
    if (PySlice_Check(v))
        return FG_ACC_SLICE_PART;
    if (dice < 3 && Py_TYPE(v)->tp_basicsize > (Py_ssize_t)(sizeof(PyObject) + sizeof(void *)) &&
        fg_slot_is_member(Py_TYPE(v), sizeof(PyObject)))
        return FG_ACC_SLOT_ATTR;
    return dice < 10 ? FG_ACC_INSTANCE_ATTR : FG_ACC_TYPE;
}

/* A key that the dict has, mostly. Keys that are refused later cost one step. */
static PyObject *key_for(PyObject *v, bytes *b)
{
    Py_ssize_t at = 0, skip = next(b, 6);
    PyObject *key = NULL, *value;
    if (v != NULL && PyDict_Check(v) && next(b, 6) != 0) {
        while (PyDict_Next(v, &at, &key, &value) && skip-- > 0) {
        }
    }
    return key != NULL ? key : from(keys, b);
}

/* The value of a source that was just added; *kept holds what GETATTR made. */
static PyObject *value_of(const subject *s, fg_accessor acc, PyObject *parent, PyObject *key, int64_t index, PyObject *kept)
{
    PyObject *value = NULL;
    if (acc == FG_ACC_GETATTR || acc == FG_ACC_SLOT_ATTR) {
        if (parent == NULL)
            return NULL;
        if (acc == FG_ACC_SLOT_ATTR)
            return fg_slot_is_member(Py_TYPE(parent), index) ? *(PyObject **)((char *)parent + index) : NULL;
        value = PyObject_GetAttr(parent, key);
        PyErr_Clear();
        if (value != NULL) {
            require(PyList_Append(kept, value) == 0, "keeping");
            Py_DECREF(value);
        }
        return value;
    }
    if (acc > FG_ACC_CONST && parent == NULL)
        return NULL;
    int64_t n = index;
    fg_key_class class = fg_accessor_key(acc);
    if (acc == FG_ACC_CONST)
        return key;
    if (class == FG_KEY_NAME || class == FG_KEY_OBJECT)
        n = PyObject_Hash(key);
    return fg_read_any(acc, &s->view, parent, key, n, &value) == FG_FIND_FOUND ? value : NULL;
}

static int64_t length_of(PyObject *v)
{
    if (PyDict_Check(v))
        return PyDict_GET_SIZE(v);
    if (PyUnicode_Check(v))
        return PyUnicode_GET_LENGTH(v);
    if (PyAnySet_Check(v))
        return PySet_GET_SIZE(v);
    if (PyList_Check(v) || PyTuple_Check(v) || PyBytes_Check(v) || PyByteArray_Check(v))
        return Py_SIZE(v);
    Py_ssize_t length = fg_sized_length(v);
    return length > 0 ? length : 0;
}

/* A condition that holds for the value, by what it is; it may still be refused, and rarely be wrong. */
static fg_guard_kind kind_for(PyObject *v, bytes *b)
{
    unsigned dice = next(b, 128);
    if (dice >= 120)
        return next(b, FG_N_GUARDS);
    dice %= 16;
    fg_iterator it;
    if (v == NULL)
        return FG_GUARD_ABSENT;
    if (dice < 4)
        return FG_GUARD_TYPE;
    if (dice == 4)
        return FG_GUARD_NOT_NONE;
    if (dice == 5)
        return FG_GUARD_ID;
    if (dice == 6)
        return FG_GUARD_PRESENT;
    if (dice == 7)
        return FG_GUARD_QUIET;
    if (PyDict_Check(v)) {
        static const uint8_t kinds[] = {FG_GUARD_DICT_HAS, FG_GUARD_DICT_LACKS, FG_GUARD_DICT_KEYS, FG_GUARD_LENGTH, FG_GUARD_TRUTH};
        return dice == 8 ? FG_GUARD_DICT_QUIET : kinds[dice % 5];
    }
    if (fg_const_is_scalar(v)) {
        static const uint8_t kinds[] = {FG_GUARD_CONST, FG_GUARD_CONST, FG_GUARD_TRUTH, FG_GUARD_INT_RANGE};
        if (PyFloat_Check(v) && PyFloat_AS_DOUBLE(v) != PyFloat_AS_DOUBLE(v))
            return FG_GUARD_FLOAT_NAN;
        return kinds[dice % 4];
    }
    if (fg_tensor_adaptor_find(Py_TYPE(v)) != NULL)
        return FG_GUARD_TENSOR;
    if (PyAnySet_Check(v) && dice < 14) {
        static const uint8_t kinds[] = {FG_GUARD_SET_HAS, FG_GUARD_SET_LACKS, FG_GUARD_SET_ITEMS};
        return kinds[dice % 3];
    }
    if (PyType_Check(v) && dice < 12)
        return dice % 2 ? FG_GUARD_SUBTYPE : FG_GUARD_NO_SUBTYPE;
    if (fg_iterator_read(v, &it))
        return FG_GUARD_ITER_STATE;
    if (length_of(v) > 0)
        return dice % 2 ? FG_GUARD_LENGTH : FG_GUARD_TRUTH;
    if (dice == 8)
        return FG_GUARD_ATTR_QUIET;
    return dice % 3 == 0 ? FG_GUARD_ATTR_HAS : dice % 3 == 1 ? FG_GUARD_ATTR_LACKS : FG_GUARD_ID;
}

static int has_part(const subject *s, fg_accessor acc, PyObject *parent, PyObject *key)
{
    PyObject *value;
    return parent != NULL && fg_read_any(acc, &s->view, parent, key, PyObject_Hash(key), &value) == FG_FIND_FOUND;
}

static void add_condition(fg_desc *desc, const subject *s, fg_node node, PyObject *v, bytes *b)
{
    fg_guard_kind kind = kind_for(v, b);
    fg_guard_arg arg = {.object = v != NULL ? v : Py_None};
    fg_tensor_meta meta;
    const char *why = NULL;
    PyObject *made = NULL;

    if (kind >= FG_GUARD_TORCH_STATE)
        return;
    if (kind == FG_GUARD_TYPE) {
        arg.object = (PyObject *)Py_TYPE(arg.object);
    } else if (kind == FG_GUARD_SUBTYPE || kind == FG_GUARD_NO_SUBTYPE) {
        PyObject *mro = PyType_Check(arg.object) ? ((PyTypeObject *)arg.object)->tp_mro : Py_TYPE(arg.object)->tp_mro;
        arg.object = kind == FG_GUARD_SUBTYPE ? PyTuple_GET_ITEM(mro, next(b, (unsigned)PyTuple_GET_SIZE(mro))) : (PyObject *)&PyDict_Type;
    } else if (kind == FG_GUARD_DICT_HAS || kind == FG_GUARD_DICT_LACKS) {
        arg.object = kind == FG_GUARD_DICT_HAS ? key_for(v, b) : from(keys, b);
        if (next(b, 32) != 31)
            kind = has_part(s, FG_ACC_DICT_ITEM, v, arg.object) ? FG_GUARD_DICT_HAS : FG_GUARD_DICT_LACKS;
    } else if (kind == FG_GUARD_SET_HAS || kind == FG_GUARD_SET_LACKS) {
        arg.object = from(keys, b);
        PyObject *member;
        if (v != NULL && PyAnySet_Check(v) && next(b, 32) != 31)
            kind = fg_set_find(v, arg.object, PyObject_Hash(arg.object), &member) == FG_FIND_FOUND ? FG_GUARD_SET_HAS : FG_GUARD_SET_LACKS;
    } else if (kind == FG_GUARD_DICT_QUIET) {
        arg.object = key_for(v, b);
    } else if (kind == FG_GUARD_ATTR_QUIET) {
        arg.object = from(names, b);
    } else if (kind == FG_GUARD_ACCEPTS) {
        arg.object = from(users, b);
    } else if (kind == FG_GUARD_ITER_STATE) {
        fg_iterator it = {0};
        (void)fg_iterator_read(arg.object, &it);
        arg.object = made = PyTuple_New(it.n_state);
        for (int i = 0; i < it.n_state; i++)
            PyTuple_SET_ITEM(made, i, PyLong_FromLongLong(it.state[i]));
    } else if (kind == FG_GUARD_SET_ITEMS) {
        arg.object = made = PyAnySet_Check(arg.object) ? PySequence_Tuple(arg.object) : PyTuple_New(0);
    } else if (kind == FG_GUARD_ATTR_HAS || kind == FG_GUARD_ATTR_LACKS) {
        arg.object = from(names, b);
        if (next(b, 32) != 31)
            kind = has_part(s, FG_ACC_INSTANCE_ATTR, v, arg.object) ? FG_GUARD_ATTR_HAS : FG_GUARD_ATTR_LACKS;
    } else if (kind == FG_GUARD_DICT_KEYS) {
        PyObject *list = PyDict_Check(arg.object) ? PyDict_Keys(arg.object) : PyList_New(0);
        arg.object = made = PyList_AsTuple(list);
        Py_DECREF(list);
    } else if (kind == FG_GUARD_LENGTH) {
        arg.lo = length_of(arg.object);
    } else if (kind == FG_GUARD_TRUTH) {
        arg.lo = PyObject_IsTrue(arg.object) == 1;
    } else if (kind == FG_GUARD_INT_RANGE) {
        long value = PyLong_Check(arg.object) ? PyLong_AsLong(arg.object) : 0;
        arg.lo = value - (value > 0 ? (long)next(b, 3) : 0);
        arg.hi = value + (value < 1000000000 ? (long)next(b, 3) : 0);
    } else if (kind == FG_GUARD_TENSOR || kind == FG_GUARD_GRADIENT) {
        const fg_tensor_adaptor *adaptor = fg_tensor_adaptor_find(Py_TYPE(arg.object));
        memset(&meta, 0, sizeof meta);
        if (adaptor == NULL || adaptor->read(adaptor, arg.object, &meta, &why) != 1)
            return;
        arg.meta = &meta;
    }
    PyErr_Clear(); /* an int that is no long, an array without a truth */
    fg_status st = fg_desc_guard(desc, kind, node, arg, (fg_origin){0});
    require(st == FG_OK || st == FG_ERR_INVALID || st == FG_ERR_UNSUPPORTED, "condition");
    Py_XDECREF(made);
}

/* Postfix text of an expression over n sources. */
static void expression(char *out, size_t room, unsigned n, unsigned depth, bytes *b)
{
    static const char *const operands[] = {"v", "v", "v", "len", "ndim", "offset", "size", "stride"};
    static const char *const constants[] = {
        "0", "1", "-7", "3", "9223372036854775807", "-9223372036854775808", "0.5", "float:0x7ff8000000000000"};
    static const char *const operations[] = {
        "+", "-", "*", "//", "%", "min", "max", "==", "!=", "<", "<=", ">", ">=", "and", "or", "neg", "abs", "not"};
    size_t at = strlen(out);
    unsigned dice = next(b, 8);
    if (depth == 0 || dice == 0) {
        unsigned which = next(b, 12);
        if (which < 8)
            snprintf(out + at, room - at, which < 6 ? "%s%u " : "%s%u.%u ", operands[which], next(b, n), next(b, 3));
        else
            snprintf(out + at, room - at, "%s ", constants[next(b, 8)]);
        return;
    }
    unsigned operation = next(b, 18);
    expression(out, room, n, depth - 1, b);
    if (operation < 15)
        expression(out, room, n, depth - 1, b);
    at = strlen(out);
    snprintf(out + at, room - at, "%s ", operations[operation]);
}

static void add_expression(fg_desc *desc, const known *found, const fg_node *nodes, unsigned n, bytes *b)
{
    char text[1024] = "";
    PyObject *values[MAX_STEPS];
    fg_node ids[MAX_STEPS];
    const fg_tensor_adaptor *adaptors[MAX_STEPS];
    fg_expr *expr = NULL;
    const char *problem = NULL;
    int known_all = 1;
    expression(text, sizeof text - 8, n, next(b, 4), b);
    for (unsigned i = 0; i < n; i++) {
        values[i] = found[i].value;
        ids[i] = (fg_node)i;
        adaptors[i] = values[i] != NULL ? fg_tensor_adaptor_find(Py_TYPE(values[i])) : NULL;
        known_all &= values[i] != NULL;
    }
    require(fg_expr_parse(text, n, &expr, &problem) == FG_OK, "expression");
    if (known_all && !fg_expr_holds(expr, values, ids, adaptors))
        strcat(text, "not");
    fg_free(expr);
    require(fg_desc_expression(desc, nodes, n, text, (fg_origin){0}) == FG_OK, "adding the expression");
}

/* Over all sources, or over those that are tensors. */
static void add_relation(fg_desc *desc, const known *all, unsigned n_all, bytes *b)
{
    static const uint8_t kinds[] = {FG_GUARD_SAME,         FG_GUARD_DISTINCT, FG_GUARD_STORAGE_DISTINCT,
                                    FG_GUARD_MEMORY_APART, FG_GUARD_EXPR,     FG_GUARD_NO_DICT_OF};
    fg_guard_kind kind = kinds[next(b, sizeof kinds)];
    int tensors = kind == FG_GUARD_STORAGE_DISTINCT || kind == FG_GUARD_MEMORY_APART;
    known found[MAX_STEPS];
    fg_node nodes[MAX_STEPS];
    unsigned n = 0, most = kind == FG_GUARD_EXPR ? 3 : MAX_STEPS;
    for (unsigned i = 0; i < n_all && n < most; i++) {
        PyObject *v = all[i].value;
        int is_tensor = v != NULL && fg_tensor_adaptor_find(Py_TYPE(v)) != NULL;
        if ((tensors && !is_tensor) || (!tensors && next(b, 2)))
            continue;
        if (is_tensor && (tensors || kind == FG_GUARD_EXPR)) {
            fg_guard_arg type = {.object = (PyObject *)Py_TYPE(v)};
            require(fg_desc_guard(desc, FG_GUARD_TYPE, all[i].node, type, (fg_origin){0}) == FG_OK, "type of a tensor");
        }
        nodes[n] = all[i].node;
        found[n++] = all[i];
    }
    if (kind == FG_GUARD_EXPR && n > 0)
        add_expression(desc, found, nodes, n, b);
    else if (kind != FG_GUARD_EXPR && n > 1)
        require(fg_desc_relation(desc, kind, nodes, n, (fg_origin){0}) == FG_OK, "relation");
}

/* A condition on no source, true now. */
static void add_loose(fg_desc *desc, bytes *b)
{
    static const uint8_t kinds[] = {FG_GUARD_TORCH_STATE, FG_GUARD_TORCH_GLOBALS, FG_GUARD_ABC_TOKEN};
    fg_guard_kind kind = kinds[next(b, sizeof kinds)];
    fg_torch_state state;
    fg_torch_globals globals;
    const uint64_t *token = fg_abc_token_at();
    require(fg_torch_state_read(&state) == 1 && fg_torch_globals_read(&globals) == 1 && token != NULL, "state");
    fg_guard_arg arg = {.state = &state, .lo = globals.bits, .hi = globals.threads};
    if (kind == FG_GUARD_ABC_TOKEN)
        arg.lo = (int64_t)*token;
    require(fg_desc_guard(desc, kind, FG_NODE_NONE, arg, (fg_origin){0}) == FG_OK, "loose condition");
}

/* Steps that are refused are passed over: what can be built is what counts. */
static void fill(fg_desc *desc, const subject *s, bytes *b)
{
    known found[MAX_STEPS];
    fg_node nodes[MAX_STEPS];
    unsigned n = 0, steps = 1 + next(b, MAX_STEPS);
    uint32_t position;
    PyObject *kept = PyList_New(0);

    for (unsigned i = 0; i < steps; i++) {
        unsigned dice = n == 0 ? next(b, 3) : next(b, 8); /* a root, the newest source, any source */
        unsigned at = n == 0 ? 0 : dice < 4 ? n - 1 : next(b, n);
        static const uint8_t roots[] = {FG_ACC_ARG,     FG_ACC_ARG,      FG_ACC_ARG,  FG_ACC_FREEVAR,
                                        FG_ACC_GLOBALS, FG_ACC_BUILTINS, FG_ACC_FUNC, FG_ACC_CONST};
        int is_root = n == 0 || dice == 7;
        while (!is_root && at > 0 && found[at].value == NULL) /* what is absent has no parts */
            at--;
        is_root |= n > 0 && found[at].value == NULL;
        PyObject *parent = is_root ? NULL : found[at].value;
        fg_accessor acc = is_root ? roots[next(b, sizeof roots)] : accessor_for(parent, b);
        fg_key_class class = fg_accessor_key(acc);
        PyObject *key = acc == FG_ACC_CONST      ? s->slots[next(b, N_SLOTS)]
                        : class == FG_KEY_NAME   ? from(names, b)
                        : class == FG_KEY_OBJECT ? key_for(parent, b)
                                                 : NULL;
        int64_t index = 0;
        if (acc == FG_ACC_SLOT_ATTR)
            index = 8 * (int64_t)(2 + next(b, 4));
        else if (acc == FG_ACC_LIST_ITEM || acc == FG_ACC_TUPLE_ITEM)
            index =
                (int64_t)next(b, parent != NULL && (PyList_Check(parent) || PyTuple_Check(parent)) ? (unsigned)Py_SIZE(parent) + 1 : 2) -
                (next(b, 4) == 0);
        else if (acc == FG_ACC_DEQUE_ITEM)
            index = next(b, 4) * 40;
        else if (class == FG_KEY_INDEX)
            index = next(b, acc == FG_ACC_FUNC_PART || acc == FG_ACC_CODE_PART   ? 6
                            : acc == FG_ACC_ITER_PART || acc == FG_ACC_TYPE_PART ? 2
                                                                                 : 3);
        fg_status st = fg_desc_source(desc, acc, is_root ? FG_NODE_NONE : nodes[at], key, index, &nodes[n]);
        require(st == FG_OK || st == FG_ERR_INVALID || st == FG_ERR_UNSUPPORTED, "source");
        if (st != FG_OK)
            continue;
        found[n] = (known){nodes[n], value_of(s, acc, parent, key, index, kept)};
        for (unsigned k = next(b, 3); k > 0; k--)
            add_condition(desc, s, nodes[n], found[n].value, b);
        if (next(b, 3) == 0)
            (void)fg_desc_output(desc, nodes[n], &position); /* what only a weak reference keeps is refused */
        n++;
    }
    if (next(b, 4) == 3)
        add_relation(desc, found, n, b);
    if (next(b, 16) == 15)
        add_loose(desc, b);
    Py_DECREF(kept);
}

/* ---- program and descriptions ---- */

typedef struct entries {
    fg_desc *descs[MAX_ENTRIES];
    uint8_t dead[MAX_ENTRIES]; /* something that the description holds weakly has died: the entry may not be asked any more */
    int ok[MAX_ENTRIES];
    unsigned n;
    fg_program *program;
    PyObject **inputs;
} entries;

static void on_death(void *entry)
{
    *(uint8_t *)entry = 1;
}

static void entries_check(entries *e, const subject *s, int explained)
{
    for (unsigned i = 0; i < e->n; i++) {
        e->ok[i] = !e->dead[i] ? fg_desc_check(e->descs[i], &s->view) : 0;
        require(e->ok[i] >= 0 && !PyErr_Occurred(), "check");
        if (explained && i < 4 && !e->dead[i]) {
            PyObject *why = fg_desc_explain(e->descs[i], &s->view);
            require(why != NULL && (PyList_GET_SIZE(why) == 0) == e->ok[i], "explanation and check disagree");
            Py_DECREF(why);
        }
    }
}

static void same_inputs(const fg_desc *desc, const fg_view *view, PyObject **inputs, uint32_t n)
{
    PyObject **values = NULL;
    fg_eval held = {0};
    require(fg_desc_check_values(desc, view, &values, &held.held, &held.n_held) == 1 && n == desc->n_outputs, "inputs of the winner");
    for (uint32_t i = 0; i < n; i++)
        require(desc->nodes[desc->outputs[i]].impure || inputs[i] == values[desc->outputs[i]], "an input is another object");
    fg_eval_release(&held);
    fg_free(values);
}

/* One evaluation in which entry `first` is preferred to the ones after it, round the ring; only: nobody else may win. */
static void entries_eval(entries *e, const subject *s, unsigned first, int only)
{
    uint64_t usable[N_WORDS] = {0};
    uint64_t recency[MAX_ENTRIES];
    unsigned want = e->n;
    for (unsigned k = 0; k < e->n; k++) {
        unsigned i = (first + k) % e->n;
        recency[i] = e->n - k;
        if (e->dead[i] || (only && i != first))
            continue;
        usable[i / 64] |= UINT64_C(1) << (i % 64);
        if (want == e->n && e->ok[i])
            want = i;
    }
    fg_eval out = {0};
    fg_eval_result answer = fg_program_eval(e->program, &s->view, recency, usable, e->inputs, &out);
    require(!PyErr_Occurred(), "an exception is left");
    require(answer == (want < e->n ? FG_EVAL_HIT : FG_EVAL_MISS), "program and check disagree");
    if (answer == FG_EVAL_HIT) {
        require(out.winner == want, "another entry won");
        same_inputs(e->descs[want], &s->view, e->inputs, out.n_inputs);
    }
    fg_eval_release(&out);
}

static void entries_build(entries *e, const subject *s, bytes *b, subject *changing)
{
    fg_program *old = NULL;
    unsigned dice = next(b, 16);
    e->n = dice == 15 ? MAX_ENTRIES : 1 + dice % 5;
    for (unsigned i = 0; i < e->n; i++) {
        require(fg_desc_new(&e->descs[i]) == FG_OK, "description");
        fill(e->descs[i], s, b);
        fg_desc_on_death(e->descs[i], on_death, &e->dead[i]);
        if (next(b, 4) == 0)
            subject_change(changing, b);
    }
    if (e->n > 1 && next(b, 2) == 0)
        require(fg_program_build((const fg_desc *const *)e->descs, e->n - 1, NULL, &old) == FG_OK, "building the first");
    require(fg_program_build((const fg_desc *const *)e->descs, e->n, old, &e->program) == FG_OK, "building");
    fg_program_free(old);
    e->inputs = malloc((fg_program_max_inputs(e->program) + 1) * sizeof *e->inputs);
}

/* Another program of the same entries, with the order that what failed so far asks for. */
static void entries_order(entries *e)
{
    fg_program *old = e->program;
    require(fg_program_build((const fg_desc *const *)e->descs, e->n, old, &e->program) == FG_OK, "building again");
    require(fg_program_max_inputs(e->program) <= fg_program_max_inputs(old), "room for inputs");
    fg_program_free(old);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bytes b = {data, data + size};
    subject s;
    entries e = {0};

    if (make == NULL)
        start();
    subject_make(&s, &b);
    entries_build(&e, &s, &b, &s);
    for (unsigned round = 0; round < MAX_ROUNDS; round++) {
        unsigned style = next(&b, 4);
        entries_check(&e, &s, round < 2);
        /* The same entries alive several times, so that records are made and used; the preference goes round, so that each bit is seen. */
        unsigned times = e.n < 3 ? 3 : e.n < 8 ? e.n : 8;
        for (unsigned k = 0; k < times; k++)
            entries_eval(&e, &s, (e.n < 8 ? k : k * 9 + round) % e.n, 0);
        for (unsigned i = 0; style == 0 && i < e.n; i++)
            entries_eval(&e, &s, i, 1);
        if (style == 3)
            entries_order(&e);
        if (b.at == b.end)
            break;
        for (unsigned k = 1 + next(&b, 2); k > 0; k--)
            subject_change(&s, &b);
    }
    fg_program_free(e.program);
    for (unsigned i = 0; i < e.n; i++)
        fg_desc_free(e.descs[i]);
    free(e.inputs);
    Py_DECREF(s.call);
    return 0;
}
