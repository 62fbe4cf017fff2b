/* Building a merged program.
 *
 * 1. Merge: the sources of all entries that take part go into one tree, keyed by (parent, accessor, key by exact type and bits); each has two sets
 *    of entries, those that need a value there and those that need an absence. Conditions go to the merged source they are on, each distinct one
 *    once, with the set of entries that ask for it. A condition that another of the same entry implies is dropped.
 * 2. Emit: state first, then the roots with their conditions (arguments tell most), then each root's subtree depth first, relations last. Depth first
 *    makes everything below a source contiguous, so that its instruction can lead past it (`skip`).
 * 3. Three or more conditions of one kind on one source become a table.
 *
 *          arg 0                      LOAD_ARG       {A,B,C}   skip 3 ─┐
 *          ├ type_is dict  {A,B}      FACT_TYPE      {A,B}             │
 *          ├ type_is list  {C}        FACT_TYPE      {C}               │
 *          ├ ['lr']        {A,B}      LOAD_DICT_ITEM {A,B}    skip 1   │
 *          │ └ equals 0.1  {A}        FACT_CONST     {A}               │
 *          └ [0]           {C}        LOAD_LIST_ITEM {C}      <────────┘
 *
 * Rules for changing it: a child's set is inside its parent's; a source's conditions are emitted before its children; SLOT_ATTR depends on both.
 */
#include "guards/adaptor_numpy.h"
#include "guards/guard_insn.h"
#include "runtime/base/hash.h"
#include <string.h>

typedef struct mnode {
    uint8_t acc;
    uint8_t emitted;
    int32_t parent, first_child, last_child, next_sibling, chain_next;
    int32_t first_fact, last_fact;
    int64_t index;
    PyObject *key; /* what the instruction gets: the key, the object of CONST, or the weak reference to it */
    PyObject *raw; /* what it is told apart by */
    int64_t n;     /* index, hash or 1 for a weak reference */
    uint64_t hash;
    const PyTypeObject *known; /* TYPE of an object whose type a condition demands: this one */
    uint32_t present, absent;  /* positions of sets in the pool */
    uint32_t reg;
    int32_t output;
} mnode;

typedef struct mfact {
    uint8_t kind;
    fg_leaf leaf;
    fg_node *ids;                       /* merged nodes of a relation, owned */
    const fg_tensor_adaptor **adaptors; /* owned */
    uint64_t hash;
    int32_t next;
    uint32_t asked;
} mfact;

typedef struct build {
    fg_program *program;
    const fg_desc *const *descs;
    uint32_t n_words;
    mnode *nodes;
    mfact *facts;
    uint64_t *sets; /* n_words each */
    int32_t *heads;
    uint32_t n_nodes, cap_nodes, n_facts, cap_facts, n_sets, cap_sets, n_heads;
    int32_t first_root, last_root;
    int32_t first_loose, last_loose; /* facts on no source */
    uint32_t cap_code;
} build;

/* ---- sets of entries ---- */

static fg_status set_new(build *b, uint32_t *out)
{
    fg_status st = fg_grow(&b->sets, &b->cap_sets, (b->n_sets + 1) * b->n_words, sizeof *b->sets);
    if (st != FG_OK)
        return st;
    memset(b->sets + (size_t)b->n_sets * b->n_words, 0, b->n_words * sizeof *b->sets);
    *out = b->n_sets++;
    return FG_OK;
}

static uint64_t *set_words(const build *b, uint32_t set)
{
    return b->sets + (size_t)set * b->n_words;
}

static void set_add(const build *b, uint32_t set, uint32_t entry)
{
    set_words(b, set)[entry / 64] |= UINT64_C(1) << (entry % 64);
}

static int set_is_empty(const build *b, uint32_t set)
{
    for (uint32_t w = 0; w < b->n_words; w++) {
        if (set_words(b, set)[w] != 0)
            return 0;
    }
    return 1;
}

static int set_same(const build *b, uint32_t one, uint32_t other)
{
    return memcmp(set_words(b, one), set_words(b, other), b->n_words * sizeof *b->sets) == 0;
}

