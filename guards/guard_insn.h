/* Purpose:   the merged program's instructions and tables, shared by builder and evaluator.
 * Model:     a flat array of instructions over registers. Each carries the entries that asked for it (`mask`); it is skipped when none of them is
 *            alive, and when it fails it clears exactly them. `skip` leads past everything that only these entries (or fewer) need.
 * Invariants: immutable once built, but for the memos and the counts of failures. A register is written before it is read, for the same bits. p, lo, hi of a leaf borrow from the descriptions.
 * Threading: the GIL is held.
 * Ownership: the program owns its arrays; it borrows the descriptions.
 */
#ifndef FG_GUARD_INSN_H
#define FG_GUARD_INSN_H

#include "guards/guard_private.h"

/* LOAD_x: the child must be there: regs[dst] = it; leaf is {key, index or hash, exact type demanded or 0}.
 * NONE_x: the parent must be legal and the child absent.
 * FACT_x: a condition on regs[src], or a relation.
 * TABLE_x: many conditions of one kind on regs[src], told apart by one look-up; leaf.p is the table. */
typedef enum fg_pi {
#define FG_ACCESSOR(NAME, TEXT, KEY) FG_PI_LOAD_##NAME, FG_PI_NONE_##NAME,
#include "guards/accessors.def"
#undef FG_ACCESSOR
#define FG_GUARD(NAME, TEXT, ARG) FG_PI_FACT_##NAME,
#include "guards/guard_kinds.def"
#undef FG_GUARD
    FG_PI_LOAD_TYPE_VERSIONED, /* TYPE_LOOKUP whose answer is recorded with the type's version; leaf.p is a fg_lookup */
    FG_PI_FACT_MEMBERS,        /* what a type of its own has under some names, all recorded with its version; leaf.p is a fg_members */
    FG_PI_TABLE_TYPE,
    FG_PI_TABLE_ID,
    FG_PI_TABLE_CONST,
    FG_PI_TABLE_LENGTH,
    FG_PI_TABLE_TENSOR,
    FG_PI_TABLE_NUMPY, /* TABLE_TENSOR and FACT_TENSOR of exact ndarrays: the array's own struct is compared in place */
    FG_PI_FACT_NUMPY,
    FG_PI_TABLE_STATE,
    FG_PI_DISTINCT_MANY, /* FACT_DISTINCT of so many sources that the last answer is worth keeping */
    FG_PI_MEMO,          /* the next `skip` instructions have a memo (leaf.p, guard_memo.h): where it holds, they are passed over */
    FG_PI_MEMO_WIDE,     /* the same for a row of memos that follow one another */
    FG_PI_END,
    FG_N_PIS
} fg_pi;

typedef struct fg_insn {
    uint16_t op;    /* fg_pi */
    uint16_t fails; /* how often it failed, and half of that in the program before; no more than fit */
    uint32_t skip;  /* instructions to pass over, beyond this one, when no bit of the mask is alive or none is left */
    uint32_t src, dst;
    uint64_t mask; /* up to 64 entries: the bits; more: position of the words in program->masks */
    fg_leaf leaf;
} fg_insn;

/* 1 for the instructions that write regs[dst]: LOAD_x. */
static inline int fg_insn_writes(fg_pi op)
{
    switch (op) {
#define FG_ACCESSOR(NAME, TEXT, KEY) case FG_PI_LOAD_##NAME:
#include "guards/accessors.def"
#undef FG_ACCESSOR
    case FG_PI_LOAD_TYPE_VERSIONED: return 1;
    default: return 0;
    }
}

static inline void fg_insn_failed(fg_insn *in)
{
    in->fails = (uint16_t)(in->fails + (in->fails != UINT16_MAX));
}

typedef struct fg_lookup {
    const PyTypeObject *type; /* address only */
    PyObject *name;
    Py_hash_t hash;
    PyObject *value; /* alive while the type's version is the recorded one */
    uint32_t version;
} fg_lookup;

/* No register is read: the type is a constant. */
typedef struct fg_members {
    PyObject *held;     /* the type or the weak reference to it, as entries hold it */
    PyTypeObject *type; /* an address alone, until `held` says that it is alive */
    uint32_t version;   /* at which they were all found so last */
    uint32_t n;
    struct fg_member {
        PyObject *name;
        Py_hash_t hash;
        const PyObject *value; /* address only; NULL: there must be none */
    } of[];
} fg_members;

typedef struct fg_slot {
    uint64_t hash;
    uint64_t mask; /* as in fg_insn */
    fg_leaf leaf;
    uint32_t used;
} fg_slot;

/* Words of a tensor's metadata by position, for the hash of a tensor table: only those in which the table's rows differ are looked at. */
enum {
    FG_META_NDIM,
    FG_META_DTYPE,
    FG_META_KEYS,
    FG_META_DEVICE,
    FG_META_FLAGS,
    FG_META_SIZE = 8,
    FG_META_STRIDE = 8 + FG_TENSOR_MAX_DIM,
    FG_META_WORDS = 8 + 2 * FG_TENSOR_MAX_DIM
};

