/* What an operation on tensors would give: stand-ins, inferred operation by operation, and what follows from them under a handler. */
#include "tracer/infer_meta.h"
#include "tracer/trace_python.h"

#include <string.h>

fg_flow fg_tensor_standin_object(fg_trace *t, fg_value *v, PyObject **out)
{
    switch ((fg_vkind)v->kind) {
    case FG_V_TENSOR: return fg_tensor_standin(t, v, out);
    case FG_V_SCALAR:
        FG_DO(fg_concrete(t, v));
        /* fall through */
    case FG_V_CONST: *out = v->real; return FG_FLOW_OK;
    case FG_V_LIST:
    case FG_V_TUPLE:
    case FG_V_SLICE: {
        PyObject *seq = fg_own(t, PyTuple_New(v->n)), *part;
        if (seq == NULL)
            return FG_FLOW_ERROR;
        for (int32_t i = 0; i < v->n; i++) {
            FG_DO(fg_tensor_standin_object(t, v->items[i], &part));
            PyTuple_SET_ITEM(seq, i, Py_NewRef(part));
        }
        if (v->kind == FG_V_LIST)
            seq = fg_own(t, PySequence_List(seq));
        else if (v->kind == FG_V_SLICE)
            seq = fg_own(t, PySlice_New(PyTuple_GET_ITEM(seq, 0), PyTuple_GET_ITEM(seq, 1), v->n > 2 ? PyTuple_GET_ITEM(seq, 2) : NULL));
        *out = seq;
        return seq ? FG_FLOW_OK : FG_FLOW_ERROR;
    }
    default: return fg_break(t, FG_BREAK_INFERENCE, "operand of type %s", v->type ? v->type->tp_name : "?");
    }
}

static PyObject *operator_function(int op, int unary)
{
    static const char *const binary[] = {"add", "and_", "floordiv", "lshift", "matmul",  "mul", "mod",
                                         "or_", "pow",  "rshift",   "sub",    "truediv", "xor"};
    static PyObject *module;
    if (module == NULL && (module = PyImport_ImportModule("operator")) == NULL)
        return NULL;
    return PyObject_GetAttrString(module, !unary                       ? binary[op]
                                          : op == FG_OP_UNARY_NEGATIVE ? "neg"
                                          : op == FG_OP_UNARY_INVERT   ? "invert"
                                                                       : "pos");
}

static PyObject *compare_function(int op)
{
    static const char *const names[] = {"lt", "le", "eq", "ne", "gt", "ge"};
    PyObject *module = PyImport_ImportModule("operator");
    PyObject *f = module ? PyObject_GetAttrString(module, names[op]) : NULL;
    Py_XDECREF(module);
    return f;
}

/* The elements of an array of objects decide what its operations give, and a stand-in has other elements. */
static fg_flow check_has_no_objects(fg_trace *t, PyObject *result)
{
    PyObject *dtype = fg_own(t, PyObject_GetAttr(result, fg_names.s_dtype));
    PyObject *has = dtype != NULL ? fg_own(t, PyObject_GetAttr(dtype, fg_names.s_hasobject)) : NULL;
    if (has == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            return fg_break_on_error(t, FG_BREAK_INFERENCE, "the dtype of a result");
        PyErr_Clear(); /* a tuple of arrays, say: each is looked at when it is taken out */
        return FG_FLOW_OK;
    }
    return has != Py_False ? fg_break(t, FG_BREAK_DATA_DEPENDENT_SHAPE, "what is in an array of objects") : FG_FLOW_OK;
}

/* Such an operation leaves the generators alone where it is called on fakes. NumPy has none, and what else was allowed into graphs may do anything. */
static bool is_random_of_torch(const fg_op_row *row)
{
    const char *name = PyUnicode_AsUTF8(row->name);
    if (name == NULL || strcmp(name, "torch.native_dropout") == 0) /* the mask of an empty tensor has another dtype */
        return false;
    return (strncmp(name, "torch.", 6) == 0 || strncmp(name, "Tensor.", 7) == 0);
}

/* The data of stand-ins made a failure of an operation that data may make fail. Fakes have none; the exception is gone then. */
static bool is_misled(const fg_op_row *row, fg_status st)
{
    if (st != FG_ERR_PYTHON || row == NULL || row->raises != FG_RAISES_DATA || !is_random_of_torch(row) ||
        !PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError))
        return false;
    PyErr_Clear();
    return true;
}

