/* Residual scalars: arithmetic on ints, floats, bools and strings whose values are not guarded.
 *
 * A scalar that came from outside is guarded by exact type only. Operations on it become steps; their result type follows from the operand types by
 * the table in `result_type`, where it does not (power, mixed strings) the operands are made concrete. A value becomes concrete when something
 * decides on it: value facts go to all the sources it was computed from, and the steps that made it can no longer raise.
 */
#include "runtime/cpython/facts.h"
#include "tracer/trace_python.h"

#include <string.h>

enum { ADD, AND, FLOOR_DIVIDE, LSHIFT, MATMUL, MULTIPLY, REMAINDER, OR, POWER, RSHIFT, SUBTRACT, TRUE_DIVIDE, XOR };

/* `a op= b` says so in its errors. */
static PyObject *in_place_now(int op, PyObject *a, PyObject *b)
{
    switch (op) {
    case ADD: return PyNumber_InPlaceAdd(a, b);
    case AND: return PyNumber_InPlaceAnd(a, b);
    case FLOOR_DIVIDE: return PyNumber_InPlaceFloorDivide(a, b);
    case LSHIFT: return PyNumber_InPlaceLshift(a, b);
    case MATMUL: return PyNumber_InPlaceMatrixMultiply(a, b);
    case MULTIPLY: return PyNumber_InPlaceMultiply(a, b);
    case REMAINDER: return PyNumber_InPlaceRemainder(a, b);
    case OR: return PyNumber_InPlaceOr(a, b);
    case POWER: return PyNumber_InPlacePower(a, b, Py_None);
    case RSHIFT: return PyNumber_InPlaceRshift(a, b);
    case SUBTRACT: return PyNumber_InPlaceSubtract(a, b);
    case TRUE_DIVIDE: return PyNumber_InPlaceTrueDivide(a, b);
    default: return PyNumber_InPlaceXor(a, b);
    }
}

static PyObject *binary_now(int op, PyObject *a, PyObject *b)
{
    if (op >= FG_OP_INPLACE)
        return in_place_now(op - FG_OP_INPLACE, a, b);
    switch (op) {
    case ADD: return PyNumber_Add(a, b);
    case AND: return PyNumber_And(a, b);
    case FLOOR_DIVIDE: return PyNumber_FloorDivide(a, b);
    case LSHIFT: return PyNumber_Lshift(a, b);
    case MATMUL: return PyNumber_MatrixMultiply(a, b);
    case MULTIPLY: return PyNumber_Multiply(a, b);
    case REMAINDER: return PyNumber_Remainder(a, b);
    case OR: return PyNumber_Or(a, b);
    case POWER: return PyNumber_Power(a, b, Py_None);
    case RSHIFT: return PyNumber_Rshift(a, b);
    case SUBTRACT: return PyNumber_Subtract(a, b);
    case TRUE_DIVIDE: return PyNumber_TrueDivide(a, b);
    default: return PyNumber_Xor(a, b);
    }
}

static size_t bits_of(PyObject *o)
{
    return PyLong_Check(o) ? _PyLong_NumBits(o) : 0;
}

/* Operations whose result would be too large to compute while tracing. */
static bool is_too_large(int op, PyObject *a, PyObject *b)
{
    op %= FG_OP_INPLACE;
    if (op == POWER && PyLong_Check(a) && PyLong_Check(b))
        return bits_of(b) > 16 || bits_of(a) * (size_t)labs(PyLong_AsLong(b)) > 1 << 16;
    if (op == LSHIFT && PyLong_Check(a) && PyLong_Check(b))
        return bits_of(b) > 16;
    if (op == MULTIPLY && PyLong_Check(a) && PyLong_Check(b))
        return bits_of(a) + bits_of(b) > 1 << 20;
    if (op == MULTIPLY) {
        PyObject *seq = PyLong_Check(a) ? b : a, *count = seq == a ? b : a;
        Py_ssize_t n = PyUnicode_Check(seq) ? PyUnicode_GET_LENGTH(seq)
                       : PyBytes_Check(seq) ? PyBytes_GET_SIZE(seq)
                       : PyTuple_Check(seq) ? PyTuple_GET_SIZE(seq)
                                            : 0;
        return n > 0 && PyLong_Check(count) && (bits_of(count) > 20 || n * labs(PyLong_AsLong(count)) > 1 << 20);
    }
    if (op == REMAINDER && (PyUnicode_Check(a) || PyBytes_Check(a)))
        return true; /* formatting by % may ask for any width */
    return false;
}

