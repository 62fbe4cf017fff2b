/* `o.__dict__` and vars(o), read: the attributes of an instance as a dict (a view of the object, iter_kind FG_VIEW_ATTRS).
 *
 * Each name that is asked for is a fact about the instance, as if the attribute were read without its class; the dict itself is only taken at run time where it is
 * passed on. Rules: names are exact strings; whatever would change the dict, or ask for all of it, breaks.
 */
#include "runtime/cpython/dict.h"
#include "tracer/trace_python.h"

#include <string.h>
#include <structmember.h>

bool fg_is_attrs(const fg_value *v)
{
    return v->kind == FG_V_VIEW && v->iter_kind == FG_VIEW_ATTRS;
}

fg_flow fg_attrs_new(fg_trace *t, fg_value *o, fg_value **out)
{
    if ((*out = fg_value_new(t, FG_V_VIEW)) == NULL)
        return FG_FLOW_ERROR;
    (*out)->a = o;
    (*out)->iter_kind = FG_VIEW_ATTRS;
    (*out)->type = &PyDict_Type;
    return FG_FLOW_OK;
}

fg_flow fg_attrs_get(fg_trace *t, fg_value *attrs, fg_value *name, fg_value **out)
{
    fg_value *o = attrs->a;
    PyObject *key;
    FG_DO(fg_key_const(t, name, &key));
    if (!PyUnicode_CheckExact(key))
        return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "a %s as name of an attribute", Py_TYPE(key)->tp_name);
    PyObject *in_class = fg_py_type_lookup(o->type, key);
    if (in_class != NULL && Py_IS_TYPE(in_class, &PyMemberDescr_Type)) /* the overlay has slots too */
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' is a slot and may be in the __dict__ of a %s", key, o->type->tp_name);
    const fg_vitem *item = fg_map_find(&o->map, key, PyObject_Hash(key));
    if (item == NULL)
        return fg_attr_in_instance(t, o, key, out);
    *out = item->value;
    return FG_FLOW_OK;
}

fg_flow fg_attrs_method(fg_trace *t, fg_value *attrs, PyObject *name, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out)
{
    bool contains = PyUnicode_CompareWithASCIIString(name, "__contains__") == 0;
    if (kwnames != NULL || !((contains && n == 1) || (PyUnicode_CompareWithASCIIString(name, "get") == 0 && (n == 1 || n == 2))))
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%U of the __dict__ of a %s", name, attrs->a->type->tp_name);
    FG_DO(fg_attrs_get(t, attrs, args[0], out));
    if (contains)
        *out = fg_value_const(t, *out != NULL ? Py_True : Py_False);
    else if (*out == NULL)
        *out = n == 2 ? args[1] : fg_value_const(t, Py_None);
    return *out ? FG_FLOW_OK : FG_FLOW_ERROR;
}