static fg_flow infer_step(fg_trace *t, fg_value *v, const fg_step *step, PyObject **out)
{
    const fg_op_row *row = step->row;
    if (row != NULL && (row->flags & (FG_OPF_DATA_OUTPUT | FG_OPF_CHANGES_META)))
        return fg_break(t, FG_BREAK_DATA_DEPENDENT_SHAPE, "the result of %U", row->name);
    bool is_random = row != NULL && (row->flags & FG_OPF_STATE);
    if (is_random && !is_random_of_torch(row))
        return fg_break(t, FG_BREAK_INFERENCE, "%U changes hidden state", row->name);
    if (step->op == FG_STEP_SUBSCR && step->arg)
        return fg_break(t, FG_BREAK_DATA_DEPENDENT_SHAPE, "the result of an index array or mask");
    if (v->n > 32)
        return fg_break(t, FG_BREAK_INFERENCE, "too many operands");
    PyObject *args[33], *callable = NULL, *result = NULL;
    for (int32_t i = 0; i < v->n; i++)
        FG_DO(fg_tensor_standin_object(t, v->items[i], &args[i]));
    int unsupported = 0;
    size_t nkw = step->kwnames ? (size_t)PyTuple_GET_SIZE(step->kwnames) : 0;
    PyObject *entered;
    fg_status st = fg_ambient_enter(step->ambient, &entered);
    if (st != FG_OK)
        return fg_break_on_error(t, FG_BREAK_CONTEXT_MANAGER, "entering a context manager");
    switch ((fg_step_op)step->op) {
    case FG_STEP_BINARY:
        if ((step->flags & FG_SF_EFFECT) && !fg_py_is_numpy_scalar(Py_TYPE(args[0]))) { /* in place: the left operand's own metadata */
            fg_ambient_leave(entered);
            *out = args[0];
            return FG_FLOW_OK;
        }
        callable = operator_function(step->arg % FG_OP_INPLACE, 0);
        break;
    case FG_STEP_UNARY: callable = operator_function(step->arg, 1); break;
    case FG_STEP_COMPARE: callable = compare_function(step->arg); break;
    case FG_STEP_SUBSCR: result = PyObject_GetItem(args[0], args[1]); break;
    case FG_STEP_ATTR: result = PyObject_GetAttr(args[0], step->name); break;
    case FG_STEP_CALL: callable = Py_NewRef(t->ir.regs[step->args[0]].object); break;
    case FG_STEP_CALL_METHOD:
        st = is_random ? fg_standin_random(NULL, step->name, args, (size_t)v->n - nkw, step->kwnames, &result, &unsupported)
                       : fg_standin_method(step->name, args, (size_t)v->n - nkw, step->kwnames, &result, &unsupported);
        if (!is_random && is_misled(row, st))
            st = fg_standin_random(NULL, step->name, args, (size_t)v->n - nkw, step->kwnames, &result, &unsupported);
        break;
    case FG_STEP_UNPACK: result = PySequence_GetItem(args[0], (Py_ssize_t)v->cap); break;
    default: fg_ambient_leave(entered); return fg_break(t, FG_BREAK_INFERENCE, "step");
    }
    if (callable != NULL) {
        st = is_random ? fg_standin_random(callable, NULL, args, (size_t)v->n - nkw, step->kwnames, &result, &unsupported)
                       : fg_standin_call(callable, args, (size_t)v->n - nkw, step->kwnames, &result, &unsupported);
        if (!is_random && is_misled(row, st))
            st = fg_standin_random(callable, NULL, args, (size_t)v->n - nkw, step->kwnames, &result, &unsupported);
        Py_DECREF(callable);
    }
    fg_ambient_leave(entered);
    if (unsupported)
        return fg_break(t, FG_BREAK_INFERENCE, "too large to infer");
    if (st != FG_OK && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception) && !PyErr_ExceptionMatches(PyExc_MemoryError)) {
        PyObject *type, *value, *tb;
        PyErr_Fetch(&type, &value, &tb);
        PyErr_NormalizeException(&type, &value, &tb);
        Py_XDECREF(type);
        Py_XDECREF(tb);
        if (fg_own(t, value) == NULL)
            return FG_FLOW_ERROR;
        t->foreseen = value;
        t->foreseen_of = v;
        return fg_break(t, FG_BREAK_RAISES, "inferring the metadata of an operation: %s", Py_TYPE(value)->tp_name);
    }
    if (st != FG_OK || result == NULL)
        return fg_break_on_error(t, PyErr_Occurred() ? FG_BREAK_RAISES : FG_BREAK_INFERENCE, "inferring the metadata of an operation");
    if ((*out = fg_own(t, result)) == NULL)
        return FG_FLOW_ERROR;
    return fg_tensor_library(v) == FG_LIB_NUMPY ? check_has_no_objects(t, result) : FG_FLOW_OK;
}

