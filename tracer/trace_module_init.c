#include "tracer/trace_compile.h"
#include "tracer/trace_python.h"

PyObject *fg_trace_miss_reasons(const fg_compile_request *request)
{
    PyObject *list = PyList_New(0);
    fg_cache_snapshot *snapshot = list ? fg_cache_snapshot_take(&request->site->cache) : NULL;
    if (snapshot == NULL)
        return list;
    for (uint32_t i = 0; list != NULL && i < snapshot->n; i++) {
        const fg_entry *entry = (const fg_entry *)snapshot->entries[i];
        PyObject *failing = fg_desc_explain(entry->desc, request->view);
        PyObject *id = failing ? PyUnicode_FromFormat("%d/%d", (int)entry->frame_id, (int)entry->entry_id) : NULL;
        PyObject *row = id ? PyTuple_Pack(2, id, failing) : NULL;
        if (row == NULL || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(failing);
        Py_XDECREF(id);
        Py_XDECREF(row);
    }
    fg_cache_snapshot_release_locked(snapshot);
    return list;
}

fg_status fg_tracer_module_init(PyObject *module)
{
    (void)module;
    fg_status st;
    FG_TRY(fg_py_names_init());
    FG_TRY(fg_resume_types_init());
    fg_hook_compile_set(fg_trace_compile);
fail:
    return st;
}
