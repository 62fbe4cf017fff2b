#include "codegen/traceback.h"

#include "codegen/graph.h"
#include "runtime/cpython/frame.h"
#include <frameobject.h>

PyObject *fg_traceback_chain(const fg_ir *ir, int32_t site)
{
    Py_ssize_t n = 0;
    for (int32_t at = site; at >= 0 && ir->sites[at].parent >= 0; at = ir->sites[at].parent)
        n += !ir->sites[at].hidden;
    PyObject *chain = PyTuple_New(n);
    for (int32_t at = site; chain != NULL && at >= 0 && ir->sites[at].parent >= 0; at = ir->sites[at].parent) {
        const fg_site_ref *ref = &ir->sites[at];
        if (ref->hidden)
            continue;
        /* the globals of the inlined function are only named: an entry holds no user dict */
        PyObject *row = Py_BuildValue("(Oii)", ref->code, ref->instr->offset, ref->instr->line);
        if (row == NULL) {
            Py_CLEAR(chain);
            break;
        }
        PyTuple_SET_ITEM(chain, --n, row);
    }
    return chain;
}

PyObject *fg_traceback_places(const fg_ir *ir, PyObject *graph)
{
    PyObject *places = PyDict_New(), *result = NULL;
    long first = -1;
    for (Py_ssize_t i = 0; places != NULL && i < fg_graph_n_nodes(graph); i++) {
        const int32_t site = fg_graph_site(graph, i);
        int32_t root = site;
        if (site < 0)
            continue;
        first = first < 0 ? site : first;
        while (ir->sites[root].parent >= 0)
            root = ir->sites[root].parent;
        PyObject *key = PyLong_FromLong(site), *chain = fg_traceback_chain(ir, site),
                 *place = chain ? Py_BuildValue("(iiO)", ir->sites[root].instr->line, ir->sites[root].instr->col, chain) : NULL;
        if (key == NULL || place == NULL || PyDict_SetItem(places, key, place) < 0)
            Py_CLEAR(places);
        Py_XDECREF(key);
        Py_XDECREF(chain);
        Py_XDECREF(place);
    }
    if (places != NULL)
        result = Py_BuildValue("(OOl)", graph, places, first);
    Py_XDECREF(places);
    return result;
}

static PyObject *part_row(const fg_site_ref *ref)
{
    return Py_BuildValue("(Oii)", ref->code, ref->instr->offset, ref->instr->line);
}

PyObject *fg_traceback_part(const fg_ir *ir, int32_t site, int32_t levels)
{
    PyObject *chain = PyList_New(0), *tuple = NULL;
    for (int32_t at = site; chain != NULL && at >= 0 && levels >= 0; at = ir->sites[at].parent, levels--) {
        PyObject *row = ir->sites[at].hidden ? NULL : part_row(&ir->sites[at]);
        if (row == NULL && !PyErr_Occurred())
            continue;
        if (row == NULL || PyList_Insert(chain, 0, row) < 0)
            Py_CLEAR(chain);
        Py_XDECREF(row);
    }
    if (chain != NULL)
        tuple = PyList_AsTuple(chain);
    Py_XDECREF(chain);
    return tuple;
}

/* The instruction of the code that stands there in the user's text; -1: none. */
static int offset_at(PyCodeObject *code, int line, int col)
{
    enum { UNIT = 2 }; /* bytes of what Py_SIZE counts */
    const int end = (int)Py_SIZE(code) * UNIT;
    int start_line, start_col, end_line, end_col;
    for (int at = 0; at < end; at += UNIT)
        if (PyCode_Addr2Location(code, at, &start_line, &start_col, &end_line, &end_col) && start_line == line && start_col == col)
            return at;
    return -1;
}

