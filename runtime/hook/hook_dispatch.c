/* One call through a site.
 *
 *     snapshot ── evaluate ── hit ──► target known? ── yes ──► count, vectorcall
 *         │          │                     └─ no ──► make it, evaluate again
 *         │          ├─ busy ──► plain
 *         └─ none ───┴─ miss ──► allowed to compile? ── no ──► plain (or an error under fullgraph, or by the stance)
 *                                       └─ yes ──► compile ──► guards accept this very view? ──► publish, evaluate again
 *
 * The hit path, and the rules for changing it, are in hook_hit.h.
 */
#define _GNU_SOURCE
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/hook/hook_hit.h"
#include "runtime/hook/hook_intercept.h"

#include <alloca.h>
#include <string.h>
#include <time.h>

enum {
    STACK_INPUTS = 2048, /* by alloca; beyond it from the heap */
    MAX_VAIN = 3,        /* compiles in a row that may give no entry before there are pauses, each twice as long */
    MAX_ROUNDS = 4       /* evaluations of one call: a target to make, an entry that dies under us, … */
};

static fg_compile_fn compile_callback;
static _Thread_local int compiles_of_thread; /* that are running, nested */

void fg_hook_compile_set(fg_compile_fn compile)
{
    compile_callback = compile;
}

/* Out of memory of ours is no reason to fail the user's call: run plain. A Python exception is kept. */
static fg_hit result_of_failure(fg_status st)
{
    return st == FG_ERR_PYTHON ? FG_HIT_ERROR : FG_HIT_PLAIN;
}

__attribute__((noinline)) fg_hit fg_hit_make_target(fg_site_owner *owner, const fg_view *view, fg_entry *entry, uint32_t winner)
{
    PyObject *func = NULL, *type, *value, *traceback;
    if (!owner->shared && fg_target_move(owner, winner, entry))
        return FG_HIT_AGAIN;
    fg_entry_take(entry);
    PyErr_Fetch(&type, &value, &traceback);
    fg_status st = fg_target_make(owner, entry, view, &func);
    if (st == FG_OK) {
        if (owner->shared && (st = fg_target_rest(func)) != FG_OK)
            Py_DECREF(func);
        else
            st = fg_target_keep(owner, winner, entry, func);
    }
    if (st != FG_ERR_PYTHON || type != NULL)
        PyErr_Restore(type, value, traceback);
    fg_entry_drop(entry);
    return st == FG_OK ? FG_HIT_AGAIN : result_of_failure(st);
}

__attribute__((noinline)) fg_hit fg_hit_evaluate_large(fg_site_owner *owner, fg_cache_snapshot *snapshot, const fg_view *view,
                                                       const uint64_t *usable, PyObject **result)
{
    size_t room = (size_t)fg_program_max_inputs(snapshot->program) + 1;
    PyObject **heap = NULL, **inputs;
    if (room <= STACK_INPUTS)
        inputs = alloca(room * sizeof *inputs);
    else if ((inputs = heap = fg_malloc(room * sizeof *inputs)) == NULL)
        return FG_HIT_PLAIN;
    fg_hit hit = fg_hit_evaluate(owner, snapshot, view, usable, inputs + 1, result);
    fg_free(heap);
    return hit;
}

static fg_hit evaluate_any(fg_site_owner *owner, fg_cache_snapshot *snapshot, const fg_view *view, PyObject **result)
{
    uint64_t usable[FG_CACHE_MAX_ENTRIES / 64];
    fg_cache_snapshot_usable(snapshot, usable);
    return fg_hit_evaluate_large(owner, snapshot, view, usable, result);
}

/* Everything but the first evaluation: rounds after a change, with dead entries masked. */
static __attribute__((noinline)) fg_hit evaluate_again(fg_site_owner *owner, const fg_view *view, PyObject **result)
{
    for (int round = 0; round < MAX_ROUNDS; round++) {
        fg_site *site = owner->site;
        fg_cache_snapshot *snapshot = site == NULL ? NULL : fg_cache_snapshot_take(&site->cache);
        if (snapshot == NULL)
            return FG_HIT_NONE;
        fg_hit hit = evaluate_any(owner, snapshot, view, result);
        if (hit == FG_HIT_DONE)
            return hit;
        fg_cache_snapshot_release_locked(snapshot);
        if (hit != FG_HIT_AGAIN)
            return hit;
    }
    return FG_HIT_PLAIN;
}

