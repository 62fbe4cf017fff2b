/* Purpose:   functions of Python whose calls do something else than evaluate their code.
 * Model:     since 3.12 an extension may give a function another vectorcall (PyFunction_SetVectorcall), which every way to call it then takes.
 * Threading: the GIL is held.
 * Ownership: none.
 */
#ifndef FG_CPYTHON_FUNCTION_H
#define FG_CPYTHON_FUNCTION_H

#include "runtime/base/status.h"
#include <Python.h>

/* 1 if a call evaluates func_code. Keeps a pending exception, sets none. */
int fg_function_runs_its_code(const PyFunctionObject *func);

#endif