/* The newest entry shows a line inside an inlined function, or of another operation: it is put to the line of the call; 0: where the handler's instructions stand. */
static int call_line(PyObject *exception, int line, int col)
{
    PyTracebackObject *tb = (PyTracebackObject *)PyException_GetTraceback(exception);
    PyFrameObject *frame = PyEval_GetFrame();
    int result = -1;
    if (tb != NULL && frame != NULL && frame == tb->tb_frame) { /* making a frame object may run out of memory */
        PyObject *next = tb->tb_next ? (PyObject *)tb->tb_next : Py_None;
        PyCodeObject *code = PyFrame_GetCode(frame);
        PyObject *made = line == 0
                             ? PyObject_CallFunction((PyObject *)&PyTraceBack_Type, "OOii", next, frame, PyFrame_GetLasti(frame),
                                                     PyFrame_GetLineNumber(frame))
                             : PyObject_CallFunction((PyObject *)&PyTraceBack_Type, "OOii", next, frame, offset_at(code, line, col), line);
        result = made ? PyException_SetTraceback(exception, made) : -1;
        Py_XDECREF(made);
        Py_DECREF(code);
    }
    Py_XDECREF(tb);
    return result;
}

static void add_row(PyObject *exception, PyObject *row, PyObject *globals)
{
    PyObject *code;
    int offset, line;
    if (!PyArg_ParseTuple(row, "Oii", &code, &offset, &line) ||
        fg_traceback_add(exception, (PyCodeObject *)code, globals, offset, line) != FG_OK)
        PyErr_Clear();
}

/* Entries go below the newest one, so the innermost is put first. Never fails: a traceback is no reason to lose an exception. */
static void add_chain(PyObject *exception, PyObject *chain, int line, int col)
{
    fg_frame *frame = fg_frame_current();
    PyObject *func = frame ? fg_frame_func(frame) : NULL;
    PyObject *globals = func && PyFunction_Check(func) ? PyFunction_GET_GLOBALS(func) : NULL;
    for (Py_ssize_t i = PyTuple_GET_SIZE(chain) - 1; globals != NULL && i >= 0; i--)
        add_row(exception, PyTuple_GET_ITEM(chain, i), globals);
    if ((PyTuple_GET_SIZE(chain) > 0 || line > 0) && call_line(exception, line, col) < 0)
        PyErr_Clear();
}

/* complete(exception, chain) */
static PyObject *complete(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    if (n == 2 && PyExceptionInstance_Check(args[0]) && PyTuple_Check(args[1]))
        add_chain(args[0], args[1], 0, 0);
    Py_RETURN_NONE;
}

/* The node of a module of torch.fx, if the package has made one, that the exception came from; -1: cannot be told. */
static Py_ssize_t failed_in_fx(PyObject *exception)
{
    PyObject *name = PyUnicode_FromString("framegate._fx"), *module = name ? PyImport_GetModule(name) : NULL;
    PyObject *number = module ? PyObject_CallMethod(module, "failed_node", "O", exception) : NULL;
    Py_ssize_t node = number ? PyLong_AsSsize_t(number) : -1;
    Py_XDECREF(name);
    Py_XDECREF(module);
    Py_XDECREF(number);
    PyErr_Clear();
    return node;
}

/* complete_graph(exception, places): the operation that raised says where; the first one, where that cannot be told. */
static PyObject *complete_graph(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    PyObject *graph, *places, *chain;
    int line, col;
    long site;
    if (n != 2 || !PyExceptionInstance_Check(args[0]) || !PyArg_ParseTuple(args[1], "OOl", &graph, &places, &site)) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    Py_ssize_t node = fg_graph_failed(graph, args[0]);
    if (node < 0)
        node = failed_in_fx(args[0]);
    if (node >= 0 && node < fg_graph_n_nodes(graph) && fg_graph_site(graph, node) >= 0)
        site = fg_graph_site(graph, node);
    PyObject *key = PyLong_FromLong(site), *place = key ? PyDict_GetItemWithError(places, key) : NULL;
    if (place != NULL && PyArg_ParseTuple(place, "iiO", &line, &col, &chain))
        add_chain(args[0], chain, line, col);
    Py_XDECREF(key);
    PyErr_Clear();
    Py_RETURN_NONE;
}

