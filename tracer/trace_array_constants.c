/* Numbers of the program that meet arrays, kept as arrays: `x + 1` without the conversion of 1 at each call.
 *
 * NumPy turns a Python number into an array of no dimensions, of the dtype that the other operand has, each time: about half of what a small addition takes.
 * Where the guards say that dtype, and the number is one of its values, an array of the entry's own gives the same: the same loop, the same result, the
 * same warnings, since the other operand has a dimension and so is no NumPy scalar, which words its warnings otherwise. Only exact ints and floats, only
 * exact ndarrays in native byte order, only elementwise operations that look at nothing but dtypes (not `**`, which has a way of its own for some
 * numbers, and not `number += array`, which would write the array). The array cannot be written, and no such operation gives an operand away. It is an
 * input of the target and no constant of its code, for code objects must be hashable.
 */
#include "tracer/trace.h"

#include "guards/adaptor_numpy.h"
#include <numpy/ufuncobject.h>
#include <opcode.h>
#include <string.h>

/* What is known of a register: the dtype of an ndarray of one dimension or more. */
enum { UNKNOWN = -1 };

static bool is_integer_dtype(int dtype)
{
    return dtype >= NPY_BYTE && dtype <= NPY_ULONGLONG;
}

/* --- what dtype comes out */

static int dtype_of_example(PyObject *example)
{
    fg_tensor_meta meta;
    if (example == NULL || !fg_numpy_read(example, &meta) || meta.ndim < 1 || (meta.keys & (FG_NUMPY_SWAPPED | FG_NUMPY_TAGGED)))
        return UNKNOWN;
    return is_integer_dtype(meta.dtype) || meta.dtype == NPY_FLOAT || meta.dtype == NPY_DOUBLE ? meta.dtype : UNKNOWN;
}

/* Of a binary operator between an array of this dtype and another one of it, or a number that is a value of it. */
static int dtype_of_binary(int op, int dtype)
{
    switch (op % FG_OP_INPLACE) {
    case NB_ADD:
    case NB_SUBTRACT:
    case NB_MULTIPLY:
    case NB_FLOOR_DIVIDE:
    case NB_REMAINDER: return dtype;
    case NB_TRUE_DIVIDE: return is_integer_dtype(dtype) ? UNKNOWN : dtype;
    case NB_AND:
    case NB_OR:
    case NB_XOR:
    case NB_LSHIFT:
    case NB_RSHIFT: return is_integer_dtype(dtype) ? dtype : UNKNOWN;
    default: return UNKNOWN;
    }
}

static bool is_elementwise_binary(int op)
{
    int plain = op % FG_OP_INPLACE;
    return plain != NB_MATRIX_MULTIPLY && plain != NB_POWER;
}

/* `number += array` makes a new array; an array of no dimensions would be written. */
static bool is_into_number(const fg_step *s, const int8_t *dtypes)
{
    return s->arg >= FG_OP_INPLACE && dtypes[s->args[0]] == UNKNOWN;
}

static PyObject *const_of(const fg_ir *ir, fg_reg reg)
{
    return ir->regs[reg].kind == FG_REG_CONST ? ir->regs[reg].object : NULL;
}

/* The ufunc that a step calls with this many arguments and nothing else. */
static PyObject *ufunc_of(const fg_ir *ir, const fg_step *s, int32_t n_args)
{
    if (s->op != FG_STEP_CALL || s->n_args != n_args + 1 || s->row == NULL || (s->kwnames != NULL && PyTuple_GET_SIZE(s->kwnames) > 0))
        return NULL;
    PyObject *callee = const_of(ir, s->args[0]);
    return callee != NULL && strcmp(Py_TYPE(callee)->tp_name, "numpy.ufunc") == 0 ? callee : NULL;
}

