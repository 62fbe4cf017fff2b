/* Members of enumerations that are strings or integers as well: they are compared, and integers are added, by the rules of the builtin. As the members of an
 * enumeration are few and stay the same, which one it is becomes a fact. An integer cannot be referred to weakly, so the fact is that it is the member that its
 * class has under that name, and that the name's value is what it was.
 */
#include "tracer/trace_python.h"

#include <stdio.h>

static bool is_member(PyTypeObject *type)
{
    static PyObject *meta; /* kept: a class of the standard library */
    if (meta == NULL) {
        PyObject *modules = PySys_GetObject("modules"), *module = modules ? PyDict_GetItemString(modules, "enum") : NULL;
        PyObject *dict = module && PyModule_Check(module) ? PyModule_GetDict(module) : NULL;
        meta = dict ? Py_XNewRef(PyDict_GetItemString(dict, "EnumType")) : NULL;
    }
    return meta != NULL && Py_TYPE(type) == (PyTypeObject *)meta;
}

static bool is_member_of(const fg_value *v, PyTypeObject *base)
{
    return v->kind == FG_V_OBJECT && v->real != NULL && v->node != FG_NODE_NONE && is_member(v->type) && PyType_IsSubtype(v->type, base) &&
           v->type->tp_richcompare == base->tp_richcompare;
}

/* The class of a member has what its builtin base has under these names, or nothing where that has nothing. Facts keep it from growing another way. */
static fg_flow is_as_base(fg_trace *t, fg_value *v, PyTypeObject *base, const char *const *names, int n, bool *yes)
{
    fg_value *type, *found;
    *yes = false;
    FG_DO(fg_object_type(t, v, &type));
    for (int i = 0; i < n; i++) {
        PyObject *name = PyUnicode_InternFromString(names[i]);
        if (fg_own(t, name) == NULL)
            return FG_FLOW_ERROR;
        FG_DO(fg_type_lookup(t, type, v->type, name, &found));
        if ((found != NULL ? found->real : NULL) != fg_py_type_lookup(base, name))
            return FG_FLOW_OK;
        if (found != NULL)
            FG_DO(fg_look(t, &found));
    }
    *yes = true;
    return FG_FLOW_OK;
}

static const char *const comparisons[] = {"__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"};

/* A member of an enumeration of strings where comparing is what str does. */
static fg_flow is_string(fg_trace *t, fg_value *v, bool *yes)
{
    *yes = false;
    return is_member_of(v, &PyUnicode_Type) && PyType_SUPPORTS_WEAKREFS(v->type) ? is_as_base(t, v, &PyUnicode_Type, comparisons, 6, yes)
                                                                                 : FG_FLOW_OK;
}

/* The name under which the class of a member has it, or NULL. */
static PyObject *name_of(PyObject *map, PyObject *member)
{
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(map, &at, &key, &value);)
        if (value == member && PyUnicode_CheckExact(key))
            return key;
    return NULL;
}

/* Facts about which member it is; *number NULL: it cannot be told. */
static fg_flow settle(fg_trace *t, fg_value *v, fg_value **number)
{
    fg_value *type, *map, *member, *value;
    PyObject *map_name = PyUnicode_InternFromString("_member_map_"), *value_name = PyUnicode_InternFromString("_value_"), *name;
    *number = NULL;
    if (fg_own(t, map_name) == NULL || fg_own(t, value_name) == NULL)
        return FG_FLOW_ERROR;
    FG_DO(fg_object_type(t, v, &type));
    FG_DO(fg_type_lookup(t, type, v->type, map_name, &map));
    if (map == NULL || map->real == NULL || !PyDict_CheckExact(map->real) || (name = name_of(map->real, v->real)) == NULL)
        return FG_FLOW_OK;
    FG_DO(fg_look(t, &map));
    if (map->kind != FG_V_DICT || map->is_mutated)
        return FG_FLOW_OK;
    FG_DO(fg_dict_get(t, map, name, &member));
    FG_DO(fg_look(t, &member)); /* as one object under two sources, which is a fact */
    FG_DO(fg_attr_in_instance(t, v, value_name, &value));
    if (member != v || value == NULL || v->is_mutated)
        return FG_FLOW_OK;
    FG_DO(fg_look(t, &value));
    if (value->type != &PyLong_Type)
        return FG_FLOW_OK;
    FG_DO(fg_concrete(t, value));
    PyObject *content = fg_own(t, _PyLong_Copy((PyLongObject *)v->real));
    if (content == NULL)
        return FG_FLOW_ERROR;
    if (PyObject_RichCompareBool(content, value->real, Py_EQ) != 1) /* both are exact integers */
        return FG_FLOW_OK;
    return (*number = fg_value_const(t, content)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static bool is_number(const fg_value *v)
{
    return (fg_is_scalar(v) || v->kind == FG_V_CONST) &&
           (v->type == &PyLong_Type || v->type == &PyFloat_Type || v->type == &PyBool_Type || v->type == &PyComplex_Type);
}

/* Two operands of which at least one is a member and the others are numbers: *members says so, and each member is replaced by its number. */
static fg_flow numbers(fg_trace *t, fg_value **pair, const char *const *names, int n, bool *members)
{
    fg_value *now[2] = {pair[0], pair[1]};
    bool any = false, is_plain;
    *members = false;
    for (int i = 0; i < 2; i++) {
        const bool is_integer = is_member_of(pair[i], &PyLong_Type);
        if (!is_integer && !is_number(pair[i]))
            return FG_FLOW_OK;
        any |= is_integer;
    }
    for (int i = 0; i < 2 && any; i++) {
        if (!is_member_of(pair[i], &PyLong_Type))
            continue;
        FG_DO(is_as_base(t, pair[i], &PyLong_Type, names, n, &is_plain));
        if (!is_plain)
            return FG_FLOW_OK;
        FG_DO(settle(t, pair[i], &now[i]));
        if (now[i] == NULL)
            return FG_FLOW_OK;
    }
    *members = any;
    pair[0] = now[0];
    pair[1] = now[1];
    return FG_FLOW_OK;
}

fg_flow fg_enum_binary(fg_trace *t, const char *operator, fg_value * a, fg_value *b, fg_value **pair, bool *members)
{
    char text[3][32];
    const char *names[3] = {text[0], text[1], text[2]};
    snprintf(text[0], sizeof text[0], "__%s__", operator);
    snprintf(text[1], sizeof text[1], "__r%s__", operator);
    snprintf(text[2], sizeof text[2], "__i%s__", operator);
    pair[0] = a;
    pair[1] = b;
    return numbers(t, pair, names, 3, members);
}

fg_flow fg_enum_numbers(fg_trace *t, fg_value **pair, bool *members)
{
    return numbers(t, pair, comparisons, 6, members);
}

fg_flow fg_enum_compare(fg_trace *t, int op, fg_value *a, fg_value *b, PyObject **out)
{
    fg_value *pair[2] = {a, b};
    bool strings[2], members;
    *out = NULL;
    FG_DO(fg_enum_numbers(t, pair, &members));
    if (members) {
        fg_value *value;
        FG_DO(fg_scalar_compare(t, op, pair[0], pair[1], &value));
        FG_DO(fg_concrete(t, value));
        *out = value->real;
        return FG_FLOW_OK;
    }
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