static bool is_int(PyTypeObject *type)
{
    return type == &PyLong_Type || type == &PyBool_Type;
}

/* The type that op gives for every value of these types, or NULL. */
static PyTypeObject *result_type(int op, PyTypeObject *a, PyTypeObject *b)
{
    op %= FG_OP_INPLACE;
    if (is_int(a) && is_int(b)) {
        switch (op) {
        case TRUE_DIVIDE: return &PyFloat_Type;
        case POWER:
        case MATMUL: return NULL;
        case AND:
        case OR:
        case XOR: return a == &PyBool_Type && b == &PyBool_Type ? &PyBool_Type : &PyLong_Type;
        default: return &PyLong_Type;
        }
    }
    if ((a == &PyFloat_Type || is_int(a)) && (b == &PyFloat_Type || is_int(b)))
        return op == ADD || op == SUBTRACT || op == MULTIPLY || op == TRUE_DIVIDE || op == FLOOR_DIVIDE || op == REMAINDER ? &PyFloat_Type
                                                                                                                           : NULL;
    if (op == ADD && a == b && (a == &PyUnicode_Type || a == &PyBytes_Type))
        return a;
    return NULL;
}

static bool may_raise(int op, fg_value *a, fg_value *b)
{
    op %= FG_OP_INPLACE;
    if (op == TRUE_DIVIDE || op == FLOOR_DIVIDE || op == REMAINDER || op == LSHIFT || op == RSHIFT || op == POWER)
        return true;
    return (a->type == &PyFloat_Type) != (b->type == &PyFloat_Type); /* an int too large for a float */
}

/* --- concrete values */

static fg_flow concrete_one(fg_trace *t, fg_value *v)
{
    fg_node node;
    FG_DO(fg_node_of(t, v, &node));
    if (v->real == NULL)
        return fg_break(t, FG_BREAK_DATA_DEPENDENT_VALUE, "the value of %s depends on tensor data",
                        v->type ? v->type->tp_name : "a scalar");
    if (node != FG_NODE_NONE)
        FG_DO(fg_guard(t, FG_GUARD_CONST, node, v->real, 0, 0));
    else if (v->items == NULL)
        return fg_break(t, FG_BREAK_DATA_DEPENDENT_VALUE, "the value is only known at run time");
    if (v->step >= 0 && (t->ir.steps[v->step].flags & FG_SF_RAISES))
        FG_SET(t, t->ir.steps[v->step].flags, (uint8_t)(t->ir.steps[v->step].flags & ~FG_SF_RAISES));
    FG_SET(t, v->kind, FG_V_CONST);
    return FG_FLOW_OK;
}

fg_flow fg_concrete(fg_trace *t, fg_value *v)
{
    if (v->kind == FG_V_CONST)
        return FG_FLOW_OK;
    if (v->kind != FG_V_SCALAR)
        return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "a plain value was needed, not %s",
                        v->type ? v->type->tp_name : "a run-time object");
    fg_todo todo = {0};
    FG_DO(fg_todo_push(t, &todo, v));
    while (todo.n > 0) {
        fg_value *at = todo.items[--todo.n];
        if (at->kind == FG_V_CONST)
            continue;
        if (at->kind != FG_V_SCALAR)
            return fg_break(t, FG_BREAK_DATA_DEPENDENT_VALUE, "the value depends on tensor data");
        bool fixed;
        FG_DO(fg_outcome_value(t, at, &fixed));
        if (fixed)
            continue;
        FG_DO(concrete_one(t, at));
        if (at->node != FG_NODE_NONE)
            continue;
        for (int32_t i = 0; i < at->n; i++)
            FG_DO(fg_todo_push(t, &todo, at->items[i]));
    }
    return FG_FLOW_OK;
}

