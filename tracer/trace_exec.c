/* The executor: one case per canonical instruction, over symbolic values.
 *
 * Rules for a case:
 *  1. Work out everything that may break before the stack is changed, or rely on the undo log: a break takes the whole root instruction back.
 *  2. What may push a frame (calls, properties, operators of classes) leaves pc where it is; the return advances it and pushes the result.
 *  3. No case knows a CPython version.
 */
#include "runtime/cpython/frame.h"
#include "tracer/trace_python.h"

#include <string.h>

static inline fg_flow push(fg_trace *t, fg_value *v)
{
    fg_tframe *f = t->frame;
    if (v == NULL)
        return FG_FLOW_ERROR;
    FG_SET(t, f->stack[f->sp], v);
    FG_SET(t, f->sp, f->sp + 1);
    return FG_FLOW_OK;
}

static inline fg_flow drop(fg_trace *t, int32_t n)
{
    FG_SET(t, t->frame->sp, t->frame->sp - n);
    return FG_FLOW_OK;
}

#define TOP(i) (f->stack[f->sp - (i)])

static fg_flow push_const(fg_trace *t, PyObject *object)
{
    return push(t, fg_value_const(t, object));
}

/* After an operation of `n` operands that may have pushed a frame: out is NULL then. */
static fg_flow give(fg_trace *t, fg_tframe *f, int32_t n, fg_value *out)
{
    FG_SET(t, f->sp, f->sp - n);
    return out != NULL ? push(t, out) : FG_FLOW_OK;
}

static fg_value *const_seq(fg_trace *t, fg_value *v, fg_vkind kind)
{
    if (v->kind != FG_V_CONST || !PyTuple_CheckExact(v->real))
        return v;
    fg_value *seq = fg_value_seq(t, kind, NULL, 0);
    for (Py_ssize_t i = 0; seq != NULL && i < PyTuple_GET_SIZE(v->real); i++) {
        fg_value *item = fg_value_const(t, PyTuple_GET_ITEM(v->real, i));
        if (item == NULL || fg_seq_append(t, seq, item) != FG_FLOW_OK)
            return NULL;
    }
    return seq;
}

/* --- cells */

static fg_flow cell_at(fg_trace *t, int32_t slot, fg_value **cell)
{
    *cell = t->frame->locals[slot];
    if (*cell == NULL)
        return fg_break(t, FG_BREAK_RAISES, "unbound cell");
    FG_DO(fg_look(t, cell));
    return (*cell)->kind == FG_V_CELL ? FG_FLOW_OK : fg_break(t, FG_BREAK_INTERNAL, "slot %d holds no cell", slot);
}

static fg_flow store_deref(fg_trace *t, int32_t slot, fg_value *v)
{
    fg_value *cell;
    FG_DO(cell_at(t, slot, &cell));
    if (!fg_is_virtual(cell)) {
        fg_reg regs[2];
        FG_DO(fg_drop_cell(t, cell));
        FG_SET(t, cell->is_mutated, 1);
        FG_DO(fg_materialise(t, v, &regs[0]));
        FG_DO(fg_materialise(t, cell, &regs[1]));
        FG_DO(fg_emit(t, FG_STEP_STORE_ATTR, FG_SF_EFFECT, 0, fg_names.s_cell_contents, NULL, regs, 2, NULL));
    }
    FG_SET(t, cell->a, v);
    return FG_FLOW_OK;
}

/* --- containers */

static fg_flow build_map(fg_trace *t, fg_tframe *f, int32_t n, PyObject *keys)
{
    fg_value *dict = fg_value_new(t, FG_V_DICT);
    if (dict == NULL)
        return FG_FLOW_ERROR;
    dict->is_complete = 1;
    dict->type = &PyDict_Type;
    int32_t width = keys ? n + 1 : 2 * n;
    for (int32_t i = 0; i < n; i++) {
        fg_value *key = keys ? fg_value_const(t, PyTuple_GET_ITEM(keys, i)) : f->stack[f->sp - width + 2 * i];
        fg_value *v = keys ? f->stack[f->sp - width + i] : f->stack[f->sp - width + 2 * i + 1];
        if (key == NULL)
            return FG_FLOW_ERROR;
        FG_DO(fg_look(t, &key));
        FG_DO(fg_dict_set(t, dict, key, v));
    }
    return give(t, f, width, dict);
}

static fg_flow method_on(fg_trace *t, fg_value *self, const char *name, fg_value **args, int32_t n)
{
    fg_value *unused;
    PyObject *text = fg_own(t, PyUnicode_InternFromString(name));
    FG_DO(fg_look(t, &self)); /* in a resumed frame it may come from the stack */
    if (self->kind != FG_V_LIST && self->kind != FG_V_DICT && self->kind != FG_V_SET)
        return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "a display under construction");
    return text ? fg_container_method(t, self, text, args, n, NULL, &unused) : FG_FLOW_ERROR;
}

