/* Purpose:   the state of one trace: symbolic values, frames, effects, guards, and how all of it is taken back.
 *
 * Model:     A trace executes canonical instructions over symbolic values. What has to happen at run time becomes a step (codegen/ir.h), emitted in
 *            program order; what can be known from guarded inputs is computed now. A value that came from outside is lazy: nothing is guarded
 *            until it is looked at (fg_look). Containers made during the trace are virtual: they are built when they escape (fg_materialise) and
 *            from then on every change of them is also a step.
 *
 *            Existing containers and objects are never touched. Their state is an overlay on what the source had at entry: each change is
 *            recorded in the overlay and emitted as the step that makes it at run time.
 *
 * Invariants: (1) A mutable object that was reached by two ways is one value, with a `same` fact.
 *            (2) Every write to tracer state goes through FG_SET or fg_log, so that fg_trace_rewind restores the start of an instruction.
 *            (3) The real objects of the user are only read, and only by means that cannot run their code.
 * Threading: one thread, the GIL held. A trace may call registered pure functions and stand-in inference, never user code.
 * Ownership: values live in the arena and are not counted; objects they mention are in the trace's owner list.
 */
#ifndef FG_TRACER_TRACE_H
#define FG_TRACER_TRACE_H

#include "codegen/ir.h"
#include "guards/guard_desc.h"
#include "runtime/base/arena.h"
#include "runtime/cpython/canonical.h"
#include "tracer/ops_registry.h"
#include <stdbool.h>

typedef enum fg_flow {
    FG_FLOW_OK = 0,
    FG_FLOW_BREAK,
    FG_FLOW_ERROR, /* a Python exception of ours is set */
    FG_FLOW_RAISE  /* the instruction raises the trace's `raised`, and a traced frame has a handler for it */
} fg_flow;

#define FG_DO(expr)              \
    do {                         \
        fg_flow flow_ = (expr);  \
        if (flow_ != FG_FLOW_OK) \
            return flow_;        \
    } while (0)

typedef enum fg_break_reason {
#define FG_BREAK(NAME, TYPE, HINT) FG_BREAK_##NAME,
#include "tracer/break_reasons.def"
#undef FG_BREAK
    FG_N_BREAKS
} fg_break_reason;

typedef enum fg_vkind {
    FG_V_LAZY,   /* from a source, not looked at */
    FG_V_CONST,  /* a known object: real */
    FG_V_SCALAR, /* exact int, float, bool, complex, str or bytes whose value is a run-time one; real: example, NULL if none */
    FG_V_TENSOR, /* tensor or NumPy scalar */
    FG_V_LIST,
    FG_V_TUPLE,
    FG_V_DICT,
    FG_V_SET, /* virtual only */
    FG_V_SLICE,
    FG_V_FUNC, /* Python function: existing (real) or made here */
    FG_V_METHOD,
    FG_V_CELL,
    FG_V_OBJECT, /* existing instance of a class, or one made here (node none) */
    FG_V_ITER,
    FG_V_SUPER,
    FG_V_VIEW,  /* dict.keys(), .values(), .items() of a (iter_kind 0, 1, 2); the __dict__ of an object a (FG_VIEW_ATTRS) */
    FG_V_OPAQUE /* a run-time object that may only be passed on */
} fg_vkind;

typedef enum fg_iter_kind {
    FG_ITER_SEQ, /* over a list or tuple value by index; a list is re-read each time */
    FG_ITER_RANGE,
    FG_ITER_ROWS,  /* over a NumPy array, each element read when its turn comes */
    FG_ITER_ITEMS, /* over a snapshot of values: keys, values, items of a dict; size is checked on each step */
    FG_ITER_ENUMERATE,
    FG_ITER_ZIP,
    FG_ITER_MAP,       /* function a over the iterators `items` */
    FG_ITER_FILTER,    /* of iterator b what function a (None: truth) accepts */
    FG_ITER_GENERATOR, /* a generator expression: its frame is run on demand */
    FG_ITER_REVERSED,
    FG_ITER_TOOL /* of itertools (trace_itertools.c) */
} fg_iter_kind;

enum { FG_VIEW_ATTRS = 3 };

typedef struct fg_value fg_value;

typedef struct fg_vitem {
    PyObject *key;
    Py_hash_t hash;
    fg_value *value;  /* NULL: known to be absent */
    fg_value *keyval; /* the key as a value (DICT with sourced keys), or NULL */
    uint8_t is_new;   /* was not in the source at entry */
} fg_vitem;

typedef struct fg_vmap {
    fg_vitem *items;
    int32_t n, cap;
    int32_t n_removed; /* so far: an iterator does not go on over what was taken out and put in again */
} fg_vmap;

