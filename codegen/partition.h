/* Purpose:   from graph steps to framegate.Graph objects, and the schedule of an opaque backend.
 * Model:     For `eager` the steps stay where they are and one graph describes them. For any other backend runs of graph steps become calls of compiled
 *            graphs (GRAPH steps). A step that needs a result of the running graph, or is an effect, waits until after it; a graph is cut where
 *            a step that may raise would come after a waiting effect, or would need what waits.
 * Invariants: program order is kept as far as anybody can see: effects keep their order among themselves and before whatever may raise after them.
 * Threading: the GIL is held.
 * Ownership: graphs and callables go into lists of the caller.
 */
#ifndef FG_CODEGEN_PARTITION_H
#define FG_CODEGEN_PARTITION_H

#include "codegen/ir.h"

/* Compile one graph: gives a callable(*inputs) -> tuple. examples: list, one per input. */
typedef PyObject *(*fg_backend_call)(void *context, PyObject *graph, PyObject *examples);

/* The graph of all graph steps, for tools; *out NULL if there is none. */
fg_status fg_graph_describe(fg_ir *ir, FG_NEW PyObject **out);

/* Rewrite ir->steps for a backend. graphs and callables are lists that get one item per GRAPH step. */
fg_status fg_partition(fg_ir *ir, fg_backend_call backend, void *context, PyObject *graphs, PyObject *callables);

#endif
