/* Exceptions of the program whose raising is known while tracing: `raise`, what pure functions of guarded values raise, and operations on arrays whose metadata says
 * that they fail. The trace goes on in the handler.
 *
 * Such an exception has no run-time form. Its class decides which handler takes it; its arguments and its text may be asked for; whatever else happens to it
 * breaks, and a break takes back everything from the raising instruction on (is_settled in trace_run.c), which then raises natively. Rules:
 *  1. Nothing is raised that no traced frame handles, and nothing out of a generator: that breaks. What leaves code that an operation has called (fg_call_now) is
 *     raised by the operation. One that takes it for an answer (getattr() with a default) ends it there (fg_call_catching).
 *  2. An instruction raises before it has changed anything.
 *  3. In a handler a step that may fail carries a context (fg_context_here): the exception that it would have been raised on top of.
 */
#include "tracer/trace_python.h"

#include <stdarg.h>
#include <string.h>

/* In a value: c the class (or NULL), items the arguments, standin an example (or NULL), index the site, step the inlined calls between that and the
 * handling frame, is_complete: a context can be made of it. */
static fg_value *exception_new(fg_trace *t, PyTypeObject *type, fg_value *cls, PyObject *example, fg_value *const *args, int32_t n)
{
    fg_value *v = fg_value_seq(t, FG_V_OPAQUE, args, n);
    if (v == NULL)
        return NULL;
    v->is_complete = 0;
    v->type = type;
    v->c = cls;
    v->standin = example;
    v->index = fg_site_here(t);
    return v->index < 0 ? NULL : v;
}

bool fg_is_exception(const fg_value *v)
{
    return v->kind == FG_V_OPAQUE && v->reg == FG_REG_NONE && v->node == FG_NODE_NONE && v->type != NULL &&
           PyExceptionClass_Check((PyObject *)v->type);
}

bool fg_may_raise(fg_trace *t)
{
    for (fg_tframe *f = t->frame; f != NULL; f = f->parent) {
        const int32_t handler = f->icode->instrs[f->pc].handler;
        if (handler >= 0 && !fg_icode_handler_is_quiet(f->icode, handler))
            return true;
        if (f->catches != NULL)
            return true;
        if (f->is_generator)
            return false;
    }
    return false;
}

fg_flow fg_raise(fg_trace *t, fg_value *exception)
{
    if (exception == NULL)
        return FG_FLOW_ERROR;
    if (!fg_is_exception(exception) || !fg_may_raise(t))
        return fg_break(t, FG_BREAK_RAISES, "%s", exception->type ? exception->type->tp_name : "raise");
    if (t->handled != NULL && exception->is_complete) /* it gets a context and a longer traceback itself */
        FG_SET(t, exception->is_complete, 0);
    FG_SET(t, t->raised, exception);
    return FG_FLOW_RAISE;
}

/* The same exception can be made again from its class and arguments. */
static bool can_be_made_again(PyObject *example)
{
    PyObject *args = PyObject_GetAttrString(example, "args"), *again = NULL, *a = NULL, *b = NULL;
    bool same = args != NULL && PyTuple_CheckExact(args) && fg_is_fold_const(args) && fg_py_is_simple_exception(Py_TYPE(example), NULL) &&
                (again = PyObject_CallObject((PyObject *)Py_TYPE(example), args)) != NULL && (a = PyObject_Str(example)) != NULL &&
                (b = PyObject_Str(again)) != NULL && PyUnicode_Compare(a, b) == 0;
    Py_XDECREF(args);
    Py_XDECREF(again);
    Py_XDECREF(a);
    Py_XDECREF(b);
    PyErr_Clear();
    return same;
}

static fg_flow raise_example(fg_trace *t, PyObject *example)
{
    PyObject *args = fg_own(t, PyObject_GetAttrString(example, "args"));
    if (args == NULL || !PyTuple_CheckExact(args))
        return fg_break_on_error(t, FG_BREAK_RAISES, "an exception");
    fg_value *v = exception_new(t, Py_TYPE(example), NULL, example, NULL, 0);
    if (v == NULL)
        return FG_FLOW_ERROR;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) {
        fg_value *item = fg_value_const(t, PyTuple_GET_ITEM(args, i));
        if (item == NULL)
            return FG_FLOW_ERROR;
        FG_DO(fg_seq_append(t, v, item));
    }
    v->is_complete = can_be_made_again(example);
    return fg_raise(t, v);
}