typedef struct fg_table {
    uint32_t room;  /* power of two, larger than the number of rows */
    uint32_t shift; /* 64 - log2(room) */
    uint32_t n_positions;
    uint16_t positions[FG_META_WORDS];
    fg_slot slots[];
} fg_table;

typedef struct fg_relation {
    uint32_t n;
    uint8_t has_last;
    PyObject **last;                    /* n, for DISTINCT of many: addresses that were distinct the last time, only compared */
    const fg_tensor_adaptor **adaptors; /* n, for those that read tensors */
    const fg_expr *expr;                /* EXPR: the description's */
    fg_node ids[];                      /* registers */
} fg_relation;

typedef struct fg_entry {
    const fg_desc *desc;
    uint32_t *outputs; /* registers, for more than one entry */
    uint32_t n_outputs;
    uint8_t impure; /* evaluate the description itself once the pure facts hold */
    uint8_t never;
} fg_entry;

enum { FG_WAY_ONE, FG_WAY_WORD, FG_WAY_ANY };

/* TYPED: the only entry guards the identity of its type (the type's death kills the entry). NEEDED: something outside of the memo that writes it
 * reads it. */
enum { FG_REG_TYPED = 1, FG_REG_NEEDED = 2 };

struct fg_program {
    fg_insn *code;
    uint32_t *keys; /* n_code: what is asked of which source, to know it again in the next program */
    uint32_t n_code;
    uint32_t n_entries, n_words;
    uint32_t n_regs, max_outputs;
    uint8_t way; /* which loop evaluates it */
    uint8_t any_impure;
    uint8_t single;  /* one entry: no masks, registers of outputs are the inputs */
    uint64_t *all;   /* n_words: entries that can match at all */
    uint64_t *masks; /* pool, for more than 64 entries */
    uint32_t n_masks, cap_masks;
    fg_entry *entries;
    uint8_t *reg_facts; /* n_regs: FG_REG_ bits */
    struct fg_memo **memos;
    uint32_t n_memos, cap_memos;
    void **blocks; /* tables, relations, look-ups */
    uint32_t n_blocks, cap_blocks;
    size_t block_bytes;
};

#define FG_TABLE_MULTIPLIER UINT64_C(0x9e3779b97f4a7c15)
static inline uint32_t fg_table_home(const fg_table *table, uint64_t hash)
{
    return (uint32_t)((hash * FG_TABLE_MULTIPLIER) >> table->shift);
}

static inline uint64_t fg_meta_word(int position, int32_t ndim, int32_t dtype, uint64_t keys, int16_t device_type, int16_t device_index,
                                    uint8_t requires_grad, uint8_t layout, const int64_t *sizes, const int64_t *strides)
{
    if (position >= FG_META_STRIDE)
        return position - FG_META_STRIDE < ndim ? (uint64_t)strides[position - FG_META_STRIDE] : ~UINT64_C(0);
    if (position >= FG_META_SIZE)
        return position - FG_META_SIZE < ndim ? (uint64_t)sizes[position - FG_META_SIZE] : ~UINT64_C(0);
    switch (position) {
    case FG_META_NDIM: return (uint64_t)ndim;
    case FG_META_DTYPE: return (uint64_t)dtype;
    case FG_META_KEYS: return keys;
    case FG_META_DEVICE: return (uint64_t)(uint16_t)device_type << 16 | (uint16_t)device_index;
    default: /* FG_META_FLAGS: positions are plain numbers here */ return (uint64_t)requires_grad << 8 | layout;
    }
}

static inline uint64_t fg_meta_hash_step(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0xd6e8feb86659fd93);
    return hash ^ (hash >> 29);
}

static inline uint64_t fg_meta_hash(const fg_table *table, int32_t ndim, int32_t dtype, uint64_t keys, int16_t device_type,
                                    int16_t device_index, uint8_t requires_grad, uint8_t layout, const int64_t *sizes,
                                    const int64_t *strides)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < table->n_positions; i++) {
        uint64_t word =
            fg_meta_word(table->positions[i], ndim, dtype, keys, device_type, device_index, requires_grad, layout, sizes, strides);
        hash = fg_meta_hash_step(hash, word);
    }
    return hash;
}
#define FG_META_HASH(TABLE, M, SIZES, STRIDES)                                                                                         \
    fg_meta_hash(TABLE, (M)->ndim, (M)->dtype, (M)->keys, (M)->device_type, (M)->device_index, (M)->requires_grad, (M)->layout, SIZES, \
                 STRIDES)

/* Fill a table from rows (guard_table.c). masks as in fg_slot; NULL: out of memory. */
fg_table *fg_table_new(fg_pi op, const fg_leaf *leaves, const uint64_t *masks, uint32_t n, size_t *nbytes);

#endif
