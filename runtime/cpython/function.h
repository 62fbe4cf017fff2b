/* Purpose:   functions of Python whose calls do something else than evaluate their code.
 * Model:     since 3.12 an extension may give a function another vectorcall (PyFunction_SetVectorcall), which every way to call it then takes, at
 *            any time. Guards therefore ask with each read of a function's code, gates with each call.
 * Threading: the GIL is held.
 * Ownership: none.
 */
#ifndef FG_CPYTHON_FUNCTION_H
#define FG_CPYTHON_FUNCTION_H

#include "runtime/base/status.h"
#include <Python.h>

#if PY_VERSION_HEX >> 16 > 0x030b
extern __attribute__((visibility("hidden")))
vectorcallfunc fg_function_ordinary; /* NULL before fg_function_init, which each layer that asks calls */
int fg_function_init(void);          /* 0, or -1 with an exception */

/* 1 if a call evaluates func_code. */
static inline int fg_function_runs_its_code(const PyFunctionObject *func)
{
    return func->vectorcall == fg_function_ordinary;
}

/* The word that says so. */
static inline const void *fg_function_way(const PyFunctionObject *func)
{
    return &func->vectorcall;
}
#else
static inline int fg_function_init(void)
{
    return 0;
}

static inline int fg_function_runs_its_code(const PyFunctionObject *func)
{
    (void)func;
    return 1;
}

static inline const void *fg_function_way(const PyFunctionObject *func)
{
    (void)func;
    return NULL;
}
#endif

#endif
