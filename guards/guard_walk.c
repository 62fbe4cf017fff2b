/* Evaluation of one description as it is written, source by source: the plain way that the merged program is tested against, GuardTree.check, and,
 * with another function for a condition, the explanation.
 *
 * 1. Pure pass: the conditions on no source; then each source that takes part is read after its parent and after the conditions on the parent; then
 *    relations. Torch's state comes first because reading it may allocate, and so run destructors: nothing is borrowed yet then.
 * 2. If any source or condition is impure: the pure values that they start from are held, and the impure sources are read, each value held, and the
 *    impure conditions evaluated. When all of this holds, the users' callables are asked, in the order of the conditions; their values are held, too.
 * 3. Then all that is impure once more, on what was read (getattr is not asked again), where more than one thing could run Python; and the pure pass,
 *    since Python ran. What the impure ones started from and what the callables were shown must be the very objects that are found again.
 */
#define FG_EXPLAIN 0
#include "guards/guard_bodies.h"
#include "guards/guard_read.h"

static PyObject *node_key(const fg_desc *desc, const fg_node_record *node, int64_t *n)
{
    switch (fg_accessor_key(node->acc)) {
    case FG_KEY_NONE:
    case FG_KEY_INDEX: *n = node->index; return NULL;
    case FG_KEY_NAME:
    case FG_KEY_OBJECT: break;
    }
    *n = node->hash;
    if (node->acc == FG_ACC_CONST) {
        *n = 0;
        return node->hold >= 0 ? fg_hold_get(&desc->holds[node->hold]) : NULL;
    }
    return node->key;
}

static int read_node(const fg_walk *walk, fg_node index, PyObject **value)
{
    const fg_desc *desc = walk->desc;
    const fg_node_record *node = &desc->nodes[index];
    PyObject *parent = NULL;
    int64_t n = 0;

    if (node->parent >= 0 && ((parent = walk->values[node->parent]) == NULL || walk->failed[node->parent]))
        return FG_FIND_UNDECIDED;
    PyObject *key = node_key(desc, node, &n);
    if (key == NULL && fg_accessor_key(node->acc) >= FG_KEY_NAME)
        return FG_FIND_UNDECIDED; /* unbound */
    if (node->acc == FG_ACC_GETATTR)
        return fg_read_getattr(parent, key, value);
    if (node->acc == FG_ACC_SLOT_ATTR) {
        const PyTypeObject *type = fg_desc_type_of(desc, node->parent);
        if (Py_TYPE(parent) != type || !fg_slot_is_member(type, node->index))
            return FG_FIND_UNDECIDED;
    }
    return fg_read_any(node->acc, walk->view, parent, key, n, value);
}

static int hold_value(fg_walk *walk, PyObject *value)
{
    walk->held[walk->n_held++] = value;
    return 0;
}

/* Take one answer into *ok, the answer of several: 1, 0, or -1 from then on. Tells whether to ask the next. */
static int go_on(const fg_walk *walk, int one, int *ok)
{
    *ok = one < 0 ? -1 : *ok & one;
    return *ok > 0 || (*ok == 0 && walk->keep_going);
}

/* Put the source's conditions that are so (impure or not), but for a user's, to the value. 1, 0, -1. */
static int walk_facts(fg_walk *walk, fg_node index, PyObject *value, int impure)
{
    int ok = 1;
    for (uint32_t i = walk->want.first[index]; i < walk->want.first[index + 1]; i++) {
        const int32_t number = walk->want.by_node[i];
        const fg_guard_record *guard = &walk->desc->guards[number];
        if (guard->kind == FG_GUARD_ACCEPTS || walk->want.impure[number] != impure)
            continue;
        int one = walk->fact(walk, guard, value);
        if (one == 0)
            walk->failed[index] = 1;
        if (!go_on(walk, one, &ok))
            break;
    }
    return ok;
}

