/* Purpose:   the hit path of a call through a site, inline in whoever calls.
 * Model:     the current snapshot is counted, its program evaluated, the winner's target called with the program's inputs.
 * Invariants:
 * 1. Between a successful fg_program_eval and the vectorcall nothing may run Python, allocate objects or drop a reference: what was checked is
 *    what is used. So whatever needs one of these is done first, and the evaluation repeated.
 * 2. After an evaluation (impure guards run Python) only what is counted here may be touched: the snapshot. The owner is kept by the caller. The
 *    owner's site may have changed; recency stamps on the wrong site would do no harm.
 * 3. The hit path allocates nothing and stores only to the snapshot's count, the entry's hits, and on change to recency and order.
 * 4. It is inlined because each C frame between the interpreter and the target costs more than its instructions: deep calls of the target overflow
 *    the processor's stack of return addresses, and every frame of ours is then a wrong prediction on the way back.
 * Threading: the GIL is held.
 * Ownership: the snapshot's count is used up by FG_HIT_DONE and dropped otherwise.
 */
#ifndef FG_HOOK_HIT_H
#define FG_HOOK_HIT_H

#include "runtime/hook/hook_handover.h"
#include "runtime/hook/hook_site.h"

enum { FG_HIT_FEW_INPUTS = 12 }; /* in the frame of the hit path */

typedef enum fg_hit { FG_HIT_DONE, FG_HIT_AGAIN, FG_HIT_NONE, FG_HIT_PLAIN, FG_HIT_ERROR } fg_hit;

/* Make the winner's target and keep it with the owner. Runs the allocator and so perhaps the
 * collector. */
fg_hit fg_hit_make_target(fg_site_owner *owner, const fg_view *view, fg_entry *entry, uint32_t winner);
/* As fg_hit_evaluate, with room for inputs of its own. */
fg_hit fg_hit_evaluate_large(fg_site_owner *owner, fg_cache_snapshot *snapshot, const fg_view *view, const uint64_t *usable,
                             PyObject **result);
/* Everything but a hit at the first evaluation: hit is what that one gave. */
fg_outcome fg_site_dispatch_rest(fg_site_owner *owner, const fg_view *view, fg_hit hit, PyObject **result);

static inline PyObject *fg_hit_target(const fg_site_owner *owner, const fg_view *view, const fg_entry *entry, uint32_t winner,
                                      fg_lend *lend)
{
    if (FG_LIKELY(winner < owner->n_targets) && FG_LIKELY(owner->targets[winner].uid == entry->uid)) {
        PyObject *func = owner->targets[winner].func;
        /* A gate has one function; a segment is run for any, one at a time. */
        if (!owner->shared || (*lend = fg_target_lend(func, view)) != FG_LEND_TAKEN)
            return func;
    }
    return NULL;
}

/* Evaluate with room for the inputs and run the winner. usable as in fg_program_eval. */
static inline __attribute__((always_inline)) fg_hit fg_hit_evaluate(fg_site_owner *owner, fg_cache_snapshot *snapshot, const fg_view *view,
                                                                    const uint64_t *usable, PyObject **inputs, PyObject **result)
{
    fg_eval eval = {0};
    fg_eval_result what = fg_program_eval(snapshot->program, view, snapshot->recency, usable, inputs, &eval);
    if (FG_UNLIKELY(what != FG_EVAL_HIT)) {
        if (what == FG_EVAL_BUSY)
            FG_COUNT(BUSY, 1);
        return what == FG_EVAL_MISS ? FG_HIT_NONE : what == FG_EVAL_BUSY ? FG_HIT_PLAIN : FG_HIT_ERROR;
    }
    fg_entry *entry = (fg_entry *)snapshot->entries[eval.winner];
    if (FG_UNLIKELY(!fg_cache_entry_is_valid(&entry->link))) {
        fg_eval_release(&eval);
        return FG_HIT_AGAIN;
    }
    fg_lend lend = FG_LEND_TAKEN;
    PyObject *target = fg_hit_target(owner, view, entry, eval.winner, &lend);
    if (FG_UNLIKELY(target == NULL)) {
        fg_hit made = fg_hit_make_target(owner, view, entry, eval.winner);
        if (eval.held != NULL)
            fg_eval_release(&eval);
        return made;
    }
    if (FG_UNLIKELY(fg_cache_touch(&owner->site->cache, &entry->link)))
        fg_cache_recency_touch(snapshot, eval.winner);
    entry->hits++;
    /* The target may be replaced in the owner's table while it runs. */
    Py_INCREF(target);
    const fg_straight *straight = entry->straight;
    if (straight != NULL) {
        /* Its entry, and so the snapshot, must outlive it. */
        *result = fg_straight_run(straight, target, inputs);
        fg_cache_snapshot_release_locked(snapshot);
    } else {
        /* The snapshot is not needed any more; but if ours is its last count, dropping it frees entries, which must wait until the target took
         * its inputs. */
        int last = fg_load_relaxed(&snapshot->count) == 1;
        if (FG_LIKELY(!last))
            fg_cache_snapshot_release_locked(snapshot);
        if (FG_UNLIKELY(entry->is_host) && view->n_lent > 0)
            fg_handover_inputs(owner->object, view, inputs, eval.n_inputs);
        *result = ((PyFunctionObject *)target)->vectorcall(target, inputs, eval.n_inputs | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        if (FG_UNLIKELY(last))
            fg_cache_snapshot_release_locked(snapshot);
    }
    if (FG_UNLIKELY(eval.held != NULL))
        fg_eval_release(&eval);
    if (FG_UNLIKELY(lend == FG_LEND_LENT))
        fg_target_returned(owner, target);
    Py_DECREF(target);
    return FG_HIT_DONE;
}

static inline __attribute__((always_inline)) fg_hit fg_site_hit(fg_site_owner *owner, const fg_view *view, PyObject **result)
{
    fg_cache_snapshot *snapshot = fg_cache_snapshot_peek(&owner->site->cache);
    if (FG_UNLIKELY(snapshot == NULL))
        return FG_HIT_NONE;
    fg_hit hit;
    fg_cache_snapshot_retain_locked(snapshot);
    if (FG_LIKELY(fg_program_max_inputs(snapshot->program) <= FG_HIT_FEW_INPUTS)) {
        PyObject *inputs[FG_HIT_FEW_INPUTS + 1];
        hit = fg_hit_evaluate(owner, snapshot, view, NULL, inputs + 1, result);
    } else {
        hit = fg_hit_evaluate_large(owner, snapshot, view, NULL, result);
    }
    if (FG_UNLIKELY(hit != FG_HIT_DONE))
        fg_cache_snapshot_release_locked(snapshot);
    return hit;
}

#endif
