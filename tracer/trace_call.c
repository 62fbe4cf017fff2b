/* Calls: what is called decides whether it is a tensor operation, something known, a function to trace into, or the end of the graph. */
#include "runtime/cpython/function.h"
#include "tracer/trace_python.h"

#include <string.h>

enum { MAX_INLINE_DEPTH = 180 };

/* --- binding arguments to a Python function */

typedef struct fg_binding {
    PyCodeObject *code;
    fg_value *func;
    fg_value **locals;
    fg_node node; /* of an existing function, or FG_NODE_NONE */
} fg_binding;

static fg_flow default_value(fg_trace *t, const fg_binding *b, int32_t i, fg_value **out)
{
    *out = NULL;
    if (b->node == FG_NODE_NONE) {
        fg_value *defaults = b->func->a;
        int32_t first = b->code->co_argcount - (defaults ? defaults->n : 0);
        if (defaults != NULL && i >= first)
            *out = defaults->items[i - first];
        return FG_FLOW_OK;
    }
    PyObject *defaults = PyFunction_GET_DEFAULTS(b->func->real);
    Py_ssize_t n = defaults ? PyTuple_GET_SIZE(defaults) : 0, first = b->code->co_argcount - n;
    if (i < first)
        return FG_FLOW_OK;
    fg_node node;
    FG_DO(fg_source(t, FG_ACC_FUNC_DEFAULTS, b->node, NULL, 0, &node));
    FG_DO(fg_guard(t, FG_GUARD_LENGTH, node, NULL, n, n));
    *out = fg_value_lazy(t, FG_ACC_TUPLE_ITEM, node, NULL, i - first, PyTuple_GET_ITEM(defaults, i - first));
    return *out ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static fg_flow kwdefault_value(fg_trace *t, const fg_binding *b, PyObject *name, fg_value **out)
{
    *out = NULL;
    if (b->node == FG_NODE_NONE) {
        if (b->func->b != NULL)
            FG_DO(fg_dict_get(t, b->func->b, name, out));
        return FG_FLOW_OK;
    }
    PyObject *dict = PyFunction_GET_KW_DEFAULTS(b->func->real);
    if (dict == NULL)
        return FG_FLOW_OK;
    fg_value *defaults = fg_value_lazy(t, FG_ACC_FUNC_KWDEFAULTS, b->node, NULL, 0, dict);
    if (defaults == NULL)
        return FG_FLOW_ERROR;
    FG_DO(fg_look(t, &defaults)); /* somebody may have written it */
    return defaults->kind == FG_V_DICT ? fg_dict_get(t, defaults, name, out)
                                       : fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "defaults in no plain dict");
}

static PyObject *local_name(PyCodeObject *code, int32_t i)
{
    return PyTuple_GET_ITEM(code->co_localsplusnames, i);
}

static fg_flow bind_keywords(fg_trace *t, const fg_binding *b, fg_value **values, PyObject *kwnames, fg_value *kwargs)
{
    PyCodeObject *code = b->code;
    int32_t named = code->co_argcount + code->co_kwonlyargcount;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); k++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k);
        int32_t at = -1;
        for (int32_t i = code->co_posonlyargcount; i < named && at < 0; i++)
            if (local_name(code, i) == name || PyUnicode_Compare(local_name(code, i), name) == 0)
                at = i;
        if (at >= 0) {
            if (b->locals[at] != NULL)
                return fg_break(t, FG_BREAK_RAISES, "%U() got multiple values for argument '%U'", code->co_name, name);
            b->locals[at] = values[k];
        } else if (kwargs == NULL) {
            return fg_break(t, FG_BREAK_RAISES, "%U() got an unexpected keyword argument '%U'", code->co_name, name);
        } else {
            fg_value *key = fg_value_const(t, name);
            if (key == NULL)
                return FG_FLOW_ERROR;
            FG_DO(fg_dict_set(t, kwargs, key, values[k]));
        }
    }
    return FG_FLOW_OK;
}