fg_flow fg_index_value(fg_trace *t, fg_value *v, int64_t *out)
{
    FG_DO(fg_look(t, &v));
    if (!fg_is_scalar(v) || !is_int(v->type))
        return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "an int was needed, not %s", v->type ? v->type->tp_name : "a run-time object");
    FG_DO(fg_concrete(t, v));
    *out = PyLong_AsLongLong(v->real);
    if (*out == -1 && PyErr_Occurred())
        return fg_break_on_error(t, FG_BREAK_UNSUPPORTED_VALUE, "index");
    return FG_FLOW_OK;
}

/* An object is true as long as its class grows no __bool__ or __len__. */
static fg_flow no_truth_method(fg_trace *t, fg_value *v, PyTypeObject *type)
{
    fg_value *of, *found;
    FG_DO(fg_object_type(t, v, &of));
    FG_DO(fg_type_lookup(t, of, type, fg_names.s_bool, &found));
    return fg_type_lookup(t, of, type, fg_names.s_len, &found);
}

fg_flow fg_truth(fg_trace *t, fg_value *v, bool *truth)
{
    FG_DO(fg_look(t, &v));
    if (v->kind == FG_V_SCALAR) {
        fg_node node;
        FG_DO(fg_node_of(t, v, &node));
        if (node != FG_NODE_NONE && v->type != &PyBool_Type) {
            *truth = PyObject_IsTrue(v->real) == 1;
            return fg_guard(t, FG_GUARD_TRUTH, node, NULL, *truth, *truth);
        }
        bool fixed = false;
        *truth = v->real != NULL && PyObject_IsTrue(v->real) == 1;
        if (v->real != NULL && v->type != &PyBool_Type)
            FG_DO(fg_outcome_truth(t, v, *truth, &fixed));
        if (fixed)
            return FG_FLOW_OK;
        FG_DO(fg_concrete(t, v));
    }
    if (v->kind == FG_V_CONST) {
        if (!fg_is_fold_const(v->real)) {
            PyTypeObject *type = Py_TYPE(v->real);
            if ((type->tp_as_number && type->tp_as_number->nb_bool) || (type->tp_as_mapping && type->tp_as_mapping->mp_length) ||
                (type->tp_as_sequence && type->tp_as_sequence->sq_length))
                return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "truth of %s", type->tp_name);
            *truth = true;
            return no_truth_method(t, v, type);
        }
        if (v->real == Py_NotImplemented)
            return fg_break(t, FG_BREAK_RAISES, "the truth of NotImplemented, which warns");
        *truth = PyObject_IsTrue(v->real) == 1;
        return FG_FLOW_OK;
    }
    switch ((fg_vkind)v->kind) {
    case FG_V_FUNC:
    case FG_V_METHOD:
    case FG_V_CELL:
    case FG_V_ITER:
    case FG_V_SLICE: *truth = true; return FG_FLOW_OK;
    case FG_V_OBJECT:
        if (v->type->tp_as_number == NULL || v->type->tp_as_number->nb_bool == NULL) {
            if ((v->type->tp_as_mapping == NULL || v->type->tp_as_mapping->mp_length == NULL) &&
                (v->type->tp_as_sequence == NULL || v->type->tp_as_sequence->sq_length == NULL)) {
                *truth = true;
                return no_truth_method(t, v, v->type);
            }
        }
        {
            fg_value *out;
            bool found;
            FG_DO(fg_call_special(t, v, fg_names.s_bool, NULL, 0, &out, &found));
            if (found) {
                FG_DO(fg_look(t, &out));
                if (out->type != &PyBool_Type)
                    return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "__bool__ of %s", v->type->tp_name);
                return fg_truth(t, out, truth);
            }
            int64_t n;
            FG_DO(fg_len(t, v, &n));
            *truth = n > 0;
            return FG_FLOW_OK;
        }
    case FG_V_LIST:
    case FG_V_DICT:
    case FG_V_TUPLE:
    case FG_V_SET: {
        if ((v->kind == FG_V_LIST || v->kind == FG_V_DICT) && !v->is_mutated && !v->is_complete && v->node != FG_NODE_NONE) {
            *truth = (v->kind == FG_V_LIST ? PyList_GET_SIZE(v->real) : PyDict_GET_SIZE(v->real)) > 0;
            return fg_guard(t, FG_GUARD_TRUTH, v->node, NULL, *truth, *truth);
        }
        int64_t n;
        FG_DO(fg_len(t, v, &n));
        *truth = n > 0;
        return FG_FLOW_OK;
    }
    case FG_V_TENSOR: return fg_break(t, FG_BREAK_DATA_DEPENDENT_BRANCH, "the truth of an array decides what happens next");
    default: return fg_break(t, FG_BREAK_DATA_DEPENDENT_BRANCH, "the truth of a run-time object decides what happens next");
    }
}

