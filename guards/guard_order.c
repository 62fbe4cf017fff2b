/* The order of a program's instructions, by what failed before.
 *
 * An instruction counts how often it failed (fg_insn.fails). When the next program of the same function is built, what was counted follows the question:
 * the source's path and the kind of condition, whatever it was compared with, so that the size of an argument that changes all the time is asked early of
 * a new entry too. Half of it is carried on, so that what does not fail any more is forgotten after some programs.
 *
 *       x      LOAD, type       0              y      LOAD, type, size
 *       y      size           900      =>      x      LOAD, type
 *       self   .a .b .c       .c 70            self   .c .a .b
 *
 * Sorted are: conditions on one source, children of one source, roots, what is on no source, relations. By how often they failed for each instruction that
 * asking takes, in powers of two: less is no reason to change an order. What is equal stays as the entries have it.
 *
 * Rules for changing it: a source's conditions are all emitted before its children, what relates sources after all of them (guard_emit.c): no sorting may
 * cross that, since a condition is asked only of what was read, and SLOT_ATTR only behind the type. Only pure facts are in a program; the impure ones keep the
 * order of their description (guard_walk.c). The answer of a program does not depend on its order.
 */
#include "guards/guard_merge.h"
#include "runtime/base/hash.h"

typedef struct heat {
    uint32_t key, fails;
} heat;

typedef struct heats {
    heat *slots;
    uint32_t room; /* power of two; 0: nothing failed */
} heats;

static heat *slot_of(const heats *all, uint32_t key)
{
    uint32_t at = (key * UINT32_C(0x9e3779b1)) & (all->room - 1);
    while (all->slots[at].fails != 0 && all->slots[at].key != key)
        at = (at + 1) & (all->room - 1);
    return &all->slots[at];
}

static fg_status heats_take(heats *all, const fg_program *old)
{
    uint32_t n = 0;
    *all = (heats){0};
    for (uint32_t i = 0; old != NULL && i < old->n_code; i++)
        n += old->code[i].fails != 0;
    if (n == 0)
        return FG_OK;
    for (all->room = 4; all->room < 2 * n; all->room *= 2) {
    }
    if ((all->slots = fg_calloc(all->room, sizeof *all->slots)) == NULL)
        return FG_ERR_NOMEM;
    for (uint32_t i = 0; i < old->n_code; i++) {
        if (old->code[i].fails == 0)
            continue;
        heat *slot = slot_of(all, old->keys[i]);
        slot->key = old->keys[i];
        slot->fails += old->code[i].fails;
    }
    return FG_OK;
}

static uint32_t heat_of(const heats *all, uint32_t key)
{
    return all->room != 0 ? slot_of(all, key)->fails : 0;
}

static uint32_t path_of(const fg_build *b, const fg_mnode *node)
{
    uint64_t path = fg_hash_mix(node->parent >= 0 ? b->nodes[node->parent].path : 0, node->acc);
    if (node->raw != NULL)
        path = fg_hash_mix(path, node->acc == FG_ACC_CONST ? (uint64_t)(uintptr_t)node->raw : fg_const_hash(node->raw));
    return (uint32_t)fg_hash_mix(path, (uint64_t)node->index);
}

static uint32_t relation_key(const fg_build *b, const fg_mfact *fact)
{
    uint64_t key = fact->kind;
    for (int64_t i = 0; i < fact->leaf.lo; i++)
        key = fg_hash_mix(key, b->nodes[fact->ids[i]].path);
    return (uint32_t)key;
}

/* Keys and counts of all sources and conditions. */
static void name_all(fg_build *b, const heats *all)
{
    for (uint32_t i = 0; i < b->n_nodes; i++) {
        fg_mnode *node = &b->nodes[i];
        node->path = path_of(b, node);
        node->heat = heat_of(all, node->path);
        for (int32_t k = node->first_fact; k >= 0; k = b->facts[k].next) {
            b->facts[k].key = (uint32_t)fg_hash_mix(node->path, (uint64_t)b->facts[k].kind + 1);
            b->facts[k].heat = heat_of(all, b->facts[k].key);
        }
    }
    for (int32_t k = b->first_loose; k >= 0; k = b->facts[k].next) {
        fg_mfact *fact = &b->facts[k];
        fact->key = fact->ids != NULL ? relation_key(b, fact) : (uint32_t)fg_hash_mix(fact->kind, 0);
        fact->heat = heat_of(all, fact->key);
    }
}