static fg_flow bind(fg_trace *t, const fg_binding *b, fg_value **args, int32_t n, PyObject *kwnames)
{
    PyCodeObject *code = b->code;
    int32_t npos = n - (kwnames ? (int32_t)PyTuple_GET_SIZE(kwnames) : 0), named = code->co_argcount + code->co_kwonlyargcount, at = named;
    fg_value *kwargs = NULL;
    for (int32_t i = 0; i < npos && i < code->co_argcount; i++)
        b->locals[i] = args[i];
    if (code->co_flags & CO_VARARGS) {
        int32_t extra = npos > code->co_argcount ? npos - code->co_argcount : 0;
        if ((b->locals[at++] = fg_value_seq(t, FG_V_TUPLE, extra ? args + code->co_argcount : NULL, extra)) == NULL)
            return FG_FLOW_ERROR;
    } else if (npos > code->co_argcount) {
        return fg_break(t, FG_BREAK_RAISES, "%U() takes %d positional arguments but %d were given", code->co_name, code->co_argcount, npos);
    }
    if (code->co_flags & CO_VARKEYWORDS) {
        if ((kwargs = fg_value_new(t, FG_V_DICT)) == NULL)
            return FG_FLOW_ERROR;
        kwargs->is_complete = 1;
        kwargs->type = &PyDict_Type;
        b->locals[at] = kwargs;
    }
    if (kwnames != NULL)
        FG_DO(bind_keywords(t, b, args + npos, kwnames, kwargs));
    for (int32_t i = 0; i < named; i++) {
        if (b->locals[i] != NULL)
            continue;
        if (i < code->co_argcount)
            FG_DO(default_value(t, b, i, &b->locals[i]));
        else
            FG_DO(kwdefault_value(t, b, local_name(code, i), &b->locals[i]));
        if (b->locals[i] == NULL)
            return fg_break(t, FG_BREAK_RAISES, "%U() missing argument '%U'", code->co_name, local_name(code, i));
    }
    return FG_FLOW_OK;
}

/* --- pushing a frame */

static fg_flow existing_parts(fg_trace *t, fg_value *f, fg_tframe *frame)
{
    PyFunctionObject *real = (PyFunctionObject *)f->real;
    fg_node node = f->node;
    if (real->func_globals == t->root->globals->real && node == FG_NODE_NONE)
        return fg_break(t, FG_BREAK_INTERNAL, "function without a source");
    if ((frame->globals = fg_value_lazy(t, FG_ACC_FUNC_GLOBALS, node, NULL, 0, real->func_globals)) == NULL ||
        (frame->builtins = fg_value_lazy(t, FG_ACC_FUNC_BUILTINS, node, NULL, 0, real->func_builtins)) == NULL)
        return FG_FLOW_ERROR;
    if (!PyDict_CheckExact(real->func_globals))
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "a function whose globals are no plain dict");
    if (real->func_closure != NULL) {
        frame->closure = fg_value_lazy(t, FG_ACC_FUNC_CLOSURE, node, NULL, 0, real->func_closure);
        if (frame->closure == NULL)
            return FG_FLOW_ERROR;
        FG_DO(fg_look(t, &frame->closure));
    }
    return FG_FLOW_OK;
}

/* A generator without a handler that does anything has no clean-up to run when it is dropped half way, so it may be run on demand. */
static bool has_no_cleanup(const fg_icode *icode)
{
    if (PyBytes_GET_SIZE(icode->code->co_exceptiontable) == 0)
        return true;
    for (int32_t h = 0; h < icode->n_handlers; h++) {
        if (!fg_icode_handler_is_quiet(icode, h))
            return false;
    }
    return icode->n_handlers > 0;
}

