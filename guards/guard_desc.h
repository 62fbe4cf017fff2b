/* Purpose:   the guard description of one entry: what the tracer emits, what prints to and parses from text, what programs are built from.
 * Model:     sources are nodes of a tree, interned so that each access path exists once; conditions sit on nodes; relations join several.
 *            Outputs are the nodes whose values are the target's inputs, in order.
 * Invariants: a parent's index is smaller than its child's. Adding an equal source, condition or output again gives the first one back.
 * Threading: one thread at a time while it is built; immutable once an entry is published.
 * Ownership: the description owns its keys and argument objects, except that what may be a user's object is held weakly where it can be
 *            (see fg_desc_guard, kind ID and TYPE). It never holds a user's container.
 */
#ifndef FG_GUARD_DESC_H
#define FG_GUARD_DESC_H

#include "guards/guard_tensor.h"
#include "guards/guard_view.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fg_accessor {
#define FG_ACCESSOR(NAME, TEXT, KEY) FG_ACC_##NAME,
#include "guards/accessors.def"
#undef FG_ACCESSOR
    FG_N_ACCESSORS
} fg_accessor;

typedef enum fg_guard_kind {
#define FG_GUARD(NAME, TEXT, ARG) FG_GUARD_##NAME,
#include "guards/guard_kinds.def"
#undef FG_GUARD
    FG_N_GUARDS
} fg_guard_kind;

typedef struct fg_desc fg_desc;
typedef int32_t fg_node; /* index of a source in its description */
#define FG_NODE_NONE ((fg_node)-1)

/* Where in the user's code a condition was needed; code may be NULL. */
typedef struct fg_origin {
    FG_BORROWED PyCodeObject *code; /* the description takes its own reference to the file name only */
    int line;
} fg_origin;

typedef struct fg_guard_arg {
    PyObject *object;            /* OBJECT */
    int64_t lo, hi;              /* INT uses lo */
    const fg_tensor_meta *meta;  /* META: copied */
    const fg_torch_state *state; /* STATE: copied */
} fg_guard_arg;

fg_status fg_desc_new(fg_desc **out);
void fg_desc_free(fg_desc *desc);

/* Names of the view's slots and of the free variables, for text and messages: tuples of str (may be NULL). */
void fg_desc_names_set(fg_desc *desc, FG_BORROWED PyObject *slot_names, FG_BORROWED PyObject *free_names);

/* Intern a source. parent is FG_NODE_NONE for roots; key (a new reference is taken) or index according to the accessor's row. */
fg_status fg_desc_source(fg_desc *desc, fg_accessor acc, fg_node parent, FG_BORROWED PyObject *key, int64_t index, fg_node *out);

/* Add a condition on one source (FG_NODE_NONE for TORCH_STATE, TORCH_GLOBALS and ABC_TOKEN). For ID, TYPE, SUBTYPE and NO_SUBTYPE an object with weak references is held weakly and its
 * death invalidates the entry; immortals, types without weak references and C objects without them are held strongly. */
fg_status fg_desc_guard(fg_desc *desc, fg_guard_kind kind, fg_node node, fg_guard_arg arg, fg_origin origin);

/* Add a relation (SAME, DISTINCT, NO_DICT_OF, STORAGE_DISTINCT, MEMORY_APART) over two or more sources. */
fg_status fg_desc_relation(fg_desc *desc, fg_guard_kind kind, const fg_node *nodes, size_t n, fg_origin origin);

/* Add a computed condition (EXPR) over one or more sources; text as in guard_expr.h. FG_ERR_INVALID: it is not understood. */
fg_status fg_desc_expression(fg_desc *desc, const fg_node *nodes, size_t n, const char *text, fg_origin origin);

/* 1 if desc fixes the value of this source of `now` (CONST), or its place (ITER_STATE), and to another one of the same type: from call to call it varies. */
int fg_desc_fixes_otherwise(const fg_desc *desc, const fg_desc *now, fg_guard_kind kind, fg_node node, FG_BORROWED PyObject *value);

/* For the collector: visit the users' callables, the only objects that a description keeps alive and that may lead back to its owner; drop them
 * (nothing matches any more). */
int fg_desc_traverse(const fg_desc *desc, visitproc visit, void *arg);
void fg_desc_clear(fg_desc *desc);

/* A source that is an object made for this entry, which the description keeps alive: one that refers to nothing of the user's. It is behind all sources, has no
 * conditions and no children, and a text leaves it out. FG_ERR_INVALID from whatever would change that. */
fg_status fg_desc_own(fg_desc *desc, PyObject *object, fg_node *out);
/* The node's value is an input of the target; gives its position. */
fg_status fg_desc_output(fg_desc *desc, fg_node node, uint32_t *position);
uint32_t fg_desc_n_outputs(const fg_desc *desc);
/* The kind's name in texts. */
const char *fg_guard_text(fg_guard_kind kind);
/* 1 if the output is reached from the call's arguments, cells and globals through nothing that all calls share: classes, modules, the entry's own
 * objects, builtins. */
int fg_desc_output_is_private(const fg_desc *desc, uint32_t position);
/* 1 if that holds of all sources that were found to be one object with another. */
int fg_desc_aliases_are_private(const fg_desc *desc);

/* Nothing will be added any more: move everything into one block of the size that it needs. Before a program is built. FG_ERR_NOMEM leaves the
 * description as it was. */
fg_status fg_desc_seal(fg_desc *desc);

/* Undo log for graph breaks: everything added after the mark is taken back. */
typedef struct fg_desc_mark {
    uint32_t n_nodes, n_guards, n_outputs;
} fg_desc_mark;
fg_desc_mark fg_desc_mark_get(const fg_desc *desc);
void fg_desc_rewind(fg_desc *desc, fg_desc_mark mark);

/* Python expression of a source as the user would write it, like `self.cfg['lr']`. */
FG_NEW PyObject *fg_desc_source_str(const fg_desc *desc, fg_node node);

#ifdef __cplusplus
}
#endif

#endif