/* How the set is written into an instruction: the bits themselves, or where they lie in the program's pool. */
static fg_status set_mask(build *b, const uint64_t *words, uint64_t *mask)
{
    fg_program *program = b->program;
    if (b->n_words == 1) {
        *mask = words[0];
        return FG_OK;
    }
    if (fg_grow(&program->masks, &program->cap_masks, program->n_masks + b->n_words, sizeof *program->masks) != FG_OK)
        return FG_ERR_NOMEM;
    memcpy(program->masks + program->n_masks, words, b->n_words * sizeof *words);
    *mask = program->n_masks;
    program->n_masks += b->n_words;
    return FG_OK;
}

/* ---- merging ---- */

static fg_status heads_grow(build *b)
{
    uint32_t n = b->n_heads == 0 ? 64 : b->n_heads * 2;
    int32_t *heads = fg_malloc(n * sizeof *heads);
    if (heads == NULL)
        return FG_ERR_NOMEM;
    memset(heads, 0xff, n * sizeof *heads);
    fg_free(b->heads);
    b->heads = heads;
    b->n_heads = n;
    for (uint32_t i = 0; i < b->n_nodes; i++) {
        int32_t *head = &heads[b->nodes[i].hash & (n - 1)];
        b->nodes[i].chain_next = *head;
        *head = (int32_t)i;
    }
    return FG_OK;
}

static fg_status merge_node(build *b, const fg_desc *desc, const fg_node_record *node, int32_t parent, int32_t *out)
{
    fg_status st;
    const fg_hold *hold = node->hold >= 0 ? &desc->holds[node->hold] : NULL;
    int identity = node->acc == FG_ACC_CONST;
    PyObject *raw = hold != NULL ? hold->raw : NULL;
    uint64_t hash = fg_hash_mix((uint64_t)node->acc << 32 | (uint32_t)parent, (uint64_t)node->index);

    if (raw != NULL)
        hash = fg_hash_mix(hash, identity ? (uint64_t)(uintptr_t)raw : fg_const_hash(raw));
    if (b->n_nodes >= b->n_heads)
        FG_TRY(heads_grow(b));
    for (int32_t i = b->heads[hash & (b->n_heads - 1)]; i >= 0; i = b->nodes[i].chain_next) {
        const mnode *other = &b->nodes[i];
        if (other->hash == hash && other->acc == node->acc && other->parent == parent && other->index == node->index &&
            (other->raw == raw || (raw != NULL && other->raw != NULL && !identity && fg_const_same(raw, other->raw)))) {
            *out = i;
            return FG_OK;
        }
    }
    FG_TRY(fg_grow(&b->nodes, &b->cap_nodes, b->n_nodes + 1, sizeof *b->nodes));
    mnode made = {.acc = node->acc,
                  .parent = parent,
                  .first_child = -1,
                  .last_child = -1,
                  .next_sibling = -1,
                  .first_fact = -1,
                  .last_fact = -1,
                  .index = node->index,
                  .raw = raw,
                  .hash = hash,
                  .output = -1};
    switch (fg_accessor_key(node->acc)) {
    case FG_KEY_NONE:
    case FG_KEY_INDEX: made.n = node->index; break;
    case FG_KEY_NAME:
    case FG_KEY_OBJECT:
        made.key = identity && hold != NULL ? hold->ref : raw;
        made.n = identity ? hold != NULL && hold->weak : node->hash;
        break;
    }
    FG_TRY(set_new(b, &made.present));
    FG_TRY(set_new(b, &made.absent));
    int32_t index = (int32_t)b->n_nodes;
    int32_t *head = &b->heads[hash & (b->n_heads - 1)];
    made.chain_next = *head;
    *head = index;
    b->nodes[b->n_nodes++] = made;
    int32_t *first = parent < 0 ? &b->first_root : &b->nodes[parent].first_child;
    int32_t *last = parent < 0 ? &b->last_root : &b->nodes[parent].last_child;
    if (*last >= 0)
        b->nodes[*last].next_sibling = index;
    else
        *first = index;
    *last = index;
    *out = index;
fail:
    return st;
}

