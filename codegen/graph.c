/* Purpose: the Graph type: building a graph from C, and its Python face. Printing and conversion live in the Python package
 * (framegate._graph_text, framegate._fx): they are not on any hot path.
 */
#include "codegen/graph.h"
#include "codegen/graph_internal.h"
#include "codegen/module_call.h"
#include "runtime/base/alloc.h"
#include <structmember.h>

/* ---- building ---- */

PyObject *fg_graph_new(void)
{
    fg_graph *graph = PyObject_GC_New(fg_graph, &fg_graph_type);
    if (graph == NULL)
        return NULL;
    memset((char *)graph + sizeof(PyObject), 0, sizeof *graph - sizeof(PyObject));
    graph->vectorcall = fg_graph_replay;
    graph->failed = -1;
    graph->name = PyUnicode_InternFromString("graph");
    if (graph->name == NULL) {
        Py_DECREF(graph);
        return NULL;
    }
    PyObject_GC_Track(graph);
    return (PyObject *)graph;
}

static int arguments_valid(fg_graph_op op, PyObject *target, PyObject *args, PyObject *kwargs)
{
    const char *problem = NULL;
    if (!PyTuple_CheckExact(args) || (kwargs != NULL && !PyDict_CheckExact(kwargs)))
        problem = "the arguments of a graph node are a tuple and a dict";
    else if (op == FG_GRAPH_OUTPUT ? PyTuple_GET_SIZE(args) != 1 : target == NULL)
        problem = op == FG_GRAPH_OUTPUT ? "an output node has one argument, the structure to return" : "a graph node needs a target";
    else if (op != FG_GRAPH_OUTPUT && op != FG_GRAPH_CALL_FUNCTION && !PyUnicode_Check(target))
        problem = "the target of a placeholder, call_method or get_attr is a str";
    else if (op == FG_GRAPH_CALL_FUNCTION && !PyCallable_Check(target))
        problem = "the target of a call_function is a callable";
    else if ((op == FG_GRAPH_CALL_METHOD && PyTuple_GET_SIZE(args) < 1) || (op == FG_GRAPH_GET_ATTR && PyTuple_GET_SIZE(args) != 1))
        problem = "a call_method or get_attr node needs the object as its first argument";
    if (problem != NULL)
        PyErr_SetString(PyExc_TypeError, problem);
    return problem == NULL;
}

PyObject *fg_graph_add(PyObject *self, fg_graph_op op, PyObject *target, PyObject *args, PyObject *kwargs, PyCodeObject *code, int line,
                       int byte_offset)
{
    fg_graph *graph = (fg_graph *)self;
    if (graph->has_output) {
        PyErr_SetString(PyExc_RuntimeError, "this graph has its output node: nothing can be added after it");
        return NULL;
    }
    if (!arguments_valid(op, target, args, kwargs))
        return NULL;
    if (graph->n_nodes == graph->capacity) {
        int32_t wanted = graph->capacity == 0 ? 16 : graph->capacity * 2;
        fg_graph_node **nodes = fg_realloc(graph->nodes, (size_t)wanted * sizeof *nodes);
        if (nodes == NULL)
            return PyErr_NoMemory();
        graph->nodes = nodes;
        graph->capacity = wanted;
    }
    fg_graph_node *node = fg_graph_node_new();
    if (node == NULL)
        return NULL;
    node->owner = graph;
    node->op = (uint8_t)op;
    node->index = graph->n_nodes;
    node->target = op == FG_GRAPH_OUTPUT ? NULL : Py_NewRef(target);
    if (op == FG_GRAPH_CALL_METHOD || op == FG_GRAPH_GET_ATTR)
        PyUnicode_InternInPlace(&node->target);
    node->args = Py_NewRef(args);
    node->kwargs = kwargs == NULL || PyDict_GET_SIZE(kwargs) == 0 ? NULL : Py_NewRef(kwargs);
    if (code != NULL && (node->code = PyWeakref_NewRef((PyObject *)code, NULL)) == NULL) {
        Py_DECREF(node);
        return NULL;
    }
    node->line = line;
    node->site = -1;
    node->byte_offset = byte_offset;
    if (op == FG_GRAPH_PLACEHOLDER)
        node->slot = graph->n_placeholders++;
    else if (op == FG_GRAPH_OUTPUT)
        graph->has_output = 1;
    else
        graph->n_ops++;
    graph->nodes[graph->n_nodes++] = node;
    PyObject_GC_Track(node);
    return (PyObject *)node;
}

