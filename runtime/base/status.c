#include "runtime/base/status.h"
#include "runtime/base/cstack.h"

#include <stdio.h>
#include <stdlib.h>

fg_status fg_bug_at(const char *file, int line, const char *what)
{
    fprintf(stderr, "framegate: broken invariant at %s:%d: %s\n", file, line, what);
    fg_cstack_dump();
#ifdef FRAMEGATE_DEBUG
    abort();
#endif
    return FG_ERR_BUG;
}

const char *fg_status_text(fg_status st)
{
    switch (st) {
#define FG_STATUS(NAME, TEXT) \
    case FG_##NAME:           \
        return TEXT;
#include "runtime/base/errors.def"
#undef FG_STATUS
    }
    return "unknown status code";
}
