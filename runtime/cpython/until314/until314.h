/* Purpose:   what CPython 3.11 to 3.14 have in common and later versions have not: an iterator is one value in one slot, which an instruction of its own makes
 *            for `yield from`, and an import says nothing of laziness.
 * Model:     a version's own function does what is the version's and leaves the rest to these; until314_same.def has the instructions.
 * Invariants: as of the functions in bytecode_raw.h whose names they have.
 * Threading: the GIL is held. Ownership: as there.
 */
#ifndef FG_CPYTHON_UNTIL314_H
#define FG_CPYTHON_UNTIL314_H

#include "runtime/cpython/bytecode_raw.h"

int fg_until314_shape(const fg_raw *op, fg_raw_shape *out);

#endif
