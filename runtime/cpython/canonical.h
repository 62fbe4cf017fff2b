/* Purpose:   canonical instructions: one form of bytecode for every CPython version.
 * Model:     a decoder turns a code object into an array of fg_instr; an assembler turns such an array back into a code object of the running
 *            version. Jump targets are instruction indices. Both live in the version's folder (v311, …).
 * Invariants: decode then assemble gives the same instruction list, constants, lines, columns and exception ranges. Unreachable instructions
 *            are dropped by the decoder.
 * Threading: the GIL is held. A decoded code is immutable.
 * Ownership: fg_icode holds a strong reference to its code object; the objects in instructions are borrowed from it.
 */
#ifndef FG_CPYTHON_CANONICAL_H
#define FG_CPYTHON_CANONICAL_H

#include "runtime/base/status.h"
#include <Python.h>
#include <stdint.h>

typedef enum fg_cop {
#define FG_COP(NAME, RAISES) FG_OP_##NAME,
#include "runtime/cpython/canonical_ops.def"
#undef FG_COP
    FG_N_COPS
} fg_cop;

/* The arg of BINARY_OP, the same in every version: the operators, then their in-place forms in the same order. */
enum { FG_OP_INPLACE = 13, FG_OP_INPLACE_MATMUL = 17 };

/* The arg of LOAD_COMMON. */
enum {
    FG_COMMON_ASSERTION_ERROR,
    FG_COMMON_NOT_IMPLEMENTED_ERROR,
    FG_COMMON_TUPLE,
    FG_COMMON_ALL,
    FG_COMMON_ANY,
    FG_COMMON_LIST,
    FG_COMMON_SET
};

enum {
    FG_IF_CHECK = 1,   /* LOAD_FAST: the slot is not proven bound */
    FG_IF_CLOSURE = 2, /* LOAD_FAST: was LOAD_CLOSURE, pushes the cell itself */
    FG_IF_QUIET = 4,   /* JUMP: no eval-breaker check */
    FG_IF_FORWARD = 8, /* JUMP: was a forward jump */
    FG_IF_EXACT = 16,  /* branch or NOT: the operand is an exact bool, there was no TO_BOOL (3.13+) */
    FG_IF_ITER = 32,   /* POP_TOP: was POP_ITER */
    FG_IF_OR_POP = 64, /* the COPY of a 3.11 JUMP_IF_x_OR_POP, so that the assembler can put it together again */
    FG_IF_FUSED = 128, /* was one instruction with the one before it: RETURN_VALUE with LOAD_CONST, loads and stores of variables (3.13+) */
    FG_IF_PLAIN = 1    /* CALL, CALL_KW: callee and first argument stood in the callee's two slots (3.11 to 3.13), no NULL */
};

typedef struct fg_instr {
    uint8_t op; /* fg_cop */
    uint8_t flags;
    int32_t arg;                          /* slot, count, NB_ number, …; for constants and names unused */
    int32_t target;                       /* instruction index of the jump, -1: none */
    int32_t handler;                      /* index into handlers, -1: none */
    int32_t depth;                        /* canonical stack depth before the instruction; the assembler does not need it */
    int32_t line, end_line, col, end_col; /* -1 where unknown */
    int32_t offset;                       /* byte offset in the original co_code, -1: none */
    PyObject *obj;                        /* constant (LOAD_CONST), name (str) or NULL */
} fg_instr;

typedef struct fg_handler {
    int32_t target; /* instruction index */
    int32_t depth;  /* canonical values kept below what the handler gets */
    int32_t lasti;  /* 1: the offset of the raising instruction is pushed before the exception */
} fg_handler;

typedef struct fg_icode {
    FG_OWNED PyCodeObject *code;
    fg_instr *instrs;
    int32_t n_instrs;
    fg_handler *handlers;
    int32_t n_handlers;
    int32_t max_depth;
} fg_icode;

/* Decode once; the same fg_icode is given again while it is cached with the code object. FG_ERR_UNSUPPORTED for opcodes that are never in
 * a code object's own bytes. The result is counted: release it with fg_icode_release. */
