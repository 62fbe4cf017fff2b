/* Building a description: interned sources and conditions, relations, outputs, and the undo of all of them. */
#include "guards/guard_private.h"
#include "runtime/base/hash.h"
#include "runtime/cpython/function.h"
#include "runtime/cpython/iterators.h"
#include <string.h>

/* ---- tables ---- */

static const struct {
    const char *text;
    fg_key_class key;
} accessor_rows[] = {
#define FG_ACCESSOR(NAME, TEXT, KEY) {TEXT, FG_KEY_##KEY},
#include "guards/accessors.def"
#undef FG_ACCESSOR
};

static const struct {
    const char *text;
    fg_arg_class arg;
} guard_rows[] = {
#define FG_GUARD(NAME, TEXT, ARG) {TEXT, FG_ARG_##ARG},
#include "guards/guard_kinds.def"
#undef FG_GUARD
};

const char *fg_accessor_text(fg_accessor acc)
{
    return accessor_rows[acc].text;
}

fg_key_class fg_accessor_key(fg_accessor acc)
{
    return accessor_rows[acc].key;
}

const char *fg_guard_text(fg_guard_kind kind)
{
    return guard_rows[kind].text;
}

fg_arg_class fg_guard_arg_class(fg_guard_kind kind)
{
    return guard_rows[kind].arg;
}

int fg_accessor_is_root(fg_accessor acc)
{
    return acc <= FG_ACC_CONST; /* the rows of the roots come first */
}

/* ---- small arrays ---- */

fg_status fg_grow(void *array, uint32_t *cap, uint32_t need, size_t item)
{
    void *old, *grown;
    if (need <= *cap)
        return FG_OK;
    uint32_t room = *cap == 0 ? 16 : *cap * 2;
    while (room < need)
        room *= 2;
    memcpy(&old, array, sizeof old);
    grown = fg_realloc(old, (size_t)room * item);
    if (grown == NULL)
        return FG_ERR_NOMEM;
    memcpy(array, &grown, sizeof grown);
    *cap = room;
    return FG_OK;
}

/* ---- life ---- */

fg_status fg_desc_new(fg_desc **out)
{
    fg_desc *desc = fg_calloc(1, sizeof *desc);
    if (desc == NULL)
        return FG_ERR_NOMEM;
    *out = desc;
    return FG_OK;
}

static void guard_fini(const fg_desc *desc, fg_guard_record *guard)
{
    if (desc->block == NULL)
        fg_free(guard->owned);
    Py_XDECREF(guard->file);
    Py_XDECREF(guard->library);
}

void fg_desc_free_arrays(fg_desc *desc)
{
    fg_free(desc->nodes);
    fg_free(desc->guards);
    fg_free(desc->outputs);
    fg_free(desc->holds);
    fg_free(desc->node_heads);
}

void fg_desc_free(fg_desc *desc)
{
    if (desc == NULL)
        return;
    desc->invalidate = NULL;
    fg_watch_forget(desc);
    for (uint32_t i = 0; i < desc->n_guards; i++)
        guard_fini(desc, &desc->guards[i]);
    fg_hold_pop_to(desc, 0);
    Py_XDECREF(desc->slot_names);
    Py_XDECREF(desc->free_names);
    if (desc->block == NULL)
        fg_desc_free_arrays(desc);
    fg_free(desc->block);
    fg_free(desc);
}

void fg_desc_names_set(fg_desc *desc, PyObject *slot_names, PyObject *free_names)
{
    Py_XSETREF(desc->slot_names, Py_XNewRef(slot_names));
    Py_XSETREF(desc->free_names, Py_XNewRef(free_names));
}

void fg_desc_on_death(fg_desc *desc, void (*invalidate)(void *entry), void *entry)
{
    desc->invalidate = invalidate;
    desc->entry = entry;
    if (desc->dead && invalidate != NULL)
        invalidate(entry); /* it died before anyone listened */
}

Py_ssize_t fg_desc_n_guards(const fg_desc *desc)
{
    return (Py_ssize_t)desc->n_guards;
}

uint32_t fg_desc_n_outputs(const fg_desc *desc)
{
    return desc->n_outputs;
}

/* ---- interning ---- */

