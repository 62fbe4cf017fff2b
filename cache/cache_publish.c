/* Writers. Each one does the same three steps in a loop:
 *
 *     1. take the current snapshot (counted, so that it stays while the program is built);
 *     2. choose who stays, build the successor;
 *     3. compare-and-swap `current` from 1 to 2: success retires the old snapshot, failure throws ours away and starts again.
 *
 * Entries carry one count per snapshot they are in, so an eviction is nothing but not being copied. The old snapshot is given up last:
 * dropping it may free entries, and their callbacks may run anything, another writer of this cache included.
 *
 * Rules for changing this file:
 * 1. Nothing after the CAS may fail.
 * 2. Between take and CAS the build callback may run anything (in LOCKED mode the lock may change hands): read nothing from the cache that was read before
 *    it, except through the counted snapshot.
 * 3. Survivors keep their relative order.
 */
#include "cache/cache.h"
#include "runtime/base/alloc.h"
#include "runtime/base/log.h"

#include <string.h>

void fg_cache_init(fg_cache *cache, fg_cache_mode mode, const fg_cache_ops *ops, void *owner, fg_epoch *epoch, uint32_t limit)
{
    FG_ASSERT(mode == FG_CACHE_LOCKED || epoch != NULL);
    memset(cache, 0, sizeof *cache);
    cache->mode = mode;
    cache->ops = ops;
    cache->owner = owner;
    cache->epoch = epoch;
    fg_store_relaxed(&cache->clock, UINT64_C(1)); /* new entries have stamp 0: never chosen */
    fg_store_relaxed(&cache->limit, limit == 0 ? 1 : limit > FG_CACHE_MAX_ENTRIES ? FG_CACHE_MAX_ENTRIES : limit);
}

void fg_cache_entry_init(fg_cache_entry *entry, fg_cache_mode mode, void (*free)(fg_cache_entry *entry))
{
    memset(entry, 0, sizeof *entry);
    fg_store_relaxed(&entry->count, 1u);
    fg_store_relaxed(&entry->valid, (uint8_t)1);
    entry->threads = mode == FG_CACHE_THREADS;
    entry->free = free;
}

static int is_threads(const fg_cache *cache)
{
    return cache->mode == FG_CACHE_THREADS;
}

static void snapshot_free(fg_cache_snapshot *snapshot)
{
    if (snapshot->program != NULL)
        snapshot->ops->program_free(snapshot->program);
    for (uint32_t i = 0; i < snapshot->n; i++)
        fg_cache_entry_drop(snapshot->entries[i]);
    fg_free(snapshot);
}

static void snapshot_free_node(fg_epoch_node *node)
{
    fg_cache_snapshot_drop((fg_cache_snapshot *)node);
}

fg_cache_snapshot *fg_cache_snapshot_take(fg_cache *cache)
{
    /* seq_cst: step 2 of the proof in cache/epoch.c. */
    fg_cache_snapshot *snapshot = fg_load_seq_cst(&cache->current);
    if (snapshot != NULL) {
        if (is_threads(cache))
            fg_add_relaxed(&snapshot->count, 1u); /* the section keeps it above 0 */
        else
            fg_cache_snapshot_retain_locked(snapshot);
    }
    return snapshot;
}

void fg_cache_snapshot_drop(fg_cache_snapshot *snapshot)
{
    /* Acquire and release as in fg_cache_entry_drop; this path is rare in LOCKED mode too, so one form serves both. */
    if (fg_sub_acq_rel(&snapshot->count, 1u) == 1)
        snapshot_free(snapshot);
}

/* Give up the cache's count of an unlinked snapshot: at once under the lock, after the readers' sections otherwise. */
static void snapshot_retire(fg_cache *cache, fg_cache_snapshot *snapshot)
{
    if (is_threads(cache))
        fg_epoch_retire(cache->epoch, &snapshot->retired, snapshot_free_node);
    else
        fg_cache_snapshot_drop(snapshot);
}

