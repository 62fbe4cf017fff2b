/* Purpose: the Node type: one operation of a graph, read-only to Python. */
#include "codegen/graph_internal.h"
#include <structmember.h>

const char *const fg_graph_op_names[] = {
    [FG_GRAPH_PLACEHOLDER] = "placeholder", [FG_GRAPH_CALL_FUNCTION] = "call_function",
    [FG_GRAPH_CALL_METHOD] = "call_method", [FG_GRAPH_GET_ATTR] = "get_attr",
    [FG_GRAPH_OUTPUT] = "output",
};

static PyObject *output_target; /* what the target of an output node reads as */

fg_graph_node *fg_graph_node_new(void)
{
    fg_graph_node *node = PyObject_GC_New(fg_graph_node, &fg_graph_node_type);
    if (node == NULL)
        return NULL;
    memset((char *)node + sizeof(PyObject), 0, sizeof *node - sizeof(PyObject));
    return node;
}

static int node_traverse(PyObject *self, visitproc visit, void *arg)
{
    fg_graph_node *node = (fg_graph_node *)self;
    Py_VISIT(node->target);
    Py_VISIT(node->args);
    Py_VISIT(node->kwargs);
    Py_VISIT(node->meta);
    return 0;
}

static int node_clear(PyObject *self)
{
    fg_graph_node *node = (fg_graph_node *)self;
    Py_CLEAR(node->target);
    Py_CLEAR(node->args);
    Py_CLEAR(node->kwargs);
    Py_CLEAR(node->meta);
    return 0;
}

static void node_dealloc(PyObject *self)
{
    fg_graph_node *node = (fg_graph_node *)self;
    PyObject_GC_UnTrack(self);
    /* A node's arguments hold earlier nodes: a long chain dies link by link, so the depth is bounded by the trashcan. */
    Py_TRASHCAN_BEGIN(self, node_dealloc) if (node->weakrefs != NULL) PyObject_ClearWeakRefs(self);
    node_clear(self);
    Py_CLEAR(node->name);
    Py_CLEAR(node->code);
    PyObject_GC_Del(self);
    Py_TRASHCAN_END
}

static PyObject *node_name_get(fg_graph_node *node, void *closure)
{
    (void)closure;
    if (node->name == NULL && node->owner != NULL && fg_graph_names_make(node->owner) != FG_OK)
        return NULL;
    if (node->name == NULL)
        return PyUnicode_FromFormat("node_%d", (int)node->index);
    return Py_NewRef(node->name);
}

static PyObject *node_repr(PyObject *self)
{
    return node_name_get((fg_graph_node *)self, NULL);
}

static PyObject *node_op_get(fg_graph_node *node, void *closure)
{
    (void)closure;
    return PyUnicode_InternFromString(fg_graph_op_names[node->op]);
}

static PyObject *node_target_get(fg_graph_node *node, void *closure)
{
    (void)closure;
    PyObject *target = node->op == FG_GRAPH_OUTPUT ? output_target : node->target;
    return Py_NewRef(target == NULL ? Py_None : target);
}

static PyObject *node_args_get(fg_graph_node *node, void *closure)
{
    (void)closure;
    return node->args == NULL ? PyTuple_New(0) : Py_NewRef(node->args);
}

static PyObject *node_kwargs_get(fg_graph_node *node, void *closure)
{
    (void)closure;
    return node->kwargs == NULL ? PyDict_New() : PyDict_Copy(node->kwargs);
}

static PyObject *node_meta_get(fg_graph_node *node, void *closure)
{
    (void)closure;
    if (node->meta == NULL && (node->meta = PyDict_New()) == NULL)
        return NULL;
    return Py_NewRef(node->meta);
}

static PyObject *inputs_of(fg_graph_node *node)
{
    PyObject *list = PyList_New(0);
    if (list == NULL)
        return NULL;
    if ((node->args != NULL && fg_graph_inputs_collect(node->args, list) < 0) ||
        (node->kwargs != NULL && fg_graph_inputs_collect(node->kwargs, list) < 0))
        Py_CLEAR(list);
    return list;
}

static PyObject *node_inputs_get(fg_graph_node *node, void *closure)
{
    (void)closure;
    return inputs_of(node);
}

