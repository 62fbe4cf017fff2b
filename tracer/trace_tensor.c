/* Tensor operations: every one becomes a step in program order; nothing is computed while tracing.
 *
 * What an operation gives is a tensor of unknown metadata until something asks (a shape, a length, an operation under a handler): then a
 * stand-in of the same metadata is inferred, operation by operation, from stand-ins of the operands; scalars that the metadata depends on
 * become concrete at that moment. Rows of the registry say what may be inferred.
 */
#include "tracer/infer_meta.h"
#include "tracer/trace_python.h"

#include <string.h>

int fg_tensor_library(const fg_value *v)
{
    return v->type != NULL ? (fg_py_is_torch_type(v->type) ? FG_LIB_TORCH : FG_LIB_NUMPY) : (int)v->index;
}

static PyTypeObject *member_type(const fg_value *v)
{
    if (v->type != NULL && !v->is_scalar)
        return v->type;
    return fg_tensor_library(v) == FG_LIB_TORCH ? fg_py_torch_tensor_type() : fg_names.numpy_ndarray;
}

bool fg_has_tensor(fg_trace *t, fg_value *v, int depth)
{
    if (v->kind == FG_V_TENSOR)
        return true;
    if (v->kind == FG_V_LAZY)
        return v->real != NULL && (fg_tensor_adaptor_find(Py_TYPE(v->real)) != NULL || fg_py_is_numpy_scalar(Py_TYPE(v->real)));
    if (depth > 0 && (v->kind == FG_V_LIST || v->kind == FG_V_TUPLE))
        for (int32_t i = 0; i < v->n; i++)
            if (fg_has_tensor(t, v->items[i], depth - 1))
                return true;
    return false;
}

/* An operand that a tensor operation may get: it can run no user code and has a run-time form. Looks at it. */
static fg_flow operand(fg_trace *t, fg_value **pv, int *lib, int depth)
{
    FG_DO(fg_look(t, pv));
    fg_value *v = *pv;
    switch ((fg_vkind)v->kind) {
    case FG_V_TENSOR:
        if (fg_tensor_library(v) == FG_LIB_TORCH)
            *lib = FG_LIB_TORCH;
        return FG_FLOW_OK;
    case FG_V_SCALAR: return FG_FLOW_OK;
    case FG_V_CONST:
        if (fg_is_fold_const(v->real) || fg_py_is_library_constant(v->type) || (PyType_Check(v->real) && v->type == &PyType_Type) ||
            fg_op_find(v->real))
            return FG_FLOW_OK;
        break;
    case FG_V_LIST:
        FG_DO(fg_list_load(t, v));
        /* fall through */
    case FG_V_TUPLE:
    case FG_V_SLICE:
        if (depth > 8 || v->n > 100000)
            break;
        for (int32_t i = 0; i < v->n; i++)
            FG_DO(operand(t, &v->items[i], lib, depth + 1));
        return FG_FLOW_OK;
    default: break;
    }
    return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "a %s as operand of an array operation", v->type ? v->type->tp_name : "run-time object");
}

static fg_flow new_tensor(fg_trace *t, fg_reg reg, int lib, fg_value *const *operands, int32_t n, fg_value **out)
{
    fg_value *v = fg_value_step(t, FG_V_TENSOR, reg, NULL, NULL);
    if (v == NULL)
        return FG_FLOW_ERROR;
    v->index = lib;
    v->items = fg_arena_alloc(&t->arena, (size_t)(n ? n : 1) * sizeof *v->items);
    if (v->items == NULL)
        return fg_nomem();
    if (n)
        memcpy(v->items, operands, (size_t)n * sizeof *operands);
    v->n = v->cap = n;
    t->ir.regs[reg].is_tensor = lib == FG_LIB_TORCH ? FG_TORCH_RESULT : 1;
    if (lib == FG_LIB_TORCH)
        FG_SET(t, t->uses_torch, true);
    if (t->opaque)
        FG_DO(fg_push(t, &t->results, &t->n_results, &t->cap_results, v));
    *out = v;
    return FG_FLOW_OK;
}

static fg_flow emit_op(fg_trace *t, fg_step_op op, int lib, int arg, PyObject *name, PyObject *kwnames, fg_value **operands, int32_t n,
                       int flags, const fg_op_row *row, fg_reg *reg)
{
    fg_reg *regs = fg_arena_alloc(&t->arena, (size_t)(n ? n : 1) * sizeof *regs);
    if (regs == NULL)
        return fg_nomem();
    if (lib == FG_LIB_TORCH)
        FG_DO(fg_pin_members(t, op, arg, name, operands));
    if (t->opaque) {
        FG_DO(fg_suit_compiler(t, lib, row, operands, n));
        if (fg_stands_between_graphs(row, operands, n))
            flags &= ~FG_SF_GRAPH;
    }
    for (int32_t i = 0; i < n; i++) {
        fg_value *v = operands[i];
        if (v->kind == FG_V_CONST && v->node != FG_NODE_NONE && fg_is_scalar_type(v->type)) { /* known by value: no input is needed */
            if ((regs[i] = fg_ir_reg_add(&t->ir, FG_REG_CONST, v->real)) == FG_REG_NONE)
                return fg_nomem();
            continue;
        }
        if (t->opaque)
            FG_DO(fg_elements_of_now(t, &v));
        FG_DO(fg_materialise(t, v, &regs[i]));
    }
    FG_DO(fg_emit(t, op, flags | FG_SF_RAISES, arg, name, kwnames, regs, n, reg));
    t->ir.steps[t->ir.n_steps - 1].row = row;
    return FG_FLOW_OK;
}