static fg_flow build_set(fg_trace *t, fg_tframe *f, int32_t n)
{
    fg_value *set = fg_value_seq(t, FG_V_SET, NULL, 0);
    if (set == NULL)
        return FG_FLOW_ERROR;
    for (int32_t i = 0; i < n; i++)
        FG_DO(method_on(t, set, "add", &f->stack[f->sp - n + i], 1));
    return give(t, f, n, set);
}

static fg_flow unpack_ex(fg_trace *t, fg_tframe *f, int32_t arg)
{
    int32_t before = arg & 0xff, after = arg >> 8, n;
    fg_value **items;
    FG_DO(fg_iterate(t, TOP(1), &items, &n));
    if (n < before + after)
        return fg_break(t, FG_BREAK_RAISES, "not enough values to unpack");
    fg_value *rest = fg_value_seq(t, FG_V_LIST, items + before, n - before - after);
    if (rest == NULL)
        return FG_FLOW_ERROR;
    FG_DO(drop(t, 1));
    for (int32_t i = n - 1; i >= n - after; i--)
        FG_DO(push(t, items[i]));
    FG_DO(push(t, rest));
    for (int32_t i = before - 1; i >= 0; i--)
        FG_DO(push(t, items[i]));
    return FG_FLOW_OK;
}

/* --- functions */

static fg_flow make_function(fg_trace *t, fg_tframe *f)
{
    fg_value *code = TOP(1);
    if (code->kind != FG_V_CONST || !PyCode_Check(code->real))
        return fg_break(t, FG_BREAK_INTERNAL, "a function without code");
    fg_value *v = fg_value_new(t, FG_V_FUNC);
    if (v == NULL)
        return FG_FLOW_ERROR;
    v->real = code->real;
    v->type = &PyFunction_Type;
    v->d = f->globals;
    return give(t, f, 1, v);
}

static fg_flow function_attribute(fg_trace *t, fg_tframe *f, int32_t bit)
{
    fg_value *func = TOP(1), *attr = TOP(2);
    if (func->kind != FG_V_FUNC || func->node != FG_NODE_NONE)
        return fg_break(t, FG_BREAK_INTERNAL, "function attribute");
    if (bit == 8)
        FG_SET(t, func->c, attr);
    else if (bit == 1)
        FG_SET(t, func->a, const_seq(t, attr, FG_V_TUPLE));
    else if (bit == 2)
        FG_SET(t, func->b, attr);
    else {
        fg_value **items = fg_arena_alloc(&t->arena, 2 * sizeof *items); /* annotations, or what computes them */
        if (items == NULL)
            return fg_nomem();
        items[bit == 16] = attr;
        items[bit != 16] = func->items != NULL ? func->items[bit != 16] : NULL;
        FG_SET(t, func->items, items);
    }
    if (bit == 1 && func->a == NULL)
        return FG_FLOW_ERROR;
    return give(t, f, 2, func);
}

/* --- calls */

static bool is_unbound(const fg_value *v)
{
    return v->kind == FG_V_LAZY && v->real == NULL;
}

/* super() that is not used at once for an attribute, which would be an instruction of its own: class and first argument are those of the frame. */
static fg_flow call_super_here(fg_trace *t, fg_tframe *f, fg_value *callee, fg_value **out)
{
    const int32_t slot = fg_icode_class_slot(f->icode);
    fg_value *cell, *first = f->locals[0];
    if (slot < 0 || f->icode->code->co_argcount < 1)
        return fg_break(t, FG_BREAK_RAISES, "super() of no method");
    FG_DO(cell_at(t, slot, &cell));
    if (PyBytes_AS_STRING(f->icode->code->co_localspluskinds)[0] & 0x40) {
        fg_value *around;
        FG_DO(cell_at(t, 0, &around));
        first = around->a;
    }
    if (cell->a == NULL || first == NULL || is_unbound(first))
        return fg_break(t, FG_BREAK_RAISES, "super() of an unbound variable");
    if (cell->a->kind == FG_V_LAZY)
        FG_DO(fg_rely_on(t, cell->a));
    if (first->kind == FG_V_LAZY)
        FG_DO(fg_rely_on(t, first));
    return fg_super_call(t, callee, cell->a, first, out);
}

