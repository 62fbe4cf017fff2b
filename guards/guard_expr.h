/* Purpose:   conditions that compute: arithmetic and comparisons over ints, floats, lengths and the metadata of tensors.
 * Model:     a stack code. Its text form is the operations in postfix order, one blank between two:
 *                operands    12  -3  0.5  float:0x…      constants
 *                            v0 v1 …                     the value of the k-th source: an exact int, bool or float
 *                            len0                        its length, as the kind `length` has it
 *                            ndim0 size0.1 stride0.1     of a tensor; strides as its library counts them
 *                            offset0                     bytes from the beginning of a tensor's storage (NumPy: of memory) to its first element
 *                operations  + - * // % neg abs min max == != < <= > >= and or not
 *            "v0 8 % 0 ==" says that the first source is divisible by 8.
 * Invariants: what it computes is what Python computes with the same ints and floats. A step that leaves 64 bits, divides by zero, asks a
 *            value or a dimension that is not there, or does // or % with a float makes the whole condition fail. All operands of
 *            `and` and `or` are computed. Nothing here runs Python, but for adaptors of tensors that are not pure.
 * Threading: the GIL is held.
 * Ownership: an expression is one block.
 */
#ifndef FG_GUARD_EXPR_H
#define FG_GUARD_EXPR_H

#include "guards/guard_desc.h"
#include <string.h>

/* FG_EXPR_OP(name, text, operands it takes) */
#define FG_EXPR_OPS(X)   \
    X(ADD, "+", 2)       \
    X(SUB, "-", 2)       \
    X(MUL, "*", 2)       \
    X(FLOORDIV, "//", 2) \
    X(MOD, "%", 2)       \
    X(NEG, "neg", 1)     \
    X(ABS, "abs", 1)     \
    X(MIN, "min", 2)     \
    X(MAX, "max", 2)     \
    X(EQ, "==", 2)       \
    X(NE, "!=", 2)       \
    X(LT, "<", 2)        \
    X(LE, "<=", 2)       \
    X(GT, ">", 2)        \
    X(GE, ">=", 2)       \
    X(AND, "and", 2)     \
    X(OR, "or", 2)       \
    X(NOT, "not", 1)

/* Operands: FG_EXPR_OPERAND(name, text before the number of the source, 1 if it is of a tensor, 1 if a dimension follows) */
#define FG_EXPR_OPERANDS(X)   \
    X(VALUE, "v", 0, 0)       \
    X(LEN, "len", 0, 0)       \
    X(NDIM, "ndim", 1, 0)     \
    X(SIZE, "size", 1, 1)     \
    X(STRIDE, "stride", 1, 1) \
    X(OFFSET, "offset", 1, 0)

typedef enum fg_expr_op {
    FG_EXPR_INT,
    FG_EXPR_FLOAT,
#define X(NAME, TEXT, TENSOR, DIM) FG_EXPR_##NAME,
    FG_EXPR_OPERANDS(X)
#undef X
#define X(NAME, TEXT, N) FG_EXPR_##NAME,
        FG_EXPR_OPS(X)
#undef X
            FG_N_EXPR_OPS
} fg_expr_op;

typedef struct fg_expr_step {
    uint16_t op;   /* fg_expr_op */
    uint16_t dim;  /* SIZE, STRIDE */
    uint32_t node; /* operands: which source of the relation */
    union {
        int64_t number;
        double real;
    } value; /* INT, FLOAT; else 0 */
} fg_expr_step;

#define FG_EXPR_STEPS 4096
#define FG_EXPR_DEPTH 64
typedef struct fg_expr {
    uint32_t n;
    uint32_t unused; /* 0: expressions are compared as memory */
    fg_expr_step steps[];
} fg_expr;

static inline size_t fg_expr_nbytes(const fg_expr *expr)
{
    return sizeof *expr + expr->n * sizeof expr->steps[0];
}

static inline int fg_expr_same(const fg_expr *a, const fg_expr *b)
{
    return a->n == b->n && memcmp(a, b, fg_expr_nbytes(a)) == 0;
}

/* From text, over n sources. FG_ERR_INVALID with *problem, a static string. The block is fg_malloc's. */
fg_status fg_expr_parse(const char *text, size_t n, fg_expr **out, const char **problem);
FG_NEW PyObject *fg_expr_text(const fg_expr *expr);
/* As Python would write it; names: a list of the sources' texts. */
FG_NEW PyObject *fg_expr_sentence(const fg_expr *expr, FG_BORROWED PyObject *names);
/* What the operands are now, for an explanation. */
FG_NEW PyObject *fg_expr_seen(const fg_expr *expr, PyObject *const *values, const fg_node *ids, const fg_tensor_adaptor *const *adaptors);

/* 1 if the step reads a tensor. */
int fg_expr_is_tensor(const fg_expr_step *step);
/* 1 if the expression is true of the values: values[ids[k]] is the k-th source. 0 not; -1: what an impure adaptor raised. */
int fg_expr_holds(const fg_expr *expr, PyObject *const *values, const fg_node *ids, const fg_tensor_adaptor *const *adaptors);

#endif