struct fg_value {
    uint8_t kind;
    uint8_t is_mutated;  /* written by the trace */
    uint8_t is_complete; /* list, dict, object: the overlay is the whole state */
    uint8_t is_building; /* being materialised */
    uint8_t iter_kind;
    uint8_t is_scalar; /* TENSOR: a NumPy scalar type is known */
    uint8_t super_flag;
    uint8_t reads_generic; /* class: its instances are read the generic way, and that is guarded */
    int8_t acc;            /* LAZY source not interned yet: accessor, else -1 */
    fg_node parent;        /* … its parent node */
    int64_t index;         /* … its index; iterators: position */
    PyObject *key;         /* … its key */
    fg_node node;          /* source at entry, or FG_NODE_NONE */
    fg_reg reg;            /* where it is at run time, or FG_REG_NONE */
    PyTypeObject *type;    /* exact type, or NULL if not known */
    PyObject *real;        /* the object at entry, the constant, or an example */
    PyObject *standin;     /* TENSOR: inferred example of its metadata */
    uint8_t varies;        /* SCALAR from a source: trace_outcome.c */
    uint8_t is_partial;    /* OBJECT made at run time: what it has beside its map and its class is not known */
    uint8_t is_told_apart; /* OBJECT, FUNC: a key or member by its identity */
    uint8_t is_asked;      /* FUNC: attributes were read, which may lie in its __dict__; class of tuples: its facts are there */
    uint32_t stamp;        /* fg_trace.held_stamp when the root frame had it */
    uint32_t born;         /* fg_trace.now when it was made */
    int32_t step;          /* TENSOR, SCALAR: the step that makes it, or -1 */
    fg_value **items;      /* list, tuple, set, slice parts, zip parts, snapshot */
    int32_t n, cap;
    fg_vmap map;             /* dict entries, instance attributes */
    struct fg_tframe *frame; /* generator iterators */
    int64_t tool[3];         /* iterators of itertools: numbers of theirs */
    fg_ambient *ambient;     /* OPAQUE: a manager of trace_ambient.c, or its __exit__ */
    fg_value *a, *b, *c,
        *d; /* method: function, self; cell: contents; function: defaults, kwdefaults, closure, globals; iter: inner; super: type, self */
};

/* What the caller does with the value that an inlined frame returns. */
typedef enum fg_on_result {
    FG_RESULT_PUSH,
    FG_RESULT_DROP = 2,       /* a property's setter */
    FG_RESULT_KEEP = 4,       /* fg_call_now: stays in the frame's `yielded` */
    FG_RESULT_IMPLEMENTED = 3 /* an operator: NotImplemented would go on with the other operand */
} fg_on_result;

typedef struct fg_tframe {
    struct fg_tframe *parent;
    fg_icode *icode;
    fg_value **locals; /* localsplus */
    int32_t n_locals;
    fg_value **stack;
    int32_t sp;
    int32_t pc;
    fg_value *func;    /* FG_V_FUNC, or NULL for the root */
    fg_value *globals; /* FG_V_DICT */
    fg_value *builtins;
    fg_value *closure;        /* FG_V_TUPLE of cells, or NULL */
    int32_t site;             /* the call site it is inlined at, -1 for the root */
    int32_t site_pc, site_id; /* cache: site of instruction site_pc */
    fg_value *on_return;      /* not NULL: the value to push instead of what is returned (an instance under construction) */
    fg_value *made_by;        /* not NULL: it is a __new__ of this class, which has no __init__; that of a subclass may have one */
    uint8_t hidden;
    uint8_t library;   /* code of the standard library or of an installed package */
    uint8_t covered;   /* the call instruction is covered by a handler of an outer inlined frame */
    uint8_t on_result; /* fg_on_result */
    uint8_t is_generator;
    uint8_t is_finished;   /* generator: returned */
    fg_value *getter_of;   /* it is a property's getter: what it does not find is asked of a __getattr__ of this object's class */
    PyTypeObject *catches; /* fg_call_catching: exceptions that end it and are gone */
    int32_t n_saved;       /* unbound variables that LOAD_FAST_AND_CLEAR has put on the stack */
    fg_value *yielded;     /* generator: the last value */
} fg_tframe;

typedef struct fg_break_info {
    fg_break_reason reason;
    PyObject *context;  /* owned str, or NULL */
    PyCodeObject *code; /* where in the user's code (innermost frame), borrowed */
    int line;
    int32_t root_pc; /* the root frame's instruction, -1: that is where the break was */
    PyObject *stack; /* owned list of (filename, line, name), outermost first */
} fg_break_info;

/* A break can only stand where everything that the root frame has can be made at run time. If it cannot, the call is traced once more, up to the
 * instruction that made what has no run-time form. */
typedef struct fg_trace_stop {
    uint32_t at;       /* instructions of the root frame that may be run; UINT32_MAX: all */
    uint32_t tries;    /* traces of this call before this one */
    fg_break_info why; /* of the first; context and stack are owned, code is not set */
} fg_trace_stop;

typedef struct fg_log_entry {
    void *at;
    uint32_t size;
    uint64_t old[2];
    void *old_large;
} fg_log_entry;

