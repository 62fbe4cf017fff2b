#include "runtime/hook/hook_module.h"
#include "runtime/cpython/frame.h"
#include "runtime/cpython/function.h"
#include "runtime/hook/hook_gate.h"
#include "runtime/hook/hook_intercept.h"

enum { PLAIN_RESERVE = 96 * 1024 };

static fg_gate *gate_arg(PyObject *object)
{
    if (fg_gate_check(object))
        return (fg_gate *)object;
    PyErr_Format(PyExc_TypeError, "expected a framegate gate, not '%.200s'", Py_TYPE(object)->tp_name);
    return NULL;
}

static PyObject *raise_status(fg_status st)
{
    if (st == FG_ERR_NOMEM)
        return PyErr_NoMemory();
    if (!PyErr_Occurred())
        PyErr_SetString(st == FG_ERR_INVALID ? PyExc_TypeError : PyExc_RuntimeError,
                        st == FG_ERR_INVALID ? "the arguments do not fit" : fg_status_text(st));
    return NULL;
}

static PyObject *gate_new(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *func, *options = NULL;
    return PyArg_ParseTuple(args, "O|O:gate_new", &func, &options) ? fg_gate_new(func, options) : NULL;
}

static PyObject *gate_options(PyObject *module, PyObject *object)
{
    (void)module;
    fg_gate *gate = gate_arg(object);
    if (gate == NULL)
        return NULL;
    return gate->options.dict == NULL ? PyDict_New() : PyDict_Copy(gate->options.dict);
}

static PyObject *reset(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    fg_site_reset_all();
    fg_intercept_forget(NULL);
    Py_RETURN_NONE;
}

static PyObject *reset_gate(PyObject *module, PyObject *object)
{
    (void)module;
    fg_gate *gate = gate_arg(object);
    if (gate == NULL)
        return NULL;
    if (gate->owner.site != NULL)
        fg_site_reset(gate->owner.site);
    fg_intercept_forget((PyCodeObject *)((PyFunctionObject *)gate->func)->func_code);
    Py_RETURN_NONE;
}

static PyObject *get_stance(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(fg_stance_text(fg_hook.stance));
}

static PyObject *set_stance(PyObject *module, PyObject *object)
{
    (void)module;
    const char *text = PyUnicode_AsUTF8(object);
    if (text == NULL)
        return NULL;
    int stance = fg_stance_parse(text);
    if (stance < 0)
        return PyErr_Format(PyExc_ValueError, "there is no stance %R", object);
    PyObject *before = PyUnicode_FromString(fg_stance_text(fg_hook.stance));
    if (before != NULL)
        fg_hook_stance_set((fg_stance)stance);
    return before;
}

static PyObject *get_run_state(PyObject *module, PyObject *object)
{
    (void)module;
    fg_gate *gate = gate_arg(object);
    return gate == NULL ? NULL : PyUnicode_FromString(fg_run_state_text(gate->owner.state));
}

static PyObject *set_run_state(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *object;
    const char *text;
    fg_gate *gate;
    if (!PyArg_ParseTuple(args, "Os:set_run_state", &object, &text) || (gate = gate_arg(object)) == NULL)
        return NULL;
    int state = fg_run_state_parse(text);
    if (state < 0)
        return PyErr_Format(PyExc_ValueError, "there is no run state '%s'", text);
    gate->owner.state = (uint8_t)state;
    Py_RETURN_NONE;
}

static PyObject *set_gate_reducer(PyObject *module, PyObject *callable)
{
    (void)module;
    fg_gate_reducer_set(callable);
    Py_RETURN_NONE;
}

/* Everything inside the call runs plain: the dynamic extent of framegate.disable. */
static PyObject *call_plain(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    (void)module;
    if (n < 1)
        return PyErr_Format(PyExc_TypeError, "call_plain takes a callable and its arguments");
    if (fg_stack_left() < PLAIN_RESERVE && !fg_stack_fits_plain())
        return PyErr_Format(PyExc_RecursionError, "maximum recursion depth exceeded: no C stack is left to call %.200s",
                            Py_TYPE(args[0])->tp_name);
    fg_thread_plain_enter();
    PyObject *result = PyObject_Vectorcall(args[0], args + 1, (size_t)n - 1, kwnames);
    fg_thread_plain_leave();
    return result;
}

