/* Calls that a trace could not take in, because something in what they call broke the graph: the call is made by the host, as it stands, and what is called goes by a gate
 * with the same options, so that it is compiled by itself, with breaks of its own.
 *
 * The target makes the gate right before (a call of the function that is made here) and leaves it on the stack in the place of the callable, where nobody sees it.
 * Python functions, their methods, and objects whose class has a __call__ in Python; everything else is left as it is.
 */
#include "tracer/resume_inner.h"

#include "runtime/base/alloc.h"
#include "runtime/cpython/function.h"
#include "runtime/hook/hook_gate.h"
#include "runtime/hook/hook_rules.h"
#include "tracer/resume_chain.h"
#include "tracer/trace_python.h"

enum {
    MAX_GATES = 32,       /* of one function; with more, those that were used last */
    LIBRARY_ENTRIES = 256 /* versions of code of a library */
};

struct fg_inner_gate {
    struct fg_inner_gate *next;
    FG_OWNED PyObject *gate;
};

static PyCodeObject *code_of_gate(const struct fg_inner_gate *row)
{
    const fg_site *site = ((fg_gate *)row->gate)->owner.site;
    return site != NULL ? site->code : NULL;
}

void fg_inner_gates_drop(fg_resume_table *table)
{
    while (table->gates != NULL) {
        struct fg_inner_gate *first = table->gates;
        table->gates = first->next;
        table->n_gates--;
        Py_DECREF(first->gate);
        fg_free(first);
    }
}

int fg_inner_gates_traverse(const fg_resume_table *table, visitproc visit, void *arg)
{
    for (struct fg_inner_gate *row = table->gates; row != NULL; row = row->next)
        Py_VISIT(row->gate);
    return 0;
}

static void drop_last(fg_resume_table *table)
{
    struct fg_inner_gate **at = &table->gates;
    while ((*at)->next != NULL)
        at = &(*at)->next;
    struct fg_inner_gate *last = *at;
    *at = NULL;
    table->n_gates--;
    Py_DECREF(last->gate);
    fg_free(last);
}

/* A gate for one call of func; NULL without an exception: it goes without. */
static PyObject *gate_for(fg_resume_table *table, PyObject *func)
{
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(func);
    PyObject *gate = NULL;
    if (table->root == NULL || !fg_site_options_stand(&table->root->options))
        return NULL;
    for (struct fg_inner_gate **at = &table->gates; *at != NULL; at = &(*at)->next) {
        struct fg_inner_gate *row = *at;
        if (code_of_gate(row) != code)
            continue;
        *at = row->next;
        row->next = table->gates;
        table->gates = row;
        if ((gate = fg_gate_lend(row->gate, func)) == NULL && !PyErr_Occurred()) /* the function calls itself, or another thread does */
            gate = fg_gate_new(func, table->root->options.dict);
        return gate;
    }
    PyObject *made = fg_gate_new_lent(table->root->options.dict);
    struct fg_inner_gate *row = made != NULL ? fg_calloc(1, sizeof *row) : NULL;
    if (row == NULL) {
        Py_XDECREF(made);
        return NULL;
    }
    gate = fg_gate_lend(made, func);
    fg_status st = gate != NULL ? fg_gate_prepare((fg_gate *)gate) : FG_ERR_PYTHON;
    if (st != FG_OK || table->root == NULL) { /* … or the collector has run, and with it anything */
        Py_XDECREF(gate);
        Py_DECREF(made);
        fg_free(row);
        return NULL;
    }
    if (fg_py_is_library(code)) /* such as the way to nn.Module's forward: code that many kinds of objects share */
        fg_gate_allow_many((fg_gate *)made, LIBRARY_ENTRIES);
    row->gate = made;
    row->next = table->gates;
    table->gates = row;
    if (++table->n_gates > MAX_GATES)
        drop_last(table);
    return gate;
}

/* What the function that targets call is bound to. */
typedef struct fg_inner {
    PyObject_HEAD fg_resume_table *table; /* counted */
    FG_OWNED PyObject *rules;             /* the package's table, which lives for ever */
} fg_inner;

/* The gate in the place of what is called, bound as that is; NULL without an exception: as it is. */
static PyObject *through_gate(const fg_inner *inner, PyObject *callee)
{
    PyObject *func = callee, *self = NULL;
    if (PyMethod_Check(callee)) {
        func = PyMethod_GET_FUNCTION(callee);
        self = PyMethod_GET_SELF(callee);
    } else if (!PyFunction_Check(callee) && !PyType_Check(callee) && (Py_TYPE(callee)->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        func = fg_py_type_lookup(Py_TYPE(callee), fg_names.s_call);
        self = callee;
    }
    if (func == NULL || !PyFunction_Check(func) || !fg_function_runs_its_code((PyFunctionObject *)func) ||
        fg_rules_of_function(inner->rules, func) != NULL || !fg_py_leads_to_users((PyCodeObject *)PyFunction_GET_CODE(func)))
        return NULL;
    PyObject *gate = gate_for(inner->table, func);
    if (gate == NULL || self == NULL)
        return gate;
    PyObject *method = PyMethod_New(gate, self);
    Py_DECREF(gate);
    return method;
}

static PyObject *inner_call(PyObject *self, PyObject *callee)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *through = through_gate((fg_inner *)self, callee);
    PyErr_Restore(type, value, traceback); /* no memory for a gate: the call needs none */
    return through != NULL ? through : Py_NewRef(callee);
}

static PyMethodDef inner_def = {"through_gate", inner_call, METH_O,
                                "through_gate(callable) -> a gate for one call of it, or the callable itself"};

static void inner_dealloc(PyObject *object)
{
    fg_inner *self = (fg_inner *)object;
    Py_DECREF(self->rules);
    fg_resume_table_drop(self->table);
    PyObject_Free(object);
}

static PyTypeObject inner_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegate._core.InnerCalls",
    .tp_basicsize = sizeof(fg_inner),
    .tp_dealloc = inner_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};

PyObject *fg_inner_function_new(fg_resume_table *table, PyObject *rules)
{
    fg_inner *self = PyObject_New(fg_inner, &inner_type);
    if (self == NULL)
        return NULL;
    self->table = table;
    self->rules = Py_NewRef(rules);
    table->count++;
    PyObject *function = PyCFunction_New(&inner_def, (PyObject *)self);
    Py_DECREF(self);
    return function;
}

fg_status fg_inner_types_init(void)
{
    return PyType_Ready(&inner_type) < 0 ? FG_ERR_PYTHON : FG_OK;
}