static fg_cache_snapshot *snapshot_new(uint32_t n, const fg_cache_ops *ops)
{
    fg_cache_snapshot *snapshot = fg_calloc(1, sizeof *snapshot + n * (sizeof(fg_cache_entry *) + sizeof(uint64_t)));
    if (snapshot != NULL) {
        fg_store_relaxed(&snapshot->count, 1u);
        snapshot->ops = ops;
        snapshot->recency = (uint64_t *)&snapshot->entries[n];
    }
    return snapshot;
}

typedef struct plan {
    uint32_t n_kept, n_evicted, n_swept;
    uint8_t keep[FG_CACHE_MAX_ENTRIES];
} plan;

/* Who stays, if `room` old entries may: valid ones, the most recently used first. */
static void plan_make(plan *p, const fg_cache_snapshot *old, uint32_t room)
{
    uint16_t order[FG_CACHE_MAX_ENTRIES];
    memset(p, 0, sizeof *p);
    if (old == NULL)
        return;
    fg_cache_snapshot_order(old, order);
    for (uint32_t k = 0; k < old->n; k++) {
        uint16_t i = order[k];
        if (!fg_cache_entry_is_valid(old->entries[i]))
            p->n_swept++;
        else if (p->n_kept == room)
            p->n_evicted++;
        else
            p->keep[i] = 1, p->n_kept++;
    }
}

/* Steps 2 of a writer: the successor of old. NULL in *out is the empty cache. */
static fg_status build_successor(fg_cache *cache, const plan *p, const fg_cache_snapshot *old, fg_cache_entry *added,
                                 fg_cache_snapshot **out)
{
    fg_status st = FG_OK;
    uint32_t n = p->n_kept + (added != NULL);
    *out = NULL;
    if (n == 0)
        return FG_OK;
    fg_cache_snapshot *next = snapshot_new(n, cache->ops);
    if (next == NULL)
        return FG_ERR_NOMEM;
    for (uint32_t i = 0; old != NULL && i < old->n; i++)
        if (p->keep[i])
            next->entries[next->n++] = old->entries[i];
    if (added != NULL)
        next->entries[next->n++] = added;
    for (uint32_t i = 0; i < next->n; i++) {
        fg_cache_entry_take(next->entries[i]);
        next->recency[i] = fg_load_relaxed(&next->entries[i]->stamp);
    }
    if (cache->ops->build != NULL)
        FG_TRY(cache->ops->build(cache->owner, next->entries, next->n, old != NULL ? old->program : NULL, &next->program));
    *out = next;
    return FG_OK;
fail:
    fg_cache_snapshot_drop(next);
    return st;
}

/* Replace `old` by `next`; the caller has a count of old, and next's only one. On failure next is given up. */
static int publish(fg_cache *cache, fg_cache_snapshot *old, fg_cache_snapshot *next, const plan *p)
{
    fg_cache_snapshot *expected = old;
    if (next != NULL)
        next->serial = fg_add_relaxed(&cache->serial, UINT64_C(1)) + 1;
    /* seq_cst: step 4 of the proof in cache/epoch.c; its release half publishes the entries (guarantee A). No ABA: old is counted, so its address
     * cannot be reused before we are done. NULL has no count: an empty cache replaced by an empty one differs in nothing. */
    if (!fg_cas_seq_cst(&cache->current, &expected, next)) {
        if (next != NULL)
            fg_cache_snapshot_drop(next);
        return 0;
    }
    FG_TRACE(CACHE, "%p: %u entries, %u evicted, %u swept", (void *)cache, next ? next->n : 0, p->n_evicted, p->n_swept);
    fg_add_relaxed(&cache->evictions, (uint64_t)p->n_evicted);
    fg_add_relaxed(&cache->swept, (uint64_t)p->n_swept);
    if (old != NULL)
        snapshot_retire(cache, old);
    return 1;
}

static fg_cache_snapshot *take_in_section(fg_cache *cache, fg_epoch_reader *reader)
{
    if (!is_threads(cache))
        return fg_cache_snapshot_take(cache);
    fg_epoch_enter(reader);
    fg_cache_snapshot *snapshot = fg_cache_snapshot_take(cache);
    fg_epoch_exit(reader);
    return snapshot;
}

