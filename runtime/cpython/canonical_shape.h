/* Purpose:   what a canonical instruction takes from and leaves on the stack, for the assemblers and their checks.
 * Model:     an instruction pops some values and pushes some; COPY, SWAP and the container updates also look below what they pop.
 * Invariants: pushes - pops is fg_instr_effect.
 * Threading: none. Ownership: none.
 */
#ifndef FG_CPYTHON_CANONICAL_SHAPE_H
#define FG_CPYTHON_CANONICAL_SHAPE_H

#include "runtime/cpython/canonical.h"

typedef struct fg_shape {
    int pops, pushes;
} fg_shape;

fg_shape fg_instr_shape(const fg_instr *instr, int jump);
int fg_instr_reach(const fg_instr *instr); /* how many values must be on the stack before it */
int fg_cop_falls_through(int op);          /* 0: the next instruction is not reached from it */
int fg_cop_jumps(int op);                  /* 1: has a target */

#endif
