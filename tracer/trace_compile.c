/* From a miss to an entry: trace the call, end the trace with a return or a graph break, make guards, graphs and code.
 *
 *     request ── decode ── root frame ── run ──┬─ returned: exit returns the value
 *                                              └─ broke: exit restores the frame at the breaking instruction
 *              ── guards of the whole ── graphs (described, or compiled by the backend) ── code ── entry
 *
 * A trace that did nothing before it broke makes no entry: the frame runs plain, and where that would always be so, for ever.
 */
#include "tracer/trace_compile.h"

#include "codegen/graph.h"
#include "codegen/partition.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "tracer/infer_torch.h"
#include "tracer/resume_chain.h"
#include "tracer/resume_inner.h"
#include "tracer/trace_python.h"

#include <string.h>
#include <time.h>

enum {
    TRACE_BUDGET = 1000000, /* instructions and comparisons of one trace */
    MAX_TRIES = 8,          /* traces of one call, each shorter than the one before */
    MAX_TOO_LONG = 2,       /* traces of one function and its segments that may be given up as too long before it runs plain for good */
    MAX_NOT_ASKED = 4       /* … because an abstract base class was not asked before, until that is a graph break */
};

/* --- the package's Python parts that the tracer calls */

/* NULL also where an exception is set already, so that several may be asked for in a row: an import must not run with one. */
static PyObject *package(const char *module, const char *name)
{
    if (PyErr_Occurred())
        return NULL;
    /* an import statement's way goes by the running function's builtins, which a program may have replaced */
    PyObject *key = PyUnicode_FromString(module), *m = key ? PyImport_GetModule(key) : NULL;
    Py_XDECREF(key);
    if (m == NULL && !PyErr_Occurred())
        m = PyImport_ImportModule(module);
    PyObject *object = m ? PyObject_GetAttrString(m, name) : NULL;
    Py_XDECREF(m);
    return object;
}

static bool is_eager(PyObject *backend)
{
    static PyObject *eager;
    if (backend == NULL || backend == Py_None)
        return true;
    if (eager == NULL && (eager = package("framegate.backends", "eager")) == NULL) {
        PyErr_Clear();
        return false;
    }
    return backend == eager;
}

/* --- setting up */

fg_flow fg_trace_root(fg_trace *t, fg_icode *icode, const fg_view *view, int32_t start_pc, int32_t depth)
{
    PyCodeObject *code = icode->code;
    Py_ssize_t n = PyTuple_GET_SIZE(code->co_localsplusnames);
    fg_tframe *f = fg_arena_alloc(&t->arena, sizeof *f);
    if (f == NULL)
        return fg_nomem();
    f->icode = icode;
    f->n_locals = (int32_t)n;
    f->library = fg_py_is_library(code);
    f->site = f->site_id = -1;
    f->pc = start_pc < 0 ? 0 : start_pc;
    f->locals = fg_arena_alloc(&t->arena, (size_t)(n + 1) * sizeof *f->locals);
    f->stack = fg_arena_alloc(&t->arena, (size_t)(icode->max_depth + 4) * sizeof *f->stack);
    if (f->locals == NULL || f->stack == NULL)
        return fg_nomem();
    t->frame = t->root = f;
    if (!PyDict_CheckExact(view->globals) || !PyDict_CheckExact(view->builtins))
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "a function whose globals or builtins are no plain dicts");
    if ((f->globals = fg_value_lazy(t, FG_ACC_GLOBALS, FG_NODE_NONE, NULL, 0, view->globals)) == NULL ||
        (f->builtins = fg_value_lazy(t, FG_ACC_BUILTINS, FG_NODE_NONE, NULL, 0, view->builtins)) == NULL)
        return FG_FLOW_ERROR;
    if (view->closure != NULL && start_pc < 0) {
        f->closure = fg_value_seq(t, FG_V_TUPLE, NULL, 0);
        for (Py_ssize_t i = 0; f->closure && i < PyTuple_GET_SIZE(view->closure); i++) {
            fg_value *cell = fg_value_lazy(t, FG_ACC_FREEVAR, FG_NODE_NONE, NULL, i, PyTuple_GET_ITEM(view->closure, i));
            if (cell == NULL)
                return FG_FLOW_ERROR;
            FG_DO(fg_seq_append(t, f->closure, cell));
        }
    }
    for (Py_ssize_t i = 0; i < view->n_slots; i++) {
        fg_value *v = NULL;
        if (view->slots[i] != NULL && (v = fg_value_lazy(t, FG_ACC_ARG, FG_NODE_NONE, NULL, i, view->slots[i])) == NULL)
            return FG_FLOW_ERROR;
        if (i < n)
            f->locals[i] = v;
        else if (v != NULL)
            f->stack[f->sp++] = v;
    }
    if (f->sp != depth)
        return fg_break(t, FG_BREAK_INTERNAL, "the stack of the resumed frame");
    return FG_FLOW_OK;
}

