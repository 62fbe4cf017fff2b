/* Targets: the function objects that run an entry's code for one function of the user. They hold that function's globals and closure, which
 * an entry must not, so they belong to the owner (a gate) and die with it. The table is indexed by the entry's place in the snapshot; since places
 * move when entries leave, a row names its entry by its uid.
 *
 * A target that runs needs the user's code and the site, to go on behind a graph break, while the program may give the gate's function another code:
 * its docstring is a tuple of the two. A segment runs inside such a target.
 *
 * A shared owner (a segment) is a constant of a code object, where the collector does not see it: a target kept there with the globals it ran with would
 * keep a module that nobody else knows alive for ever. So between calls its targets have no globals but an empty dict, and no closure; a call lends them its
 * own. A call that finds the target lent to one with others gets a new one.
 */
#include "runtime/base/alloc.h"
#include "runtime/hook/hook_site.h"

#include <string.h>

static fg_status keep_with_target(PyObject *target, const fg_site *site)
{
    PyObject *kept = site->code == NULL ? NULL : PyTuple_Pack(2, site->code, (PyObject *)site);
    if (kept == NULL)
        return site->code == NULL ? FG_OK : FG_ERR_PYTHON;
    Py_XSETREF(((PyFunctionObject *)target)->func_doc, kept);
    return FG_OK;
}

fg_status fg_target_make(const fg_site_owner *owner, fg_entry *entry, const fg_view *view, PyObject **out)
{
    PyObject *closure = entry->uses_closure ? view->closure : NULL;
    if (entry->uses_closure && (closure == NULL || !PyTuple_CheckExact(closure)))
        return FG_BUG("a target that uses the closure is made for a function that has one");
    if (!entry->planned && fg_straight_plan(entry->code, &entry->straight) == FG_OK)
        entry->planned = 1; /* out of memory: the next target asks again */
    PyObject *func = PyFunction_NewWithQualName((PyObject *)entry->code, view->globals, entry->code->co_qualname);
    if (func == NULL)
        return FG_ERR_PYTHON;
    /* A function finds its builtins when it is made; the user's may have been made under other ones. */
    if (view->builtins != NULL && view->builtins != ((PyFunctionObject *)func)->func_builtins)
        Py_SETREF(((PyFunctionObject *)func)->func_builtins, Py_NewRef(view->builtins));
    if ((closure != NULL && PyFunction_SetClosure(func, closure) < 0) ||
        (!owner->shared && owner->site != NULL && keep_with_target(func, owner->site) != FG_OK)) {
        Py_DECREF(func);
        return FG_ERR_PYTHON;
    }
    FG_COUNT(TARGETS, 1);
    *out = func;
    return FG_OK;
}

static PyObject *no_globals; /* an empty dict, made with the first target of a shared owner */

fg_status fg_target_rest(PyObject *target)
{
    PyFunctionObject *func = (PyFunctionObject *)target;
    if (no_globals == NULL && (no_globals = PyDict_New()) == NULL)
        return FG_ERR_PYTHON;
    PyObject *globals = func->func_globals, *builtins = func->func_builtins, *closure = func->func_closure;
    func->func_globals = Py_NewRef(no_globals);
    func->func_builtins = Py_NewRef(no_globals);
    func->func_closure = NULL;
    Py_DECREF(globals);
    Py_DECREF(builtins);
    Py_XDECREF(closure);
    return FG_OK;
}

fg_lend fg_target_lend(PyObject *target, const fg_view *view)
{
    PyFunctionObject *func = (PyFunctionObject *)target;
    PyObject *closure = ((PyCodeObject *)func->func_code)->co_nfreevars > 0 ? view->closure : NULL;
    if (func->func_globals == view->globals && func->func_builtins == view->builtins && func->func_closure == closure)
        return FG_LEND_RUNS; /* further out, or in another thread: who lent it takes it back */
    if (func->func_globals != no_globals)
        return FG_LEND_TAKEN;
    func->func_globals = Py_NewRef(view->globals);
    func->func_builtins = Py_NewRef(view->builtins);
    func->func_closure = Py_XNewRef(closure);
    Py_DECREF(no_globals); /* twice what the target had; the first reference stays ours */
    Py_DECREF(no_globals);
    return FG_LEND_LENT;
}

void fg_target_returned(fg_site_owner *owner, PyObject *target)
{
    for (uint32_t i = 0; i < owner->n_targets; i++)
        if (owner->targets[i].func == target) {
            /* One reference is the caller's and one the table's. Somebody else's is a frame's, which reads the globals through the function: left to it. */
            if (Py_REFCNT(target) == 2 && fg_target_rest(target) == FG_OK)
                return;
            owner->targets[i] = (fg_target){0, NULL};
            Py_DECREF(target);
            return;
        }
}

fg_status fg_target_keep(fg_site_owner *owner, uint32_t index, const fg_entry *entry, PyObject *func)
{
    if (index >= owner->n_targets) {
        uint32_t n = owner->n_targets == 0 ? 2 : owner->n_targets;
        while (n <= index)
            n *= 2;
        fg_target *grown = fg_realloc(owner->targets, n * sizeof *grown);
        if (grown == NULL) {
            Py_DECREF(func);
            return FG_ERR_NOMEM;
        }
        memset(grown + owner->n_targets, 0, (n - owner->n_targets) * sizeof *grown);
        owner->targets = grown;
        owner->n_targets = n;
    }
    PyObject *old = owner->targets[index].func;
    owner->targets[index] = (fg_target){entry->uid, func};
    Py_XDECREF(old);
    return FG_OK;
}

int fg_target_move(fg_site_owner *owner, uint32_t index, const fg_entry *entry)
{
    for (uint32_t i = 0; i < owner->n_targets; i++)
        if (owner->targets[i].uid == entry->uid && index < owner->n_targets) {
            fg_target found = owner->targets[i];
            owner->targets[i] = owner->targets[index];
            owner->targets[index] = found;
            return 1;
        }
    return 0;
}

void fg_target_drop_all(fg_site_owner *owner)
{
    fg_target *targets = owner->targets;
    uint32_t n = owner->n_targets;
    owner->targets = NULL;
    owner->n_targets = 0;
    for (uint32_t i = 0; i < n; i++)
        Py_XDECREF(targets[i].func);
    fg_free(targets);
}

static int is_current(const fg_cache_snapshot *snapshot, uint64_t uid)
{
    for (uint32_t i = 0; snapshot != NULL && i < snapshot->n; i++)
        if (((fg_entry *)snapshot->entries[i])->uid == uid)
            return 1;
    return 0;
}

/* One dead row of one owner, its function handed over; NULL: none is left. */
static PyObject *take_dead(fg_site *site)
{
    const fg_cache_snapshot *snapshot = fg_cache_snapshot_peek(&site->cache);
    for (fg_site_owner *owner = site->owners; owner != NULL; owner = owner->next)
        for (uint32_t i = 0; i < owner->n_targets; i++) {
            fg_target *row = &owner->targets[i];
            if (row->uid != 0 && !is_current(snapshot, row->uid)) {
                PyObject *func = row->func;
                *row = (fg_target){0, NULL};
                return func;
            }
        }
    return NULL;
}

void fg_target_purge(fg_site *site)
{
    /* Dropping a function may run anything and change every list, so each step starts from the top. */
    fg_site_take(site);
    for (PyObject *func; (func = take_dead(site)) != NULL;)
        Py_DECREF(func);
    fg_site_drop(site);
}