/* Whether the ufunc has a loop from operands of this dtype alone; *out: the dtype that it gives, or UNKNOWN. */
static bool has_loop(PyObject *callable, int n_in, int dtype, int *out)
{
    const PyUFuncObject *ufunc = (const PyUFuncObject *)callable;
    if (ufunc->nin != n_in || ufunc->nout != 1 || ufunc->core_enabled) /* what works on whole dimensions may give a NumPy scalar */
        return false;
    for (int i = 0; i < ufunc->ntypes; i++) {
        const char *loop = &ufunc->types[(ptrdiff_t)i * (n_in + 1)];
        if (loop[0] == dtype && loop[n_in - 1] == dtype) {
            *out = loop[n_in] == dtype ? dtype : UNKNOWN;
            return true;
        }
    }
    return false;
}

/* --- constants */

static bool integer_value(PyObject *number, int dtype, int64_t *value)
{
    int overflow = 0;
    long long v = PyLong_AsLongLongAndOverflow(number, &overflow);
    int bits = 8 * (int)PyDataType_ELSIZE(fg_numpy_descrs[dtype]);
    bool is_unsigned = PyTypeNum_ISUNSIGNED(dtype);
    int used = is_unsigned ? bits : bits - 1;
    *value = v;
    if (overflow != 0 || (is_unsigned && v < 0))
        return false;
    return used >= 63 || (v >> used) == (v < 0 ? -1 : 0);
}

static bool float_value(PyObject *number, int dtype, double *value)
{
    if (PyFloat_CheckExact(number)) {
        *value = PyFloat_AS_DOUBLE(number);
    } else {
        int overflow = 0;
        long long v = PyLong_AsLongLongAndOverflow(number, &overflow);
        if (overflow != 0 || v > (1LL << 53) || v < -(1LL << 53))
            return false;
        *value = (double)v;
    }
    if (*value != *value)
        return false; /* a NaN has bits of its own */
    return dtype == NPY_DOUBLE || (*value <= 3.4028234663852886e38 && *value >= -3.4028234663852886e38 && (double)(float)*value == *value);
}

enum { MAX_NUMBERS = 64 };

typedef struct fg_numbers {
    fg_trace *t;
    int8_t *dtypes; /* per register of the trace */
    struct {
        PyObject *number;
        int dtype;
        fg_reg reg;
    } made[MAX_NUMBERS];
    int32_t n_made;
} fg_numbers;

/* A read-only array of no dimensions with this number; *out stays NULL where the dtype has no such value. */
static fg_flow array_of(PyObject *number, int dtype, PyObject **out)
{
    int64_t whole = 0;
    double real = 0;
    bool is_integer = is_integer_dtype(dtype);
    if (is_integer ? !PyLong_CheckExact(number) || !integer_value(number, dtype, &whole) : !float_value(number, dtype, &real))
        return FG_FLOW_OK;
    float narrow = (float)real;
    const void *value = is_integer ? (const void *)&whole : dtype == NPY_DOUBLE ? (const void *)&real : (const void *)&narrow;
    PyArrayObject *array = (PyArrayObject *)PyArray_SimpleNew(0, NULL, dtype);
    if (array == NULL)
        return FG_FLOW_ERROR;
    memcpy(PyArray_DATA(array), value, (size_t)PyArray_ITEMSIZE(array));
    PyArray_CLEARFLAGS(array, NPY_ARRAY_WRITEABLE);
    *out = (PyObject *)array;
    return FG_FLOW_OK;
}
_Static_assert(PY_LITTLE_ENDIAN, "the low bytes of an integer come first");

/* The input that holds a number as an array; FG_REG_NONE where there is no such array. */
static fg_flow input_of(fg_numbers *c, PyObject *number, int dtype, fg_reg *out)
{
    fg_trace *t = c->t;
    PyObject *array = NULL;
    fg_node node;
    uint32_t position;
    for (int32_t i = 0; i < c->n_made; i++)
        if (c->made[i].number == number && c->made[i].dtype == dtype) {
            *out = c->made[i].reg;
            return FG_FLOW_OK;
        }
    *out = FG_REG_NONE;
    if (c->n_made < MAX_NUMBERS)
        FG_DO(array_of(number, dtype, &array));
    if (array == NULL)
        return FG_FLOW_OK;
    if (fg_own(t, array) == NULL)
        return FG_FLOW_ERROR;
    if (fg_desc_own(t->desc, array, &node) != FG_OK || fg_desc_output(t->desc, node, &position) != FG_OK ||
        (*out = fg_ir_reg_add(&t->ir, FG_REG_INPUT, array)) == FG_REG_NONE)
        return fg_nomem();
    t->ir.regs[*out].index = (int32_t)position;
    c->made[c->n_made].number = number;
    c->made[c->n_made].dtype = dtype;
    c->made[c->n_made++].reg = *out;
    return FG_FLOW_OK;
}