/* A slot that was unbound at the start must be unbound: a resumed frame may come here with it bound. */
static fg_flow guard_unbound(fg_trace *t)
{
    for (Py_ssize_t i = 0; i < t->view->n_slots && i < t->root->n_locals; i++) {
        if (t->view->slots[i] != NULL)
            continue;
        fg_node node;
        FG_DO(fg_source(t, FG_ACC_ARG, FG_NODE_NONE, NULL, i, &node));
        FG_DO(fg_guard(t, FG_GUARD_ABSENT, node, NULL, 0, 0));
    }
    return FG_FLOW_OK;
}

/* --- the exit */

static fg_flow exit_break(fg_trace *t)
{
    fg_tframe *f = t->root;
    fg_ir_exit *exit = &t->ir.exit;
    exit->is_break = 1;
    exit->value = FG_REG_NONE;
    exit->pc = fg_icode_group_start(f->icode, f->pc);
    exit->depth = f->sp - (f->pc - exit->pc); /* each instruction of a group before its call pushes one value */
    exit->slots = fg_arena_alloc(&t->arena, (size_t)(f->n_locals + 1) * sizeof *exit->slots);
    exit->stack = fg_arena_alloc(&t->arena, (size_t)(f->sp + 1) * sizeof *exit->stack);
    if (exit->slots == NULL || exit->stack == NULL)
        return fg_nomem();
    for (int32_t i = 0; i < f->n_locals; i++) {
        exit->slots[i] = FG_REG_NONE;
        bool is_free = ((unsigned char *)PyBytes_AS_STRING(f->icode->code->co_localspluskinds))[i] & 0x80;
        if (f->locals[i] != NULL && !is_free)
            FG_DO(fg_materialise(t, f->locals[i], &exit->slots[i]));
    }
    for (int32_t i = 0; i < exit->depth; i++)
        FG_DO(fg_materialise(t, f->stack[i], &exit->stack[i]));
    return FG_FLOW_OK;
}

/* The call that the trace breaks at has called a Python function, in which the reason is: that is compiled by itself. */
static bool broke_inside(const fg_trace *t, const fg_tframe *f)
{
    const fg_cop op = (fg_cop)f->icode->instrs[f->pc].op;
    return t->broke.root_pc == f->pc && (op == FG_OP_CALL || op == FG_OP_CALL_KW || op == FG_OP_CALL_EX) &&
           t->broke.reason != FG_BREAK_RECURSION && t->broke.reason != FG_BREAK_TOO_LONG;
}

static fg_flow exit_through_gate(fg_trace *t, const fg_resume_point *point)
{
    const fg_tframe *f = t->root;
    const fg_instr *in = &f->icode->instrs[f->pc];
    const int32_t below = in->op == FG_OP_CALL_EX ? 2 + in->arg : in->op == FG_OP_CALL_KW ? in->arg + 2 : in->arg + 1;
    fg_reg *callee = &t->ir.exit.stack[f->sp - below], regs[2];
    PyObject *function = fg_own(t, fg_inner_function_new(point->table, t->rules));
    if (function == NULL)
        return FG_FLOW_ERROR;
    if ((regs[0] = fg_ir_reg_add(&t->ir, FG_REG_CONST, function)) == FG_REG_NONE)
        return fg_nomem();
    regs[1] = *callee;
    return fg_emit(t, FG_STEP_CALL, FG_SF_EFFECT, 0, NULL, NULL, regs, 2, callee);
}