/* --- misses --- */

static PyObject *name_of(const fg_view *view)
{
    return view->func != NULL && PyFunction_Check(view->func) ? ((PyFunctionObject *)view->func)->func_qualname : Py_None;
}

/* May this miss compile? FG_OK: yes. FG_ERR_BUSY, FG_ERR_LIMIT and FG_ERR_UNSUPPORTED: run plain. FG_ERR_PYTHON: raise. */
static fg_status may_compile(fg_site_owner *owner, const fg_view *view, uint32_t n_entries)
{
    fg_site *site = owner->site;
    if (compile_callback == NULL || site->never || site->misses < site->vain_until || owner->state != FG_RUN_DEFAULT || fg_hook.plain)
        return FG_ERR_UNSUPPORTED;
    if (site->compiling == fg_hook.fork_generation) {
        FG_COUNT(BUSY, 1);
        return FG_ERR_BUSY;
    }
    fg_hook_config_refresh();
    if (n_entries > 0 && fg_hook.stance == FG_STANCE_EAGER_ON_RECOMPILE)
        return FG_ERR_LIMIT;
    if (n_entries > 0 && fg_hook.stance == FG_STANCE_FAIL_ON_RECOMPILE)
        return fg_hook_raise("FailOnRecompile",
                             "%S would be compiled again: none of its %u entries accepts this call, and the stance is fail_on_recompile",
                             name_of(view), (unsigned)n_entries);
    uint32_t limit = owner->recompile_limit ? owner->recompile_limit : fg_hook.recompile_limit;
    if (owner->compiles >= limit) {
        FG_COUNT(LIMITED, 1);
        owner->at_limit = 1;
        if (site->options.fullgraph)
            return fg_hook_raise("RecompileLimitExceeded",
                                 "%S was compiled %u times, which is its recompile_limit, and no entry accepts this call", name_of(view),
                                 (unsigned)owner->compiles);
        return FG_ERR_LIMIT;
    }
    return FG_OK;
}

static void death_of_guarded(void *entry)
{
    fg_entry_invalidate(entry);
}

/* Guards accept the view they were made for: FG_OK; FG_ERR_INVALID: they do not; FG_ERR_PYTHON. */
static fg_status self_check(const fg_entry *entry, const fg_view *view, const fg_site_owner *owner)
{
    int accepts = fg_desc_check(entry->desc, view);
    if (accepts == 1)
        return FG_OK;
    if (accepts < 0)
        return FG_ERR_PYTHON;
    FG_COUNT(SELF_CHECK_FAILED, 1);
    if (!fg_hook.strict)
        return FG_ERR_INVALID;
    PyObject *reasons = fg_desc_explain(entry->desc, view);
    if (reasons != NULL)
        fg_hook_raise("InternalError", "the guards of a new entry of %S refuse the call it was made for: %S",
                      owner == NULL ? Py_None : name_of(view), reasons);
    Py_XDECREF(reasons);
    return FG_ERR_PYTHON;
}

static uint64_t next_uid = 1;

static fg_status publish(fg_site *site, fg_entry *entry)
{
    entry->uid = next_uid++;
    entry->published = 1;
    fg_desc_on_death(entry->desc, death_of_guarded, entry);
    uint64_t evictions = fg_load_relaxed(&site->cache.evictions), swept = fg_load_relaxed(&site->cache.swept);
    fg_store_relaxed(&site->cache.limit, fg_site_cache_size(site)); /* under the GIL */
    fg_status st = fg_cache_add(&site->cache, NULL, &entry->link);
    FG_COUNT(EVICTIONS, fg_load_relaxed(&site->cache.evictions) - evictions);
    FG_COUNT(SWEPT, fg_load_relaxed(&site->cache.swept) - swept);
    if (st == FG_OK)
        FG_COUNT(COMPILED, 1);
    fg_target_purge(site);
    return st;
}

static fg_status check_and_publish(fg_site *site, fg_site_owner *owner, fg_entry *entry, const fg_view *view)
{
    fg_status st = FG_OK;
    const double start = fg_seconds();
    if (entry->code == NULL || entry->desc == NULL)
        return FG_BUG("a compiled entry has code and guards");
    if (view != NULL)
        FG_TRY(self_check(entry, view, owner));
    FG_TRY(publish(site, entry));
fail:
    FG_TIME(PUBLISH, fg_seconds() - start);
    return st;
}