/* --- the pass */

/* A step with two operands: both arrays of one dtype, or one such array and a number, which then becomes one. *dtype: UNKNOWN for anything else. */
static fg_flow match_pair(fg_numbers *c, fg_reg *a, fg_reg *b, int *dtype)
{
    int of_a = c->dtypes[*a], of_b = c->dtypes[*b];
    *dtype = UNKNOWN;
    if (of_a != UNKNOWN && of_b != UNKNOWN) {
        *dtype = of_a == of_b ? of_a : UNKNOWN;
        return FG_FLOW_OK;
    }
    int of_array = of_a != UNKNOWN ? of_a : of_b;
    fg_reg *number = of_a != UNKNOWN ? b : a, array;
    PyObject *value = const_of(&c->t->ir, *number);
    if (of_array == UNKNOWN || value == NULL || !(PyLong_CheckExact(value) || PyFloat_CheckExact(value)))
        return FG_FLOW_OK;
    FG_DO(input_of(c, value, of_array, &array));
    if (array != FG_REG_NONE) {
        *number = array;
        *dtype = of_array;
    }
    return FG_FLOW_OK;
}

static fg_flow visit(fg_numbers *c, fg_step *s)
{
    int8_t *dtypes = c->dtypes;
    int result = UNKNOWN, both = UNKNOWN;
    PyObject *ufunc;
    if (s->op == FG_STEP_BINARY && is_elementwise_binary(s->arg) && !is_into_number(s, dtypes)) {
        FG_DO(match_pair(c, &s->args[0], &s->args[1], &both));
        if (both != UNKNOWN)
            result = dtype_of_binary(s->arg, both);
    } else if (s->op == FG_STEP_UNARY && s->arg != FG_OP_UNARY_NOT) {
        result = dtypes[s->args[0]];
    } else if (s->op == FG_STEP_COMPARE && dtypes[s->args[0]] != UNKNOWN) {
        FG_DO(match_pair(c, &s->args[0], &s->args[1], &both));
    } else if ((ufunc = ufunc_of(&c->t->ir, s, 1)) != NULL) {
        if (dtypes[s->args[1]] != UNKNOWN)
            (void)has_loop(ufunc, 1, dtypes[s->args[1]], &result);
    } else if ((ufunc = ufunc_of(&c->t->ir, s, 2)) != NULL) {
        int of = dtypes[s->args[1]] != UNKNOWN ? dtypes[s->args[1]] : dtypes[s->args[2]];
        if (of != UNKNOWN && has_loop(ufunc, 2, of, &result))
            FG_DO(match_pair(c, &s->args[1], &s->args[2], &both));
        if (both == UNKNOWN)
            result = UNKNOWN;
    }
    if (s->n_results == 1)
        dtypes[s->result] = (int8_t)result;
    return FG_FLOW_OK;
}

fg_flow fg_array_constants(fg_trace *t)
{
    fg_numbers c = {.t = t};
    bool any = false;
    int32_t n = t->ir.n_regs, n_steps = t->ir.n_steps;
    c.dtypes = fg_arena_alloc(&t->arena, (size_t)n + 1);
    if (c.dtypes == NULL)
        return fg_nomem();
    for (int32_t i = 0; i < n; i++) {
        const fg_ir_reg *r = &t->ir.regs[i];
        c.dtypes[i] = (int8_t)(r->kind == FG_REG_INPUT && r->is_tensor ? dtype_of_example(r->object) : UNKNOWN);
        any |= c.dtypes[i] != UNKNOWN;
    }
    for (int32_t i = 0; any && i < n_steps; i++)
        FG_DO(visit(&c, &t->ir.steps[i]));
    return FG_FLOW_OK;
}
