/* The registry of tensor operations.
 *
 * Two open-addressing tables with linear probing hold pointers to rows:
 *
 *   callables:  callable pointer           -> row        (numpy.add, torch.relu, the method descriptor of ndarray.sum)
 *   members:    (type pointer, name)       -> row        (ndarray, "sum")
 *               (type pointer, no name)    -> base type  (Parameter -> Tensor)
 *
 * A row never moves and is never freed: traces, graphs and docs keep its address. Replacing a row or forgetting it changes only what the table
 * points to. Callables are compared by identity, so no user's __eq__ or __hash__ runs; names are exact str, compared by content, so a name need not
 * be interned.
 *
 * Rules for changing this file:
 * 1. fg_op_find, fg_op_find_member and fg_op_role_get never raise, and run Python only to register the rows of a library that has just been
 *    imported: tracing meets an unknown callable rarely, and importing numpy.random or torch early would cost every user their import time.
 * 2. A slot is filled last, after everything that can fail.
 */
#include "tracer/ops_registry.h"
#include "runtime/base/alloc.h"
#include <stdbool.h>
#include <string.h>

typedef struct op_slot {
    FG_OWNED PyObject *owner; /* the callable or the type; NULL: empty */
    FG_OWNED PyObject *name;  /* members: exact str, or NULL for a base link */
    const void *value;        /* fg_op_row, or for a base link the PyTypeObject (owned); NULL: forgotten */
} op_slot;

typedef struct op_map {
    op_slot *slots;
    size_t mask, used; /* mask + 1 slots, a power of two; used <= half of them */
} op_map;

static op_map g_callables, g_members;

enum { ROWS_PER_CHUNK = 128 };
typedef struct row_chunk {
    struct row_chunk *before;
    size_t used;
    fg_op_row rows[ROWS_PER_CHUNK];
} row_chunk;
static row_chunk *g_rows;

/* ---- hash tables ---------------------------------------------------------------------------------------------------------------------------- */

static inline size_t hash_pointer(const void *p)
{
    uint64_t x = (uint64_t)(uintptr_t)p >> 4;
    x *= UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(x ^ (x >> 32));
}

static inline size_t hash_key(PyObject *owner, PyObject *name)
{
    size_t h = hash_pointer(owner);
    if (name != NULL)
        h ^= (size_t)PyObject_Hash(name) * 31; /* an exact str: cached or computed, cannot fail */
    return h;
}

static inline int key_matches(const op_slot *slot, PyObject *owner, PyObject *name)
{
    if (slot->owner != owner)
        return 0;
    if (slot->name == name)
        return 1;
    if (slot->name == NULL || name == NULL)
        return 0;
    /* PyUnicode_Compare of two exact str that are ready cannot fail. */
    return PyUnicode_GET_LENGTH(slot->name) == PyUnicode_GET_LENGTH(name) && PyUnicode_Compare(slot->name, name) == 0;
}

/* The slot with this key, or the empty one where it belongs. The table has an empty slot. */
static op_slot *map_slot(const op_map *map, PyObject *owner, PyObject *name)
{
    size_t i = hash_key(owner, name) & map->mask;
    while (map->slots[i].owner != NULL && !key_matches(&map->slots[i], owner, name))
        i = (i + 1) & map->mask;
    return &map->slots[i];
}

static fg_status map_reserve(op_map *map)
{
    if (map->slots != NULL && map->used * 2 < map->mask + 1)
        return FG_OK;
    op_map bigger = {NULL, map->slots == NULL ? 2047 : map->mask * 2 + 1, map->used};
    bigger.slots = fg_calloc(bigger.mask + 1, sizeof(op_slot));
    if (bigger.slots == NULL)
        return FG_ERR_NOMEM;
    if (map->slots != NULL)
        for (size_t i = 0; i <= map->mask; i++)
            if (map->slots[i].owner != NULL)
                *map_slot(&bigger, map->slots[i].owner, map->slots[i].name) = map->slots[i];
    fg_free(map->slots);
    *map = bigger;
    return FG_OK;
}

/* Room must have been reserved: cannot fail. */
static void map_set(op_map *map, PyObject *owner, PyObject *name, const void *value)
{
    op_slot *slot = map_slot(map, owner, name);
    if (slot->owner == NULL) {
        slot->owner = Py_NewRef(owner);
        slot->name = Py_XNewRef(name);
        map->used++;
    }
    slot->value = value;
}

static const void *map_get(const op_map *map, PyObject *owner, PyObject *name)
{
    return map->slots == NULL ? NULL : map_slot(map, owner, name)->value;
}

/* ---- libraries that are imported later ------------------------------------------------------------------------------------------------------ */

static PyObject *g_late; /* list of (module name, callback) */
static int g_late_running;

