#include "codegen/traceback.h"

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

/* The newest entry shows the line inside the inlined function: it is put to the line of the call, which is where the handler's instructions stand. */
static int call_line(PyObject *exception)
{
    PyTracebackObject *tb = (PyTracebackObject *)PyException_GetTraceback(exception);
    PyFrameObject *frame = PyEval_GetFrame();
    int result = -1;
    if (tb != NULL && frame != NULL && frame == tb->tb_frame) { /* making a frame object may run out of memory */
        PyObject *next = tb->tb_next ? (PyObject *)tb->tb_next : Py_None;
        PyObject *made = PyObject_CallFunction((PyObject *)&PyTraceBack_Type, "OOii", next, frame, PyFrame_GetLasti(frame),
                                               PyFrame_GetLineNumber(frame));
        result = made ? PyException_SetTraceback(exception, made) : -1;
        Py_XDECREF(made);
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

/* complete(exception, chain): entries go below the newest one, so the innermost is put first. Never fails: a traceback is no reason to lose an exception. */
static PyObject *complete(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    if (n != 2 || !PyExceptionInstance_Check(args[0]) || !PyTuple_Check(args[1]))
        Py_RETURN_NONE;
    fg_frame *frame = fg_frame_current();
    PyObject *func = frame ? fg_frame_func(frame) : NULL;
    PyObject *globals = func && PyFunction_Check(func) ? PyFunction_GET_GLOBALS(func) : NULL;
    for (Py_ssize_t i = PyTuple_GET_SIZE(args[1]) - 1; globals != NULL && i >= 0; i--)
        add_row(args[0], PyTuple_GET_ITEM(args[1], i), globals);
    if (PyTuple_GET_SIZE(args[1]) > 0 && call_line(args[0]) < 0)
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