/* --- operations */

static fg_flow fold(fg_trace *t, PyObject *result, const char *what, fg_value **out)
{
    if (result == NULL)
        return fg_raise_error(t, what);
    if (fg_own(t, result) == NULL || (*out = fg_value_const(t, result)) == NULL)
        return FG_FLOW_ERROR;
    return FG_FLOW_OK;
}

/* A step over scalars; example is stolen and may be NULL. */
static fg_flow residual(fg_trace *t, fg_step_op op, int arg, PyObject *head, fg_value *const *args, int32_t n, PyTypeObject *type,
                        PyObject *example, int flags, fg_value **out)
{
    fg_reg regs[8], reg;
    int32_t k = 0;
    if (example != NULL && fg_own(t, example) == NULL)
        return FG_FLOW_ERROR;
    if (head != NULL && (regs[k++] = fg_ir_reg_add(&t->ir, FG_REG_CONST, head)) == FG_REG_NONE)
        return fg_nomem();
    for (int32_t i = 0; i < n; i++)
        FG_DO(fg_materialise(t, args[i], &regs[k++]));
    FG_DO(fg_emit(t, op, flags, arg, NULL, NULL, regs, k, &reg));
    fg_value *v = fg_value_step(t, FG_V_SCALAR, reg, type, example);
    if (v == NULL)
        return FG_FLOW_ERROR;
    v->items = fg_arena_alloc(&t->arena, (size_t)(n ? n : 1) * sizeof *v->items);
    if (v->items == NULL)
        return fg_nomem();
    memcpy(v->items, args, (size_t)n * sizeof *args);
    v->n = v->cap = n;
    *out = v;
    return FG_FLOW_OK;
}

enum { SAFE_INT = 1 << 30 };

/* An int that comes straight from a source and is small: a range fact keeps it so. */
static fg_flow keep_small(fg_trace *t, fg_value *v, bool nonzero, bool *kept)
{
    fg_node node;
    *kept = false;
    FG_DO(fg_node_of(t, v, &node));
    if (v->type != &PyLong_Type || v->real == NULL || (node == FG_NODE_NONE && v->kind != FG_V_CONST))
        return FG_FLOW_OK;
    int overflow;
    long long n = PyLong_AsLongLongAndOverflow(v->real, &overflow);
    if (overflow || n > SAFE_INT || n < -SAFE_INT || (nonzero && n == 0))
        return FG_FLOW_OK;
    *kept = true;
    if (v->kind == FG_V_CONST)
        return FG_FLOW_OK;
    return fg_guard(t, FG_GUARD_INT_RANGE, node, NULL, nonzero && n > 0 ? 1 : -SAFE_INT, nonzero && n < 0 ? -1 : SAFE_INT);
}

/* An operation on these examples has raised. Where the program handles that, their values become facts, so that it is what happens; else it is a break. */
static fg_flow known_to_raise(fg_trace *t, fg_value **operands, int32_t n, const char *what)
{
    if (!fg_may_raise(t) || PyErr_ExceptionMatches(PyExc_MemoryError))
        return fg_break_on_error(t, FG_BREAK_RAISES, what);
    PyErr_Clear();
    for (int32_t i = 0; i < n; i++)
        FG_DO(fg_concrete(t, operands[i]));
    return FG_FLOW_OK;
}

