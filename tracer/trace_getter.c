/* Reading an attribute to its end: what has to be called for it is called.
 *
 * `o.name` goes on in the frame of the getter. getattr(o, name, default) and hasattr() are asked in the middle of an instruction and take an
 * AttributeError of the user's code for an answer, as the interpreter does: of a property, of a __getattribute__ or, asked last, of a __getattr__.
 */
#include "tracer/trace.h"

static fg_flow arguments(fg_trace *t, const fg_getter *getter, fg_value *o, fg_value *args[2], int32_t *n)
{
    args[0] = o;
    *n = getter->name != NULL ? 2 : 1;
    return *n == 1 || (args[1] = fg_value_const(t, getter->name)) != NULL ? FG_FLOW_OK : FG_FLOW_ERROR;
}

fg_flow fg_attr_lookup(fg_trace *t, fg_value *o, PyObject *name, fg_value **out)
{
    fg_getter getter = {NULL};
    FG_DO(fg_look(t, &o));
    const fg_flow flow = fg_attr_ask(t, o, name, out, &getter);
    if (flow == FG_FLOW_RAISE) /* by what a descriptor does */
        return fg_break(t, FG_BREAK_RAISES_INSIDE, "'%U' of %s", name, o->type ? o->type->tp_name : "a run-time object");
    FG_DO(flow);
    while (*out == NULL && getter.func != NULL) {
        const bool is_last = getter.is_last;
        fg_value *args[2];
        int32_t n;
        FG_DO(arguments(t, &getter, o, args, &n));
        FG_DO(fg_call_catching(t, getter.func, args, n, PyExc_AttributeError, out));
        getter.func = NULL;
        if (*out == NULL && !is_last)
            FG_DO(fg_attr_missing(t, o, name, out, &getter));
    }
    return FG_FLOW_OK;
}

/* Pushes a frame for a property's getter or a __getattr__; then *out is NULL. */
fg_flow fg_attr_load(fg_trace *t, fg_value *o, PyObject *name, fg_value **out)
{
    fg_getter getter = {NULL};
    FG_DO(fg_look(t, &o));
    FG_DO(fg_attr_ask(t, o, name, out, &getter));
    if (getter.func != NULL) {
        fg_value *args[2];
        int32_t n;
        fg_tframe *reader = t->frame;
        FG_DO(arguments(t, &getter, o, args, &n));
        FG_DO(fg_call(t, getter.func, args, n, NULL, out));
        if (!getter.is_last && t->frame != reader)
            t->frame->getter_of = o;
        return FG_FLOW_OK;
    }
    if (*out != NULL)
        return FG_FLOW_OK;
    if (o->kind == FG_V_CONST && PyType_Check(o->real))
        return fg_raise_new(t, PyExc_AttributeError, "type object '%.50s' has no attribute '%U'", ((PyTypeObject *)o->real)->tp_name, name);
    if (o->type == NULL || o->type == &PyModule_Type)
        return fg_break(t, FG_BREAK_RAISES, "'%s' object has no attribute '%U'", o->type ? o->type->tp_name : "?", name);
    return fg_raise_new(t, PyExc_AttributeError, "'%.50s' object has no attribute '%U'", o->type->tp_name, name);
}
