/* Context managers of the libraries that set a state of the thread and nothing else: no_grad, enable_grad, set_grad_enabled, inference_mode, autocast, errstate.
 *
 * At run time the real manager is made, entered and left, in steps around the same operations; while tracing the state is a chain of managers (codegen/ambient.h),
 * which a step carries, so that metadata is inferred and graphs are compiled in the state that the step runs in. No graph reaches over a change of state.
 *
 * Rules:
 *  1. Arguments are constants; the class gives what was there when its module was imported, and __enter__ and __exit__ are facts.
 *  2. A manager is entered once. What it leaves to is what it was entered in, whatever `set_grad_enabled(…)` did in between; anything else is a break.
 *  3. Its __exit__ lets exceptions go on. So where a handler has no form at run time (an inlined function, a segment, graphs of a compiler), the `with` counts as
 *     no handler: a step in it carries the exits to call when it raises (fg_restore_here).
 */
#include "tracer/trace_python.h"

#include <string.h>

typedef enum fg_ambient_kind { AMBIENT_NUMPY = 1, AMBIENT_GRAD, AMBIENT_SET_GRAD, AMBIENT_INFERENCE, AMBIENT_AUTOCAST } fg_ambient_kind;

static const struct known {
    const char *module, *name;
    fg_ambient_kind kind;
} known[] = {
    {"numpy", "errstate", AMBIENT_NUMPY},
    {"torch.autograd.grad_mode", "no_grad", AMBIENT_GRAD},
    {"torch.autograd.grad_mode", "enable_grad", AMBIENT_GRAD},
    {"torch.autograd.grad_mode", "set_grad_enabled", AMBIENT_SET_GRAD},
    {"torch.autograd.grad_mode", "inference_mode", AMBIENT_INFERENCE},
    {"torch.amp.autocast_mode", "autocast", AMBIENT_AUTOCAST},
};

static const struct known *known_of(PyObject *callable)
{
    PyObject *modules = PySys_GetObject("modules");
    const char *name = PyType_Check(callable) ? ((PyTypeObject *)callable)->tp_name : "";
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(name, known[i].name) != 0)
            continue;
        PyObject *module = modules ? PyDict_GetItemString(modules, known[i].module) : NULL;
        PyObject *dict = module && PyModule_Check(module) ? PyModule_GetDict(module) : NULL;
        if (dict != NULL && PyDict_GetItemString(dict, name) == callable)
            return &known[i];
    }
    return NULL;
}

/* A method that the library itself defines; whether it is still that one is a fact. */
static fg_flow own_method(fg_trace *t, fg_value *cls, PyObject *name)
{
    fg_value *found;
    FG_DO(fg_type_lookup(t, cls, (PyTypeObject *)cls->real, name, &found));
    if (found != NULL)
        FG_DO(fg_look(t, &found));
    if (found == NULL || found->kind != FG_V_FUNC || found->real == NULL ||
        !fg_py_is_library((PyCodeObject *)PyFunction_GET_CODE(found->real)))
        return fg_break(t, FG_BREAK_CONTEXT_MANAGER, "%U of %s was replaced", name, ((PyTypeObject *)cls->real)->tp_name);
    return FG_FLOW_OK;
}

