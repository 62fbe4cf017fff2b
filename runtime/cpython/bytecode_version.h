/* Purpose:   which version's opcodes the bytecode files are compiled for, and the few facts about them that are not in a table.
 * Model:     one folder per CPython version has its generated opcode table (vXYZ_opcodes.def), what its opcodes do to the stack (vXYZ_effects.c),
 *            and how those that are not one to one become canonical instructions and come of them (vXYZ_decode.c, vXYZ_lower.c). What versions
 *            have in common is in until…/, since…/ and from…to…/; all else about bytecode is in bytecode_*.c, for every version.
 * Threading: none. Ownership: none.
 */
#ifndef FG_CPYTHON_BYTECODE_VERSION_H
#define FG_CPYTHON_BYTECODE_VERSION_H

#include <Python.h>

#if PY_VERSION_HEX >> 16 == 0x030b
#define FG_VERSION_OPCODES "runtime/cpython/v311/v311_opcodes.def"
#define FG_VERSION_SAME "runtime/cpython/v311/v311_same.def"
enum {
    FG_EVERY_FAST_LOAD_RAISES = 1,    /* LOAD_FAST checks its slot; later versions have an instruction of its own that does */
    FG_SUPER_FINDS_ITS_ARGUMENTS = 1, /* super() without arguments is a call without any; later versions load them */
    FG_COMPREHENSIONS_ARE_INLINE = 0, /* LOAD_FAST_AND_CLEAR saves the variables of a comprehension that is part of its function */
    FG_SEND_IS_SHORT = 1,             /* generator.throw() reads the one byte argument of SEND */
    FG_NULL_FOLLOWS_CALLEE = 0,       /* the NULL of a callee without self is pushed after it; earlier versions push it before */
    FG_NAMES_ARE_ON_THE_STACK = 0,    /* keyword names are the last operand of their call; earlier versions keep them aside */
    FG_COMPARE_SHIFT = 0,             /* of the operator in the argument of COMPARE_OP */
    FG_RESUME_KINDS = 3,              /* mask of the kind in the argument of RESUME */
    FG_RESUME_OUTERMOST =
        0, /* bit of RESUME behind a YIELD_VALUE under one handler, the one that a generator has anyway; 0: there is none */
    FG_FUNCTION_ATTRIBUTES = 15, /* bits of SET_FUNCTION_ATTRIBUTE */
    FG_BINARY_OPS = 26,          /* arguments of BINARY_OP */
    FG_VALUES_MAY_BE_WIDE = 0,   /* some values take two slots of the stack until they are dropped: a context manager's exit */
    FG_ITERATORS_ARE_WIDE = 0    /* and an iterator */
};
#elif PY_VERSION_HEX >> 16 == 0x030c
#define FG_VERSION_OPCODES "runtime/cpython/v312/v312_opcodes.def"
#define FG_VERSION_SAME "runtime/cpython/v312/v312_same.def"
enum {
    FG_EVERY_FAST_LOAD_RAISES = 0,
    FG_SUPER_FINDS_ITS_ARGUMENTS = 0,
    FG_COMPREHENSIONS_ARE_INLINE = 1,
    FG_SEND_IS_SHORT = 0,
    FG_NULL_FOLLOWS_CALLEE = 0,
    FG_NAMES_ARE_ON_THE_STACK = 0,
    FG_COMPARE_SHIFT = 4,
    FG_RESUME_KINDS = 3,
    FG_RESUME_OUTERMOST = 0,
    FG_FUNCTION_ATTRIBUTES = 15,
    FG_BINARY_OPS = 26,
    FG_VALUES_MAY_BE_WIDE = 0,
    FG_ITERATORS_ARE_WIDE = 0
};
#elif PY_VERSION_HEX >> 16 == 0x030d
#define FG_VERSION_OPCODES "runtime/cpython/v313/v313_opcodes.def"
#define FG_VERSION_SAME "runtime/cpython/v313/v313_same.def"
enum {
    FG_EVERY_FAST_LOAD_RAISES = 0,
    FG_SUPER_FINDS_ITS_ARGUMENTS = 0,
    FG_COMPREHENSIONS_ARE_INLINE = 1,
    FG_SEND_IS_SHORT = 0,
    FG_NULL_FOLLOWS_CALLEE = 1,
    FG_NAMES_ARE_ON_THE_STACK = 1,
    FG_COMPARE_SHIFT = 5,
    FG_RESUME_KINDS = 3,
    FG_RESUME_OUTERMOST = 4,
    FG_FUNCTION_ATTRIBUTES = 15,
    FG_BINARY_OPS = 26,
    FG_VALUES_MAY_BE_WIDE = 0,
    FG_ITERATORS_ARE_WIDE = 0
};
#elif PY_VERSION_HEX >> 16 == 0x030e
#define FG_VERSION_OPCODES "runtime/cpython/v314/v314_opcodes.def"
#define FG_VERSION_SAME "runtime/cpython/v314/v314_same.def"
enum {
    FG_EVERY_FAST_LOAD_RAISES = 0,
    FG_SUPER_FINDS_ITS_ARGUMENTS = 0,
    FG_COMPREHENSIONS_ARE_INLINE = 1,
    FG_SEND_IS_SHORT = 0,
    FG_NULL_FOLLOWS_CALLEE = 1,
    FG_NAMES_ARE_ON_THE_STACK = 1,
    FG_COMPARE_SHIFT = 5,
    FG_RESUME_KINDS = 3,
    FG_RESUME_OUTERMOST = 4,
    FG_FUNCTION_ATTRIBUTES = 31,
    FG_BINARY_OPS = 27,
    FG_VALUES_MAY_BE_WIDE = 1,
    FG_ITERATORS_ARE_WIDE = 0
};
#elif PY_VERSION_HEX >> 16 == 0x030f
#define FG_VERSION_OPCODES "runtime/cpython/v315/v315_opcodes.def"
#define FG_VERSION_SAME "runtime/cpython/v315/v315_same.def"
enum {
    FG_EVERY_FAST_LOAD_RAISES = 0,
    FG_SUPER_FINDS_ITS_ARGUMENTS = 0,
    FG_COMPREHENSIONS_ARE_INLINE = 1,
    FG_SEND_IS_SHORT = 0,
    FG_NULL_FOLLOWS_CALLEE = 1,
    FG_NAMES_ARE_ON_THE_STACK = 1,
    FG_COMPARE_SHIFT = 5,
    FG_RESUME_KINDS = 7,
    FG_RESUME_OUTERMOST = 8,
    FG_FUNCTION_ATTRIBUTES = 31,
    FG_BINARY_OPS = 27,
    FG_VALUES_MAY_BE_WIDE = 1,
    FG_ITERATORS_ARE_WIDE = 1
};
#else
#error "framegate: this CPython has no folder in runtime/cpython; see docs/howto/support-a-new-cpython.md"
#endif

static inline int fg_function_attribute_is_known(uint32_t bit)
{
    return bit != 0 && (bit & (bit - 1)) == 0 && (bit & FG_FUNCTION_ATTRIBUTES) != 0;
}

#endif