static fg_status heads_grow(fg_desc *desc)
{
    uint32_t n = desc->n_heads == 0 ? 32 : desc->n_heads * 2;
    int32_t *heads = fg_malloc(2 * (size_t)n * sizeof *heads);
    if (heads == NULL)
        return FG_ERR_NOMEM;
    memset(heads, 0xff, 2 * (size_t)n * sizeof *heads);
    fg_free(desc->node_heads);
    desc->node_heads = heads;
    desc->guard_heads = heads + n;
    desc->n_heads = n;
    for (uint32_t i = 0; i < desc->n_nodes; i++) {
        int32_t *head = &desc->node_heads[desc->nodes[i].chain_hash & (n - 1)];
        desc->nodes[i].chain_next = *head;
        *head = (int32_t)i;
    }
    for (uint32_t i = 0; i < desc->n_guards; i++) {
        int32_t *head = &desc->guard_heads[desc->guards[i].chain_hash & (n - 1)];
        desc->guards[i].chain_next = *head;
        *head = (int32_t)i;
    }
    return FG_OK;
}

static fg_status room_for_one(fg_desc *desc)
{
    if (desc->n_nodes >= desc->n_heads || desc->n_guards >= desc->n_heads)
        return heads_grow(desc);
    return FG_OK;
}

/* The last of an object's parts that are told apart by a number. */
static int64_t index_limit(fg_accessor acc)
{
    if (acc == FG_ACC_RANGE_PART || acc == FG_ACC_SLICE_PART || acc == FG_ACC_PROPERTY_PART)
        return 2;
    if (acc == FG_ACC_TYPE_PART)
        return 1;
    if (acc == FG_ACC_ITER_PART)
        return FG_ITERATOR_PARTS - 1;
    return acc == FG_ACC_FUNC_PART || acc == FG_ACC_CODE_PART ? 5 : INT64_MAX;
}

/* own: behind all others, since a text leaves them out and numbers the others by their places. */
static fg_status intern(fg_desc *desc, fg_accessor acc, fg_node parent, PyObject *key, PyObject *label, int64_t index, int own,
                        fg_node *out)
{
    fg_status st;
    fg_key_class keys;
    Py_hash_t hash = 0;
    uint32_t holds_before = desc->n_holds;

    if ((unsigned)acc >= FG_N_ACCESSORS || desc->block != NULL)
        return FG_ERR_INVALID;
    keys = fg_accessor_key(acc);
    if (fg_accessor_is_root(acc) ? parent != FG_NODE_NONE : parent < 0 || (uint32_t)parent >= desc->n_nodes)
        return FG_ERR_INVALID;
    if (keys == FG_KEY_NAME || keys == FG_KEY_OBJECT) {
        index = 0;
        if (label == NULL) {
            if (key == NULL)
                return FG_ERR_INVALID;
            if (keys == FG_KEY_NAME && !PyUnicode_CheckExact(key))
                return FG_ERR_INVALID;
            if (acc == FG_ACC_DICT_ITEM && !fg_key_is_plain(key))
                return FG_ERR_UNSUPPORTED;
        } else if (keys == FG_KEY_NAME) {
            return FG_ERR_INVALID;
        }
    } else {
        key = label = NULL;
        if (keys == FG_KEY_NONE)
            index = 0;
        else if (index < 0 && acc != FG_ACC_LIST_ITEM && acc != FG_ACC_TUPLE_ITEM)
            return FG_ERR_INVALID;
        if (index > index_limit(acc))
            return FG_ERR_INVALID;
    }

    if (acc == FG_ACC_FUNC_CODE && fg_function_init() < 0)
        return FG_ERR_PYTHON;
    uint64_t chain = fg_hash_mix((uint64_t)acc << 32 | (uint32_t)parent, (uint64_t)index);
    if (key != NULL) {
        chain = fg_hash_mix(chain, acc == FG_ACC_CONST ? (uint64_t)(uintptr_t)key : fg_const_hash(key));
        if (acc != FG_ACC_CONST && (hash = PyObject_Hash(key)) == -1) /* plain keys: builtin hashes only */
            return FG_ERR_PYTHON;
    }
    FG_TRY(room_for_one(desc));
    for (int32_t i = desc->node_heads[chain & (desc->n_heads - 1)]; i >= 0; i = desc->nodes[i].chain_next) {
        const fg_node_record *node = &desc->nodes[i];
        if (node->chain_hash != chain || node->acc != acc || node->parent != parent || node->index != index || label != NULL)
            continue;
        if (key != NULL) {
            PyObject *other = node->hold >= 0 ? fg_hold_get(&desc->holds[node->hold]) : NULL;
            if (other == NULL || !(acc == FG_ACC_CONST ? other == key : fg_const_same(other, key)))
                continue;
        } else if (node->key != NULL || node->hold >= 0) {
            continue;
        }
        *out = i;
        return FG_OK;
    }

    if (!own && desc->n_nodes > 0 && fg_node_is_own(desc, (fg_node)desc->n_nodes - 1))
        return FG_ERR_INVALID;
    FG_TRY(fg_grow(&desc->nodes, &desc->cap_nodes, desc->n_nodes + 1, sizeof *desc->nodes));
    fg_node_record node = {.acc = (uint8_t)acc,
                           .parent = parent,
                           .index = index,
                           .hash = hash,
                           .chain_hash = chain,
                           .hold = -1,
                           .output = -1,
                           .holds_before = holds_before};
    node.impure = acc == FG_ACC_GETATTR || (parent >= 0 && desc->nodes[parent].impure);
    if (key != NULL) {
        FG_TRY(fg_hold_take(desc, key, acc == FG_ACC_CONST ? FG_HOLD_IDENTITY : FG_HOLD_VALUE, &node.hold));
        node.key = key;
        if (acc != FG_ACC_CONST && PyUnicode_CheckExact(key)) {
            /* Names are looked up by address first: keep the interned twin. */
            PyObject **held = &desc->holds[node.hold].ref;
            PyUnicode_InternInPlace(held);
            node.key = desc->holds[node.hold].raw = *held;
        }
    } else if (label != NULL) {
        FG_TRY(fg_hold_unbound(desc, label, &node.hold));
    }
    int32_t *head = &desc->node_heads[chain & (desc->n_heads - 1)];
    node.chain_next = *head;
    *head = *out = (fg_node)desc->n_nodes;
    desc->nodes[desc->n_nodes++] = node;
    return FG_OK;
fail:
    fg_hold_pop_to(desc, holds_before);
    return st;
}