/* True if rows may have been added. */
static int late_check(void)
{
    if (g_late == NULL || PyList_GET_SIZE(g_late) == 0 || g_late_running)
        return 0;
    PyObject *type, *value, *traceback;
    int added = 0;
    PyErr_Fetch(&type, &value, &traceback);
    g_late_running = 1;
    for (Py_ssize_t i = PyList_GET_SIZE(g_late) - 1; i >= 0; i--) {
        PyObject *entry = Py_NewRef(PyList_GET_ITEM(g_late, i));
        PyObject *loaded = PyDict_GetItemWithError(PyImport_GetModuleDict(), PyTuple_GET_ITEM(entry, 0));
        if (loaded != NULL) {
            PyObject *result = PyObject_CallNoArgs(PyTuple_GET_ITEM(entry, 1));
            int is_done = result == NULL ? -1 : PyObject_IsTrue(result);
            Py_XDECREF(result);
            if (is_done < 0) /* a broken table of ours: said once, its operations stay unknown */
                PyErr_WriteUnraisable(PyTuple_GET_ITEM(entry, 1));
            if (is_done != 0 && PySequence_DelItem(g_late, i) < 0)
                PyErr_WriteUnraisable(g_late);
            added |= is_done > 0;
        }
        Py_DECREF(entry);
    }
    g_late_running = 0;
    PyErr_Restore(type, value, traceback);
    return added;
}

fg_status fg_op_register_late(PyObject *module, PyObject *callback)
{
    if (g_late == NULL && (g_late = PyList_New(0)) == NULL)
        return FG_ERR_PYTHON;
    if (g_late_running)
        return FG_ERR_BUSY;
    PyObject *entry = PyTuple_Pack(2, module, callback);
    if (entry == NULL)
        return FG_ERR_PYTHON;
    int failed = PyList_Append(g_late, entry);
    Py_DECREF(entry);
    return failed < 0 ? FG_ERR_PYTHON : FG_OK;
}

/* ---- look-up -------------------------------------------------------------------------------------------------------------------------------- */

enum { MAX_BOUND = 32 };
static struct {
    FG_OWNED PyTypeObject *type;
    FG_OWNED PyObject *name;
    const char *text; /* of name */
    const fg_op_row *row;
} g_bound[MAX_BOUND];
static size_t g_n_bound;

/* A builtin method bound to an operation, such as numpy.add.reduce: made anew at each attribute read, so found by what it is made of. */
static const fg_op_row *find_bound(PyObject *callable)
{
    if (!Py_IS_TYPE(callable, &PyCFunction_Type))
        return NULL;
    PyObject *self = PyCFunction_GET_SELF(callable);
    if (self == NULL || map_get(&g_callables, self, NULL) == NULL)
        return NULL;
    for (size_t i = 0; i < g_n_bound; i++)
        if (Py_IS_TYPE(self, g_bound[i].type) && strcmp(((PyCFunctionObject *)callable)->m_ml->ml_name, g_bound[i].text) == 0)
            return g_bound[i].row;
    return NULL;
}

const fg_op_row *fg_op_find(PyObject *callable)
{
    if (callable == NULL)
        return NULL;
    const fg_op_row *row = map_get(&g_callables, callable, NULL);
    if (row == NULL)
        row = find_bound(callable);
    if (row == NULL && late_check())
        row = map_get(&g_callables, callable, NULL);
    return row;
}

static const fg_op_row *find_member(PyTypeObject *type, PyObject *name)
{
    while (type != NULL) {
        const fg_op_row *row = map_get(&g_members, (PyObject *)type, name);
        if (row != NULL)
            return row;
        /* Ends: a base link goes to a proper base of the type. */
        type = (PyTypeObject *)map_get(&g_members, (PyObject *)type, NULL);
    }
    return NULL;
}

const fg_op_row *fg_op_find_member(PyTypeObject *type, PyObject *name)
{
    if (type == NULL || name == NULL || !PyUnicode_CheckExact(name))
        return NULL;
    const fg_op_row *row = find_member(type, name);
    return row == NULL && late_check() ? find_member(type, name) : row;
}

const fg_op_param *fg_op_param_find(const fg_op_row *row, Py_ssize_t position, PyObject *name)
{
    const fg_op_signature *signature = row->signature;
    if (signature == NULL)
        return NULL;
    if (name == NULL)
        return position >= 0 && position < signature->n_positional ? &signature->params[position] : NULL;
    if (!PyUnicode_CheckExact(name))
        return NULL;
    for (uint16_t i = signature->n_named_from; i < signature->n_params; i++) {
        PyObject *known = signature->params[i].name;
        if (known == name || (PyUnicode_GET_LENGTH(known) == PyUnicode_GET_LENGTH(name) && PyUnicode_Compare(known, name) == 0))
            return &signature->params[i];
    }
    return NULL;
}

