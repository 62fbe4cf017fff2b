/* Evaluation and text of computed conditions. Numbers are ints of 64 bits or doubles, told apart by a flag; rules for mixed ones are Python's: an
 * operation converts the int, a comparison compares the exact values. */
#include "guards/guard_expr.h"
#include "guards/guard_private.h"
#include "runtime/cpython/iterators.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *text;
    int takes; /* operands from the stack */
} rows[FG_N_EXPR_OPS] = {[FG_EXPR_INT] = {"", 0},
                         [FG_EXPR_FLOAT] = {"", 0},
#define X(NAME, TEXT, TENSOR, DIM) [FG_EXPR_##NAME] = {TEXT, 0},
                         FG_EXPR_OPERANDS(X)
#undef X
#define X(NAME, TEXT, N) [FG_EXPR_##NAME] = {TEXT, N},
                             FG_EXPR_OPS(X)
#undef X
};

static int is_operand(unsigned op)
{
    return op >= FG_EXPR_VALUE && op < FG_EXPR_ADD;
}

static int has_dim(unsigned op)
{
    return op == FG_EXPR_SIZE || op == FG_EXPR_STRIDE;
}

int fg_expr_is_tensor(const fg_expr_step *step)
{
    return is_operand(step->op) && step->op >= FG_EXPR_NDIM;
}

/* ---- evaluation ---- */

typedef struct number {
    int is_float;
    int64_t i;
    double f;
} number;

static number whole(int64_t i)
{
    return (number){.i = i};
}

static number real(double f)
{
    return (number){.is_float = 1, .f = f};
}

static double as_double(number a)
{
    return a.is_float ? a.f : (double)a.i;
}

static int truth(number a)
{
    return a.is_float ? a.f != 0.0 : a.i != 0;
}

/* -1, 0, 1, or 2 where one is no number. The int is never rounded. */
static int order_mixed(int64_t i, double f)
{
    if (isnan(f))
        return 2;
    if (f >= 9223372036854775808.0)
        return -1;
    if (f < -9223372036854775808.0)
        return 1;
    int64_t below = (int64_t)f; /* towards zero: what is lost has the sign of f */
    if (i != below)
        return i < below ? -1 : 1;
    double rest = f - (double)below;
    return rest > 0 ? -1 : rest < 0;
}

static int order(number a, number b)
{
    if (!a.is_float && !b.is_float)
        return (a.i > b.i) - (a.i < b.i);
    if (!a.is_float)
        return order_mixed(a.i, b.f);
    if (!b.is_float) {
        int turned = order_mixed(b.i, a.f);
        return turned == 2 ? 2 : -turned;
    }
    return isnan(a.f) || isnan(b.f) ? 2 : (a.f > b.f) - (a.f < b.f);
}

static int divide(unsigned op, number a, number b, number *out)
{
    if (a.is_float || b.is_float || b.i == 0 || (a.i == INT64_MIN && b.i == -1))
        return 0;
    int64_t quotient = a.i / b.i, rest = a.i % b.i;
    if (rest != 0 && (rest < 0) != (b.i < 0)) {
        quotient--;
        rest += b.i;
    }
    *out = whole(op == FG_EXPR_FLOORDIV ? quotient : rest);
    return 1;
}

static int arithmetic(unsigned op, number a, number b, number *out)
{
    if (a.is_float || b.is_float) {
        double x = as_double(a), y = as_double(b);
        *out = real(op == FG_EXPR_ADD ? x + y : op == FG_EXPR_SUB ? x - y : x * y);
        return 1;
    }
    *out = whole(0);
    return !(op == FG_EXPR_ADD   ? __builtin_add_overflow(a.i, b.i, &out->i)
             : op == FG_EXPR_SUB ? __builtin_sub_overflow(a.i, b.i, &out->i)
                                 : __builtin_mul_overflow(a.i, b.i, &out->i));
}

static int negative(number a, number *out)
{
    if (!a.is_float && a.i == INT64_MIN)
        return 0;
    *out = a.is_float ? real(-a.f) : whole(-a.i);
    return 1;
}

static int apply_one(unsigned op, number a, number *out)
{
    if (op == FG_EXPR_NEG)
        return negative(a, out);
    if (op == FG_EXPR_NOT) {
        *out = whole(!truth(a));
        return 1;
    }
    if (a.is_float) {
        *out = real(fabs(a.f));
        return 1;
    }
    *out = a;
    return a.i >= 0 || negative(a, out);
}