fg_status fg_desc_source_any(fg_desc *desc, fg_accessor acc, fg_node parent, PyObject *key, PyObject *label, int64_t index, fg_node *out)
{
    return intern(desc, acc, parent, key, label, index, 0, out);
}

fg_status fg_desc_source(fg_desc *desc, fg_accessor acc, fg_node parent, PyObject *key, int64_t index, fg_node *out)
{
    return intern(desc, acc, parent, key, NULL, index, 0, out);
}

/* ---- arguments ---- */

int fg_meta_same(const fg_meta_record *a, const fg_meta_record *b)
{
    return a->adaptor == b->adaptor && a->type == b->type && a->type != NULL && a->keys == b->keys && a->dtype == b->dtype &&
           a->device_type == b->device_type && a->device_index == b->device_index && a->requires_grad == b->requires_grad &&
           a->layout == b->layout && a->ndim == b->ndim && memcmp(a->dims, b->dims, 2 * (size_t)a->ndim * sizeof a->dims[0]) == 0;
}

int fg_state_same(const fg_torch_state *a, const fg_torch_state *b)
{
    return a->keys_included == b->keys_included && a->keys_excluded == b->keys_excluded && a->default_device == b->default_device &&
           a->autograd == b->autograd && a->function_mode_depth == b->function_mode_depth && a->function_disabled == b->function_disabled &&
           a->default_dtype == b->default_dtype && a->autocast_dtype[0] == b->autocast_dtype[0] &&
           a->autocast_dtype[1] == b->autocast_dtype[1] && a->present == b->present;
}

int fg_leaf_same(fg_guard_kind kind, const fg_leaf *a, const fg_leaf *b)
{
    switch (fg_guard_arg_class(kind)) {
    case FG_ARG_NONE: return 1;
    case FG_ARG_OBJECT:
        if (a->p == NULL || b->p == NULL)
            return 0; /* unbound ones are never one and the same */
        if (fg_guard_is_identity(kind))
            return a->p == b->p;
        return fg_const_same((PyObject *)a->p, (PyObject *)b->p);
    case FG_ARG_INT: return a->lo == b->lo;
    case FG_ARG_RANGE: return a->lo == b->lo && a->hi == b->hi;
    case FG_ARG_META: return fg_meta_same(a->p, b->p);
    case FG_ARG_STATE: return fg_state_same(a->p, b->p);
    case FG_ARG_NODES: return a->lo == b->lo && memcmp(a->p, b->p, (size_t)a->lo * sizeof(fg_node)) == 0;
    case FG_ARG_EXPR:
        return a->lo == b->lo && memcmp(a->p, b->p, (size_t)a->lo * sizeof(fg_node)) == 0 &&
               fg_expr_same(fg_guard_expr(kind, a), fg_guard_expr(kind, b));
    }
    return 0;
}