/* Read the source and put its conditions to the value: all of them if it is impure, else the pure ones. 1, 0, -1. */
static int walk_node(fg_walk *walk, fg_node index)
{
    const fg_node_record *node = &walk->desc->nodes[index];
    uint8_t want = walk->want.of_node[index];
    PyObject *value = NULL;
    int ok = 1;

    walk->values[index] = NULL;
    walk->failed[index] = 0;
    if (want == 0)
        return 1;
    int found = read_node(walk, index, &value);
    if (found == FG_READ_ERROR)
        return -1;
    if (found == FG_FIND_FOUND) {
        if (node->impure)
            hold_value(walk, node->acc == FG_ACC_GETATTR ? value : Py_NewRef(value));
        walk->values[index] = value;
    }
    if (want & FG_WANT_ABSENT)
        ok = found == FG_FIND_ABSENT;
    if (want & FG_WANT_PRESENT)
        ok = ok && found == FG_FIND_FOUND;
    if (!ok) {
        walk->failed[index] = 1;
        return walk->unreadable != NULL && (node->parent < 0 || !walk->failed[node->parent]) ? walk->unreadable(walk, index, found) : 0;
    }
    return found == FG_FIND_FOUND ? walk_facts(walk, index, value, node->impure) : 1;
}

/* The conditions on no source. */
static int walk_loose(fg_walk *walk)
{
    const fg_desc *desc = walk->desc;
    int ok = 1;

    for (uint32_t i = walk->want.first[desc->n_nodes]; i < walk->want.first[desc->n_nodes + 1]; i++) {
        const fg_guard_record *guard = &desc->guards[walk->want.by_node[i]];
        if (!fg_guard_is_loose(guard->kind))
            continue;
        if (!go_on(walk, walk->fact(walk, guard, NULL), &ok))
            break;
    }
    return ok;
}

static int walk_relations(fg_walk *walk, int impure)
{
    const fg_desc *desc = walk->desc;
    int ok = 1;

    for (uint32_t i = walk->want.first[desc->n_nodes]; i < walk->want.first[desc->n_nodes + 1]; i++) {
        const int32_t number = walk->want.by_node[i];
        const fg_guard_record *guard = &desc->guards[number];
        int readable = 1;
        if (fg_guard_is_loose(guard->kind) || walk->want.impure[number] != impure)
            continue;
        for (uint32_t k = 0; k < guard->n_ids; k++) {
            fg_node id = ((const fg_node *)guard->owned)[k];
            readable = readable && walk->values[id] != NULL && !walk->failed[id];
        }
        if (!go_on(walk, readable ? walk->fact(walk, guard, NULL) : 0, &ok))
            break;
    }
    return ok;
}

static int walk_pass(fg_walk *walk, int impure)
{
    const fg_desc *desc = walk->desc;
    int ok = impure ? 1 : walk_loose(walk);

    if (ok < 0 || (!ok && !walk->keep_going))
        return ok;
    for (uint32_t i = 0; i < desc->n_nodes; i++) {
        int one;
        if (desc->nodes[i].impure == impure)
            one = walk_node(walk, (fg_node)i);
        else if (impure && walk->values[i] != NULL && !walk->failed[i])
            one = walk_facts(walk, (fg_node)i, walk->values[i], 1);
        else
            continue;
        if (!go_on(walk, one, &ok))
            return ok;
    }
    (void)go_on(walk, walk_relations(walk, impure), &ok);
    return ok;
}

const fg_tensor_adaptor *fg_relation_adaptor(const fg_desc *desc, fg_node node)
{
    const fg_meta_record *meta = fg_desc_meta_of(desc, node);
    if (meta != NULL)
        return meta->adaptor;
    const PyTypeObject *type = fg_desc_type_of(desc, node);
    return type != NULL ? fg_tensor_adaptor_known(type) : NULL;
}

void fg_relation_adaptors(const fg_desc *desc, const fg_guard_record *guard, const fg_tensor_adaptor **out)
{
    for (uint32_t i = 0; i < guard->n_ids; i++)
        out[i] = fg_relation_adaptor(desc, ((const fg_node *)guard->owned)[i]);
}

Py_ssize_t fg_builtin_length(PyObject *v)
{
    return fg_length_of(v);
}

/* Ask the users' callables. Values are held by the caller. */
static int walk_users(fg_walk *walk)
{
    const fg_desc *desc = walk->desc;
    int ok = 1;
    for (uint32_t i = 0; i < desc->n_guards; i++) {
        const fg_guard_record *guard = &desc->guards[i];
        if (guard->kind != FG_GUARD_ACCEPTS)
            continue;
        if (desc->dead)
            return 0;
        if (!go_on(walk, walk->fact(walk, guard, walk->values[guard->node]), &ok))
            break;
    }
    return ok;
}