/* Add the condition to a list of facts (of a source, or the loose ones), or find the equal one there. Takes what the fact owns. */
static fg_status merge_fact(build *b, int32_t *first, int32_t *last, mfact *fact, uint32_t entry)
{
    fg_status st;
    for (int32_t i = *first; i >= 0; i = b->facts[i].next) {
        const mfact *other = &b->facts[i];
        if (other->hash != fact->hash || other->kind != fact->kind)
            continue;
        if (fact->ids != NULL
                ? other->leaf.lo != fact->leaf.lo || memcmp(other->ids, fact->ids, (size_t)fact->leaf.lo * sizeof *fact->ids) ||
                      memcmp(other->adaptors, fact->adaptors, (size_t)fact->leaf.lo * sizeof *fact->adaptors)
                : !fg_leaf_same(fact->kind, &other->leaf, &fact->leaf))
            continue;
        set_add(b, other->asked, entry);
        st = FG_OK;
        goto fail;
    }
    FG_TRY(fg_grow(&b->facts, &b->cap_facts, b->n_facts + 1, sizeof *b->facts));
    fact->next = -1;
    FG_TRY(set_new(b, &fact->asked));
    set_add(b, fact->asked, entry);
    int32_t index = (int32_t)b->n_facts;
    b->facts[b->n_facts++] = *fact;
    if (*last >= 0)
        b->facts[*last].next = index;
    else
        *first = index;
    *last = index;
    return FG_OK;
fail:
    fg_free(fact->ids);
    fg_free(fact->adaptors);
    return st;
}

/* 1 if another condition on the same source says all that this one says. */
static int is_implied(const fg_desc *desc, const fg_want *want, const fg_guard_record *guard)
{
    if (guard->kind == FG_GUARD_PRESENT)
        return 1; /* the source's own instruction demands a value */
    if (guard->kind != FG_GUARD_TYPE && guard->kind != FG_GUARD_NOT_NONE)
        return 0;
    for (uint32_t i = want->first[guard->node]; i < want->first[guard->node + 1]; i++) {
        const fg_guard_record *other = &desc->guards[want->by_node[i]];
        const void *type = NULL;
        if (other == guard)
            continue;
        switch (other->kind) {
        case FG_GUARD_TYPE: type = guard->kind == FG_GUARD_NOT_NONE ? other->leaf.p : NULL; break;
        case FG_GUARD_TENSOR: type = ((const fg_meta_record *)other->leaf.p)->type; break;
        case FG_GUARD_CONST: type = Py_TYPE((PyObject *)other->leaf.p); break;
        case FG_GUARD_INT_RANGE: type = &PyLong_Type; break;
        case FG_GUARD_FLOAT_NAN: type = &PyFloat_Type; break;
        }
        if (type != NULL && (guard->kind == FG_GUARD_NOT_NONE ? type != (const void *)Py_TYPE(Py_None) : type == guard->leaf.p))
            return 1;
    }
    return 0;
}

static int touches_impure(const fg_desc *desc, const fg_guard_record *guard)
{
    if (guard->node >= 0)
        return desc->nodes[guard->node].impure;
    for (uint32_t i = 0; i < guard->n_ids; i++) {
        if (desc->nodes[((const fg_node *)guard->owned)[i]].impure)
            return 1;
    }
    return 0;
}

static fg_status merge_relation(build *b, const fg_desc *desc, const fg_guard_record *guard, const int32_t *map, uint32_t entry)
{
    size_t n = guard->n_ids;
    mfact fact = {.kind = guard->kind, .leaf.lo = (int64_t)n};
    fact.ids = fg_malloc(n * sizeof *fact.ids);
    fact.adaptors = fg_calloc(n, sizeof *fact.adaptors);
    if (fact.ids == NULL || fact.adaptors == NULL) {
        fg_free(fact.ids);
        fg_free(fact.adaptors);
        return FG_ERR_NOMEM;
    }
    for (size_t i = 0; i < n; i++)
        fact.ids[i] = map[((const fg_node *)guard->owned)[i]];
    if (guard->kind == FG_GUARD_STORAGE_DISTINCT)
        fg_storage_adaptors(desc, guard, fact.adaptors);
    fact.hash = fg_hash_bytes(fact.ids, n * sizeof *fact.ids, guard->kind);
    return merge_fact(b, &b->first_loose, &b->last_loose, &fact, entry);
}