static int apply_two(unsigned op, number a, number b, number *out)
{
    int how;
    switch (op) {
    case FG_EXPR_ADD:
    case FG_EXPR_SUB:
    case FG_EXPR_MUL: return arithmetic(op, a, b, out);
    case FG_EXPR_FLOORDIV:
    case FG_EXPR_MOD: return divide(op, a, b, out);
    case FG_EXPR_AND: *out = truth(a) ? b : a; return 1;
    case FG_EXPR_OR: *out = truth(a) ? a : b; return 1;
    default: break;
    }
    how = order(a, b);
    switch (op) {
    case FG_EXPR_MIN: *out = how == 1 ? b : a; return 1;
    case FG_EXPR_MAX: *out = how == -1 ? b : a; return 1;
    case FG_EXPR_EQ: *out = whole(how == 0); return 1;
    case FG_EXPR_NE: *out = whole(how != 0); return 1;
    case FG_EXPR_LT: *out = whole(how == -1); return 1;
    case FG_EXPR_LE: *out = whole(how == -1 || how == 0); return 1;
    case FG_EXPR_GT: *out = whole(how == 1); return 1;
    default: /* GE */ *out = whole(how == 1 || how == 0); return 1;
    }
}

static int operand_value(PyObject *v, number *out)
{
    if (PyFloat_CheckExact(v)) {
        *out = real(PyFloat_AS_DOUBLE(v));
        return 1;
    }
    if (!PyLong_CheckExact(v) && !PyBool_Check(v))
        return 0;
    int overflow = 0;
    *out = whole(PyLong_AsLongLongAndOverflow(v, &overflow));
    return !overflow;
}

static int operand_length(PyObject *v, number *out)
{
    Py_ssize_t n = fg_builtin_length(v);
    *out = whole(n);
    return n >= 0;
}

static int operand_tensor(const fg_expr_step *step, PyObject *v, const fg_tensor_adaptor *adaptor, number *out)
{
    fg_tensor_meta meta;
    fg_tensor_place place;
    if (adaptor == NULL)
        return 0;
    if (step->op == FG_EXPR_OFFSET) {
        int placed = adaptor->place != NULL ? adaptor->place(adaptor, v, &place) : 0;
        if (placed != 1)
            return placed < 0 ? -1 : 0;
        *out = whole(place.first);
        return 1;
    }
    int read = adaptor->read(adaptor, v, &meta, NULL);
    if (read != 1 || (has_dim(step->op) && step->dim >= meta.ndim))
        return read < 0 ? -1 : 0;
    *out = whole(step->op == FG_EXPR_NDIM ? meta.ndim : step->op == FG_EXPR_SIZE ? meta.sizes[step->dim] : meta.strides[step->dim]);
    return 1;
}

static int operand(const fg_expr_step *step, PyObject *const *values, const fg_node *ids, const fg_tensor_adaptor *const *adaptors,
                   number *out)
{
    PyObject *v = values[ids[step->node]];
    if (step->op == FG_EXPR_VALUE)
        return operand_value(v, out);
    if (step->op == FG_EXPR_LEN)
        return operand_length(v, out);
    return operand_tensor(step, v, adaptors[step->node], out);
}

int fg_expr_holds(const fg_expr *expr, PyObject *const *values, const fg_node *ids, const fg_tensor_adaptor *const *adaptors)
{
    number stack[FG_EXPR_DEPTH];
    number *top = stack; /* the parser has seen that it neither runs over nor under */

    for (uint32_t i = 0; i < expr->n; i++) {
        const fg_expr_step *step = &expr->steps[i];
        int ok = 1;
        switch (rows[step->op].takes) {
        case 1: ok = apply_one(step->op, top[-1], &top[-1]); break;
        case 2:
            top--;
            ok = apply_two(step->op, top[-1], top[0], &top[-1]);
            break;
        default:
            if (step->op == FG_EXPR_INT)
                *top = whole(step->value.number);
            else if (step->op == FG_EXPR_FLOAT)
                *top = real(step->value.real);
            else
                ok = operand(step, values, ids, adaptors, top);
            top++;
            break;
        }
        if (ok <= 0)
            return ok;
    }
    return truth(top[-1]);
}

/* ---- text ---- */