static uint32_t power_of(uint64_t n)
{
    return n == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(n);
}

/* The rank of what failed so often and takes so many instructions. */
static uint32_t rank_of(uint64_t fails, uint32_t cost)
{
    uint32_t power = power_of(fails), less = power_of(cost) - 1;
    return power == 0 ? 0 : power > less ? power - less : 1;
}

/* One list for each rank, then all of them behind each other; equal ones keep their order. */
enum { N_RANKS = 65 };
typedef struct ranks {
    int32_t first[N_RANKS], last[N_RANKS];
} ranks;

static void sort_facts(fg_build *b, int32_t *first, int32_t *last)
{
    ranks all;
    memset(&all, 0xff, sizeof all);
    for (int32_t at = *first, next; at >= 0; at = next) {
        uint32_t rank = rank_of(b->facts[at].heat, 1);
        next = b->facts[at].next;
        b->facts[at].next = -1;
        *(all.last[rank] >= 0 ? &b->facts[all.last[rank]].next : &all.first[rank]) = at;
        all.last[rank] = at;
    }
    *first = *last = -1;
    for (int rank = N_RANKS; rank-- > 0;) {
        if (all.first[rank] < 0)
            continue;
        *(*last >= 0 ? &b->facts[*last].next : first) = all.first[rank];
        *last = all.last[rank];
    }
}

/* of_subtrees: by what is below them, else by their own instructions. */
static void sort_nodes(fg_build *b, int32_t *first, int32_t *last, int of_subtrees)
{
    ranks all;
    memset(&all, 0xff, sizeof all);
    for (int32_t at = *first, next; at >= 0; at = next) {
        fg_mnode *node = &b->nodes[at];
        uint32_t rank = of_subtrees ? rank_of(node->below, node->size) : rank_of(node->own, node->own_size);
        next = node->next_sibling;
        node->next_sibling = -1;
        *(all.last[rank] >= 0 ? &b->nodes[all.last[rank]].next_sibling : &all.first[rank]) = at;
        all.last[rank] = at;
    }
    *first = *last = -1;
    for (int rank = N_RANKS; rank-- > 0;) {
        if (all.first[rank] < 0)
            continue;
        *(*last >= 0 ? &b->nodes[*last].next_sibling : first) = all.first[rank];
        *last = all.last[rank];
    }
}

/* What the source's own instructions failed, and how many they are. */
static void own_heat(const fg_build *b, fg_mnode *node)
{
    node->own = node->heat;
    node->own_size = 1;
    for (int32_t k = node->first_fact; k >= 0; k = b->facts[k].next) {
        node->own += b->facts[k].heat;
        node->own_size++;
    }
}

fg_status fg_build_order(fg_build *b, const fg_program *old)
{
    heats all;
    fg_status st = heats_take(&all, old);
    if (st != FG_OK)
        return st;
    name_all(b, &all);
    b->ordered = all.room != 0;
    fg_free(all.slots);
    for (uint32_t i = b->n_nodes; b->ordered && i-- > 0;) { /* children come after their parents */
        fg_mnode *node = &b->nodes[i];
        own_heat(b, node);
        if (node->parent >= 0) { /* a root's own part is emitted before all subtrees */
            node->below += node->own;
            node->size += node->own_size;
            b->nodes[node->parent].below += node->below;
            b->nodes[node->parent].size += node->size;
        }
        sort_facts(b, &node->first_fact, &node->last_fact);
        sort_nodes(b, &node->first_child, &node->last_child, 1);
    }
    if (b->ordered)
        sort_facts(b, &b->first_loose, &b->last_loose);
    return FG_OK;
}

void fg_build_order_roots(fg_build *b, int of_subtrees)
{
    if (b->ordered)
        sort_nodes(b, &b->first_root, &b->last_root, of_subtrees);
}
