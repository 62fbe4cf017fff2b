/* Values and arguments as people write them, for messages. The exact text form (guard_text.c) is another one: it has bits, and marks on names. No code of the
 * values' classes is run.
 */
#include "guards/guard_private.h"
#include "guards/guard_read.h"
#include "runtime/cpython/iterators.h"
#include <string.h>

enum { BRIEF_MAX = 60, BRIEF_ITEMS = 8 };

/* The name in a mark: @'builtins:int' is int, @'torch:Tensor' torch.Tensor, ?'type Local' Local, ?'function f' function f. Takes the text. */
static PyObject *unmarked(PyObject *text)
{
    Py_ssize_t n = text != NULL ? PyUnicode_GET_LENGTH(text) : 0;
    Py_UCS4 mark = n >= 4 ? PyUnicode_READ_CHAR(text, 0) : 0;
    if ((mark != '@' && mark != '?') || PyUnicode_READ_CHAR(text, n - 1) != PyUnicode_READ_CHAR(text, 1))
        return text;
    PyObject *name = PyUnicode_Substring(text, 2, n - 1);
    Py_DECREF(text);
    if (name == NULL)
        return NULL;
    n = PyUnicode_GET_LENGTH(name);
    Py_ssize_t at = PyUnicode_FindChar(name, mark == '@' ? ':' : ' ', 0, n, 1);
    if (at < 0)
        return at == -2 ? (Py_DECREF(name), NULL) : name;
    PyObject *before = PyUnicode_Substring(name, 0, at), *rest = PyUnicode_Substring(name, at + 1, n), *plain = NULL;
    if (before == NULL || rest == NULL)
        goto done;
    if (PyUnicode_CompareWithASCIIString(before, mark == '@' ? "builtins" : "type") == 0)
        plain = Py_NewRef(rest);
    else if (mark == '?')
        plain = Py_NewRef(name);
    else
        plain = PyUnicode_GET_LENGTH(rest) > 0 ? PyUnicode_FromFormat("%U.%U", before, rest) : Py_NewRef(before);
done:
    Py_XDECREF(before);
    Py_XDECREF(rest);
    Py_DECREF(name);
    return plain;
}

static PyObject *plain_tuple(PyObject *tuple)
{
    PyObject *list = PyList_New(0);
    Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    int bad = list == NULL || fg_text_add(list, "(") < 0;
    for (Py_ssize_t i = 0; i < n && !bad; i++)
        bad = (i > 0 && fg_text_add(list, ", ") < 0) || fg_text_take(list, fg_plain_text(PyTuple_GET_ITEM(tuple, i))) < 0;
    if (bad || fg_text_add(list, n == 1 ? ",)" : ")") < 0) {
        Py_XDECREF(list);
        return NULL;
    }
    return fg_text_join(list, "");
}

PyObject *fg_plain_text(PyObject *object)
{
    if (PyTuple_CheckExact(object))
        return plain_tuple(object);
    if (!fg_const_is_scalar(object))
        return unmarked(fg_object_text(object));
    PyObject *text = PyObject_Repr(object);
    if (text == NULL && PyErr_ExceptionMatches(PyExc_ValueError)) { /* an int of too many digits */
        PyErr_Clear();
        text = fg_object_text(object);
    }
    return text;
}

PyObject *fg_plain_hold(const fg_hold *hold)
{
    PyObject *object = hold->label == NULL && !hold->own ? fg_hold_get(hold) : NULL;
    if (object == NULL)
        return unmarked(fg_hold_text(hold));
    Py_INCREF(object);
    PyObject *text = fg_plain_text(object);
    Py_DECREF(object);
    return text;
}

PyObject *fg_plain_arg(const fg_desc *desc, const fg_guard_record *guard)
{
    if (guard->hold >= 0 && fg_guard_arg_class(guard->kind) == FG_ARG_OBJECT)
        return fg_plain_hold(&desc->holds[guard->hold]);
    return fg_guard_arg_text(desc, guard);
}

static PyObject *shortened(PyObject *text)
{
    if (text == NULL || PyUnicode_GET_LENGTH(text) <= BRIEF_MAX)
        return text;
    PyObject *head = PyUnicode_Substring(text, 0, BRIEF_MAX);
    Py_SETREF(text, head != NULL ? PyUnicode_FromFormat("%U...", head) : NULL);
    Py_XDECREF(head);
    return text;
}