static fg_flow call(fg_trace *t, fg_tframe *f, int32_t n, PyObject *kwnames, int32_t extra)
{
    fg_value *out, *callee = f->stack[f->sp - n - 1 - extra];
    if (n == 0 && kwnames == NULL) {
        FG_DO(fg_look(t, &callee));
        if (callee->kind == FG_V_CONST && callee->real == (PyObject *)&PySuper_Type) {
            FG_DO(call_super_here(t, f, callee, &out));
            return give(t, f, 1, out);
        }
    }
    fg_value **args = fg_arena_alloc(&t->arena, (size_t)(n + 1) * sizeof *args);
    if (args == NULL)
        return fg_nomem();
    memcpy(args, &f->stack[f->sp - n - extra], (size_t)n * sizeof *args);
    FG_DO(fg_call(t, callee, args, n, kwnames, &out));
    return give(t, f, n + 1 + extra, out);
}

static fg_flow call_ex(fg_trace *t, fg_tframe *f, int32_t has_kwargs)
{
    fg_value *kwargs = has_kwargs ? TOP(1) : NULL, *pos = TOP(1 + has_kwargs), *callee = TOP(2 + has_kwargs), **items, *out;
    int32_t n, nkw = 0;
    PyObject *names = NULL;
    FG_DO(fg_iterate(t, pos, &items, &n));
    if (kwargs != NULL) {
        FG_DO(fg_look(t, &kwargs));
        if (kwargs->kind != FG_V_DICT)
            return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "** of a %s", kwargs->type ? kwargs->type->tp_name : "run-time object");
        FG_DO(fg_dict_load(t, kwargs));
        nkw = kwargs->map.n;
    }
    fg_value **args = fg_arena_alloc(&t->arena, (size_t)(n + nkw + 1) * sizeof *args);
    if (args == NULL)
        return fg_nomem();
    if (n)
        memcpy(args, items, (size_t)n * sizeof *args);
    if (nkw > 0) {
        if ((names = fg_own(t, PyTuple_New(nkw))) == NULL)
            return FG_FLOW_ERROR;
        for (int32_t i = 0; i < nkw; i++) {
            if (!PyUnicode_CheckExact(kwargs->map.items[i].key))
                return fg_break(t, FG_BREAK_RAISES, "keywords must be strings");
            PyTuple_SET_ITEM(names, i, Py_NewRef(kwargs->map.items[i].key));
            args[n + i] = kwargs->map.items[i].value;
        }
    }
    FG_DO(fg_call(t, callee, args, n + nkw, names, &out));
    return give(t, f, 2 + has_kwargs, out);
}

/* Leave an inlined frame: the caller goes on after its call. */
static fg_flow return_from(fg_trace *t, fg_tframe *f, fg_value *v)
{
    fg_tframe *caller = f->parent;
    if (f->on_result == FG_RESULT_IMPLEMENTED) {
        FG_DO(fg_look(t, &v));
        if (v->kind == FG_V_OPAQUE || (v->kind == FG_V_CONST && v->real == Py_NotImplemented))
            return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "an operator that gave NotImplemented");
    }
    if (f->made_by != NULL) {
        FG_DO(fg_look(t, &v));
        FG_DO(fg_made_is_ready(t, f->made_by, v));
    }
    if (f->on_return != NULL) {
        FG_DO(fg_look(t, &v));
        if (v->kind != FG_V_CONST || v->real != Py_None)
            return fg_break(t, FG_BREAK_RAISES, "__init__() should return None");
        v = f->on_return;
    }
    FG_SET(t, t->frame, caller);
    FG_SET(t, t->inline_depth, t->inline_depth - 1);
    if (f->on_result == FG_RESULT_KEEP) {
        FG_SET(t, f->yielded, v);
        return FG_FLOW_OK;
    }
    FG_SET(t, caller->pc, caller->pc + 1);
    return f->on_result == FG_RESULT_DROP ? FG_FLOW_OK : push(t, v);
}

static fg_flow jump(fg_trace *t, fg_tframe *f, int32_t target)
{
    FG_SET(t, f->pc, target - 1); /* the common tail adds one */
    return FG_FLOW_OK;
}

/* `yield from`: the next item goes on the stack in place of what was sent; at the end both give way to the result. Nothing but None is ever sent to
 * a generator that is traced. */
static fg_flow send_none(fg_trace *t, fg_tframe *f, int32_t target)
{
    fg_value *it = TOP(2), *item;
    if (!f->is_generator)
        return fg_break(t, FG_BREAK_GENERATOR, "yield from");
    FG_DO(fg_look(t, &it));
    FG_DO(fg_iter_next(t, it, &item));
    if (item != NULL)
        return give(t, f, 1, item);
    item = it->iter_kind == FG_ITER_GENERATOR ? it->frame->yielded : fg_value_const(t, Py_None);
    if (item == NULL)
        return FG_FLOW_ERROR;
    FG_DO(give(t, f, 2, item));
    return jump(t, f, target);
}