/* A chain of operations is inferred from its inputs on; the recursion is as deep as the chain, so its first part is done by a worklist. */
static fg_flow standin_now(fg_trace *t, fg_value *v)
{
    PyObject *made;
    if (v->step >= 0) {
        fg_step step = t->ir.steps[v->step];
        FG_DO(infer_step(t, v, &step, &made));
    } else {
        const fg_tensor_adaptor *adaptor = v->type ? fg_tensor_adaptor_find(v->type) : NULL;
        fg_tensor_meta meta;
        const char *why;
        if (v->is_scalar && v->real != NULL) {
            made = v->real; /* immutable; its value does not decide metadata */
        } else {
            int read = adaptor != NULL && v->real != NULL ? adaptor->read(adaptor, v->real, &meta, &why) : 0;
            if (read != 1)
                return read < 0 ? fg_break_on_error(t, FG_BREAK_INFERENCE, "an input's metadata")
                                : fg_break(t, FG_BREAK_INFERENCE, "an input's metadata");
            if (fg_standin_new(&meta, &made) != FG_OK)
                return fg_break_on_error(t, FG_BREAK_INFERENCE, "stand-in");
            if (fg_own(t, made) == NULL)
                return FG_FLOW_ERROR;
        }
    }
    FG_SET(t, v->standin, made);
    return FG_FLOW_OK;
}

fg_flow fg_tensor_standin(fg_trace *t, fg_value *v, PyObject **out)
{
    fg_todo todo = {0};
    FG_DO(fg_todo_push(t, &todo, v));
    while (todo.n > 0) {
        fg_value *at = todo.items[todo.n - 1];
        if (at->standin != NULL) {
            todo.n--;
            continue;
        }
        size_t before = todo.n;
        for (int32_t i = 0; at->step >= 0 && i < at->n; i++)
            if (at->items[i]->kind == FG_V_TENSOR && at->items[i]->standin == NULL && at->items[i] != at)
                FG_DO(fg_todo_push(t, &todo, at->items[i]));
        if (todo.n == before) {
            FG_DO(standin_now(t, at));
            todo.n--;
        }
    }
    *out = v->standin;
    return FG_FLOW_OK;
}

static bool is_in_c_order(PyObject *standin)
{
    fg_tensor_meta meta;
    int64_t step = 1;
    if (!fg_standin_read(standin, &meta))
        return false;
    for (int32_t i = meta.ndim - 1; i >= 0; i--) {
        if (meta.sizes[i] > 1 && meta.strides[i] != step)
            return false;
        step *= meta.sizes[i];
    }
    return true;
}

/* Fakes are told by kernels' declarations, which are not exact about strides where operands are not in C order. */
static bool order_is_known(const fg_trace *t, const fg_value *v, int *left)
{
    if (v->step < 0 || (v->standin != NULL && !fg_py_is_fake(v->standin)))
        return true;
    if (v->standin == NULL || --*left < 0)
        return false;
    const fg_step *step = &t->ir.steps[v->step];
    const fg_op_row *row = step->row;
    /* a random operation is a view only where it does nothing */
    bool is_view = row != NULL ? (row->flags & (FG_OPF_VIEW | FG_OPF_STATE)) == FG_OPF_VIEW : step->op == FG_STEP_SUBSCR && !step->arg;
    bool is_einsum = row != NULL && PyUnicode_CompareWithASCIIString(row->name, "torch.einsum") == 0; /* dimensions of one element */
    if (is_einsum || (!is_view && !is_in_c_order(v->standin)))
        return false;
    for (int32_t i = 0; i < v->n; i++) {
        const fg_value *of = v->items[i];
        bool is_seq = of->kind == FG_V_LIST || of->kind == FG_V_TUPLE;
        for (int32_t k = 0; k < (is_seq ? of->n : 1); k++) {
            const fg_value *o = is_seq ? of->items[k] : of;
            if (o->kind == FG_V_TENSOR && (!order_is_known(t, o, left) || (!is_view && (o->standin == NULL || !is_in_c_order(o->standin)))))
                return false;
        }
    }
    return true;
}

