/* Purpose:   which callables, methods and attributes are tensor operations, and what they promise: the declarative registry.
 * Model:     one row per callable object, or per (tensor type, method or attribute name). Rows are registered at import (NumPy) or at first sight of a
 *            library (torch) from declarative Python tables; users add rows at run time.
 * Invariants: a row lives as long as the process; its address identifies it.
 * Threading: the GIL is held.
 * Ownership: the registry holds the callables.
 */
#ifndef FG_TRACER_OPS_REGISTRY_H
#define FG_TRACER_OPS_REGISTRY_H

#include "runtime/base/status.h"
#include <Python.h>
#include <stdint.h>

typedef enum fg_op_raises { FG_RAISES_NEVER, FG_RAISES_METADATA, FG_RAISES_DATA } fg_op_raises;
typedef enum fg_op_result {
    FG_RESULT_TENSOR,  /* a tensor, or for NumPy a 0-d scalar */
    FG_RESULT_TENSORS, /* a tuple or list of tensors */
    FG_RESULT_SCALAR,  /* a Python scalar that depends on data (item, bool, tolist, equal) */
    FG_RESULT_META,    /* a Python value that metadata determines (shape, ndim, size(), dtype) */
    FG_RESULT_NONE,    /* None */
    FG_RESULT_SELF,    /* its first argument (in-place methods) */
    FG_RESULT_OTHER
} fg_op_result;

enum {
    FG_OPF_DATA_OUTPUT = 1,   /* the metadata of the output depends on data */
    FG_OPF_MUTATES_FIRST = 2, /* writes its first argument (self) */
    FG_OPF_OUT_KEYWORD = 4,   /* has an out= argument that it writes and returns */
    FG_OPF_VIEW = 8,          /* the result may share memory with an argument */
    FG_OPF_MAY_RETURN_ARG = 16,
    FG_OPF_SCALARS = 32,     /* Python scalar arguments are allowed as run-time values */
    FG_OPF_NEEDS_FRAME = 64, /* looks at the calling frame (warnings' stacklevel is fine and is not this) */
    FG_OPF_STATE =
        128, /* reads or writes hidden state (random generators): keeps its place in program order, never folded or run to infer */
    FG_OPF_CREATES = 256,      /* is an operation without any tensor argument too (zeros, arange) */
    FG_OPF_CHANGES_META = 512, /* may change the metadata of an argument in place (resize_, t_, set_): never captured */
    FG_OPF_ERRSTATE =
        1024, /* reads the library's floating-point error state: np.errstate or a warnings filter can turn data into an exception */
    FG_OPF_NEEDS_DATA =
        2048,           /* looks at the data of tensors among its arguments: it cannot run on tensors without data, which compilers use */
    FG_OPF_ORDER = 4096 /* metadata that tells how the elements lie in memory (strides), which a kernel may decide in its own way */
};

/* What one argument of an operation is for. The letters are the spelling in signature texts, see fg_op_signature_parse. */
typedef enum fg_op_role {
    FG_ROLE_UNKNOWN,  /* not in the signature: do not capture the call */
    FG_ROLE_OPERAND,  /* `a`       a tensor, or a sequence of tensors; a run-time Python scalar too if the row has FG_OPF_SCALARS */
    FG_ROLE_CONSTANT, /* `a:`      decides metadata or control flow: a constant or a value that a guard fixes, never a tensor */
    FG_ROLE_OUT,      /* `a>`      None, or a tensor (tuple of tensors) that is written and returned */
    FG_ROLE_WRITTEN,  /* `a!`      a tensor that may be written (None: not) */
    FG_ROLE_INPLACE,  /* `a?`      a constant; if true the first argument is written and returned */
    FG_ROLE_FIXED,    /* `a=value` absent or exactly this constant (None, True, False); do not capture the call with anything else */
    FG_ROLE_TEXT,     /* `a'`      a constant str (or None); do not capture the call with anything else (a callable, say) */
    FG_ROLE_REQUIRED, /* `a+`      an operand that must be given and not be None: without it the call is another operation */
    FG_ROLE_COUNT     /* `a#`      an operand; a plain int greater than 0 says what data says else, see fg_op_row.counted */
} fg_op_role;

typedef struct fg_op_param {
    FG_OWNED PyObject *name;  /* interned */
    FG_OWNED PyObject *value; /* FG_ROLE_FIXED: the one value; else NULL */
    uint8_t role;
} fg_op_param;

