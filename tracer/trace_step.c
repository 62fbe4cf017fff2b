/* From values to steps: where a value is at run time, and what has to happen there. */
#include "codegen/foreign_step.h"
#include "runtime/cpython/frame.h"
#include "tracer/trace_python.h"

#include <string.h>

enum { STACK_ROOM = 64 * 1024 };

int32_t fg_site_here(fg_trace *t)
{
    fg_tframe *f = t->frame;
    const fg_instr *instr = &f->icode->instrs[f->pc];
    if (f->site_id >= 0 && f->site_id < t->ir.n_sites && t->ir.sites[f->site_id].instr == instr &&
        t->ir.sites[f->site_id].parent == f->site)
        return f->site_id;
    if (t->ir.n_sites == t->ir.cap_sites) {
        int32_t cap = t->ir.cap_sites ? 2 * t->ir.cap_sites : 32;
        fg_site_ref *sites = fg_arena_alloc(&t->arena, (size_t)cap * sizeof *sites);
        if (sites == NULL)
            return -1;
        if (t->ir.n_sites)
            memcpy(sites, t->ir.sites, (size_t)t->ir.n_sites * sizeof *sites);
        t->ir.sites = sites;
        t->ir.cap_sites = cap;
    }
    t->ir.sites[t->ir.n_sites] = (fg_site_ref){
        .parent = f->site, .code = f->icode->code, .globals = f->globals ? f->globals->real : NULL, .instr = instr, .hidden = f->hidden};
    f->site_id = t->ir.n_sites;
    return t->ir.n_sites++;
}

/* Nothing but a lack of memory can end it early. */
static bool is_harmless(fg_step_op op, int flags)
{
    if (flags & (FG_SF_EFFECT | FG_SF_RAISES))
        return false;
    switch (op) {
    case FG_STEP_BINARY:
    case FG_STEP_UNARY:
    case FG_STEP_COMPARE:
    case FG_STEP_IS:
    case FG_STEP_BUILD_TUPLE:
    case FG_STEP_BUILD_LIST:
    case FG_STEP_BUILD_STRING:
    case FG_STEP_BUILD_SLICE: return true;
    default: return false;
    }
}

/* C code that warns means the function that it was called from. What else can be called may be Python code, which may mean a caller of that one. */
static bool is_c_code(const fg_trace *t, fg_step_op op, PyObject *name, fg_reg first)
{
    const fg_ir_reg *reg = &t->ir.regs[first];
    PyObject *callee = reg->object;
    if (op == FG_STEP_CALL_METHOD) {
        bool torch = reg->is_tensor == FG_TORCH_RESULT || (callee != NULL && fg_py_is_torch_type(Py_TYPE(callee)));
        callee = torch ? _PyType_Lookup(fg_py_torch_tensor_type(), name) : NULL;
        return callee == NULL || !PyFunction_Check(callee);
    }
    if (op != FG_STEP_CALL)
        return true;
    return callee != NULL && fg_py_is_c_code(callee);
}

/* The frames of inlined functions that the step is done in: the innermost one of the user's where it is of another file than the root and the step may warn,
 * for a warning names both the file and the globals; all of them where the step may look further. */