Py_ssize_t fg_graph_n_ops(PyObject *graph)
{
    return ((fg_graph *)graph)->n_ops;
}

Py_ssize_t fg_graph_n_nodes(PyObject *graph)
{
    return ((fg_graph *)graph)->n_nodes;
}

void fg_graph_rewind(PyObject *self, Py_ssize_t n_nodes)
{
    fg_graph *graph = (fg_graph *)self;
    if (graph->plan != NULL) {
        FG_BUG("a graph is rewound after its first replay");
        return;
    }
    if (graph->n_named > n_nodes) { /* names are made again in node order, so those that stay come out the same */
        graph->n_named = 0;
        Py_CLEAR(graph->taken);
    }
    while (graph->n_nodes > n_nodes) {
        fg_graph_node *node = graph->nodes[--graph->n_nodes];
        if (node->op == FG_GRAPH_PLACEHOLDER)
            graph->n_placeholders--;
        else if (node->op == FG_GRAPH_OUTPUT)
            graph->has_output = 0;
        else
            graph->n_ops--;
        node->owner = NULL;
        Py_DECREF(node);
    }
}

fg_status fg_graph_name_set(PyObject *self, PyObject *name)
{
    if (!PyUnicode_Check(name)) {
        PyErr_SetString(PyExc_TypeError, "the name of a graph is a str");
        return FG_ERR_PYTHON;
    }
    Py_SETREF(((fg_graph *)self)->name, Py_NewRef(name));
    return FG_OK;
}

void fg_graph_site_set(PyObject *self, int32_t site)
{
    fg_graph *graph = (fg_graph *)self;
    graph->nodes[graph->n_nodes - 1]->site = site;
}

int32_t fg_graph_site(PyObject *self, Py_ssize_t node)
{
    return ((fg_graph *)self)->nodes[node]->site;
}

Py_ssize_t fg_graph_failed(PyObject *self, PyObject *exception)
{
    const fg_graph *graph = (fg_graph *)self;
    return graph->failed_with == exception ? graph->failed : -1;
}

/* ---- object protocol ---- */

static int graph_traverse(PyObject *self, visitproc visit, void *arg)
{
    fg_graph *graph = (fg_graph *)self;
    for (int32_t i = 0; i < graph->n_nodes; i++)
        Py_VISIT(graph->nodes[i]);
    Py_VISIT(graph->taken);
    Py_VISIT(graph->meta);
    return fg_plan_traverse(graph->plan, visit, arg);
}

static int graph_clear(PyObject *self)
{
    fg_graph *graph = (fg_graph *)self;
    fg_plan *plan = graph->plan;
    fg_graph_node **nodes = graph->nodes;
    int32_t n = graph->n_nodes;
    graph->plan = NULL;
    graph->nodes = NULL;
    graph->n_nodes = graph->capacity = graph->n_named = graph->n_placeholders = graph->n_ops = 0;
    graph->has_output = 0;
    graph->failed = -1;
    fg_plan_free(plan);
    while (n > 0) { /* last first: a node's arguments are then never the last reference to a chain of nodes */
        nodes[--n]->owner = NULL;
        Py_DECREF(nodes[n]);
    }
    fg_free(nodes);
    Py_CLEAR(graph->taken);
    Py_CLEAR(graph->meta);
    return 0;
}

static void graph_dealloc(PyObject *self)
{
    fg_graph *graph = (fg_graph *)self;
    PyObject_GC_UnTrack(self);
    if (graph->weakrefs != NULL)
        PyObject_ClearWeakRefs(self);
    /* Nodes that outlive the graph keep their names if they have any. */
    graph_clear(self);
    Py_CLEAR(graph->name);
    PyObject_GC_Del(self);
}