fg_op_role fg_op_role_get(const fg_op_row *row, Py_ssize_t position, PyObject *name)
{
    if (row->signature == NULL)
        return FG_ROLE_OPERAND;
    const fg_op_param *param = fg_op_param_find(row, position, name);
    if (param != NULL)
        return (fg_op_role)param->role;
    return name == NULL && position >= row->signature->n_positional ? (fg_op_role)row->signature->rest : FG_ROLE_UNKNOWN;
}

/* ---- registration --------------------------------------------------------------------------------------------------------------------------- */

static fg_op_row *row_new(void)
{
    if (g_rows == NULL || g_rows->used == ROWS_PER_CHUNK) {
        row_chunk *chunk = fg_calloc(1, sizeof(*chunk));
        if (chunk == NULL)
            return NULL;
        chunk->before = g_rows;
        g_rows = chunk;
    }
    return &g_rows->rows[g_rows->used]; /* taken by row_fill; until then the next call gives it again */
}

static fg_status row_check(PyObject *callable, PyTypeObject *type, PyObject *name, uint32_t flags, int raises, int result)
{
    if ((callable == NULL) == (type == NULL) || name == NULL || !PyUnicode_CheckExact(name))
        return FG_ERR_INVALID;
    if (raises < FG_RAISES_NEVER || raises > FG_RAISES_DATA || result < FG_RESULT_TENSOR || result > FG_RESULT_OTHER)
        return FG_ERR_INVALID;
    return flags >= FG_OPF_ORDER * 2 ? FG_ERR_INVALID : FG_OK;
}

static bool has_count(const fg_op_signature *signature)
{
    for (uint16_t i = 0; signature != NULL && i < signature->n_params; i++)
        if (signature->params[i].role == FG_ROLE_COUNT)
            return true;
    return false;
}

/* The row of calls whose shape a count says. */
static fg_status row_add_counted(fg_op_row *of)
{
    if (!(of->flags & FG_OPF_DATA_OUTPUT) || !has_count(of->signature))
        return FG_OK;
    fg_op_row *row = row_new();
    if (row == NULL)
        return FG_ERR_NOMEM;
    *row = *of;
    Py_XINCREF(row->callable);
    Py_INCREF(row->name);
    row->flags &= ~(uint32_t)FG_OPF_DATA_OUTPUT;
    g_rows->used++;
    of->counted = row;
    return FG_OK;
}

static fg_status row_add(PyObject *callable, PyTypeObject *type, PyObject *key, PyObject *name, uint32_t flags, int raises, int result,
                         int is_attribute, const fg_op_signature *signature)
{
    fg_status st;
    FG_TRY(row_check(callable, type, name, flags, raises, result));
    op_map *map = callable != NULL ? &g_callables : &g_members;
    FG_TRY(map_reserve(map));
    fg_op_row *row = row_new();
    if (row == NULL)
        return FG_ERR_NOMEM;
    *row = (fg_op_row){Py_XNewRef(callable), Py_NewRef(name), flags, (uint8_t)raises, (uint8_t)result, is_attribute != 0, signature, NULL};
    g_rows->used++;
    FG_TRY(row_add_counted(row));
    map_set(map, callable != NULL ? callable : (PyObject *)type, key, row);
    return FG_OK;
fail:
    return st;
}

/* "ndarray.sum" -> "sum". */
static PyObject *last_part(PyObject *name)
{
    Py_ssize_t length = PyUnicode_GET_LENGTH(name);
    Py_ssize_t dot = PyUnicode_FindChar(name, '.', 0, length, -1);
    if (dot < -1)
        return NULL;
    PyObject *part = PyUnicode_Substring(name, dot + 1, length);
    if (part != NULL)
        PyUnicode_InternInPlace(&part);
    return part;
}

fg_status fg_op_register_with(PyObject *callable, PyTypeObject *type, PyObject *name, uint32_t flags, int raises, int result,
                              int is_attribute, PyObject *text)
{
    fg_status st;
    PyObject *key = NULL;
    const fg_op_signature *signature = NULL;
    FG_TRY(row_check(callable, type, name, flags, raises, result));
    if (text != NULL)
        FG_TRY(fg_op_signature_parse(text, &signature));
    if (type != NULL && (key = last_part(name)) == NULL) {
        st = FG_ERR_PYTHON;
        goto fail;
    }
    st = row_add(callable, type, key, name, flags, raises, result, is_attribute, signature);
fail:
    Py_XDECREF(key);
    return st;
}

fg_status fg_op_register(PyObject *callable, PyTypeObject *type, PyObject *name, uint32_t flags, int raises, int result, int is_attribute)
{
    return fg_op_register_with(callable, type, name, flags, raises, result, is_attribute, NULL);
}