static fg_flow exit_return(fg_trace *t, fg_value *value)
{
    t->ir.exit.is_break = 0;
    t->ir.exit.pc = t->root->pc;
    FG_DO(fg_materialise(t, value, &t->ir.exit.value));
    return t->ir.start_pc >= 0 ? fg_drop_at_return(t) : FG_FLOW_OK;
}

/* --- reports */

static const char explanation[] = "framegate does not trace this statement. What comes before it is compiled, the statement runs as plain "
                                  "Python, and what follows is compiled from there on.";

static PyObject *hints_of(const fg_trace *t)
{
    return Py_BuildValue("[s]", fg_break_hint(t->broke.reason));
}

static fg_status log_break(fg_trace *t, PyCodeObject *code, uint64_t pause)
{
    PyObject *function = package("framegate.logs", "graph_break"), *hints = hints_of(t), *result = NULL;
    if (function && hints)
        result = PyObject_CallFunction(function, "OsOsOOK", code->co_qualname, fg_break_type(t->broke.reason), t->broke.context,
                                       explanation, hints, t->broke.stack, (unsigned long long)pause);
    Py_XDECREF(function);
    Py_XDECREF(hints);
    Py_XDECREF(result);
    return result ? FG_OK : FG_ERR_PYTHON;
}

static fg_status raise_unsupported(fg_trace *t)
{
    PyObject *cls = package("framegate.exc", "Unsupported"), *reason_cls = package("framegate.exc", "BreakReason"), *hints = hints_of(t),
             *tuple = NULL, *stack = NULL, *reason = NULL, *error = NULL;
    if (cls && reason_cls && hints && (tuple = PyList_AsTuple(hints)) && (stack = PyList_AsTuple(t->broke.stack)))
        reason = PyObject_CallFunction(reason_cls, "sOsOO", fg_break_type(t->broke.reason), t->broke.context, explanation, tuple, stack);
    if (reason && (error = PyObject_CallOneArg(cls, reason)))
        PyErr_SetObject(cls, error);
    Py_XDECREF(cls);
    Py_XDECREF(reason_cls);
    Py_XDECREF(hints);
    Py_XDECREF(tuple);
    Py_XDECREF(stack);
    Py_XDECREF(reason);
    Py_XDECREF(error);
    return FG_ERR_PYTHON;
}

/* A fault of ours: said once, the frame runs plain. Strict mode raises. */
static fg_status report_internal(PyCodeObject *code, fg_status st)
{
    if (st == FG_ERR_PYTHON || st == FG_ERR_NOMEM)
        return st;
    PyObject *warn = package("framegate.logs", "warn_internal");
    PyObject *result = warn ? PyObject_CallFunction(warn, "Os", code->co_qualname, fg_status_text(st)) : NULL;
    Py_XDECREF(warn);
    if (result == NULL)
        return FG_ERR_PYTHON;
    Py_DECREF(result);
    return FG_ERR_UNSUPPORTED;
}

/* --- graphs */

typedef struct fg_backend_context {
    PyObject *function, *options;
} fg_backend_context;

static PyObject *call_backend(void *context, PyObject *graph, PyObject *examples)
{
    fg_backend_context *c = context;
    return PyObject_CallFunctionObjArgs(c->function, graph, examples, c->options ? c->options : Py_None, NULL);
}

static fg_status make_graphs(fg_trace *t, const fg_compile_request *request, PyObject **graphs, PyObject **callables)
{
    fg_status st;
    *graphs = PyList_New(0);
    *callables = PyList_New(0);
    if (*graphs == NULL || *callables == NULL)
        return FG_ERR_PYTHON;
    if (!t->opaque) {
        PyObject *graph;
        FG_TRY(fg_graph_describe(&t->ir, &graph));
        if (graph != NULL && PyList_Append(*graphs, graph) < 0)
            st = FG_ERR_PYTHON;
        Py_XDECREF(graph);
        return st;
    }
    fg_backend_context context = {package("framegate._compile", "_call_backend"), request->options->dict};
    if (context.function == NULL)
        return FG_ERR_PYTHON;
    st = fg_partition(&t->ir, call_backend, &context, *graphs, *callables);
    Py_DECREF(context.function);
fail:
    return st;
}

