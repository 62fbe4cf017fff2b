/* Purpose:   what the files of the graph share: the two object layouts and the replay plan.
 * Model:     a graph is an array of nodes; a plan is the same thing flattened for speed, made at the first replay.
 *            An operand is a base (caller's arguments, registers, constants) and an index, so loading one takes no branch.
 * Invariants: a plan exists only after the output node, and no node is added after the output node: a plan is never stale.
 *            A register is written by one step at a time and is NULL when nothing lives in it.
 * Threading: the GIL is held.
 * Ownership: a graph owns nodes and plan; a node knows its graph by a borrowed pointer that the graph's end clears.
 *            A plan owns its constants; callables and method names are borrowed from the (immutable) nodes.
 */
#ifndef FG_CODEGEN_GRAPH_INTERNAL_H
#define FG_CODEGEN_GRAPH_INTERNAL_H

#include "codegen/graph.h"
#include "runtime/cpython/dict.h"
#include <stdint.h>

typedef struct fg_graph fg_graph;
typedef struct fg_plan fg_plan;

typedef struct fg_graph_node {
    PyObject_HEAD fg_graph *owner; /* borrowed; NULL once the graph is gone */
    FG_OWNED PyObject *name;       /* NULL until someone asks: most graphs are never printed */
    FG_OWNED PyObject *target;
    FG_OWNED PyObject *args;
    FG_OWNED PyObject *kwargs; /* NULL: none */
    FG_OWNED PyObject *meta;   /* NULL until asked for */
    FG_OWNED PyObject *code;   /* weak reference to the user's code object, NULL: none; a graph must not keep a function alive */
    PyObject *weakrefs;
    int32_t index;
    int32_t slot; /* placeholder: its position among the placeholders */
    int line, byte_offset;
    int32_t site; /* see fg_graph_site_set, -1 */
    uint8_t op;   /* fg_graph_op */
} fg_graph_node;

/* The node's code object while it lives, borrowed, or NULL. */
static inline PyCodeObject *fg_graph_node_code(const fg_graph_node *node)
{
    PyObject *code = node->code == NULL ? Py_None : fg_weakref_target(node->code);
    return code == Py_None ? NULL : (PyCodeObject *)code;
}

struct fg_graph {
    PyObject_HEAD vectorcallfunc vectorcall;
    fg_graph_node **nodes; /* owned references */
    int32_t n_nodes, capacity, n_placeholders, n_ops;
    int32_t n_named;         /* nodes[0 .. n_named) have names */
    int32_t failed;          /* node that raised in the newest replay that failed, -1 */
    const void *failed_with; /* the address of the exception, to be compared */
    uint8_t has_output;
    fg_plan *plan;
    FG_OWNED PyObject *name;
    FG_OWNED PyObject *taken; /* dict of names in use -> next suffix to try; NULL until names are needed */
    FG_OWNED PyObject *meta;
    PyObject *weakrefs;
};

typedef enum fg_plan_op {
    FG_PLAN_CALL,   /* callable(*args, **kw) */
    FG_PLAN_METHOD, /* args[0].callable(...) */
    FG_PLAN_ATTR,   /* args[0].callable */
    FG_PLAN_UNARY,  /* a function of _operator, called directly */
    FG_PLAN_BINARY,
    FG_PLAN_COMPARE,
    FG_PLAN_TUPLE, /* containers in arguments are made anew by each replay, since the callee may keep or change them */
    FG_PLAN_LIST,
    FG_PLAN_SET,
    FG_PLAN_DICT, /* keys in `names` */
    FG_PLAN_SLICE,
    FG_PLAN_CONVERT, /* callable(args[0]): named tuples, frozensets, ordered dicts */
    FG_PLAN_RETURN
} fg_plan_op;

#define FG_OPERAND_ARG (0u << 30)
#define FG_OPERAND_REG (1u << 30)
#define FG_OPERAND_CONST (2u << 30)
#define FG_OPERAND_INDEX(o) ((o)&0x3fffffffu)
#define FG_OPERAND_BASE(o) ((o) >> 30)
#define FG_PLAN_NO_REG UINT32_MAX /* the result is not used by anyone */

typedef struct fg_plan_step {
    uint8_t op;                   /* fg_plan_op */
    uint8_t compare;              /* Py_LT … for COMPARE */
    uint32_t n_args;              /* operands, keyword values included */
    uint32_t first;               /* index of the first operand */
    uint32_t out;                 /* register, or FG_PLAN_NO_REG */
    uint32_t first_drop, n_drops; /* registers nobody reads after this step */
    int32_t node;
    union {
        PyObject *callable; /* borrowed from the node; a method's or attribute's name */
        unaryfunc unary;
        binaryfunc binary;
    } u;
    FG_OWNED PyObject *names; /* keyword names of a call or keys of a dict; NULL: none */
} fg_plan_step;

struct fg_plan {
    fg_plan_step *steps;
    uint32_t *operands, *drops;
    PyObject **consts;
    uint32_t n_steps, n_operands, n_drops, n_consts, n_regs, max_args;
};

/* What a direct call may stand for a call of a function of `_operator`: the same protocol function that one calls. */
typedef struct fg_fast_op {
    uint8_t step, compare;
    unaryfunc unary;
    binaryfunc binary;
} fg_fast_op;
fg_status fg_fast_op_init(void);
const fg_fast_op *fg_fast_op_find(PyObject *callable, Py_ssize_t n_args); /* NULL: call it */

fg_status fg_plan_new(fg_graph *graph, fg_plan **out);
void fg_plan_free(fg_plan *plan);
int fg_plan_traverse(const fg_plan *plan, visitproc visit, void *arg);
size_t fg_plan_nbytes(const fg_plan *plan);

/* vectorcall of a graph: run the plan. */
PyObject *fg_graph_replay(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames);

/* Check that every node inside a structure is an earlier node of this graph (index below `before`): 0, or -1 with TypeError set. */
int fg_graph_args_check(fg_graph *graph, PyObject *structure, int32_t before);
/* Append the distinct nodes inside a structure to a list, in order of appearance. */
int fg_graph_inputs_collect(PyObject *structure, PyObject *list);

/* graph_checked.c: the function checked_call of the module. */
fg_status fg_graph_checked_init(PyObject *module);

fg_status fg_graph_names_make(fg_graph *graph);
extern const char *const fg_graph_op_names[];

FG_NEW fg_graph_node *fg_graph_node_new(void);
int fg_graph_node_type_ready(void);

#endif
