#include "tracer/infer_quiet.h"

/* numpy.errstate(all="ignore"), entered; NULL with an exception. */
static PyObject *errstate_enter(void)
{
    static PyObject *maker;
    if (maker == NULL) {
        PyObject *numpy = PyImport_ImportModule("numpy");
        if (numpy != NULL)
            maker = PyObject_GetAttrString(numpy, "errstate"); /* kept: a class of NumPy */
        Py_XDECREF(numpy);
        if (maker == NULL)
            return NULL;
    }
    PyObject *args = PyTuple_New(0), *kwargs = Py_BuildValue("{ss}", "all", "ignore"), *state = NULL, *entered = NULL;
    if (args != NULL && kwargs != NULL)
        state = PyObject_Call(maker, args, kwargs);
    if (state != NULL)
        entered = PyObject_CallMethod(state, "__enter__", NULL);
    if (entered == NULL)
        Py_CLEAR(state);
    Py_XDECREF(entered);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return state;
}

fg_status fg_quiet_begin(fg_quiet *quiet)
{
    PyObject *warnings = PyImport_ImportModule("warnings");
    *quiet = (fg_quiet){NULL, NULL, NULL};
    if (warnings == NULL)
        goto fail;
    quiet->filters = PyObject_GetAttrString(warnings, "filters");
    if (quiet->filters == NULL)
        goto fail;
    if (!PyList_Check(quiet->filters)) {
        PyErr_SetString(PyExc_TypeError, "warnings.filters must be a list");
        goto fail;
    }
    quiet->errstate = errstate_enter();
    quiet->row = quiet->errstate != NULL ? Py_BuildValue("(sOOOi)", "ignore", Py_None, PyExc_Warning, Py_None, 0) : NULL;
    if (quiet->row == NULL || PyList_Insert(quiet->filters, 0, quiet->row) < 0) {
        Py_CLEAR(quiet->row);
        goto fail;
    }
    Py_DECREF(warnings);
    return FG_OK;
fail:
    Py_XDECREF(warnings);
    fg_quiet_end(quiet);
    return FG_ERR_PYTHON;
}

void fg_quiet_end(fg_quiet *quiet)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (quiet->row != NULL)
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(quiet->filters); i++)
            if (PyList_GET_ITEM(quiet->filters, i) == quiet->row) {
                if (PySequence_DelItem(quiet->filters, i) < 0)
                    PyErr_Clear();
                break;
            }
    if (quiet->errstate != NULL) {
        PyObject *left = PyObject_CallMethod(quiet->errstate, "__exit__", "OOO", Py_None, Py_None, Py_None);
        if (left == NULL)
            PyErr_WriteUnraisable(quiet->errstate);
        Py_XDECREF(left);
    }
    Py_CLEAR(quiet->row);
    Py_CLEAR(quiet->filters);
    Py_CLEAR(quiet->errstate);
    PyErr_Restore(type, value, trace);
}