typedef struct fg_trace {
    fg_arena arena;
    fg_ir ir;
    fg_desc *desc;
    fg_tframe *frame, *root;
    fg_value *nothing; /* what LOAD_FAST_AND_CLEAR saves of an unbound variable; NULL: not needed yet */
    PyObject *owned;   /* list */
    fg_log_entry *log;
    size_t n_log, cap_log;
    struct fg_id_slot {
        PyObject *object;
        fg_value *value;
    } * ids; /* object -> value, open addressing, power of two */
    size_t n_ids, cap_ids;
    fg_value **tracked; /* sourced values with identity, in order of sight */
    int32_t n_tracked, cap_tracked;
    fg_value **types; /* one class value per exact type of a guarded instance: what is looked up on it is one fact for all instances */
    int32_t n_types, cap_types;
    fg_value **found; /* values whose presence something relied on */
    int32_t n_found, cap_found;
    fg_value **survivors; /* values that lose a reference and have to keep another one (trace_drop.c) */
    int32_t n_survivors, cap_survivors;
    fg_value **held; /* segment: what its frame had at the start and still has */
    int32_t n_held;
    uint32_t held_stamp;
    const fg_view *view;
    PyObject *options;
    bool opaque; /* a backend other than eager: scalars are baked in, order rules are stricter */
    bool uses_torch;
    bool mutates_input;
    bool uses_rules; /* a rule of the user decided about a call; stays set when that call is taken back */
    int64_t budget;  /* instructions left */
    fg_break_info broke;
    const fg_desc **before; /* the guards of the entries that this code has already */
    uint32_t n_before, n_outcomes;
    fg_value *members; /* trace_members.c */
    fg_trace_stop *stop;
    uint32_t now;     /* instructions of the root frame so far, the one that runs included */
    uint32_t unmade;  /* when that was made which could not be given a run-time form; UINT32_MAX: nothing */
    bool goes_inside; /* it broke in a call whose callee is compiled by itself */
    bool again;       /* nothing came of this trace, but of a shorter one something may */
    int inline_depth;
    struct fg_catch_now {
        bool is_making;
        fg_value **made; /* given a run-time form by the catch that is being made */
        int32_t n_made, cap_made;
        int32_t n_cold; /* steps of catches so far */
    } catching;
    const fg_ambient *ambient; /* managers that are entered now, innermost first */
    fg_value **results;        /* for a compiler: what operations gave */
    int32_t n_results, cap_results;
    fg_value *raised; /* the last exception of the program */
    struct fg_handled {
        fg_value *exception;
        struct fg_handled *outer;
    } * handled;        /* what sys.exc_info() is about, innermost first */
    PyObject *foreseen; /* the exception that inferring the result `foreseen_of` gave, or NULL; owned by the trace */
    fg_value *foreseen_of;
    PyObject *rules; /* callable -> rule, of the package */
} fg_trace;

/* --- state (trace_state.c) */
fg_flow fg_nomem(void);
fg_flow fg_log(fg_trace *t, void *at, size_t size);
#define FG_SET(t, lvalue, v)                           \
    do {                                               \
        FG_DO(fg_log((t), &(lvalue), sizeof(lvalue))); \
        (lvalue) = (v);                                \
    } while (0)
/* Take a new reference into the trace's owner list and give the object back borrowed; NULL (exception set) on failure. */
PyObject *fg_own(fg_trace *t, FG_STEALS PyObject *object);
PyObject *fg_keep(fg_trace *t, FG_BORROWED PyObject *object);
fg_flow fg_break(fg_trace *t, fg_break_reason reason, const char *format, ...);
/* A pending Python exception after a call of ours: KeyboardInterrupt, SystemExit and MemoryError go on; anything else is cleared and becomes the break. */
fg_flow fg_break_on_error(fg_trace *t, fg_break_reason reason, const char *what);
/* First in each function that walks nested values by calling itself: a break where the C stack ends, however the user set the recursion limit. */
fg_flow fg_deeper(fg_trace *t);
const char *fg_break_type(fg_break_reason reason);
const char *fg_break_hint(fg_break_reason reason);

typedef struct fg_trace_mark {
    size_t n_log;
    fg_desc_mark desc;
    int32_t n_regs, n_steps, n_sites, n_catches, n_contexts, n_restores;
} fg_trace_mark;
fg_trace_mark fg_trace_mark_get(fg_trace *t);
void fg_trace_rewind(fg_trace *t, fg_trace_mark mark);

/* --- values (trace_value.c) */
fg_value *fg_value_new(fg_trace *t, fg_vkind kind);
fg_value *fg_value_const(fg_trace *t, FG_BORROWED PyObject *object); /* kept */
fg_value *fg_value_lazy(fg_trace *t, fg_accessor acc, fg_node parent, PyObject *key, int64_t index, PyObject *real);
fg_value *fg_value_step(fg_trace *t, fg_vkind kind, fg_reg reg, PyTypeObject *type, PyObject *example);
fg_value *fg_value_seq(fg_trace *t, fg_vkind kind, fg_value *const *items, int32_t n);
/* Append to an array of values in the arena, under the undo log. */
fg_flow fg_push(fg_trace *t, fg_value ***items, int32_t *n, int32_t *cap, fg_value *v);
/* Values still to be looked at: working memory of one walk, which no rewind touches. Begins as {0}. */
typedef struct fg_todo {
    fg_value **items;
    size_t n, cap;
} fg_todo;
fg_flow fg_todo_push(fg_trace *t, fg_todo *todo, fg_value *v);
static inline fg_flow fg_seq_append(fg_trace *t, fg_value *seq, fg_value *item)
{
    return fg_push(t, &seq->items, &seq->n, &seq->cap, item);
}
fg_vitem *fg_map_find(const fg_vmap *map, PyObject *key, Py_hash_t hash);
fg_flow fg_map_set(fg_trace *t, fg_vmap *map, PyObject *key, Py_hash_t hash, fg_value *value, uint8_t is_new);
fg_flow fg_map_remove(fg_trace *t, fg_vmap *map, fg_vitem *item);
bool fg_is_key_const(PyObject *key);  /* exact str, int, float, bool, None, bytes, type, or tuple of such: hash and == run no user code */
bool fg_is_scalar(const fg_value *v); /* a scalar, or a constant of a scalar type */
bool fg_is_fold_const(PyObject *object); /* immutable builtin value whose operations are pure */
static inline bool fg_is_virtual(const fg_value *v)
{
    return v->reg == FG_REG_NONE && v->node == FG_NODE_NONE && v->acc < 0;
}

