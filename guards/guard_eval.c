/* Evaluation of a merged program.
 *
 * The loops of guard_eval_body.h run the pure facts of all entries. When no live entry has impure sources, the most recently used live bit is the
 * winner and its registers are the inputs. Else the live entries are tried by recency: one that has impure sources is evaluated from its
 * description (guard_walk.c: pure, impure with everything held, pure again), and if it does not match, Python may have changed anything, so the pure
 * facts of the entries still in question are run afresh before the next is tried.
 *
 * Memos (guard_memo.h) are the only thing that an evaluation writes in a program: what it answers does not depend on them.
 *
 * The END instruction has a mask of all entries: it is reached only with a live bit.
 */
#define FG_EXPLAIN 0
#include "guards/adaptor_numpy.h"
#include "guards/guard_bodies.h"
#include "guards/guard_memo.h"
#include "guards/guard_read.h"

/* GETATTR has no place in the pure code. */
FG_READ(GETATTR)
{
    FG_UNUSED_READ;
    (void)value;
    return FG_FIND_UNDECIDED;
}

/* ABSENT is the reader's answer (NONE_x). */
FG_BODY(ABSENT)
{
    (void)v, (void)k;
    return 0;
}

static inline int words_meet(const uint64_t *a, const uint64_t *b, uint32_t n)
{
    uint64_t any = 0;
    for (uint32_t i = 0; i < n; i++)
        any |= a[i] & b[i];
    return any != 0;
}

/* alive &= ~(bits & ~keep); tells if any bit is left. */
static inline int words_clear(uint64_t *alive, const uint64_t *bits, const uint64_t *keep, uint32_t n)
{
    uint64_t any = 0;
    for (uint32_t i = 0; i < n; i++) {
        alive[i] &= ~(keep != NULL ? bits[i] & ~keep[i] : bits[i]);
        any |= alive[i];
    }
    return any != 0;
}

/* The condition of fg_check_meta on an exact ndarray, in place. */
static inline int array_is(PyArrayObject *array, const fg_meta_record *want)
{
    return fg_numpy_is(array, want->ndim, want->dtype, want->dims, want->dims + want->ndim, want->keys);
}

static __attribute__((noinline)) int check_numpy(PyObject *v, const fg_meta_record *want)
{
    return Py_TYPE(v) == fg_numpy_array_type && array_is((PyArrayObject *)v, want);
}

/* ---- the rows of tables ---- */

#define PROBE(HASH, MATCH)                                                                                               \
    do {                                                                                                                 \
        uint64_t probe_hash = (HASH);                                                                                    \
        for (uint32_t at = fg_table_home(table, probe_hash); table->slots[at].used; at = (at + 1) & (table->room - 1)) { \
            const fg_slot *slot = &table->slots[at];                                                                     \
            if (MATCH)                                                                                                   \
                return slot;                                                                                             \
        }                                                                                                                \
        return NULL;                                                                                                     \
    } while (0)
#define TABLE_FIND static __attribute__((noinline)) const fg_slot *

TABLE_FIND table_find_pointer(const fg_table *table, const void *key)
{
    PROBE((uint64_t)(uintptr_t)key >> 4, slot->leaf.p == key);
}

TABLE_FIND table_find_const(const fg_table *table, PyObject *v)
{
    if (!fg_const_is_scalar(v))
        return NULL;
    PROBE(fg_const_hash(v), slot->hash == probe_hash && fg_const_same(v, (PyObject *)slot->leaf.p));
}

TABLE_FIND table_find_length(const fg_table *table, PyObject *v)
{
    int64_t length = fg_length_of(v);
    if (length < 0)
        return NULL;
    PROBE((uint64_t)length, slot->leaf.lo == length);
}

TABLE_FIND table_find_tensor(const fg_leaf *leaf, PyObject *v)
{
    const fg_table *table = leaf->p;
    const fg_tensor_adaptor *adaptor = (const fg_tensor_adaptor *)(intptr_t)leaf->lo;
    const char *why_not = NULL;
    fg_tensor_meta meta;
    if ((intptr_t)Py_TYPE(v) != (intptr_t)leaf->hi || adaptor->read(adaptor, v, &meta, &why_not) != 1)
        return NULL;
    PROBE(FG_META_HASH(table, &meta, meta.sizes, meta.strides), slot->hash == probe_hash && fg_check_meta(&meta, slot->leaf.p));
}

