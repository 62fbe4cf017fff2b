/* Calling a functools.partial that was there before: its function with its arguments in front and its keywords below those of the call.
 *
 * The three are read where the object has them, so each is a source like any other, and a dict of keywords that somebody changes fails its facts.
 */
#include "tracer/trace_python.h"

#include <string.h>
#include <structmember.h>

static PyTypeObject *partial_type;
static PyObject *placeholder; /* of versions that have it */

static bool find_type(void)
{
    if (partial_type == NULL) {
        PyObject *module = PyImport_ImportModule("_functools");
        PyObject *type = module != NULL ? PyObject_GetAttrString(module, "partial") : NULL;
        if (type != NULL && PyType_Check(type))
            partial_type = (PyTypeObject *)type;
        placeholder = module != NULL ? PyObject_GetAttrString(module, "Placeholder") : NULL;
        Py_XDECREF(module);
        PyErr_Clear();
    }
    return partial_type != NULL;
}

/* One of its members, by the descriptor that its class has for it. */
static fg_flow part(fg_trace *t, fg_value *p, const char *text, fg_value **out)
{
    PyObject *name = fg_own(t, PyUnicode_InternFromString(text));
    PyObject *descr = name != NULL ? fg_py_type_lookup(partial_type, name) : NULL;
    if (name == NULL)
        return FG_FLOW_ERROR;
    if (descr == NULL || !Py_IS_TYPE(descr, &PyMemberDescr_Type))
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "functools.partial object");
    const Py_ssize_t offset = ((PyMemberDescrObject *)descr)->d_member->offset;
    PyObject *real = *(PyObject **)((char *)p->real + offset);
    if (real == NULL)
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "functools.partial object");
    *out = fg_value_lazy(t, FG_ACC_SLOT_ATTR, p->node, name, offset, real);
    return *out != NULL ? fg_look(t, out) : FG_FLOW_ERROR;
}

static fg_flow add_keyword(fg_trace *t, fg_value *kwargs, PyObject *name, fg_value *v)
{
    fg_value *key = fg_value_const(t, name);
    return key != NULL ? fg_dict_set(t, kwargs, key, v) : FG_FLOW_ERROR;
}

fg_flow fg_call_partial(fg_trace *t, fg_value *p, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out, bool *handled)
{
    fg_value *func, *first, *below, *kwargs = fg_value_new(t, FG_V_DICT);
    const int32_t nkw = kwnames != NULL ? (int32_t)PyTuple_GET_SIZE(kwnames) : 0, npos = n - nkw;
    *handled = false;
    if (kwargs == NULL)
        return FG_FLOW_ERROR;
    if (!find_type() || p->type != partial_type || p->node == FG_NODE_NONE || p->real == NULL)
        return FG_FLOW_OK;
    *handled = true;
    FG_DO(part(t, p, "func", &func));
    FG_DO(part(t, p, "args", &first));
    FG_DO(part(t, p, "keywords", &below));
    if (first->kind != FG_V_TUPLE || below->kind != FG_V_DICT)
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "functools.partial object");
    for (int32_t i = 0; i < first->n; i++)
        if (placeholder != NULL && first->items[i]->real == placeholder)
            return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "functools.partial object with places left open");
    FG_DO(fg_dict_load(t, below));
    kwargs->is_complete = 1;
    kwargs->type = &PyDict_Type;
    for (int32_t i = 0; i < below->map.n; i++)
        if (below->map.items[i].value != NULL) {
            if (!PyUnicode_CheckExact(below->map.items[i].key))
                return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "functools.partial object with keywords that are no strings");
            FG_DO(add_keyword(t, kwargs, below->map.items[i].key, below->map.items[i].value));
        }
    for (int32_t i = 0; i < nkw; i++)
        FG_DO(add_keyword(t, kwargs, PyTuple_GET_ITEM(kwnames, i), args[npos + i]));
    const int32_t total = first->n + npos + kwargs->map.n;
    fg_value **all = fg_arena_alloc(&t->arena, (size_t)(total + 1) * sizeof *all);
    PyObject *names = kwargs->map.n > 0 ? PyTuple_New(kwargs->map.n) : NULL;
    if (all == NULL)
        return fg_nomem();
    if (kwargs->map.n > 0 && fg_own(t, names) == NULL)
        return FG_FLOW_ERROR;
    if (first->n > 0)
        memcpy(all, first->items, (size_t)first->n * sizeof *all);
    if (npos > 0)
        memcpy(all + first->n, args, (size_t)npos * sizeof *all);
    for (int32_t i = 0; i < kwargs->map.n; i++) {
        PyTuple_SET_ITEM(names, i, Py_NewRef(kwargs->map.items[i].key));
        all[first->n + npos + i] = kwargs->map.items[i].value;
    }
    return fg_call(t, func, all, total, names, out);
}
