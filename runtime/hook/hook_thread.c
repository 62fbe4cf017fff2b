#include "runtime/hook/hook_thread.h"

#include "runtime/cpython/frame.h"
#include "runtime/hook/hook_config.h"

static int may_run_traced(void)
{
    fg_hook_config_refresh();
    return fg_hook.compile_under_tracing;
}

fg_thread_says fg_ask_thread(void)
{
    if (fg_stack_left() < FG_STACK_RESERVE)
        return fg_stack_fits_plain() ? FG_CALL_RUNS_PLAIN : FG_CALL_HAS_NO_STACK;
    if (fg_thread_is_plain())
        return FG_CALL_RUNS_PLAIN;
    return fg_thread_traced() && !may_run_traced() ? FG_CALL_RUNS_PLAIN : FG_CALL_GOES_ON;
}