static PyObject *node_users_get(fg_graph_node *node, void *closure)
{
    (void)closure;
    PyObject *users = PyList_New(0);
    fg_graph *graph = node->owner;
    for (int32_t i = node->index + 1; users != NULL && graph != NULL && i < graph->n_nodes; i++) {
        PyObject *inputs = inputs_of(graph->nodes[i]);
        int found = inputs == NULL ? -1 : 0;
        for (Py_ssize_t k = 0; found == 0 && k < PyList_GET_SIZE(inputs); k++)
            found = PyList_GET_ITEM(inputs, k) == (PyObject *)node;
        Py_XDECREF(inputs);
        if (found < 0 || (found > 0 && PyList_Append(users, (PyObject *)graph->nodes[i]) < 0))
            Py_CLEAR(users);
    }
    return users;
}

static PyObject *node_graph_get(fg_graph_node *node, void *closure)
{
    (void)closure;
    return Py_NewRef(node->owner == NULL ? Py_None : (PyObject *)node->owner);
}

static PyObject *node_code_get(fg_graph_node *node, void *closure)
{
    (void)closure;
    PyCodeObject *code = fg_graph_node_code(node);
    return Py_NewRef(code == NULL ? Py_None : (PyObject *)code);
}

static PyObject *node_stack_trace_get(fg_graph_node *node, void *closure)
{
    (void)closure;
    PyCodeObject *code = fg_graph_node_code(node);
    if (code == NULL)
        Py_RETURN_NONE;
    Py_INCREF(code);
    PyObject *linecache = PyImport_ImportModule("linecache"), *text = NULL, *line = NULL, *stripped = NULL;
    if (linecache != NULL)
        line = PyObject_CallMethod(linecache, "getline", "Oi", code->co_filename, node->line);
    if (line != NULL)
        stripped = PyObject_CallMethod(line, "strip", NULL);
    if (stripped != NULL && PyUnicode_Check(stripped)) {
        int has_text = PyUnicode_GET_LENGTH(stripped) > 0;
        text = PyUnicode_FromFormat("  File \"%U\", line %d, in %U%s%U", code->co_filename, node->line, code->co_name,
                                    has_text ? "\n    " : "", stripped);
    }
    Py_DECREF(code);
    Py_XDECREF(linecache);
    Py_XDECREF(line);
    Py_XDECREF(stripped);
    return text;
}

static PyGetSetDef node_getset[] = {
    {"name", (getter)node_name_get, NULL, "Unique identifier of the node in its graph (str).", NULL},
    {"op", (getter)node_op_get, NULL,
     "placeholder, call_function, call_method, get_attr or output (the kinds of torch.fx, without call_module).", NULL},
    {"target", (getter)node_target_get, NULL, "The callable of a call_function; the name of a placeholder, method or attribute.", NULL},
    {"args", (getter)node_args_get, NULL, "Positional arguments; nodes may be nested in tuples, lists, dicts and slices.", NULL},
    {"kwargs", (getter)node_kwargs_get, NULL, "Keyword arguments (a copy).", NULL},
    {"meta", (getter)node_meta_get, NULL, "A dict for whoever works on the graph; empty at first.", NULL},
    {"all_input_nodes", (getter)node_inputs_get, NULL, "The distinct nodes among the arguments, in order of appearance.", NULL},
    {"users", (getter)node_users_get, NULL, "The nodes that use this one, in graph order (found by a scan of the graph).", NULL},
    {"graph", (getter)node_graph_get, NULL, "The graph, or None once it is gone.", NULL},
    {"code", (getter)node_code_get, NULL, "The user's code object that the operation came from, or None.", NULL},
    {"stack_trace", (getter)node_stack_trace_get, NULL, "File, line and text of the user's code that the operation came from, or None.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef node_members[] = {
    {"index", T_INT, offsetof(fg_graph_node, index), READONLY, "Position in the graph."},
    {"line", T_INT, offsetof(fg_graph_node, line), READONLY, "Line of the user's code, 0 if unknown."},
    {"byte_offset", T_INT, offsetof(fg_graph_node, byte_offset), READONLY, "Offset of the user's instruction in co_code, in bytes."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject fg_graph_node_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegate._core.Node",
    .tp_basicsize = sizeof(fg_graph_node),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "One operation of a framegate.Graph; read-only.",
    .tp_dealloc = node_dealloc,
    .tp_traverse = node_traverse,
    .tp_clear = node_clear,
    .tp_repr = node_repr,
    .tp_getset = node_getset,
    .tp_members = node_members,
    .tp_weaklistoffset = offsetof(fg_graph_node, weakrefs),
};

int fg_graph_node_type_ready(void)
{
    if (output_target == NULL && (output_target = PyUnicode_InternFromString("output")) == NULL)
        return -1;
    return PyType_Ready(&fg_graph_node_type);
}