fg_flow fg_raise_error(fg_trace *t, const char *what)
{
    if (!PyErr_Occurred() || !PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError) ||
        PyErr_ExceptionMatches(PyExc_RecursionError) || !fg_may_raise(t))
        return fg_break_on_error(t, FG_BREAK_RAISES, what);
    PyObject *type, *value, *tb;
    PyErr_Fetch(&type, &value, &tb);
    PyErr_NormalizeException(&type, &value, &tb);
    Py_XDECREF(type);
    Py_XDECREF(tb);
    return value != NULL && fg_own(t, value) != NULL ? raise_example(t, value) : FG_FLOW_ERROR;
}

fg_flow fg_raise_new(fg_trace *t, PyObject *type, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    PyErr_FormatV(type, format, args);
    va_end(args);
    return fg_raise_error(t, ((PyTypeObject *)type)->tp_name);
}

fg_flow fg_raise_key_error(fg_trace *t, PyObject *key)
{
    if (!fg_is_key_const(key)) /* an object of the user's, which the exception would keep */
        return fg_break(t, FG_BREAK_RAISES, "KeyError");
    PyObject *example = PyObject_CallOneArg(PyExc_KeyError, key);
    if (example == NULL)
        return FG_FLOW_ERROR;
    PyErr_SetObject(PyExc_KeyError, example);
    Py_DECREF(example);
    return fg_raise_error(t, "KeyError");
}