uint64_t fg_leaf_hash(fg_guard_kind kind, const fg_leaf *leaf)
{
    switch (fg_guard_arg_class(kind)) {
    case FG_ARG_NONE: return kind;
    case FG_ARG_OBJECT:
        if (leaf->p == NULL || fg_guard_is_identity(kind))
            return fg_hash_mix(kind, (uint64_t)(uintptr_t)leaf->p);
        return fg_hash_mix(kind, fg_const_hash((PyObject *)leaf->p));
    case FG_ARG_INT: return fg_hash_mix(kind, (uint64_t)leaf->lo);
    case FG_ARG_RANGE: return fg_hash_mix(fg_hash_mix(kind, (uint64_t)leaf->lo), (uint64_t)leaf->hi);
    case FG_ARG_META: {
        const fg_meta_record *meta = leaf->p;
        uint64_t hash = fg_hash_mix(kind, (uint64_t)(uintptr_t)meta->type);
        hash = fg_hash_mix(hash, (uint64_t)(uint32_t)meta->dtype << 32 | (uint32_t)meta->ndim);
        return fg_hash_bytes(meta->dims, 2 * (size_t)meta->ndim * sizeof meta->dims[0], hash);
    }
    case FG_ARG_STATE: {
        const fg_torch_state *state = leaf->p;
        return fg_hash_mix(fg_hash_mix(kind, state->keys_included ^ state->autograd), state->keys_excluded);
    }
    case FG_ARG_NODES: return fg_hash_bytes(leaf->p, (size_t)leaf->lo * sizeof(fg_node), kind);
    case FG_ARG_EXPR:
        return fg_hash_bytes(fg_guard_expr(kind, leaf), fg_expr_nbytes(fg_guard_expr(kind, leaf)),
                             fg_hash_bytes(leaf->p, (size_t)leaf->lo * sizeof(fg_node), kind));
    }
    return 0;
}

static fg_status meta_copy(fg_desc *desc, const fg_tensor_meta *meta, fg_guard_record *guard)
{
    if (meta == NULL || meta->ndim < 0 || meta->ndim > FG_TENSOR_MAX_DIM)
        return FG_ERR_INVALID;
    size_t n = (size_t)meta->ndim;
    fg_meta_record *record = fg_calloc(1, sizeof *record + 2 * n * sizeof record->dims[0]);
    if (record == NULL)
        return FG_ERR_NOMEM;
    guard->owned = record;
    guard->leaf.p = record;
    record->adaptor = meta->adaptor;
    record->type = meta->type;
    record->keys = meta->keys;
    record->dtype = meta->dtype;
    record->device_type = meta->device_type;
    record->device_index = meta->device_index;
    record->requires_grad = meta->requires_grad;
    record->layout = meta->layout;
    record->ndim = meta->ndim;
    if (n > 0) {
        memcpy(record->dims, meta->sizes, n * sizeof record->dims[0]);
        memcpy(record->dims + n, meta->strides, n * sizeof record->dims[0]);
    }
    if (meta->adaptor != NULL && guard->library == NULL) {
        guard->library = PyUnicode_FromString(meta->adaptor->name);
        if (guard->library == NULL)
            return FG_ERR_PYTHON;
    }
    return meta->type != NULL ? fg_hold_take(desc, (PyObject *)meta->type, FG_HOLD_IDENTITY, &guard->hold) : FG_OK;
}

/* A tuple of ints of 64 bits. */
static int is_state(PyObject *object)
{
    if (!PyTuple_CheckExact(object) || PyTuple_GET_SIZE(object) > FG_ITERATOR_STATE)
        return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); i++) {
        int overflow = 0;
        PyObject *number = PyTuple_GET_ITEM(object, i);
        if (!PyLong_CheckExact(number) || (PyLong_AsLongLongAndOverflow(number, &overflow), overflow))
            return 0;
    }
    return 1;
}