static PyMethodDef complete_def = {"complete_traceback", (PyCFunction)(void (*)(void))complete, METH_FASTCALL, NULL};

PyObject *fg_traceback_function(void)
{
    static PyObject *function;
    if (function == NULL)
        function = PyCFunction_New(&complete_def, NULL);
    return Py_XNewRef(function);
}

static PyMethodDef complete_graph_def = {"complete_traceback_of_graph", (PyCFunction)(void (*)(void))complete_graph, METH_FASTCALL, NULL};

PyObject *fg_traceback_graph_function(void)
{
    static PyObject *function;
    if (function == NULL)
        function = PyCFunction_New(&complete_graph_def, NULL);
    return Py_XNewRef(function);
}

/* The exception at the end of the chain of contexts, or before what the caller is handling, where the one that was being handled when the chain began belongs;
 * borrowed, NULL: there is no such place. */
static PyObject *chain_end(PyObject *exception, PyObject *around)
{
    PyObject *end = exception;
    for (int left = 1000; left > 0; left--) {
        PyObject *next = PyException_GetContext(end);
        Py_XDECREF(next); /* kept by the exception before it */
        if (next == NULL || next == around)
            return end;
        end = next;
    }
    return NULL;
}

void fg_traceback_rows(PyObject *exception, PyObject *rows)
{
    PyObject *type, *value, *tb;
    PyErr_Fetch(&type, &value, &tb);
    fg_frame *frame = fg_frame_current();
    PyObject *func = frame ? fg_frame_func(frame) : NULL;
    PyObject *globals = func && PyFunction_Check(func) ? PyFunction_GET_GLOBALS(func) : NULL;
    Py_ssize_t n = globals ? PyTuple_GET_SIZE(rows) : 0;
    if (n > 0)
        add_row(exception, PyTuple_GET_ITEM(rows, 0), globals); /* the newest; the others go below it */
    for (Py_ssize_t i = n - 1; i > 0; i--)
        add_row(exception, PyTuple_GET_ITEM(rows, i), globals);
    PyErr_Restore(type, value, tb);
}

/* add_context(exception, type, args, chain): what was being handled is made anew, with the traceback that it had. */
static PyObject *add_context(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    if (n != 4 || !PyExceptionInstance_Check(args[0]) || !PyTuple_Check(args[2]) || !PyTuple_Check(args[3]))
        Py_RETURN_NONE;
    PyObject *around = PyErr_GetHandledException(), *end = chain_end(args[0], around),
             *made = end ? PyObject_CallObject(args[1], args[2]) : NULL;
    if (made != NULL && PyExceptionInstance_Check(made)) {
        fg_traceback_rows(made, args[3]);
        PyException_SetContext(made, Py_XNewRef(around));
        PyException_SetContext(end, Py_NewRef(made));
    }
    Py_XDECREF(around);
    Py_XDECREF(made);
    PyErr_Clear();
    Py_RETURN_NONE;
}

static PyMethodDef add_context_def = {"add_context", (PyCFunction)(void (*)(void))add_context, METH_FASTCALL, NULL};

PyObject *fg_traceback_context_function(void)
{
    static PyObject *function;
    if (function == NULL)
        function = PyCFunction_New(&add_context_def, NULL);
    return Py_XNewRef(function);
}

static PyObject *strip(PyObject *module, PyObject *exception)
{
    (void)module;
    PyObject *tb = PyExceptionInstance_Check(exception) ? PyException_GetTraceback(exception) : NULL;
    if (tb != NULL) {
        PyObject *next = (PyObject *)((PyTracebackObject *)tb)->tb_next;
        if (next != NULL && PyException_SetTraceback(exception, next) < 0)
            PyErr_Clear();
        Py_DECREF(tb);
    }
    Py_RETURN_NONE;
}

static PyMethodDef strip_def = {"strip_traceback", strip, METH_O, NULL};

PyObject *fg_traceback_strip_function(void)
{
    static PyObject *function;
    if (function == NULL)
        function = PyCFunction_New(&strip_def, NULL);
    return Py_XNewRef(function);
}
