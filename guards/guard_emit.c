/* Emission: the merged tree as instructions.
 *
 * State first, then the roots with their conditions (arguments tell most), then each root's subtree depth first, relations last. Depth first makes
 * everything below a source contiguous, so that its instruction can lead past it (`skip`). Three or more conditions of one kind on one source
 * become a table.
 *
 * Conditions that failed often in earlier programs of the function come first among those that may change places (guard_order.c).
 *
 * Rules for changing it: a source's conditions are emitted before its children; SLOT_ATTR depends on both.
 */
#include "guards/adaptor_numpy.h"
#include "guards/guard_memo.h"
#include "guards/guard_merge.h"

static fg_status append(fg_build *b, fg_insn in)
{
    fg_program *program = b->program;
    fg_status st;
    FG_TRY(fg_grow(&program->code, &b->cap_code, program->n_code + 1, sizeof in));
    FG_TRY(fg_grow(&program->keys, &b->cap_keys, program->n_code + 1, sizeof *program->keys));
    program->keys[program->n_code] = b->key;
    program->code[program->n_code++] = in;
fail:
    return st;
}

/* What the next instructions ask. */
static void about(fg_build *b, uint32_t key, uint32_t heat)
{
    b->key = key;
    b->heat = heat;
}

/* ---- stretches with a memo ---- */

static uint32_t stretch_length(const fg_build *b)
{
    return b->stretch == UINT32_MAX ? 0 : b->program->n_code - b->stretch - 1;
}

/* End the open stretch: give it its memo, or take its instruction out again when it is too short to be worth one. */
static fg_status stretch_close(fg_build *b)
{
    fg_program *program = b->program;
    uint32_t at = b->stretch, n = stretch_length(b);

    if (at == UINT32_MAX)
        return FG_OK;
    b->stretch = UINT32_MAX;
    if (n < FG_MEMO_WORTH && program->code[at + 1].op != FG_PI_FACT_TENSOR) {
        memmove(program->code + at, program->code + at + 1, n * sizeof *program->code);
        memmove(program->keys + at, program->keys + at + 1, n * sizeof *program->keys);
        program->n_code--;
        for (uint32_t i = 0; i < b->n_starts; i++)
            b->starts[i] -= b->starts[i] != UINT32_MAX && b->starts[i] > at;
        return FG_OK;
    }
    fg_memo *memo = NULL;
    fg_status st = fg_memo_new(program, &memo);
    if (st != FG_OK)
        return st;
    memo->first = at + 1;
    memo->n = n;
    memo->wait = FG_MEMO_FIRST_WAIT;
    fg_insn *in = &program->code[at];
    in->skip = n;
    in->leaf.p = memo;
    for (uint32_t i = 1; i <= n; i++)
        in->mask |= in[i].mask;
    return FG_OK;
}

static fg_status stretch_step(fg_build *b, fg_pi op)
{
    fg_status st = FG_OK;
    int takes = fg_memo_takes(op);
    if (!takes || stretch_length(b) >= FG_MEMO_STRETCH)
        FG_TRY(stretch_close(b));
    if (takes && b->stretch == UINT32_MAX) {
        FG_TRY(append(b, (fg_insn){.op = FG_PI_MEMO}));
        b->stretch = b->program->n_code - 1;
    }
fail:
    return st;
}

static fg_status emit(fg_build *b, fg_pi op, uint32_t src, uint32_t dst, uint32_t set, fg_leaf leaf)
{
    fg_status st;
    fg_insn in = {.op = (uint16_t)op, .src = src, .dst = dst, .leaf = leaf};
    in.fails = (uint16_t)(b->heat / 2 < UINT16_MAX ? b->heat / 2 : UINT16_MAX);
    FG_TRY(fg_set_mask(b, fg_set_words(b, set), &in.mask));
    if (b->stretches)
        FG_TRY(stretch_step(b, op));
    FG_TRY(append(b, in));
fail:
    return st;
}