static fg_status merge_desc(build *b, uint32_t entry)
{
    fg_status st;
    const fg_desc *desc = b->descs[entry];
    fg_entry *slot = &b->program->entries[entry];
    fg_want want = {0};
    int32_t *map = NULL;

    slot->desc = desc;
    FG_TRY(fg_want_init(desc, &want));
    if (want.never) {
        slot->never = 1;
        goto fail;
    }
    map = fg_malloc((desc->n_nodes + 1) * sizeof *map);
    if (map == NULL)
        FG_TRY(FG_ERR_NOMEM);
    b->program->all[entry / 64] |= UINT64_C(1) << (entry % 64);
    for (uint32_t i = 0; i < desc->n_nodes; i++) {
        const fg_node_record *node = &desc->nodes[i];
        map[i] = -1;
        if (want.of_node[i] == 0)
            continue;
        if (node->impure) {
            slot->impure = b->program->any_impure = 1;
            continue;
        }
        FG_TRY(merge_node(b, desc, node, node->parent >= 0 ? map[node->parent] : -1, &map[i]));
        mnode *merged = &b->nodes[map[i]];
        set_add(b, want.of_node[i] & FG_WANT_PRESENT ? merged->present : merged->absent, entry);
        if (node->acc == FG_ACC_TYPE && merged->known == NULL)
            merged->known = fg_desc_type_of(desc, node->parent);
        else if (node->acc == FG_ACC_CONST && merged->raw != NULL && PyType_Check(merged->raw))
            merged->known = (PyTypeObject *)merged->raw;
        for (uint32_t k = want.first[i]; k < want.first[i + 1]; k++) {
            const fg_guard_record *guard = &desc->guards[want.by_node[k]];
            if (guard->kind == FG_GUARD_ABSENT || is_implied(desc, &want, guard))
                continue;
            mfact fact = {.kind = guard->kind, .leaf = guard->leaf, .hash = fg_leaf_hash(guard->kind, &guard->leaf)};
            FG_TRY(merge_fact(b, &merged->first_fact, &merged->last_fact, &fact, entry));
        }
    }
    for (uint32_t k = want.first[desc->n_nodes]; k < want.first[desc->n_nodes + 1]; k++) {
        const fg_guard_record *guard = &desc->guards[want.by_node[k]];
        if (touches_impure(desc, guard))
            continue;
        if (guard->n_ids > 0) {
            FG_TRY(merge_relation(b, desc, guard, map, entry));
        } else {
            mfact fact = {.kind = guard->kind, .leaf = guard->leaf, .hash = fg_leaf_hash(guard->kind, &guard->leaf)};
            FG_TRY(merge_fact(b, &b->first_loose, &b->last_loose, &fact, entry));
        }
    }
    slot->n_outputs = desc->n_outputs;
    if (desc->n_outputs > b->program->max_outputs)
        b->program->max_outputs = desc->n_outputs;
    if (desc->n_outputs > 0) {
        slot->outputs = fg_malloc(desc->n_outputs * sizeof *slot->outputs);
        if (slot->outputs == NULL)
            FG_TRY(FG_ERR_NOMEM);
        for (uint32_t i = 0; i < desc->n_outputs; i++) {
            int32_t merged = map[desc->outputs[i]];
            slot->outputs[i] = (uint32_t)merged; /* becomes a register once those are given out; impure ones are not looked at */
            if (merged >= 0 && b->nodes[merged].output < 0)
                b->nodes[merged].output = (int32_t)i;
        }
    }
fail:
    fg_free(map);
    fg_want_fini(&want);
    return st;
}

/* ---- emission ---- */