static fg_flow mark_mutated(fg_trace *t, fg_value *v)
{
    fg_reg reg;
    FG_SET(t, v->is_mutated, 1);
    FG_SET(t, t->mutates_input, true);
    FG_DO(fg_materialise(t, v, &reg));
    FG_SET(t, t->ir.regs[reg].is_mutated, 1);
    return FG_FLOW_OK;
}

fg_flow fg_tensor_binary(fg_trace *t, int op, fg_value *a, fg_value *b, fg_value **out)
{
    int lib = FG_LIB_NUMPY;
    fg_reg reg;
    fg_value *pair[2] = {a, b};
    FG_DO(operand(t, &pair[0], &lib, 0));
    FG_DO(operand(t, &pair[1], &lib, 0));
    for (int i = 0; i < 2; i++) {
        fg_value *v = pair[i];
        bool is_number = (v->kind == FG_V_SCALAR || v->kind == FG_V_CONST) &&
                         (v->type == &PyLong_Type || v->type == &PyFloat_Type || v->type == &PyBool_Type || v->type == &PyComplex_Type);
        if (v->kind != FG_V_TENSOR && !is_number && !((v->kind == FG_V_LIST || v->kind == FG_V_TUPLE) && lib == FG_LIB_NUMPY))
            return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "operator between an array and %s",
                            v->type ? v->type->tp_name : "a run-time object");
    }
    if (op == FG_OP_INPLACE_MATMUL && (pair[0]->kind != FG_V_TENSOR || pair[1]->kind != FG_V_TENSOR))
        return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "@= between an array and a number, which is an error that names its operator");
    /* What has no way of its own to do it in place makes a new value: a number, a NumPy scalar, a torch tensor for @=. */
    bool in_place =
        op >= FG_OP_INPLACE && pair[0]->kind == FG_V_TENSOR && !pair[0]->is_scalar && !(lib == FG_LIB_TORCH && op == FG_OP_INPLACE_MATMUL);
    FG_DO(emit_op(t, FG_STEP_BINARY, lib, op, NULL, NULL, pair, 2, FG_SF_GRAPH | (in_place ? FG_SF_EFFECT : 0), NULL, &reg));
    FG_DO(new_tensor(t, reg, lib, pair, 2, out));
    if (in_place) {
        FG_DO(mark_mutated(t, pair[0]));
        if (fg_is_covered(t))
            return fg_break(t, FG_BREAK_MAY_RAISE_IN_TRY, "an in-place operator");
        if (pair[0]->type != NULL)
            *out = pair[0]; /* an array gives itself */
        return FG_FLOW_OK;
    }
    FG_DO(fg_tensor_settle(t, FG_RAISES_METADATA, *out, "the operator"));
    return lib == FG_LIB_NUMPY ? fg_tensor_settle_errstate(t) : FG_FLOW_OK;
}

fg_flow fg_tensor_compare(fg_trace *t, int op, fg_value *a, fg_value *b, fg_value **out)
{
    int lib = FG_LIB_NUMPY;
    fg_reg reg;
    fg_value *pair[2] = {a, b};
    FG_DO(operand(t, &pair[0], &lib, 0));
    FG_DO(operand(t, &pair[1], &lib, 0));
    for (int i = 0; i < 2; i++)
        if (pair[i]->kind != FG_V_TENSOR && pair[i]->type != &PyLong_Type && pair[i]->type != &PyFloat_Type &&
            pair[i]->type != &PyBool_Type)
            return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "comparison of an array and %s",
                            pair[i]->type ? pair[i]->type->tp_name : "a run-time object");
    FG_DO(emit_op(t, FG_STEP_COMPARE, lib, op, NULL, NULL, pair, 2, FG_SF_GRAPH, NULL, &reg));
    FG_DO(new_tensor(t, reg, lib, pair, 2, out));
    return fg_tensor_settle(t, FG_RAISES_METADATA, *out, "the comparison");
}

fg_flow fg_tensor_unary(fg_trace *t, int op, fg_value *a, fg_value **out)
{
    fg_reg reg;
    int lib = fg_tensor_library(a);
    FG_DO(emit_op(t, FG_STEP_UNARY, lib, op, NULL, NULL, &a, 1, FG_SF_GRAPH, NULL, &reg));
    FG_DO(new_tensor(t, reg, lib, &a, 1, out));
    return fg_tensor_settle(t, FG_RAISES_METADATA, *out, "the operator");
}