static fg_status object_arg(fg_desc *desc, PyObject *object, fg_guard_record *guard)
{
    fg_hold_mode mode = FG_HOLD_VALUE;
    if (object == NULL)
        return FG_ERR_INVALID;
    switch (guard->kind) {
    case FG_GUARD_TYPE:
    case FG_GUARD_SUBTYPE:
    case FG_GUARD_NO_SUBTYPE:
        if (!PyType_Check(object))
            return FG_ERR_INVALID;
        mode = FG_HOLD_IDENTITY;
        break;
    case FG_GUARD_ID: mode = FG_HOLD_IDENTITY; break;
    case FG_GUARD_ACCEPTS:
        if (!PyCallable_Check(object))
            return FG_ERR_INVALID;
        mode = FG_HOLD_OWNED;
        break;
    case FG_GUARD_CONST:
        if (!fg_const_is_scalar(object))
            return FG_ERR_INVALID;
        if (PyLong_CheckExact(object)) {
            int overflow = 0;
            guard->leaf.lo = PyLong_AsLongLongAndOverflow(object, &overflow);
            guard->leaf.hi = !overflow;
        }
        break;
    case FG_GUARD_DICT_HAS:
    case FG_GUARD_DICT_LACKS:
    case FG_GUARD_DICT_QUIET:
    case FG_GUARD_SET_HAS:
    case FG_GUARD_SET_LACKS:
        if (!fg_key_is_plain(object))
            return FG_ERR_UNSUPPORTED;
        if ((guard->leaf.lo = PyObject_Hash(object)) == -1)
            return FG_ERR_PYTHON;
        break;
    case FG_GUARD_ATTR_HAS:
    case FG_GUARD_ATTR_LACKS:
    case FG_GUARD_ATTR_QUIET:
        if (!PyUnicode_CheckExact(object))
            return FG_ERR_INVALID;
        if ((guard->leaf.lo = PyObject_Hash(object)) == -1)
            return FG_ERR_PYTHON;
        break;
    case FG_GUARD_ITER_STATE:
        if (!is_state(object))
            return FG_ERR_INVALID;
        break;
    case FG_GUARD_DICT_KEYS:
    case FG_GUARD_SET_ITEMS:
        if (!PyTuple_CheckExact(object))
            return FG_ERR_INVALID;
        if (!fg_key_is_plain(object))
            return FG_ERR_UNSUPPORTED;
        break;
    default: /* the kinds whose argument is no object never come here */
        return FG_BUG("a guard kind with an object argument has no rule for it");
    }
    fg_status st = fg_hold_take(desc, object, mode, &guard->hold);
    if (st != FG_OK)
        return st;
    if (guard->kind == FG_GUARD_DICT_HAS || guard->kind == FG_GUARD_DICT_LACKS || guard->kind == FG_GUARD_ATTR_HAS ||
        guard->kind == FG_GUARD_ATTR_LACKS || guard->kind == FG_GUARD_ATTR_QUIET || guard->kind == FG_GUARD_DICT_QUIET) {
        if (PyUnicode_CheckExact(object)) {
            fg_hold *hold = &desc->holds[guard->hold];
            PyUnicode_InternInPlace(&hold->ref);
            object = hold->raw = hold->ref;
        }
    }
    guard->leaf.p = object;
    return FG_OK;
}

/* Chain the finished record in, or give it up when an equal one is there. Takes what the record owns in either case. */
static fg_status guard_add(fg_desc *desc, fg_guard_record *guard)
{
    fg_status st;
    guard->chain_hash = fg_hash_mix(fg_leaf_hash(guard->kind, &guard->leaf), (uint32_t)guard->node);
    FG_TRY(room_for_one(desc));
    for (int32_t i = desc->guard_heads[guard->chain_hash & (desc->n_heads - 1)]; i >= 0; i = desc->guards[i].chain_next) {
        const fg_guard_record *other = &desc->guards[i];
        if (other->chain_hash == guard->chain_hash && other->kind == guard->kind && other->node == guard->node &&
            fg_leaf_same(guard->kind, &other->leaf, &guard->leaf) && (other->hold < 0 || fg_hold_get(&desc->holds[other->hold]) != NULL)) {
            fg_hold_pop_to(desc, guard->holds_before);
            guard_fini(desc, guard);
            return FG_OK;
        }
    }
    FG_TRY(fg_grow(&desc->guards, &desc->cap_guards, desc->n_guards + 1, sizeof *desc->guards));
    int32_t *head = &desc->guard_heads[guard->chain_hash & (desc->n_heads - 1)];
    guard->chain_next = *head;
    *head = (int32_t)desc->n_guards;
    desc->guards[desc->n_guards++] = *guard;
    return FG_OK;
fail:
    fg_hold_pop_to(desc, guard->holds_before);
    guard_fini(desc, guard);
    return st;
}

