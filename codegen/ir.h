/* Purpose:   the trace as the code generator takes it: a straight line of steps over registers, and one exit.
 * Model:     a register is a constant, an input of the target (a value that the guards walked to) or the result of a step. Steps stand in program
 *            order: tensor operations, residual scalar operations and side effects alike. The exit returns a value, or leaves at an
 *            instruction of the root frame with all locals and the stack (a graph break).
 * Invariants: a step's operands are defined before it. Registers are written once.
 * Threading: the GIL is held.
 * Ownership: all memory is in one arena; objects are kept alive by the trace's owner list until the code object exists.
 */
#ifndef FG_CODEGEN_IR_H
#define FG_CODEGEN_IR_H

#include "codegen/ambient.h"
#include "runtime/base/arena.h"
#include "runtime/cpython/canonical.h"

typedef int32_t fg_reg;
#define FG_REG_NONE ((fg_reg)-1)

typedef enum fg_reg_kind { FG_REG_CONST, FG_REG_INPUT, FG_REG_STEP } fg_reg_kind;

typedef struct fg_ir_reg {
    uint8_t kind;
    uint8_t is_tensor;  /* a tensor (or NumPy scalar): an argument of graphs */
    uint8_t is_mutated; /* some operation writes it in place */
    int32_t index;      /* position among the inputs, or index of the step */
    int32_t frame_slot; /* INPUT: the slot of the root frame it is the entry value of, -1 */
    int32_t uses;       /* filled by the code generator */
    int32_t last_use;
    int32_t slot;      /* local slot while emitted, -1: none */
    PyObject *object;  /* CONST: the constant; INPUT: the object of this very call (example); STEP: an example or NULL */
    PyObject *standin; /* example of the same metadata, if it was inferred */
} fg_ir_reg;

typedef enum fg_step_op {
#define FG_STEP(NAME, TEXT) FG_STEP_##NAME,
#include "codegen/steps.def"
#undef FG_STEP
    FG_N_STEPS
} fg_step_op;

enum {
    FG_SF_GRAPH = 1,    /* a tensor operation: belongs into the graph */
    FG_SF_EFFECT = 2,   /* visible outside even if its result is not used */
    FG_SF_RAISES = 4,   /* may raise */
    FG_SF_CHECKED = 8,  /* a graph step whose metadata was inferred without an error */
    FG_SF_COLD = 16,    /* of a catch: done only when an exception is on its way to the handler */
    FG_SF_COVERED = 32, /* a handler of the user's covers it: nothing asynchronous may come up here, but into a catch */
    FG_SF_AMBIENT = 64  /* enters or leaves an ambient state: no graph reaches over it */
};

typedef struct fg_step {
    uint8_t op;
    uint8_t flags;
    int32_t arg;
    PyObject *name;
    PyObject *kwnames;
    fg_reg *args;
    int32_t n_args;
    fg_reg result; /* first of n_results; FG_REG_NONE */
    int32_t n_results;
    int32_t site;
    int32_t caught;                   /* index of the fg_ir_catch that takes what it raises, -1 */
    int32_t context;                  /* index of the fg_ir_context of what it raises, -1 */
    int32_t restore;                  /* index of the fg_ir_restore that is done before what it raises goes on, -1 */
    const struct fg_ir_frame *frames; /* frames that are pushed around it, outermost first (foreign_step.h) */
    int32_t n_frames;
    const void *row; /* fg_op_row of a graph step */
    PyObject *
        graph; /* GRAPH: what is called, where its operations do not all stand at the site; NULL: they do. Borrowed from the entry's list */
    const fg_ambient *ambient;
} fg_step;

/* A frame of an inlined function, for a step that may look at it. */
typedef struct fg_ir_frame {
    PyCodeObject *code;
    int32_t offset; /* of the instruction that it stands at */
    fg_reg globals; /* FG_REG_NONE: those of the root's function */
} fg_ir_frame;

