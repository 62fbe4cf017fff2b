/* Purpose:   decoded code objects, kept with the code object they were made from.
 * Model:     a slot in the code object's extra space holds its fg_icode without counting it. Holders count; while there is at least one the
 *            fg_icode also holds its code object, so that the objects it borrows stay. The last holder lets the code object go; its death
 *            frees the fg_icode. Where no slot is to be had the last holder frees it.
 * Invariants: holders > 0 means that icode->code is a counted reference.
 * Threading: the GIL is held.
 * Ownership: a holder owns one count.
 */
#ifndef FG_CPYTHON_CANONICAL_CACHE_H
#define FG_CPYTHON_CANONICAL_CACHE_H

#include "runtime/cpython/canonical.h"
#include <stddef.h>

/* One block: room for the header and `size` bytes of instructions and handlers. NULL: out of memory. */
fg_icode *fg_icode_block_new(size_t size);
void *fg_icode_block_data(fg_icode *icode);

/* The decoder of the running version. It leaves icode->code alone; *why says what was wrong, or NULL. */
fg_status fg_version_decode(PyCodeObject *code, fg_icode **out, const char **why);

void fg_canonical_why_set(const char *why);

#endif