static fg_status name_inputs(fg_trace *t, PyCodeObject *code)
{
    t->ir.n_inputs = (int32_t)fg_desc_n_outputs(t->desc);
    t->ir.input_names = fg_arena_alloc(&t->arena, (size_t)(t->ir.n_inputs + 1) * sizeof(PyObject *));
    t->ir.input_slots = fg_arena_alloc(&t->arena, (size_t)(t->ir.n_inputs + 1) * sizeof(int32_t));
    t->ir.unbound_at_start = fg_arena_alloc(&t->arena, (size_t)t->root->n_locals + 1);
    if (t->ir.input_names == NULL || t->ir.input_slots == NULL || t->ir.unbound_at_start == NULL)
        return FG_ERR_NOMEM;
    for (int32_t i = 0; i < t->ir.n_inputs; i++)
        t->ir.input_slots[i] = -1;
    for (Py_ssize_t i = 0; i < t->view->n_slots && i < t->root->n_locals; i++)
        t->ir.unbound_at_start[i] = t->view->slots[i] == NULL;
    for (int32_t i = 0; i < t->ir.n_regs; i++) {
        const fg_ir_reg *r = &t->ir.regs[i];
        if (r->kind != FG_REG_INPUT || r->frame_slot < 0 || r->frame_slot >= t->root->n_locals)
            continue;
        t->ir.input_slots[r->index] = r->frame_slot;
        t->ir.input_names[r->index] = PyTuple_GET_ITEM(code->co_localsplusnames, r->frame_slot);
    }
    return FG_OK;
}

/* --- the whole */

/* Under a mode of the user's that sees every operation, a transformation, or hooks for saved tensors, nothing may be inferred: the user's code would
 * see that too. */
static fg_flow check_torch_state(fg_trace *t)
{
    fg_torch_state state;
    if (!fg_torch_state_read(&state))
        return fg_break(t, FG_BREAK_TORCH_STATE, "torch's thread state");
    int hooks = fg_torch_has_saved_hooks();
    if (hooks < 0)
        return fg_break_on_error(t, FG_BREAK_TORCH_STATE, "hooks for saved tensors");
    return hooks ? fg_break(t, FG_BREAK_TORCH_STATE, "hooks for saved tensors") : FG_FLOW_OK;
}

/* What the break would have to hand over was made in this instruction of the root frame: there a break may do. */
static void again_up_to(fg_trace *t, uint32_t made)
{
    fg_trace_stop *stop = t->stop;
    if (made == 0 || made > stop->at || stop->tries + 1 >= MAX_TRIES)
        return;
    if (stop->why.context == NULL) {
        stop->why = t->broke;
        Py_INCREF(stop->why.context);
        Py_INCREF(stop->why.stack);
    }
    stop->at = made - 1;
    t->again = true;
}