/* ---- blocks ---- */

static fg_status keep_block(fg_build *b, void *block, size_t nbytes)
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

/* The instruction of one condition; FG_PI_END: one that is written already. */
static fg_pi plain_op(fg_guard_kind kind)
{
    switch (kind) {
#define FG_GUARD(NAME, TEXT, ARG) \
    case FG_GUARD_##NAME:         \
        return FG_PI_FACT_##NAME;
#include "guards/guard_kinds.def"
#undef FG_GUARD
    case FG_N_GUARDS: break;
    }
    return FG_PI_END;
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

/* Exact ndarrays read by NumPy's own adaptor; a record that says of one what none can be goes the general way. */
static int is_numpy(const fg_meta_record *row)
{
    return row->adaptor == fg_numpy_adaptor && row->type == fg_numpy_array_type && row->requires_grad == 0 && row->layout == 0 &&
           row->device_type == 1 && row->device_index == 0;
}

/* Facts that can share a table with this one: same kind, and for tensors same type and adaptor. */
static int same_table(const fg_mfact *a, const fg_mfact *b)
{
    if (a->kind != b->kind)
        return 0;
    if (a->kind != FG_GUARD_TENSOR)
        return 1;
    const fg_meta_record *one = a->leaf.p, *other = b->leaf.p;
    return one->type == other->type && one->adaptor == other->adaptor && is_numpy(one) == is_numpy(other);
}

#define TABLE_MIN 3

/* Emit the fact and, when it makes a table with later ones of the list, all of them (their kind becomes FG_N_GUARDS: done). An entry that asks for two
 * different rows can never match, but a table would let it: then there is no table. */
static fg_status emit_fact_group(fg_build *b, int32_t index, uint32_t src)
{
    fg_status st = FG_OK;
    fg_mfact *fact = &b->facts[index];
    fg_pi op = table_op(fact->kind);
    uint32_t n = 0, set = 0;
    fg_leaf *leaves = NULL;
    uint64_t *masks = NULL;
    int disjoint = 1;

    about(b, fact->key, fact->heat);
    if (op != FG_PI_END) {
        FG_TRY(fg_set_new(b, &set));
        fact = &b->facts[index];
        for (int32_t i = index; i >= 0; i = b->facts[i].next) {
            if (!same_table(fact, &b->facts[i]))
                continue;
            n++;
            for (uint32_t w = 0; w < b->n_words; w++) {
                disjoint = disjoint && !(fg_set_words(b, set)[w] & fg_set_words(b, b->facts[i].asked)[w]);
                fg_set_words(b, set)[w] |= fg_set_words(b, b->facts[i].asked)[w];
            }
        }
    }
    if (n < TABLE_MIN || !disjoint) {
        fg_pi plain = plain_op(fact->kind);
        if (plain == FG_PI_END)
            return FG_OK;
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
    fg_mfact like = *fact;
    for (int32_t i = index; i >= 0; i = b->facts[i].next) {
        if (!same_table(&like, &b->facts[i]))
            continue;
        leaves[n] = b->facts[i].leaf;
        FG_TRY(fg_set_mask(b, fg_set_words(b, b->facts[i].asked), &masks[n]));
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

static fg_status emit_load(fg_build *b, int32_t index)
{
    fg_status st = FG_OK;
    fg_mnode *node = &b->nodes[index];
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
    about(b, node->path, node->heat);
    if (!fg_set_is_empty(b, node->absent))
        FG_TRY(emit(b, none, src, 0, node->absent, leaf));
    node = &b->nodes[index];
    if (fg_set_is_empty(b, node->present))
        return FG_OK;
    /* A type that every entry here demands is looked at by the load itself. */
    for (int32_t i = node->first_fact; i >= 0; i = b->facts[i].next) {
        fg_mfact *fact = &b->facts[i];
        if (fact->kind == FG_GUARD_TYPE && fg_set_same(b, fact->asked, node->present)) {
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

/* ---- members of constant types ---- */

/* What the type must have under the name, when that is all that is asked of the source: one identity, or nothing there. */
static int member_of(const fg_build *b, int32_t index, PyTypeObject *type, struct fg_member *member, uint32_t *set)
{
    const fg_mnode *node = &b->nodes[index];
    PyObject *found = NULL;

    if (node->acc != FG_ACC_TYPE_LOOKUP || node->first_child >= 0 || node->output >= 0 || node->related)
        return 0;
    *member = (struct fg_member){.name = node->key, .hash = (Py_hash_t)node->n};
    fg_find now = fg_type_find(type, member->name, member->hash, &found);
    if (fg_set_is_empty(b, node->present)) {
        *set = node->absent;
        return node->first_fact < 0 && now == FG_FIND_ABSENT && !fg_set_is_empty(b, node->absent);
    }
    const fg_mfact *fact = node->first_fact >= 0 ? &b->facts[node->first_fact] : NULL;
    if (fact == NULL || fact->kind != FG_GUARD_ID || fact->next >= 0 || !fg_set_is_empty(b, node->absent) ||
        !fg_set_same(b, fact->asked, node->present))
        return 0;
    *set = node->present;
    member->value = fact->leaf.p;
    return now == FG_FIND_FOUND && found == member->value;
}

/* One instruction for the member and all later ones that the same entries ask for. They leave the tree. */
static fg_status emit_members_from(fg_build *b, int32_t first, PyObject *held, PyTypeObject *type, uint32_t version)
{
    fg_status st = FG_OK;
    struct fg_member member;
    uint32_t set, with, n = 0, nothing = 0;

    if (!member_of(b, first, type, &member, &with))
        return FG_OK;
    for (int32_t i = first; i >= 0; i = b->nodes[i].next_sibling)
        n += member_of(b, i, type, &member, &set) && fg_set_same(b, set, with);
    size_t size = sizeof(fg_members) + n * sizeof(struct fg_member);
    fg_members *members = fg_malloc(size);
    FG_TRY(keep_block(b, members, size));
    *members = (fg_members){.held = held, .type = type, .version = version};
    FG_TRY(fg_set_new(b, &nothing));
    about(b, b->nodes[first].path, b->nodes[first].heat);
    uint32_t asked = with;
    for (int32_t i = first; i >= 0; i = b->nodes[i].next_sibling) {
        fg_mnode *node = &b->nodes[i];
        if (!member_of(b, i, type, &member, &set) || !fg_set_same(b, set, asked))
            continue;
        members->of[members->n++] = member;
        if (node->first_fact >= 0)
            b->facts[node->first_fact].kind = FG_N_GUARDS;
        if (i != first)
            node->present = node->absent = nothing;
    }
    b->nodes[first].present = b->nodes[first].absent = nothing;
    FG_TRY(emit(b, FG_PI_FACT_MEMBERS, 0, 0, asked, (fg_leaf){.p = members}));
fail:
    return st;
}

/* A constant type of which nothing but members is asked need not even be loaded. */
static fg_status emit_members(fg_build *b, int32_t index)
{
    fg_status st = FG_OK;
    const fg_mnode *node = &b->nodes[index];
    if (node->acc != FG_ACC_CONST || node->known == NULL)
        return FG_OK;
    PyTypeObject *type = (PyTypeObject *)node->known;
    uint32_t version = fg_type_version_take(type);
    int only = node->first_fact < 0 && node->output < 0 && !node->related && fg_set_is_empty(b, node->absent);
    if (version == 0)
        return FG_OK;
    for (int32_t i = node->first_child; i >= 0; i = b->nodes[i].next_sibling) {
        FG_TRY(emit_members_from(b, i, node->key, type, version));
        only = only && fg_set_is_empty(b, b->nodes[i].present) && fg_set_is_empty(b, b->nodes[i].absent);
    }
    if (only)
        FG_TRY(fg_set_new(b, &b->nodes[index].present));
fail:
    return st;
}

/* Whether what an object is may be dropped, and gradients, have no words for a memo: those conditions stand outside of the stretches. */
enum { FACTS_TENSOR = 1, FACTS_OTHER = 2, FACTS_UNSAID = 4, FACTS_ALL = 7 };

static int class_of(const fg_mfact *fact)
{
    switch (fact->kind) {
    case FG_GUARD_TENSOR: return FACTS_TENSOR;
    case FG_GUARD_QUIET:
    case FG_GUARD_ATTR_QUIET:
    case FG_GUARD_DICT_QUIET:
    case FG_GUARD_GRADIENT: return FACTS_UNSAID;
    default: return FACTS_OTHER;
    }
}

static fg_status emit_facts(fg_build *b, int32_t index, int which)
{
    fg_status st = FG_OK;
    for (int32_t i = b->nodes[index].first_fact; i >= 0; i = b->facts[i].next) {
        if (b->facts[i].kind != FG_N_GUARDS && (which & class_of(&b->facts[i])))
            FG_TRY(emit_fact_group(b, i, b->nodes[index].reg));
    }
fail:
    return st;
}

static void close_skip(fg_build *b, uint32_t at)
{
    fg_insn *in = &b->program->code[at];
    in->skip = b->program->n_code - at - 1;
}

/* Tensors of one stretch: one whose metadata changes all the time takes this many along. */
#define TENSORS_STRETCH 8

/* A subtree from here on is worth a stretch of its own: an object, rather than an attribute of one. */
#define OBJECT_WEIGHT 5

/* The source's instructions; where they begin goes on the stack of starts. */
static fg_status emit_source(fg_build *b, int32_t at)
{
    fg_status st = FG_OK;
    uint32_t before = b->program->n_code;

    if (b->weights[at] >= OBJECT_WEIGHT && stretch_length(b) >= FG_MEMO_WORTH)
        FG_TRY(stretch_close(b));
    FG_TRY(emit_load(b, at));
    uint32_t start = UINT32_MAX;
    if (!fg_set_is_empty(b, b->nodes[at].present) && b->program->n_code > before)
        start = b->program->n_code - 1;
    FG_TRY(fg_grow(&b->starts, &b->cap_starts, b->n_starts + 1, sizeof *b->starts));
    b->starts[b->n_starts++] = start;
    FG_TRY(emit_facts(b, at, FACTS_OTHER));
fail:
    return st;
}

/* All of the source's subtree is written. A stretch that began inside of it ends with it: closing may take an instruction out again, and the way
 * past the subtree must be measured after that. */
static fg_status end_source(fg_build *b, int32_t at)
{
    fg_status st = FG_OK;
    uint32_t start = b->starts[b->n_starts - 1];
    int inside = b->stretch != UINT32_MAX && start != UINT32_MAX && b->stretch > start;

    if (inside || b->weights[at] >= OBJECT_WEIGHT)
        FG_TRY(stretch_close(b));
    start = b->starts[--b->n_starts];
    if (start != UINT32_MAX)
        close_skip(b, start);
fail:
    return st;
}

/* Next in order below top, after at and all that is below it; ends the sources that it leaves. -1: none. */
static fg_status next_source(fg_build *b, int32_t top, int32_t at, int32_t *next)
{
    for (;;) {
        fg_status st = end_source(b, at);
        if (st != FG_OK)
            return st;
        if ((*next = b->nodes[at].next_sibling) >= 0)
            return FG_OK;
        if ((at = b->nodes[at].parent) == top)
            return FG_OK;
    }
}

/* Next in order below top; -1: none. */
static int32_t below(const fg_build *b, int32_t top, int32_t at)
{
    int32_t next = b->nodes[at].first_child;
    while (next < 0 && at != top) {
        next = b->nodes[at].next_sibling;
        if (next < 0)
            at = b->nodes[at].parent;
    }
    return next;
}

/* The subtree below a source without recursion: sources of hostile texts nest as deep as they are long. Tensors come last: the rest of it then has
 * memos without gaps, and a change of structure is found before their metadata is looked at. */
static fg_status emit_subtree(fg_build *b, int32_t top)
{
    fg_status st = FG_OK;
    int32_t at = b->nodes[top].first_child, next;

    b->n_starts = 0;
    b->stretches = b->n_words == 1;
    while (at >= 0) {
        FG_TRY(emit_source(b, at));
        next = b->nodes[at].first_child;
        if (next < 0)
            FG_TRY(next_source(b, top, at, &next));
        at = next;
    }
    FG_TRY(stretch_close(b));
    for (at = b->nodes[top].first_child; at >= 0; at = below(b, top, at)) {
        if (stretch_length(b) >= TENSORS_STRETCH)
            FG_TRY(stretch_close(b));
        FG_TRY(emit_facts(b, at, FACTS_TENSOR));
    }
    FG_TRY(stretch_close(b));
    b->stretches = 0;
    for (at = b->nodes[top].first_child; at >= 0; at = below(b, top, at))
        FG_TRY(emit_facts(b, at, FACTS_UNSAID));
fail:
    return st;
}

#define DISTINCT_MANY 7 /* fewer are compared pairwise in the time that it takes to look at the last answer */

static fg_status emit_relation(fg_build *b, fg_mfact *fact)
{
    /* One block: the relation with its ids, then its adaptors, then room for the last answer. */
    size_t n = (size_t)fact->leaf.lo, many = fact->kind == FG_GUARD_DISTINCT && n >= DISTINCT_MANY;
    size_t pointers_at = (sizeof(fg_relation) + n * sizeof(fg_node) + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
    size_t nbytes = pointers_at + (many ? 2 : 1) * n * sizeof(void *);
    fg_relation *relation = fg_calloc(1, nbytes);
    fg_status st = keep_block(b, relation, nbytes);
    if (st != FG_OK)
        return st;
    relation->n = (uint32_t)n;
    relation->adaptors = (const fg_tensor_adaptor **)((char *)relation + pointers_at);
    relation->last = many ? (PyObject **)relation->adaptors + n : NULL;
    memcpy(relation->adaptors, fact->adaptors, n * sizeof *fact->adaptors);
    for (size_t i = 0; i < n; i++)
        relation->ids[i] = (fg_node)b->nodes[fact->ids[i]].reg;
    relation->expr = fact->expr;
    about(b, fact->key, fact->heat);
    fg_pi op = many ? FG_PI_DISTINCT_MANY : plain_op(fact->kind);
    return emit(b, op, 0, 0, fact->asked, (fg_leaf){.p = relation});
}

/* Instructions of each source and everything below it. Children come after their parents in nodes[]. */
static fg_status weigh(fg_build *b)
{
    for (int32_t i = b->first_loose; i >= 0; i = b->facts[i].next) {
        for (int64_t k = 0; b->facts[i].ids != NULL && k < b->facts[i].leaf.lo; k++)
            b->nodes[b->facts[i].ids[k]].related = 1;
    }
    b->weights = fg_calloc(b->n_nodes + 1, sizeof *b->weights);
    if (b->weights == NULL)
        return FG_ERR_NOMEM;
    for (uint32_t i = b->n_nodes; i-- > 0;) {
        b->weights[i]++;
        for (int32_t fact = b->nodes[i].first_fact; fact >= 0; fact = b->facts[fact].next)
            b->weights[i] += class_of(&b->facts[fact]) == FACTS_OTHER;
        if (b->nodes[i].parent >= 0)
            b->weights[b->nodes[i].parent] += b->weights[i];
    }
    return FG_OK;
}

static int is_relation(fg_pi op)
{
    switch (op) {
#define FG_IS_NONE 0
#define FG_IS_OBJECT 0
#define FG_IS_INT 0
#define FG_IS_RANGE 0
#define FG_IS_META 0
#define FG_IS_STATE 0
#define FG_IS_NODES 1
#define FG_IS_EXPR 1
#define FG_GUARD(NAME, TEXT, ARG) \
    case FG_PI_FACT_##NAME:       \
        return FG_IS_##ARG;
#include "guards/guard_kinds.def"
#undef FG_GUARD
    default: return op == FG_PI_DISTINCT_MANY;
    }
}

/* What memos need to know of the registers. */
static fg_status note_registers(fg_build *b)
{
    fg_program *program = b->program;
    uint32_t *writer = fg_calloc(program->n_regs, sizeof *writer); /* stretch + 1 that writes it */
    uint32_t stretch = 0, end = 0;

    program->reg_facts = fg_calloc(program->n_regs, 1);
    if (writer == NULL || program->reg_facts == NULL) {
        fg_free(writer);
        return FG_ERR_NOMEM;
    }
    uint8_t *facts = program->reg_facts;
    for (uint32_t i = 0; i < program->n_code; i++) {
        const fg_insn *in = &program->code[i];
        if (in->op == FG_PI_MEMO) {
            stretch++;
            end = i + in->skip;
            continue;
        }
        uint32_t here = i <= end ? stretch : 0;
        if (is_relation((fg_pi)in->op)) {
            const fg_relation *relation = in->leaf.p;
            for (uint32_t k = 0; k < relation->n; k++)
                facts[relation->ids[k]] |= FG_REG_NEEDED;
            continue;
        }
        if (writer[in->src] != here || here == 0)
            facts[in->src] |= FG_REG_NEEDED;
        if (fg_insn_writes((fg_pi)in->op)) {
            writer[in->dst] = here;
            if (program->single && in->leaf.hi != 0)
                facts[in->dst] |= FG_REG_TYPED;
        } else if (program->single && in->op == FG_PI_FACT_TYPE) {
            facts[in->src] |= FG_REG_TYPED;
        }
    }
    for (uint32_t e = 0; e < program->n_entries; e++) {
        for (uint32_t i = 0; i < program->entries[e].n_outputs; i++)
            facts[program->entries[e].outputs[i]] |= FG_REG_NEEDED;
    }
    fg_free(writer);
    return FG_OK;
}

fg_status fg_build_emit(fg_build *b)
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

    b->stretch = UINT32_MAX;
    FG_TRY(weigh(b));
    for (int32_t i = b->first_loose; i >= 0; i = b->facts[i].next) {
        if (b->facts[i].kind != FG_N_GUARDS && fg_guard_is_loose((fg_guard_kind)b->facts[i].kind))
            FG_TRY(emit_fact_group(b, i, 0));
    }
    fg_build_order_roots(b, 0);
    for (int32_t root = b->first_root; root >= 0; root = b->nodes[root].next_sibling) {
        FG_TRY(emit_members(b, root));
        uint32_t before = program->n_code;
        FG_TRY(emit_load(b, root));
        uint32_t start = program->n_code - 1;
        FG_TRY(emit_facts(b, root, FACTS_ALL));
        if (program->n_code > before && !fg_set_is_empty(b, b->nodes[root].present))
            close_skip(b, start);
    }
    fg_build_order_roots(b, 1);
    for (int32_t root = b->first_root; root >= 0; root = b->nodes[root].next_sibling)
        FG_TRY(emit_subtree(b, root));
    for (int32_t i = b->first_loose; i >= 0; i = b->facts[i].next) {
        if (b->facts[i].ids != NULL)
            FG_TRY(emit_relation(b, &b->facts[i]));
    }
    uint32_t everyone;
    FG_TRY(fg_set_new(b, &everyone));
    memcpy(fg_set_words(b, everyone), program->all, b->n_words * sizeof *program->all);
    about(b, 0, 0);
    FG_TRY(emit(b, FG_PI_END, 0, 0, everyone, (fg_leaf){0}));
    FG_TRY(note_registers(b));
fail:
    return st;
}