/* What is impure again: what ran after each condition may have changed what it is about. Only getattr's answers stand. */
static int walk_impure_again(fg_walk *walk)
{
    const fg_desc *desc = walk->desc;
    for (uint32_t i = 0; i < desc->n_nodes; i++) {
        PyObject *value = walk->values[i], *now = NULL;
        if (walk->want.of_node[i] == 0)
            continue;
        if (desc->nodes[i].impure && desc->nodes[i].acc != FG_ACC_GETATTR) {
            int found = read_node(walk, (fg_node)i, &now);
            if (found != (value != NULL ? FG_FIND_FOUND : FG_FIND_ABSENT) || (value != NULL && now != value))
                return 0;
        }
        int one = value != NULL ? walk_facts(walk, (fg_node)i, value, 1) : 1;
        if (one <= 0)
            return one;
    }
    return walk_relations(walk, 1);
}

/* Hold the value of a pure source that Python is about to be shown; it is the object that must be found again. */
static void hold_start(fg_walk *walk, PyObject **starts, fg_node node)
{
    if (node >= 0 && !walk->desc->nodes[node].impure && starts[node] == NULL && walk->values[node] != NULL) {
        starts[node] = walk->values[node];
        hold_value(walk, Py_NewRef(starts[node]));
    }
}

static void hold_starts(fg_walk *walk, PyObject **starts)
{
    const fg_desc *desc = walk->desc;

    for (uint32_t i = 0; i < desc->n_nodes; i++) {
        if (desc->nodes[i].impure && walk->want.of_node[i] != 0)
            hold_start(walk, starts, desc->nodes[i].parent);
    }
    for (uint32_t i = 0; i < desc->n_guards; i++) {
        const fg_guard_record *guard = &desc->guards[i];
        if (guard->kind != FG_GUARD_ACCEPTS && !walk->want.impure[i])
            continue;
        hold_start(walk, starts, guard->node);
        for (uint32_t k = 0; k < guard->n_ids; k++)
            hold_start(walk, starts, ((const fg_node *)guard->owned)[k]);
    }
}

int fg_walk_run(fg_walk *walk)
{
    const fg_desc *desc = walk->desc;
    uint32_t n = desc->n_nodes, n_impure = walk->want.n_impure;
    PyObject *type = NULL, *value = NULL, *traceback = NULL;
    PyObject **starts = NULL;
    int ok = -1;

    walk->values = fg_calloc(n + 1, sizeof *walk->values);
    walk->failed = fg_calloc(n + 1, 1);
    walk->held = fg_calloc(2 * (size_t)n + 1, sizeof *walk->held);
    starts = n_impure > 0 ? fg_calloc(n + 1, sizeof *starts) : NULL;
    if (walk->values == NULL || walk->failed == NULL || walk->held == NULL || (n_impure > 0 && starts == NULL)) {
        PyErr_NoMemory();
        goto done;
    }
    if (n_impure > 0)
        PyErr_Fetch(&type, &value, &traceback);
    ok = walk_pass(walk, 0);
    if (n_impure == 0 || ok < 0 || (ok == 0 && !walk->keep_going))
        goto done;

    hold_starts(walk, starts);
    int impure_ok = walk_pass(walk, 1);
    if (impure_ok > 0 && ok > 0)
        impure_ok = walk_users(walk);
    if (impure_ok > 0 && !walk->keep_going && n_impure > 1)
        impure_ok = walk_impure_again(walk);
    if (impure_ok <= 0 || walk->keep_going) {
        ok = impure_ok < 0 ? -1 : ok & impure_ok;
        goto done;
    }
    ok = walk_pass(walk, 0);
    for (uint32_t i = 0; i < n && ok > 0; i++)
        ok = starts[i] == NULL || starts[i] == walk->values[i];
    if (ok > 0 && desc->dead)
        ok = 0;
done:
    if (ok < 0 && type != NULL) {
        Py_DECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
    } else if (type != NULL) {
        PyErr_Restore(type, value, traceback);
    }
    fg_free(starts);
    return ok;
}

