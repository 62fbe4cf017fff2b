/* The options of a compile call as a site has them: read once, compared when a gate looks for the site of its code. */
#include "runtime/hook/hook_site.h"

#include <string.h>

static fg_status read_count(PyObject *value, const char *name, uint32_t *out)
{
    if (value == NULL || value == Py_None)
        return FG_OK;
    long count = PyLong_AsLong(value);
    if (count == -1 && PyErr_Occurred())
        return FG_ERR_PYTHON;
    if (count < 1 || count > INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "%s must be a positive integer", name);
        return FG_ERR_PYTHON;
    }
    *out = (uint32_t)count;
    return FG_OK;
}

/* *out is borrowed, NULL: there is none. */
static fg_status read_item(PyObject *dict, const char *name, PyObject **out)
{
    PyObject *key = PyUnicode_FromString(name);
    if (key == NULL)
        return FG_ERR_PYTHON;
    *out = PyDict_GetItemWithError(dict, key);
    Py_DECREF(key);
    return *out == NULL && PyErr_Occurred() ? FG_ERR_PYTHON : FG_OK;
}

/* but: a value that may be anything. Dicts are looked into to this depth. */
static int holds_only_scalars(PyObject *dict, PyObject *but, int depth)
{
    Py_ssize_t at = 0;
    PyObject *key, *value;
    while (PyDict_Next(dict, &at, &key, &value)) {
        int nested = PyDict_CheckExact(value) && depth > 0 && holds_only_scalars(value, NULL, depth - 1);
        if (!PyUnicode_CheckExact(key) || !(nested || value == but || value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) ||
                                            PyFloat_CheckExact(value) || PyUnicode_CheckExact(value)))
            return 0;
    }
    return 1;
}

fg_status fg_site_options_read(PyObject *dict, fg_site_options *out)
{
    fg_status st = FG_OK;
    PyObject *value;
    memset(out, 0, sizeof *out);
    out->dynamic = -1;
    out->immortal = out->only_backend = 1;
    if (dict == NULL || dict == Py_None)
        return FG_OK;
    if (!PyDict_Check(dict)) {
        PyErr_Format(PyExc_TypeError, "options must be a dict or None, not '%.200s'", Py_TYPE(dict)->tp_name);
        return FG_ERR_PYTHON;
    }
    /* A copy: what a site was found by must not change under it. */
    if ((out->dict = PyDict_Copy(dict)) == NULL)
        return FG_ERR_PYTHON;
    out->n_items = PyDict_GET_SIZE(out->dict);
    FG_TRY(read_item(out->dict, "backend", &out->held_backend));
    FG_TRY(read_item(out->dict, "fullgraph", &value));
    if (value != NULL) {
        int truth = PyObject_IsTrue(value);
        if (truth < 0) {
            st = FG_ERR_PYTHON;
            goto fail;
        }
        out->fullgraph = (uint8_t)truth;
    }
    FG_TRY(read_item(out->dict, "dynamic", &value));
    if (value != NULL && value != Py_None)
        out->dynamic = value == Py_True;
    FG_TRY(read_item(out->dict, "cache_size", &value));
    FG_TRY(read_count(value, "cache_size", &out->cache_size));
    FG_TRY(read_item(out->dict, "backend_lives", &value));
    out->only_backend = (uint8_t)holds_only_scalars(out->dict, out->held_backend, 1);
    out->immortal = out->only_backend && (value == Py_True || out->held_backend == NULL || out->held_backend == Py_None);
    return FG_OK;
fail:
    fg_site_options_clear(out);
    return st;
}

void fg_site_options_clear(fg_site_options *options)
{
    options->held_backend = NULL;
    Py_CLEAR(options->dict);
}

static int dicts_equal(PyObject *a, PyObject *b);

/* Runs no code of the user: exact types whose comparison is C's own, identity for the rest. */
static int values_equal(PyObject *a, PyObject *b)
{
    if (a == b)
        return 1;
    if (Py_TYPE(a) != Py_TYPE(b))
        return 0;
    if (PyLong_CheckExact(a) || PyUnicode_CheckExact(a) || PyFloat_CheckExact(a)) {
        int equal = PyObject_RichCompareBool(a, b, Py_EQ);
        if (equal < 0)
            PyErr_Clear();
        return equal == 1;
    }
    if (PyDict_CheckExact(a)) {
        return dicts_equal(a, b);
    }
    return 0;
}

static Py_ssize_t n_options(PyObject *dict)
{
    Py_ssize_t at = 0, n = 0;
    PyObject *key, *value;
    while (dict != NULL && PyDict_Next(dict, &at, &key, &value))
        n += !(PyUnicode_CheckExact(key) && PyUnicode_CompareWithASCIIString(key, "recompile_limit") == 0);
    return n;
}

static int dicts_equal(PyObject *a, PyObject *b)
{
    if (n_options(a) != n_options(b))
        return 0;
    Py_ssize_t at = 0;
    PyObject *key, *value;
    while (a != NULL && PyDict_Next(a, &at, &key, &value)) {
        if (!PyUnicode_CheckExact(key))
            return 0;
        if (PyUnicode_CompareWithASCIIString(key, "recompile_limit") == 0)
            continue;
        PyObject *other = b == NULL ? NULL : PyDict_GetItem(b, key);
        if (other == NULL || !values_equal(value, other))
            return 0;
    }
    return 1;
}

int fg_site_options_equal(const fg_site_options *a, const fg_site_options *b)
{
    return fg_site_options_stand(a) && fg_site_options_stand(b) && dicts_equal(a->dict, b->dict);
}
