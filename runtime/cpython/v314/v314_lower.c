/* Lowering for CPython 3.14: all of it is common to later versions (since314.h). */
#include "runtime/cpython/since314/since314.h"

int32_t fg_version_common_arg(PyObject *constant)
{
    (void)constant;
    return -1;
}

int32_t fg_version_lower_group(fg_lowering *l, int32_t i, fg_status *st)
{
    return fg_since314_lower_group(l, i, st);
}

fg_status fg_version_lower_one(fg_lowering *l, int32_t i, int *done)
{
    return fg_since314_lower_one(l, i, done);
}
