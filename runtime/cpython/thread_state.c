/* What asks for the attention of a thread: signals, tracing, profiling, monitoring. */
#define Py_BUILD_CORE 1
#include "runtime/cpython/frame.h"
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_instruments.h>
#endif
#include <internal/pycore_ceval.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_pystate.h>
#include <internal/pycore_runtime.h>
#undef Py_BUILD_CORE

#if PY_VERSION_HEX >= 0x030c0000
_Static_assert(sizeof(_Py_GlobalMonitors) == FG_GLOBAL_EVENTS && sizeof(_Py_LocalMonitors) == FG_LOCAL_EVENTS &&
                   offsetof(_PyCoMonitoringData, local_monitors) == 0,
               "events of sys.monitoring");
#endif

int fg_signal_is_pending(void)
{
    const PyThreadState *tstate = PyThreadState_Get();
#if PY_VERSION_HEX < 0x030d0000
    return tstate->async_exc != NULL ||
           (_Py_atomic_load_relaxed(&_PyRuntime.ceval.signals_pending) && PyThread_get_thread_ident() == _PyRuntime.main_thread);
#else /* the bit is set for the main thread alone */
    return tstate->async_exc != NULL || (tstate->eval_breaker & _PY_SIGNALS_PENDING_BIT) != 0;
#endif
}

int fg_thread_traced(void)
{
    const PyThreadState *tstate = PyThreadState_Get();
    const uint8_t *monitors = fg_thread_monitors(tstate);
    return tstate->c_tracefunc != NULL || tstate->c_profilefunc != NULL || (monitors != NULL && fg_any_monitor(monitors));
}

const uint8_t *fg_thread_monitors(const PyThreadState *thread)
{
#if PY_VERSION_HEX >= 0x030c0000
    return thread->interp->monitors.tools;
#else
    (void)thread;
    return NULL;
#endif
}