/* --- sources and guards (trace_look.c) */
fg_flow fg_node_of(fg_trace *t, fg_value *v, fg_node *node); /* FG_NODE_NONE if it has no source */
/* Resolve a lazy value: type guard and kind. *v is replaced where the object is known already under another source. */
fg_flow fg_look(fg_trace *t, fg_value **v);
fg_flow fg_guard(fg_trace *t, fg_guard_kind kind, fg_node node, PyObject *object, int64_t lo, int64_t hi);
fg_flow fg_guard_meta(fg_trace *t, fg_guard_kind kind, fg_node node, const fg_tensor_meta *meta);
/* A condition that computes (guard_expr.h). */
fg_flow fg_guard_holds(fg_trace *t, const fg_node *nodes, size_t n, const char *text);
fg_flow fg_source(fg_trace *t, fg_accessor acc, fg_node parent, PyObject *key, int64_t index, fg_node *out);
/* From now on the value is one that the trace has written. A break where it is a dict and the attributes of an object that was looked at, or the reverse. */
fg_flow fg_mutate(fg_trace *t, fg_value *v);
/* Something was decided by the value being there: if nothing else comes to be known about it, that is a fact of its own. */
fg_flow fg_rely_on(fg_trace *t, fg_value *v);
fg_flow fg_guard_const(fg_trace *t, fg_value *v); /* v becomes a constant: value or identity fact */
fg_flow fg_array_constants(fg_trace *t);          /* numbers among the operands of array operations (trace_array_constants.c) */
fg_flow fg_finish_guards(fg_trace *t);            /* distinct facts, torch state */
fg_flow fg_same_object(fg_trace *t, fg_value *a, fg_value *b, int *same, bool *known);

/* --- decisions on numbers that vary (trace_outcome.c); fixed: nothing else has to be known for it */
fg_flow fg_outcome_value(fg_trace *t, fg_value *v, bool *fixed); /* v becomes a constant */
fg_flow fg_outcome_truth(fg_trace *t, fg_value *v, bool truth, bool *fixed);

/* --- what loses a reference (trace_drop.c): a break where the user's code could notice, else the fact that it cannot */
fg_flow fg_drop(fg_trace *t, fg_value *v);                        /* a reference that was there at entry; NULL: none */
fg_flow fg_drop_attr(fg_trace *t, fg_value *o, PyObject *name);   /* what an existing object has under the name */
fg_flow fg_drop_item(fg_trace *t, fg_value *dict, PyObject *key); /* what a dict has under the key */
fg_flow fg_drop_cell(fg_trace *t, fg_value *cell);                /* what an existing cell contains */
fg_flow fg_drop_element(fg_trace *t, fg_value *list, int64_t at); /* of a loaded list */
fg_flow fg_drop_contents(fg_trace *t, fg_value *container);       /* all of it */
fg_flow fg_drop_frame_init(fg_trace *t);
/* After each instruction of a segment's root frame: what the frame had at the start and has no more. `before`: where the instruction began. */
fg_flow fg_drop_frame(fg_trace *t, fg_trace_mark before);
fg_flow fg_drop_at_return(fg_trace *t); /* sets which variables the frame behind a segment gets to end them */
fg_flow fg_drop_guards(fg_trace *t);    /* the facts that are known at the end of the trace */

/* --- steps (trace_step.c) */
fg_flow fg_materialise(fg_trace *t, fg_value *v, fg_reg *reg);
fg_flow fg_emit_many(fg_trace *t, fg_step_op op, int flags, int arg, PyObject *name, PyObject *kwnames, const fg_reg *args, int32_t n,
                     int32_t n_results, fg_reg *first);
fg_flow fg_emit(fg_trace *t, fg_step_op op, int flags, int arg, PyObject *name, PyObject *kwnames, const fg_reg *args, int32_t n,
                fg_reg *result);
int32_t fg_site_here(fg_trace *t);

/* --- handlers (trace_catch.c) */
/* What is done now must be known not to raise: a handler covers it, and a run-time exception could not be handed to that handler. */
bool fg_is_covered(fg_trace *t);
bool fg_is_covered_inside(fg_trace *t); /* a handler of an inlined frame covers the current instruction */
/* A handler of the root frame covers the current instruction, and what a step raises is handed to it. */
bool fg_is_caught(fg_trace *t);
/* The catch that a step which is emitted now belongs to, or -1. */
fg_flow fg_catch_here(fg_trace *t, int32_t *id);
bool fg_has_catches(const fg_trace *t); /* handlers of the root frame take what steps raise */

/* --- scalars (trace_scalar.c) */
fg_flow fg_concrete(fg_trace *t, fg_value *v); /* scalar to constant, with value facts on what it came from */
fg_flow fg_truth(fg_trace *t, fg_value *v, bool *truth);
fg_flow fg_scalar_binary(fg_trace *t, int op, fg_value *a, fg_value *b, fg_value **out);
fg_flow fg_scalar_compare(fg_trace *t, int op, fg_value *a, fg_value *b, fg_value **out);
fg_flow fg_scalar_unary(fg_trace *t, int op, fg_value *a, fg_value **out);
fg_flow fg_scalar_call(fg_trace *t, PyObject *callable, fg_value **args, int32_t n, fg_value **out);
bool fg_is_scalar_type(PyTypeObject *type);
fg_flow fg_index_value(fg_trace *t, fg_value *v, int64_t *out); /* exact int or bool, as a guarded constant */