static int number_step(const char *word, size_t n, fg_expr_step *step)
{
    char text[64], *end;
    if (n >= sizeof text)
        return 0;
    memcpy(text, word, n);
    text[n] = '\0';
    errno = 0;
    if (strncmp(text, "float:0x", 8) == 0) {
        uint64_t bits = strtoull(text + 8, &end, 16);
        step->op = FG_EXPR_FLOAT;
        memcpy(&step->value.real, &bits, sizeof bits);
        return errno == 0 && *end == '\0' && n > 8 && text[8] != '-' && text[8] != '+';
    }
    const char *digits = text[0] == '-' ? text + 1 : text;
    if (*digits < '0' || *digits > '9')
        return 0;
    if (strspn(digits, "0123456789") == strlen(digits)) {
        step->op = FG_EXPR_INT;
        step->value.number = strtoll(text, &end, 10);
        return errno == 0;
    }
    if (strspn(digits, "0123456789.e+-") != strlen(digits))
        return 0;
    step->op = FG_EXPR_FLOAT;
    step->value.real = PyOS_string_to_double(text, &end, NULL);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return *end == '\0' && isfinite(step->value.real);
}

static const char *digits_read(const char *at, const char *end, uint32_t limit, uint32_t *out)
{
    uint64_t value = 0;
    const char *start = at;
    while (at < end && *at >= '0' && *at <= '9' && value < limit)
        value = value * 10 + (uint64_t)(*at++ - '0');
    *out = (uint32_t)value;
    return at > start && value < limit ? at : NULL;
}

static int operand_step(const char *word, size_t n, size_t n_nodes, fg_expr_step *step)
{
    for (unsigned op = FG_EXPR_VALUE; is_operand(op); op++) {
        size_t length = strlen(rows[op].text);
        uint32_t node, dim = 0;
        if (n <= length || strncmp(word, rows[op].text, length) != 0)
            continue;
        const char *end = word + n, *at = digits_read(word + length, end, (uint32_t)n_nodes, &node);
        if (at == NULL)
            continue;
        if (has_dim(op) && (at == end || *at != '.' || (at = digits_read(at + 1, end, FG_TENSOR_MAX_DIM, &dim)) == NULL))
            return 0;
        *step = (fg_expr_step){.op = (uint16_t)op, .dim = (uint16_t)dim, .node = node};
        return at == end;
    }
    return 0;
}

static int operation_step(const char *word, size_t n, fg_expr_step *step)
{
    for (unsigned op = FG_EXPR_ADD; op < FG_N_EXPR_OPS; op++) {
        if (strlen(rows[op].text) == n && memcmp(rows[op].text, word, n) == 0) {
            step->op = (uint16_t)op;
            return 1;
        }
    }
    return 0;
}

fg_status fg_expr_parse(const char *text, size_t n, fg_expr **out, const char **problem)
{
    fg_status st = FG_ERR_INVALID;
    uint32_t depth = 0;
    size_t room = strlen(text) / 2 + 2;
    fg_expr *expr = n <= UINT32_MAX ? fg_calloc(1, sizeof *expr + room * sizeof expr->steps[0]) : NULL;

    if (expr == NULL)
        return FG_ERR_NOMEM;
    for (const char *at = text + strspn(text, " "); *at != '\0'; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        fg_expr_step *step = &expr->steps[expr->n];
        if (expr->n >= FG_EXPR_STEPS) {
            *problem = "an expression has too many steps";
            goto fail;
        }
        if (!operation_step(at, length, step) && !operand_step(at, length, n, step) && !number_step(at, length, step)) {
            *problem = "an expression has a step that is not understood";
            goto fail;
        }
        uint32_t takes = (uint32_t)rows[step->op].takes;
        if (depth < takes || depth - takes + 1 > FG_EXPR_DEPTH) {
            *problem = depth < takes ? "an expression lacks an operand" : "an expression is too deep";
            goto fail;
        }
        depth = depth - takes + 1;
        expr->n++;
        at += length;
    }
    if (depth != 1) {
        *problem = "an expression leaves one value";
        goto fail;
    }
    *out = expr;
    return FG_OK;
fail:
    fg_free(expr);
    return st;
}