TABLE_FIND table_find_numpy(const fg_table *table, PyObject *v)
{
    if (Py_TYPE(v) != fg_numpy_array_type)
        return NULL;
    PyArrayObject *array = (PyArrayObject *)v;
    int ndim = PyArray_NDIM(array);
    const int64_t *sizes = (const int64_t *)PyArray_DIMS(array);
    uint64_t hash = 0;
    /* Mostly the rows differ in one size. */
    if (table->n_positions == 1 && table->positions[0] >= FG_META_SIZE && table->positions[0] - FG_META_SIZE < ndim &&
        table->positions[0] < FG_META_STRIDE) {
        hash = fg_meta_hash_step(0, (uint64_t)sizes[table->positions[0] - FG_META_SIZE]);
    } else {
        uint64_t keys = fg_numpy_keys(array);
        hash = fg_meta_hash(table, ndim, PyArray_TYPE(array), keys, 1, 0, 0, 0, sizes, (const int64_t *)PyArray_STRIDES(array));
    }
    PROBE(hash, slot->hash == probe_hash && array_is(array, slot->leaf.p));
}

TABLE_FIND table_find_state(const fg_table *table)
{
    fg_torch_state state;
    memset(&state, 0, sizeof state);
    if (fg_torch_state_read(&state) != 1)
        return NULL;
    for (uint32_t at = 0; table->slots[at].used; at++) {
        if (fg_state_same(&state, table->slots[at].leaf.p))
            return &table->slots[at];
    }
    return NULL;
}

static __attribute__((noinline)) fg_find lookup_find(const fg_lookup *lookup, PyObject *type, PyObject **value)
{
    if (type == (PyObject *)lookup->type && fg_type_version_is((PyTypeObject *)type, lookup->version)) {
        *value = lookup->value;
        return FG_FIND_FOUND;
    }
    return PyType_Check(type) ? fg_type_find((PyTypeObject *)type, lookup->name, lookup->hash, value) : FG_FIND_UNDECIDED;
}

/* The type changed since they were found: they may still be what they were. */
static __attribute__((noinline)) int members_found(fg_members *members)
{
    for (uint32_t i = 0; i < members->n; i++) {
        const struct fg_member *member = &members->of[i];
        PyObject *found = NULL;
        fg_find find = fg_type_find(members->type, member->name, member->hash, &found);
        if (find == FG_FIND_UNDECIDED || found != member->value)
            return 0;
    }
    members->version = fg_type_version_take(members->type);
    return 1;
}

static inline int members_hold(fg_members *members)
{
    PyObject *type = (PyObject *)members->type;
    if (members->held != type && fg_weakref_target(members->held) != type)
        return 0;
    return fg_type_version_is(members->type, members->version) || members_found(members);
}

/* DISTINCT of many sources, most of which are the objects that they were the last time: only the others are looked for. */
#define FEW 4
static __attribute__((noinline)) int distinct_again(fg_relation *relation, PyObject *const *regs)
{
    PyObject **last = relation->has_last ? relation->last : NULL;
    uint32_t n = relation->n, changed[FEW], n_changed = 0;

    for (uint32_t i = 0; last != NULL && i < n; i++) {
        if (regs[relation->ids[i]] == last[i])
            continue;
        if (n_changed == FEW)
            last = NULL;
        else
            changed[n_changed++] = i;
    }
    if (last == NULL) {
        int distinct = fg_check_DISTINCT(regs, relation->ids, n, NULL, NULL);
        if (distinct != 1)
            return distinct;
        for (uint32_t i = 0; i < n; i++)
            relation->last[i] = regs[relation->ids[i]];
        relation->has_last = 1;
        return 1;
    }
    for (uint32_t k = 0; k < n_changed; k++) {
        PyObject *v = regs[relation->ids[changed[k]]];
        uint32_t same = 0;
        for (uint32_t i = 0; i < n; i++)
            same += regs[relation->ids[i]] == v;
        if (same != 1)
            return 0;
    }
    for (uint32_t k = 0; k < n_changed; k++)
        last[changed[k]] = regs[relation->ids[changed[k]]];
    return 1;
}