/* The caller's objects, kept while anything may run: defaults, cells and the code can be replaced by what the compiler runs. */
enum { N_ROOTS = 5 };
typedef struct held_view {
    PyObject **slots;
    Py_ssize_t n;
    PyObject *few[16 + N_ROOTS];
} held_view;

static fg_status hold_view(held_view *held, const fg_view *view, PyCodeObject *code)
{
    PyObject *roots[N_ROOTS] = {view->closure, view->globals, view->builtins, view->func, (PyObject *)code};
    if (code == NULL)
        return FG_ERR_UNSUPPORTED;
    held->n = view->n_slots + N_ROOTS;
    held->slots = held->few;
    if (view->n_slots > 16 && (held->slots = fg_malloc((size_t)held->n * sizeof *held->slots)) == NULL)
        return FG_ERR_NOMEM;
    for (Py_ssize_t i = 0; i < held->n; i++)
        held->slots[i] = Py_XNewRef(i < N_ROOTS ? roots[i] : view->slots[i - N_ROOTS]);
    return FG_OK;
}

/* Guards count references, and the call itself must let go of its objects when plain Python would: their owners have them all. */
static void release_slots(held_view *held)
{
    for (; held->n > N_ROOTS; held->n--)
        Py_XDECREF(held->slots[held->n - 1]);
}

static void release_view(held_view *held)
{
    for (Py_ssize_t i = 0; i < held->n; i++)
        Py_XDECREF(held->slots[i]);
    if (held->slots != held->few)
        fg_free(held->slots);
}

static int32_t next_frame_id;

static fg_status compile_entry(fg_site *site, fg_site_owner *owner, const fg_view *view, int n_entries, fg_entry **out)
{
    if (site->frame_id < 0)
        site->frame_id = next_frame_id++;
    fg_compile_request request = {
        .site = site,
        .owner = owner,
        .view = view,
        .code = site->code,
        .options = &site->options,
        .object = owner->object,
        .user = site->user,
        .frame_id = site->frame_id,
        .entry_id = site->next_entry_id++,
        .n_entries = n_entries,
        .pause = site->n_vain < MAX_VAIN ? 0 : UINT64_C(1) << (site->n_vain - MAX_VAIN + 3),
    };
    owner->compiles++;
    FG_COUNT(COMPILES, 1);
    /* The fork generation, so that a child whose parent was compiling in another thread is not locked out for ever. */
    uint32_t outer = site->compiling;
    site->compiling = fg_hook.fork_generation;
    compiles_of_thread++;
    fg_intercept_pause();
    fg_status st = compile_callback(&request, out);
    fg_intercept_resume();
    compiles_of_thread--;
    site->compiling = outer == fg_hook.fork_generation ? outer : 0;
    if (st == FG_ERR_PYTHON && !PyErr_Occurred())
        st = FG_BUG("a compile callback that says FG_ERR_PYTHON sets an exception");
    if (st != FG_ERR_PYTHON && PyErr_Occurred())
        PyErr_Clear();
    if (st == FG_OK && *out == NULL)
        st = FG_ERR_UNSUPPORTED;
    if (st != FG_OK) {
        FG_COUNT(UNSUPPORTED, 1);
        if (st == FG_ERR_UNSUPPORTED && request.forever)
            site->never = 1;
        if (st == FG_ERR_UNSUPPORTED && !site->options.fullgraph) {
            site->n_vain += site->n_vain < 40;
            site->vain_until = site->misses + request.pause + 1;
        }
        return st;
    }
    site->n_vain = 0;
    (*out)->frame_id = request.frame_id;
    (*out)->entry_id = request.entry_id;
    return FG_OK;
}

/* Leave out what has died; gives the number of living entries, all of which refused the call. */
static uint32_t sweep_dead(fg_site *site)
{
    fg_cache_snapshot *snapshot = fg_cache_snapshot_peek(&site->cache);
    uint32_t n_valid = 0, n = snapshot == NULL ? 0 : snapshot->n;
    for (uint32_t i = 0; i < n; i++)
        n_valid += fg_cache_entry_is_valid(snapshot->entries[i]);
    if (n_valid < n) {
        uint64_t swept = fg_load_relaxed(&site->cache.swept);
        /* Failure leaves the dead where they are, masked; the next miss tries again. */
        (void)fg_cache_sweep(&site->cache, NULL);
        FG_COUNT(SWEPT, fg_load_relaxed(&site->cache.swept) - swept);
        fg_target_purge(site);
    }
    return n_valid;
}

