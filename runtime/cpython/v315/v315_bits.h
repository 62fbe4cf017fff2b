/* Purpose:   the bits of CPython 3.15's GET_ITER and LOAD_COMMON_CONSTANT, for decoder and lowering.
 * Model:     as the comments say.
 * Threading: none. Ownership: none.
 */
#ifndef FG_CPYTHON_V315_BITS_H
#define FG_CPYTHON_V315_BITS_H

enum { FG_GET_ITER_PLAIN = 0, FG_GET_ITER_DELEGATES = 3 /* keeps generators, checks coroutines */ };
enum { FG_COMMON_NONE = 7, FG_COMMON_EMPTY_STR, FG_COMMON_TRUE, FG_COMMON_FALSE, FG_COMMON_MINUS_ONE, FG_N_COMMON };

#endif