static PyObject *brief_member(PyObject *v)
{
    return fg_key_is_plain(v) ? shortened(fg_plain_text(v)) : PyUnicode_FromFormat("<%s>", Py_TYPE(v)->tp_name);
}

/* "a dict of 2: 'a', 'b'" */
static PyObject *brief_members(PyObject *v)
{
    PyObject *members = PyList_New(0), *key, *value;
    fg_dict_iter it = {0};
    Py_ssize_t at = 0, n = PyDict_Check(v) ? PyDict_GET_SIZE(v) : PySet_GET_SIZE(v);
    for (int i = 0;
         members != NULL && i < BRIEF_ITEMS && (PyDict_Check(v) ? fg_dict_next(v, &it, &key, &value) : fg_set_next(v, &at, &key)); i++) {
        if (fg_text_take(members, brief_member(key)) < 0)
            Py_CLEAR(members);
    }
    PyObject *joined = fg_text_join(members, ", "), *text = NULL;
    if (joined != NULL)
        text = PyUnicode_FromFormat("a %s of %zd%s%U%s", Py_TYPE(v)->tp_name, n, n > 0 ? ": " : "", joined, n > BRIEF_ITEMS ? ", ..." : "");
    Py_XDECREF(joined);
    return text;
}

static PyObject *brief_iterator(PyObject *v, const fg_iterator *it)
{
    PyObject *list = PyList_New(0);
    int bad = list == NULL || fg_text_add(list, "a %s at (", Py_TYPE(v)->tp_name) < 0;
    for (int i = 0; i < it->n_state && !bad; i++)
        bad = fg_text_add(list, i > 0 ? ", %lld" : "%lld", (long long)it->state[i]) < 0;
    if (bad || fg_text_add(list, it->n_state == 1 ? ",)" : ")") < 0) {
        Py_XDECREF(list);
        return NULL;
    }
    return fg_text_join(list, "");
}

static PyObject *brief_builtin(PyObject *v)
{
    PyObject *self = PyCFunction_GET_SELF(v);
    const char *name = ((PyCFunctionObject *)v)->m_ml->ml_name;
    if (self == NULL || PyModule_Check(self))
        return PyUnicode_FromFormat("builtin function %s", name);
    return PyUnicode_FromFormat("builtin method %s of %s", name,
                                PyType_Check(self) ? ((PyTypeObject *)self)->tp_name : Py_TYPE(self)->tp_name);
}

PyObject *fg_value_brief(PyObject *v)
{
    fg_iterator it;
    if (v == Py_None || v == Py_Ellipsis || fg_const_is_scalar(v))
        return shortened(fg_plain_text(v));
    if (PyType_Check(v))
        return PyUnicode_FromFormat("class %s", ((PyTypeObject *)v)->tp_name);
    if (PyFunction_Check(v) && PyUnicode_Check(((PyFunctionObject *)v)->func_qualname))
        return PyUnicode_FromFormat("function %U", ((PyFunctionObject *)v)->func_qualname);
    if (PyMethod_Check(v) && PyFunction_Check(PyMethod_GET_FUNCTION(v)) &&
        PyUnicode_Check(((PyFunctionObject *)PyMethod_GET_FUNCTION(v))->func_qualname))
        return PyUnicode_FromFormat("bound method %U", ((PyFunctionObject *)PyMethod_GET_FUNCTION(v))->func_qualname);
    if (PyCFunction_CheckExact(v))
        return brief_builtin(v);
    if (Py_IS_TYPE(v, &PyModule_Type)) {
        PyObject *dict = PyModule_GetDict(v), *name = dict != NULL ? PyDict_GetItemString(dict, "__name__") : NULL;
        if (name != NULL && PyUnicode_CheckExact(name))
            return PyUnicode_FromFormat("module %U", name);
    }
    if (PyDict_CheckExact(v) || PySet_CheckExact(v) || PyFrozenSet_CheckExact(v))
        return brief_members(v);
    if (fg_iterator_read(v, &it) && it.n_state > 0)
        return brief_iterator(v, &it);
    Py_ssize_t length = fg_sized_of(v);
    if (length >= 0)
        return PyUnicode_FromFormat("a %s of length %zd", Py_TYPE(v)->tp_name, length);
    return PyUnicode_FromFormat("%s %s", fg_article(Py_TYPE(v)->tp_name), Py_TYPE(v)->tp_name);
}