static int check_fact(fg_walk *walk, const fg_guard_record *guard, PyObject *v)
{
    const fg_leaf *leaf = &guard->leaf;

    switch ((fg_guard_kind)guard->kind) {
#define FG_LEAF_CASE(NAME) \
    case FG_GUARD_##NAME:  \
        return fg_check_##NAME(v, leaf);
#define FG_CASE_NONE(NAME) FG_LEAF_CASE(NAME)
#define FG_CASE_OBJECT(NAME) FG_LEAF_CASE(NAME)
#define FG_CASE_INT(NAME) FG_LEAF_CASE(NAME)
#define FG_CASE_RANGE(NAME) FG_LEAF_CASE(NAME)
#define FG_CASE_META(NAME) FG_LEAF_CASE(NAME)
#define FG_CASE_STATE(NAME) FG_LEAF_CASE(NAME)
#define FG_CASE_EXPR(NAME) FG_CASE_NODES(NAME)
#define FG_CASE_NODES(NAME)                                                                                     \
    case FG_GUARD_##NAME: {                                                                                     \
        const fg_tensor_adaptor *small[FG_GATHER], **adaptors = small;                                          \
        if (guard->n_ids > FG_GATHER && (adaptors = fg_malloc(guard->n_ids * sizeof *adaptors)) == NULL)        \
            return PyErr_NoMemory(), -1;                                                                        \
        if (fg_relation_reads_tensors(guard->kind))                                                             \
            fg_relation_adaptors(walk->desc, guard, adaptors);                                                  \
        int one = fg_check_##NAME(walk->values, leaf->p, leaf->lo, adaptors, fg_guard_expr(guard->kind, leaf)); \
        if (adaptors != small)                                                                                  \
            fg_free(adaptors);                                                                                  \
        return one < 0 && !PyErr_Occurred() ? (PyErr_NoMemory(), -1) : one;                                     \
    }
#define fg_check_ABSENT(V, K) ((void)(V), (void)(K), 0)
#define FG_GUARD(NAME, TEXT, ARG) FG_CASE_##ARG(NAME)
#include "guards/guard_kinds.def"
#undef FG_GUARD
    case FG_N_GUARDS: break;
    }
    return 0;
}

int fg_desc_check_values(const fg_desc *desc, const fg_view *view, PyObject ***values, PyObject ***held, uint32_t *n_held)
{
    fg_walk walk = {.desc = desc, .view = view, .fact = check_fact};
    int ok = 0;

    if (fg_want_init(desc, &walk.want) != FG_OK)
        return PyErr_NoMemory(), -1;
    if (!walk.want.never)
        ok = fg_walk_run(&walk);
    *values = walk.values;
    *held = walk.held;
    *n_held = walk.n_held;
    fg_free(walk.failed);
    fg_want_fini(&walk.want);
    return ok;
}

int fg_desc_check(const fg_desc *desc, const fg_view *view)
{
    PyObject **values = NULL;
    fg_eval held = {0};
    int ok = fg_desc_check_values(desc, view, &values, &held.held, &held.n_held);
    fg_eval_release(&held);
    fg_free(values);
    return ok;
}

static int check_and_note(fg_walk *walk, const fg_guard_record *guard, PyObject *v)
{
    int ok = check_fact(walk, guard, v);
    if (ok == 0)
        *(int *)walk->context = guard->kind;
    return ok;
}

static int note_unreadable(fg_walk *walk, fg_node node, int found)
{
    (void)found;
    *(int *)walk->context = walk->want.of_node[node] & FG_WANT_ABSENT ? FG_GUARD_ABSENT : FG_GUARD_PRESENT;
    return 0;
}

int fg_desc_refusing_kind(const fg_desc *desc, const fg_view *view)
{
    int kind = -1;
    fg_walk walk = {.desc = desc, .view = view, .fact = check_and_note, .unreadable = note_unreadable, .context = &kind};
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    if (fg_want_init(desc, &walk.want) == FG_OK && !walk.want.never) {
        walk.values = fg_calloc(desc->n_nodes + 1, sizeof *walk.values);
        walk.failed = fg_calloc(desc->n_nodes + 1, 1);
        if (walk.values != NULL && walk.failed != NULL)
            (void)walk_pass(&walk, 0);
        fg_free(walk.values);
        fg_free(walk.failed);
    }
    fg_want_fini(&walk.want);
    PyErr_Restore(type, value, traceback);
    return kind;
}
