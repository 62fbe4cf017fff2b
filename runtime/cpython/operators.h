/* Purpose:   the functions behind BINARY_OP.
 * Model:     a table by the instruction's argument (NB_ADD …); the numbers are the same on every CPython.
 * Threading: the GIL is held; an operator may run anything.
 */
#ifndef FG_CPYTHON_OPERATORS_H
#define FG_CPYTHON_OPERATORS_H

#include <Python.h>

extern __attribute__((visibility("hidden"))) const binaryfunc fg_binary_operators[];

#endif
