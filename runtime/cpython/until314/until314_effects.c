/* Stack effects of what CPython 3.11 to 3.14 have in common (until314.h). */
#include "runtime/cpython/until314/until314.h"

int fg_until314_shape(const fg_raw *op, fg_raw_shape *out)
{
    switch (op->op) {
    case FG_RAW_GET_ITER:
    case FG_RAW_GET_YIELD_FROM_ITER: *out = (fg_raw_shape){1, 1, 0}; return 1;
    case FG_RAW_END_ASYNC_FOR: *out = (fg_raw_shape){2, 0, 0}; return 1;
    default: return 0;
    }
}