static fg_flow run(fg_trace *t, fg_icode *icode, const fg_resume_point *point, bool *broke)
{
    fg_value *value = NULL;
    bool returned;
    fg_flow flow = fg_trace_root(t, icode, t->view, point->pc, point->depth);
    if (flow == FG_FLOW_OK && (flow = check_torch_state(t)) == FG_FLOW_BREAK)
        return flow;
    if (flow == FG_FLOW_OK)
        flow = fg_trace_run(t, &returned, &value);
    else if (flow == FG_FLOW_BREAK)
        return flow;
    if (flow == FG_FLOW_OK) {
        *broke = false;
        FG_DO(exit_return(t, value));
        FG_DO(fg_ambient_examples(t));
    } else if (flow == FG_FLOW_BREAK) {
        *broke = true;
        PyObject *context = Py_XNewRef(t->broke.context), *stack = Py_XNewRef(t->broke.stack);
        fg_break_info first = t->broke;
        t->unmade = UINT32_MAX;
        t->goes_inside = broke_inside(t, t->root);
        flow = exit_break(t);
        if (flow == FG_FLOW_OK && t->goes_inside)
            flow = exit_through_gate(t, point);
        if (flow == FG_FLOW_OK)
            flow = fg_ambient_examples(t);
        Py_XSETREF(t->broke.context, context); /* the reason that counts is the first */
        Py_XSETREF(t->broke.stack, stack);
        t->broke.reason = first.reason;
        t->broke.line = first.line;
        t->broke.code = first.code;
        if (flow == FG_FLOW_BREAK)
            again_up_to(t, t->unmade);
        FG_DO(flow);
    } else {
        return flow;
    }
    if (point->pc >= 0)
        FG_DO(guard_unbound(t));
    return fg_finish_guards(t);
}

static fg_status flow_status(fg_flow flow)
{
    return flow == FG_FLOW_OK ? FG_OK : flow == FG_FLOW_ERROR ? (PyErr_Occurred() ? FG_ERR_PYTHON : FG_ERR_NOMEM) : FG_ERR_UNSUPPORTED;
}

static fg_status make_entry(fg_trace *t, const fg_compile_request *request, const fg_resume_point *point, fg_entry **out)
{
    PyObject *graphs = NULL, *callables = NULL;
    PyCodeObject *code = NULL;
    fg_entry *entry = NULL;
    uint8_t uses_closure = 0;
    fg_resume_maker maker;
    fg_status st;
    FG_TRY(name_inputs(t, request->code));
    bool repeatable = fg_trace_is_repeatable(t);
    double start = fg_seconds(), described;
    st = make_graphs(t, request, &graphs, &callables);
    described = fg_seconds();
    FG_TIME(BACKEND, described - start);
    if (st != FG_OK)
        goto fail;
    if (!t->opaque) {
        FG_TRY(flow_status(fg_array_constants(t)));
        FG_TRY(name_inputs(t, request->code));
    }
    fg_resume_maker_init(point->table, &maker);
    fg_emit_input input = {.ir = &t->ir, .graphs = callables ? ((PyListObject *)callables)->ob_item : NULL, .maker = &maker};
    FG_TRY(fg_emit_target(&input, &code, &uses_closure));
    FG_TIME(CODEGEN, fg_seconds() - described);
    FG_TRY(fg_entry_new(&entry));
    entry->code = code;
    code = NULL;
    entry->uses_closure = uses_closure;
    entry->is_host = t->ir.exit.is_break && point->pc < 0;
    FG_TRY(fg_desc_seal(t->desc));
    entry->repeatable = repeatable;
    entry->desc = t->desc;
    t->desc = NULL;
    entry->graphs = PyList_AsTuple(graphs);
    if (entry->graphs == NULL)
        FG_TRY(FG_ERR_PYTHON);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(entry->graphs); i++)
        entry->nbytes += fg_graph_nbytes(PyTuple_GET_ITEM(entry->graphs, i));
fail:
    Py_XDECREF(graphs);
    Py_XDECREF(callables);
    Py_XDECREF(code);
    if (st != FG_OK && entry != NULL) {
        fg_entry_drop(entry);
        entry = NULL;
    }
    *out = entry;
    return st;
}

static fg_status log_entry(const fg_compile_request *request, fg_entry *entry, double seconds)
{
    PyObject *function = package("framegate.logs", "compiled"), *guards = fg_entry_guards_new(entry), *result = NULL;
    PyObject *id = PyUnicode_FromFormat("%d/%d", (int)request->frame_id, (int)request->entry_id), *time = PyFloat_FromDouble(seconds);
    if (function && guards && id && time)
        result = PyObject_CallFunctionObjArgs(function, request->code->co_qualname, id, time, entry->graphs, guards,
                                              (PyObject *)entry->code, NULL);
    Py_XDECREF(function);
    Py_XDECREF(guards);
    Py_XDECREF(id);
    Py_XDECREF(time);
    Py_XDECREF(result);
    return result ? FG_OK : FG_ERR_PYTHON;
}