static fg_flow check_index(fg_trace *t, fg_value **k, int *lib, bool *by_data)
{
    FG_DO(operand(t, k, lib, 0));
    fg_value *v = *k;
    if (v->kind == FG_V_TENSOR || v->kind == FG_V_LIST)
        *by_data = true;
    if (v->kind == FG_V_TUPLE)
        for (int32_t i = 0; i < v->n; i++)
            FG_DO(check_index(t, &v->items[i], lib, by_data));
    if ((v->kind == FG_V_CONST || v->kind == FG_V_SCALAR) &&
        (v->type == &PyUnicode_Type || v->type == &PyBytes_Type || v->type == &PyFloat_Type))
        return fg_break(t, FG_BREAK_RAISES, "index of type %s", v->type->tp_name);
    return FG_FLOW_OK;
}

static fg_flow metadata_of(fg_trace *t, fg_value *v, PyObject **out);

/* An index of truth values: how many elements it takes depends on data. */
static fg_flow has_mask(fg_trace *t, fg_value *k, bool *mask)
{
    enum { TORCH_UINT8 = 0, TORCH_BOOL = 11 };
    if (k->kind == FG_V_TENSOR && fg_tensor_library(k) == FG_LIB_TORCH) {
        PyObject *of;
        fg_tensor_meta meta;
        FG_DO(metadata_of(t, k, &of));
        *mask |= !fg_standin_read(of, &meta) || meta.dtype == TORCH_BOOL || meta.dtype == TORCH_UINT8;
    }
    if (k->type == &PyBool_Type)
        *mask = true;
    for (int32_t i = 0; (k->kind == FG_V_LIST || k->kind == FG_V_TUPLE) && i < k->n; i++)
        FG_DO(has_mask(t, k->items[i], mask));
    return FG_FLOW_OK;
}

fg_flow fg_tensor_subscr(fg_trace *t, fg_value *o, fg_value *k, fg_value **out)
{
    int lib = fg_tensor_library(o);
    fg_reg reg;
    bool by_data = false;
    fg_value *pair[2] = {o, k};
    FG_DO(check_index(t, &pair[1], &lib, &by_data));
    if (t->opaque && by_data && lib == FG_LIB_TORCH) {
        bool mask = false;
        FG_DO(has_mask(t, pair[1], &mask));
        if (mask)
            return fg_break(t, FG_BREAK_DATA_DEPENDENT_SHAPE, "the result of a mask");
    }
    FG_DO(emit_op(t, FG_STEP_SUBSCR, lib, by_data, NULL, NULL, pair, 2, FG_SF_GRAPH, NULL, &reg));
    FG_DO(new_tensor(t, reg, lib, pair, 2, out));
    return fg_tensor_settle(t, by_data ? FG_RAISES_DATA : FG_RAISES_METADATA, *out, "the subscript");
}

fg_flow fg_tensor_store_subscr(fg_trace *t, fg_value *o, fg_value *k, fg_value *v)
{
    int lib = fg_tensor_library(o);
    bool by_data = false;
    fg_value *all[3] = {v, o, k};
    FG_DO(operand(t, &all[0], &lib, 0));
    FG_DO(check_index(t, &all[2], &lib, &by_data));
    FG_DO(fg_pin_store(t, o));
    if (fg_is_covered(t))
        return fg_break(t, FG_BREAK_MAY_RAISE_IN_TRY, "item assignment to an array");
    if (t->opaque) {
        bool mask = false;
        FG_DO(fg_suit_compiler(t, lib, NULL, all, 3));
        if (lib == FG_LIB_TORCH && all[0]->kind == FG_V_TENSOR)
            FG_DO(has_mask(t, all[2], &mask));
        if (mask)
            return fg_break(t, FG_BREAK_DATA_DEPENDENT_SHAPE, "assignment of an array to a mask");
    }
    fg_reg regs[3];
    for (int i = 0; i < 3; i++) {
        if (t->opaque)
            FG_DO(fg_elements_of_now(t, &all[i]));
        FG_DO(fg_materialise(t, all[i], &regs[i]));
    }
    FG_DO(mark_mutated(t, o));
    FG_DO(fg_emit(t, FG_STEP_STORE_SUBSCR, FG_SF_GRAPH | FG_SF_EFFECT | FG_SF_RAISES, 0, NULL, NULL, regs, 3, NULL));
    if (lib == FG_LIB_TORCH)
        FG_SET(t, t->uses_torch, true);
    return FG_FLOW_OK;
}

/* --- attributes, functions, methods */

