/* Purpose:   the one call that makes the NumPy adaptor usable, apart from the inline reader so that its users do not see NumPy's import machinery.
 * Model:     called by fg_tensor_init.
 * Invariants: calling it again is free.
 * Threading: the GIL is held.
 * Ownership: what it takes from NumPy is kept for the life of the process.
 */
#ifndef FG_GUARDS_ADAPTOR_NUMPY_INIT_H
#define FG_GUARDS_ADAPTOR_NUMPY_INIT_H

#include "runtime/base/status.h"

__attribute__((visibility("hidden"))) fg_status fg_numpy_init(void);

#endif