/* Whether it is an instance of this class. */
static fg_flow is_a(fg_trace *t, const fg_value *exception, PyTypeObject *type, bool *yes)
{
    if (exception->c != NULL && (exception->type->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return fg_is_subtype(t, exception->c, exception->type, type, yes);
    *yes = PyType_IsSubtype(exception->type, type);
    return FG_FLOW_OK;
}

/* An AttributeError of a property is a question to a __getattr__, where the class has one. */
static fg_flow leave_getter(fg_trace *t, const fg_tframe *f)
{
    bool is_absence;
    fg_value *type, *hook;
    FG_DO(is_a(t, t->raised, (PyTypeObject *)PyExc_AttributeError, &is_absence));
    if (!is_absence)
        return FG_FLOW_OK;
    FG_DO(fg_object_type(t, f->getter_of, &type));
    FG_DO(fg_type_lookup(t, type, f->getter_of->type, fg_names.s_getattr, &hook));
    return hook == NULL ? FG_FLOW_OK : fg_break(t, FG_BREAK_RAISES, "an AttributeError in a property");
}

/* An exception that some operations take for an answer: the end of an iterator or sequence, an attribute that is to be looked for elsewhere. */
static bool is_answer(PyTypeObject *type)
{
    return PyType_IsSubtype(type, (PyTypeObject *)PyExc_StopIteration) || PyType_IsSubtype(type, (PyTypeObject *)PyExc_IndexError) ||
           PyType_IsSubtype(type, (PyTypeObject *)PyExc_AttributeError);
}

fg_flow fg_unwind(fg_trace *t)
{
    fg_value *none = fg_value_const(t, Py_None);
    if (none == NULL)
        return FG_FLOW_ERROR;
    for (int32_t levels = 0;; levels++) {
        fg_tframe *f = t->frame;
        const fg_instr *in = &f->icode->instrs[f->pc];
        if (in->handler >= 0) {
            const fg_handler *h = &f->icode->handlers[in->handler];
            if (h->lasti) /* read by nothing that is traced */
                FG_SET(t, f->stack[h->depth], none);
            FG_SET(t, f->stack[h->depth + h->lasti], t->raised);
            FG_SET(t, f->sp, h->depth + h->lasti + 1);
            FG_SET(t, f->pc, h->target);
            FG_SET(t, t->raised->step, t->raised->step < 0 ? levels : t->raised->step + levels);
            return FG_FLOW_OK;
        }
        if (f == t->root)
            return fg_break(t, FG_BREAK_INTERNAL, "an exception without a handler");
        bool is_caught = false;
        if (f->catches != NULL)
            FG_DO(is_a(t, t->raised, f->catches, &is_caught));
        const bool is_inside = f->on_result == FG_RESULT_KEEP;
        if (!is_caught && (f->is_generator || (is_inside && is_answer(t->raised->type))))
            return fg_break(t, FG_BREAK_RAISES, "%s", t->raised->type->tp_name);
        if (f->getter_of != NULL)
            FG_DO(leave_getter(t, f));
        FG_SET(t, t->frame, f->parent);
        FG_SET(t, t->inline_depth, t->inline_depth - 1);
        if (is_caught)
            return FG_FLOW_OK;
        if (is_inside) { /* and so does the operation that has run it */
            FG_SET(t, t->raised->step, (t->raised->step < 0 ? 0 : t->raised->step) + levels + 1);
            return FG_FLOW_RAISE;
        }
    }
}

/* --- raise */

/* What stands behind `raise`: a class, or an instance that was made right before and that nobody else has. */
static fg_flow exception_of(fg_trace *t, fg_value *v, fg_value **out)
{
    FG_DO(fg_look(t, &v));
    *out = v;
    if (fg_is_exception(v))
        return FG_FLOW_OK;
    if (v->kind == FG_V_CONST && PyExceptionClass_Check(v->real)) {
        PyTypeObject *type = (PyTypeObject *)v->real;
        if (!fg_py_is_plain_exception(type) || !fg_py_is_simple_exception(type, NULL))
            return fg_break(t, FG_BREAK_RAISES, "raise %s", type->tp_name);
        PyObject *example = fg_own(t, PyObject_CallNoArgs(v->real));
        if (example == NULL)
            return fg_break_on_error(t, FG_BREAK_RAISES, "raise");
        *out = exception_new(t, type, v, example, NULL, 0);
        if (*out != NULL)
            (*out)->is_complete = 1;
        return *out ? FG_FLOW_OK : FG_FLOW_ERROR;
    }
    if (v->kind != FG_V_OPAQUE || v->reg == FG_REG_NONE || v->c == NULL || t->ir.regs[v->reg].kind != FG_REG_STEP ||
        t->ir.regs[v->reg].index != t->ir.n_steps - 1)
        return fg_break(t, FG_BREAK_RAISES, "raise of a %s", v->type ? v->type->tp_name : "run-time object");
    fg_value *made = exception_new(t, v->type, v->c, NULL, v->items, v->n);
    if (made == NULL)
        return FG_FLOW_ERROR;
    FG_SET(t, v->reg, FG_REG_NONE); /* nobody asks for it any more, so it is not made */
    *out = made;
    PyObject *args = PyTuple_New(v->n);
    bool is_const = args != NULL;
    for (int32_t i = 0; args != NULL && i < v->n; i++) {
        is_const = is_const && v->items[i]->kind == FG_V_CONST && fg_is_fold_const(v->items[i]->real);
        PyTuple_SET_ITEM(args, i, Py_NewRef(is_const ? v->items[i]->real : Py_None));
    }
    if (is_const) {
        made->standin = fg_own(t, PyObject_CallObject((PyObject *)v->type, args));
        made->is_complete = made->standin != NULL;
    }
    Py_XDECREF(args);
    return PyErr_Occurred() ? FG_FLOW_ERROR : FG_FLOW_OK;
}

fg_flow fg_raise_statement(fg_trace *t, int32_t n, fg_value *const *operands)
{
    if (!fg_may_raise(t))
        return fg_break(t, FG_BREAK_RAISES, "raise");
    if (n == 0) /* the one that is being handled, by this function or by one that called it */
        return t->handled ? fg_raise(t, t->handled->exception) : fg_break(t, FG_BREAK_RAISES, "raise of what is being handled");
    fg_value *exception, *cause = NULL;
    if (n == 2) {
        cause = operands[1];
        FG_DO(fg_look(t, &cause));
        if (!(cause->kind == FG_V_CONST && (cause->real == Py_None || PyExceptionClass_Check(cause->real))) && !fg_is_exception(cause))
            return fg_break(t, FG_BREAK_RAISES, "raise from a %s", cause->type ? cause->type->tp_name : "run-time object");
    }
    FG_DO(exception_of(t, operands[0], &exception));
    if (cause != NULL && exception->is_complete) /* a context is made without a cause */
        FG_SET(t, exception->is_complete, 0);
    return fg_raise(t, exception);
}

/* --- handlers */

fg_flow fg_handling_begin(fg_trace *t, fg_value *exception)
{
    struct fg_handled *h = fg_arena_alloc(&t->arena, sizeof *h);
    if (h == NULL)
        return fg_nomem();
    if (!fg_is_exception(exception))
        return fg_break(t, FG_BREAK_EXCEPTION_HANDLING, "a handler");
    *h = (struct fg_handled){exception, t->handled};
    FG_SET(t, t->handled, h);
    return FG_FLOW_OK;
}

fg_flow fg_handling_end(fg_trace *t)
{
    if (t->handled == NULL)
        return fg_break(t, FG_BREAK_EXCEPTION_HANDLING, "the end of a handler");
    FG_SET(t, t->handled, t->handled->outer);
    return FG_FLOW_OK;
}

fg_flow fg_context_here(fg_trace *t, int32_t *id)
{
    *id = -1;
    if (t->handled == NULL || fg_is_covered(t))
        return FG_FLOW_OK;
    fg_value *v = t->handled->exception;
    PyObject *args = fg_own(t, PyObject_GetAttrString(v->standin, "args"));
    if (args == NULL)
        return fg_break_on_error(t, FG_BREAK_EXCEPTION_HANDLING, "arguments of an exception");
    *id = t->ir.n_contexts - 1;
    const fg_ir_context *last = *id >= 0 ? &t->ir.contexts[*id] : NULL;
    if (last != NULL && last->site == (int32_t)v->index && last->levels == v->step && last->args == args)
        return FG_FLOW_OK;
    fg_reg type; /* there for as long as the code runs: a constant or an input */
    if (v->c != NULL)
        FG_DO(fg_materialise(t, v->c, &type));
    else if ((type = fg_ir_reg_add(&t->ir, FG_REG_CONST, (PyObject *)v->type)) == FG_REG_NONE)
        return fg_nomem();
    fg_ir_context *context = fg_ir_context_add(&t->ir);
    if (context == NULL)
        return fg_nomem();
    *context = (fg_ir_context){type, args, (int32_t)v->index, v->step};
    ++*id;
    return FG_FLOW_OK;
}

fg_flow fg_exception_matches(fg_trace *t, fg_value *exception, fg_value *type, bool *yes)
{
    FG_DO(fg_look(t, &type));
    *yes = false;
    if (type->kind == FG_V_TUPLE || (type->kind == FG_V_CONST && PyTuple_CheckExact(type->real))) {
        fg_value **items;
        int32_t n;
        bool found = false;
        FG_DO(fg_deeper(t));
        FG_DO(fg_iterate(t, type, &items, &n));
        for (int32_t i = 0; i < n; i++) { /* all of them: one that is no class is an error wherever it stands */
            FG_DO(fg_look(t, &items[i]));
            if (items[i]->kind != FG_V_CONST)
                return fg_break(t, FG_BREAK_RAISES, "a handler for what is no class");
            FG_DO(fg_exception_matches(t, exception, items[i], &found));
            *yes |= found;
        }
        return FG_FLOW_OK;
    }
    if (!fg_is_exception(exception) || type->kind != FG_V_CONST || !PyExceptionClass_Check(type->real))
        return fg_break(t, FG_BREAK_RAISES, "a handler for what is no exception class");
    return is_a(t, exception, (PyTypeObject *)type->real, yes);
}

fg_flow fg_exception_attr(fg_trace *t, fg_value *exception, PyObject *name, fg_value **out)
{
    PyTypeObject *base = (PyTypeObject *)PyExc_BaseException;
    if (PyUnicode_CompareWithASCIIString(name, "args") == 0 && fg_py_type_lookup(exception->type, name) == fg_py_type_lookup(base, name) &&
        exception->type->tp_getattro == base->tp_getattro) {
        if (exception->c != NULL && (exception->type->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
            fg_value *found;
            FG_DO(fg_type_lookup(t, exception->c, exception->type, name, &found));
        }
        for (int32_t i = 0; i < exception->n; i++)
            if (exception->items[i]->kind == FG_V_CONST && exception->items[i]->node == FG_NODE_NONE &&
                !fg_is_fold_const(exception->items[i]->real))
                return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'args' of %s", exception->type->tp_name);
        return (*out = fg_value_seq(t, FG_V_TUPLE, exception->items, exception->n)) ? FG_FLOW_OK : FG_FLOW_ERROR;
    }
    return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of an exception", name);
}

fg_flow fg_exception_text(fg_trace *t, fg_value *exception, int kind, fg_value **out)
{
    if (exception->standin == NULL || kind > 2 || (exception->type->tp_flags & Py_TPFLAGS_HEAPTYPE && exception->c != NULL))
        return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "the text of an exception");
    PyObject *text = kind == 2 ? PyObject_Repr(exception->standin) : PyObject_Str(exception->standin);
    if (text == NULL)
        return fg_break_on_error(t, FG_BREAK_UNSUPPORTED_VALUE, "the text of an exception");
    return fg_own(t, text) && (*out = fg_value_const(t, text)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}