/* Where an error would be seen or would cut a graph: add the facts that rule it out, if they are cheap. */
static fg_flow rule_out_errors(fg_trace *t, int op, fg_value *a, fg_value *b, bool *raises)
{
    bool left = a->type == &PyFloat_Type || a->type == &PyBool_Type, right = b->type == &PyFloat_Type || b->type == &PyBool_Type;
    bool divides = op % FG_OP_INPLACE == TRUE_DIVIDE || op % FG_OP_INPLACE == FLOOR_DIVIDE || op % FG_OP_INPLACE == REMAINDER;
    if (op % FG_OP_INPLACE == POWER || op % FG_OP_INPLACE == LSHIFT || op % FG_OP_INPLACE == RSHIFT)
        return FG_FLOW_OK;
    if (divides) {
        right = b->kind == FG_V_CONST && b->type == &PyFloat_Type && PyFloat_AS_DOUBLE(b->real) != 0;
        if (b->type == &PyLong_Type)
            FG_DO(keep_small(t, b, true, &right));
        if (!right && b->type == &PyLong_Type && b->real != NULL && PyObject_IsTrue(b->real) == 1)
            FG_DO(fg_outcome_truth(t, b, true, &right));
        left |= is_int(a->type) && is_int(b->type) && op % FG_OP_INPLACE != TRUE_DIVIDE;
    } else if (!right) {
        FG_DO(keep_small(t, b, false, &right));
    }
    if (right && !left)
        FG_DO(keep_small(t, a, false, &left));
    *raises = !(left && right);
    return FG_FLOW_OK;
}

fg_flow fg_scalar_binary(fg_trace *t, int op, fg_value *a, fg_value *b, fg_value **out)
{
    if (a->kind == FG_V_CONST && b->kind == FG_V_CONST) {
        if (is_too_large(op, a->real, b->real))
            return fg_break(t, FG_BREAK_TOO_LONG, "a constant would be too large");
        return fold(t, binary_now(op, a->real, b->real), "operator", out);
    }
    PyTypeObject *type = result_type(op, a->type, b->type);
    bool raises = may_raise(op, a, b);
    if (type != NULL && raises && (t->opaque || fg_is_covered(t)))
        FG_DO(rule_out_errors(t, op, a, b, &raises));
    if (type == NULL || (raises && fg_is_covered(t))) {
        FG_DO(fg_concrete(t, a));
        FG_DO(fg_concrete(t, b));
        return fg_scalar_binary(t, op, a, b, out);
    }
    PyObject *example = NULL;
    if (a->real && b->real) {
        if (is_too_large(op, a->real, b->real))
            return fg_break(t, FG_BREAK_TOO_LONG, "a value would be too large");
        if ((example = binary_now(op, a->real, b->real)) == NULL) {
            FG_DO(known_to_raise(t, (fg_value *[]){a, b}, 2, "operator"));
            return fg_scalar_binary(t, op, a, b, out);
        }
        if (Py_TYPE(example) != type) {
            Py_DECREF(example);
            return fg_break(t, FG_BREAK_INTERNAL, "result type of operator %d", op);
        }
    }
    return residual(t, FG_STEP_BINARY, op, NULL, (fg_value *[]){a, b}, 2, type, example, raises ? FG_SF_RAISES : 0, out);
}

fg_flow fg_scalar_compare(fg_trace *t, int op, fg_value *a, fg_value *b, fg_value **out)
{
    if (a->kind == FG_V_CONST && b->kind == FG_V_CONST)
        return fold(t, PyObject_RichCompare(a->real, b->real, op), "comparison", out);
    bool numbers = (is_int(a->type) || a->type == &PyFloat_Type) && (is_int(b->type) || b->type == &PyFloat_Type);
    if (!numbers && a->type != b->type) {
        if (op != Py_EQ && op != Py_NE)
            return fg_break(t, FG_BREAK_RAISES, "comparison of %s and %s", a->type->tp_name, b->type->tp_name);
        FG_DO(fg_concrete(t, a));
        FG_DO(fg_concrete(t, b));
        return fg_scalar_compare(t, op, a, b, out);
    }
    if (a->type == &PyComplex_Type && op != Py_EQ && op != Py_NE)
        return fg_break(t, FG_BREAK_RAISES, "comparison of complex numbers");
    PyObject *example = NULL;
    if (a->real && b->real && (example = PyObject_RichCompare(a->real, b->real, op)) == NULL)
        return fg_break_on_error(t, FG_BREAK_RAISES, "comparison");
    return residual(t, FG_STEP_COMPARE, op, NULL, (fg_value *[]){a, b}, 2, &PyBool_Type, example, 0, out);
}