static PyObject *graph_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)type;
    PyObject *name = NULL;
    static char *keywords[] = {"name", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|U:Graph", keywords, &name))
        return NULL;
    PyObject *graph = fg_graph_new();
    if (graph != NULL && name != NULL && fg_graph_name_set(graph, name) != FG_OK)
        Py_CLEAR(graph);
    return graph;
}

static PyObject *graph_repr(PyObject *self)
{
    fg_graph *graph = (fg_graph *)self;
    return PyUnicode_FromFormat("<framegate.Graph %R: %d inputs, %d operations>", graph->name, (int)graph->n_placeholders,
                                (int)graph->n_ops);
}

/* Call a function of the package's Python side with the graph. */
static PyObject *call_helper(const char *module_name, const char *function, PyObject *argument)
{
    PyObject *module = PyImport_ImportModule(module_name);
    if (module == NULL)
        return NULL;
    PyObject *result = PyObject_CallMethod(module, function, "(O)", argument);
    Py_DECREF(module);
    return result;
}

/* ---- methods ---- */

static PyObject *add_from_python(PyObject *self, fg_graph_op op, PyObject *target, PyObject *args, PyObject *kwargs)
{
    fg_graph *graph = (fg_graph *)self;
    PyObject *node = NULL, *args_tuple = args == NULL ? PyTuple_New(0) : PySequence_Tuple(args);
    PyObject *kwargs_dict = kwargs == NULL || kwargs == Py_None ? NULL : PyDict_New();
    if (args_tuple == NULL || PyErr_Occurred())
        goto done;
    if (kwargs_dict != NULL && PyDict_Update(kwargs_dict, kwargs) < 0)
        goto done;
    if (kwargs_dict != NULL && !PyArg_ValidateKeywordArguments(kwargs_dict))
        goto done;
    if (fg_graph_args_check(graph, args_tuple, graph->n_nodes) < 0 ||
        (kwargs_dict != NULL && fg_graph_args_check(graph, kwargs_dict, graph->n_nodes) < 0))
        goto done;
    node = Py_XNewRef(fg_graph_add(self, op, target, args_tuple, kwargs_dict, NULL, 0, 0));
done:
    Py_XDECREF(args_tuple);
    Py_XDECREF(kwargs_dict);
    return node;
}

static PyObject *graph_placeholder(PyObject *self, PyObject *name)
{
    return add_from_python(self, FG_GRAPH_PLACEHOLDER, name, NULL, NULL);
}

static PyObject *graph_call_function(PyObject *self, PyObject *args)
{
    PyObject *target, *node_args = NULL, *kwargs = NULL;
    if (!PyArg_ParseTuple(args, "O|OO:call_function", &target, &node_args, &kwargs))
        return NULL;
    return add_from_python(self, FG_GRAPH_CALL_FUNCTION, target, node_args, kwargs);
}

static PyObject *graph_call_method(PyObject *self, PyObject *args)
{
    PyObject *name, *node_args = NULL, *kwargs = NULL;
    if (!PyArg_ParseTuple(args, "U|OO:call_method", &name, &node_args, &kwargs))
        return NULL;
    return add_from_python(self, FG_GRAPH_CALL_METHOD, name, node_args, kwargs);
}

static PyObject *graph_get_attr(PyObject *self, PyObject *args)
{
    PyObject *object, *name;
    if (!PyArg_ParseTuple(args, "OU:get_attr", &object, &name))
        return NULL;
    PyObject *node_args = PyTuple_Pack(1, object);
    PyObject *node = node_args == NULL ? NULL : add_from_python(self, FG_GRAPH_GET_ATTR, name, node_args, NULL);
    Py_XDECREF(node_args);
    return node;
}