/* A generator expression may ask for its iterator when it is made (since 3.15): what stands before RETURN_GENERATOR is done now. */
static fg_flow begin_generator(fg_trace *t, fg_tframe *frame)
{
    const fg_icode *icode = frame->icode;
    int32_t end = 0;
    bool asks = false;
    for (; end < icode->n_instrs && icode->instrs[end].op != FG_OP_RETURN_GENERATOR; end++)
        asks |= icode->instrs[end].op == FG_OP_GET_ITER;
    if (!asks)
        return FG_FLOW_OK;
    for (; frame->pc < end; frame->pc++) {
        const fg_instr *in = &icode->instrs[frame->pc];
        switch (in->op) {
        case FG_OP_NOP:
        case FG_OP_RESUME: break;
        case FG_OP_COPY_FREE_VARS:
            if (frame->closure == NULL || frame->closure->n < in->arg)
                return fg_break(t, FG_BREAK_INTERNAL, "closure");
            for (int32_t i = 0; i < in->arg; i++)
                frame->locals[frame->n_locals - in->arg + i] = frame->closure->items[i];
            break;
        case FG_OP_LOAD_FAST: frame->stack[frame->sp++] = frame->locals[in->arg]; break;
        case FG_OP_GET_ITER: FG_DO(fg_iter_new(t, frame->stack[frame->sp - 1], &frame->stack[frame->sp - 1])); break;
        default: return fg_break(t, FG_BREAK_GENERATOR, "%s in what makes a generator expression", fg_cop_name(in->op));
        }
    }
    return FG_FLOW_OK;
}

fg_flow fg_call_python(fg_trace *t, fg_value *f, fg_value *self, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out)
{
    *out = NULL;
    bool existing = f->node != FG_NODE_NONE;
    PyCodeObject *code = (PyCodeObject *)(existing ? PyFunction_GET_CODE(f->real) : f->real);
    if (existing && !fg_function_runs_its_code((PyFunctionObject *)f->real))
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%U(), which an extension has given another way to be called", code->co_name);
    if (existing) {
        fg_node at;
        FG_DO(fg_source(t, FG_ACC_FUNC_CODE, f->node, NULL, 0, &at));
        FG_DO(fg_guard(t, FG_GUARD_ID, at, (PyObject *)code, 0, 0));
    }
    const int suspends = code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE);
    if (suspends && suspends != CO_GENERATOR)
        return fg_break(t, FG_BREAK_GENERATOR, "%U() is a generator or coroutine", code->co_name);
    if (!(code->co_flags & CO_OPTIMIZED))
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%U() is no plain function", code->co_name);
    if (t->inline_depth >= MAX_INLINE_DEPTH)
        return fg_break(t, FG_BREAK_RECURSION, "%U() nested %d deep", code->co_name, t->inline_depth);
    fg_icode *icode;
    fg_status st = fg_decode(code, &icode);
    if (st != FG_OK)
        return st == FG_ERR_NOMEM ? fg_nomem() : fg_break_on_error(t, FG_BREAK_UNSUPPORTED_CALL, "bytecode that cannot be read");
    if (fg_icode_remakes_cell(icode)) {
        fg_icode_release(icode);
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%U() has a comprehension that changes a variable of an outer function",
                        code->co_name);
    }
    PyObject *holder = fg_py_icode_capsule(icode); /* released with the trace */
    if (fg_own(t, holder) == NULL)
        return FG_FLOW_ERROR;
    const bool is_generator = suspends && has_no_cleanup(icode);
    if (suspends && !is_generator)
        return fg_break(t, FG_BREAK_GENERATOR, "%U() is a generator or coroutine", code->co_name);
    fg_tframe *frame = fg_arena_alloc(&t->arena, sizeof *frame);
    if (frame == NULL)
        return fg_nomem();
    frame->icode = icode;
    frame->n_locals = (int32_t)PyTuple_GET_SIZE(code->co_localsplusnames);
    frame->locals = fg_arena_alloc(&t->arena, (size_t)(frame->n_locals + 1) * sizeof *frame->locals);
    frame->stack = fg_arena_alloc(&t->arena, (size_t)(icode->max_depth + 4) * sizeof *frame->stack);
    if (frame->locals == NULL || frame->stack == NULL)
        return fg_nomem();
    if (self != NULL) {
        fg_value **all = fg_arena_alloc(&t->arena, (size_t)(n + 1) * sizeof *all);
        if (all == NULL)
            return fg_nomem();
        all[0] = self;
        if (n)
            memcpy(all + 1, args, (size_t)n * sizeof *args);
        args = all;
        n++;
    }
    fg_binding binding = {code, f, frame->locals, existing ? f->node : FG_NODE_NONE};
    FG_DO(bind(t, &binding, args, n, kwnames));
    if (existing) {
        FG_DO(existing_parts(t, f, frame));
    } else {
        FG_DO(fg_look(t, &f->d));
        frame->globals = f->d;
        frame->builtins = t->root->builtins;
        frame->closure = f->c;
        if (f->d != t->frame->globals)
            frame->builtins = t->frame->builtins;
    }
    frame->parent = t->frame;
    frame->func = f;
    frame->site = fg_site_here(t);
    frame->site_id = -1;
    frame->covered = fg_is_covered_inside(t);
    frame->hidden = t->frame->hidden || fg_py_is_polyfill(code);
    frame->library = fg_py_is_library(code);
    if (frame->site < 0)
        return fg_nomem();
    if (is_generator) {
        frame->is_generator = 1;
        FG_DO(begin_generator(t, frame));
        if ((*out = fg_value_new(t, FG_V_ITER)) == NULL)
            return FG_FLOW_ERROR;
        (*out)->iter_kind = FG_ITER_GENERATOR;
        (*out)->type = &PyGen_Type;
        (*out)->frame = frame;
        return FG_FLOW_OK;
    }
    FG_SET(t, t->frame, frame);
    FG_SET(t, t->inline_depth, t->inline_depth + 1);
    return FG_FLOW_OK;
}