static fg_flow frames_around(fg_trace *t, fg_step_op op, int flags, PyObject *name, const fg_reg *args, fg_ir_frame **frames, int32_t *n)
{
    *n = 0;
    if ((t->opaque && (flags & FG_SF_GRAPH)) || t->frame == t->root || !(flags & (FG_SF_GRAPH | FG_SF_RAISES)) || !fg_is_foreign_kind(op))
        return FG_FLOW_OK;
    fg_tframe *innermost = t->frame;
    while (innermost->hidden && innermost->parent != NULL)
        innermost = innermost->parent;
    if (innermost == t->root)
        return FG_FLOW_OK;
    const bool is_alone = is_c_code(t, op, name, args[0]);
    if (is_alone && innermost->icode->code->co_filename == t->root->icode->code->co_filename &&
        innermost->globals->real == t->root->globals->real)
        return FG_FLOW_OK;
    for (const fg_tframe *f = innermost; f != t->root; f = f->parent)
        *n += !f->hidden;
    if (is_alone)
        *n = 1;
    if ((*frames = fg_arena_alloc(&t->arena, (size_t)*n * sizeof **frames)) == NULL)
        return fg_nomem();
    fg_tframe *f = innermost;
    for (int32_t i = *n - 1; i >= 0; f = f->parent) {
        if (f->hidden)
            continue;
        fg_ir_frame *frame = &(*frames)[i--];
        *frame = (fg_ir_frame){f->icode->code, f->icode->instrs[f->pc].offset, FG_REG_NONE};
        if (f->globals != t->root->globals)
            FG_DO(fg_materialise(t, f->globals, &frame->globals));
    }
    return FG_FLOW_OK;
}

fg_flow fg_emit_many(fg_trace *t, fg_step_op op, int flags, int arg, PyObject *name, PyObject *kwnames, const fg_reg *args, int32_t n,
                     int32_t n_results, fg_reg *first)
{
    int32_t caught = -1, context = -1, restore = -1;
    fg_ir_frame *frames = NULL;
    int32_t n_frames;
    FG_DO(frames_around(t, op, flags, name, args, &frames, &n_frames));
    if (!is_harmless(op, flags)) {
        FG_DO(fg_catch_here(t, &caught));
        FG_DO(fg_context_here(t, &context));
        FG_DO(fg_restore_here(t, &restore));
    }
    int32_t site = fg_site_here(t);
    fg_step *step = site < 0 ? NULL : fg_ir_step_add(&t->ir, op, args, n, n_results);
    if (step == NULL)
        return fg_nomem();
    if (t->ir.n_steps > 200000)
        return fg_break(t, FG_BREAK_TOO_LONG, "more than 200000 steps");
    step->flags = (uint8_t)(flags | (t->catching.is_making ? FG_SF_COLD : 0) | (fg_is_covered(t) ? FG_SF_COVERED : 0));
    step->arg = arg;
    step->name = name;
    step->kwnames = kwnames;
    step->site = site;
    step->caught = caught;
    step->context = context;
    step->restore = restore;
    step->frames = frames;
    step->n_frames = n_frames;
    step->ambient = t->ambient;
    if (first)
        *first = step->result;
    return FG_FLOW_OK;
}

fg_flow fg_emit(fg_trace *t, fg_step_op op, int flags, int arg, PyObject *name, PyObject *kwnames, const fg_reg *args, int32_t n,
                fg_reg *result)
{
    return fg_emit_many(t, op, flags, arg, name, kwnames, args, n, result ? 1 : 0, result);
}

static fg_flow input(fg_trace *t, fg_value *v, fg_node node)
{
    uint32_t position;
    if (v->real == NULL)
        return fg_break(t, FG_BREAK_RAISES, "unbound variable");
    if (fg_desc_output(t->desc, node, &position) != FG_OK)
        return fg_nomem();
    fg_reg reg = fg_ir_reg_add(&t->ir, FG_REG_INPUT, v->real);
    if (reg == FG_REG_NONE)
        return fg_nomem();
    t->ir.regs[reg].index = (int32_t)position;
    t->ir.regs[reg].is_tensor = v->kind == FG_V_TENSOR;
    if (v->acc == FG_ACC_ARG)
        t->ir.regs[reg].frame_slot = (int32_t)v->index;
    FG_SET(t, v->reg, reg);
    return FG_FLOW_OK;
}

static fg_flow constant(fg_trace *t, fg_value *v, PyObject *object)
{
    fg_reg reg = fg_ir_reg_add(&t->ir, FG_REG_CONST, object);
    if (reg == FG_REG_NONE)
        return fg_nomem();
    FG_SET(t, v->reg, reg);
    return FG_FLOW_OK;
}