static PyObject *graph_output(PyObject *self, PyObject *structure)
{
    PyObject *node_args = PyTuple_Pack(1, structure);
    PyObject *node = node_args == NULL ? NULL : add_from_python(self, FG_GRAPH_OUTPUT, NULL, node_args, NULL);
    Py_XDECREF(node_args);
    return node;
}

static PyObject *graph_print_readable(PyObject *self, PyObject *args, PyObject *kwargs)
{
    int print_output = 1;
    static char *keywords[] = {"print_output", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p:print_readable", keywords, &print_output))
        return NULL;
    PyObject *text = call_helper("framegate._graph_text", "readable", self);
    if (text != NULL && print_output) {
        PyObject *printed = NULL, *builtins = PyImport_ImportModule("builtins");
        if (builtins != NULL)
            printed = PyObject_CallMethod(builtins, "print", "O", text);
        Py_XDECREF(builtins);
        if (printed == NULL)
            Py_CLEAR(text);
        Py_XDECREF(printed);
    }
    return text;
}

static PyObject *graph_to_fx(PyObject *self, PyObject *unused)
{
    (void)unused;
    return call_helper("framegate._fx", "to_fx", self);
}

static PyObject *graph_to_dot(PyObject *self, PyObject *unused)
{
    (void)unused;
    return call_helper("framegate._graph_text", "to_dot", self);
}

static PyObject *graph_to_json(PyObject *self, PyObject *unused)
{
    (void)unused;
    return call_helper("framegate._graph_text", "to_json", self);
}

static PyObject *graph_from_json(PyObject *type, PyObject *text)
{
    (void)type;
    return call_helper("framegate._graph_text", "from_json", text);
}

size_t fg_graph_nbytes(PyObject *self)
{
    const fg_graph *graph = (const fg_graph *)self;
    return fg_block_bytes(graph->nodes, (size_t)graph->capacity * sizeof *graph->nodes) + fg_plan_nbytes(graph->plan);
}

static PyObject *graph_sizeof(PyObject *self, PyObject *unused)
{
    (void)unused;
    fg_graph *graph = (fg_graph *)self;
    return PyLong_FromSize_t(sizeof *graph + (size_t)graph->n_nodes * sizeof(fg_graph_node) + fg_graph_nbytes(self));
}

static PyObject *graph_str(PyObject *self)
{
    return call_helper("framegate._graph_text", "code", self);
}

static PyMethodDef graph_methods[] = {
    {"placeholder", graph_placeholder, METH_O, "placeholder(name) -> Node: append an input."},
    {"call_function", graph_call_function, METH_VARARGS, "call_function(callable, args=(), kwargs=None) -> Node"},
    {"call_method", graph_call_method, METH_VARARGS, "call_method(name, args=(), kwargs=None) -> Node: args[0].name(*args[1:])"},
    {"get_attr", graph_get_attr, METH_VARARGS, "get_attr(node, name) -> Node: the attribute of a value"},
    {"output", graph_output, METH_O, "output(structure) -> Node: what a call returns; always the last node."},
    {"print_readable", (PyCFunction)(void (*)(void))graph_print_readable, METH_VARARGS | METH_KEYWORDS,
     "print_readable(print_output=True) -> str: the graph as Python code, each run of operations under the user's line it came from."},
    {"to_fx", graph_to_fx, METH_NOARGS, "to_fx() -> torch.fx.GraphModule. Its Python code is generated at its first call, if ever."},
    {"to_dot", graph_to_dot, METH_NOARGS, "to_dot() -> str: the graph for Graphviz."},
    {"to_json", graph_to_json, METH_NOARGS, "to_json() -> str. ValueError where a constant or callable has no text form."},
    {"from_json", graph_from_json, METH_O | METH_CLASS,
     "from_json(text) -> Graph. Imports the modules that the text names: only for text you trust. ValueError for anything that to_json "
     "does not make."},
    {"__sizeof__", graph_sizeof, METH_NOARGS, "Bytes of the graph and its replay plan, constants not included."},
    {NULL, NULL, 0, NULL},
};

static PyObject *graph_nodes_get(fg_graph *graph, void *closure)
{
    (void)closure;
    if (fg_graph_names_make(graph) != FG_OK)
        return NULL;
    PyObject *list = PyList_New(graph->n_nodes);
    for (int32_t i = 0; list != NULL && i < graph->n_nodes; i++)
        PyList_SET_ITEM(list, i, Py_NewRef((PyObject *)graph->nodes[i]));
    return list;
}

static PyObject *graph_code_get(PyObject *self, void *closure)
{
    (void)closure;
    return graph_str(self);
}

static PyObject *graph_self_get(PyObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(self);
}

static PyObject *graph_meta_get(fg_graph *graph, void *closure)
{
    (void)closure;
    if (graph->meta == NULL && (graph->meta = PyDict_New()) == NULL)
        return NULL;
    return Py_NewRef(graph->meta);
}

static PyObject *graph_name_get(fg_graph *graph, void *closure)
{
    (void)closure;
    return Py_NewRef(graph->name);
}

static int graph_name_setter(PyObject *self, PyObject *value, void *closure)
{
    (void)closure;
    if (value == NULL) {
        PyErr_SetString(PyExc_AttributeError, "the name of a graph cannot be deleted");
        return -1;
    }
    return fg_graph_name_set(self, value) == FG_OK ? 0 : -1;
}

static PyObject *graph_failed_get(fg_graph *graph, void *closure)
{
    (void)closure;
    return Py_NewRef(graph->failed < 0 ? Py_None : (PyObject *)graph->nodes[graph->failed]);
}

static PyGetSetDef graph_getset[] = {
    {"name", (getter)graph_name_get, graph_name_setter, "Name for messages and print-outs (str).", NULL},
    {"nodes", (getter)graph_nodes_get, NULL, "The nodes in order (a new list).", NULL},
    {"code", graph_code_get, NULL, "The graph as the source of a Python function (str).", NULL},
    {"graph", graph_self_get, NULL, "The graph itself, so that a backend that reads `gm.graph.nodes` of an FX module reads this too.",
     NULL},
    {"meta", (getter)graph_meta_get, NULL, "A dict for whoever works on the graph; empty at first.", NULL},
    {"failed_node", (getter)graph_failed_get, NULL, "The node that raised in the newest call that failed, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef graph_members[] = {
    {"op_count", T_INT, offsetof(fg_graph, n_ops), READONLY, "Number of nodes that are neither placeholder nor output."},
    {"placeholder_count", T_INT, offsetof(fg_graph, n_placeholders), READONLY, "Number of inputs."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject fg_graph_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegate._core.Graph",
    .tp_basicsize = sizeof(fg_graph),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "Graph(name='graph')\n--\n\nThe captured operations of one segment of a function. Calling it with one value for each "
              "placeholder replays the\n"
              "operations and returns the output structure; each intermediate is dropped after its last use. The kinds of nodes are those "
              "of torch.fx.",
    .tp_new = graph_new,
    .tp_dealloc = graph_dealloc,
    .tp_traverse = graph_traverse,
    .tp_clear = graph_clear,
    .tp_repr = graph_repr,
    .tp_str = graph_str,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(fg_graph, vectorcall),
    .tp_weaklistoffset = offsetof(fg_graph, weakrefs),
    .tp_methods = graph_methods,
    .tp_members = graph_members,
    .tp_getset = graph_getset,
};

fg_status fg_graph_module_init(PyObject *module)
{
    if (fg_graph_node_type_ready() < 0 || PyType_Ready(&fg_graph_type) < 0 || fg_fast_op_init() != FG_OK)
        return FG_ERR_PYTHON;
    if (PyModule_AddObjectRef(module, "Graph", (PyObject *)&fg_graph_type) < 0 ||
        PyModule_AddObjectRef(module, "Node", (PyObject *)&fg_graph_node_type) < 0)
        return FG_ERR_PYTHON;
    fg_status st = fg_graph_checked_init(module);
    return st == FG_OK ? fg_module_call_init(module) : st;
}
