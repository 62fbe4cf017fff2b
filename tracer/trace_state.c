#include "tracer/trace.h"

#include "runtime/base/alloc.h"
#include "runtime/base/log.h"
#include "runtime/cpython/frame.h"
#include <stdarg.h>
#include <string.h>

fg_flow fg_nomem(void)
{
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    return FG_FLOW_ERROR;
}

fg_flow fg_log(fg_trace *t, void *at, size_t size)
{
    if (t->n_log == t->cap_log) {
        size_t cap = t->cap_log ? 2 * t->cap_log : 256;
        fg_log_entry *log = fg_realloc(t->log, cap * sizeof *log);
        if (log == NULL)
            return fg_nomem();
        t->log = log;
        t->cap_log = cap;
    }
    fg_log_entry *entry = &t->log[t->n_log];
    entry->at = at;
    entry->size = (uint32_t)size;
    entry->old_large = NULL;
    if (size <= sizeof entry->old) {
        memcpy(entry->old, at, size);
    } else {
        entry->old_large = fg_arena_alloc(&t->arena, size);
        if (entry->old_large == NULL)
            return fg_nomem();
        memcpy(entry->old_large, at, size);
    }
    t->n_log++;
    return FG_FLOW_OK;
}

fg_flow fg_deeper(fg_trace *t)
{
    enum { ROOM = 256 * 1024 }; /* for the leaves: guards, interpreter calls, stand-in inference */
    return fg_stack_left() >= ROOM ? FG_FLOW_OK : fg_break(t, FG_BREAK_RECURSION, "values are nested too deeply");
}

fg_trace_mark fg_trace_mark_get(fg_trace *t)
{
    return (fg_trace_mark){.n_log = t->n_log,
                           .desc = fg_desc_mark_get(t->desc),
                           .n_regs = t->ir.n_regs,
                           .n_steps = t->ir.n_steps,
                           .n_sites = t->ir.n_sites,
                           .n_catches = t->ir.n_catches,
                           .n_contexts = t->ir.n_contexts,
                           .n_restores = t->ir.n_restores};
}

void fg_trace_rewind(fg_trace *t, fg_trace_mark mark)
{
    while (t->n_log > mark.n_log) {
        fg_log_entry *entry = &t->log[--t->n_log];
        memcpy(entry->at, entry->old_large ? entry->old_large : entry->old, entry->size);
    }
    fg_desc_rewind(t->desc, mark.desc);
    t->ir.n_regs = mark.n_regs;
    t->ir.n_steps = mark.n_steps;
    t->ir.n_sites = mark.n_sites;
    t->ir.n_catches = mark.n_catches;
    t->ir.n_contexts = mark.n_contexts;
    t->ir.n_restores = mark.n_restores;
}

PyObject *fg_own(fg_trace *t, PyObject *object)
{
    if (object == NULL)
        return NULL;
    int failed = PyList_Append(t->owned, object);
    Py_DECREF(object);
    return failed ? NULL : object;
}

PyObject *fg_keep(fg_trace *t, PyObject *object)
{
    return PyList_Append(t->owned, object) ? NULL : object;
}

static const struct {
    const char *type, *hint;
} reasons[FG_N_BREAKS] = {
#define FG_BREAK(NAME, TYPE, HINT) {TYPE, HINT},
#include "tracer/break_reasons.def"
#undef FG_BREAK
};

const char *fg_break_type(fg_break_reason reason)
{
    return reasons[reason].type;
}

const char *fg_break_hint(fg_break_reason reason)
{
    return reasons[reason].hint;
}

/* The user's frames of this moment, outermost first, as (file name, line, function name). */
static PyObject *user_stack(fg_trace *t)
{
    PyObject *stack = PyList_New(0);
    for (fg_tframe *f = t->frame; f != NULL && stack != NULL; f = f->parent) {
        PyCodeObject *code = f->icode->code;
        PyObject *row = Py_BuildValue("(OiO)", code->co_filename, f->icode->instrs[f->pc].line, code->co_name);
        if (row == NULL || PyList_Insert(stack, 0, row) < 0)
            Py_CLEAR(stack);
        Py_XDECREF(row);
    }
    return stack;
}

/* Code that an operation runs in its middle: what it raises may be an answer to that operation and no exception to anyone else. */
static bool is_inside(const fg_trace *t)
{
    for (const fg_tframe *f = t->frame; f != NULL; f = f->parent)
        if (f->is_generator || f->on_result == FG_RESULT_KEEP)
            return true;
    return false;
}

fg_flow fg_break(fg_trace *t, fg_break_reason reason, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    PyObject *context = PyUnicode_FromFormatV(format, args);
    va_end(args);
    PyObject *stack = context ? user_stack(t) : NULL;
    if (stack == NULL) {
        Py_XDECREF(context);
        return FG_FLOW_ERROR;
    }
    Py_XSETREF(t->broke.context, context);
    Py_XSETREF(t->broke.stack, stack);
    t->broke.reason = reason == FG_BREAK_RAISES && is_inside(t) ? FG_BREAK_RAISES_INSIDE : reason;
    t->broke.root_pc = t->frame != t->root ? t->root->pc : -1;
    t->broke.code = t->frame->icode->code;
    t->broke.line = t->frame->icode->instrs[t->frame->pc].line;
    FG_TRACE(TRACER, "%s: %s (%s, line %d)", fg_break_type(t->broke.reason), PyUnicode_AsUTF8(context),
             PyUnicode_AsUTF8(t->broke.code->co_name), (int)t->broke.line);
    return FG_FLOW_BREAK;
}

fg_flow fg_break_on_error(fg_trace *t, fg_break_reason reason, const char *what)
{
    if (!PyErr_Occurred())
        return fg_break(t, reason, "%s", what);
    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError))
        return FG_FLOW_ERROR;
    PyObject *type, *value, *tb;
    PyErr_Fetch(&type, &value, &tb);
    const char *name = PyExceptionClass_Check(type) ? ((PyTypeObject *)type)->tp_name : "exception";
    fg_flow flow = fg_break(t, reason, "%s: %s", what, name);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(tb);
    return flow;
}