static fg_flow is_op(fg_trace *t, fg_tframe *f, int32_t inverted)
{
    fg_value *a = TOP(2), *b = TOP(1), *out;
    int same;
    bool known;
    FG_DO(fg_look(t, &a));
    FG_DO(fg_look(t, &b));
    FG_DO(fg_same_object(t, a, b, &same, &known));
    if (known) {
        if ((out = fg_value_const(t, same != inverted ? Py_True : Py_False)) == NULL)
            return FG_FLOW_ERROR;
    } else {
        fg_reg regs[2], reg;
        FG_DO(fg_materialise(t, a, &regs[0]));
        FG_DO(fg_materialise(t, b, &regs[1]));
        FG_DO(fg_emit(t, FG_STEP_IS, 0, inverted, NULL, NULL, regs, 2, &reg));
        if ((out = fg_value_step(t, FG_V_SCALAR, reg, &PyBool_Type, NULL)) == NULL)
            return FG_FLOW_ERROR;
    }
    return give(t, f, 2, out);
}

static fg_flow match_test(fg_trace *t, fg_tframe *f, bool mapping)
{
    fg_value *v = TOP(1);
    FG_DO(fg_look(t, &v));
    bool yes;
    switch ((fg_vkind)v->kind) {
    case FG_V_LIST:
    case FG_V_TUPLE: yes = !mapping; break;
    case FG_V_DICT: yes = mapping; break;
    case FG_V_SCALAR:
    case FG_V_SET:
    case FG_V_FUNC: yes = false; break;
    case FG_V_CONST: yes = (Py_TYPE(v->real)->tp_flags & (mapping ? Py_TPFLAGS_MAPPING : Py_TPFLAGS_SEQUENCE)) != 0; break;
    default: return fg_break(t, FG_BREAK_UNSUPPORTED_INSTRUCTION, "match of %s", v->type ? v->type->tp_name : "a run-time object");
    }
    return push_const(t, yes ? Py_True : Py_False);
}

static fg_flow give_bool(fg_trace *t, fg_tframe *f, int32_t n, bool yes)
{
    return give(t, f, n, fg_value_const(t, yes ? Py_True : Py_False));
}

/* The variable of a comprehension is saved on the stack while it runs. An unbound one is there as a value that stands for nothing: the
 * comprehension only moves it and stores it back. */
static fg_flow load_and_clear(fg_trace *t, fg_tframe *f, int32_t slot)
{
    fg_value *v = f->locals[slot];
    if (v == NULL || is_unbound(v)) {
        if (t->nothing == NULL && (t->nothing = fg_value_new(t, FG_V_LAZY)) == NULL)
            return FG_FLOW_ERROR;
        v = t->nothing;
        FG_SET(t, f->n_saved, f->n_saved + 1);
    }
    FG_SET(t, f->locals[slot], NULL);
    return push(t, v);
}