/* Of the CPU, with a dtype that does not warn. Without one, which dtype it is would be state that no fact is about; where autocast is off, nothing asks. */
static bool suits_autocast(fg_value *const *args, int32_t n, PyObject *kwnames)
{
    static const char *const names[] = {"device_type", "dtype", "enabled", "cache_enabled"};
    int32_t named = kwnames ? (int32_t)PyTuple_GET_SIZE(kwnames) : 0;
    bool has_device = false, has_dtype = false, is_off = false;
    for (int32_t i = 0; i < n; i++) {
        PyObject *key = i < n - named ? NULL : PyTuple_GET_ITEM(kwnames, i - (n - named)), *value = args[i]->real;
        int32_t at = key == NULL ? i : 0;
        while (key != NULL && at < 4 && PyUnicode_CompareWithASCIIString(key, names[at]) != 0)
            at++;
        switch (at) {
        case 0:
            if (args[i]->type != &PyUnicode_Type || PyUnicode_CompareWithASCIIString(value, "cpu") != 0)
                return false;
            has_device = true;
            break;
        case 1: {
            PyObject *text = strcmp(args[i]->type->tp_name, "torch.dtype") == 0 ? PyObject_Repr(value) : NULL;
            has_dtype = text != NULL && (PyUnicode_CompareWithASCIIString(text, "torch.bfloat16") == 0 ||
                                         PyUnicode_CompareWithASCIIString(text, "torch.float16") == 0);
            Py_XDECREF(text);
            if (!has_dtype && value != Py_None)
                return false;
            break;
        }
        case 2:
        case 3:
            if (args[i]->type != &PyBool_Type)
                return false;
            is_off = is_off || (at == 2 && value == Py_False);
            break;
        default: return false;
        }
    }
    return has_device && (has_dtype || is_off);
}

static bool suits(const struct known *k, fg_value *const *args, int32_t n, PyObject *kwnames)
{
    int32_t named = kwnames ? (int32_t)PyTuple_GET_SIZE(kwnames) : 0;
    switch (k->kind) {
    case AMBIENT_GRAD: return n == 0;
    case AMBIENT_SET_GRAD: return n == 1 && args[0]->type == &PyBool_Type;
    case AMBIENT_INFERENCE: return n == 0 || (n == 1 && args[0]->type == &PyBool_Type);
    case AMBIENT_NUMPY:
        for (int32_t i = 0; i < named; i++)
            if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i), "call") == 0)
                return false;
        return n == named;
    case AMBIENT_AUTOCAST: return suits_autocast(args, n, kwnames);
    }
    return false;
}

static fg_flow try_it(fg_trace *t, const fg_ambient *chain)
{
    PyObject *entered;
    if (fg_ambient_enter(chain, &entered) != FG_OK)
        return fg_break_on_error(t, FG_BREAK_CONTEXT_MANAGER, "entering a context manager");
    fg_ambient_leave(entered);
    return FG_FLOW_OK;
}

static bool is_torch(const fg_ambient *a)
{
    return a->kind != AMBIENT_NUMPY;
}

fg_flow fg_ambient_make(fg_trace *t, fg_value *cls, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out, bool *handled)
{
    const struct known *k = known_of(cls->real);
    *handled = k != NULL;
    if (k == NULL)
        return FG_FLOW_OK;
    fg_ambient *a = fg_arena_alloc(&t->arena, sizeof *a);
    PyObject *constants = fg_own(t, PyTuple_New(n));
    fg_reg *regs = fg_arena_alloc(&t->arena, (size_t)(n + 1) * sizeof *regs), reg;
    if (a == NULL || regs == NULL)
        return fg_nomem();
    if (constants == NULL)
        return FG_FLOW_ERROR;
    for (int32_t i = 0; i < n; i++) {
        FG_DO(fg_look(t, &args[i]));
        if (args[i]->kind == FG_V_SCALAR)
            FG_DO(fg_concrete(t, args[i]));
        if (args[i]->kind != FG_V_CONST || !(fg_is_fold_const(args[i]->real) || fg_py_is_library_constant(args[i]->type)))
            return fg_break(t, FG_BREAK_CONTEXT_MANAGER, "an argument of %s", k->name);
        PyTuple_SET_ITEM(constants, i, Py_NewRef(args[i]->real));
        if ((regs[i + 1] = fg_ir_reg_add(&t->ir, FG_REG_CONST, args[i]->real)) == FG_REG_NONE)
            return fg_nomem();
    }
    if (!suits(k, args, n, kwnames))
        return fg_break(t, FG_BREAK_CONTEXT_MANAGER, "%s with these arguments", k->name);
    FG_DO(own_method(t, cls, fg_names.s_enter));
    FG_DO(own_method(t, cls, fg_names.s_exit));
    *a = (fg_ambient){.outer = t->ambient, .manager = cls->real, .args = constants, .kwnames = kwnames, .kind = (uint8_t)k->kind};
    FG_DO(try_it(t, a));
    FG_DO(fg_materialise(t, cls, &regs[0]));
    FG_DO(fg_emit(t, FG_STEP_CALL, FG_SF_EFFECT | FG_SF_AMBIENT, 0, NULL, kwnames, regs, n + 1, &reg));
    if ((*out = fg_value_step(t, FG_V_OPAQUE, reg, (PyTypeObject *)cls->real, NULL)) == NULL)
        return FG_FLOW_ERROR;
    (*out)->ambient = a;
    if (is_torch(a))
        FG_SET(t, t->uses_torch, true);
    if (k->kind == AMBIENT_SET_GRAD) /* the state is set already */
        FG_SET(t, t->ambient, a);
    return FG_FLOW_OK;
}