/* --- rules that the package or the user gave */

static const fg_op_row *allowed_row(fg_trace *t)
{
    static fg_op_row row = {.flags = FG_OPF_SCALARS | FG_OPF_CREATES | FG_OPF_STATE, .raises = FG_RAISES_DATA, .result = FG_RESULT_TENSOR};
    (void)t;
    if (row.name == NULL)
        row.name = PyUnicode_InternFromString("allowed in graph");
    return row.name ? &row : NULL;
}

static fg_flow call_constant(fg_trace *t, PyObject *callable, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out)
{
    PyObject *stack[16];
    Py_ssize_t nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    if (n > 16)
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "assume_constant_result with %d arguments", n);
    for (int32_t i = 0; i < n; i++) {
        FG_DO(fg_look(t, &args[i]));
        if (args[i]->kind == FG_V_SCALAR)
            FG_DO(fg_concrete(t, args[i]));
        if (args[i]->real == NULL || args[i]->is_mutated)
            return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "assume_constant_result with an argument made in the function");
        stack[i] = args[i]->real;
    }
    PyObject *result = PyObject_Vectorcall(callable, stack, (size_t)(n - nkw), kwnames);
    if (result == NULL)
        return fg_break_on_error(t, FG_BREAK_RAISES, "assume_constant_result");
    if (fg_own(t, result) == NULL)
        return FG_FLOW_ERROR;
    if (fg_is_fold_const(result))
        return (*out = fg_value_const(t, result)) ? FG_FLOW_OK : FG_FLOW_ERROR;
    /* any other object is a constant of the entry, reached through a source so that it is looked at like an argument */
    return (*out = fg_value_lazy(t, FG_ACC_CONST, FG_NODE_NONE, result, 0, result)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static fg_flow call_by_rule(fg_trace *t, PyObject *rule, PyObject *callable, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out,
                            bool *handled)
{
    *handled = true;
    t->uses_rules = true;
    if (PyTuple_Check(rule)) { /* ("substitute", function) */
        PyObject *target = PyTuple_GET_ITEM(rule, 1);
        fg_value *f = fg_value_lazy(t, FG_ACC_CONST, FG_NODE_NONE, target, 0, target);
        return f ? fg_call(t, f, args, n, kwnames, out) : FG_FLOW_ERROR;
    }
    const char *text = PyUnicode_Check(rule) ? PyUnicode_AsUTF8(rule) : NULL;
    PyObject *name = fg_py_callable_name(callable);
    if (text == NULL || name == NULL || fg_own(t, name) == NULL)
        return FG_FLOW_ERROR;
    if (strcmp(text, "graph") == 0) {
        if (t->handled != NULL) /* it might ask what is being handled */
            return fg_break(t, FG_BREAK_EXCEPTION_HANDLING, "%U called by a handler", name);
        const fg_op_row *row = allowed_row(t);
        return row ? fg_tensor_call(t, row, callable, args, n, kwnames, out) : FG_FLOW_ERROR;
    }
    if (strcmp(text, "constant") == 0)
        return call_constant(t, callable, args, n, kwnames, out);
    if (strcmp(text, "true") == 0)
        return (*out = fg_value_const(t, Py_True)) ? FG_FLOW_OK : FG_FLOW_ERROR;
    if (strcmp(text, "graph_break") == 0)
        return fg_break(t, FG_BREAK_USER_REQUEST, "%U",
                        n == 1 && args[0]->kind == FG_V_CONST && PyUnicode_Check(args[0]->real) ? args[0]->real : name);
    if (strcmp(text, "disable") == 0 || strcmp(text, "skip") == 0)
        return fg_break(t, FG_BREAK_DISABLED, "%U", name);
    if (strcmp(text, "break") == 0 || strcmp(text, "forbid") == 0)
        return fg_break(t, FG_BREAK_FORBIDDEN, "%U", name);
    *handled = false; /* "inline" */
    return FG_FLOW_OK;
}

/* --- what is called */

static fg_flow call_method(fg_trace *t, fg_value *m, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out)
{
    FG_DO(fg_look(t, &m->a));
    FG_DO(fg_look(t, &m->b));
    fg_value *self = m->b;
    if (self->kind == FG_V_TENSOR && m->key != NULL && m->a->kind == FG_V_CONST)
        return fg_tensor_method(t, self, m->key, args, n, kwnames, out);
    if (m->a->kind == FG_V_FUNC)
        return fg_call_python(t, m->a, self, args, n, kwnames, out);
    if (m->a->kind == FG_V_CONST && Py_IS_TYPE(m->a->real, &PyClassMethodDescr_Type))
        return fg_call_class_method(t, self, m->a->real, args, n, kwnames, out);
    if (m->a->kind == FG_V_CONST && m->key != NULL) {
        if (self->kind == FG_V_OBJECT && self->type != NULL && kwnames != NULL && PyTuple_GET_SIZE(kwnames) > 0)
            return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%U with keywords", m->key);
        if (self->kind == FG_V_OBJECT && self->type != NULL)
            return fg_call_object_method(t, self, m->a->real, m->key, args, n, out);
        return fg_container_method(t, self, m->key, args, n, kwnames, out);
    }
    return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "method %U", m->key ? m->key : fg_names.s_call);
}

