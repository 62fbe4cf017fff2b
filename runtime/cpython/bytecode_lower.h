/* Purpose:   the lowering's state and helpers, for bytecode_lower.c and the part of it that each version has.
 * Model:     canonical instructions are lowered in code order; fg_lower_put adds a real one. What version files put for instruction i has its position
 *            and handler unless another source is named.
 * Threading: the GIL is held.
 * Ownership: as bytecode_assemble.h.
 */
#ifndef FG_CPYTHON_BYTECODE_LOWER_H
#define FG_CPYTHON_BYTECODE_LOWER_H

#include "runtime/cpython/bytecode_assemble.h"

typedef struct fg_lowering {
    fg_assembler *a;
    int32_t depth; /* real stack now */
    int fuse_null; /* the next LOAD_GLOBAL pushes a NULL too */
    int is_spent;  /* a CLEANUP_THROW has left a spent receiver below its value */
} fg_lowering;

fg_real *fg_lower_put(fg_lowering *l, int32_t source, int op, int32_t arg);
fg_status fg_lower_refuse(fg_assembler *a, fg_status st, const char *why);
fg_status fg_lower_name(fg_assembler *a, const fg_instr *instr, int32_t *index);
fg_status fg_lower_constant(fg_assembler *a, const fg_instr *instr, int32_t *index);
/* Push a NULL, as part of the load before where that can be. */
void fg_lower_null(fg_lowering *l, int32_t source);
/* Slots of the n-th value from the top, before the instruction that is lowered. */
int fg_lower_top_width(const fg_assembler *a, int32_t n);
/* 1 if instruction i is this op and is reached only from the one before, under the same handler. */
int fg_lower_follows(const fg_assembler *a, int32_t i, int op);

/* The version's part. fg_version_lower_group: length of a group that begins at i and is one real instruction, which it puts; 0 none, -1 *st says why
 * not. fg_version_lower_one: *done 0: one of those that all versions have. fg_version_lower_edge: what a jump to instruction i lands on first. */
size_t fg_version_most_lowered(int op);
fg_status fg_version_lower_begin(fg_lowering *l);
fg_status fg_version_lower_edge(fg_lowering *l, int32_t i);
int32_t fg_version_lower_group(fg_lowering *l, int32_t i, fg_status *st);
fg_status fg_version_lower_one(fg_lowering *l, int32_t i, int *done);
void fg_version_lower_call(fg_lowering *l, int32_t i, int32_t counted);
void fg_version_lower_call_ex(fg_lowering *l, int32_t i); /* NULL and callee stand where they should */

#endif