static fg_flow meta_result(fg_trace *t, PyObject *result, fg_value **out)
{
    if (result == NULL)
        return fg_break_on_error(t, FG_BREAK_RAISES, "metadata");
    if (fg_own(t, result) == NULL)
        return FG_FLOW_ERROR;
    if (!fg_is_fold_const(result) && !fg_py_is_library_constant(Py_TYPE(result)) && !PyType_Check(result))
        return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "metadata of type %s", Py_TYPE(result)->tp_name);
    return (*out = fg_value_const(t, result)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

/* torch.finfo(dtype) and its like: an object of its own each time, whose attributes are known. The step is left out where nothing but those is used. */
static fg_flow limits_result(fg_trace *t, PyObject *result, PyObject *callable, fg_value **args, int32_t n, PyObject *kwnames,
                             fg_value **out)
{
    fg_reg *regs = fg_arena_alloc(&t->arena, (size_t)(n + 1) * sizeof *regs), reg;
    if (fg_own(t, result) == NULL)
        return FG_FLOW_ERROR;
    if (regs == NULL)
        return fg_nomem();
    if ((regs[0] = fg_ir_reg_add(&t->ir, FG_REG_CONST, callable)) == FG_REG_NONE)
        return fg_nomem();
    for (int32_t i = 0; i < n; i++)
        FG_DO(fg_materialise(t, args[i], &regs[i + 1]));
    FG_DO(fg_emit(t, FG_STEP_CALL, 0, 0, NULL, kwnames, regs, n + 1, &reg));
    return (*out = fg_value_step(t, FG_V_OPAQUE, reg, Py_TYPE(result), result)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

/* NumPy's are objects of Python: the numbers that they have from the start, as plain values or scalars of the dtype. */
static fg_flow numpy_limits_attr(fg_trace *t, fg_value *o, PyObject *name, fg_value **out)
{
    static const char *const names[] = {"eps",
                                        "epsneg",
                                        "max",
                                        "min",
                                        "tiny",
                                        "smallest_normal",
                                        "smallest_subnormal",
                                        "resolution",
                                        "bits",
                                        "dtype",
                                        "precision",
                                        "nmant",
                                        "nexp",
                                        "iexp",
                                        "machep",
                                        "negep",
                                        "minexp",
                                        "maxexp",
                                        "kind"};
    size_t i = 0;
    while (i < sizeof names / sizeof *names && PyUnicode_CompareWithASCIIString(name, names[i]) != 0)
        i++;
    PyObject *value = i < sizeof names / sizeof *names ? PyObject_GetAttr(o->real, name) : NULL;
    if (value == NULL) {
        PyErr_Clear();
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of %s", name, o->type->tp_name);
    }
    if (!fg_py_is_numpy_scalar(Py_TYPE(value)))
        return meta_result(t, value, out);
    fg_reg reg;
    if (fg_own(t, value) == NULL)
        return FG_FLOW_ERROR;
    FG_DO(fg_emit(t, FG_STEP_ATTR, 0, 0, name, NULL, &o->reg, 1, &reg));
    FG_DO(new_tensor(t, reg, FG_LIB_NUMPY, NULL, 0, out));
    (*out)->standin = value;
    return FG_FLOW_OK;
}

fg_flow fg_tensor_limits_attr(fg_trace *t, fg_value *o, PyObject *name, fg_value **out)
{
    if (o->real != NULL && o->type != NULL && fg_py_is_numpy_limits(o->type))
        return numpy_limits_attr(t, o, name, out);
    if (o->real == NULL || o->type == NULL || !fg_py_is_limits(o->type))
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of %s", name, o->type ? o->type->tp_name : "a run-time object");
    const PyObject *descr = fg_py_type_lookup(o->type, name);
    if (descr == NULL)
        return FG_FLOW_OK;
    if (Py_TYPE(descr) != &PyGetSetDescr_Type)
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of %s", name, o->type->tp_name);
    return meta_result(t, PyObject_GetAttr(o->real, name), out);
}

/* The object whose metadata stands for the value's: the input itself while nothing could have changed it, else a stand-in. */
static fg_flow metadata_of(fg_trace *t, fg_value *v, PyObject **out)
{
    if (v->real != NULL && v->step < 0 && !(v->is_mutated && fg_tensor_library(v) == FG_LIB_TORCH)) {
        *out = v->real;
        return FG_FLOW_OK;
    }
    if (v->is_mutated && fg_tensor_library(v) == FG_LIB_TORCH)
        return fg_break(t, FG_BREAK_INFERENCE, "metadata of a tensor that was changed in place");
    return fg_tensor_standin(t, v, out);
}

static fg_flow asked_of(fg_trace *t, const fg_op_row *row, fg_value *v, PyObject **out)
{
    FG_DO(metadata_of(t, v, out));
    if ((row->flags & FG_OPF_ORDER) && !fg_order_is_known(t, v))
        return fg_break(t, FG_BREAK_INFERENCE, "%U of what a kernel may lay out in its own way", row->name);
    return FG_FLOW_OK;
}

fg_flow fg_tensor_attr(fg_trace *t, fg_value *o, PyObject *name, fg_value **out)
{
    const fg_op_row *row = fg_op_find_member(member_type(o), name);
    FG_DO(fg_pin_member(t, o, name));
    if (fg_is_gradient(o, name))
        return fg_gradient_load(t, o, name, out);
    if (row == NULL)
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "array attribute '%U'", name);
    if (!row->is_attribute) {
        fg_value *m = fg_value_new(t, FG_V_METHOD);
        if (m == NULL || (m->a = fg_value_const(t, Py_None)) == NULL)
            return FG_FLOW_ERROR;
        m->b = o;
        m->key = name;
        *out = m;
        return FG_FLOW_OK;
    }
    if (row->result == FG_RESULT_META) {
        PyObject *of;
        FG_DO(metadata_of(t, o, &of));
        return meta_result(t, PyObject_GetAttr(of, name), out);
    }
    if (row->result != FG_RESULT_TENSOR)
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "array attribute '%U'", name);
    fg_reg reg;
    FG_DO(emit_op(t, FG_STEP_ATTR, fg_tensor_library(o), 0, name, NULL, &o, 1, FG_SF_GRAPH, row, &reg));
    FG_DO(new_tensor(t, reg, fg_tensor_library(o), &o, 1, out));
    return fg_tensor_settle(t, (fg_op_raises)row->raises, *out, "the attribute");
}

/* Python scalar taken out of a tensor: known type, unknown value. */
static fg_flow scalar_result(fg_trace *t, fg_value *maker, fg_reg reg, fg_value **out)
{
    fg_value *probe = fg_value_new(t, FG_V_TENSOR);
    PyObject *standin = NULL;
    if (probe == NULL)
        return FG_FLOW_ERROR;
    *probe = *maker;
    fg_trace_mark mark = fg_trace_mark_get(t);
    fg_flow flow = fg_tensor_standin(t, probe, &standin);
    if (flow == FG_FLOW_ERROR)
        return flow;
    if (flow == FG_FLOW_BREAK)
        fg_trace_rewind(t, mark);
    bool is_scalar = standin != NULL && fg_is_scalar_type(Py_TYPE(standin));
    fg_value *v = fg_value_step(t, is_scalar ? FG_V_SCALAR : FG_V_OPAQUE, reg, is_scalar ? Py_TYPE(standin) : NULL, NULL);
    if (v == NULL)
        return FG_FLOW_ERROR;
    *out = v;
    return FG_FLOW_OK;
}

static fg_flow check_row(fg_trace *t, const fg_op_row *row)
{
    if (row->flags & FG_OPF_CHANGES_META)
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%U changes metadata in place", row->name);
    if (row->flags & FG_OPF_NEEDS_FRAME)
        return fg_break(t, FG_BREAK_FRAME_INSPECTION, "%U looks at the calling frame", row->name);
    return FG_FLOW_OK;
}

/* What the arguments of a call say. What an operation writes: its first argument, out=, or an argument that it fills. At most one is given back as the result. */
typedef struct fg_writes {
    fg_value *values[4];
    int32_t n;
    fg_value *given_back;
    bool is_counted; /* an argument says what the shape of the result is */
} fg_writes;

static fg_flow add_write(fg_trace *t, const fg_op_row *row, fg_writes *w, fg_value *v, bool gives_back)
{
    if (v->kind == FG_V_CONST && v->real == Py_None)
        return FG_FLOW_OK;
    if (v->kind != FG_V_TENSOR || w->n == 4)
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%U writes a %s", row->name, v->type ? v->type->tp_name : "run-time object");
    w->values[w->n++] = v;
    if (gives_back)
        w->given_back = v;
    return FG_FLOW_OK;
}

static bool contains_tensor(const fg_value *v, int depth)
{
    if (v->kind == FG_V_TENSOR)
        return true;
    for (int32_t i = 0; depth < 8 && (v->kind == FG_V_LIST || v->kind == FG_V_TUPLE) && i < v->n; i++)
        if (contains_tensor(v->items[i], depth + 1))
            return true;
    return false;
}

/* One argument by the role that the row gives it. args[0] is the first argument of the call (self of a method). */
static fg_flow check_role(fg_trace *t, const fg_op_row *row, fg_value **args, int32_t at, int32_t position, PyObject *name, fg_writes *w)
{
    fg_value *v = args[at];
    switch (fg_op_role_get(row, position, name)) {
    case FG_ROLE_UNKNOWN: return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%U with an argument that is not in its signature", row->name);
    case FG_ROLE_REQUIRED:
        if (v->kind == FG_V_CONST && v->real == Py_None)
            return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%U with None", row->name);
        /* fall through */
    case FG_ROLE_OPERAND: return row->flags & FG_OPF_SCALARS ? FG_FLOW_OK : fg_bake_scalars(t, v, 0);
    case FG_ROLE_COUNT:
        FG_DO(fg_bake_scalars(t, v, 0));
        w->is_counted |= v->kind == FG_V_CONST && PyLong_CheckExact(v->real) && PyLong_AsLongLongAndOverflow(v->real, &(int){0}) > 0;
        return FG_FLOW_OK;
    case FG_ROLE_CONSTANT:
        if (contains_tensor(v, 0))
            return fg_break(t, FG_BREAK_DATA_DEPENDENT_SHAPE, "%U with an array where a plain value decides the shape", row->name);
        if (v->kind == FG_V_CONST && PyType_Check(v->real) && fg_names.numpy_ndarray != NULL &&
            v->real != (PyObject *)fg_names.numpy_ndarray &&
            PyType_IsSubtype((PyTypeObject *)v->real, fg_names.numpy_ndarray)) /* a.view(cls): the class decides what operations give */
            return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%U that makes a subclass of ndarray", row->name);
        return fg_bake_scalars(t, v, 0);
    case FG_ROLE_OUT: return add_write(t, row, w, v, true);
    case FG_ROLE_WRITTEN: return add_write(t, row, w, v, false);
    case FG_ROLE_INPLACE: {
        bool in_place;
        FG_DO(fg_bake_scalars(t, v, 0));
        FG_DO(fg_truth(t, v, &in_place));
        return in_place && at != 0 ? add_write(t, row, w, args[0], true) : FG_FLOW_OK;
    }
    case FG_ROLE_FIXED:
    case FG_ROLE_TEXT: {
        const fg_op_param *param = fg_op_param_find(row, position, name);
        FG_DO(fg_bake_scalars(t, v, 0));
        bool right = v->kind == FG_V_CONST && param != NULL &&
                     (param->role == FG_ROLE_TEXT ? v->real == Py_None || PyUnicode_CheckExact(v->real) : v->real == param->value);
        return right ? FG_FLOW_OK : fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%U with this argument is another operation", row->name);
    }
    }
    return fg_break(t, FG_BREAK_INTERNAL, "role");
}

static fg_flow check_arguments(fg_trace *t, const fg_op_row *row, fg_value **args, int32_t n, PyObject *kwnames, fg_writes *w)
{
    int32_t npos = n - (kwnames ? (int32_t)PyTuple_GET_SIZE(kwnames) : 0);
    for (int32_t i = 0; i < n; i++)
        FG_DO(check_role(t, row, args, i, i < npos ? i : -1, i < npos ? NULL : PyTuple_GET_ITEM(kwnames, i - npos), w));
    if (row->signature != NULL) /* an operand that must be there may not be left out */
        for (int32_t i = npos; i < row->signature->n_params; i++) {
            const fg_op_param *param = &row->signature->params[i];
            bool given = param->role != FG_ROLE_REQUIRED;
            for (int32_t k = npos; k < n && !given; k++)
                given = PyUnicode_Compare(PyTuple_GET_ITEM(kwnames, k - npos), param->name) == 0;
            if (!given)
                return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%U without %U", row->name, param->name);
        }
    if (row->flags & FG_OPF_MUTATES_FIRST) {
        if (npos < 1)
            return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%U without a positional argument", row->name);
        FG_DO(add_write(t, row, w, args[0], row->result == FG_RESULT_SELF));
    }
    return FG_FLOW_OK;
}

static const fg_op_row *row_of(const fg_op_row *row, const fg_writes *w)
{
    return w->is_counted && row->counted != NULL ? row->counted : row;
}

/* Each element of a tuple of tensors, or of an array by its first axis. */
static fg_flow unpack_all(fg_trace *t, fg_value *o, int32_t n, fg_value **out)
{
    fg_reg from, first;
    FG_DO(fg_materialise(t, o, &from));
    FG_DO(fg_emit_many(t, FG_STEP_UNPACK, FG_SF_GRAPH | FG_SF_RAISES, 0, NULL, NULL, &from, 1, n, &first));
    for (int32_t i = 0; i < n; i++) {
        FG_DO(new_tensor(t, first + i, fg_tensor_library(o), &o, 1, &out[i]));
        out[i]->cap = i; /* which one it is, for inference */
    }
    return FG_FLOW_OK;
}

/* The result of a row that gives several tensors, or whose arguments decide whether it is one: the metadata says. */
static fg_flow structure(fg_trace *t, const fg_op_row *row, fg_value **out)
{
    PyObject *standin;
    fg_value *whole = *out;
    FG_DO(fg_tensor_standin(t, whole, &standin));
    PyTypeObject *type = Py_TYPE(standin);
    if (row->result == FG_RESULT_OTHER && (type == fg_py_torch_tensor_type() || type == fg_names.numpy_ndarray || fg_py_is_fake(standin))) {
        FG_DO(fg_tensor_settle(t, (fg_op_raises)row->raises, whole, "the operation"));
        return (row->flags & FG_OPF_ERRSTATE) ? fg_tensor_settle_errstate(t) : FG_FLOW_OK;
    }
    bool is_named = fg_py_is_torch_result(type);
    if (!PyTuple_CheckExact(standin) && !PyList_CheckExact(standin) && !is_named)
        return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "%U gives a %s", row->name, type->tp_name);
    if (fg_is_covered(t) && (row->raises == FG_RAISES_DATA || (row->flags & FG_OPF_ERRSTATE)))
        return fg_break(t, FG_BREAK_MAY_RAISE_IN_TRY, "%U may raise for some data", row->name);
    Py_ssize_t count = PySequence_Fast_GET_SIZE(standin);
    for (Py_ssize_t i = 0; is_named && i < count; i++)
        if (!fg_py_is_torch_type(Py_TYPE(PyTuple_GET_ITEM(standin, i))))
            return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "%U gives a %s of other things than tensors", row->name, type->tp_name);
    fg_value **items = fg_arena_alloc(&t->arena, (size_t)(count ? count : 1) * sizeof *items);
    if (items == NULL)
        return fg_nomem();
    FG_DO(unpack_all(t, whole, (int32_t)count, items));
    if ((*out = fg_value_seq(t, PyList_CheckExact(standin) ? FG_V_LIST : FG_V_TUPLE, items, (int32_t)count)) == NULL)
        return FG_FLOW_ERROR;
    if (is_named) {
        (*out)->type = type;
        if (!t->opaque) /* it is there; a graph for a compiler gives tensors, and it is made of them (trace_step.c) */
            (*out)->reg = whole->reg;
    }
    return FG_FLOW_OK;
}

