/* Purpose: finding the nodes inside an argument structure. One walk serves every question asked of one. */
#include "codegen/graph_internal.h"

typedef int (*node_visit)(fg_graph_node *node, void *context);

static int walk(PyObject *at, node_visit visit, void *context);

static int walk_items(PyObject *const *items, Py_ssize_t n, node_visit visit, void *context)
{
    for (Py_ssize_t i = 0; i < n; i++)
        if (walk(items[i], visit, context) < 0)
            return -1;
    return 0;
}

static int walk_container(PyObject *at, node_visit visit, void *context)
{
    if (PyTuple_Check(at))
        return walk_items(&PyTuple_GET_ITEM(at, 0), PyTuple_GET_SIZE(at), visit, context);
    if (PyList_Check(at))
        return walk_items(((PyListObject *)at)->ob_item, PyList_GET_SIZE(at), visit, context);
    if (PySlice_Check(at)) {
        PySliceObject *slice = (PySliceObject *)at;
        PyObject *parts[3] = {slice->start, slice->stop, slice->step};
        return walk_items(parts, 3, visit, context);
    }
    if (PyDict_Check(at)) {
        Py_ssize_t position = 0;
        PyObject *key, *value;
        while (PyDict_Next(at, &position, &key, &value)) {
            if (Py_TYPE(key) == &fg_graph_node_type) {
                PyErr_SetString(PyExc_TypeError, "a graph node cannot be a dict key in the arguments of a graph operation");
                return -1;
            }
            if (walk(value, visit, context) < 0)
                return -1;
        }
        return 0;
    }
    if (PyAnySet_Check(at)) {
        /* Nodes hash by identity, so iterating in the visit order of the table runs none of the user's code. */
        PyObject *list = PySequence_List(at);
        if (list == NULL)
            return -1;
        int result = walk_items(((PyListObject *)list)->ob_item, PyList_GET_SIZE(list), visit, context);
        Py_DECREF(list);
        return result;
    }
    return 0;
}

static int walk(PyObject *at, node_visit visit, void *context)
{
    if (Py_TYPE(at) == &fg_graph_node_type)
        return visit((fg_graph_node *)at, context);
    if (Py_EnterRecursiveCall(" while looking through the arguments of a graph operation"))
        return -1;
    int result = walk_container(at, visit, context);
    Py_LeaveRecursiveCall();
    return result;
}

typedef struct check_context {
    fg_graph *graph;
    int32_t before;
} check_context;

static int check_visit(fg_graph_node *node, void *context)
{
    const check_context *check = context;
    if (node->owner != check->graph) {
        PyErr_SetString(PyExc_TypeError, "an argument of a graph operation is a node of another graph");
        return -1;
    }
    if (node->index >= check->before || node->op == FG_GRAPH_OUTPUT) {
        PyErr_SetString(PyExc_TypeError, "an argument of a graph operation is a node that does not come before it");
        return -1;
    }
    return 0;
}

int fg_graph_args_check(fg_graph *graph, PyObject *structure, int32_t before)
{
    check_context context = {graph, before};
    return walk(structure, check_visit, &context);
}

static int collect_visit(fg_graph_node *node, void *context)
{
    PyObject *list = context;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++)
        if (PyList_GET_ITEM(list, i) == (PyObject *)node)
            return 0;
    return PyList_Append(list, (PyObject *)node);
}

int fg_graph_inputs_collect(PyObject *structure, PyObject *list)
{
    return walk(structure, collect_visit, list);
}
