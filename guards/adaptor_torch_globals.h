/* Purpose:   switches of torch that the operations themselves ask each time they run, but that a compiler of graphs may have built into its code.
 * Model:     one word of bits and the number of threads. Each is one call of a getter of torch's that reads a field; the list with the reason why it
 *            cannot throw is in adaptor_torch_globals.c. Only entries of such compilers have the condition.
 * Invariants: hooks for saved tensors make the state unreadable: they are the user's code.
 * Threading: the GIL is held; the number of threads, the autocast cache and the hooks belong to the thread.
 * Ownership: nothing is owned.
 */
#ifndef FG_GUARDS_ADAPTOR_TORCH_GLOBALS_H
#define FG_GUARDS_ADAPTOR_TORCH_GLOBALS_H

#include "runtime/base/status.h"
#include <Python.h>
#include <stdint.h>

typedef struct fg_torch_globals {
    int64_t bits;    /* 0: torch is not loaded */
    int64_t threads; /* of operations */
} fg_torch_globals;

/* 1 read, 0 not readable here. */
int fg_torch_globals_read(fg_torch_globals *globals);
/* The first difference of two such words, for an explanation. */
FG_NEW PyObject *fg_torch_globals_difference(int64_t seen, int64_t want);

/* The set-up's part; on the private thread. FG_ERR_UNSUPPORTED: not readable in this torch. */
fg_status fg_torch_globals_find(void);

#endif