static fg_status log_recompile(const fg_compile_request *request)
{
    PyObject *function = package("framegate.logs", "recompile"), *enabled = package("framegate.logs", "enabled"), *wanted = NULL,
             *result = NULL;
    fg_status st = FG_ERR_PYTHON;
    if (function && enabled && (wanted = PyObject_CallFunction(enabled, "s", "recompiles"))) {
        if (wanted != Py_True) {
            st = FG_OK;
        } else {
            PyObject *reasons = fg_trace_miss_reasons(request);
            if (reasons)
                result = PyObject_CallFunction(function, "OOiO", request->code->co_qualname, request->code->co_filename,
                                               request->code->co_firstlineno, reasons);
            Py_XDECREF(reasons);
            st = result ? FG_OK : FG_ERR_PYTHON;
        }
    }
    Py_XDECREF(function);
    Py_XDECREF(enabled);
    Py_XDECREF(wanted);
    Py_XDECREF(result);
    return st;
}

static fg_status entries_before(fg_trace *t, const fg_cache_snapshot *entries)
{
    if (entries == NULL)
        return FG_OK;
    if ((t->before = fg_arena_alloc(&t->arena, (entries->n + 1) * sizeof *t->before)) == NULL)
        return FG_ERR_NOMEM;
    for (uint32_t i = 0; i < entries->n; i++)
        t->before[t->n_before++] = ((const fg_entry *)entries->entries[i])->desc;
    return FG_OK;
}

static fg_status compile_in(fg_trace *t, fg_compile_request *request, const fg_resume_point *point, fg_icode *icode, fg_entry **out)
{
    fg_status st;
    bool broke = false;
    double start = fg_seconds();
    PyObject *slot_names = PyTuple_GetSlice(request->code->co_localsplusnames, 0, t->view->n_slots),
             *free_names = PyCode_GetFreevars(request->code);
    if (slot_names == NULL || free_names == NULL) {
        Py_XDECREF(slot_names);
        Py_XDECREF(free_names);
        return FG_ERR_PYTHON;
    }
    fg_desc_names_set(t->desc, slot_names, free_names);
    Py_DECREF(slot_names);
    Py_DECREF(free_names);
    if (point->table->n_too_long >= MAX_TOO_LONG && !request->options->fullgraph) {
        request->forever = 1;
        return FG_ERR_UNSUPPORTED;
    }
    if (request->n_entries > 0 && t->stop->tries == 0)
        FG_TRY(log_recompile(request));
    double traced_from = fg_seconds();
    fg_cache_snapshot *entries = request->options->dynamic == 0 ? NULL : fg_cache_snapshot_take(&request->site->cache);
    st = entries_before(t, entries);
    if (st == FG_OK)
        st = flow_status(run(t, icode, point, &broke));
    t->n_before = 0;
    if (entries != NULL)
        fg_cache_snapshot_release_locked(entries);
    FG_TIME(TRACE, fg_seconds() - traced_from);
    if (st == FG_ERR_UNSUPPORTED && t->again && !request->options->fullgraph)
        return st;
    t->again = false;
    if ((st == FG_ERR_UNSUPPORTED || (st == FG_OK && broke)) && t->broke.reason == FG_BREAK_NOT_ASKED && t->broke.context != NULL &&
        point->table->n_not_asked < MAX_NOT_ASKED) {
        point->table->n_not_asked++; /* this call asks; the next one is traced */
        return FG_ERR_UNSUPPORTED;
    }
    if ((st == FG_ERR_UNSUPPORTED || (st == FG_OK && broke)) && t->broke.context != NULL) {
        bool raises = t->broke.reason == FG_BREAK_RAISES;
        if (request->options->fullgraph && !raises)
            return raise_unsupported(t);
        if (!raises)
            FG_TRY(log_break(t, request->code, st == FG_OK ? 0 : request->pause) == FG_OK ? st : FG_ERR_PYTHON);
    }
    if ((st == FG_ERR_UNSUPPORTED || broke) && t->broke.reason == FG_BREAK_TOO_LONG)
        point->table->n_too_long++;
    if (st != FG_OK)
        return st;
    if (broke) {
        FG_TRY(fg_resume_note_break(point->table, t->ir.exit.pc));
        if (point->pc >= 0 && t->ir.exit.pc == point->pc && !t->goes_inside) {
            request->forever = 1; /* nothing to do here but the instruction itself */
            return FG_ERR_UNSUPPORTED;
        }
    }
    FG_TRY(make_entry(t, request, point, out));
    FG_TRY(log_entry(request, *out, fg_seconds() - start));
    return FG_OK;
fail:
    if (*out != NULL) {
        fg_entry_drop(*out);
        *out = NULL;
    }
    return st;
}