static fg_status emit(build *b, fg_pi op, uint32_t src, uint32_t dst, uint32_t set, fg_leaf leaf)
{
    fg_program *program = b->program;
    fg_insn in = {.op = (uint16_t)op, .src = src, .dst = dst, .leaf = leaf};
    fg_status st = set_mask(b, set_words(b, set), &in.mask);
    if (st == FG_OK)
        st = fg_grow(&program->code, &b->cap_code, program->n_code + 1, sizeof in);
    if (st == FG_OK)
        program->code[program->n_code++] = in;
    return st;
}

static fg_status keep_block(build *b, void *block, size_t nbytes)
{
    fg_program *program = b->program;
    if (block == NULL)
        return FG_ERR_NOMEM;
    if (fg_grow(&program->blocks, &program->cap_blocks, program->n_blocks + 1, sizeof *program->blocks) != FG_OK) {
        fg_free(block);
        return FG_ERR_NOMEM;
    }
    program->blocks[program->n_blocks++] = block;
    program->block_bytes += nbytes;
    return FG_OK;
}

static fg_pi table_op(fg_guard_kind kind)
{
    switch (kind) {
    case FG_GUARD_TYPE: return FG_PI_TABLE_TYPE;
    case FG_GUARD_ID: return FG_PI_TABLE_ID;
    case FG_GUARD_CONST: return FG_PI_TABLE_CONST;
    case FG_GUARD_LENGTH: return FG_PI_TABLE_LENGTH;
    case FG_GUARD_TENSOR: return FG_PI_TABLE_TENSOR;
    case FG_GUARD_TORCH_STATE: return FG_PI_TABLE_STATE;
    default: /* no other kind has tables */ return FG_PI_END;
    }
}

/* Facts that can share a table with this one: same kind, and for tensors same type and adaptor. */
static int same_table(const mfact *a, const mfact *b)
{
    if (a->kind != b->kind)
        return 0;
    if (a->kind != FG_GUARD_TENSOR)
        return 1;
    const fg_meta_record *one = a->leaf.p, *other = b->leaf.p;
    return one->type == other->type && one->adaptor == other->adaptor;
}

/* Exact ndarrays read by NumPy's own adaptor. */
static int is_numpy(const fg_meta_record *row)
{
    return row->adaptor == fg_numpy_adaptor && row->type == fg_numpy_array_type;
}

#define TABLE_MIN 3

/* Emit the fact and, when it makes a table with later ones of the list, all of them (their kind becomes FG_N_GUARDS: done). An entry that asks for two
 * different rows can never match, but a table would let it: then there is no table. */
static fg_status emit_fact_group(build *b, int32_t index, uint32_t src)
{
    fg_status st = FG_OK;
    mfact *fact = &b->facts[index];
    fg_pi op = table_op(fact->kind);
    uint32_t n = 0, set = 0;
    fg_leaf *leaves = NULL;
    uint64_t *masks = NULL;
    int disjoint = 1;

    if (op != FG_PI_END) {
        FG_TRY(set_new(b, &set));
        fact = &b->facts[index];
        for (int32_t i = index; i >= 0; i = b->facts[i].next) {
            if (!same_table(fact, &b->facts[i]))
                continue;
            n++;
            for (uint32_t w = 0; w < b->n_words; w++) {
                disjoint = disjoint && !(set_words(b, set)[w] & set_words(b, b->facts[i].asked)[w]);
                set_words(b, set)[w] |= set_words(b, b->facts[i].asked)[w];
            }
        }
    }
    if (n < TABLE_MIN || !disjoint) {
        fg_pi plain = FG_PI_FACT_PRESENT;
        switch ((fg_guard_kind)fact->kind) {
#define FG_GUARD(NAME, TEXT, ARG)  \
    case FG_GUARD_##NAME:          \
        plain = FG_PI_FACT_##NAME; \
        break;
#include "guards/guard_kinds.def"
#undef FG_GUARD
        case FG_N_GUARDS: return FG_OK;
        }
        if (plain == FG_PI_FACT_TENSOR && is_numpy(fact->leaf.p))
            plain = FG_PI_FACT_NUMPY;
        return emit(b, plain, src, 0, fact->asked, fact->leaf);
    }
    leaves = fg_malloc(n * sizeof *leaves);
    masks = fg_malloc(n * sizeof *masks);
    if (leaves == NULL || masks == NULL)
        FG_TRY(FG_ERR_NOMEM);
    n = 0;
    fg_leaf leaf = {0};
    if (op == FG_PI_TABLE_TENSOR) {
        const fg_meta_record *row = fact->leaf.p;
        leaf.lo = (int64_t)(intptr_t)row->adaptor;
        leaf.hi = (int64_t)(intptr_t)row->type;
        if (is_numpy(row))
            op = FG_PI_TABLE_NUMPY;
    }
    mfact like = *fact;
    for (int32_t i = index; i >= 0; i = b->facts[i].next) {
        if (!same_table(&like, &b->facts[i]))
            continue;
        leaves[n] = b->facts[i].leaf;
        FG_TRY(set_mask(b, set_words(b, b->facts[i].asked), &masks[n]));
        n++;
        b->facts[i].kind = FG_N_GUARDS;
    }
    size_t nbytes = 0;
    fg_table *table = fg_table_new(op == FG_PI_TABLE_NUMPY ? FG_PI_TABLE_TENSOR : op, leaves, masks, n, &nbytes);
    FG_TRY(keep_block(b, table, nbytes));
    leaf.p = table;
    FG_TRY(emit(b, op, src, 0, set, leaf));
fail:
    fg_free(leaves);
    fg_free(masks);
    return st;
}

