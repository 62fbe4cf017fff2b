/* Purpose:   real instructions of a code object, and the typed pass over them.
 * Model:     fg_raw_read turns co_code, location table and exception table into one array (prefixes and cache units folded in).
 *            fg_raw_flow walks every path once and types each stack slot: a value, a NULL, the self half of a method load, or what a finished iterator leaves. The stack
 *            before each join is kept, so that a later walk in code order can have the stack before every instruction from fg_raw_step.
 * Invariants: types agree at every join and handler, else the code is refused. Handlers are entered only from instructions that may raise.
 * Threading: the GIL is held.
 * Ownership: fg_raw_code owns its arrays (one arena) and a reference to the bytes; it borrows the code object.
 */
#ifndef FG_CPYTHON_BYTECODE_RAW_H
#define FG_CPYTHON_BYTECODE_RAW_H

#include "runtime/base/arena.h"
#include "runtime/base/status.h"
#include "runtime/cpython/bytecode_version.h"
#include <Python.h>
#include <stdint.h>

typedef enum fg_raw_op {
#define FG_RAW_OP(NAME, NUMBER, CACHES, KIND) FG_RAW_##NAME = NUMBER,
#include FG_VERSION_OPCODES
#undef FG_RAW_OP
} fg_raw_op;

typedef enum fg_raw_kind {
    FG_RAW_KIND_INVALID,
    FG_RAW_KIND_NONE,
    FG_RAW_KIND_NUMBER,
    FG_RAW_KIND_CONST,
    FG_RAW_KIND_NAME,
    FG_RAW_KIND_GLOBAL, /* a name index shifted by one; the low bit asks for a NULL */
    FG_RAW_KIND_ATTR,   /* a name index shifted by one; the low bit asks for a method pair */
    FG_RAW_KIND_SUPER,  /* a name index shifted by two; as ATTR, and the bit above it tells super(cls, self) from super() */
    FG_RAW_KIND_IMPORT, /* a name index shifted by two; the bits below it say how lazy the import is */
    FG_RAW_KIND_SLOT,
    FG_RAW_KIND_SLOTS, /* two slots of four bits each, the first one higher */
    FG_RAW_KIND_JUMP_AHEAD,
    FG_RAW_KIND_JUMP_BACK
} fg_raw_kind;

extern const uint8_t fg_raw_kinds[256];  /* fg_raw_kind of each opcode */
extern const uint8_t fg_raw_caches[256]; /* inline cache units after each opcode */

/* SPENT: where an iterator stood that is finished, until END_FOR or END_SEND takes it away. */
typedef enum fg_slot_type { FG_SLOT_VALUE, FG_SLOT_NULL, FG_SLOT_SELF, FG_SLOT_SPENT } fg_slot_type;

typedef struct fg_raw {
    uint8_t op;
    uint8_t reachable;
    uint32_t arg;
    int32_t start, unit, end; /* code units: first prefix, the opcode itself, past the caches */
    int32_t target;           /* index, -1: no jump */
    int32_t entry;            /* exception table entry, -1: none */
    int32_t state;            /* kept stack of a join, -1: no join */
    int32_t line, end_line, col, end_col;
} fg_raw;

typedef struct fg_raw_entry {
    int32_t start, end; /* code units */
    int32_t target;     /* index */
    int32_t depth, lasti;
    int32_t values; /* canonical depth, -1 until a raising instruction under it was reached */
} fg_raw_entry;

typedef struct fg_raw_stack {
    uint8_t *types;
    int32_t depth; /* -1: a join that was not reached yet */
} fg_raw_stack;

typedef struct fg_raw_code {
    FG_BORROWED PyCodeObject *code;
    FG_OWNED PyObject *bytes;
    fg_raw *ops;
    int32_t n_ops;
    fg_raw_entry *entries;
    int32_t n_entries;
    fg_raw_stack *states;
    int32_t n_states;
    int32_t room;      /* slots a working stack may need */
    int32_t max_depth; /* deepest real stack seen by the typed pass */
    const char *why;   /* what is wrong with the code, after FG_ERR_INVALID or FG_ERR_UNSUPPORTED */
    fg_arena arena;
} fg_raw_code;

static inline uint32_t fg_raw_name_index(const fg_raw *op)
{
    const int kind = fg_raw_kinds[op->op];
    return kind == FG_RAW_KIND_SUPER || kind == FG_RAW_KIND_IMPORT  ? op->arg >> 2
           : kind == FG_RAW_KIND_GLOBAL || kind == FG_RAW_KIND_ATTR ? op->arg >> 1
                                                                    : op->arg;
}

fg_status fg_raw_read(PyCodeObject *code, fg_raw_code *out); /* fini is needed after failure too */
fg_status fg_raw_flow(fg_raw_code *raw);
void fg_raw_fini(fg_raw_code *raw);

/* Apply instruction i to the stack before it, for the path that falls through or the one that jumps. */
fg_status fg_raw_step(fg_raw_code *raw, int32_t i, fg_raw_stack *stack, int jump);
/* The stack before instruction i in a walk in code order: takes the kept one at joins. */
void fg_raw_stack_enter(const fg_raw_code *raw, int32_t i, fg_raw_stack *stack);
fg_status fg_raw_stack_new(fg_raw_code *raw, fg_raw_stack *out); /* lives in the arena */
/* Values among the n slots from index `from` up. */
int32_t fg_raw_stack_values(const fg_raw_stack *stack, int32_t from, int32_t n);

/* What the version says of its instructions. */
typedef struct fg_raw_shape {
    int64_t pops, pushes;
    int64_t reach; /* slots that must be there below what is popped */
} fg_raw_shape;
int fg_version_may_raise(const fg_raw *op);
int fg_version_falls_through(int op);
/* 0: an instruction that fg_version_step does itself, or an unknown one. */
int fg_version_shape(const fg_raw *op, int jump, fg_raw_shape *out);
/* Apply instruction i where it moves anything but plain values, *done = 1; else leave it to its shape. */
fg_status fg_version_step(fg_raw_code *raw, int32_t i, fg_raw_stack *stack, int jump, int *done);
/* What is wrong with the operands of instruction i, NULL: nothing. */
const char *fg_version_operand(const fg_raw_code *raw, int32_t i);
/* Inline cache units behind the unit u of the live bytes, which may be specialised or instrumented. */
int fg_version_live_caches(PyCodeObject *code, Py_ssize_t u);

/* For fg_version_step. */
fg_status fg_raw_refuse(fg_raw_code *raw, const char *why);
fg_status fg_raw_push(fg_raw_code *raw, fg_raw_stack *stack, int type);
int fg_raw_is_callee(const fg_raw_stack *stack, int32_t at);      /* the two slots from `at` up are what a call takes for its callee */
int fg_raw_is_null_callee(const fg_raw_stack *stack, int32_t at); /* they are a callee and a NULL */
int fg_raw_are_values(const fg_raw_stack *stack, int64_t from, int64_t n);

#endif
