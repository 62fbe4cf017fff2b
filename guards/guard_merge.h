/* Purpose:   the merged tree of all entries' sources and conditions while a program is built: between guard_merge.c, which makes it, and
 *            guard_emit.c, which writes it out as instructions.
 * Model:     a source (fg_mnode) is keyed by parent, accessor and key; it has two sets of entries, those that need a value there and those that
 *            need an absence. A condition (fg_mfact) stands once, with the set of entries that ask for it. Sets are positions in one pool.
 * Invariants: a child's set is inside its parent's.
 * Threading: the GIL is held.
 * Ownership: fg_build owns everything in it until the program is handed over.
 */
#ifndef FG_GUARD_MERGE_H
#define FG_GUARD_MERGE_H

#include "guards/guard_insn.h"
#include <string.h>

typedef struct fg_mnode {
    uint8_t acc;
    uint8_t related; /* a relation reads it */
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
    /* For the order (guard_order.c): the source's path, how often its reading failed; what its own instructions failed and how many they are, and the same of
     * everything that is emitted with its subtree. */
    uint32_t path, heat, own_size, size;
    uint64_t own, below;
} fg_mnode;

typedef struct fg_mfact {
    uint8_t kind;
    fg_leaf leaf;
    fg_node *ids;                       /* merged nodes of a relation, owned */
    const fg_tensor_adaptor **adaptors; /* owned */
    const fg_expr *expr;                /* the description's */
    uint64_t hash;
    int32_t next;
    uint32_t asked;
    uint32_t key, heat; /* what is asked of which source, how often it failed */
} fg_mfact;

typedef struct fg_build {
    fg_program *program;
    const fg_desc *const *descs;
    uint32_t n_words;
    fg_mnode *nodes;
    fg_mfact *facts;
    uint64_t *sets; /* n_words each */
    int32_t *heads;
    uint32_t n_nodes, cap_nodes, n_facts, cap_facts, n_sets, cap_sets, n_heads;
    int32_t first_root, last_root;
    int32_t first_loose, last_loose; /* facts on no source */
    uint32_t cap_code, cap_keys;
    uint32_t key, heat; /* of what is being emitted */
    uint8_t ordered;    /* something has failed before */
    /* While a subtree is written: where its sources' instructions are, on the way down (UINT32_MAX: none), and the stretch that is being written. */
    uint32_t *starts, n_starts, cap_starts;
    uint32_t *weights; /* instructions of each source's subtree */
    uint32_t stretch;  /* position of its FG_PI_MEMO; UINT32_MAX: none is open */
    uint8_t stretches; /* in a subtree whose instructions get memos */
} fg_build;

/* ---- sets of entries ---- */

fg_status fg_set_new(fg_build *b, uint32_t *out);
/* How the set is written into an instruction: the bits themselves, or where they lie in the program's pool. */
fg_status fg_set_mask(fg_build *b, const uint64_t *words, uint64_t *mask);

static inline uint64_t *fg_set_words(const fg_build *b, uint32_t set)
{
    return b->sets + (size_t)set * b->n_words;
}

static inline void fg_set_add(const fg_build *b, uint32_t set, uint32_t entry)
{
    fg_set_words(b, set)[entry / 64] |= UINT64_C(1) << (entry % 64);
}

static inline int fg_set_is_empty(const fg_build *b, uint32_t set)
{
    for (uint32_t w = 0; w < b->n_words; w++) {
        if (fg_set_words(b, set)[w] != 0)
            return 0;
    }
    return 1;
}

static inline int fg_set_same(const fg_build *b, uint32_t one, uint32_t other)
{
    return memcmp(fg_set_words(b, one), fg_set_words(b, other), b->n_words * sizeof *b->sets) == 0;
}

/* Merge the description of one entry into the tree (guard_merge.c). */
fg_status fg_build_merge(fg_build *b, uint32_t entry);

/* Put what has failed often in earlier programs of the function first (guard_order.c). Roots have two orders: their own instructions, their subtrees. */
fg_status fg_build_order(fg_build *b, const fg_program *old);
void fg_build_order_roots(fg_build *b, int of_subtrees);

/* Write the tree out as the program's instructions (guard_emit.c). */
fg_status fg_build_emit(fg_build *b);

/* Lead rows of memos by wide ones (guard_wide.c). The program is complete. */
fg_status fg_build_widen(fg_program *program);

#endif
