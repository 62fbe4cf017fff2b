/* Purpose: unique, readable names for the nodes of a graph, made when someone first asks: most graphs are never printed.
 * Model:   a hint from what the node calls; a number is appended where the hint is taken. Keywords and builtins count as taken, so that the printed
 *          code of a graph runs as it stands. Names are given in node order, so making them late changes none.
 */
#include "codegen/graph_internal.h"

static PyObject *hint_raw(const fg_graph_node *node)
{
    PyObject *hint = NULL;
    switch ((fg_graph_op)node->op) {
    case FG_GRAPH_PLACEHOLDER:
    case FG_GRAPH_CALL_METHOD:
    case FG_GRAPH_GET_ATTR: return Py_NewRef(node->target);
    case FG_GRAPH_OUTPUT: return PyUnicode_FromString("output");
    case FG_GRAPH_CALL_FUNCTION:
        hint = PyObject_GetAttrString(node->target, "__name__");
        if (hint != NULL && PyUnicode_Check(hint))
            return hint;
        Py_XDECREF(hint);
        if (PyErr_Occurred()) {
            if (!PyErr_ExceptionMatches(PyExc_Exception))
                return NULL;
            PyErr_Clear();
        }
        break;
    }
    const char *type_name = Py_TYPE(node->target)->tp_name;
    const char *dot = strrchr(type_name, '.');
    return PyUnicode_FromString(dot == NULL ? type_name : dot + 1);
}

/* Any text made into an identifier of ASCII letters, digits and underscores. */
static PyObject *hint_clean(PyObject *raw)
{
    char text[80];
    size_t n = 0;
    Py_ssize_t length = PyUnicode_GET_LENGTH(raw);
    for (Py_ssize_t i = 0; i < length && n < sizeof text - 2; i++) {
        Py_UCS4 c = PyUnicode_READ_CHAR(raw, i);
        int is_word = c < 128 && (Py_ISALNUM((int)c) || c == '_');
        if (n == 0 && is_word && Py_ISDIGIT((int)c))
            text[n++] = '_';
        if (is_word)
            text[n++] = (char)c;
        else if (n > 0 && text[n - 1] != '_')
            text[n++] = '_';
    }
    if (n == 0)
        text[n++] = '_';
    return PyUnicode_FromStringAndSize(text, (Py_ssize_t)n);
}

static fg_status reserve(PyObject *taken, PyObject *names)
{
    PyObject *one = PyLong_FromLong(1), *iterator = PyObject_GetIter(names), *name;
    int failed = one == NULL || iterator == NULL;
    while (!failed && (name = PyIter_Next(iterator)) != NULL) {
        failed = PyDict_SetItem(taken, name, one) < 0;
        Py_DECREF(name);
    }
    Py_XDECREF(one);
    Py_XDECREF(iterator);
    return failed || PyErr_Occurred() ? FG_ERR_PYTHON : FG_OK;
}

static fg_status taken_make(fg_graph *graph)
{
    fg_status st = FG_ERR_PYTHON;
    PyObject *keyword = NULL, *keywords = NULL;
    PyObject *taken = PyDict_New();
    if (taken == NULL || (keyword = PyImport_ImportModule("keyword")) == NULL ||
        (keywords = PyObject_GetAttrString(keyword, "kwlist")) == NULL)
        goto fail;
    FG_TRY(reserve(taken, keywords));
    FG_TRY(reserve(taken, PyEval_GetBuiltins()));
    Py_XSETREF(graph->taken, taken);
    taken = NULL;
    st = FG_OK;
fail:
    Py_XDECREF(keyword);
    Py_XDECREF(keywords);
    Py_XDECREF(taken);
    return st;
}

static PyObject *unique(PyObject *taken, PyObject *hint)
{
    PyObject *next = PyDict_GetItemWithError(taken, hint);
    PyObject *name = NULL;
    long suffix = next == NULL ? 0 : PyLong_AsLong(next);
    if (PyErr_Occurred())
        return NULL;
    if (suffix == 0)
        name = Py_NewRef(hint);
    for (; name == NULL; suffix++) {
        name = PyUnicode_FromFormat("%U_%ld", hint, suffix);
        if (name == NULL)
            return NULL;
        int clash = PyDict_Contains(taken, name);
        if (clash < 0) {
            Py_DECREF(name);
            return NULL;
        }
        if (clash)
            Py_CLEAR(name);
    }
    PyObject *number = PyLong_FromLong(suffix == 0 ? 1 : suffix), *one = PyLong_FromLong(1);
    if (number == NULL || one == NULL || PyDict_SetItem(taken, name, one) < 0 || PyDict_SetItem(taken, hint, number) < 0)
        Py_CLEAR(name);
    Py_XDECREF(number);
    Py_XDECREF(one);
    return name;
}

fg_status fg_graph_names_make(fg_graph *graph)
{
    if (graph->taken == NULL) {
        fg_status st = taken_make(graph);
        if (st != FG_OK)
            return st;
    }
    while (graph->n_named < graph->n_nodes) {
        int32_t at = graph->n_named;
        fg_graph_node *node = (fg_graph_node *)Py_NewRef(graph->nodes[at]);
        PyObject *raw = hint_raw(node); /* may run a callable's __getattr__ */
        PyObject *hint = raw == NULL ? NULL : hint_clean(raw);
        PyObject *name = hint == NULL ? NULL : unique(graph->taken, hint);
        Py_XDECREF(raw);
        Py_XDECREF(hint);
        if (name != NULL && graph->n_named == at) {
            Py_XSETREF(node->name, name);
            graph->n_named = at + 1;
        } else {
            Py_XDECREF(name);
        }
        Py_DECREF(node);
        if (name == NULL)
            return FG_ERR_PYTHON;
    }
    return FG_OK;
}