static fg_status emit_load(build *b, int32_t index)
{
    fg_status st = FG_OK;
    mnode *node = &b->nodes[index];
    uint32_t src = node->parent >= 0 ? b->nodes[node->parent].reg : 0;
    fg_leaf leaf = {.p = node->key, .lo = node->n};
    fg_pi load = FG_PI_END, none = FG_PI_END;

    switch ((fg_accessor)node->acc) {
#define FG_ACCESSOR(NAME, TEXT, KEY) \
    case FG_ACC_##NAME:              \
        load = FG_PI_LOAD_##NAME;    \
        none = FG_PI_NONE_##NAME;    \
        break;
#include "guards/accessors.def"
#undef FG_ACCESSOR
    case FG_N_ACCESSORS: return FG_BUG("no accessor");
    }
    if (!set_is_empty(b, node->absent))
        FG_TRY(emit(b, none, src, 0, node->absent, leaf));
    node = &b->nodes[index];
    if (set_is_empty(b, node->present))
        return FG_OK;
    /* A type that every entry here demands is looked at by the load itself. */
    for (int32_t i = node->first_fact; i >= 0; i = b->facts[i].next) {
        mfact *fact = &b->facts[i];
        if (fact->kind == FG_GUARD_TYPE && set_same(b, fact->asked, node->present)) {
            leaf.hi = (int64_t)(intptr_t)fact->leaf.p;
            fact->kind = FG_N_GUARDS;
            break;
        }
    }
    if (node->acc == FG_ACC_TYPE_LOOKUP && node->parent >= 0 && b->nodes[node->parent].known != NULL) {
        PyTypeObject *type = (PyTypeObject *)b->nodes[node->parent].known;
        PyObject *value = NULL;
        uint32_t version = fg_type_version_take(type);
        if (version != 0 && fg_type_find(type, node->key, (Py_hash_t)node->n, &value) == FG_FIND_FOUND) {
            fg_lookup *lookup = fg_malloc(sizeof *lookup);
            FG_TRY(keep_block(b, lookup, sizeof *lookup));
            *lookup = (fg_lookup){.type = type, .name = node->key, .hash = (Py_hash_t)node->n, .value = value, .version = version};
            leaf.p = lookup;
            load = FG_PI_LOAD_TYPE_VERSIONED;
        }
    }
    FG_TRY(emit(b, load, src, node->reg, node->present, leaf));
fail:
    return st;
}