fg_status fg_decode(PyCodeObject *code, fg_icode **out);
void fg_icode_retain(fg_icode *icode);
void fg_icode_release(fg_icode *icode);

/* Keyword names with their call, and the arguments that super() finds by itself with its call, are one instruction of the interpreter: first and last
 * canonical instruction of the group that i belongs to (i itself, if it stands alone). Control goes only to the first. */
int32_t fg_icode_group_start(const fg_icode *icode, int32_t i);
int32_t fg_icode_group_end(const fg_icode *icode, int32_t i);

/* 1 if nobody observes what handler h gets: it restores the variables of a comprehension or turns a StopIteration that leaves a generator into an error,
 * and raises again. */
int fg_icode_handler_is_quiet(const fg_icode *icode, int32_t h);
/* The handler from this one (-1: none) on that does something with an exception, -1: none. What a handler is covered by itself only forgets the exception (and
 * the name of it) and goes on raising: it is passed over. *unbound, where asked: a slot that those before it empty. */
int32_t fg_icode_handler_pass(const fg_icode *icode, int32_t handler, int32_t *unbound);
/* The first of the instructions in a row on one line under one handler: where one of them raises is the same to everybody. */
int32_t fg_icode_raise_place(const fg_icode *icode, int32_t pc);
/* 1 if before instruction i the stack may hold what LOAD_FAST_AND_CLEAR has saved, which may be NULL. */
int fg_icode_has_saved(const fg_icode *icode, int32_t i);

/* 1 if it makes a cell where it keeps a variable of an outer function, whose name a variable of a comprehension has: what that variable is afterwards is
 * nobody's to say but the interpreter's. */
int fg_icode_remakes_cell(const fg_icode *icode);

/* The slot of the variable __class__ of an outer scope, -1: it has none. */
int32_t fg_icode_class_slot(const fg_icode *icode);
/* Does the call without arguments, or with unpacked ones, at i call `super`, which then looks into the frame that calls it? By where the name is used in this code. */
typedef enum fg_super_use { FG_SUPER_NOT, FG_SUPER_PERHAPS, FG_SUPER_SURELY } fg_super_use;
fg_super_use fg_icode_super_at(const fg_icode *icode, int32_t i);
/* 1 if `super` may be called with unpacked arguments. */
int fg_icode_unpacks_for_super(const fg_icode *icode);

/* What the assembler needs. Objects are borrowed for the call. Instruction objs are constants and names; the assembler makes the tables
 * (constants are told apart by exact type and bits, and by identity for all that is not an exact builtin scalar or tuple of such). */
typedef struct fg_asm {
    const fg_instr *instrs;
    int32_t n_instrs;
    const fg_handler *handlers;
    int32_t n_handlers;
    PyCodeObject *base;        /* replaced from: filename, flags not in `flags` … */
    PyObject *name, *qualname; /* NULL: the base's */
    PyObject *varnames, *cellvars,
        *freevars; /* tuples of str; localsplus order is varnames, then cells that are no arguments, then frees */
    int32_t argcount, posonlyargcount, kwonlyargcount;
    int32_t flags; /* all of co_flags */
    int32_t firstlineno;
    PyObject *first_const; /* co_consts[0]: docstring or None; NULL: none is forced */
} fg_asm;
fg_status fg_assemble(const fg_asm *input, FG_NEW PyCodeObject **out);
/* What was wrong with the last input that this thread's fg_assemble or fg_decode refused; never NULL, static text. */
const char *fg_canonical_why(void);

/* Check a generated code object: jumps land on instructions, stack never underflows, agrees at joins and handlers, fits co_stacksize. Gives
 * FG_OK or FG_ERR_BUG with a message in *why (static or thread-local). Debug builds call it on every code object made. */
fg_status fg_verify_code(PyCodeObject *code, const char **why);

/* Canonical stack effect of one instruction on the path that falls through (jump = 0) or jumps (jump = 1). */
int fg_instr_effect(const fg_instr *instr, int jump);

/* Name of a canonical op, never NULL. */
const char *fg_cop_name(int op);
/* 0 cannot raise, 1 may raise, 2 may run Python. */
int fg_cop_raises(int op);

#endif