bool fg_is_ambient_exit(const fg_value *v)
{
    return v->ambient != NULL && v->type == &PyMethod_Type;
}

fg_flow fg_ambient_begin(fg_trace *t, fg_value *manager, fg_value **exit, fg_value **out)
{
    fg_ambient *a = manager->ambient;
    fg_reg leave, unused, self;
    bool is_set = a->kind == AMBIENT_SET_GRAD;
    if (a->is_entered || (is_set ? t->ambient != a : false))
        return fg_break(t, FG_BREAK_CONTEXT_MANAGER, "%s that was entered or set before", manager->type->tp_name);
    FG_DO(fg_materialise(t, manager, &self));
    FG_DO(fg_emit(t, FG_STEP_ATTR, 0, 0, fg_names.s_exit, NULL, &self, 1, &leave));
    FG_DO(fg_emit(t, FG_STEP_CALL_METHOD, FG_SF_EFFECT | FG_SF_AMBIENT | FG_SF_COVERED, 0, fg_names.s_enter, NULL, &self, 1, &unused));
    FG_SET(t, a->is_entered, 1);
    if (!is_set) {
        FG_SET(t, a->outer, t->ambient);
        FG_DO(try_it(t, a));
        FG_SET(t, t->ambient, a);
    }
    if ((*exit = fg_value_step(t, FG_V_OPAQUE, leave, &PyMethod_Type, NULL)) == NULL)
        return FG_FLOW_ERROR;
    (*exit)->ambient = a;
    *out = a->kind == AMBIENT_AUTOCAST ? manager : fg_value_const(t, Py_None);
    return *out ? FG_FLOW_OK : FG_FLOW_ERROR;
}

