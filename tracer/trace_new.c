/* Instances that a __new__ makes: object.__new__ and tuple.__new__, and tuples whose class is one of the user's (named tuples).
 *
 * A tuple of such a class is a tuple of known elements with another type. That holds where the class says nothing about what tuples do: it may have methods,
 * properties and the fields of a named tuple, and of the special methods only those that no operation here asks for. What it says may change: each is a fact.
 */
#include "runtime/cpython/dict.h"
#include "runtime/cpython/frame.h"
#include "runtime/cpython/iterators.h"
#include "tracer/trace_python.h"

#include <string.h>

/* The names of special methods that a class may give its tuples without making something else of them. */
static bool is_harmless(PyObject *name)
{
    static const char *const names[] = {"__module__",
                                        "__doc__",
                                        "__slots__",
                                        "__new__",
                                        "__repr__",
                                        "__str__",
                                        "__getnewargs__",
                                        "__match_args__",
                                        "__annotations__",
                                        "__orig_bases__",
                                        "__init_subclass__",
                                        "__parameters__",
                                        "__replace__",
                                        "__slotnames__",
                                        "__qualname__",
                                        "__reduce__",
                                        "__static_attributes__",
                                        "__firstlineno__",
                                        "__annotate__",
                                        "__annotate_func__",
                                        "__annotations_cache__",
                                        "__class_getitem__",
                                        "__classdictcell__",
                                        "__conditional_annotations__",
                                        "__type_params__"};
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    const size_t n = text != NULL ? strlen(text) : 0;
    if (text == NULL)
        PyErr_Clear();
    if (text == NULL || n < 5 || strncmp(text, "__", 2) != 0 || strcmp(text + n - 2, "__") != 0)
        return text != NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i]) == 0)
            return true;
    return false;
}

bool fg_is_tuple_class(const PyTypeObject *type)
{
    if (!PyType_IsSubtype((PyTypeObject *)type, &PyTuple_Type) || !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) ||
        (type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) || !Py_IS_TYPE(type, &PyType_Type) || type->tp_dictoffset != 0 ||
        type->tp_mro == NULL || fg_type_has_instance_dict((PyTypeObject *)type))
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); i++) {
        const PyTypeObject *base = (const PyTypeObject *)PyTuple_GET_ITEM(type->tp_mro, i);
        PyObject *dict = fg_type_dict((PyTypeObject *)base), *key;
        fg_dict_iter it = {0};
        PyObject *value;
        if (base == &PyTuple_Type || base == &PyBaseObject_Type)
            continue;
        if (!(base->tp_flags & Py_TPFLAGS_HEAPTYPE) || dict == NULL)
            return false;
        while (fg_dict_next(dict, &it, &key, &value))
            if (!is_harmless(key))
                return false;
    }
    return true;
}

/* The class goes on saying nothing of these. */
fg_flow fg_tuple_class_facts(fg_trace *t, fg_value *cls, PyTypeObject *type)
{
    static const char *const names[] = {"__len__",  "__iter__", "__getitem__", "__eq__", "__contains__",
                                        "__hash__", "__bool__", "__add__",     "__mul__"};
    if (cls->is_asked)
        return FG_FLOW_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        fg_value *found;
        PyObject *name = fg_own(t, PyUnicode_InternFromString(names[i]));
        if (name == NULL)
            return FG_FLOW_ERROR;
        FG_DO(fg_type_lookup(t, cls, type, name, &found));
        if (found != NULL)
            FG_DO(fg_look(t, &found));
    }
    FG_SET(t, cls->is_asked, 1);
    return FG_FLOW_OK;
}

bool fg_is_own_tuple(const fg_value *v)
{
    return v->kind == FG_V_TUPLE && v->type != NULL && v->type != &PyTuple_Type && (v->type->tp_flags & Py_TPFLAGS_HEAPTYPE);
}

/* A field of a named tuple: the descriptor knows which element it is. *handled false: it is another descriptor. */
fg_flow fg_tuple_field(fg_trace *t, fg_value *o, fg_value *descr, fg_value **out, bool *handled)
{
    *handled = false;
    if (!fg_is_own_tuple(o) || !fg_is_tuple_field(descr->real))
        return FG_FLOW_OK;
    FG_DO(fg_look(t, &descr));
    FG_DO(fg_guard_const(t, descr));
    PyObject *parts = fg_own(t, PyObject_CallMethod(descr->real, "__reduce__", NULL)); /* (type, (index, doc)) */
    if (parts == NULL)
        return FG_FLOW_ERROR;
    const Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GET_ITEM(PyTuple_GET_ITEM(parts, 1), 0));
    if (at < 0 || at >= o->n)
        return fg_break(t, FG_BREAK_RAISES, "tuple index out of range");
    *handled = true;
    *out = o->items[at];
    return FG_FLOW_OK;
}

PyObject *fg_tuple_new_function(void)
{
    return PyDict_GetItemString(fg_type_dict(&PyTuple_Type), "__new__");
}

static fg_flow tuple_new(fg_trace *t, fg_value *cls, fg_value *of, fg_value **out)
{
    PyTypeObject *type = (PyTypeObject *)cls->real;
    fg_value **items = NULL;
    int32_t n = 0;
    if (of != NULL)
        FG_DO(fg_iterate(t, of, &items, &n));
    if ((*out = fg_value_seq(t, FG_V_TUPLE, items, n)) == NULL || type == &PyTuple_Type)
        return *out ? FG_FLOW_OK : FG_FLOW_ERROR;
    FG_DO(fg_tuple_class_facts(t, cls, type));
    (*out)->type = type;
    (*out)->c = cls;
    return FG_FLOW_OK;
}

/* object.__new__(cls), tuple.__new__(cls, iterable) */
fg_flow fg_call_new(fg_trace *t, PyObject *callable, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out, bool *handled)
{
    *handled = false;
    const bool is_tuple = callable == fg_tuple_new_function();
    if (!is_tuple && callable != fg_names.object_new)
        return FG_FLOW_OK;
    for (int32_t i = 0; i < n; i++)
        FG_DO(fg_look(t, &args[i]));
    PyTypeObject *type = n > 0 && args[0]->kind == FG_V_CONST && PyType_Check(args[0]->real) ? (PyTypeObject *)args[0]->real : NULL;
    if (type == NULL || kwnames != NULL || n > 1 + is_tuple)
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "__new__ with these arguments");
    *handled = true;
    if (is_tuple) {
        if (type != &PyTuple_Type && !fg_is_tuple_class(type))
            return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "tuple.__new__ of %s", type->tp_name);
        return tuple_new(t, args[0], n > 1 ? args[1] : NULL, out);
    }
    const PyTypeObject *base = type;
    while (base->tp_flags & Py_TPFLAGS_HEAPTYPE && base->tp_base != NULL)
        base = base->tp_base;
    if (base != &PyBaseObject_Type)
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "object.__new__ of %s", type->tp_name);
    return fg_instance_new(t, args[0], type, out);
}