static fg_flow finish_op(fg_trace *t, const fg_op_row *row, fg_reg reg, int lib, fg_value **args, int32_t n, const fg_writes *w,
                         fg_value **out)
{
    if (w->n > 0) {
        if (fg_is_covered(t))
            return fg_break(t, FG_BREAK_MAY_RAISE_IN_TRY, "%U writes an array", row->name);
        t->ir.steps[t->ir.n_steps - 1].flags |= FG_SF_EFFECT;
        for (int32_t i = 0; i < w->n; i++)
            FG_DO(mark_mutated(t, w->values[i]));
        if (w->given_back != NULL) {
            *out = w->given_back;
            return FG_FLOW_OK;
        }
    }
    if (row->flags & FG_OPF_STATE)
        t->ir.steps[t->ir.n_steps - 1].flags |= FG_SF_EFFECT;
    if (lib == FG_LIB_TORCH)
        FG_SET(t, t->uses_torch, true);
    switch ((fg_op_result)row->result) {
    case FG_RESULT_TENSOR:
    case FG_RESULT_SELF:
        FG_DO(new_tensor(t, reg, lib, args, n, out));
        FG_DO(fg_tensor_settle(t, (fg_op_raises)row->raises, *out, "the operation"));
        return (row->flags & FG_OPF_ERRSTATE) ? fg_tensor_settle_errstate(t) : FG_FLOW_OK;
    case FG_RESULT_NONE:
        t->ir.steps[t->ir.n_steps - 1].flags |= FG_SF_EFFECT;
        if (fg_is_covered(t))
            return fg_break(t, FG_BREAK_MAY_RAISE_IN_TRY, "%U", row->name);
        return (*out = fg_value_const(t, Py_None)) ? FG_FLOW_OK : FG_FLOW_ERROR;
    case FG_RESULT_SCALAR: {
        fg_value maker = {
            .kind = FG_V_TENSOR, .acc = -1, .node = FG_NODE_NONE, .reg = reg, .step = t->ir.regs[reg].index, .items = args, .n = n};
        if (fg_is_covered(t))
            return fg_break(t, FG_BREAK_MAY_RAISE_IN_TRY, "%U", row->name);
        t->ir.steps[t->ir.n_steps - 1].flags &= (uint8_t)~FG_SF_GRAPH;
        return scalar_result(t, &maker, reg, out);
    }
    case FG_RESULT_TENSORS:
    case FG_RESULT_OTHER: FG_DO(new_tensor(t, reg, lib, args, n, out)); return structure(t, row, out);
    case FG_RESULT_META: break;
    }
    return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%U", row->name);
}

