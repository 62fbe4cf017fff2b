/* What becomes of a frame that an interception is offered.
 *
 *     row known? ── no ──► make it
 *         │ yes             │
 *     decided? ── no ──► can it be compiled at all, and is it wanted? ── no ──► note that it passes, say why
 *         │ offers             │ yes
 *         ▼                    ▼
 *     thread and stack as for a gate ──► view on the frame's slots ──► dispatch through the row's site
 *
 * The frame's slots are the arguments as a gate would have bound them, and the frame has a reference of its own to each, as plain Python has. Cells are
 * not made yet at this point. An entry that goes on in the user's code takes the references out of the frame.
 */
#include "runtime/base/alloc.h"
#include "runtime/cpython/facts.h"
#include "runtime/hook/hook_gate.h"
#include "runtime/hook/hook_hit.h"
#include "runtime/hook/hook_intercept.h"
#include "runtime/hook/hook_rules.h"
#include "runtime/hook/hook_thread.h"

#include <string.h>

static PyObject *own_files, *log_callable;

fg_status fg_frames_own_files_set(PyObject *prefix)
{
    if (!PyUnicode_Check(prefix)) {
        PyErr_SetString(PyExc_TypeError, "a prefix of file names is a str");
        return FG_ERR_PYTHON;
    }
    Py_XSETREF(own_files, Py_NewRef(prefix));
    return FG_OK;
}

void fg_frames_log_set(PyObject *callable)
{
    Py_XSETREF(log_callable, callable == Py_None ? NULL : Py_XNewRef(callable));
}

/* --- rows --- */

static fg_frame_row *find_row(fg_frame_notes *notes, const fg_interception *interception)
{
    fg_frame_row *row = notes == NULL ? NULL : notes->rows;
    while (row != NULL && row->interception != interception)
        row = row->next_of_code;
    return row;
}

static fg_frame_row *make_row(fg_frame_notes *notes, PyCodeObject *code, fg_interception *interception)
{
    fg_frame_row *row = fg_calloc(1, sizeof *row);
    if (row == NULL)
        return NULL;
    if (notes == NULL) {
        if ((notes = fg_calloc(1, sizeof *notes)) == NULL || fg_code_notes_set(code, &notes->head) != FG_OK) {
            fg_free(notes);
            fg_free(row);
            return NULL;
        }
        notes->code = code;
    }
    fg_site_owner_init(&row->owner, NULL);
    row->owner.shared = 1;
    row->owner.state = interception->run_only ? FG_RUN_RUN_ONLY : FG_RUN_DEFAULT;
    row->owner.recompile_limit = interception->recompile_limit;
    row->interception = interception;
    row->notes = notes;
    row->next_of_code = notes->rows;
    notes->rows = row;
    row->next = interception->rows;
    if (row->next != NULL)
        row->next->link = &row->next;
    row->link = &interception->rows;
    interception->rows = row;
    return row;
}

void fg_frames_forget_row(fg_frame_row *row)
{
    row->state = FG_ROW_NEW;
    if (row->notes->head.passed_by == row->interception)
        row->notes->head.passed_by = NULL;
}

/* Out of both lists first: dropping targets may run anything. */
static void drop_row(fg_frame_row *row)
{
    fg_frame_row **at = &row->notes->rows;
    while (*at != row)
        at = &(*at)->next_of_code;
    *at = row->next_of_code;
    *row->link = row->next;
    if (row->next != NULL)
        row->next->link = row->link;
    fg_frames_forget_row(row);
    fg_site_owner_fini(&row->owner);
    fg_free(row);
}

void fg_frames_drop_rows(fg_interception *interception)
{
    while (interception->rows != NULL)
        drop_row(interception->rows);
}

void fg_frames_notes_free(void *given)
{
    fg_frame_notes *notes = given;
    while (notes->rows != NULL)
        drop_row(notes->rows);
    fg_free(notes);
}

/* --- what is left alone --- */

