#include "runtime/hook/hook_bind.h"

#include <string.h>

fg_status fg_bind_shape_init(fg_bind_shape *shape, PyCodeObject *code)
{
    memset(shape, 0, sizeof *shape);
    if ((shape->names = PyCode_GetVarnames(code)) == NULL)
        return FG_ERR_PYTHON;
    shape->n_positional = code->co_argcount;
    shape->n_positional_only = code->co_posonlyargcount;
    shape->n_keyword_only = code->co_kwonlyargcount;
    shape->has_varargs = (code->co_flags & CO_VARARGS) != 0;
    shape->has_varkeywords = (code->co_flags & CO_VARKEYWORDS) != 0;
    shape->n_slots = shape->n_positional + shape->n_keyword_only + shape->has_varargs + shape->has_varkeywords;
    return FG_OK;
}

void fg_bind_shape_fini(fg_bind_shape *shape)
{
    Py_CLEAR(shape->names);
}

Py_ssize_t fg_bind_shape_exact(const fg_bind_shape *shape)
{
    return shape->n_slots == shape->n_positional ? shape->n_positional : -1;
}

void fg_bind_release(PyObject **slots, Py_ssize_t n_slots)
{
    for (Py_ssize_t i = 0; i < n_slots; i++)
        Py_CLEAR(slots[i]);
}

/* Slot of a keyword; -1: no such parameter. name is an exact str. */
static Py_ssize_t find_keyword(const fg_bind_shape *shape, PyObject *name)
{
    Py_ssize_t n = shape->n_positional + shape->n_keyword_only;
    PyObject *const *names = &PyTuple_GET_ITEM(shape->names, 0);
    /* Nearly always the interned object itself. */
    for (Py_ssize_t i = shape->n_positional_only; i < n; i++)
        if (names[i] == name)
            return i;
    for (Py_ssize_t i = shape->n_positional_only; i < n; i++)
        if (PyUnicode_Compare(names[i], name) == 0)
            return i;
    return -1;
}

static int bind_keywords(const fg_bind_shape *shape, PyObject *const *values, PyObject *kwnames, PyObject **slots, PyObject *extra)
{
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); k++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k);
        /* A subclass of str may compare as it likes. */
        if (!PyUnicode_CheckExact(name))
            return 0;
        Py_ssize_t i = find_keyword(shape, name);
        if (i >= 0) {
            if (slots[i] != NULL)
                return 0;
            slots[i] = Py_NewRef(values[k]);
        } else if (extra == NULL || PyDict_SetItem(extra, name, values[k]) < 0) {
            return 0;
        }
    }
    return 1;
}

static int fill_defaults(const fg_bind_shape *shape, PyFunctionObject *func, PyObject **slots)
{
    PyObject *defaults = func->func_defaults;
    Py_ssize_t n_defaults = defaults == NULL ? 0 : PyTuple_GET_SIZE(defaults);
    for (Py_ssize_t i = 0; i < shape->n_positional; i++) {
        if (slots[i] != NULL)
            continue;
        Py_ssize_t d = i - (shape->n_positional - n_defaults);
        if (d < 0)
            return 0;
        slots[i] = Py_NewRef(PyTuple_GET_ITEM(defaults, d));
    }
    /* Keys of another type than str may run anything when they are compared. */
    PyObject *kwdefaults = Py_XNewRef(func->func_kwdefaults);
    int filled = 1;
    for (Py_ssize_t i = shape->n_positional; i < shape->n_positional + shape->n_keyword_only && filled; i++)
        if (slots[i] == NULL) {
            PyObject *value = kwdefaults == NULL ? NULL : PyDict_GetItemWithError(kwdefaults, PyTuple_GET_ITEM(shape->names, i));
            slots[i] = Py_XNewRef(value);
            filled = value != NULL;
        }
    Py_XDECREF(kwdefaults);
    return filled;
}

int fg_bind_call(const fg_bind_shape *shape, PyObject *func, PyObject *const *args, Py_ssize_t n_args, PyObject *kwnames, PyObject **slots)
{
    Py_ssize_t n_named = shape->n_positional + shape->n_keyword_only;
    Py_ssize_t n_direct = n_args < shape->n_positional ? n_args : shape->n_positional;
    PyObject *extra = NULL, *type = NULL, *value = NULL, *traceback = NULL;
    int pending = PyErr_Occurred() != NULL;
    memset(slots, 0, (size_t)shape->n_slots * sizeof *slots);
    if (n_args > shape->n_positional && !shape->has_varargs)
        return 0;
    if (pending)
        PyErr_Fetch(&type, &value, &traceback);
    for (Py_ssize_t i = 0; i < n_direct; i++)
        slots[i] = Py_NewRef(args[i]);
    if (shape->has_varargs) {
        PyObject *rest = PyTuple_New(n_args - n_direct);
        if ((slots[n_named] = rest) == NULL)
            goto fail;
        for (Py_ssize_t i = n_direct; i < n_args; i++)
            PyTuple_SET_ITEM(rest, i - n_direct, Py_NewRef(args[i]));
    }
    if (shape->has_varkeywords && (slots[n_named + shape->has_varargs] = extra = PyDict_New()) == NULL)
        goto fail;
    if (kwnames != NULL && !bind_keywords(shape, args + n_args, kwnames, slots, extra))
        goto fail;
    if (!fill_defaults(shape, (PyFunctionObject *)func, slots))
        goto fail;
    if (pending)
        PyErr_Restore(type, value, traceback);
    return 1;
fail:
    fg_bind_release(slots, shape->n_slots);
    PyErr_Clear();
    if (pending)
        PyErr_Restore(type, value, traceback);
    return 0;
}