fg_flow fg_tensor_call(fg_trace *t, const fg_op_row *row, PyObject *callable, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out)
{
    fg_writes writes = {.n = 0};
    int lib = PyUnicode_GET_LENGTH(row->name) > 5 && PyUnicode_READ_CHAR(row->name, 0) == 't' ? FG_LIB_TORCH : FG_LIB_NUMPY;
    FG_DO(check_row(t, row));
    for (int32_t i = 0; i < n; i++)
        FG_DO(operand(t, &args[i], &lib, 0));
    FG_DO(fg_pin_function(t, row, args, n));
    if (row->result == FG_RESULT_META) {
        PyObject *stack[16], *result;
        Py_ssize_t nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
        if (n > 16)
            return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%U with %d arguments", row->name, n);
        for (int32_t i = 0; i < n; i++)
            FG_DO(args[i]->kind == FG_V_TENSOR ? asked_of(t, row, args[i], &stack[i]) : fg_tensor_standin_object(t, args[i], &stack[i]));
        if (lib == FG_LIB_TORCH) /* what it says may be the thread's state */
            FG_SET(t, t->uses_torch, true);
        PyObject *entered;
        if (fg_ambient_enter(t->ambient, &entered) != FG_OK)
            return fg_break_on_error(t, FG_BREAK_CONTEXT_MANAGER, "entering a context manager");
        result = PyObject_Vectorcall(callable, stack, (size_t)(n - nkw), kwnames);
        fg_ambient_leave(entered);
        if (result != NULL && fg_py_is_limits(Py_TYPE(result)))
            return limits_result(t, result, callable, args, n, kwnames, out);
        return meta_result(t, result, out);
    }
    FG_DO(check_arguments(t, row, args, n, kwnames, &writes));
    row = row_of(row, &writes);
    if (t->opaque && lib == FG_LIB_TORCH && fg_is_idle_dropout(row, args, n, kwnames)) {
        FG_SET(t, t->uses_torch, true);
        *out = args[0];
        return FG_FLOW_OK;
    }
    fg_value *head = fg_value_const(t, callable);
    fg_value **all = fg_arena_alloc(&t->arena, (size_t)(n + 1) * sizeof *all);
    fg_reg reg;
    if (head == NULL || all == NULL)
        return fg_nomem();
    all[0] = head;
    memcpy(all + 1, args, (size_t)n * sizeof *args);
    FG_DO(emit_op(t, FG_STEP_CALL, lib, 0, NULL, kwnames, all, n + 1, FG_SF_GRAPH, row, &reg));
    return finish_op(t, row, reg, lib, all + 1, n, &writes, out);
}