fg_status fg_desc_guard_any(fg_desc *desc, fg_guard_kind kind, fg_node node, const fg_guard_arg *arg, PyObject *label, PyObject *library,
                            PyObject *file, int line)
{
    fg_status st = FG_OK;
    fg_guard_record guard = {.kind = (uint8_t)kind, .node = node, .hold = -1, .line = line, .holds_before = desc->n_holds};

    if ((unsigned)kind >= FG_N_GUARDS || desc->block != NULL)
        return FG_ERR_INVALID;
    fg_arg_class args = fg_guard_arg_class(kind);
    if (args == FG_ARG_NODES || args == FG_ARG_EXPR ||
        (fg_guard_is_loose(kind) ? node != FG_NODE_NONE : node < 0 || (uint32_t)node >= desc->n_nodes || fg_node_is_own(desc, node)))
        return FG_ERR_INVALID;
    if (kind == FG_GUARD_ABC_TOKEN)
        (void)fg_abc_token_at(); /* found now, so that a check only reads it */
    guard.file = Py_XNewRef(file);
    guard.library = Py_XNewRef(library);
    switch (args) {
    case FG_ARG_NONE:
    case FG_ARG_NODES:
    case FG_ARG_EXPR: break;
    case FG_ARG_OBJECT:
        if (label != NULL)
            FG_TRY(fg_hold_unbound(desc, label, &guard.hold));
        else
            FG_TRY(object_arg(desc, arg->object, &guard));
        break;
    case FG_ARG_INT: guard.leaf.lo = kind == FG_GUARD_TRUTH ? arg->lo != 0 : arg->lo; break;
    case FG_ARG_RANGE:
        guard.leaf.lo = arg->lo;
        guard.leaf.hi = arg->hi;
        break;
    case FG_ARG_META:
        FG_TRY(meta_copy(desc, arg->meta, &guard));
        if (label != NULL)
            FG_TRY(fg_hold_unbound(desc, label, &guard.hold));
        break;
    case FG_ARG_STATE:
        if (arg->state == NULL)
            FG_TRY(FG_ERR_INVALID);
        guard.owned = fg_malloc(sizeof *arg->state);
        if (guard.owned == NULL)
            FG_TRY(FG_ERR_NOMEM);
        memcpy(guard.owned, arg->state, sizeof *arg->state);
        guard.leaf.p = guard.owned;
        break;
    }
    return guard_add(desc, &guard);
fail:
    fg_hold_pop_to(desc, guard.holds_before);
    guard_fini(desc, &guard);
    return st;
}

fg_status fg_desc_guard(fg_desc *desc, fg_guard_kind kind, fg_node node, fg_guard_arg arg, fg_origin origin)
{
    return fg_desc_guard_any(desc, kind, node, &arg, NULL, NULL, origin.code != NULL ? origin.code->co_filename : NULL, origin.line);
}

fg_status fg_desc_relation_any(fg_desc *desc, fg_guard_kind kind, const fg_node *nodes, size_t n, const fg_expr *expr, PyObject *file,
                               int line)
{
    if ((unsigned)kind >= FG_N_GUARDS || desc->block != NULL || n < (expr != NULL ? 1 : 2) || n > INT32_MAX / sizeof *nodes ||
        fg_guard_arg_class(kind) != (expr != NULL ? FG_ARG_EXPR : FG_ARG_NODES))
        return FG_ERR_INVALID;
    for (size_t i = 0; i < n; i++) {
        if (nodes[i] < 0 || (uint32_t)nodes[i] >= desc->n_nodes || fg_node_is_own(desc, nodes[i]))
            return FG_ERR_INVALID;
    }
    /* The types of what is read as a tensor become known now, so that a check need not ask them. */
    for (size_t i = 0; i < n && fg_relation_reads_tensors(kind) && !desc->dead; i++) {
        const PyTypeObject *type = fg_desc_type_of(desc, nodes[i]);
        if (type != NULL)
            (void)fg_tensor_adaptor_find((PyTypeObject *)type);
    }
    fg_guard_record guard = {
        .kind = (uint8_t)kind, .node = FG_NODE_NONE, .hold = -1, .n_ids = (uint32_t)n, .line = line, .holds_before = desc->n_holds};
    /* The expression lies behind the sources. */
    size_t at = (n * sizeof *nodes + sizeof(fg_expr_step) - 1) / sizeof(fg_expr_step) * sizeof(fg_expr_step);
    guard.owned = fg_malloc(at + (expr != NULL ? fg_expr_nbytes(expr) : 0));
    if (guard.owned == NULL)
        return FG_ERR_NOMEM;
    memcpy(guard.owned, nodes, n * sizeof *nodes);
    guard.leaf = (fg_leaf){.p = guard.owned, .lo = (int64_t)n};
    if (expr != NULL) {
        memcpy((char *)guard.owned + at, expr, fg_expr_nbytes(expr));
        guard.leaf.hi = (int64_t)(intptr_t)((char *)guard.owned + at);
    }
    guard.file = Py_XNewRef(file);
    return guard_add(desc, &guard);
}

