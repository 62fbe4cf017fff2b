/* Purpose:   what the files of this version's folder share with the version-independent ones beside it.
 * Model:     canonical_cache.c keeps decoded code; the version only decodes.
 * Threading: the GIL is held.
 * Ownership: an fg_icode is one block: a count, the header, instructions, handlers.
 */
#ifndef FG_CPYTHON_V311_INTERNAL_H
#define FG_CPYTHON_V311_INTERNAL_H

#include "runtime/cpython/canonical.h"
#include "runtime/cpython/canonical_cache.h"
#include "runtime/cpython/v311/v311_raw.h"

#endif