fg_flow fg_tensor_method(fg_trace *t, fg_value *self, PyObject *name, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out)
{
    const fg_op_row *row = fg_op_find_member(member_type(self), name);
    fg_value **all = fg_arena_alloc(&t->arena, (size_t)(n + 1) * sizeof *all);
    fg_writes writes = {.n = 0};
    int lib = fg_tensor_library(self);
    fg_reg reg;
    if (all == NULL)
        return fg_nomem();
    if (row == NULL || row->is_attribute)
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "array method '%U'", name);
    FG_DO(check_row(t, row));
    FG_DO(fg_pin_member(t, self, name));
    all[0] = self;
    for (int32_t i = 0; i < n; i++) {
        all[i + 1] = args[i];
        FG_DO(operand(t, &all[i + 1], &lib, 0));
    }
    if (row->result == FG_RESULT_META) {
        PyObject *stack[16];
        Py_ssize_t nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
        if (n > 15)
            return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%U with %d arguments", row->name, n);
        FG_DO(asked_of(t, row, self, &stack[0]));
        for (int32_t i = 1; i <= n; i++)
            FG_DO(all[i]->kind == FG_V_TENSOR ? asked_of(t, row, all[i], &stack[i]) : fg_tensor_standin_object(t, all[i], &stack[i]));
        return meta_result(t, PyObject_VectorcallMethod(name, stack, (size_t)(n + 1 - nkw), kwnames), out);
    }
    FG_DO(check_arguments(t, row, all, n + 1, kwnames, &writes));
    row = row_of(row, &writes);
    FG_DO(emit_op(t, FG_STEP_CALL_METHOD, lib, 0, name, kwnames, all, n + 1, FG_SF_GRAPH, row, &reg));
    return finish_op(t, row, reg, lib, all, n + 1, &writes, out);
}

