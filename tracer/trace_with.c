/* `with`: context managers whose __enter__ and __exit__ are Python functions are traced into. On the way of an exception that is known, __exit__ is traced too; what
 * a step raises at run time goes to the user's own handler (trace_catch.c), which calls the real __exit__.
 */
#include "tracer/trace_python.h"

static fg_flow find(fg_trace *t, fg_value *manager, PyObject *name, fg_value **out)
{
    fg_value *type;
    FG_DO(fg_object_type(t, manager, &type));
    FG_DO(fg_type_lookup(t, type, manager->type, name, out));
    if (*out == NULL)
        return fg_break(t, FG_BREAK_RAISES, "'%s' object does not support the context manager protocol", manager->type->tp_name);
    FG_DO(fg_look(t, out));
    return (*out)->kind == FG_V_FUNC ? FG_FLOW_OK : fg_break(t, FG_BREAK_CONTEXT_MANAGER, "%U of %s", name, manager->type->tp_name);
}

fg_flow fg_with_enter(fg_trace *t, fg_value *manager, fg_value **exit, fg_value **out)
{
    fg_value *enter, *leave;
    FG_DO(fg_look(t, &manager));
    if (manager->ambient != NULL && !fg_is_ambient_exit(manager))
        return fg_ambient_begin(t, manager, exit, out);
    if (manager->kind != FG_V_OBJECT || manager->type == &PyModule_Type)
        return fg_break(t, FG_BREAK_CONTEXT_MANAGER, "with %s", manager->type ? manager->type->tp_name : "a run-time object");
    FG_DO(find(t, manager, fg_names.s_enter, &enter));
    FG_DO(find(t, manager, fg_names.s_exit, &leave));
    fg_value *bound = fg_value_new(t, FG_V_METHOD);
    if (bound == NULL)
        return FG_FLOW_ERROR;
    bound->type = &PyMethod_Type;
    bound->a = leave;
    bound->b = manager;
    bound->key = fg_names.s_exit;
    *exit = bound;
    FG_DO(fg_call(t, enter, &manager, 1, NULL, out));
    return FG_FLOW_OK;
}

fg_flow fg_with_leave(fg_trace *t, fg_value *exit, fg_value *exception, fg_value **out)
{
    if (!fg_is_exception(exception))
        return fg_break(t, FG_BREAK_EXCEPTION_HANDLING, "with");
    if (fg_is_ambient_exit(exit))
        return fg_ambient_end(t, exit, out);
    fg_value *type = exception->c ? exception->c : fg_value_const(t, (PyObject *)exception->type),
             *traceback = fg_value_new(t, FG_V_OPAQUE);
    if (type == NULL || traceback == NULL)
        return FG_FLOW_ERROR;
    traceback->type = &PyTraceBack_Type;
    fg_value *args[3] = {type, exception, traceback};
    return fg_call(t, exit, args, 3, NULL, out);
}
