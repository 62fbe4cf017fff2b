#include "tracer/infer_quiet.h"

/* Where NumPy keeps what floating-point errors do, and the function in C that makes such a state. NumPy's own context manager is Python code, in which an
 * interrupt may come up: the state would stay. */
static PyObject *variable, *make_state;

static int find_numpy(void)
{
    if (make_state != NULL)
        return 1;
    PyObject *umath = PyImport_ImportModule("numpy._core.umath");
    PyObject *var = umath != NULL ? PyObject_GetAttrString(umath, "_extobj_contextvar") : NULL;
    PyObject *make = var != NULL ? PyObject_GetAttrString(umath, "_make_extobj") : NULL;
    Py_XDECREF(umath);
    if (make == NULL || !PyContextVar_CheckExact(var) || !PyCFunction_Check(make)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_RuntimeError, "NumPy keeps the state of floating-point errors in another way than is known");
        Py_XDECREF(var);
        Py_XDECREF(make);
        return 0;
    }
    variable = var;
    make_state = make;
    return 1;
}

/* Floating-point errors are ignored; gives the token of the state before, NULL with an exception. */
static PyObject *errors_ignore(void)
{
    static PyObject *kwargs, *args;
    if (!find_numpy() || (args == NULL && (args = PyTuple_New(0)) == NULL) ||
        (kwargs == NULL && (kwargs = Py_BuildValue("{ss}", "all", "ignore")) == NULL))
        return NULL;
    PyObject *state = PyObject_Call(make_state, args, kwargs);
    PyObject *token = state != NULL ? PyContextVar_Set(variable, state) : NULL;
    Py_XDECREF(state);
    return token;
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
    quiet->errors = errors_ignore();
    quiet->row = quiet->errors != NULL ? Py_BuildValue("(sOOOi)", "ignore", Py_None, PyExc_Warning, Py_None, 0) : NULL;
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
    if (quiet->errors != NULL && PyContextVar_Reset(variable, quiet->errors) < 0)
        PyErr_WriteUnraisable(variable);
    Py_CLEAR(quiet->row);
    Py_CLEAR(quiet->filters);
    Py_CLEAR(quiet->errors);
    PyErr_Restore(type, value, trace);
}