/* --- tensors (trace_tensor.c) */
enum { FG_LIB_NUMPY = 0, FG_LIB_TORCH = 1 };
enum { FG_TORCH_RESULT = 2 };             /* in a register's is_tensor: what torch made */
int fg_tensor_library(const fg_value *v); /* FG_LIB_…, of a tensor value */
fg_flow fg_tensor_binary(fg_trace *t, int op, fg_value *a, fg_value *b, fg_value **out);
fg_flow fg_tensor_compare(fg_trace *t, int op, fg_value *a, fg_value *b, fg_value **out);
fg_flow fg_tensor_unary(fg_trace *t, int op, fg_value *a, fg_value **out);
fg_flow fg_tensor_subscr(fg_trace *t, fg_value *o, fg_value *k, fg_value **out);
fg_flow fg_tensor_store_subscr(fg_trace *t, fg_value *o, fg_value *k, fg_value *v);
fg_flow fg_tensor_attr(fg_trace *t, fg_value *o, PyObject *name, fg_value **out);
fg_flow fg_tensor_limits_attr(fg_trace *t, fg_value *o, FG_BORROWED PyObject *name, fg_value **out); /* of what has no other attributes */
/* `.grad` of a torch tensor (trace_gradient.c). */
bool fg_is_gradient(const fg_value *o, PyObject *name);
fg_flow fg_gradient_load(fg_trace *t, fg_value *o, FG_BORROWED PyObject *name, fg_value **out);
fg_flow fg_gradient_store(fg_trace *t, fg_value *o, FG_BORROWED PyObject *name, fg_value *v);
/* What torch says of a tensor of a subclass (trace_outer.c); *handled false: it is no such question. found, descr: what the class has under the name. */
fg_flow fg_outer_attr(fg_trace *t, fg_value *o, const fg_value *found, FG_BORROWED PyObject *name, fg_value **out, bool *handled);
fg_flow fg_outer_method(fg_trace *t, fg_value *o, const PyObject *descr, FG_BORROWED PyObject *name, fg_value **args, int32_t n,
                        fg_value **out, bool *handled);
fg_flow fg_outer_len(fg_trace *t, fg_value *o, int64_t *len, bool *handled);
fg_flow fg_tensor_call(fg_trace *t, const fg_op_row *row, PyObject *callable, fg_value **args, int32_t n, PyObject *kwnames,
                       fg_value **out);
fg_flow fg_tensor_method(fg_trace *t, fg_value *self, PyObject *name, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out);
fg_flow fg_tensor_unpack(fg_trace *t, fg_value *o, int32_t n, fg_value **out);
fg_flow fg_tensor_length(fg_trace *t, fg_value *o, int32_t *n); /* how many rows; a break where they are too many to go through */
fg_flow fg_tensor_rows(fg_trace *t, fg_value *o, fg_value ***items, int32_t *n);
fg_flow fg_tensor_len(fg_trace *t, fg_value *o, int64_t *len);
bool fg_has_tensor(fg_trace *t, fg_value *v, int depth); /* it is or contains a tensor; never looks at lazy values beyond their type */

/* --- what tensor operations would give (trace_settle.c) */
fg_flow fg_tensor_standin(fg_trace *t, fg_value *v, PyObject **out);        /* borrowed; breaks where it cannot be inferred */
fg_flow fg_tensor_standin_object(fg_trace *t, fg_value *v, PyObject **out); /* of an operand of any kind */
/* After an operation was emitted: what it raises under a handler. */
fg_flow fg_tensor_settle(fg_trace *t, fg_op_raises raises, fg_value *result, const char *what);
fg_flow fg_tensor_settle_errstate(fg_trace *t);
/* Whether inferring is cheap and says nothing about scalars of this very call. */
bool fg_is_foreseeable(const fg_value *v);
bool fg_order_is_known(const fg_trace *t, const fg_value *v); /* the strides of a stand-in, which it has, are those of the value */

/* --- graphs for a backend (trace_suit.c) */
/* FX has no run-time scalars: a torch graph for a backend takes them as constants. */
fg_flow fg_bake_scalars(fg_trace *t, fg_value *v, int depth);
fg_flow fg_suit_compiler(fg_trace *t, int lib, const fg_op_row *row, fg_value **operands, int32_t n);
bool fg_is_idle_dropout(const fg_op_row *row, fg_value *const *args, int32_t n, PyObject *kwnames);
/* A member of a torch tensor, the operation of a step, and what a store, len and iteration use, are what the tensor's class has (trace_members.c). */
fg_flow fg_pin_member(fg_trace *t, const fg_value *v, FG_BORROWED PyObject *name);
fg_flow fg_pin_members(fg_trace *t, fg_step_op op, int arg, PyObject *name, fg_value **operands);
fg_flow fg_pin_function(fg_trace *t, const fg_op_row *row, fg_value **operands, int32_t n); /* of the module operator, or a builtin */
fg_flow fg_pin_store(fg_trace *t, const fg_value *v);
fg_flow fg_pin_length(fg_trace *t, const fg_value *v);
fg_flow fg_pin_iteration(fg_trace *t, const fg_value *v);
bool fg_stands_between_graphs(const fg_op_row *row, fg_value **operands, int32_t n); /* for a backend, it is a step of its own */
/* A list or tuple as a graph for a backend sees it: its elements of now, each an operand of its own. What came from outside would be an input that no
 * compiler looks into, and a list that was made in the trace may have changed since. */
fg_flow fg_elements_of_now(fg_trace *t, fg_value **v);