/* A pinned object may stand in the generated code only if keeping it alive is harmless: C functions, registered operations, static types. */
static bool may_embed(PyObject *o)
{
    if (PyType_Check(o))
        return !(((PyTypeObject *)o)->tp_flags & Py_TPFLAGS_HEAPTYPE);
    return o == Py_None || o == Py_Ellipsis || o == Py_NotImplemented || fg_is_scalar_type(Py_TYPE(o)) == false;
}

static fg_flow materialise_items(fg_trace *t, fg_value **items, int32_t n, fg_reg **out)
{
    fg_reg *regs = fg_arena_alloc(&t->arena, (size_t)(n ? n : 1) * sizeof *regs);
    if (regs == NULL)
        return fg_nomem();
    for (int32_t i = 0; i < n; i++)
        FG_DO(fg_materialise(t, items[i], &regs[i]));
    *out = regs;
    return FG_FLOW_OK;
}

static PyObject *const_tuple(fg_trace *t, fg_value *v)
{
    for (int32_t i = 0; i < v->n; i++)
        if (v->items[i]->kind != FG_V_CONST || v->items[i]->node != FG_NODE_NONE || !fg_is_fold_const(v->items[i]->real))
            return NULL;
    PyObject *tuple = PyTuple_New(v->n);
    if (tuple == NULL)
        return NULL;
    for (int32_t i = 0; i < v->n; i++)
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(v->items[i]->real));
    return fg_own(t, tuple);
}

static fg_flow build(fg_trace *t, fg_value *v, fg_step_op op, fg_reg *regs, int32_t n)
{
    fg_reg reg = FG_REG_NONE;
    FG_DO(fg_emit(t, op, 0, 0, NULL, NULL, regs, n, &reg));
    FG_SET(t, v->reg, reg);
    return FG_FLOW_OK;
}

static fg_flow build_map(fg_trace *t, fg_value *v)
{
    fg_reg *regs = fg_arena_alloc(&t->arena, (size_t)(2 * v->map.n + 1) * sizeof *regs);
    if (regs == NULL)
        return fg_nomem();
    int32_t n = 0;
    for (int32_t i = 0; i < v->map.n; i++) {
        fg_vitem *item = &v->map.items[i];
        if (item->value == NULL)
            continue;
        if (item->keyval) {
            FG_DO(fg_materialise(t, item->keyval, &regs[n++]));
        } else {
            fg_reg key = fg_ir_reg_add(&t->ir, FG_REG_CONST, item->key);
            if (key == FG_REG_NONE)
                return fg_nomem();
            regs[n++] = key;
        }
        FG_DO(fg_materialise(t, item->value, &regs[n++]));
    }
    return build(t, v, FG_STEP_BUILD_MAP, regs, n);
}

static fg_flow build_function(fg_trace *t, fg_value *v)
{
    fg_reg regs[5];
    int32_t n = 0;
    int bits = 0;
    FG_DO(fg_look(t, &v->d));
    FG_DO(fg_look(t, &t->root->globals));
    if (v->d != t->root->globals)
        return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "a function of another module's globals made here");
    fg_value *attrs[5] = {v->c, v->items ? v->items[1] : NULL, v->items ? v->items[0] : NULL, v->b, v->a};
    static const int bit[5] = {8, 16, 4, 2, 1};
    for (int i = 0; i < 5; i++)
        if (attrs[i]) {
            FG_DO(fg_materialise(t, attrs[i], &regs[n++]));
            bits |= bit[i];
        }
    fg_reg reg;
    FG_DO(fg_emit(t, FG_STEP_MAKE_FUNCTION, 0, bits, v->real, NULL, regs, n, &reg));
    FG_SET(t, v->reg, reg);
    return FG_FLOW_OK;
}

static fg_flow call_type(fg_trace *t, fg_value *v, PyTypeObject *type, fg_value *const *args, int32_t n)
{
    fg_reg regs[4];
    if ((regs[0] = fg_ir_reg_add(&t->ir, FG_REG_CONST, (PyObject *)type)) == FG_REG_NONE)
        return fg_nomem();
    for (int32_t i = 0; i < n; i++)
        FG_DO(fg_materialise(t, args[i], &regs[i + 1]));
    return build(t, v, FG_STEP_CALL, regs, n + 1);
}