static fg_flow call_object(fg_trace *t, fg_value *f, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out)
{
    bool handled = false;
    if (fg_is_nn_module(f->type) && (f->node != FG_NODE_NONE || f->is_partial)) {
        FG_DO(fg_call_module(t, f, args, n, kwnames, out, &handled));
        if (handled)
            return FG_FLOW_OK;
    }
    FG_DO(fg_call_partial(t, f, args, n, kwnames, out, &handled));
    if (handled)
        return FG_FLOW_OK;
    fg_value *type, *found;
    FG_DO(fg_object_type(t, f, &type));
    FG_DO(fg_type_lookup(t, type, f->type, fg_names.s_call, &found));
    if (found == NULL)
        return fg_break(t, FG_BREAK_RAISES, "'%s' object is not callable", f->type->tp_name);
    FG_DO(fg_look(t, &found));
    if (found->kind != FG_V_FUNC)
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%s object", f->type->tp_name);
    return fg_call_python(t, found, f, args, n, kwnames, out);
}

fg_flow fg_call(fg_trace *t, fg_value *f, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out)
{
    bool handled = false;
    *out = NULL;
    FG_DO(fg_look(t, &f));
    switch ((fg_vkind)f->kind) {
    case FG_V_METHOD: return call_method(t, f, args, n, kwnames, out);
    case FG_V_FUNC: return fg_call_python(t, f, NULL, args, n, kwnames, out);
    case FG_V_OBJECT: return call_object(t, f, args, n, kwnames, out);
    case FG_V_CONST: {
        PyObject *callable = f->real;
        PyObject *rule = t->rules ? fg_py_rule(t->rules, callable) : NULL;
        if (rule != NULL) {
            FG_DO(call_by_rule(t, rule, callable, args, n, kwnames, out, &handled));
            if (handled)
                return FG_FLOW_OK;
        }
        if (rule == NULL && PyType_Check(callable))
            FG_DO(fg_ambient_make(t, f, args, n, kwnames, out, &handled));
        if (handled)
            return FG_FLOW_OK;
        const fg_op_row *row = rule == NULL ? fg_op_find(callable) : NULL;
        bool has_tensor = false;
        for (int32_t i = 0; row != NULL && i < n && !has_tensor; i++)
            has_tensor = fg_has_tensor(t, args[i], 0);
        if (row != NULL && !has_tensor && !fg_is_own_builtin(callable, &handled)) /* len, abs … of what is no array */
            return FG_FLOW_ERROR;
        if (row != NULL && !has_tensor && fg_py_is_index(callable) && n == 1 && kwnames == NULL) {
            FG_DO(fg_look(t, &args[0]));
            if (args[0]->type == &PyLong_Type) { /* an int is its own */
                *out = args[0];
                return FG_FLOW_OK;
            }
        }
        if (row != NULL && !handled)
            return fg_tensor_call(t, row, callable, args, n, kwnames, out);
        handled = false;
        FG_DO(fg_call_builtin(t, f, callable, args, n, kwnames, out, &handled));
        if (!handled)
            FG_DO(fg_torch_question(t, callable, args, n, out, &handled));
        if (handled)
            return FG_FLOW_OK;
        FG_DO(fg_call_new(t, callable, args, n, kwnames, out, &handled));
        if (handled)
            return FG_FLOW_OK;
        FG_DO(fg_call_itertools(t, callable, args, n, kwnames, out, &handled));
        if (handled)
            return FG_FLOW_OK;
        if (PyType_Check(callable))
            return fg_call_class(t, f, (PyTypeObject *)callable, args, n, kwnames, out);
        if (PyFunction_Check(callable)) {
            fg_node node;
            FG_DO(fg_node_of(t, f, &node));
            fg_value *func = fg_value_new(t, FG_V_FUNC);
            if (func == NULL)
                return FG_FLOW_ERROR;
            if (node == FG_NODE_NONE)
                FG_DO(fg_source(t, FG_ACC_CONST, FG_NODE_NONE, callable, 0, &node));
            func->node = node;
            func->real = callable;
            func->type = &PyFunction_Type;
            return fg_call_python(t, func, NULL, args, n, kwnames, out);
        }
        if ((Py_TYPE(callable) == &PyMethodDescr_Type || Py_TYPE(callable) == &PyWrapperDescr_Type) && n > 0) { /* list.append(l, x) */
            FG_DO(fg_look(t, &args[0]));
            PyMethodDescrObject *d = (PyMethodDescrObject *)callable;
            if (args[0]->kind == FG_V_OBJECT && (kwnames == NULL || PyTuple_GET_SIZE(kwnames) == 0))
                return fg_call_object_method(t, args[0], callable, d->d_common.d_name, args + 1, n - 1, out);
            if (args[0]->type == d->d_common.d_type && args[0]->kind != FG_V_TENSOR)
                return fg_container_method(t, args[0], d->d_common.d_name, args + 1, n - 1, kwnames, out);
            const fg_op_row *member = args[0]->kind == FG_V_TENSOR ? fg_op_find_member(d->d_common.d_type, d->d_common.d_name) : NULL;
            if (member != NULL)
                return fg_tensor_method(t, args[0], d->d_common.d_name, args + 1, n - 1, kwnames, out);
        }
        PyObject *name = fg_own(t, fg_py_callable_name(callable));
        if (name == NULL)
            return FG_FLOW_ERROR;
        return fg_break(t, fg_py_has_side_effects(callable) ? FG_BREAK_SIDE_EFFECT_CALL : FG_BREAK_UNSUPPORTED_CALL, "%U", name);
    }
    case FG_V_OPAQUE:
        if (fg_is_ambient_exit(f))
            return fg_ambient_end(t, f, out);
        /* fall through */
    default: return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%s", f->type ? f->type->tp_name : "a run-time object");
    }
}