/* --- attributes (trace_attr.c, trace_getter.c) */
/* What has to be called to get an attribute: func(object), or func(object, name). */
typedef struct fg_getter {
    fg_value *func; /* NULL: nothing */
    PyObject *name;
    bool is_last; /* an AttributeError of it is no question to a __getattr__ any more */
} fg_getter;
/* The attribute; or what has to be called for it (getter NULL: that is a break); or *out NULL and no getter: it is absent. */
fg_flow fg_attr_ask(fg_trace *t, fg_value *o, PyObject *name, fg_value **out, fg_getter *getter);
/* The same for what neither class nor instance has. */
fg_flow fg_attr_missing(fg_trace *t, fg_value *o, PyObject *name, fg_value **out, fg_getter *getter);
fg_flow fg_attr_load(fg_trace *t, fg_value *o, PyObject *name, fg_value **out);
fg_flow fg_attr_store(fg_trace *t, fg_value *o, PyObject *name, fg_value *v);
fg_flow fg_attr_delete(fg_trace *t, fg_value *o, PyObject *name);
/* As getattr() with a default and hasattr() ask: *out NULL is a known absence, an AttributeError of the user's code included. */
fg_flow fg_attr_lookup(fg_trace *t, fg_value *o, PyObject *name, fg_value **out);
fg_flow fg_attr_load_generic(fg_trace *t, fg_value *o, PyObject *name, fg_value **out);
/* What the instance itself has, whatever its class says; not what the overlay says. */
fg_flow fg_attr_in_instance(fg_trace *t, fg_value *o, PyObject *name, fg_value **out);
/* The __dict__ of an instance, read (trace_vars.c); *out NULL: absent. */
bool fg_is_attrs(const fg_value *v);
fg_flow fg_attrs_new(fg_trace *t, fg_value *o, fg_value **out);
fg_flow fg_attrs_get(fg_trace *t, fg_value *attrs, fg_value *name, fg_value **out);
fg_flow fg_attrs_method(fg_trace *t, fg_value *attrs, PyObject *name, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out);
/* Fields that the interpreter keeps of functions, methods, classes and code objects (trace_fields.c); *out NULL: no such attribute. */
fg_flow fg_function_attr(fg_trace *t, fg_value *f, PyObject *name, fg_value **out);
fg_flow fg_method_attr(fg_trace *t, fg_value *m, PyObject *name, fg_value **out);
fg_flow fg_class_field(fg_trace *t, fg_value *o, PyObject *name, fg_value **out, bool *handled);
fg_flow fg_callable_attr(fg_trace *t, fg_value *o, PyObject *name, fg_value **out); /* of a constant */
fg_flow fg_code_attr(fg_trace *t, fg_value *o, PyObject *name, fg_value **out);
fg_flow fg_type_lookup(fg_trace *t, fg_value *type_value, PyTypeObject *type, PyObject *name, fg_value **out); /* *out NULL: absent */
fg_flow fg_is_subtype(fg_trace *t, fg_value *type_value, PyTypeObject *type, PyTypeObject *base, bool *yes);
/* super(cls, self), where g is what is called */
fg_flow fg_super_call(fg_trace *t, fg_value *g, fg_value *cls, fg_value *self, fg_value **out);
fg_flow fg_object_type(fg_trace *t, fg_value *o, fg_value **out);
/* Globals (trace_global.c). */
fg_flow fg_no_lazy_import(fg_trace *t, FG_BORROWED PyObject *name, const fg_value *v); /* a break: reading the name does an import */
fg_flow fg_global_load(fg_trace *t, fg_tframe *f, PyObject *name, fg_value **out);
fg_flow fg_global_store(fg_trace *t, fg_tframe *f, PyObject *name, fg_value *v);

/* --- containers (trace_item.c, trace_dict.c, trace_method.c) */
fg_flow fg_list_load(fg_trace *t, fg_value *list); /* make the overlay complete */
fg_flow fg_dict_load(fg_trace *t, fg_value *dict);
fg_flow fg_dict_get(fg_trace *t, fg_value *dict, PyObject *key, fg_value **out); /* *out NULL: absent */
fg_flow fg_dict_set(fg_trace *t, fg_value *dict, fg_value *key, fg_value *v);
fg_flow fg_dict_delete(fg_trace *t, fg_value *dict, PyObject *key);
fg_flow fg_key_const(fg_trace *t, fg_value *key, PyObject **out); /* a dict key, as a guarded constant */
fg_flow fg_len(fg_trace *t, fg_value *o, int64_t *len);
fg_flow fg_subscr(fg_trace *t, fg_value *o, fg_value *k, fg_value **out);
fg_flow fg_store_subscr(fg_trace *t, fg_value *o, fg_value *k, fg_value *v);
fg_flow fg_delete_subscr(fg_trace *t, fg_value *o, fg_value *k);
/* Keys and members by identity (trace_identity.c). */
fg_flow fg_set_member(fg_trace *t, fg_value *item);
fg_flow fg_set_find_member(fg_trace *t, fg_value *set, fg_value *item, int32_t *at);
fg_flow fg_dict_key(fg_trace *t, const fg_value *dict, fg_value *key, FG_BORROWED PyObject **out);
fg_flow fg_contains(fg_trace *t, fg_value *item, fg_value *o, bool *found);
fg_flow fg_container_method(fg_trace *t, fg_value *self, PyObject *name, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out);
fg_flow fg_unpack(fg_trace *t, fg_value *o, int32_t n, fg_value **out);
fg_flow fg_iterate(fg_trace *t, fg_value *o, fg_value ***items, int32_t *n); /* all elements of a finite known iterable */
fg_flow fg_equal(fg_trace *t, fg_value *a, fg_value *b, bool *equal);        /* == of two known values */
/* A new list value; keys: what to sort by, one per item, or NULL. */
fg_flow fg_sorted(fg_trace *t, fg_value **items, int32_t n, fg_value **keys, bool reverse, fg_value **out);
fg_flow fg_list_changed(fg_trace *t, fg_value *list, const char *method, fg_value **args,
                        int32_t n); /* mark mutated, emit the method call */