static fg_status emit_facts(build *b, int32_t index)
{
    fg_status st = FG_OK;
    for (int32_t i = b->nodes[index].first_fact; i >= 0; i = b->facts[i].next) {
        if (b->facts[i].kind != FG_N_GUARDS)
            FG_TRY(emit_fact_group(b, i, b->nodes[index].reg));
    }
fail:
    return st;
}

static void close_skip(build *b, uint32_t at)
{
    fg_insn *in = &b->program->code[at];
    in->skip = b->program->n_code - at - 1;
}

/* The subtree below a source without recursion: sources of hostile texts nest as deep as they are long. */
static fg_status emit_subtree(build *b, int32_t top)
{
    fg_status st = FG_OK;
    int32_t at = b->nodes[top].first_child;
    uint32_t *starts = NULL, depth = 0, cap = 0; /* code positions of the sources on the way down; UINT32_MAX: no instruction */

    while (at >= 0) {
        uint32_t before = b->program->n_code;
        FG_TRY(emit_load(b, at));
        uint32_t start = UINT32_MAX;
        if (!set_is_empty(b, b->nodes[at].present) && b->program->n_code > before)
            start = b->program->n_code - 1;
        FG_TRY(emit_facts(b, at));
        FG_TRY(fg_grow(&starts, &cap, depth + 1, sizeof *starts));
        starts[depth++] = start;
        if (b->nodes[at].first_child >= 0) {
            at = b->nodes[at].first_child;
            continue;
        }
        for (;;) {
            if (starts[--depth] != UINT32_MAX)
                close_skip(b, starts[depth]);
            if (b->nodes[at].next_sibling >= 0) {
                at = b->nodes[at].next_sibling;
                break;
            }
            at = b->nodes[at].parent;
            if (at == top) {
                at = -1;
                break;
            }
        }
    }
fail:
    fg_free(starts);
    return st;
}

