/* Purpose:   the state of one emission, shared by emit.c, emit_tree.c, emit_step.c and emit_host.c.
 * Model:     instructions are appended to `out`; `where` and `handler` are those of what is emitted next.
 * Invariants: a temporary belongs to one register at a time.
 * Threading: the GIL is held.
 * Ownership: arrays are in the trace's arena; constants made here are in `owned` until the code object has them.
 */
#ifndef FG_CODEGEN_EMIT_PRIVATE_H
#define FG_CODEGEN_EMIT_PRIVATE_H

#include "codegen/emit.h"
#include <stdbool.h>

typedef struct fg_emit_state {
    const fg_emit_input *input;
    fg_ir *ir;
    fg_arena *arena;
    fg_instr *out;
    int32_t n_out, cap_out;
    fg_handler *handlers;
    int32_t n_handlers, cap_handlers;
    uint8_t *is_dead;   /* per step: not emitted */
    uint8_t *is_inline; /* per step: emitted where its result is used */
    int32_t n_inputs;
    int32_t n_temps;     /* temporaries so far */
    int32_t temp_base;   /* slot of the first */
    int32_t *free_temps; /* stack of free temporaries */
    int32_t n_free, cap_temps;
    uint8_t *temp_live; /* per temporary: holds something */
    struct fg_emit_block {
        PyObject *graph;                        /* whose operations stand in several places, or NULL */
        int32_t site, caught, context, restore; /* what it is for: an inlined call whose traceback it completes, a catch, …; -1: none */
        int32_t *exits;                         /* of the restore: the slots of what is called, -1: no temporary */
        int32_t handler;
        int32_t next; /* in the list of the site or the catch, -1 */
    } * blocks;
    int32_t n_blocks, cap_blocks;
    int32_t *site_blocks, *catch_blocks; /* per site, per catch: its first block, -1 */
    struct fg_emit_catch {
        struct fg_emit_place {
            fg_reg reg;
            int32_t slot;
        } * places; /* where what it needs is, of registers that steps made */
        int32_t n_places, cap_places;
        uint8_t *live; /* temporaries that hold something; NULL: no step that has it was emitted yet */
        int32_t n_live;
    } * catches;
    int32_t *handler_of;   /* in a host: the handler that stands for one of the root's */
    int32_t exc_slot;      /* in a host with catches: where the exception waits */
    int32_t cold_slots;    /* … and the first of the temporaries for results of cold steps */
    const fg_instr *where; /* position of what is emitted now */
    int32_t handler;       /* handler of what is emitted now */
    PyObject *owned;       /* list: constants made here */
    /* a host's locals */
    int16_t *slot_map;
    PyObject *varnames, *cellvars, *freevars;
    int32_t n_user_vars;
} fg_emit_state;

#define FG_EXIT_USE INT32_MAX

/* emit_step.c */
fg_status fg_emit_op(fg_emit_state *e, fg_cop op, int32_t arg, PyObject *object);
fg_status fg_emit_jump(fg_emit_state *e, fg_cop op, int32_t *patch); /* index to patch */
fg_status fg_emit_load(fg_emit_state *e, fg_reg reg);                /* an operand: constant, input, temporary or the tree that makes it */
fg_status fg_emit_steps(fg_emit_state *e);
fg_status fg_emit_one_step(fg_emit_state *e, int32_t at); /* its results on the stack, the first on top */
PyObject *fg_emit_own(fg_emit_state *e, FG_STEALS PyObject *object);
fg_status fg_emit_temp(fg_emit_state *e, int32_t *slot);

/* emit.c */
/* The last parts of what a segment gives, in a tuple of n and them: numbers of the slots that have changed, then their values; a slot ~s is to be unbound.
 * written: the only ones, or NULL. */
fg_status fg_emit_slots(fg_emit_state *e, const fg_reg *values, const uint8_t *written, int32_t n);

/* emit_catch.c */
fg_status fg_emit_catch_temps(fg_emit_state *e); /* for the exception and for the cold steps, once all others are known */
fg_status fg_emit_catches_init(fg_emit_state *e);
bool fg_emit_has_catches(const fg_emit_state *e);                               /* a step that is emitted has one */
fg_status fg_emit_handler_of(fg_emit_state *e, int32_t step, int32_t *handler); /* the handler of what a step does, -1: none */
fg_status
fg_emit_handlers(fg_emit_state *e); /* blocks that complete tracebacks of inlined calls and that restore the frame for a handler */

/* emit_tree.c */
fg_status fg_emit_plan(fg_emit_state *e); /* uses, dead steps, trees */

/* emit_host.c */
fg_status fg_emit_host_locals(fg_emit_state *e);
fg_status fg_emit_host(fg_emit_state *e);

#endif