/* Sets that existed at entry (trace_set.c). */
bool fg_is_old_set(const fg_value *v);
fg_flow fg_set_contains(fg_trace *t, fg_value *set, fg_value *item, bool *found);
fg_flow fg_set_len(fg_trace *t, fg_value *set, int64_t *len);
fg_flow fg_set_method(fg_trace *t, fg_value *set, PyObject *name, fg_value **args, int32_t n, fg_value **out, bool *handled);

/* --- iterators (trace_iter.c) */
fg_flow fg_iter_new(fg_trace *t, fg_value *o, fg_value **out);
fg_flow fg_iter_next(fg_trace *t, fg_value *it, fg_value **out); /* *out NULL: exhausted */
/* For who takes one element, does something with it that can be seen or can fail, and takes the next: fg_iterate would have run the user's code for all of them
 * first. Gives an iterator, over the rows if it is a tensor. */
fg_flow fg_iter_over(fg_trace *t, fg_value *o, fg_value **it);
fg_flow fg_iter_materialise(fg_trace *t, fg_value *it, fg_reg *reg);
/* itertools, functools.reduce, and methods of C that belong to a class (trace_itertools.c) */
fg_flow fg_call_itertools(fg_trace *t, PyObject *callable, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out, bool *handled);
fg_flow fg_call_class_method(fg_trace *t, fg_value *cls, PyObject *descr, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out);
fg_flow fg_itertool_next(fg_trace *t, fg_value *it, fg_value **out);
fg_flow fg_itertool_materialise(fg_trace *t, fg_value *it, fg_reg *reg);

/* --- calls (trace_call.c, trace_builtin.c, trace_class.c) */
/* Either gives *out, or pushes a frame (then *out is NULL and the executor goes on in it). */
fg_flow fg_call(fg_trace *t, fg_value *f, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out);
bool fg_is_own_builtin(PyObject *callable, bool *yes); /* false: an exception is set */
/* The same, but what is called is run to its end: *out is always given. For what happens in the middle of an instruction. */
fg_flow fg_call_now(fg_trace *t, fg_value *f, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out);
/* The same, where an exception of this class is no error to the caller: *out NULL, it was raised and is gone. */
fg_flow fg_call_catching(fg_trace *t, fg_value *f, fg_value **args, int32_t n, PyObject *type, fg_value **out);
/* Call a special method that the class of an instance defines in Python; *found false: it has none. */
fg_flow fg_call_special(fg_trace *t, fg_value *o, PyObject *name, fg_value **args, int32_t n, fg_value **out, bool *found);
fg_flow fg_call_builtin(fg_trace *t, fg_value *f, PyObject *callable, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out,
                        bool *handled);
fg_flow fg_call_class(fg_trace *t, fg_value *f, PyTypeObject *type, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out);
fg_flow fg_made_is_ready(fg_trace *t, fg_value *cls, fg_value *made); /* what a __new__ gave needs no __init__, or a break */
fg_flow fg_instance_new(fg_trace *t, fg_value *cls, PyTypeObject *type, fg_value **out);
/* What a __new__ makes (trace_new.c). */
bool fg_is_tuple_class(const PyTypeObject *type); /* a tuple whose class is the user's is one as far as operations go */
bool fg_is_own_tuple(const fg_value *v);
FG_BORROWED PyObject *fg_tuple_new_function(void);
fg_flow fg_tuple_class_facts(fg_trace *t, fg_value *cls, PyTypeObject *type);
fg_flow fg_tuple_field(fg_trace *t, fg_value *o, fg_value *descr, fg_value **out, bool *handled);
fg_flow fg_call_new(fg_trace *t, PyObject *callable, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out, bool *handled);
fg_flow fg_call_python(fg_trace *t, fg_value *f, fg_value *self, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out);
/* functools.partial (trace_partial.c). */
fg_flow fg_call_partial(fg_trace *t, fg_value *p, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out, bool *handled);
fg_flow fg_call_module(fg_trace *t, fg_value *m, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out, bool *handled);
fg_flow fg_module_attr(fg_trace *t, fg_value *m, PyObject *name, fg_value **out); /* nn.Module.__getattr__; *out NULL: absent */
bool fg_is_nn_module(PyTypeObject *type);
/* o[k] for a container of modules and a slice (trace_module_slice.c). */
fg_flow fg_module_slice(fg_trace *t, fg_value *o, fg_value *k, PyObject *slice, fg_value **out, bool *handled);
fg_flow fg_torch_question(fg_trace *t, PyObject *callable, fg_value **args, int32_t n, fg_value **out, bool *handled);
fg_flow fg_object_materialise(fg_trace *t, fg_value *o, fg_reg *reg);
fg_flow fg_call_object_method(fg_trace *t, fg_value *self, PyObject *descr, PyObject *name, fg_value **args, int32_t n, fg_value **out);
fg_flow fg_binary(fg_trace *t, int op, fg_value *a, fg_value *b, fg_value **out);
fg_flow fg_compare(fg_trace *t, int op, fg_value *a, fg_value *b, fg_value **out);
/* Whether one of the two is a member of an enumeration of integers and the other one such or a number: then pair has numbers alone (trace_enum.c). */
fg_flow fg_enum_binary(fg_trace *t, const char *operator, fg_value * a, fg_value *b, fg_value **pair, bool *members);
fg_flow fg_enum_numbers(fg_trace *t, fg_value **pair, bool *members); /* the same for comparisons */
/* *out NULL: it is no comparison with a member of an enumeration of strings or integers. */
fg_flow fg_enum_compare(fg_trace *t, int op, fg_value *a, fg_value *b, PyObject **out);