/* A method of C by its descriptor: by name the instance or the class may have another one than the class further up that super found it in. */
static fg_flow bind_at_run_time(fg_trace *t, fg_value *method, fg_value *self, fg_value *cls)
{
    fg_reg all[3], reg;
    FG_DO(fg_materialise(t, method->a, &all[0]));
    FG_DO(fg_materialise(t, self, &all[1]));
    FG_DO(fg_materialise(t, cls, &all[2]));
    FG_DO(fg_emit(t, FG_STEP_CALL_METHOD, 0, 0, fg_names.s_get, NULL, all, 3, &reg));
    FG_SET(t, method->reg, reg);
    return FG_FLOW_OK;
}

static fg_flow materialise_virtual(fg_trace *t, fg_value *v)
{
    fg_reg *regs;
    switch ((fg_vkind)v->kind) {
    case FG_V_CONST: return constant(t, v, v->real);
    case FG_V_LIST: FG_DO(materialise_items(t, v->items, v->n, &regs)); return build(t, v, FG_STEP_BUILD_LIST, regs, v->n);
    case FG_V_TUPLE: {
        if (fg_is_own_tuple(v)) {
            fg_reg regs3[3];
            fg_value *plain = fg_value_seq(t, FG_V_TUPLE, v->items, v->n), *cls;
            if (plain == NULL)
                return FG_FLOW_ERROR;
            if ((regs3[0] = fg_ir_reg_add(&t->ir, FG_REG_CONST, fg_tuple_new_function())) == FG_REG_NONE)
                return fg_nomem();
            FG_DO(fg_object_type(t, v, &cls));
            FG_DO(fg_materialise(t, cls, &regs3[1]));
            FG_DO(fg_materialise(t, plain, &regs3[2]));
            return build(t, v, FG_STEP_CALL, regs3, 3);
        }
        if (v->type != &PyTuple_Type) { /* a tuple with names is called with one without */
            fg_value *plain = fg_value_seq(t, FG_V_TUPLE, v->items, v->n);
            return plain ? call_type(t, v, v->type, &plain, 1) : FG_FLOW_ERROR;
        }
        PyObject *tuple = const_tuple(t, v);
        if (tuple)
            return constant(t, v, tuple);
        if (PyErr_Occurred())
            return FG_FLOW_ERROR;
        FG_DO(materialise_items(t, v->items, v->n, &regs));
        return build(t, v, FG_STEP_BUILD_TUPLE, regs, v->n);
    }
    case FG_V_SET: FG_DO(materialise_items(t, v->items, v->n, &regs)); return build(t, v, FG_STEP_BUILD_SET, regs, v->n);
    case FG_V_SLICE: FG_DO(materialise_items(t, v->items, v->n, &regs)); return build(t, v, FG_STEP_BUILD_SLICE, regs, v->n);
    case FG_V_DICT: return build_map(t, v);
    case FG_V_FUNC: return build_function(t, v);
    case FG_V_METHOD:
        if (v->a->kind == FG_V_FUNC)
            return call_type(t, v, &PyMethod_Type, (fg_value *[]){v->a, v->b}, 2);
        if (v->a->kind == FG_V_CONST && Py_IS_TYPE(v->a->real, &PyClassMethodDescr_Type)) {
            fg_value *none = fg_value_const(t, Py_None);
            return none ? bind_at_run_time(t, v, none, v->b) : FG_FLOW_ERROR;
        }
        if (v->b->kind == FG_V_OBJECT && v->a->kind == FG_V_CONST && Py_TYPE(v->a->real)->tp_descr_get != NULL) {
            fg_value *type;
            FG_DO(fg_object_type(t, v->b, &type)); /* 3.11 takes it unchecked for methods that ask for their class */
            return bind_at_run_time(t, v, v->b, type);
        }
        if (v->key != NULL) {
            fg_reg self, reg;
            FG_DO(fg_materialise(t, v->b, &self));
            FG_DO(fg_emit(t, FG_STEP_ATTR, 0, 0, v->key, NULL, &self, 1, &reg));
            FG_SET(t, v->reg, reg);
            return FG_FLOW_OK;
        }
        break;
    case FG_V_CELL: return call_type(t, v, &PyCell_Type, &v->a, v->a ? 1 : 0);
    case FG_V_OBJECT: {
        fg_reg reg;
        FG_DO(fg_object_materialise(t, v, &reg));
        FG_SET(t, v->reg, reg);
        return FG_FLOW_OK;
    }
    case FG_V_VIEW: {
        if (fg_is_attrs(v)) {
            fg_reg regs[3] = {fg_ir_reg_add(&t->ir, FG_REG_CONST, fg_names.object_getattribute), FG_REG_NONE, FG_REG_NONE}, attrs;
            FG_DO(fg_materialise(t, v->a, &regs[1])); /* the class may have another way to read attributes */
            regs[2] = fg_ir_reg_add(&t->ir, FG_REG_CONST, fg_names.s_dict);
            if (regs[0] == FG_REG_NONE || regs[2] == FG_REG_NONE)
                return fg_nomem();
            FG_DO(fg_emit(t, FG_STEP_CALL, 0, 0, NULL, NULL, regs, 3, &attrs));
            FG_SET(t, v->reg, attrs);
            return FG_FLOW_OK;
        }
        static const char *const names[] = {"keys", "values", "items"};
        PyObject *name = fg_own(t, PyUnicode_InternFromString(names[v->iter_kind]));
        fg_reg self, reg;
        if (name == NULL)
            return FG_FLOW_ERROR;
        FG_DO(fg_materialise(t, v->a, &self));
        FG_DO(fg_emit(t, FG_STEP_CALL_METHOD, 0, 0, name, NULL, &self, 1, &reg));
        FG_SET(t, v->reg, reg);
        return FG_FLOW_OK;
    }
    case FG_V_ITER: {
        fg_reg reg;
        FG_DO(fg_iter_materialise(t, v, &reg));
        FG_SET(t, v->reg, reg);
        return FG_FLOW_OK;
    }
    case FG_V_LAZY:
    case FG_V_SCALAR:
    case FG_V_TENSOR:
    case FG_V_SUPER:
    case FG_V_OPAQUE: break;
    }
    return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "a value of kind %d has no run-time form", v->kind);
}