static void say(PyCodeObject *code, const char *reason)
{
    if (log_callable == NULL || fg_hook.plain)
        return;
    fg_intercept_pause();
    PyObject *callable = Py_NewRef(log_callable), *result = PyObject_CallFunction(callable, "Os", code, reason);
    if (result == NULL)
        PyErr_WriteUnraisable(callable);
    Py_XDECREF(result);
    Py_DECREF(callable);
    fg_intercept_resume();
}

static int count_arguments(const PyCodeObject *code)
{
    return code->co_argcount + code->co_kwonlyargcount + ((code->co_flags & CO_VARARGS) != 0) + ((code->co_flags & CO_VARKEYWORDS) != 0);
}

static const char *why_never(const PyCodeObject *code, fg_frame_kind kind)
{
    if (code->co_flags & CO_COROUTINE)
        return "a coroutine: it stops and goes on in the middle";
    if (code->co_flags & CO_ASYNC_GENERATOR)
        return "an asynchronous generator: it stops and goes on in the middle";
    if (code->co_flags & (CO_GENERATOR | CO_ITERABLE_COROUTINE))
        return "a generator: it stops and goes on in the middle";
    if (kind != FG_FRAME_FRESH)
        return kind == FG_FRAME_THROWN ? "entered by throw()" : "it had begun before";
    if (!(code->co_flags & CO_OPTIMIZED) || !(code->co_flags & CO_NEWLOCALS))
        return "the code of a module, a class or exec(): its variables are in a dict";
    if (count_arguments(code) > FG_FACT_MOST_ARGUMENTS)
        return "more than 64 arguments";
    return NULL;
}

static int is_own(const PyCodeObject *code)
{
    return own_files != NULL && PyUnicode_Tailmatch(code->co_filename, own_files, 0, PY_SSIZE_T_MAX, -1) == 1;
}

static int is_import_system(const PyCodeObject *code)
{
    return PyUnicode_Check(code->co_filename) && PyUnicode_GET_LENGTH(code->co_filename) > 0 &&
           PyUnicode_READ_CHAR(code->co_filename, 0) == '<' &&
           (PyUnicode_CompareWithASCIIString(code->co_filename, "<frozen importlib._bootstrap>") == 0 ||
            PyUnicode_CompareWithASCIIString(code->co_filename, "<frozen importlib._bootstrap_external>") == 0);
}

/* framegate._rules.TABLE has a row for this function, whatever it says: it is to run as it is. */
static int has_rule(PyObject *func)
{
    PyObject *modules = PyImport_GetModuleDict(), *module = modules == NULL ? NULL : PyDict_GetItemString(modules, "framegate._rules");
    PyObject *rules = module == NULL || !PyModule_Check(module) ? NULL : PyDict_GetItemString(PyModule_GetDict(module), "TABLE");
    return rules != NULL && PyDict_CheckExact(rules) && fg_rules_of_function(rules, func) != NULL;
}

/* The user's word on a code object. Errors are reported, not raised: the frame has nothing to do with them. */
static int is_wanted(const fg_interception *interception, PyCodeObject *code)
{
    if (interception->filter == NULL)
        return 1;
    fg_intercept_pause();
    PyObject *filter = Py_NewRef(interception->filter), *answer = PyObject_CallOneArg(filter, (PyObject *)code);
    int wanted = answer == NULL ? -1 : PyObject_IsTrue(answer);
    if (wanted < 0)
        PyErr_WriteUnraisable(filter);
    Py_XDECREF(answer);
    Py_DECREF(filter);
    fg_intercept_resume();
    return wanted > 0;
}

static void pass_from_now_on(fg_frame_row *row)
{
    row->state = FG_ROW_PASSES;
    row->notes->head.passed_by = row->interception;
}

