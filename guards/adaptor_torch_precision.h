/* Purpose:   where torch keeps the precisions of 32-bit float operations, so that a guard need not have torch look them up and combine them.
 * Model:     a hash table in torch's global context, by backend and kind of operation. Its nodes are made by its constructor and stay; what torch's getter
 *            says follows from the values in them, so all that are as they were means all is as it was.
 * Invariants: a table is taken only if its pairs are just those that torch numbers: no other memory looks like that.
 * Threading: set-up only.
 * Ownership: the places are torch's and last as long as torch is loaded, which is for good.
 */
#ifndef FG_GUARDS_ADAPTOR_TORCH_PRECISION_H
#define FG_GUARDS_ADAPTOR_TORCH_PRECISION_H

#include <stddef.h>
#include <stdint.h>

#define FG_TORCH_PRECISIONS 9 /* the general one, and four kinds of operations of two backends */

/* Find the places of the values. 1, or 0 where there is no such table. */
__attribute__((visibility("hidden"))) int fg_torch_precision_find(const void *context, const int32_t *places[FG_TORCH_PRECISIONS]);

#endif
