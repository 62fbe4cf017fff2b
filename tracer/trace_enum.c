/* Comparison of enumeration members that are strings as well (class Action(str, Enum)): they are compared by the rules of strings, and as the members of an
 * enumeration are few and stay the same, which one it is becomes a fact. An integer cannot be referred to weakly, so no fact may be about which one it is.
 */
#include "tracer/trace_python.h"

static bool is_member(PyTypeObject *type)
{
    static PyObject *meta; /* kept: a class of the standard library */
    if (meta == NULL) {
        PyObject *modules = PySys_GetObject("modules"), *module = modules ? PyDict_GetItemString(modules, "enum") : NULL;
        PyObject *dict = module && PyModule_Check(module) ? PyModule_GetDict(module) : NULL;
        meta = dict ? Py_XNewRef(PyDict_GetItemString(dict, "EnumType")) : NULL;
    }
    return meta != NULL && Py_TYPE(type) == (PyTypeObject *)meta && type->tp_weaklistoffset > 0;
}

/* A member of an enumeration of strings where comparing is what str does. Facts keep the class from growing another way. */
static fg_flow is_string(fg_trace *t, fg_value *v, bool *yes)
{
    static const char *const names[] = {"__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"};
    *yes = false;
    if (v->kind != FG_V_OBJECT || v->real == NULL || v->node == FG_NODE_NONE || !is_member(v->type) ||
        !PyType_IsSubtype(v->type, &PyUnicode_Type) || v->type->tp_richcompare != PyUnicode_Type.tp_richcompare)
        return FG_FLOW_OK;
    fg_value *type, *found;
    FG_DO(fg_object_type(t, v, &type));
    for (int i = 0; i < 6; i++) {
        PyObject *name = PyUnicode_InternFromString(names[i]);
        if (fg_own(t, name) == NULL)
            return FG_FLOW_ERROR;
        FG_DO(fg_type_lookup(t, type, v->type, name, &found));
        if (found == NULL || found->real != fg_py_type_lookup(&PyUnicode_Type, name))
            return FG_FLOW_OK;
        FG_DO(fg_look(t, &found));
    }
    *yes = true;
    return FG_FLOW_OK;
}

fg_flow fg_enum_compare(fg_trace *t, int op, fg_value *a, fg_value *b, PyObject **out)
{
    fg_value *pair[2] = {a, b};
    bool strings[2];
    *out = NULL;
    for (int i = 0; i < 2; i++) {
        FG_DO(is_string(t, pair[i], &strings[i]));
        if (!strings[i] && !fg_is_scalar(pair[i]) && !(pair[i]->kind == FG_V_CONST && fg_is_fold_const(pair[i]->real)))
            return FG_FLOW_OK;
    }
    if (!strings[0] && !strings[1])
        return FG_FLOW_OK;
    for (int i = 0; i < 2; i++)
        FG_DO(fg_guard_const(t, pair[i]));
    PyObject *result = PyObject_RichCompare(a->real, b->real, op); /* of builtin types: no code of the user's */
    if (result == NULL)
        return fg_break_on_error(t, FG_BREAK_RAISES, "comparison");
    *out = fg_own(t, result);
    return *out ? FG_FLOW_OK : FG_FLOW_ERROR;
}
