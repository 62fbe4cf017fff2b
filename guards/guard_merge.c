/* Merging: the sources of all entries that take part go into one tree; conditions go to the merged source they are on, each distinct one once.
 * A condition that another of the same entry implies is dropped.
 */
#include "guards/guard_merge.h"
#include "runtime/base/hash.h"

fg_status fg_set_new(fg_build *b, uint32_t *out)
{
    fg_status st = fg_grow(&b->sets, &b->cap_sets, (b->n_sets + 1) * b->n_words, sizeof *b->sets);
    if (st != FG_OK)
        return st;
    memset(b->sets + (size_t)b->n_sets * b->n_words, 0, b->n_words * sizeof *b->sets);
    *out = b->n_sets++;
    return FG_OK;
}

/* How the set is written into an instruction: the bits themselves, or where they lie in the program's pool. */
fg_status fg_set_mask(fg_build *b, const uint64_t *words, uint64_t *mask)
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

static fg_status heads_grow(fg_build *b)
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

static fg_status merge_node(fg_build *b, const fg_desc *desc, const fg_node_record *node, int32_t parent, int32_t *out)
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
        const fg_mnode *other = &b->nodes[i];
        if (other->hash == hash && other->acc == node->acc && other->parent == parent && other->index == node->index &&
            (other->raw == raw || (raw != NULL && other->raw != NULL && !identity && fg_const_same(raw, other->raw)))) {
            *out = i;
            return FG_OK;
        }
    }
    FG_TRY(fg_grow(&b->nodes, &b->cap_nodes, b->n_nodes + 1, sizeof *b->nodes));
    fg_mnode made = {.acc = node->acc,
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
    FG_TRY(fg_set_new(b, &made.present));
    FG_TRY(fg_set_new(b, &made.absent));
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
static fg_status merge_fact(fg_build *b, int32_t *first, int32_t *last, fg_mfact *fact, uint32_t entry)
{
    fg_status st;
    for (int32_t i = *first; i >= 0; i = b->facts[i].next) {
        const fg_mfact *other = &b->facts[i];
        if (other->hash != fact->hash || other->kind != fact->kind)
            continue;
        if (fact->ids != NULL
                ? other->leaf.lo != fact->leaf.lo || memcmp(other->ids, fact->ids, (size_t)fact->leaf.lo * sizeof *fact->ids) != 0 ||
                      memcmp(other->adaptors, fact->adaptors, (size_t)fact->leaf.lo * sizeof *fact->adaptors) != 0 ||
                      (fact->expr != NULL && !fg_expr_same(other->expr, fact->expr))
                : !fg_leaf_same(fact->kind, &other->leaf, &fact->leaf))
            continue;
        fg_set_add(b, other->asked, entry);
        st = FG_OK;
        goto fail;
    }
    FG_TRY(fg_grow(&b->facts, &b->cap_facts, b->n_facts + 1, sizeof *b->facts));
    fact->next = -1;
    FG_TRY(fg_set_new(b, &fact->asked));
    fg_set_add(b, fact->asked, entry);
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
        case FG_GUARD_TENSOR:
            if (!want->impure[want->by_node[i]])
                type = ((const fg_meta_record *)other->leaf.p)->type;
            break;
        case FG_GUARD_CONST: type = Py_TYPE((PyObject *)other->leaf.p); break;
        case FG_GUARD_INT_RANGE: type = &PyLong_Type; break;
        case FG_GUARD_FLOAT_NAN: type = &PyFloat_Type; break;
        }
        if (type != NULL && (guard->kind == FG_GUARD_NOT_NONE ? type != (const void *)Py_TYPE(Py_None) : type == guard->leaf.p))
            return 1;
    }
    return 0;
}

static fg_status merge_relation(fg_build *b, const fg_desc *desc, const fg_guard_record *guard, const int32_t *map, uint32_t entry)
{
    size_t n = guard->n_ids;
    fg_mfact fact = {.kind = guard->kind, .leaf.lo = (int64_t)n};
    fact.ids = fg_malloc(n * sizeof *fact.ids);
    fact.adaptors = fg_calloc(n, sizeof *fact.adaptors);
    if (fact.ids == NULL || fact.adaptors == NULL) {
        fg_free(fact.ids);
        fg_free(fact.adaptors);
        return FG_ERR_NOMEM;
    }
    for (size_t i = 0; i < n; i++)
        fact.ids[i] = map[((const fg_node *)guard->owned)[i]];
    if (fg_relation_reads_tensors(guard->kind))
        fg_relation_adaptors(desc, guard, fact.adaptors);
    fact.hash = fg_hash_bytes(fact.ids, n * sizeof *fact.ids, guard->kind);
    fact.expr = fg_guard_expr(guard->kind, &guard->leaf);
    if (fact.expr != NULL)
        fact.hash = fg_hash_bytes(fact.expr, fg_expr_nbytes(fact.expr), fact.hash);
    return merge_fact(b, &b->first_loose, &b->last_loose, &fact, entry);
}

fg_status fg_build_merge(fg_build *b, uint32_t entry)
{
    fg_status st;
    const fg_desc *desc = b->descs[entry];
    fg_entry *slot = &b->program->entries[entry];
    fg_want want = {0};
    int32_t *map = NULL;

    slot->desc = desc;
    FG_TRY(fg_want_init(desc, &want));
    if (want.user)
        slot->impure = b->program->any_impure = 1;
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
        fg_mnode *merged = &b->nodes[map[i]];
        fg_set_add(b, want.of_node[i] & FG_WANT_PRESENT ? merged->present : merged->absent, entry);
        if (node->acc == FG_ACC_TYPE && merged->known == NULL)
            merged->known = fg_desc_type_of(desc, node->parent);
        else if (node->acc == FG_ACC_CONST && merged->raw != NULL && PyType_Check(merged->raw))
            merged->known = (PyTypeObject *)merged->raw;
        for (uint32_t k = want.first[i]; k < want.first[i + 1]; k++) {
            const fg_guard_record *guard = &desc->guards[want.by_node[k]];
            if (guard->kind == FG_GUARD_ABSENT || guard->kind == FG_GUARD_ACCEPTS || is_implied(desc, &want, guard))
                continue;
            if (want.impure[want.by_node[k]]) {
                slot->impure = b->program->any_impure = 1;
                continue;
            }
            fg_mfact fact = {.kind = guard->kind, .leaf = guard->leaf, .hash = fg_leaf_hash(guard->kind, &guard->leaf)};
            FG_TRY(merge_fact(b, &merged->first_fact, &merged->last_fact, &fact, entry));
        }
    }
    for (uint32_t k = want.first[desc->n_nodes]; k < want.first[desc->n_nodes + 1]; k++) {
        const fg_guard_record *guard = &desc->guards[want.by_node[k]];
        if (want.impure[want.by_node[k]]) {
            slot->impure = b->program->any_impure = 1;
            continue;
        }
        if (guard->n_ids > 0) {
            FG_TRY(merge_relation(b, desc, guard, map, entry));
        } else {
            fg_mfact fact = {.kind = guard->kind, .leaf = guard->leaf, .hash = fg_leaf_hash(guard->kind, &guard->leaf)};
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