static int add_number(PyObject *dict, const char *name, uint64_t number)
{
    PyObject *value = PyLong_FromUnsignedLongLong(number);
    int failed = value == NULL || PyDict_SetItemString(dict, name, value) < 0;
    Py_XDECREF(value);
    return failed;
}

static PyObject *refusals_by_kind(void)
{
    PyObject *dict = PyDict_New();
    for (int i = 0; i <= FG_N_GUARDS && dict != NULL; i++) {
        const char *name = i < FG_N_GUARDS ? fg_guard_text((fg_guard_kind)i) : "not evaluated";
        if (fg_hook.refused_by[i] != 0 && add_number(dict, name, fg_hook.refused_by[i]))
            Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *seconds_by_phase(void)
{
    PyObject *dict = PyDict_New();
    for (int i = 0; i < FG_N_PHASES && dict != NULL; i++) {
        PyObject *seconds = PyFloat_FromDouble(fg_hook.seconds[i]);
        if (seconds == NULL || PyDict_SetItemString(dict, fg_phase_text(i), seconds) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(seconds);
    }
    return dict;
}

static int add_taken(PyObject *dict, const char *name, PyObject *value)
{
    int failed = value == NULL || PyDict_SetItemString(dict, name, value) < 0;
    Py_XDECREF(value);
    return failed;
}

static int count_site(fg_site *site, void *arg)
{
    const fg_cache_snapshot *snapshot = fg_cache_snapshot_peek(&site->cache);
    uint64_t *totals = arg;
    totals[0] += site->frame_id >= 0;
    totals[1] += snapshot == NULL ? 0 : snapshot->n;
    return 0;
}

static PyObject *stats(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    uint64_t totals[2] = {0, 0};
    PyObject *dict = PyDict_New();
    int failed = dict == NULL;
    fg_site_each(count_site, totals);
    for (int i = 0; i < FG_N_COUNTERS && !failed; i++)
        failed = add_number(dict, fg_counter_text(i), i == FG_COUNT_HITS ? fg_site_total_hits() : fg_hook.counters[i]);
    failed = failed || add_taken(dict, "guard_failures", refusals_by_kind()) || add_taken(dict, "seconds", seconds_by_phase());
    if (failed || add_number(dict, "frames", totals[0]) || add_number(dict, "entries", totals[1]))
        Py_CLEAR(dict);
    return dict;
}

/* Entry objects of a snapshot, most recently used first. Allocating may run the collector, so the snapshot is counted. */
static PyObject *entries(PyObject *module, PyObject *object)
{
    (void)module;
    fg_gate *gate = gate_arg(object);
    if (gate == NULL)
        return NULL;
    fg_status st = fg_gate_prepare(gate);
    if (st != FG_OK)
        return raise_status(st);
    PyObject *list = PyList_New(0);
    fg_cache_snapshot *snapshot = fg_cache_snapshot_take(&gate->owner.site->cache);
    uint16_t order[FG_CACHE_MAX_ENTRIES];
    if (snapshot != NULL)
        fg_cache_snapshot_order(snapshot, order);
    for (uint32_t k = 0; snapshot != NULL && list != NULL && k < snapshot->n; k++) {
        fg_entry *entry = (fg_entry *)snapshot->entries[order[k]];
        if (!fg_cache_entry_is_valid(&entry->link))
            continue;
        PyObject *item = fg_entry_object_new(entry, fg_site_options_backend(&gate->options));
        if (item == NULL || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    if (snapshot != NULL)
        fg_cache_snapshot_drop(snapshot);
    return list;
}

static fg_status use_find(fg_gate *gate, const fg_view *view, void *arg)
{
    return fg_site_find(gate->owner.site, view, arg);
}

static PyObject *gate_find(PyObject *module, PyObject *const *args, Py_ssize_t n_args, PyObject *kwnames)
{
    (void)module;
    fg_entry *entry = NULL;
    fg_gate *gate = n_args < 1 ? NULL : gate_arg(args[0]);
    if (gate == NULL)
        return n_args < 1 ? PyErr_Format(PyExc_TypeError, "gate_find takes a gate and the arguments of a call") : NULL;
    fg_status st = fg_gate_with_view(gate, args + 1, n_args - 1, kwnames, use_find, &entry);
    if (st != FG_OK)
        return raise_status(st);
    if (entry == NULL)
        Py_RETURN_NONE;
    PyObject *object = fg_entry_object_new(entry, fg_site_options_backend(&((fg_gate *)args[0])->options));
    fg_entry_drop(entry);
    return object;
}

static PyObject *finalizing(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    fg_hook_finalizing_set();
    fg_eval_disarm();
    fg_site_reset_all();
    Py_RETURN_NONE;
}

static PyMethodDef finalizing_def = {"framegate_finalizing", finalizing, METH_NOARGS, NULL};

static PyMethodDef functions[] = {
    {"gate_new", gate_new, METH_VARARGS,
     "gate_new(function, options=None) -> Gate. options: backend, fullgraph, dynamic, recompile_limit, cache_size, any other."},
    {"gate_options", gate_options, METH_O, "gate_options(gate) -> a copy of the options it was made with"},
    {"gate_find", (PyCFunction)(void (*)(void))gate_find, METH_FASTCALL | METH_KEYWORDS,
     "gate_find(gate, *args, **kwargs) -> the Entry such a call would hit, or None; TypeError if the arguments do not fit"},
    {"entries", entries, METH_O, "entries(gate) -> living entries, most recently used first"},
    {"reset", reset, METH_NOARGS, "Drop all entries, limits and marks."},
    {"reset_gate", reset_gate, METH_O, "reset_gate(gate): reset of what this gate looks at"},
    {"get_stance", get_stance, METH_NOARGS, "The stance of the process."},
    {"set_stance", set_stance, METH_O, "set_stance(text) -> the stance before; ValueError for an unknown one."},
    {"get_run_state", get_run_state, METH_O, "get_run_state(gate) -> 'default', 'run_only' or 'disabled'"},
    {"set_run_state", set_run_state, METH_VARARGS, "set_run_state(gate, text); ValueError for an unknown one."},
    {"set_gate_reducer", set_gate_reducer, METH_O,
     "set_gate_reducer(callable): callable(gate) gives what __reduce__ returns where the name does not lead back."},
    {"call_plain", (PyCFunction)(void (*)(void))call_plain, METH_FASTCALL | METH_KEYWORDS,
     "call_plain(callable, /, *args, **kwargs): call it; gates that are called meanwhile on this thread run plain."},
    {"stats", stats, METH_NOARGS, "stats() -> dict of counters"},
    {0},
};

/* At exit, before modules are torn down: entries go while Python still works, and gates run plain from then on. */
static fg_status register_exit(void)
{
    PyObject *atexit = PyImport_ImportModule("atexit"), *callback = NULL, *result = NULL;
    if (atexit != NULL && (callback = PyCFunction_New(&finalizing_def, NULL)) != NULL)
        result = PyObject_CallMethod(atexit, "register", "O", callback);
    fg_status st = result == NULL ? FG_ERR_PYTHON : FG_OK;
    Py_XDECREF(result);
    Py_XDECREF(callback);
    Py_XDECREF(atexit);
    return st;
}

fg_status fg_hook_module_init(PyObject *module)
{
    fg_status st = FG_OK;
    if (PyModule_AddType(module, &fg_gate_type) < 0 || PyModule_AddType(module, &fg_entry_object_type) < 0 ||
        PyModule_AddType(module, &fg_guards_object_type) < 0 || PyModule_AddFunctions(module, functions) < 0)
        return FG_ERR_PYTHON;
    if (fg_function_init() < 0) /* gates ask at each call whether their function runs its code */
        return FG_ERR_PYTHON;
    FG_TRY(fg_site_type_init());
    FG_TRY(fg_intercept_init(module));
    FG_TRY(register_exit());
    FG_TRY(fg_hook_fork_watch());
    fg_hook_config_refresh();
fail:
    return st;
}
