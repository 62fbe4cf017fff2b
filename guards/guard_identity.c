/* Names of identities: "module:qualname" and back, among the modules that are loaded. Nothing is imported. */
#include "guards/guard_private.h"
#include <string.h>

/* An attribute, or NULL without an exception; only what is no Exception passes on, by *error. */
static PyObject *attribute(PyObject *object, const char *name, int *error)
{
    PyObject *value = PyObject_GetAttrString(object, name);
    if (value == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError))
            *error = 1;
        else
            PyErr_Clear();
    }
    return value;
}

PyObject *fg_identity_find(PyObject *name)
{
    PyObject *at = NULL, *parts = NULL, *module = NULL;
    PyObject *modules = PyImport_GetModuleDict();
    Py_ssize_t length = PyUnicode_GET_LENGTH(name);
    Py_ssize_t colon = PyUnicode_FindChar(name, ':', 0, length, 1);

    if (colon < 0 || modules == NULL)
        goto none;
    module = PyUnicode_Substring(name, 0, colon);
    parts = PyUnicode_Substring(name, colon + 1, length);
    if (module == NULL || parts == NULL)
        goto none;
    at = Py_XNewRef(PyDict_GetItemWithError(modules, module));
    if (at == NULL || PyUnicode_GET_LENGTH(parts) == 0)
        goto none;
    PyObject *dot = PyUnicode_FromString("."), *names = dot != NULL ? PyUnicode_Split(parts, dot, -1) : NULL;
    Py_XDECREF(dot);
    if (names == NULL)
        Py_CLEAR(at);
    for (Py_ssize_t i = 0; at != NULL && i < PyList_GET_SIZE(names); i++)
        Py_SETREF(at, PyObject_GetAttr(at, PyList_GET_ITEM(names, i)));
    Py_XDECREF(names);
none:
    Py_XDECREF(module);
    Py_XDECREF(parts);
    if (at == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception) && !PyErr_ExceptionMatches(PyExc_MemoryError))
        PyErr_Clear();
    return at;
}

/* The name if it leads back to the object; else NULL. Takes the name. */
static PyObject *name_if_true(PyObject *object, PyObject *name)
{
    PyObject *found = name != NULL ? fg_identity_find(name) : NULL;
    int same = found == object;
    Py_XDECREF(found);
    if (!same)
        Py_CLEAR(name);
    return name;
}

/* The types of which the builtins have no name are collected by the module `types`. */
static PyObject *name_in_types(PyObject *object)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *module = modules != NULL ? PyDict_GetItemString(modules, "types") : NULL;
    PyObject *dict = module != NULL && PyModule_Check(module) ? PyModule_GetDict(module) : NULL;
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (dict != NULL && PyDict_Next(dict, &at, &key, &value)) {
        if (value == object && PyUnicode_Check(key))
            return PyUnicode_FromFormat("types:%U", key);
    }
    return NULL;
}

/* Constants of libraries, such as dtypes, often print as their own dotted path. Only C types are asked. */
static PyObject *name_by_repr(PyObject *object)
{
    if (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE)
        return NULL;
    PyObject *text = PyObject_Repr(object);
    if (text == NULL)
        return NULL;
    Py_ssize_t length = PyUnicode_GET_LENGTH(text), dot = PyUnicode_FindChar(text, '.', 0, length, 1);
    PyObject *name = NULL;
    if (dot > 0 && length < 200) {
        PyObject *module = PyUnicode_Substring(text, 0, dot), *rest = PyUnicode_Substring(text, dot + 1, length);
        if (module != NULL && rest != NULL)
            name = PyUnicode_FromFormat("%U:%U", module, rest);
        Py_XDECREF(module);
        Py_XDECREF(rest);
    }
    Py_DECREF(text);
    return name;
}

PyObject *fg_identity_name(PyObject *object)
{
    int error = 0;
    PyObject *name = NULL, *module = NULL, *qualname = NULL;

    if (PyModule_Check(object)) {
        module = attribute(object, "__name__", &error);
        if (module != NULL && PyUnicode_Check(module))
            name = name_if_true(object, PyUnicode_FromFormat("%U:", module));
        goto done;
    }
    module = attribute(object, "__module__", &error);
    if (!error)
        qualname = attribute(object, "__qualname__", &error);
    if (!error && qualname == NULL)
        qualname = attribute(object, "__name__", &error);
    if (error)
        goto done;
    if (qualname != NULL && PyUnicode_Check(qualname) && module != NULL && PyUnicode_Check(module))
        name = name_if_true(object, PyUnicode_FromFormat("%U:%U", module, qualname));
    if (name == NULL && !PyErr_Occurred() && PyType_Check(object))
        name = name_if_true(object, name_in_types(object));
    if (name == NULL && !PyErr_Occurred() && !PyType_Check(object))
        name = name_if_true(object, name_by_repr(object));
done:
    Py_XDECREF(module);
    Py_XDECREF(qualname);
    if (name == NULL && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError))
            return NULL;
        PyErr_Clear();
    }
    return name != NULL ? name : Py_NewRef(Py_None);
}