/* Which kind of guard refused the call, entry by entry. Only before a compile, beside whose time that of asking is nothing (no view: not asked). */
static void count_refusals(fg_site *site, const fg_view *view, uint32_t n_entries)
{
    fg_cache_snapshot *snapshot = view == NULL ? NULL : fg_cache_snapshot_take(&site->cache);
    uint32_t asked = 0;
    for (uint32_t i = 0; snapshot != NULL && i < snapshot->n; i++) {
        const fg_entry *entry = (const fg_entry *)snapshot->entries[i];
        if (!fg_cache_entry_is_valid(&entry->link))
            continue;
        int kind = fg_desc_refusing_kind(entry->desc, view);
        fg_hook.refused_by[kind >= 0 ? kind : FG_N_GUARDS]++;
        asked++;
    }
    if (snapshot != NULL)
        fg_cache_snapshot_drop(snapshot);
    fg_hook.refused_by[FG_N_GUARDS] += n_entries > asked ? n_entries - asked : 0;
}

/* Misses that may not compile go on for ever, and no new entry brings the program into a better order: do so now and then, ever more rarely. */
enum { MISSES_BEFORE_ORDER = 64 };
static void order_again(fg_site *site)
{
    if (site->misses >= MISSES_BEFORE_ORDER && (site->misses & (site->misses - 1)) == 0)
        (void)fg_cache_rebuild(&site->cache, NULL); /* failure leaves the program as it is */
}

static __attribute__((noinline)) fg_outcome dispatch_miss(fg_site_owner *owner, const fg_view *view, PyObject **result)
{
    PyObject *type, *value, *traceback;
    fg_site *site = owner->site;
    fg_entry *entry = NULL;
    held_view held = {.slots = held.few};
    FG_COUNT(MISSES, 1);
    site->misses++;
    fg_site_take(site);
    PyErr_Fetch(&type, &value, &traceback);
    /* May run destructors; the view stands, because its maker holds what it took from defaults (hook_bind.h). */
    uint32_t n_entries = sweep_dead(site);
    FG_COUNT(REFUSALS, n_entries);
    fg_status st = owner->site == site ? may_compile(owner, view, n_entries) : FG_ERR_BUSY;
    if (st == FG_OK)
        st = hold_view(&held, view, site->code);
    if (n_entries > 0)
        count_refusals(site, st == FG_OK ? view : NULL, n_entries);
    if (n_entries > 0 && (st == FG_ERR_LIMIT || st == FG_ERR_UNSUPPORTED))
        order_again(site);
    if (st == FG_OK)
        st = compile_entry(site, owner, view, (int)n_entries, &entry);
    release_slots(&held);
    if (st == FG_OK)
        st = check_and_publish(site, owner, entry, view);
    FG_TRACE(HOOK, "miss of site %p: %s", (void *)site, fg_status_text(st));
    if (st != FG_ERR_PYTHON)
        PyErr_Restore(type, value, traceback);
    else {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
    }
    fg_outcome outcome = st == FG_ERR_PYTHON ? FG_OUTCOME_ERROR : FG_OUTCOME_PLAIN;
    if (st == FG_OK) {
        fg_hit hit = owner->site == site ? evaluate_again(owner, view, result) : FG_HIT_PLAIN;
        if (hit == FG_HIT_DONE) {
            outcome = FG_OUTCOME_HIT;
        } else if (hit == FG_HIT_ERROR) {
            outcome = FG_OUTCOME_ERROR;
        } else if (hit == FG_HIT_NONE && fg_cache_entry_is_valid(&entry->link)) {
            /* Its description accepts the view and the program does not (or an impure guard changed its mind): it would never be hit. */
            FG_COUNT(SELF_CHECK_FAILED, 1);
            fg_entry_invalidate(entry);
        }
    }
    if (entry != NULL)
        fg_entry_drop(entry);
    release_view(&held);
    fg_site_drop(site);
    return outcome;
}

/* Another thread compiles here, and the user wants to have what it makes rather than a plain run: look again when it is done. FG_HIT_NONE: it made
 * nothing for this call, or there was nothing to wait for. */