fg_flow fg_tensor_len(fg_trace *t, fg_value *o, int64_t *len)
{
    PyObject *of;
    FG_DO(fg_pin_length(t, o));
    FG_DO(metadata_of(t, o, &of));
    *len = PyObject_Size(of);
    return *len < 0 ? fg_break_on_error(t, FG_BREAK_RAISES, "len") : FG_FLOW_OK;
}

fg_flow fg_tensor_unpack(fg_trace *t, fg_value *o, int32_t n, fg_value **out)
{
    fg_value *parts;
    int64_t len = n;
    FG_DO(fg_pin_iteration(t, o));
    if (t->opaque || fg_is_covered(t)) /* a graph takes the rows one by one, and would not see that there are more */
        FG_DO(fg_tensor_len(t, o, &len));
    if (len != n)
        return fg_break(t, FG_BREAK_RAISES, "%lld rows to unpack, %d expected", (long long)len, n);
    if (!t->opaque || fg_tensor_library(o) != FG_LIB_TORCH)
        return unpack_all(t, o, n, out);
    FG_DO(fg_tensor_method(t, o, fg_names.s_unbind, NULL, 0, NULL, &parts)); /* as iteration does: one view of many is not just a view */
    if (parts->kind != FG_V_TUPLE || parts->n != n)
        return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "the rows of a tensor");
    for (int32_t i = 0; i < n; i++)
        out[i] = parts->items[i];
    return FG_FLOW_OK;
}

fg_flow fg_tensor_length(fg_trace *t, fg_value *o, int32_t *n)
{
    int64_t len;
    FG_DO(fg_tensor_len(t, o, &len));
    if (len > 4096)
        return fg_break(t, FG_BREAK_TOO_LONG, "iteration over %lld rows", (long long)len);
    *n = (int32_t)len;
    return FG_FLOW_OK;
}

fg_flow fg_tensor_rows(fg_trace *t, fg_value *o, fg_value ***items, int32_t *n)
{
    FG_DO(fg_tensor_length(t, o, n));
    if ((*items = fg_arena_alloc(&t->arena, (size_t)(*n + 1) * sizeof **items)) == NULL)
        return fg_nomem();
    return fg_tensor_unpack(t, o, *n, *items);
}