fg_status fg_op_register_bound(PyTypeObject *type, PyObject *prefix, PyObject *names, uint32_t flags, int raises, int result,
                               const fg_op_signature *signature)
{
    fg_status st;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        FG_TRY(row_check(NULL, type, name, flags, raises, result));
        const char *text = PyUnicode_AsUTF8(name);
        PyObject *dotted = text == NULL ? NULL : PyUnicode_FromFormat("%U.%U", prefix, name);
        if (dotted == NULL)
            return FG_ERR_PYTHON;
        fg_op_row *row = row_new();
        if (row == NULL || g_n_bound == MAX_BOUND) {
            Py_DECREF(dotted);
            return row == NULL ? FG_ERR_NOMEM : FG_ERR_LIMIT;
        }
        *row = (fg_op_row){NULL, dotted, flags, (uint8_t)raises, (uint8_t)result, 0, signature, NULL};
        g_rows->used++;
        g_bound[g_n_bound].type = (PyTypeObject *)Py_NewRef((PyObject *)type);
        g_bound[g_n_bound].name = Py_NewRef(name);
        g_bound[g_n_bound].text = text;
        g_bound[g_n_bound].row = row;
        g_n_bound++;
    }
    return FG_OK;
fail:
    return st;
}

fg_status fg_op_register_base(PyTypeObject *type, PyTypeObject *base)
{
    fg_status st;
    if (type == base || !PyType_IsSubtype(type, base))
        return FG_ERR_INVALID;
    FG_TRY(map_reserve(&g_members));
    map_set(&g_members, (PyObject *)type, NULL, Py_NewRef((PyObject *)base));
    return FG_OK;
fail:
    return st;
}

void fg_op_forget(PyObject *callable)
{
    if (map_get(&g_callables, callable, NULL) != NULL)
        map_set(&g_callables, callable, NULL, NULL); /* the key stays: linear probing has no holes */
}

/* Names are looked up on `owner`; those it lacks are skipped, since rows cover several versions of a library. A type's own methods get a row for
 * the function or descriptor too, as in ndarray.sum(x). */
fg_status fg_op_register_many(PyObject *owner, PyObject *prefix, PyObject *names, uint32_t flags, int raises, int result, int is_attribute,
                              const fg_op_signature *signature, Py_ssize_t *count)
{
    fg_status st = FG_OK;
    PyObject *dotted = NULL, *object = NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        PyObject *key = PyTuple_GET_ITEM(names, i); /* borrowed from the caller's tuple */
        if (!PyUnicode_CheckExact(key)) {
            st = FG_ERR_INVALID;
            goto fail;
        }
        object = PyObject_GetAttr(owner, key);
        if (object == NULL) {
            if (!PyErr_ExceptionMatches(PyExc_AttributeError)) {
                st = FG_ERR_PYTHON;
                goto fail;
            }
            PyErr_Clear();
            continue;
        }
        dotted = PyUnicode_FromFormat("%U.%U", prefix, key);
        if (dotted == NULL) {
            st = FG_ERR_PYTHON;
            goto fail;
        }
        if (!PyType_Check(owner)) {
            if (PyCallable_Check(object))
                FG_TRY(row_add(object, NULL, NULL, dotted, flags, raises, result, is_attribute, signature));
        } else {
            FG_TRY(row_add(NULL, (PyTypeObject *)owner, key, dotted, flags, raises, result, is_attribute, signature));
            int is_own = Py_IS_TYPE(object, &PyMethodDescr_Type) || PyFunction_Check(object);
            if (!is_attribute && is_own)
                FG_TRY(row_add(object, NULL, NULL, dotted, flags, raises, result, 0, signature));
        }
        ++*count;
        Py_CLEAR(dotted);
        Py_CLEAR(object);
    }
    return FG_OK;
fail:
    Py_XDECREF(dotted);
    Py_XDECREF(object);
    return st;
}

Py_ssize_t fg_op_rows_visit(int (*visit)(const fg_op_row *row, void *context), void *context)
{
    const op_map *maps[] = {&g_callables, &g_members};
    Py_ssize_t n = 0;
    for (size_t m = 0; m < 2; m++)
        for (size_t i = 0; maps[m]->slots != NULL && i <= maps[m]->mask; i++) {
            const op_slot *slot = &maps[m]->slots[i];
            int is_row = slot->owner != NULL && slot->value != NULL && (m == 0 || slot->name != NULL);
            if (!is_row)
                continue;
            if (visit(slot->value, context) < 0)
                return -1;
            n++;
        }
    for (size_t i = 0; i < g_n_bound; i++, n++)
        if (visit(g_bound[i].row, context) < 0)
            return -1;
    return n;
}