static fg_flow materialise(fg_trace *t, fg_value *v)
{
    fg_node node;
    FG_DO(fg_deeper(t));
    FG_DO(fg_node_of(t, v, &node));
    if (node != FG_NODE_NONE)
        return v->kind == FG_V_CONST && may_embed(v->real) && !PyFunction_Check(v->real) ? constant(t, v, v->real) : input(t, v, node);
    if (v->is_building)
        return fg_break(t, FG_BREAK_ALIASING, "a container that contains itself");
    if (fg_stack_left() < STACK_ROOM)
        return fg_break(t, FG_BREAK_TOO_LONG, "containers nested very deep");
    FG_SET(t, v->is_building, 1);
    FG_DO(materialise_virtual(t, v));
    FG_SET(t, v->is_building, 0);
    if (t->catching.is_making && t->ir.regs[v->reg].kind == FG_REG_STEP)
        FG_DO(fg_push(t, &t->catching.made, &t->catching.n_made, &t->catching.cap_made, v));
    return FG_FLOW_OK;
}

fg_flow fg_materialise(fg_trace *t, fg_value *v, fg_reg *reg)
{
    if (v->reg == FG_REG_NONE) {
        fg_flow flow = materialise(t, v);
        if (flow == FG_FLOW_BREAK && t->unmade == UINT32_MAX) /* the innermost that has none */
            t->unmade = v->born;
        FG_DO(flow);
    }
    *reg = v->reg;
    return FG_FLOW_OK;
}