bool fg_order_is_known(const fg_trace *t, const fg_value *v)
{
    int left = 200;
    return fg_tensor_library(v) != FG_LIB_TORCH || order_is_known(t, v, &left);
}

/* --- under a handler */

/* Whether inferring is cheap and says nothing about scalars of this very call: small operands, whose values no error depends on. */
static bool is_foreseeable(const fg_value *v, int *left)
{
    enum { SMALL = 4096 };
    if (--*left < 0)
        return false;
    switch ((fg_vkind)v->kind) {
    case FG_V_CONST: return true;
    case FG_V_TENSOR:
        if (v->standin != NULL)
            return !fg_py_is_fake(v->standin);
        if (v->step < 0) {
            const fg_tensor_adaptor *adaptor = v->type && !v->is_scalar ? fg_tensor_adaptor_find(v->type) : NULL;
            fg_tensor_meta meta;
            const char *why;
            int64_t n = 1;
            if (adaptor == NULL || v->real == NULL || fg_tensor_library(v) != FG_LIB_TORCH)
                return adaptor != NULL && v->real != NULL;
            if (adaptor->read(adaptor, v->real, &meta, &why) != 1)
                return false;
            for (int32_t i = 0; i < meta.ndim; i++)
                n = meta.sizes[i] > SMALL ? SMALL + 1 : n > SMALL ? n : n * meta.sizes[i];
            return n <= SMALL;
        }
        /* fall through */
    case FG_V_LIST:
    case FG_V_TUPLE:
    case FG_V_SLICE:
        for (int32_t i = 0; i < v->n; i++)
            if (!is_foreseeable(v->items[i], left))
                return false;
        return true;
    default: return false;
    }
}

bool fg_is_foreseeable(const fg_value *v)
{
    int left = 64;
    return is_foreseeable(v, &left);
}

/* The operation whose result this is, and which was emitted last, raises what was foreseen instead. */
static fg_flow raise_foreseen(fg_trace *t, fg_value *result)
{
    PyObject *error = t->foreseen;
    if (t->ir.n_steps - 1 != result->step || !fg_may_raise(t))
        return fg_break(t, FG_BREAK_RAISES, "inferring the metadata of an operation: %s", Py_TYPE(error)->tp_name);
    t->ir.n_steps--;
    t->ir.n_regs = result->reg;
    PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    return fg_raise_error(t, "an operation");
}

/* Under a handler the metadata of an operation is inferred at once: a failure is the exception that the program sees. Where what is raised at run time cannot be
 * handed to the handler, the operation must besides be known not to raise, so an error that depends on data is a break. */
fg_flow fg_tensor_settle(fg_trace *t, fg_op_raises raises, fg_value *result, const char *what)
{
    PyObject *standin;
    bool covered = fg_is_covered(t), is_handled = fg_may_raise(t);
    if (raises == FG_RAISES_NEVER || !(covered || is_handled))
        return FG_FLOW_OK;
    if (raises == FG_RAISES_DATA)
        return covered ? fg_break(t, FG_BREAK_MAY_RAISE_IN_TRY, "%s may raise for some data", what) : FG_FLOW_OK;
    bool foresees = is_handled && fg_is_foreseeable(result);
    if (!covered && !foresees)
        return FG_FLOW_OK;
    fg_trace_mark mark = fg_trace_mark_get(t);
    t->foreseen = NULL;
    fg_flow flow = fg_tensor_standin(t, result, &standin);
    if (flow == FG_FLOW_BREAK && foresees && t->foreseen != NULL && t->foreseen_of == result)
        return raise_foreseen(t, result);
    if (flow == FG_FLOW_BREAK && !covered) {
        fg_trace_rewind(t, mark);
        return FG_FLOW_OK;
    }
    return flow;
}

/* What NumPy's error state may turn into an exception. */
fg_flow fg_tensor_settle_errstate(fg_trace *t)
{
    return fg_is_covered(t) ? fg_break(t, FG_BREAK_MAY_RAISE_IN_TRY, "arithmetic, which NumPy's error state may turn into an exception")
                            : FG_FLOW_OK;
}