typedef struct fg_op_signature {
    uint16_t n_params;     /* positional ones first, then keyword-only ones */
    uint16_t n_positional; /* params[i] is position i for i < n_positional */
    uint16_t n_named_from; /* params before this one are positional-only */
    uint8_t rest;          /* role of positions from n_positional on; FG_ROLE_UNKNOWN: there are none */
    fg_op_param params[];
} fg_op_signature;

typedef struct fg_op_row {
    FG_OWNED PyObject *callable; /* NULL for methods and attributes */
    FG_OWNED PyObject *name;     /* dotted name for graphs and docs, "numpy.add", "ndarray.sum" */
    uint32_t flags;
    uint8_t raises; /* fg_op_raises */
    uint8_t result; /* fg_op_result */
    uint8_t is_attribute;
    const fg_op_signature *signature; /* shared by many rows; NULL (rows of users): every argument is an operand */
    const struct fg_op_row *counted;  /* the same without FG_OPF_DATA_OUTPUT, for calls that give a count; NULL: there are no such */
} fg_op_row;

/* NULL: not an operation. Never raises. The first question about an unknown callable or member after a library was imported registers that
 * library's rows (fg_op_register_late), which runs our own Python code; a pending exception is kept. */
const fg_op_row *fg_op_find(PyObject *callable);
/* Method or attribute of a tensor type (exact type, then its registered base, so Parameter finds Tensor's). */
const fg_op_row *fg_op_find_member(PyTypeObject *type, PyObject *name);

/* register_op(callable_or_None, type_or_None, name, flags, raises, result, is_attribute) of the extension module ends here. */
fg_status fg_op_register(PyObject *callable, PyTypeObject *type, PyObject *name, uint32_t flags, int raises, int result, int is_attribute);
/* The same with a signature text ("a axis: out> | keepdims:", NULL: none). A key that has a row gets the new one; the old row stays readable. */
fg_status fg_op_register_with(PyObject *callable, PyTypeObject *type, PyObject *name, uint32_t flags, int raises, int result,
                              int is_attribute, PyObject *signature);
/* One row for each name of the tuple `names` that `owner` (a module or a type) has; row names are prefix.name. Methods of a type get a second row
 * for their function or descriptor, as in ndarray.sum(x). *count grows by the names that were found. */
fg_status fg_op_register_many(PyObject *owner, PyObject *prefix, PyObject *names, uint32_t flags, int raises, int result, int is_attribute,
                              const fg_op_signature *signature, Py_ssize_t *count);
/* Rows for methods of objects that are operations themselves, with a signature without self: a fresh `np.add.reduce` is found by fg_op_find because
 * its self, numpy.add, has a row, its self's exact type is `type` and its name is one of these. */
fg_status fg_op_register_bound(PyTypeObject *type, PyObject *prefix, PyObject *names, uint32_t flags, int raises, int result,
                               const fg_op_signature *signature);
/* Call `callback` once sys.modules has `module`, until it returns true. */
fg_status fg_op_register_late(PyObject *module, PyObject *callback);
/* Members that `type` has no row for are looked up on `base`, which it must derive from. */
fg_status fg_op_register_base(PyTypeObject *type, PyTypeObject *base);
/* From now on not an operation. Does nothing for unknown keys. */
void fg_op_forget(PyObject *callable);

/* The role of the argument at `position`, or of the keyword `name` if it is not NULL. For a method, position 0 is self. Never raises. */
fg_op_role fg_op_role_get(const fg_op_row *row, Py_ssize_t position, PyObject *name);
/* The parameter itself, NULL where fg_op_role_get says unknown, or where there is no signature, or for positions in `rest`. */
const fg_op_param *fg_op_param_find(const fg_op_row *row, Py_ssize_t position, PyObject *name);

/* Calls visit for each live row in no order; stops and returns -1 when it returns less than 0, else the number of rows. No row may be added inside. */
Py_ssize_t fg_op_rows_visit(int (*visit)(const fg_op_row *row, void *context), void *context);

/* Signature texts: parameters separated by spaces, each a name and one of the marks above; `/` ends the positional-only ones, `|` begins the
 * keyword-only ones, `*name` (with a mark) stands for all further positions. The result lives as long as the process; equal texts share one. */
fg_status fg_op_signature_parse(PyObject *text, const fg_op_signature **signature);

/* Adds register_op, register_ops, register_bound_ops, register_late_ops, register_op_base, forget_op, op_info, member_info, op_table and the
 * constants OPF_..., RAISES_..., RESULT_... */
fg_status fg_ops_module_init(PyObject *module);

#endif