fg_flow fg_ambient_end(fg_trace *t, fg_value *exit, fg_value **out)
{
    fg_ambient *a = exit->ambient;
    const fg_ambient *at = t->ambient;
    bool is_grad = a->kind == AMBIENT_GRAD || a->kind == AMBIENT_SET_GRAD || a->kind == AMBIENT_INFERENCE;
    fg_reg regs[4], unused;
    while (is_grad && at != NULL && at != a && at->kind == AMBIENT_SET_GRAD)
        at = at->outer;
    if (at != a)
        return fg_break(t, FG_BREAK_CONTEXT_MANAGER, "%s is left in another state", ((PyTypeObject *)a->manager)->tp_name);
    FG_DO(fg_materialise(t, exit, &regs[0]));
    for (int i = 1; i < 4; i++)
        if ((regs[i] = fg_ir_reg_add(&t->ir, FG_REG_CONST, Py_None)) == FG_REG_NONE)
            return fg_nomem();
    FG_DO(fg_emit(t, FG_STEP_CALL, FG_SF_EFFECT | FG_SF_AMBIENT, 0, NULL, NULL, regs, 4, &unused));
    FG_SET(t, t->ambient, a->outer);
    return (*out = fg_value_const(t, Py_None)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static bool is_cut(const fg_step *step)
{
    const fg_op_row *row = step->row;
    return (step->flags & FG_SF_AMBIENT) || (!(step->flags & FG_SF_GRAPH) && row != NULL && (row->flags & FG_OPF_NEEDS_DATA));
}

fg_flow fg_ambient_examples(fg_trace *t)
{
    fg_value **of = t->n_results > 0 ? fg_arena_alloc(&t->arena, (size_t)t->ir.n_regs * sizeof *of) : NULL;
    bool has_cuts = false;
    int32_t cut = -1; /* the last step before this one at which a graph ends */
    for (int32_t i = 0; i < t->ir.n_steps; i++)
        has_cuts = has_cuts || is_cut(&t->ir.steps[i]);
    if (!has_cuts || t->n_results == 0)
        return FG_FLOW_OK;
    if (of == NULL)
        return fg_nomem();
    for (int32_t i = 0; i < t->n_results; i++)
        of[t->results[i]->reg] = t->results[i];
    for (int32_t i = 0; i < t->ir.n_steps; i++) {
        const fg_step step = t->ir.steps[i];
        cut = is_cut(&step) ? i : cut;
        for (int32_t k = 0; (step.flags & FG_SF_GRAPH) && k < step.n_args; k++) {
            const fg_ir_reg r = t->ir.regs[step.args[k]];
            fg_value *v = r.kind == FG_REG_STEP ? of[step.args[k]] : NULL;
            PyObject *standin;
            if (v == NULL || r.index > cut || !fg_is_foreseeable(v))
                continue;
            fg_trace_mark mark = fg_trace_mark_get(t);
            fg_flow flow = fg_tensor_standin(t, v, &standin);
            if (flow == FG_FLOW_BREAK) { /* the graph is run by our own replay */
                fg_trace_rewind(t, mark);
                continue;
            }
            FG_DO(flow);
            if (!fg_py_is_fake(standin))
                FG_SET(t, t->ir.regs[step.args[k]].standin, standin);
        }
    }
    return FG_FLOW_OK;
}

fg_value *fg_ambient_of_handler(const fg_tframe *f, int32_t handler)
{
    const fg_handler *h = &f->icode->handlers[handler];
    const fg_instr *at = &f->icode->instrs[h->target];
    if (at[0].op != FG_OP_PUSH_EXC_INFO || at[1].op != FG_OP_WITH_EXCEPT_START || h->depth < 1)
        return NULL;
    fg_value *exit = f->stack[h->depth - 1];
    return fg_is_ambient_exit(exit) ? exit : NULL;
}

fg_flow fg_restore_here(fg_trace *t, int32_t *id)
{
    enum { MAX = 64 };
    fg_reg exits[MAX];
    int32_t n = 0;
    *id = -1;
    if (t->ambient == NULL || t->catching.is_making)
        return FG_FLOW_OK;
    for (fg_tframe *f = t->frame;; f = f->parent) {
        fg_value *exit;
        int32_t handler = fg_icode_handler_pass(f->icode, f->icode->instrs[f->pc].handler, NULL);
        if (f == t->root && fg_has_catches(t))
            break;
        while (handler >= 0 && (exit = fg_ambient_of_handler(f, handler)) != NULL) {
            if (n == MAX)
                return fg_break(t, FG_BREAK_TOO_LONG, "nested context managers");
            FG_DO(fg_materialise(t, exit, &exits[n++]));
            handler = fg_icode_handler_pass(f->icode, f->icode->instrs[f->icode->handlers[handler].target].handler, NULL);
        }
        if (f == t->root)
            break;
    }
    if (n == 0)
        return FG_FLOW_OK;
    const fg_ir_restore *last = t->ir.n_restores > 0 ? &t->ir.restores[t->ir.n_restores - 1] : NULL;
    *id = t->ir.n_restores - 1;
    if (last != NULL && last->n == n && memcmp(last->exits, exits, (size_t)n * sizeof *exits) == 0)
        return FG_FLOW_OK;
    fg_ir_restore *made = fg_ir_restore_add(&t->ir);
    if (made == NULL || (made->exits = fg_arena_alloc(&t->arena, (size_t)n * sizeof *exits)) == NULL)
        return fg_nomem();
    memcpy(made->exits, exits, (size_t)n * sizeof *exits);
    made->n = n;
    ++*id;
    return FG_FLOW_OK;
}
