#include "runtime/hook/hook_config.h"

#include <pthread.h>
#include <stdarg.h>
#include <string.h>

fg_hook_state fg_hook = {.fork_generation = 1, .cache_size = 64, .recompile_limit = 16};

static void plain_update(void)
{
    fg_hook.plain = fg_hook.finalizing || fg_hook.stance == FG_STANCE_FORCE_EAGER;
}

void fg_hook_stance_set(fg_stance stance)
{
    fg_hook.stance = (uint8_t)stance;
    plain_update();
}

void fg_hook_finalizing_set(void)
{
    fg_hook.finalizing = 1;
    plain_update();
}

static void in_fork_child(void)
{
    fg_hook.fork_generation++;
}

static long read_flag(PyObject *flags, const char *name, long fallback)
{
    PyObject *value = PyDict_GetItemString(flags, name);
    long n = value == NULL || !PyLong_Check(value) ? -1 : PyLong_AsLong(value);
    if (n < 0 || n > INT32_MAX) {
        PyErr_Clear();
        return fallback;
    }
    return n;
}

void fg_hook_config_refresh(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
    PyObject *config = modules == NULL ? NULL : PyDict_GetItemString(modules, "framegate.config");
    if (config != NULL && PyModule_Check(config)) {
        PyObject *flags = PyModule_GetDict(config);
        fg_hook.cache_size = (uint32_t)read_flag(flags, "cache_size", fg_hook.cache_size);
        fg_hook.recompile_limit = (uint32_t)read_flag(flags, "recompile_limit", fg_hook.recompile_limit);
        fg_hook.strict = read_flag(flags, "strict_errors", fg_hook.strict) != 0;
        fg_hook.compile_under_tracing = read_flag(flags, "compile_under_tracing", fg_hook.compile_under_tracing) != 0;
        fg_hook.wait_for_compile = read_flag(flags, "wait_for_compile", fg_hook.wait_for_compile) != 0;
        PyObject *limit = PyDict_GetItemString(flags, "wait_for_compile_limit");
        fg_hook.wait_for_compile_limit = limit != NULL && PyFloat_CheckExact(limit) ? PyFloat_AS_DOUBLE(limit) : 0.0;
    }
    PyErr_Restore(type, value, traceback);
}

fg_status fg_hook_fork_watch(void)
{
    static int watching;
    if (!watching && pthread_atfork(NULL, NULL, in_fork_child) != 0)
        return FG_ERR_NOMEM;
    watching = 1;
    return FG_OK;
}

static const char *const stance_texts[] = {
#define FG_STANCE(NAME, TEXT) TEXT,
#include "runtime/hook/stances.def"
#undef FG_STANCE
};

static const char *const state_texts[] = {
#define FG_RUN_STATE(NAME, TEXT) TEXT,
#include "runtime/hook/run_states.def"
#undef FG_RUN_STATE
};

static const char *const counter_texts[] = {
#define FG_COUNTER(NAME, TEXT) TEXT,
#include "runtime/hook/counters.def"
#undef FG_COUNTER
};

static const char *const phase_texts[] = {
#define FG_PHASE(NAME, TEXT) TEXT,
#include "runtime/hook/phases.def"
#undef FG_PHASE
};

const char *fg_phase_text(int phase)
{
    return phase_texts[phase];
}

const char *fg_stance_text(int stance)
{
    return stance_texts[stance];
}

const char *fg_run_state_text(int state)
{
    return state_texts[state];
}

const char *fg_counter_text(int counter)
{
    return counter_texts[counter];
}

static int find_text(const char *const *texts, int n, const char *text)
{
    for (int i = 0; i < n; i++)
        if (strcmp(texts[i], text) == 0)
            return i;
    return -1;
}

int fg_stance_parse(const char *text)
{
    return find_text(stance_texts, FG_N_STANCES, text);
}

int fg_run_state_parse(const char *text)
{
    return find_text(state_texts, FG_N_RUN_STATES, text);
}

fg_status fg_hook_raise(const char *name, const char *format, ...)
{
    PyObject *module = PyImport_ImportModule("framegate.exc");
    PyObject *class = module == NULL ? NULL : PyObject_GetAttrString(module, name);
    if (class != NULL) {
        va_list args;
        va_start(args, format);
        PyErr_FormatV(class, format, args);
        va_end(args);
    }
    Py_XDECREF(class);
    Py_XDECREF(module);
    return FG_ERR_PYTHON;
}
