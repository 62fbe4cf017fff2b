/* Gates for calls that a trace could not take in: what is called goes by a gate, so that it is compiled by itself.
 *
 * Whoever keeps such a gate (a resume table, as long as the entries of its function) must keep nothing of the user's by it. So it has a function, and that
 * function's code, only from fg_gate_lend until the call returns, and its owner is a shared one, whose targets have no globals meanwhile.
 */
#include "runtime/hook/hook_gate.h"

/* Stands in for the user's function between calls. */
static PyObject *nobody;

static int make_nobody(void)
{
    PyCodeObject *code = nobody == NULL ? PyCode_NewEmpty("<framegate>", "nobody", 1) : NULL;
    PyObject *globals = code != NULL ? PyDict_New() : NULL;
    if (globals != NULL)
        nobody = PyFunction_New((PyObject *)code, globals);
    Py_XDECREF(code);
    Py_XDECREF(globals);
    return nobody != NULL;
}

static void take_back(fg_gate *gate)
{
    PyObject *func = gate->func, *code = (PyObject *)gate->code;
    gate->func = Py_NewRef(nobody);
    gate->code = NULL;
    Py_XDECREF(code);
    Py_DECREF(func);
}

static PyObject *call_lent(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    PyObject *result = fg_gate_call(self, args, nargsf, kwnames);
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback); /* the end of a function may run anything */
    take_back((fg_gate *)self);
    PyErr_Restore(type, value, traceback);
    return result;
}

PyObject *fg_gate_new_lent(PyObject *options)
{
    if (!make_nobody())
        return NULL;
    fg_gate *gate = (fg_gate *)fg_gate_new(nobody, options);
    if (gate != NULL) {
        gate->vectorcall = call_lent;
        gate->owner.shared = 1;
    }
    return (PyObject *)gate;
}

PyObject *fg_gate_lend(PyObject *self, PyObject *func)
{
    fg_gate *gate = (fg_gate *)self;
    if (Py_REFCNT(self) > 1)
        return NULL;
    Py_INCREF(self);
    PyObject *before = gate->func;
    gate->func = Py_NewRef(func);
    if (gate->owner.site != NULL && gate->owner.site->code == (PyCodeObject *)PyFunction_GET_CODE(func) && gate->code == NULL)
        gate->code = (PyCodeObject *)Py_NewRef(PyFunction_GET_CODE(func));
    Py_DECREF(before); /* nobody, or what was lent and never called */
    return self;
}

void fg_gate_allow_many(fg_gate *gate, uint32_t n)
{
    fg_site *site = gate->owner.site;
    if (gate->owner.recompile_limit == 0)
        gate->owner.recompile_limit = n;
    if (fg_site_cache_size(site) < n)
        site->options.cache_size = n;
}