/* --- isinstance and issubclass (trace_instance.c) */
fg_flow fg_runtime_type(fg_trace *t, fg_value *v, PyTypeObject **type); /* the exact type of a value, or a break */
fg_flow fg_isinstance(fg_trace *t, fg_value *v, fg_value *cls, bool *yes);
/* Whether v, whose run-time type this is, is an instance by its MRO alone. */
fg_flow fg_is_subclass_of(fg_trace *t, fg_value *v, PyTypeObject *type, PyTypeObject *wanted, bool *yes);
fg_flow fg_issubclass(fg_trace *t, fg_value *sub, fg_value *cls, bool *yes);
bool fg_is_union(PyObject *object); /* int | str */
/* The two functions of the module _abc that an abstract base class asks. */
bool fg_is_abc_check(PyObject *callable);
fg_flow fg_abc_check(fg_trace *t, PyObject *callable, fg_value *cls, fg_value *v, bool *yes);

/* --- strings (trace_string.c) */
fg_flow fg_format_value(fg_trace *t, fg_value *v, fg_value *spec, fg_value **out); /* spec may be NULL */
fg_flow fg_convert_value(fg_trace *t, fg_value *v, int kind, fg_value **out);      /* 1 str, 2 repr, 3 ascii */
fg_flow fg_build_string(fg_trace *t, fg_value **parts, int32_t n, fg_value **out);

/* --- exceptions of the program (trace_raise.c) */
/* They are values without a run-time form: a class, the arguments where they are known, and an example. */
bool fg_is_exception(const fg_value *v);
/* FG_FLOW_RAISE, or a break where no traced frame has a handler. */
fg_flow fg_raise(fg_trace *t, fg_value *exception);
/* The same for the Python exception that is set: what plain Python would raise here for all values that the guards let in. */
fg_flow fg_raise_error(fg_trace *t, const char *what);
fg_flow fg_raise_new(fg_trace *t, PyObject *type, const char *format, ...);
fg_flow fg_raise_key_error(fg_trace *t, PyObject *key);
bool fg_may_raise(fg_trace *t); /* a traced frame has a handler for what this instruction raises */
fg_flow fg_unwind(fg_trace *t);
fg_flow fg_raise_statement(fg_trace *t, int32_t n, fg_value *const *operands);
fg_flow fg_handling_begin(fg_trace *t, fg_value *exception);
fg_flow fg_handling_end(fg_trace *t);
fg_flow fg_exception_matches(fg_trace *t, fg_value *exception, fg_value *type, bool *yes);
fg_flow fg_exception_attr(fg_trace *t, fg_value *exception, PyObject *name, fg_value **out);
fg_flow fg_exception_text(fg_trace *t, fg_value *exception, int kind, fg_value **out); /* kind as in fg_convert_value */
/* The context that an exception of a step gets which is emitted now, -1: none. */
fg_flow fg_context_here(fg_trace *t, int32_t *id);

/* --- import (trace_import.c) */
fg_flow fg_import(fg_trace *t, fg_tframe *f, PyObject *name, fg_value *level, fg_value *names, fg_value **out);

/* --- context managers (trace_with.c) */
/* *exit: the bound __exit__; *out: what __enter__ gives, or NULL and a frame was pushed */
fg_flow fg_with_enter(fg_trace *t, fg_value *manager, fg_value **exit, fg_value **out);
fg_flow fg_with_leave(fg_trace *t, fg_value *exit, fg_value *exception, fg_value **out);

/* --- context managers that set a state of the thread (trace_ambient.c) */
fg_flow fg_ambient_make(fg_trace *t, fg_value *cls, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out, bool *handled);
fg_flow fg_ambient_begin(fg_trace *t, fg_value *manager, fg_value **exit, fg_value **out);
fg_flow fg_ambient_end(fg_trace *t, fg_value *exit, fg_value **out);
bool fg_is_ambient_exit(const fg_value *v);
/* Examples of what the graphs of one state take from those of another: a compiler is given them. */
fg_flow fg_ambient_examples(fg_trace *t);
/* The __exit__ that a handler of a frame calls and that then lets the exception go on, or NULL. */
fg_value *fg_ambient_of_handler(const fg_tframe *f, int32_t handler);
/* The fg_ir_restore of what a step raises that is emitted now, -1: none. */
fg_flow fg_restore_here(fg_trace *t, int32_t *id);

/* --- executor (trace_exec.c, trace_run.c) */
/* One instruction. *value is set and the root frame's return is reported by *returned. */
fg_flow fg_trace_step(fg_trace *t, bool *returned, fg_value **value);
fg_flow fg_trace_run(fg_trace *t, bool *returned, fg_value **result);
/* Run a generator's frame up to its next yield; *out NULL: it returned. */
fg_flow fg_trace_resume(fg_trace *t, fg_tframe *generator, fg_value **out);
/* Set up by trace_compile.c */
fg_flow fg_trace_root(fg_trace *t, fg_icode *icode, const fg_view *view, int32_t start_pc, int32_t depth);

/* --- trace_repeat.c: may a call that the entry serves be run again on copies? Before the backend has its graphs. */
bool fg_trace_is_repeatable(const fg_trace *t);

#endif
