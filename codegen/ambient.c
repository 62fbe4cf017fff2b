/* Managers of the library are made, entered and left around what is computed in the place of a step. */
#include "codegen/ambient.h"

static PyObject *enter_one(const fg_ambient *a)
{
    Py_ssize_t n = PyTuple_GET_SIZE(a->args), named = a->kwnames ? PyTuple_GET_SIZE(a->kwnames) : 0;
    PyObject *manager = PyObject_Vectorcall(a->manager, &PyTuple_GET_ITEM(a->args, 0), (size_t)(n - named), a->kwnames);
    PyObject *r = manager != NULL ? PyObject_CallMethod(manager, "__enter__", NULL) : NULL;
    if (r == NULL)
        Py_CLEAR(manager);
    Py_XDECREF(r);
    return manager;
}

fg_status fg_ambient_enter(const fg_ambient *chain, PyObject **entered)
{
    *entered = NULL;
    if (chain == NULL)
        return FG_OK;
    Py_ssize_t n = 0;
    for (const fg_ambient *a = chain; a != NULL; a = a->outer)
        n++;
    PyObject *managers = PyTuple_New(n);
    for (Py_ssize_t i = 0; managers != NULL && i < n; i++) {
        const fg_ambient *a = chain;
        for (Py_ssize_t k = i + 1; k < n; k++)
            a = a->outer;
        PyObject *manager = enter_one(a);
        if (manager == NULL) {
            fg_ambient_leave(managers);
            return FG_ERR_PYTHON;
        }
        PyTuple_SET_ITEM(managers, i, manager);
    }
    *entered = managers;
    return managers != NULL ? FG_OK : FG_ERR_PYTHON;
}

/* An interrupt that comes up in the manager's own code must not keep it from leaving: it leaves once more, and the interrupt comes up again later. */
static void leave_one(PyObject *manager)
{
    PyObject *r, *interrupt = NULL, *value, *trace;
    for (;;) {
        r = PyObject_CallMethod(manager, "__exit__", "OOO", Py_None, Py_None, Py_None);
        if (r != NULL || PyErr_ExceptionMatches(PyExc_Exception) || interrupt != NULL)
            break;
        PyErr_Fetch(&interrupt, &value, &trace);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    }
    if (r == NULL && interrupt == NULL)
        PyErr_WriteUnraisable(manager);
    PyErr_Clear(); /* of a manager that had left already when it was interrupted */
    Py_XDECREF(r);
    if (interrupt != NULL)
        (void)PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), interrupt);
    Py_XDECREF(interrupt);
}

void fg_ambient_leave(PyObject *entered)
{
    PyObject *type, *value, *trace;
    if (entered == NULL)
        return;
    PyErr_Fetch(&type, &value, &trace);
    for (Py_ssize_t i = PyTuple_GET_SIZE(entered); i > 0; i--) {
        PyObject *manager = PyTuple_GET_ITEM(entered, i - 1);
        if (manager != NULL) /* entering ended before it */
            leave_one(manager);
    }
    Py_DECREF(entered);
    PyErr_Restore(type, value, trace);
}