static fg_status emit_relation(build *b, mfact *fact)
{
    size_t n = (size_t)fact->leaf.lo, nbytes = sizeof(fg_relation) + n * sizeof(fg_node) + n * sizeof(void *) + sizeof(void *);
    fg_relation *relation = fg_calloc(1, nbytes);
    fg_status st = keep_block(b, relation, nbytes);
    if (st != FG_OK)
        return st;
    relation->n = (uint32_t)n;
    size_t adaptors_at = (sizeof(fg_relation) + n * sizeof(fg_node) + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
    relation->adaptors = (const fg_tensor_adaptor **)((char *)relation + adaptors_at);
    memcpy(relation->adaptors, fact->adaptors, n * sizeof *fact->adaptors);
    for (size_t i = 0; i < n; i++)
        relation->ids[i] = (fg_node)b->nodes[fact->ids[i]].reg;
    fg_pi op = fact->kind == FG_GUARD_SAME       ? FG_PI_FACT_SAME
               : fact->kind == FG_GUARD_DISTINCT ? FG_PI_FACT_DISTINCT
                                                 : FG_PI_FACT_STORAGE_DISTINCT;
    return emit(b, op, 0, 0, fact->asked, (fg_leaf){.p = relation});
}

static fg_status emit_all(build *b)
{
    fg_status st = FG_OK;
    fg_program *program = b->program;

    /* One entry: outputs have the register of their position, so that the registers are the target's inputs. */
    uint32_t reg = program->single ? program->max_outputs : 0;
    for (uint32_t i = 0; i < b->n_nodes; i++)
        b->nodes[i].reg = program->single && b->nodes[i].output >= 0 ? (uint32_t)b->nodes[i].output : reg++;
    program->n_regs = reg > 0 ? reg : 1;
    for (uint32_t e = 0; e < program->n_entries; e++) {
        for (uint32_t i = 0; i < program->entries[e].n_outputs; i++) {
            int32_t merged = (int32_t)program->entries[e].outputs[i];
            program->entries[e].outputs[i] = merged >= 0 ? b->nodes[merged].reg : 0;
        }
    }

    for (int32_t i = b->first_loose; i >= 0; i = b->facts[i].next) {
        if (b->facts[i].kind == FG_GUARD_TORCH_STATE)
            FG_TRY(emit_fact_group(b, i, 0));
    }
    for (int32_t root = b->first_root; root >= 0; root = b->nodes[root].next_sibling) {
        uint32_t before = program->n_code;
        FG_TRY(emit_load(b, root));
        uint32_t start = program->n_code - 1;
        FG_TRY(emit_facts(b, root));
        if (program->n_code > before && !set_is_empty(b, b->nodes[root].present))
            close_skip(b, start);
    }
    for (int32_t root = b->first_root; root >= 0; root = b->nodes[root].next_sibling)
        FG_TRY(emit_subtree(b, root));
    for (int32_t i = b->first_loose; i >= 0; i = b->facts[i].next) {
        if (b->facts[i].ids != NULL)
            FG_TRY(emit_relation(b, &b->facts[i]));
    }
    uint32_t everyone;
    FG_TRY(set_new(b, &everyone));
    memcpy(set_words(b, everyone), program->all, b->n_words * sizeof *program->all);
    FG_TRY(emit(b, FG_PI_END, 0, 0, everyone, (fg_leaf){0}));
fail:
    return st;
}

/* ---- the whole ---- */

fg_status fg_program_build(const fg_desc *const *descs, size_t n, const fg_program *old, fg_program **out)
{
    fg_status st;
    build b = {.descs = descs, .first_root = -1, .last_root = -1, .first_loose = -1, .last_loose = -1};

    (void)old; /* merging anew is linear in the conditions: cheaper than one trace by orders of magnitude */
    if (n > UINT16_MAX)
        return FG_ERR_LIMIT;
    b.program = fg_calloc(1, sizeof *b.program);
    if (b.program == NULL)
        return FG_ERR_NOMEM;
    b.program->n_entries = (uint32_t)n;
    b.program->n_words = b.n_words = n > 64 ? (uint32_t)(n + 63) / 64 : 1;
    b.program->single = n == 1;
    b.program->entries = fg_calloc(n + 1, sizeof *b.program->entries);
    b.program->all = fg_calloc(b.n_words, sizeof *b.program->all);
    if (b.program->entries == NULL || b.program->all == NULL)
        FG_TRY(FG_ERR_NOMEM);
    for (uint32_t i = 0; i < n; i++)
        FG_TRY(merge_desc(&b, i));
    FG_TRY(emit_all(&b));
    fg_program *made = b.program;
    if (made->any_impure || made->n_words > 1 || (made->single && made->entries[0].never))
        made->way = FG_WAY_ANY;
    else
        made->way = made->single ? FG_WAY_ONE : FG_WAY_WORD;
    *out = b.program;
    b.program = NULL;
fail:
    for (uint32_t i = 0; i < b.n_facts; i++) {
        fg_free(b.facts[i].ids);
        fg_free(b.facts[i].adaptors);
    }
    fg_free(b.nodes);
    fg_free(b.facts);
    fg_free(b.sets);
    fg_free(b.heads);
    fg_program_free(b.program);
    return st;
}

void fg_program_free(fg_program *program)
{
    if (program == NULL)
        return;
    for (uint32_t i = 0; i < program->n_blocks; i++)
        fg_free(program->blocks[i]);
    for (uint32_t i = 0; program->entries != NULL && i < program->n_entries; i++)
        fg_free(program->entries[i].outputs);
    fg_free(program->blocks);
    fg_free(program->entries);
    fg_free(program->all);
    fg_free(program->masks);
    fg_free(program->code);
    fg_free(program);
}

uint32_t fg_program_max_inputs(const fg_program *program)
{
    return program->single ? program->n_regs : program->max_outputs + program->n_regs;
}

size_t fg_program_nbytes(const fg_program *program)
{
    size_t size = sizeof *program + program->n_code * sizeof *program->code + program->n_masks * sizeof *program->masks +
                  program->n_words * sizeof *program->all + (program->n_entries + 1) * sizeof *program->entries + program->block_bytes +
                  program->cap_blocks * sizeof *program->blocks;
    for (uint32_t i = 0; i < program->n_entries; i++)
        size += program->entries[i].n_outputs * sizeof *program->entries[i].outputs;
    return size;
}