#define FG_ONE 1
#define FG_WORD 2
#define FG_WIDE 3

#define FG_MODE FG_ONE
#include "guards/guard_eval_body.h"
#define FG_MODE FG_WORD
#include "guards/guard_eval_body.h"
#define FG_MODE FG_WIDE
#include "guards/guard_eval_body.h"

/* Programs that are running Python on this thread, innermost first. */
typedef struct running {
    const fg_program *program;
    struct running *outer;
} running;
static _Thread_local running *running_top;

static int is_running(const fg_program *program)
{
    for (const running *at = running_top; at != NULL; at = at->outer) {
        if (at->program == program)
            return 1;
    }
    return 0;
}

static int run_pure(const fg_program *program, const fg_view *view, PyObject **regs, uint64_t *alive)
{
    if (program->single) {
        fg_eval unused;
        return run_one(program, view, regs, &unused);
    }
    if (program->n_words == 1)
        return run_word(program, view, regs, alive);
    return run_wide(program, view, regs, alive);
}

static inline void bit_clear(uint64_t *words, uint32_t bit)
{
    words[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
}

/* The preferred live entry, or n_entries. */
static uint32_t pick(const fg_program *program, const uint64_t *alive, const uint64_t *recency)
{
    uint32_t best = program->n_entries;

    for (uint32_t w = 0; w < program->n_words; w++) {
        for (uint64_t word = alive[w]; word != 0; word &= word - 1) {
            uint32_t index = w * 64 + (uint32_t)__builtin_ctzll(word);
            if (best == program->n_entries || (recency != NULL && recency[index] > recency[best]))
                best = index;
        }
    }
    return best;
}

/* One entry from its description. 1 match (inputs and out are filled, held may be set), 0, -1. */
static int run_impure(const fg_program *program, uint32_t index, const fg_view *view, PyObject **inputs, fg_eval *out)
{
    const fg_entry *entry = &program->entries[index];
    running here = {program, running_top};
    PyObject **values = NULL, **held = NULL;
    uint32_t n_held = 0;

    running_top = &here;
    int ok = fg_desc_check_values(entry->desc, view, &values, &held, &n_held);
    running_top = here.outer;
    if (ok == 1) {
        for (uint32_t i = 0; i < entry->n_outputs; i++)
            inputs[i] = values[entry->desc->outputs[i]];
        *out = (fg_eval){.winner = index, .n_inputs = entry->n_outputs, .held = held, .n_held = n_held};
        held = NULL;
    }
    fg_free(values);
    if (held != NULL) {
        fg_eval drop = {.held = held, .n_held = n_held};
        running_top = &here; /* destructors are Python, too */
        fg_eval_release(&drop);
        running_top = here.outer;
    }
    return ok;
}

static fg_eval_result eval_impure(const fg_program *program, const fg_view *view, const uint64_t *recency, uint64_t *alive,
                                  PyObject **inputs, fg_eval *out)
{
    uint32_t words = program->n_words;
    uint64_t remaining[words];
    PyObject **regs = program->single ? inputs : inputs + program->max_outputs;

    memcpy(remaining, alive, words * sizeof *remaining);
    for (;;) {
        uint32_t index = pick(program, alive, recency);
        if (index >= program->n_entries)
            return FG_EVAL_MISS;
        const fg_entry *entry = &program->entries[index];
        bit_clear(remaining, index);
        if (entry->desc->dead) {
            bit_clear(alive, index);
            continue;
        }
        if (!entry->impure) {
            for (uint32_t i = 0; i < entry->n_outputs; i++)
                inputs[i] = regs[entry->outputs[i]];
            *out = (fg_eval){.winner = index, .n_inputs = entry->n_outputs};
            return FG_EVAL_HIT;
        }
        int ok = run_impure(program, index, view, inputs, out);
        if (ok != 0)
            return ok < 0 ? FG_EVAL_ERROR : FG_EVAL_HIT;
        uint64_t any = 0;
        for (uint32_t w = 0; w < words; w++)
            any |= alive[w] = remaining[w];
        if (any == 0 || program->single)
            return FG_EVAL_MISS;
        ok = run_pure(program, view, regs, alive);
        if (ok <= 0)
            return ok < 0 ? (PyErr_NoMemory(), FG_EVAL_ERROR) : FG_EVAL_MISS;
    }
}

/* Up to 64 entries, none impure. */
static __attribute__((noinline)) fg_eval_result eval_word(const fg_program *program, const fg_view *view, const uint64_t *recency,
                                                          const uint64_t *usable, PyObject **inputs, fg_eval *out)
{
    PyObject **regs = inputs + program->max_outputs;
    uint64_t alive = program->all[0];

    if (usable != NULL)
        alive &= usable[0];
    if (alive == 0)
        return FG_EVAL_MISS;
    int ok = run_word(program, view, regs, &alive);
    if (ok <= 0)
        return ok < 0 ? (PyErr_NoMemory(), FG_EVAL_ERROR) : FG_EVAL_MISS;
    while (alive != 0) {
        uint32_t index = (alive & (alive - 1)) == 0 ? (uint32_t)__builtin_ctzll(alive) : pick(program, &alive, recency);
        const fg_entry *entry = &program->entries[index];
        if (entry->desc->dead) {
            bit_clear(&alive, index);
            continue;
        }
        for (uint32_t i = 0; i < entry->n_outputs; i++)
            inputs[i] = regs[entry->outputs[i]];
        out->winner = index;
        out->n_inputs = entry->n_outputs;
        out->held = NULL;
        out->n_held = 0;
        return FG_EVAL_HIT;
    }
    return FG_EVAL_MISS;
}

static __attribute__((noinline)) fg_eval_result eval_any(const fg_program *program, const fg_view *view, const uint64_t *recency,
                                                         const uint64_t *usable, PyObject **inputs, fg_eval *out)
{
    uint32_t words = program->n_words;
    PyObject **regs = program->single ? inputs : inputs + program->max_outputs;
    uint64_t alive[words], any = 0;

    if (program->any_impure && is_running(program))
        return FG_EVAL_BUSY;
    for (uint32_t w = 0; w < words; w++)
        any |= alive[w] = program->all[w] & (usable != NULL ? usable[w] : ~UINT64_C(0));
    if (any == 0 || (program->single && program->entries[0].desc->dead))
        return FG_EVAL_MISS;
    int ok = run_pure(program, view, regs, alive);
    if (ok <= 0)
        return ok < 0 ? (PyErr_NoMemory(), FG_EVAL_ERROR) : FG_EVAL_MISS;
    return eval_impure(program, view, recency, alive, inputs, out);
}

fg_eval_result fg_program_eval(const fg_program *program, const fg_view *view, const uint64_t *recency, const uint64_t *usable,
                               PyObject **inputs, fg_eval *out)
{
    if (program->way == FG_WAY_WORD)
        return eval_word(program, view, recency, usable, inputs, out);
    if (program->way == FG_WAY_ANY)
        return eval_any(program, view, recency, usable, inputs, out);

    /* One entry, the usual case: its registers are the inputs. */
    if (program->entries[0].desc->dead || (usable != NULL && !(usable[0] & 1)))
        return FG_EVAL_MISS;
    int ok = run_one(program, view, inputs, out);
    _Static_assert(FG_EVAL_MISS == 0 && FG_EVAL_HIT == 1, "answers of the loop");
    return ok < 0 ? (PyErr_NoMemory(), FG_EVAL_ERROR) : (fg_eval_result)ok;
}

static __attribute__((noinline)) void release_held(fg_eval *eval)
{
    PyObject **held = eval->held;
    uint32_t n = eval->n_held;
    PyObject *type, *value, *traceback;

    eval->held = NULL;
    eval->n_held = 0;
    PyErr_Fetch(&type, &value, &traceback);
    for (uint32_t i = 0; i < n; i++)
        Py_DECREF(held[i]);
    PyErr_Restore(type, value, traceback);
    fg_free(held);
}

void fg_eval_release(fg_eval *eval)
{
    if (eval->held != NULL)
        release_held(eval);
}