/* The loop of every writer. Nothing is done when nobody is added, everybody would stay and it need not be. */
static fg_status update(fg_cache *cache, fg_epoch_reader *reader, fg_cache_entry *added, int needed)
{
    for (;;) {
        plan p;
        fg_cache_snapshot *old = take_in_section(cache, reader), *next = NULL;
        plan_make(&p, old, fg_load_relaxed(&cache->limit) - (added != NULL));
        if (added == NULL && (old == NULL || (p.n_kept == old->n && !needed))) {
            if (old != NULL)
                fg_cache_snapshot_drop(old);
            return FG_OK;
        }
        fg_status st = build_successor(cache, &p, old, added, &next);
        int done = st != FG_OK || publish(cache, old, next, &p);
        if (old != NULL)
            fg_cache_snapshot_drop(old);
        if (done)
            return st;
    }
}

fg_status fg_cache_add(fg_cache *cache, fg_epoch_reader *reader, fg_cache_entry *entry)
{
    uint8_t expected = 0;
    if (entry->threads != is_threads(cache) || !fg_cas_acq_rel(&entry->claimed, &expected, (uint8_t)1))
        return FG_ERR_INVALID;
    fg_cache_touch(cache, entry);
    fg_status st = update(cache, reader, entry, 1);
    if (st != FG_OK)
        fg_store_release(&entry->claimed, (uint8_t)0);
    return st;
}

fg_status fg_cache_sweep(fg_cache *cache, fg_epoch_reader *reader)
{
    return update(cache, reader, NULL, 0);
}

fg_status fg_cache_rebuild(fg_cache *cache, fg_epoch_reader *reader)
{
    return update(cache, reader, NULL, 1);
}

fg_status fg_cache_remove(fg_cache *cache, fg_epoch_reader *reader, fg_cache_entry *entry)
{
    fg_cache_entry_invalidate(entry);
    return update(cache, reader, NULL, 0);
}

void fg_cache_reset(fg_cache *cache, fg_epoch_reader *reader)
{
    static const plan nobody;
    for (;;) {
        fg_cache_snapshot *old = take_in_section(cache, reader);
        if (old == NULL)
            return;
        int done = publish(cache, old, NULL, &nobody);
        if (done)
            for (uint32_t i = 0; i < old->n; i++)
                fg_cache_entry_invalidate(old->entries[i]);
        fg_cache_snapshot_drop(old);
        if (done)
            return;
    }
}

fg_status fg_cache_limit_set(fg_cache *cache, fg_epoch_reader *reader, uint32_t limit)
{
    fg_store_relaxed(&cache->limit, limit == 0 ? 1 : limit > FG_CACHE_MAX_ENTRIES ? FG_CACHE_MAX_ENTRIES : limit);
    return update(cache, reader, NULL, 0);
}

void fg_cache_fini(fg_cache *cache, fg_epoch_reader *reader)
{
    fg_cache_reset(cache, reader);
}

fg_status fg_cache_verify(fg_cache *cache)
{
    fg_cache_snapshot *snapshot = fg_load_acquire(&cache->current);
    if (snapshot == NULL)
        return FG_OK;
    if (snapshot->n == 0 || snapshot->n > FG_CACHE_MAX_ENTRIES)
        return FG_BUG("a published snapshot has entries, and not too many");
    if (fg_load_relaxed(&snapshot->count) == 0)
        return FG_BUG("the current snapshot is counted");
    if (cache->ops->build != NULL && snapshot->program == NULL)
        return FG_BUG("a snapshot has a program");
    for (uint32_t i = 0; i < snapshot->n; i++) {
        if (fg_load_relaxed(&snapshot->entries[i]->count) == 0)
            return FG_BUG("entries are counted");
        if (fg_cache_snapshot_find(snapshot, snapshot->entries[i]) != (ptrdiff_t)i)
            return FG_BUG("an entry is in a snapshot once");
    }
    return FG_OK;
}
