/* Purpose:   the compile callback of the hook layer.
 * Model:     one miss becomes one trace and, where something can be compiled, one entry.
 * Threading: the GIL is held; calls the package's Python parts (backends, logs).
 * Ownership: the entry is handed over with its first count.
 */
#ifndef FG_TRACER_TRACE_COMPILE_H
#define FG_TRACER_TRACE_COMPILE_H

#include "runtime/hook/hook_site.h"
#include "tracer/resume.h"
#include "tracer/trace.h"

fg_status fg_trace_compile(fg_compile_request *request, fg_entry **out);
/* For the recompile log: a list of (compile id, conditions that fail) for the living entries of the site. */
FG_NEW PyObject *fg_trace_miss_reasons(const fg_compile_request *request);
fg_status fg_tracer_module_init(PyObject *module);

#endif