static __attribute__((noinline)) fg_hit wait_for_other(fg_site_owner *owner, const fg_view *view, PyObject **result)
{
    fg_site *site = owner->site;
    /* A thread that compiles itself (its backend calls gates) waits for nobody: the other one might wait for it. */
    if (site->compiling != fg_hook.fork_generation || compiles_of_thread > 0)
        return FG_HIT_NONE;
    fg_hook_config_refresh();
    if (!fg_hook.wait_for_compile)
        return FG_HIT_NONE;
    fg_hit hit = FG_HIT_NONE;
    const double end = fg_seconds() + fg_hook.wait_for_compile_limit;
    struct timespec nap = {0, 100 * 1000};
    fg_site_take(site);
    while (site->compiling == fg_hook.fork_generation && hit == FG_HIT_NONE) {
        PyThreadState *thread = PyEval_SaveThread();
        nanosleep(&nap, NULL);
        PyEval_RestoreThread(thread);
        if (nap.tv_nsec < 4 * 1000 * 1000)
            nap.tv_nsec *= 2;
        if (PyErr_CheckSignals() < 0)
            hit = FG_HIT_ERROR;
        else if (fg_seconds() >= end)
            hit = FG_HIT_PLAIN;
    }
    if (hit == FG_HIT_NONE && owner->site == site)
        hit = evaluate_again(owner, view, result);
    fg_site_drop(site);
    return hit;
}

static fg_outcome outcome_of(fg_hit hit)
{
    return hit == FG_HIT_DONE ? FG_OUTCOME_HIT : hit == FG_HIT_ERROR ? FG_OUTCOME_ERROR : FG_OUTCOME_PLAIN;
}

__attribute__((noinline)) fg_outcome fg_site_dispatch_rest(fg_site_owner *owner, const fg_view *view, fg_hit hit, PyObject **result)
{
    if (hit == FG_HIT_AGAIN)
        hit = evaluate_again(owner, view, result);
    if (hit == FG_HIT_NONE && owner->site != NULL)
        hit = wait_for_other(owner, view, result);
    return hit == FG_HIT_NONE && owner->site != NULL ? dispatch_miss(owner, view, result) : outcome_of(hit);
}

fg_outcome fg_site_dispatch(fg_site_owner *owner, const fg_view *view, PyObject **result)
{
    fg_hit hit = fg_site_hit(owner, view, result);
    return FG_LIKELY(hit == FG_HIT_DONE) ? FG_OUTCOME_HIT : fg_site_dispatch_rest(owner, view, hit, result);
}

fg_status fg_site_find(fg_site *site, const fg_view *view, fg_entry **out)
{
    *out = NULL;
    fg_cache_snapshot *snapshot = fg_cache_snapshot_take(&site->cache);
    if (snapshot == NULL)
        return FG_OK;
    fg_status st = FG_OK;
    uint64_t usable[FG_CACHE_MAX_ENTRIES / 64];
    fg_cache_snapshot_usable(snapshot, usable);
    fg_eval eval = {0};
    PyObject **inputs = fg_malloc(((size_t)fg_program_max_inputs(snapshot->program) + 1) * sizeof *inputs);
    if (inputs == NULL) {
        st = FG_ERR_NOMEM;
        goto fail;
    }
    fg_eval_result what = fg_program_eval(snapshot->program, view, snapshot->recency, usable, inputs + 1, &eval);
    if (what == FG_EVAL_HIT) {
        fg_entry *entry = (fg_entry *)snapshot->entries[eval.winner];
        fg_entry_take(entry);
        fg_eval_release(&eval);
        *out = entry;
    }
    st = what == FG_EVAL_ERROR ? FG_ERR_PYTHON : what == FG_EVAL_BUSY ? FG_ERR_BUSY : FG_OK;
fail:
    fg_free(inputs);
    fg_cache_snapshot_release_locked(snapshot);
    return st;
}

fg_status fg_site_publish(fg_site *site, fg_entry *entry, const fg_view *view)
{
    fg_site_take(site);
    if (entry->entry_id < 0) {
        if (site->frame_id < 0)
            site->frame_id = next_frame_id++;
        entry->frame_id = site->frame_id;
        entry->entry_id = site->next_entry_id++;
    }
    fg_status st = check_and_publish(site, NULL, entry, view);
    fg_entry_drop(entry);
    fg_site_drop(site);
    return st;
}