fg_status fg_desc_relation(fg_desc *desc, fg_guard_kind kind, const fg_node *nodes, size_t n, fg_origin origin)
{
    return fg_desc_relation_any(desc, kind, nodes, n, NULL, origin.code != NULL ? origin.code->co_filename : NULL, origin.line);
}

fg_status fg_desc_expression(fg_desc *desc, const fg_node *nodes, size_t n, const char *text, fg_origin origin)
{
    fg_expr *expr = NULL;
    const char *problem = NULL;
    fg_status st = fg_expr_parse(text, n, &expr, &problem);
    if (st == FG_OK)
        st = fg_desc_relation_any(desc, FG_GUARD_EXPR, nodes, n, expr, origin.code != NULL ? origin.code->co_filename : NULL, origin.line);
    fg_free(expr);
    return st;
}

fg_status fg_desc_own(fg_desc *desc, PyObject *object, fg_node *out)
{
    const uint32_t before = desc->n_nodes;
    fg_status st = intern(desc, FG_ACC_CONST, FG_NODE_NONE, object, NULL, 0, 1, out);
    if (st != FG_OK)
        return st;
    fg_hold *hold = &desc->holds[desc->nodes[*out].hold];
    if (desc->n_nodes == before && !hold->own)
        return FG_ERR_INVALID;
    hold->own = 1;
    if (hold->weak) {
        Py_SETREF(hold->ref, Py_NewRef(object));
        hold->weak = 0;
    }
    return FG_OK;
}

int fg_desc_traverse(const fg_desc *desc, visitproc visit, void *arg)
{
    for (uint32_t i = 0; i < desc->n_guards; i++) {
        if (desc->guards[i].kind == FG_GUARD_ACCEPTS && desc->guards[i].hold >= 0)
            Py_VISIT(desc->holds[desc->guards[i].hold].ref);
    }
    return 0;
}

void fg_desc_clear(fg_desc *desc)
{
    for (uint32_t i = 0; i < desc->n_guards; i++) {
        if (desc->guards[i].kind != FG_GUARD_ACCEPTS || desc->guards[i].hold < 0)
            continue;
        desc->dead = 1;
        Py_CLEAR(desc->holds[desc->guards[i].hold].ref);
    }
}

fg_status fg_desc_output(fg_desc *desc, fg_node node, uint32_t *position)
{
    if (node < 0 || (uint32_t)node >= desc->n_nodes || desc->block != NULL)
        return FG_ERR_INVALID;
    for (fg_node at = node; at >= 0; at = desc->nodes[at].parent) {
        if (desc->nodes[at].acc == FG_ACC_WEAKREF)
            return FG_ERR_UNSUPPORTED; /* inputs are borrowed, and this one may die before the target has taken it */
    }
    if (desc->nodes[node].output < 0) {
        if (fg_grow(&desc->outputs, &desc->cap_outputs, desc->n_outputs + 1, sizeof *desc->outputs) != FG_OK)
            return FG_ERR_NOMEM;
        desc->nodes[node].output = (int32_t)desc->n_outputs;
        desc->outputs[desc->n_outputs++] = node;
    }
    *position = (uint32_t)desc->nodes[node].output;
    return FG_OK;
}

/* ---- undo ---- */

fg_desc_mark fg_desc_mark_get(const fg_desc *desc)
{
    return (fg_desc_mark){desc->n_nodes, desc->n_guards, desc->n_outputs};
}