static PyObject *step_text(const fg_expr_step *step, PyObject *names)
{
    if (step->op == FG_EXPR_INT)
        return PyUnicode_FromFormat("%lld", (long long)step->value.number);
    if (step->op == FG_EXPR_FLOAT) {
        PyObject *value = PyFloat_FromDouble(step->value.real), *text = value != NULL ? fg_object_text(value) : NULL;
        Py_XDECREF(value);
        return text;
    }
    if (!is_operand(step->op))
        return PyUnicode_FromString(rows[step->op].text);
    if (names == NULL)
        return has_dim(step->op) ? PyUnicode_FromFormat("%s%u.%u", rows[step->op].text, step->node, (unsigned)step->dim)
                                 : PyUnicode_FromFormat("%s%u", rows[step->op].text, step->node);
    PyObject *name = PyList_GET_ITEM(names, step->node);
    switch (step->op) {
    case FG_EXPR_VALUE: return Py_NewRef(name);
    case FG_EXPR_LEN: return PyUnicode_FromFormat("len(%U)", name);
    case FG_EXPR_NDIM: return PyUnicode_FromFormat("%U.ndim", name);
    case FG_EXPR_SIZE: return PyUnicode_FromFormat("%U.shape[%u]", name, (unsigned)step->dim);
    case FG_EXPR_STRIDE: return PyUnicode_FromFormat("<stride %u of %U>", (unsigned)step->dim, name);
    default: return PyUnicode_FromFormat("<offset of %U>", name);
    }
}

PyObject *fg_expr_text(const fg_expr *expr)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && i < expr->n; i++) {
        if (fg_text_take(list, step_text(&expr->steps[i], NULL)) < 0)
            Py_CLEAR(list);
    }
    return fg_text_join(list, " ");
}

/* The text of an operation on the last texts of the stack, which it takes. */
static PyObject *infix(const fg_expr_step *step, PyObject *stack)
{
    const char *text = rows[step->op].text;
    Py_ssize_t n = PyList_GET_SIZE(stack), takes = rows[step->op].takes;
    PyObject *a = PyList_GET_ITEM(stack, n - takes), *b = PyList_GET_ITEM(stack, n - 1), *made;
    if (step->op == FG_EXPR_ABS)
        made = PyUnicode_FromFormat("abs(%U)", a);
    else if (step->op == FG_EXPR_MIN || step->op == FG_EXPR_MAX)
        made = PyUnicode_FromFormat("%s(%U, %U)", text, a, b);
    else if (takes == 1)
        made = PyUnicode_FromFormat("(%s%U)", step->op == FG_EXPR_NEG ? "-" : "not ", a);
    else
        made = PyUnicode_FromFormat("(%U %s %U)", a, text, b);
    if (made != NULL && PyList_SetSlice(stack, n - takes, n, NULL) < 0)
        Py_CLEAR(made);
    return made;
}

#define SENTENCE_STEPS 200 /* longer ones are shown as they are written */

PyObject *fg_expr_sentence(const fg_expr *expr, PyObject *names)
{
    if (expr->n > SENTENCE_STEPS)
        return fg_expr_text(expr);
    PyObject *stack = PyList_New(0), *text = NULL;
    for (uint32_t i = 0; stack != NULL && i < expr->n; i++) {
        const fg_expr_step *step = &expr->steps[i];
        if (fg_text_take(stack, rows[step->op].takes > 0 ? infix(step, stack) : step_text(step, names)) < 0)
            Py_CLEAR(stack);
    }
    if (stack != NULL)
        text = Py_NewRef(PyList_GET_ITEM(stack, 0));
    Py_XDECREF(stack);
    return text;
}

PyObject *fg_expr_seen(const fg_expr *expr, PyObject *const *values, const fg_node *ids, const fg_tensor_adaptor *const *adaptors)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && i < expr->n && PyList_GET_SIZE(list) < 8; i++) {
        const fg_expr_step *step = &expr->steps[i];
        number value;
        if (!is_operand(step->op))
            continue;
        fg_expr_step constant = {.op = FG_EXPR_INT};
        PyObject *text = NULL;
        int got = operand(step, values, ids, adaptors, &value);
        if (got < 0) {
            Py_CLEAR(list);
            break;
        }
        if (got) {
            constant.op = value.is_float ? FG_EXPR_FLOAT : FG_EXPR_INT;
            if (value.is_float)
                constant.value.real = value.f;
            else
                constant.value.number = value.i;
            text = step_text(&constant, NULL);
        } else {
            text = fg_value_brief(values[ids[step->node]]);
        }
        if (fg_text_take(list, text) < 0)
            Py_CLEAR(list);
    }
    PyObject *joined = fg_text_join(list, ", ");
    PyObject *text = joined != NULL ? PyUnicode_FromFormat("values %U", joined) : NULL;
    Py_XDECREF(joined);
    return text;
}