static fg_status compile_up_to(fg_compile_request *request, fg_trace_stop *stop, fg_entry **out, bool *again)
{
    fg_trace t = {.view = request->view, .budget = TRACE_BUDGET, .stop = stop, .unmade = UINT32_MAX};
    fg_resume_point *point = request->user;
    fg_icode *icode = NULL;
    fg_status st = FG_OK;
    PyCodeObject *code = request->code;
    *again = false;
    if ((code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) || !(code->co_flags & CO_OPTIMIZED)) {
        request->forever = 1;
        return FG_ERR_UNSUPPORTED;
    }
    fg_arena_init(&t.arena);
    t.ir.arena = &t.arena;
    t.opaque = !is_eager(fg_site_options_backend(request->options));
    t.options = request->options->dict;
    t.rules = package("framegate._rules", "TABLE");
    t.owned = PyList_New(0);
    if (t.rules == NULL || t.owned == NULL) {
        st = FG_ERR_PYTHON;
        goto fail;
    }
    if (point == NULL)
        FG_TRY(fg_resume_root(request->site, &point));
    FG_TRY(fg_desc_new(&t.desc));
    FG_TRY(fg_decode(code, &icode));
    if (fg_icode_remakes_cell(icode) || fg_icode_unpacks_for_super(icode)) {
        request->forever = 1;
        st = FG_ERR_UNSUPPORTED;
        goto fail;
    }
    t.ir.root = icode;
    t.ir.start_pc = point->pc;
    st = compile_in(&t, request, point, icode, out);
    *again = st == FG_ERR_UNSUPPORTED && t.again;
fail:
    if (st != FG_OK && st != FG_ERR_UNSUPPORTED)
        st = report_internal(code, st);
    fg_desc_free(t.desc);
    if (icode != NULL)
        fg_icode_release(icode);
    PyObject *type, *value, *tb;
    PyErr_Fetch(&type, &value, &tb);
    Py_XDECREF(t.owned);
    Py_XDECREF(t.rules);
    Py_XDECREF(t.broke.context);
    Py_XDECREF(t.broke.stack);
    PyErr_Restore(type, value, tb);
    fg_free(t.log);
    fg_arena_fini(&t.arena);
    return st;
}

static fg_status compile(fg_compile_request *request, fg_entry **out)
{
    fg_trace_stop stop = {.at = UINT32_MAX};
    bool again = true;
    fg_status st = FG_OK;
    for (*out = NULL; again; stop.tries++)
        st = compile_up_to(request, &stop, out, &again);
    PyObject *type, *value, *tb;
    PyErr_Fetch(&type, &value, &tb);
    Py_XDECREF(stop.why.context);
    Py_XDECREF(stop.why.stack);
    PyErr_Restore(type, value, tb);
    return st;
}

fg_status fg_trace_compile(fg_compile_request *request, fg_entry **out)
{
    const fg_resume_point *point = request->user;
    fg_hidden_frame *host = point != NULL && point->pc >= 0 ? fg_resume_host() : NULL;
    if (host != NULL) /* whoever is asked while it compiles sees the user's frame */
        fg_frame_show(host);
    fg_status st = compile(request, out);
    if (host != NULL)
        fg_frame_hide(host, host->frame);
    return st;
}
