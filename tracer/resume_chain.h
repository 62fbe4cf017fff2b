/* Purpose:   the resume table's layout, and the run of a chain: a host that starts at a given instruction of a running frame.
 * Model:     a chain's host has no steps of the user: it takes the frame's bound locals and the stack out of a list. Hosts are kept per (instruction, bound locals).
 * Threading: the GIL is held.
 */
#ifndef FG_TRACER_RESUME_CHAIN_H
#define FG_TRACER_RESUME_CHAIN_H

#include "runtime/cpython/frame.h"
#include "tracer/resume.h"

struct fg_resume_table {
    int32_t count;
    FG_BORROWED PyCodeObject *code; /* NULL: gone */
    fg_site *root;                  /* not counted; NULL: gone, as its code */
    struct fg_segment_site {
        struct fg_segment_site *next;
        int32_t pc;
        fg_site *site; /* counted */
    } * sites;
    int32_t n_not_asked; /* traces that were given up because the call itself had to ask an abstract base class first */
    int32_t n_too_long;  /* traces that were given up as too long */
    int32_t *breaks, n_breaks;
    struct fg_inner_gate *gates; /* resume_inner.c */
    int32_t n_gates;
    FG_OWNED PyObject *chains; /* dict: (pc, or ~pc: to raise there; bound bytes) -> code object; NULL until needed */
};

/* frame: the host that runs out of arms; its locals and what is in `stack` move on. */
FG_NEW PyObject *fg_chain_run(fg_resume_table *table, int32_t pc, PyFunctionObject *func, fg_frame *frame, const int16_t *slot_map,
                              int32_t n_slots, PyObject *stack);

#endif
