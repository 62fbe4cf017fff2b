/* Purpose:   framegate.Graph: the captured operations of one segment, as Python sees them and as backends get them.
 * Model:     a list of nodes: placeholder, call_function, call_method, get_attr, output. Arguments are Python objects in which nodes appear as Node
 *            objects, nested in tuples, lists, dicts and slices.
 * Invariants: a node's arguments are constants or earlier nodes; exactly one output node, last; names are unique identifiers.
 * Threading: the GIL is held.
 * Ownership: the graph owns its nodes and constants; it never holds an example input.
 */
#ifndef FG_CODEGEN_GRAPH_H
#define FG_CODEGEN_GRAPH_H

#include "runtime/base/status.h"
#include <Python.h>

typedef enum fg_graph_op {
    FG_GRAPH_PLACEHOLDER,
    FG_GRAPH_CALL_FUNCTION,
    FG_GRAPH_CALL_METHOD,
    FG_GRAPH_GET_ATTR,
    FG_GRAPH_OUTPUT
} fg_graph_op;

extern PyTypeObject fg_graph_type, fg_graph_node_type;

/* Prepare the two types and add them to the module as Graph and Node. */
fg_status fg_graph_module_init(PyObject *module);

FG_NEW PyObject *fg_graph_new(void);
/* Append a node and give it borrowed. target: str for placeholder (its name hint), call_method and get_attr (attribute of args[0]); the callable for
 * call_function; ignored for output (args is a 1-tuple with the structure to return). args: tuple; kwargs: dict or NULL. code may be NULL; line and
 * byte_offset say where in the user's code the node came from. NULL with an exception set: out of memory, or the output node is already there. */
FG_BORROWED PyObject *fg_graph_add(PyObject *graph, fg_graph_op op, PyObject *target, PyObject *args, PyObject *kwargs, PyCodeObject *code,
                                   int line, int byte_offset);
Py_ssize_t fg_graph_n_ops(PyObject *graph); /* nodes that are neither placeholder nor output */
Py_ssize_t fg_graph_n_nodes(PyObject *graph);
size_t
fg_graph_nbytes(PyObject *graph); /* of the engine's own memory: its arrays and replay plan, without the nodes, which are Python objects */

/* Take back the nodes from index n_nodes on (the undo log of a trace). Only before the first replay. Pointers to them become invalid. */
void fg_graph_rewind(PyObject *graph, Py_ssize_t n_nodes);

/* Name for messages and print-outs ("graph" until set). */
fg_status fg_graph_name_set(PyObject *graph, PyObject *name);

/* A number for the place in the user's code that the newest node came from; -1 until it is set. */
void fg_graph_site_set(FG_BORROWED PyObject *graph, int32_t site);
int32_t fg_graph_site(FG_BORROWED PyObject *graph, Py_ssize_t node);

/* The node that raised this exception in a replay of the graph, or -1. */
Py_ssize_t fg_graph_failed(FG_BORROWED PyObject *graph, FG_BORROWED PyObject *exception);

#endif
