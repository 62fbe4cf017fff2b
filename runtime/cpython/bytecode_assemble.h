/* Purpose:   the assembler's shared state: canonical instructions in, real instructions and tables out.
 * Model:     three steps. plan (bytecode_assemble.c): walk all paths and decide which CALLEE becomes a NULL. lower (bytecode_lower.c): real
 *            instructions in code order. emit (bytecode_emit.c): prefixes, caches, jump distances, tables, the code object.
 * Invariants: nothing of the input is trusted; what cannot be assembled is refused with a.why set.
 * Threading: the GIL is held.
 * Ownership: everything is in the arena; Python objects are borrowed from the input.
 */
#ifndef FG_CPYTHON_BYTECODE_ASSEMBLE_H
#define FG_CPYTHON_BYTECODE_ASSEMBLE_H

#include "runtime/cpython/bytecode_version.h"
#include "runtime/cpython/canonical_shape.h"
#include "runtime/cpython/bytecode_pool.h"
#include "runtime/cpython/bytecode_raw.h"
#include "runtime/cpython/canonical_cache.h"

/* What stands on the stack, from the bottom. A number >= 0 is a CALLEE instruction: a NULL if that CALLEE is used, else nothing. */
enum {
    FG_ITEM_VALUE = -1,
    FG_ITEM_METHOD = -2, /* one canonical value in two real slots */
    FG_ITEM_GHOST = -3,  /* a canonical value that is not on the real stack: keyword names, arguments that super() finds by itself */
    FG_ITEM_NULL = -4,   /* a NULL the assembler put here itself */
    FG_ITEM_MADE = -16 /* this and below, where values may be wide: a value, with the variable FG_ITEM_MADE - item for where it was made */
};

static inline int fg_item_is_value(int32_t item)
{
    return item == FG_ITEM_VALUE || item <= FG_ITEM_MADE;
}

typedef struct fg_items {
    int32_t *items;
    int32_t n, room;
    int32_t values; /* canonical depth; -1: a join that was not reached yet */
} fg_items;

enum {
    FG_AT_TARGET = 1,   /* a jump or a handler leads here */
    FG_AT_GHOST = 2,    /* pushes a ghost */
    FG_AT_BANNED = 4,   /* a CALLEE that is taken for nothing */
    FG_AT_USED = 8,     /* a CALLEE that is the NULL of a call */
    FG_AT_DROPPED = 16, /* a CALLEE that some path drops without a call */
    FG_AT_BARE = 32     /* a call that has no CALLEE and cannot do without a NULL */
};

typedef enum fg_call_form {
    FG_CALL_NULL,   /* NULL below the callee */
    FG_CALL_METHOD, /* the callee is a method pair */
    FG_CALL_PLAIN,  /* callee and first argument in the callee's two slots */
    FG_CALL_BARE    /* none of these: the NULL must be moved below the callee at the call */
} fg_call_form;

/* Where a jump to an instruction lands: at its code, or at the END_FOR or END_SEND in front of it. */
typedef enum fg_landing { FG_LAND_CODE, FG_LAND_END_FOR, FG_LAND_END_SEND, FG_N_LANDINGS } fg_landing;

typedef struct fg_real {
    uint8_t op;
    uint8_t prefixes;
    uint8_t landing; /* fg_landing of a jump */
    uint32_t arg;
    int32_t target; /* canonical index, then real index; -1: no jump */
    int32_t source; /* canonical index whose position and handler it has */
    int32_t depth;  /* real stack before it */
    int32_t unit;
} fg_real;

typedef struct fg_assembler {
    const fg_asm *in;
    const char *why;
    fg_arena arena;
    uint8_t *at;     /* per instruction: FG_AT_ bits */
    uint8_t *nulls;  /* per instruction: NULLs to push before it */
    int32_t *state;  /* per instruction: join, -1 */
    int32_t *depths; /* per instruction: canonical depth, -1 not reached */
    fg_items *states;
    int32_t n_states;
    fg_items now, other;
    fg_call_form form; /* of the call stepped last */
    int32_t n_slots, n_banned;
    int32_t *made;    /* per instruction: the variable of its first result; where values may be wide */
    int32_t *same_as; /* per variable: another one that meets it on some stack, or itself */
    uint8_t *is_wide; /* per variable that is same_as itself */
    int32_t n_variables, n_widened;

    fg_real *out;
    int32_t n_out, room_out;
    int32_t *first;                   /* canonical -> real index */
    int32_t *landings[FG_N_LANDINGS]; /* the same for the other landings; NULL on versions without them */
    int32_t *leaders[FG_N_LANDINGS];  /* canonical -> an instruction that jumps there and lands so, -1 */
    int32_t *handler_depth;           /* real depth of each handler, -1: never entered */
    int32_t max_depth;
    fg_pool constants, names;
} fg_assembler;

/* bytecode_assemble.c */
fg_status fg_items_step(fg_assembler *a, int32_t i, fg_items *items, int jump);
fg_status fg_items_null(fg_assembler *a, fg_items *items); /* push a NULL of the assembler's own */
fg_status fg_items_copy(fg_assembler *a, fg_items *to, const fg_items *from);
int32_t fg_items_real(const fg_assembler *a, const fg_items *items, int32_t from);
int fg_assembler_raises(const fg_assembler *a, int32_t i);
/* 1 if the CALL_SUPER at i and the attribute load behind it can be one instruction. */
int fg_assembler_super_attr(const fg_assembler *a, int32_t i);
/* Slots of the n-th value from the top; and 1 if result k of instruction i gets a NULL as its second slot, which the instruction does not push itself. */
int fg_assembler_width(const fg_assembler *a, const fg_items *items, int32_t n);
int fg_assembler_widens(const fg_assembler *a, int32_t i, int32_t k);
/* How many items hold the lowest `depth` canonical values (a method's second half included, a NULL above them not). */
int32_t fg_items_below(const fg_items *items, int32_t depth);

/* bytecode_lower.c */
fg_status fg_assembler_lower(fg_assembler *a);

/* bytecode_emit.c */
int fg_version_backward(int op, int quiet); /* the form of a jump that goes back, 0: none; in vXYZ_lower.c */
fg_status fg_assembler_emit(fg_assembler *a, FG_NEW PyCodeObject **out);

#endif