fg_flow fg_scalar_unary(fg_trace *t, int op, fg_value *a, fg_value **out)
{
    PyTypeObject *type = is_int(a->type) ? &PyLong_Type : a->type == &PyFloat_Type && op != FG_OP_UNARY_INVERT ? &PyFloat_Type : NULL;
    PyObject *example = NULL;
    if (FG_FACT_INVERTED_BOOL_WARNS && op == FG_OP_UNARY_INVERT && a->type == &PyBool_Type)
        return fg_break(t, FG_BREAK_RAISES, "~ of a bool warns");
    if (a->real) {
        example = op == FG_OP_UNARY_NEGATIVE ? PyNumber_Negative(a->real)
                  : op == FG_OP_UNARY_INVERT ? PyNumber_Invert(a->real)
                                             : PyNumber_Positive(a->real);
        if (example == NULL && a->kind != FG_V_CONST) {
            FG_DO(known_to_raise(t, &a, 1, "operator"));
            return fg_scalar_unary(t, op, a, out);
        }
    }
    if (a->kind == FG_V_CONST)
        return fold(t, example, "operator", out);
    if (type == NULL) {
        Py_XDECREF(example);
        FG_DO(fg_concrete(t, a));
        return fg_scalar_unary(t, op, a, out);
    }
    return residual(t, FG_STEP_UNARY, op, NULL, &a, 1, type, example, 0, out);
}

/* int, float, bool, str, abs, round, ... of scalars: fold, or a step where the result type follows from the argument types. */
fg_flow fg_scalar_call(fg_trace *t, PyObject *callable, fg_value **args, int32_t n, fg_value **out)
{
    bool all_const = true, all_real = true;
    for (int32_t i = 0; i < n; i++) {
        all_const &= args[i]->kind == FG_V_CONST;
        all_real &= args[i]->real != NULL;
    }
    PyTypeObject *type = NULL, *of = n == 1 ? args[0]->type : NULL;
    if (n == 1 && callable == (PyObject *)&PyFloat_Type && (is_int(of) || of == &PyFloat_Type))
        type = &PyFloat_Type;
    else if (n == 1 && callable == (PyObject *)&PyLong_Type && (is_int(of) || of == &PyFloat_Type))
        type = &PyLong_Type;
    else if (n == 1 && callable == (PyObject *)&PyBool_Type && of != NULL)
        type = &PyBool_Type;
    else if (n == 1 && callable == (PyObject *)&PyUnicode_Type && of != NULL && of != &PyBytes_Type)
        type = &PyUnicode_Type;
    bool raises = type != &PyBool_Type && !(type == &PyFloat_Type && of == &PyFloat_Type) && !(type == &PyLong_Type && is_int(of));
    if (all_const || type == NULL || (raises && fg_is_covered(t))) {
        PyObject *stack[8];
        if (n > 8)
            return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "too many arguments");
        for (int32_t i = 0; i < n; i++) {
            FG_DO(fg_concrete(t, args[i]));
            stack[i] = args[i]->real;
        }
        return fold(t, PyObject_Vectorcall(callable, stack, (size_t)n, NULL), "call", out);
    }
    PyObject *example = NULL;
    if (all_real && (example = PyObject_CallOneArg(callable, args[0]->real)) == NULL) {
        FG_DO(known_to_raise(t, args, n, "conversion"));
        return fg_scalar_call(t, callable, args, n, out);
    }
    return residual(t, FG_STEP_CALL, 0, callable, args, n, type, example, raises ? FG_SF_RAISES : 0, out);
}