/* Decide about a code object at its first frame. May run anything, but nothing that ends the row: its interception and its code are held. */
static void decide(fg_frame_row *row, fg_frame *frame, fg_frame_kind kind)
{
    PyCodeObject *code = fg_frame_code(frame);
    PyObject *func = fg_frame_func(frame), *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    row->state = FG_ROW_PASSES; /* meanwhile */
    const int own = is_own(code) || is_import_system(code);
    const char *reason = own ? NULL : why_never(code, kind);
    fg_site *site = NULL;
    int offers = 0;
    if (own || reason != NULL)
        goto decided;
    if (has_rule(func)) {
        reason = "framegate was told how to treat this function";
    } else if (!is_wanted(row->interception, code)) {
        reason = "the filter does not want it";
    } else if (!row->interception->is_cleared && fg_registry_site(code, &row->interception->options, &site) == FG_OK) {
        fg_site_owner_attach(&row->owner, site);
        fg_site_drop(site);
        row->n_slots = count_arguments(code);
        row->drops_args = (uint8_t)fg_handover_drops_args(code);
        offers = 1;
    }
decided:
    if (PyErr_Occurred())
        PyErr_Clear();
    if (offers)
        row->state = FG_ROW_OFFERS;
    else
        pass_from_now_on(row);
    if (reason != NULL)
        say(code, reason);
    PyErr_Restore(type, value, traceback);
}

/* --- the offer --- */

/* It will not be compiled, whatever the arguments. */
static int is_hopeless(const fg_site_owner *owner)
{
    if (owner->site == NULL)
        return 1;
    const fg_cache_snapshot *snapshot = fg_cache_snapshot_peek(&owner->site->cache);
    return (owner->site->never || owner->at_limit) && (snapshot == NULL || snapshot->n == 0);
}

static int dispatch(fg_frame_row *row, fg_frame *frame, PyObject **result)
{
    PyFunctionObject *func = (PyFunctionObject *)fg_frame_func(frame);
    PyObject *room[FG_FACT_ARGUMENTS_ROOM], *const *slots = fg_frame_arguments(frame, row->n_slots, room);
    if (FG_UNLIKELY(row->drops_args && fg_handover_is_heard(slots, row->n_slots)))
        return 0;
    const fg_view view = {.slots = slots,
                          .n_slots = row->n_slots,
                          .closure = func->func_closure,
                          .globals = func->func_globals,
                          .builtins = func->func_builtins,
                          .func = (PyObject *)func,
                          .lent = slots,
                          .n_lent = row->n_slots,
                          .frame = frame};
    fg_hit hit = fg_site_hit(&row->owner, &view, result);
    if (FG_LIKELY(hit == FG_HIT_DONE))
        return 1;
    if (fg_site_dispatch_rest(&row->owner, &view, hit, result) != FG_OUTCOME_PLAIN)
        return 1;
    if (is_hopeless(&row->owner))
        pass_from_now_on(row);
    return 0;
}

int fg_frames_offer(const void *asker, fg_frame *frame, fg_frame_kind kind, fg_code_notes *given, PyObject **result)
{
    fg_interception *interception = (fg_interception *)asker;
    PyCodeObject *code = fg_frame_code(frame);
    fg_frame_row *row = find_row((fg_frame_notes *)given, interception);
    if (FG_UNLIKELY(fg_hook.plain || interception->is_cleared))
        return 0;
    Py_INCREF(interception); /* the call may leave it */
    int taken = 0;
    if (FG_UNLIKELY(row == NULL || row->state == FG_ROW_NEW)) {
        if (row == NULL && (row = make_row((fg_frame_notes *)given, code, interception)) == NULL)
            goto done;
        decide(row, frame, kind);
    }
    if (row->state != FG_ROW_OFFERS || kind != FG_FRAME_FRESH)
        goto done;
    if (FG_UNLIKELY(!fg_thread_is_ordinary(FG_STACK_RESERVE)) && fg_ask_thread() != FG_CALL_GOES_ON)
        goto done;
    if (fg_code_is_monitored(code))
        goto done;
    taken = dispatch(row, frame, result);
    FG_COUNT(INTERCEPTED, taken);
done:
    Py_DECREF(interception);
    return taken;
}