void fg_desc_rewind(fg_desc *desc, fg_desc_mark mark)
{
    uint32_t holds = desc->n_holds;

    while (desc->n_outputs > mark.n_outputs)
        desc->nodes[desc->outputs[--desc->n_outputs]].output = -1;
    while (desc->n_guards > mark.n_guards) {
        fg_guard_record *guard = &desc->guards[--desc->n_guards];
        desc->guard_heads[guard->chain_hash & (desc->n_heads - 1)] = guard->chain_next;
        holds = guard->holds_before < holds ? guard->holds_before : holds;
        guard_fini(desc, guard);
    }
    while (desc->n_nodes > mark.n_nodes) {
        const fg_node_record *node = &desc->nodes[--desc->n_nodes];
        desc->node_heads[node->chain_hash & (desc->n_heads - 1)] = node->chain_next;
        holds = node->holds_before < holds ? node->holds_before : holds;
    }
    fg_hold_pop_to(desc, holds);
}

/* ---- questions ---- */

const fg_meta_record *fg_desc_meta_of(const fg_desc *desc, fg_node node)
{
    for (uint32_t i = 0; i < desc->n_guards; i++) {
        if (desc->guards[i].kind == FG_GUARD_TENSOR && desc->guards[i].node == node)
            return desc->guards[i].leaf.p;
    }
    return NULL;
}

static int node_is_private(const fg_desc *desc, fg_node node)
{
    for (; node >= 0; node = desc->nodes[node].parent) {
        switch ((fg_accessor)desc->nodes[node].acc) {
        case FG_ACC_ARG:
        case FG_ACC_FREEVAR:
        case FG_ACC_GLOBALS:
        case FG_ACC_FUNC:
        case FG_ACC_CELL_CONTENTS:
        case FG_ACC_DICT_ITEM:
        case FG_ACC_DICT_KEY:
        case FG_ACC_LIST_ITEM:
        case FG_ACC_TUPLE_ITEM:
        case FG_ACC_INSTANCE_ATTR:
        case FG_ACC_SLOT_ATTR:
        case FG_ACC_FUNC_DEFAULTS:
        case FG_ACC_FUNC_KWDEFAULTS:
        case FG_ACC_FUNC_CLOSURE:
        case FG_ACC_FUNC_GLOBALS:
        case FG_ACC_METHOD_FUNC:
        case FG_ACC_METHOD_SELF: break;
        case FG_ACC_BUILTINS:
        case FG_ACC_CONST:
        case FG_ACC_TYPE:
        case FG_ACC_TYPE_LOOKUP:
        case FG_ACC_MODULE_DICT:
        case FG_ACC_FUNC_CODE:
        case FG_ACC_FUNC_BUILTINS:
        case FG_ACC_DESCR_FUNC:
        case FG_ACC_PROPERTY_PART:
        case FG_ACC_RANGE_PART:
        case FG_ACC_SLICE_PART:
        case FG_ACC_PROXY_MAPPING:
        case FG_ACC_MRO:
        case FG_ACC_CODE_CONSTS:
        case FG_ACC_WEAKREF:
        case FG_ACC_TYPE_PART:
        case FG_ACC_BASES:
        case FG_ACC_ITER_PART:
        case FG_ACC_ITER_ITEM:
        case FG_ACC_DEQUE_ITEM:
        case FG_ACC_VIEW_DICT:
        case FG_ACC_FUNC_PART:
        case FG_ACC_CODE_PART:
        case FG_ACC_BUILTIN_SELF:
        case FG_ACC_GETATTR:
        case FG_N_ACCESSORS: return 0;
        }
    }
    return 1;
}

int fg_desc_output_is_private(const fg_desc *desc, uint32_t position)
{
    return position < desc->n_outputs && node_is_private(desc, desc->outputs[position]);
}

int fg_desc_aliases_are_private(const fg_desc *desc)
{
    for (uint32_t i = 0; i < desc->n_guards; i++) {
        const fg_guard_record *guard = &desc->guards[i];
        for (uint32_t k = 0; guard->kind == FG_GUARD_SAME && k < guard->n_ids; k++) {
            if (!node_is_private(desc, ((const fg_node *)guard->owned)[k]))
                return 0;
        }
    }
    return 1;
}

const PyTypeObject *fg_desc_type_of(const fg_desc *desc, fg_node node)
{
    for (uint32_t i = 0; i < desc->n_guards; i++) {
        const fg_guard_record *guard = &desc->guards[i];
        if (guard->node != node)
            continue;
        if (guard->kind == FG_GUARD_TYPE)
            return guard->leaf.p;
        if (guard->kind == FG_GUARD_TENSOR)
            return ((const fg_meta_record *)guard->leaf.p)->type;
    }
    return NULL;
}
