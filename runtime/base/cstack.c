#define _GNU_SOURCE
#include "runtime/base/cstack.h"

#include <execinfo.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void fg_cstack_dump(void)
{
    const char *wish = getenv("FRAMEGATE_C_STACK");
    if (!wish || strcmp(wish, "1") != 0)
        return;
    void *frames[128];
    int n = backtrace(frames, (int)(sizeof frames / sizeof *frames));
    static const char head[] = "framegate: C stack, innermost first:\n";
    if (write(STDERR_FILENO, head, sizeof head - 1) < 0)
        return;
    /* The first frame is this function. */
    if (n > 1)
        backtrace_symbols_fd(frames + 1, n - 1, STDERR_FILENO);
}