/* The exception that is being handled where a step stands, for the __context__ of what the step raises; at run time there is none. */
typedef struct fg_ir_context {
    fg_reg type; /* a constant or an input */
    PyObject *args;
    int32_t site;   /* where it was raised */
    int32_t levels; /* inlined calls between there and the frame that handles it */
} fg_ir_context;

/* Where an exception of a step goes that stands under a handler of the root frame: the frame as it is at the instruction, in which the user's own handler
 * then runs natively. */
typedef struct fg_ir_catch {
    int32_t pc;      /* the root frame's instruction */
    int32_t handler; /* index among the root's handlers */
    fg_reg *slots;   /* one per slot of localsplus, FG_REG_NONE: unbound, or a free variable */
    fg_reg *stack;   /* what the handler keeps */
    int32_t depth;
    fg_reg first;         /* registers from here on were made for it */
    int32_t cold, n_cold; /* steps that build what had no run-time form until then: first, number */
} fg_ir_catch;

/* Ambient states that are left when a step raises: what the `with` statements do that no handler at run time stands for. */
typedef struct fg_ir_restore {
    fg_reg *exits; /* bound __exit__ methods, in the order of the calls */
    int32_t n;
} fg_ir_restore;

/* Where a step came from: an instruction of a frame, inlined at another site or (parent -1) in the root frame. */
typedef struct fg_site_ref {
    int32_t parent;
    PyCodeObject *code;
    PyObject *globals;
    const fg_instr *instr;
    uint8_t hidden; /* a polyfill's frame: no traceback entry */
} fg_site_ref;

typedef struct fg_ir_exit {
    uint8_t is_break;
    uint8_t is_raise; /* break: what is on top of the stack is raised at the instruction, under the handler that takes it */
    fg_reg value;     /* return value */
    uint8_t *written; /* return of a segment: per slot, whether its variable ends with the frame as `slots` has it now; NULL: none does */
    int32_t pc;       /* break: the root frame's instruction that runs natively */
    fg_reg *slots;    /* one per slot of the root frame's localsplus, FG_REG_NONE: unbound */
    fg_reg *stack;
    int32_t depth;
} fg_ir_exit;

typedef struct fg_ir {
    fg_arena *arena;
    const fg_icode *root;
    int32_t start_pc;     /* -1: the whole function; else a segment that resumes here */
    uint8_t is_continued; /* the user's frame runs already: nothing asynchronous may come up before it is restored */
    fg_ir_reg *regs;
    int32_t n_regs, cap_regs;
    fg_step *steps;
    int32_t n_steps, cap_steps;
    fg_site_ref *sites;
    int32_t n_sites, cap_sites;
    fg_ir_catch *catches;
    int32_t n_catches, cap_catches;
    fg_ir_context *contexts;
    int32_t n_contexts, cap_contexts;
    fg_ir_restore *restores;
    int32_t n_restores, cap_restores;
    int32_t n_inputs;
    PyObject **input_names;    /* per input: name hint (str) or NULL; the array may be NULL */
    int32_t *input_slots;      /* segment: slot of the frame that an input is the entry value of, -1; by input position */
    uint8_t *unbound_at_start; /* segment: per slot */
    fg_ir_exit exit;
} fg_ir;

const char *fg_step_name(int op);

/* Grow helpers shared by the tracer and the partition; NULL or FG_REG_NONE: out of memory. */
fg_reg fg_ir_reg_add(fg_ir *ir, fg_reg_kind kind, PyObject *object);
fg_ir_catch *fg_ir_catch_add(fg_ir *ir);
fg_ir_context *fg_ir_context_add(fg_ir *ir);
fg_ir_restore *fg_ir_restore_add(fg_ir *ir);
fg_step *fg_ir_step_add(fg_ir *ir, fg_step_op op, const fg_reg *args, int32_t n_args, int32_t n_results);
/* A line per step, for logs and golden tests. */
FG_NEW PyObject *fg_ir_str(const fg_ir *ir);

#endif