fg_flow fg_trace_step(fg_trace *t, bool *returned, fg_value **value)
{
    fg_tframe *f = t->frame;
    const fg_instr *in = &f->icode->instrs[f->pc];
    fg_value *out = NULL, *v;
    bool truth;
    switch ((fg_cop)in->op) {
    case FG_OP_NOP:
    case FG_OP_RESUME:
    case FG_OP_CALLEE: break;
    case FG_OP_LOAD_FAST:
        v = f->locals[in->arg];
        if (v == NULL || is_unbound(v))
            return fg_break(t, FG_BREAK_RAISES, "unbound local variable");
        FG_DO(push(t, v));
        break;
    case FG_OP_STORE_FAST:
        if (TOP(1) == t->nothing) {
            FG_SET(t, f->locals[in->arg], NULL);
            FG_SET(t, f->n_saved, f->n_saved - 1);
        } else {
            FG_SET(t, f->locals[in->arg], TOP(1));
        }
        FG_DO(drop(t, 1));
        break;
    case FG_OP_LOAD_FAST_AND_CLEAR: FG_DO(load_and_clear(t, f, in->arg)); break;
    case FG_OP_DELETE_FAST:
        if ((v = f->locals[in->arg]) == NULL || is_unbound(v))
            return fg_break(t, FG_BREAK_RAISES, "unbound local variable");
        FG_SET(t, f->locals[in->arg], NULL);
        break;
    case FG_OP_LOAD_DEREF:
        FG_DO(cell_at(t, in->arg, &v));
        if (v->a == NULL)
            return fg_break(t, FG_BREAK_RAISES, "unbound variable");
        if (v->a->kind == FG_V_LAZY)
            FG_DO(fg_rely_on(t, v->a));
        FG_DO(push(t, v->a));
        break;
    case FG_OP_STORE_DEREF:
        FG_DO(store_deref(t, in->arg, TOP(1)));
        FG_DO(drop(t, 1));
        break;
    case FG_OP_MAKE_CELL:
        if ((v = fg_value_new(t, FG_V_CELL)) == NULL)
            return FG_FLOW_ERROR;
        v->type = &PyCell_Type;
        v->a = f->locals[in->arg];
        FG_SET(t, f->locals[in->arg], v);
        break;
    case FG_OP_COPY_FREE_VARS:
        if (f->closure == NULL || f->closure->n < in->arg)
            return fg_break(t, FG_BREAK_INTERNAL, "closure");
        for (int32_t i = 0; i < in->arg; i++)
            FG_SET(t, f->locals[f->n_locals - in->arg + i], f->closure->items[i]);
        break;
    case FG_OP_LOAD_GLOBAL:
        FG_DO(fg_global_load(t, f, in->obj, &out));
        FG_DO(push(t, out));
        break;
    case FG_OP_STORE_GLOBAL:
        v = TOP(1);
        FG_DO(fg_global_store(t, f, in->obj, v));
        FG_DO(drop(t, 1));
        break;
    case FG_OP_DELETE_GLOBAL: FG_DO(fg_global_store(t, f, in->obj, NULL)); break;
    case FG_OP_LOAD_CONST: FG_DO(push_const(t, in->obj)); break;
    case FG_OP_LOAD_COMMON:
        if (in->obj == NULL)
            return fg_break(t, FG_BREAK_UNSUPPORTED_INSTRUCTION, "%s", fg_cop_name(in->op));
        FG_DO(push_const(t, in->obj));
        break;
    case FG_OP_POP_TOP: FG_DO(drop(t, 1)); break;
    case FG_OP_COPY: FG_DO(push(t, TOP(in->arg))); break;
    case FG_OP_SWAP:
        v = TOP(1);
        FG_SET(t, TOP(1), TOP(in->arg));
        FG_SET(t, TOP(in->arg), v);
        break;
    case FG_OP_BUILD_TUPLE:
    case FG_OP_BUILD_LIST:
    case FG_OP_BUILD_SLICE:
        out = fg_value_seq(t,
                           in->op == FG_OP_BUILD_LIST    ? FG_V_LIST
                           : in->op == FG_OP_BUILD_TUPLE ? FG_V_TUPLE
                                                         : FG_V_SLICE,
                           &f->stack[f->sp - in->arg], in->arg);
        if (out == NULL)
            return FG_FLOW_ERROR;
        FG_DO(give(t, f, in->arg, out));
        break;
    case FG_OP_BUILD_SET: FG_DO(build_set(t, f, in->arg)); break;
    case FG_OP_BUILD_STRING:
        FG_DO(fg_build_string(t, &f->stack[f->sp - in->arg], in->arg, &out));
        FG_DO(give(t, f, in->arg, out));
        break;
    case FG_OP_BUILD_MAP: FG_DO(build_map(t, f, in->arg, NULL)); break;
    case FG_OP_BUILD_CONST_KEY_MAP:
        v = TOP(1);
        if (v->kind != FG_V_CONST || !PyTuple_CheckExact(v->real))
            return fg_break(t, FG_BREAK_INTERNAL, "keys of a dict display");
        FG_DO(build_map(t, f, in->arg, v->real));
        break;
    case FG_OP_LIST_APPEND:
        FG_DO(method_on(t, TOP(1 + in->arg), "append", &TOP(1), 1));
        FG_DO(drop(t, 1));
        break;
    case FG_OP_SET_ADD:
        FG_DO(method_on(t, TOP(1 + in->arg), "add", &TOP(1), 1));
        FG_DO(drop(t, 1));
        break;
    case FG_OP_MAP_ADD:
        v = TOP(2);
        out = TOP(2 + in->arg);
        FG_DO(fg_look(t, &v));
        FG_DO(fg_look(t, &out));
        if (out->kind != FG_V_DICT)
            return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "a display under construction");
        FG_DO(fg_dict_set(t, out, v, TOP(1)));
        FG_DO(drop(t, 2));
        break;
    case FG_OP_LIST_EXTEND:
        FG_DO(method_on(t, TOP(1 + in->arg), "extend", &TOP(1), 1));
        FG_DO(drop(t, 1));
        break;
    case FG_OP_SET_UPDATE: {
        fg_value **items, *set = TOP(1 + in->arg);
        FG_DO(fg_look(t, &set));
        int32_t n;
        FG_DO(fg_iterate(t, TOP(1), &items, &n));
        for (int32_t i = 0; i < n; i++)
            FG_DO(method_on(t, set, "add", &items[i], 1));
        FG_DO(drop(t, 1));
        break;
    }
    case FG_OP_DICT_UPDATE:
    case FG_OP_DICT_MERGE: {
        fg_value *dict = TOP(1 + in->arg), *other = TOP(1);
        FG_DO(fg_look(t, &other));
        FG_DO(fg_look(t, &dict));
        if (other->kind != FG_V_DICT || dict->kind != FG_V_DICT)
            return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "** of a %s", other->type ? other->type->tp_name : "run-time object");
        FG_DO(fg_dict_load(t, other));
        for (int32_t i = 0; in->op == FG_OP_DICT_MERGE && i < other->map.n; i++)
            if (fg_map_find(&dict->map, other->map.items[i].key, other->map.items[i].hash) != NULL)
                return fg_break(t, FG_BREAK_RAISES, "multiple values for a keyword argument");
        FG_DO(method_on(t, dict, "update", &other, 1));
        FG_DO(drop(t, 1));
        break;
    }
    case FG_OP_LIST_TO_TUPLE:
        v = TOP(1);
        FG_DO(fg_look(t, &v));
        if (v->kind != FG_V_LIST)
            return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "a display under construction");
        FG_DO(fg_list_load(t, v));
        if ((out = fg_value_seq(t, FG_V_TUPLE, v->items, v->n)) == NULL)
            return FG_FLOW_ERROR;
        FG_DO(give(t, f, 1, out));
        break;
    case FG_OP_UNPACK_SEQUENCE: {
        fg_value **items = fg_arena_alloc(&t->arena, (size_t)(in->arg + 1) * sizeof *items);
        if (items == NULL)
            return fg_nomem();
        FG_DO(fg_unpack(t, TOP(1), in->arg, items));
        FG_DO(drop(t, 1));
        for (int32_t i = in->arg - 1; i >= 0; i--)
            FG_DO(push(t, items[i]));
        break;
    }
    case FG_OP_UNPACK_EX: FG_DO(unpack_ex(t, f, in->arg)); break;
    case FG_OP_UNARY_NEGATIVE:
    case FG_OP_UNARY_INVERT:
    case FG_OP_UNARY_POSITIVE:
        v = TOP(1);
        FG_DO(fg_look(t, &v));
        if (v->kind == FG_V_TENSOR)
            FG_DO(fg_tensor_unary(t, in->op, v, &out));
        else if (fg_is_scalar(v))
            FG_DO(fg_scalar_unary(t, in->op, v, &out));
        else
            return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "operator on %s", v->type ? v->type->tp_name : "a run-time object");
        FG_DO(give(t, f, 1, out));
        break;
    case FG_OP_UNARY_NOT:
    case FG_OP_TO_BOOL:
        FG_DO(fg_truth(t, TOP(1), &truth));
        FG_DO(give_bool(t, f, 1, truth != (in->op == FG_OP_UNARY_NOT)));
        break;
    case FG_OP_BINARY_OP:
        FG_DO(fg_binary(t, in->arg, TOP(2), TOP(1), &out));
        FG_DO(give(t, f, 2, out));
        break;
    case FG_OP_COMPARE_OP:
        FG_DO(fg_compare(t, in->arg, TOP(2), TOP(1), &out));
        FG_DO(give(t, f, 2, out));
        break;
    case FG_OP_IS_OP: FG_DO(is_op(t, f, in->arg)); break;
    case FG_OP_CONTAINS_OP:
        FG_DO(fg_contains(t, TOP(2), TOP(1), &truth));
        FG_DO(give_bool(t, f, 2, truth != in->arg));
        break;
    case FG_OP_LOAD_ATTR:
    case FG_OP_LOAD_METHOD:
        FG_DO(fg_attr_load(t, TOP(1), in->obj, &out));
        FG_DO(give(t, f, 1, out));
        break;
    case FG_OP_STORE_ATTR:
        FG_DO(fg_attr_store(t, TOP(1), in->obj, TOP(2)));
        FG_SET(t, f->sp, f->sp - 2);
        break;
    case FG_OP_DELETE_ATTR:
        FG_DO(fg_attr_delete(t, TOP(1), in->obj));
        FG_DO(drop(t, 1));
        break;
    case FG_OP_BINARY_SUBSCR:
        FG_DO(fg_subscr(t, TOP(2), TOP(1), &out));
        FG_DO(give(t, f, 2, out));
        break;
    case FG_OP_STORE_SUBSCR:
        FG_DO(fg_store_subscr(t, TOP(2), TOP(1), TOP(3)));
        FG_DO(drop(t, 3));
        break;
    case FG_OP_DELETE_SUBSCR:
        FG_DO(fg_delete_subscr(t, TOP(2), TOP(1)));
        FG_DO(drop(t, 2));
        break;
    case FG_OP_CALL: FG_DO(call(t, f, in->arg, NULL, 0)); break;
    case FG_OP_CALL_KW:
        v = TOP(1);
        if (v->kind != FG_V_CONST || !PyTuple_CheckExact(v->real))
            return fg_break(t, FG_BREAK_INTERNAL, "keyword names");
        FG_DO(call(t, f, in->arg, v->real, 1));
        break;
    case FG_OP_CALL_EX: FG_DO(call_ex(t, f, in->arg)); break;
    case FG_OP_CALL_SUPER:
        FG_DO(fg_super_call(t, TOP(3), TOP(2), TOP(1), &out));
        FG_DO(give(t, f, 3, out));
        break;
    case FG_OP_JUMP: FG_DO(jump(t, f, in->target)); break;
    case FG_OP_JUMP_IF_TRUE:
    case FG_OP_JUMP_IF_FALSE:
        FG_DO(fg_truth(t, TOP(1), &truth));
        FG_DO(drop(t, 1));
        if (truth == (in->op == FG_OP_JUMP_IF_TRUE))
            FG_DO(jump(t, f, in->target));
        break;
    case FG_OP_JUMP_IF_NONE:
    case FG_OP_JUMP_IF_NOT_NONE: {
        int same;
        bool known;
        fg_value *none = fg_value_const(t, Py_None);
        v = TOP(1);
        if (none == NULL)
            return FG_FLOW_ERROR;
        FG_DO(fg_look(t, &v));
        FG_DO(fg_same_object(t, v, none, &same, &known));
        if (!known)
            return fg_break(t, FG_BREAK_DATA_DEPENDENT_BRANCH, "whether a run-time object is None");
        FG_DO(drop(t, 1));
        if (same == (in->op == FG_OP_JUMP_IF_NONE))
            FG_DO(jump(t, f, in->target));
        break;
    }
    case FG_OP_RETURN_VALUE:
        if (f->is_generator) {
            FG_SET(t, f->yielded, TOP(1)); /* what `yield from` gives */
            FG_SET(t, f->is_finished, 1);
            FG_SET(t, t->frame, f->parent);
            return FG_FLOW_OK;
        }
        if (f == t->root) {
            *returned = true;
            *value = TOP(1);
            return FG_FLOW_OK;
        }
        return return_from(t, f, TOP(1));
    case FG_OP_GET_YIELD_FROM_ITER:
        if (!f->is_generator)
            return fg_break(t, FG_BREAK_GENERATOR, "yield from");
        /* fall through */
    case FG_OP_GET_ITER:
        FG_DO(fg_iter_new(t, TOP(1), &out));
        FG_DO(give(t, f, 1, out));
        break;
    case FG_OP_FOR_ITER:
        v = TOP(1);
        FG_DO(fg_look(t, &v));
        FG_DO(fg_iter_next(t, v, &out));
        if (out != NULL) {
            FG_DO(push(t, out));
        } else {
            FG_DO(drop(t, 1));
            FG_DO(jump(t, f, in->target));
        }
        break;
    case FG_OP_IMPORT_NAME:
        FG_DO(fg_import(t, f, in->obj, TOP(2), TOP(1), &out));
        FG_DO(give(t, f, 2, out));
        break;
    case FG_OP_IMPORT_FROM:
        FG_DO(fg_attr_load(t, TOP(1), in->obj, &out));
        FG_DO(push(t, out));
        break;
    case FG_OP_MAKE_FUNCTION: FG_DO(make_function(t, f)); break;
    case FG_OP_SET_FUNCTION_ATTRIBUTE: FG_DO(function_attribute(t, f, in->arg)); break;
    case FG_OP_GET_LEN: {
        int64_t n;
        FG_DO(fg_len(t, TOP(1), &n));
        PyObject *number = fg_own(t, PyLong_FromLongLong(n));
        if (number == NULL)
            return FG_FLOW_ERROR;
        FG_DO(push_const(t, number));
        break;
    }
    case FG_OP_MATCH_MAPPING:
    case FG_OP_MATCH_SEQUENCE: FG_DO(match_test(t, f, in->op == FG_OP_MATCH_MAPPING)); break;
    case FG_OP_CONVERT_VALUE:
        FG_DO(fg_convert_value(t, TOP(1), in->arg, &out));
        FG_DO(give(t, f, 1, out));
        break;
    case FG_OP_FORMAT_SIMPLE:
        FG_DO(fg_format_value(t, TOP(1), NULL, &out));
        FG_DO(give(t, f, 1, out));
        break;
    case FG_OP_FORMAT_WITH_SPEC:
        FG_DO(fg_format_value(t, TOP(2), TOP(1), &out));
        FG_DO(give(t, f, 2, out));
        break;
    case FG_OP_RAISE_VARARGS: return fg_raise_statement(t, in->arg, &f->stack[f->sp - in->arg]);
    case FG_OP_RERAISE: return fg_raise(t, TOP(1));
    case FG_OP_PUSH_EXC_INFO:
        v = TOP(1);
        FG_DO(fg_handling_begin(t, v));
        FG_DO(drop(t, 1));
        FG_DO(push_const(t, Py_None)); /* what was handled before: kept by the trace */
        FG_DO(push(t, v));
        break;
    case FG_OP_POP_EXCEPT:
        FG_DO(fg_handling_end(t));
        FG_DO(drop(t, 1));
        break;
    case FG_OP_CHECK_EXC_MATCH:
        FG_DO(fg_exception_matches(t, TOP(2), TOP(1), &truth));
        FG_DO(give_bool(t, f, 1, truth));
        break;
    case FG_OP_CHECK_EG_MATCH:
    case FG_OP_PREP_RERAISE_STAR:
    case FG_OP_CLEANUP_THROW:
    case FG_OP_STOPITERATION_ERROR: return fg_break(t, FG_BREAK_EXCEPTION_HANDLING, "%s", fg_cop_name(in->op));
    case FG_OP_BEFORE_WITH: {
        fg_value *exit;
        v = TOP(1);
        FG_DO(fg_with_enter(t, v, &exit, &out));
        FG_SET(t, TOP(1), exit);
        if (out != NULL)
            FG_DO(push(t, out));
        break;
    }
    case FG_OP_WITH_EXCEPT_START: /* [exit, lasti, before, exception] */
        FG_DO(fg_with_leave(t, TOP(4), TOP(1), &out));
        if (out != NULL)
            FG_DO(push(t, out));
        break;
    case FG_OP_BEFORE_ASYNC_WITH:
    case FG_OP_LOAD_SPECIAL: return fg_break(t, FG_BREAK_CONTEXT_MANAGER, "with");
    case FG_OP_RETURN_GENERATOR:
        if (!f->is_generator)
            return fg_break(t, FG_BREAK_GENERATOR, "generator");
        FG_DO(push_const(t, Py_None));
        break;
    case FG_OP_YIELD_VALUE:
        if (!f->is_generator)
            return fg_break(t, FG_BREAK_GENERATOR, "yield");
        FG_SET(t, f->yielded, TOP(1));
        FG_DO(drop(t, 1));
        FG_DO(push_const(t, Py_None)); /* what is sent */
        FG_SET(t, f->pc, f->pc + 1);
        FG_SET(t, t->frame, f->parent);
        return FG_FLOW_OK;
    case FG_OP_SEND: FG_DO(send_none(t, f, in->target)); break;
    case FG_OP_ASYNC_GEN_WRAP:
    case FG_OP_END_ASYNC_FOR:
    case FG_OP_GET_AWAITABLE:
    case FG_OP_GET_AITER:
    case FG_OP_GET_ANEXT: return fg_break(t, FG_BREAK_GENERATOR, "%s", fg_cop_name(in->op));
    case FG_OP_DELETE_DEREF:
    case FG_OP_LOAD_NAME:
    case FG_OP_STORE_NAME:
    case FG_OP_DELETE_NAME:
    case FG_OP_LOAD_LOCALS:
    case FG_OP_LOAD_FROM_DICT_OR_GLOBALS:
    case FG_OP_LOAD_FROM_DICT_OR_DEREF:
    case FG_OP_LOAD_BUILD_CLASS:
    case FG_OP_SETUP_ANNOTATIONS:
    case FG_OP_IMPORT_STAR:
    case FG_OP_MATCH_KEYS:
    case FG_OP_MATCH_CLASS:
    case FG_OP_BUILD_INTERPOLATION:
    case FG_OP_BUILD_TEMPLATE:
    case FG_OP_TYPEVAR:
    case FG_OP_PARAMSPEC:
    case FG_OP_TYPEVARTUPLE:
    case FG_OP_TYPEVAR_WITH_BOUND:
    case FG_OP_TYPEVAR_WITH_CONSTRAINTS:
    case FG_OP_SUBSCRIPT_GENERIC:
    case FG_OP_TYPEALIAS:
    case FG_OP_SET_FUNCTION_TYPE_PARAMS:
    case FG_OP_SET_TYPEPARAM_DEFAULT:
    case FG_OP_PRINT:
    case FG_N_COPS: return fg_break(t, FG_BREAK_UNSUPPORTED_INSTRUCTION, "%s", fg_cop_name(in->op));
    }
    if (t->frame == f)
        FG_SET(t, f->pc, f->pc + 1);
    return FG_FLOW_OK;
}
