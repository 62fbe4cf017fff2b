/* Purpose:   a lock-free cache of a few entries under one key, evicted by least recent use, with a merged program over all of them.
 * Model:     a cache points to its current snapshot, which never changes once published: entries in order of addition, and an opaque program
 *            that the owner builds from them. A writer builds a new snapshot and publishes it with one compare-and-swap; a loser starts
 *            again from what the winner published. An entry is a struct of the owner's with fg_cache_entry as its first member.
 * Invariants: snapshot->n <= the limit of the cache; an entry is in one cache at most.
 *            A snapshot and each of its entries live while the snapshot is current, or counted by somebody, or inside a section.
 * Threading: two modes, chosen at fg_cache_init. FG_CACHE_LOCKED: every call is under one outer lock (the GIL), which may be given up only
 *            inside the callbacks; counts are plain. FG_CACHE_THREADS: any threads, each with a reader of its own (cache/epoch.h).
 * Ownership: the cache counts its snapshot, a snapshot counts its entries and owns its program. Entries are freed by their own callback.
 *
 * Ordering guarantees (THREADS mode; in LOCKED mode the outer lock gives all of them):
 *   A. Everything written to an entry before fg_cache_add is seen by every look-up that returns it.
 *   B. Once fg_cache_add, fg_cache_remove or fg_cache_reset returned, a look-up that begins afterwards (in the sense of happens-before) sees
 *      its effect or that of a later writer.
 *   C. Once fg_cache_entry_invalidate returned, no look-up that begins afterwards returns the entry. A look-up that was already running
 *      may; so callers whose guards must hold at the call re-read validity last, which fg_cache_lookup does.
 *   D. What one look-up sees is one snapshot: never a mixture of two.
 *   E. An entry that a look-up returned is counted for the caller: it outlives eviction, invalidation and reset until it is dropped.
 *   F. Recency is approximate: stamps are relaxed, two look-ups at the same time may be seen in either order. Only the choice of the victim
 *      and the order of preference depend on it, never the truth of an answer.
 * Progress: look-ups are wait-free but for the owner's match function; invalidation is wait-free and allocates nothing; writers are
 *   lock-free (a writer starts again only because another one succeeded). No call blocks.
 */
#ifndef FG_CACHE_CACHE_H
#define FG_CACHE_CACHE_H

#include "cache/epoch.h"
#include "runtime/base/atomics.h"
#include "runtime/base/status.h"
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FG_CACHE_MAX_ENTRIES 4096 /* indices are 16 bits wide and what is sorted by recency is on the stack */

typedef enum fg_cache_mode { FG_CACHE_LOCKED, FG_CACHE_THREADS } fg_cache_mode;

typedef struct fg_cache_entry fg_cache_entry;
struct fg_cache_entry {
    FG_ATOMIC(uint32_t) count;
    FG_ATOMIC(uint8_t) valid;   /* goes from 1 to 0 once */
    uint8_t threads;            /* the mode of its cache */
    FG_ATOMIC(uint8_t) claimed; /* 1 once added: an entry is added once in its life */
    FG_ATOMIC(uint64_t) stamp;  /* the cache's clock when it was last chosen */
    void (*free)(fg_cache_entry *entry);
};

typedef struct fg_cache_snapshot {
    fg_epoch_node retired; /* first member */
    FG_ATOMIC(uint32_t) count;
    uint32_t n;
    uint64_t serial; /* 1, 2, 3 … in order of publication */
    void *program;   /* NULL if the cache builds none */
    const struct fg_cache_ops *ops;
    uint64_t *recency; /* per entry, its stamp when published; LOCKED mode brings the chosen one up to date */
    fg_cache_entry *entries[];
} fg_cache_snapshot;

typedef struct fg_cache_ops {
    /* Build the program of n entries (none of the calls for n = 0). old is the program that it takes the place of, or NULL. May be NULL. */
    fg_status (*build)(void *owner, fg_cache_entry *const *entries, size_t n, void *old, void **out);
    void (*program_free)(void *program);
    /* fg_cache_lookup: index of the entry that matches and is not in `skip` (a bitmap of n bits), or -1. */
    ptrdiff_t (*match)(const fg_cache_snapshot *snapshot, const uint64_t *skip, void *query);
} fg_cache_ops;

typedef struct fg_cache {
    FG_ATOMIC(fg_cache_snapshot *) current; /* NULL: empty */
    FG_ATOMIC(uint64_t) clock;
    FG_ATOMIC(uint32_t) limit;
    uint32_t mode;
    const fg_cache_ops *ops;
    void *owner;
    fg_epoch *epoch; /* THREADS mode */
    FG_ATOMIC(uint64_t) serial;
    FG_ATOMIC(uint64_t) evictions; /* by the limit */
    FG_ATOMIC(uint64_t) swept;     /* invalid entries that a rebuild left out */
} fg_cache;

/* epoch is needed in THREADS mode and must outlive the cache. limit 0 counts as 1. */
void fg_cache_init(fg_cache *cache, fg_cache_mode mode, const fg_cache_ops *ops, void *owner, fg_epoch *epoch, uint32_t limit);
/* Nobody may use the cache any more. */
void fg_cache_fini(fg_cache *cache, fg_epoch_reader *reader);

/* Prepare an entry: count 1 for the caller, valid, never chosen. */
void fg_cache_entry_init(fg_cache_entry *entry, fg_cache_mode mode, void (*free)(fg_cache_entry *entry));

/* Publish the entry as the most recently used one; invalid entries leave, and the least recently used ones beyond the limit. The cache takes a
 * count of its own. On failure (FG_ERR_NOMEM, what build gave, FG_ERR_INVALID for an entry added before) nothing changed. reader is NULL in
 * LOCKED mode. */
fg_status fg_cache_add(fg_cache *cache, fg_epoch_reader *reader, fg_cache_entry *entry);
/* Rebuild without invalid entries; nothing to do is FG_OK. */
fg_status fg_cache_sweep(fg_cache *cache, fg_epoch_reader *reader);
/* The same even if nobody leaves: the program is built again, with what the old one has learnt. An empty cache stays as it is. */
fg_status fg_cache_rebuild(fg_cache *cache, fg_epoch_reader *reader);
/* Invalidate one entry and sweep. The entry is never returned again even if the sweep runs out of memory. */
fg_status fg_cache_remove(fg_cache *cache, fg_epoch_reader *reader, fg_cache_entry *entry);
/* Drop all entries: no allocation, no failure. They are invalidated too, so that who still counts one sees it. */
void fg_cache_reset(fg_cache *cache, fg_epoch_reader *reader);
/* A smaller limit evicts at once. */
fg_status fg_cache_limit_set(fg_cache *cache, fg_epoch_reader *reader, uint32_t limit);

/* The most recently used valid entry that ops->match accepts, counted for the caller and stamped; NULL: none. */
fg_cache_entry *fg_cache_lookup(fg_cache *cache, fg_epoch_reader *reader, void *query);

/* The current snapshot, counted; NULL: empty. In THREADS mode only inside a section of reader. */
fg_cache_snapshot *fg_cache_snapshot_take(fg_cache *cache);
void fg_cache_snapshot_drop(fg_cache_snapshot *snapshot);
/* The snapshot's index of the entry, or -1. */
ptrdiff_t fg_cache_snapshot_find(const fg_cache_snapshot *snapshot, const fg_cache_entry *entry);
/* Bitmap of entries that are valid now, (n + 63) / 64 words. */
void fg_cache_snapshot_usable(const fg_cache_snapshot *snapshot, uint64_t *words);
/* Indices by recency now, most recent first; room for n. */
void fg_cache_snapshot_order(const fg_cache_snapshot *snapshot, uint16_t *order);

/* Check every invariant that can be checked from outside; FG_ERR_BUG names the first broken one. For tests and debug builds. */
fg_status fg_cache_verify(fg_cache *cache);

/* --- the hot part, inline --- */

/* From any thread, also inside a collector or a destructor: one store (guarantee C). The release pairs with the acquire in
 * fg_cache_entry_is_valid, so that who sees 0 sees what led to it. */
static inline void fg_cache_entry_invalidate(fg_cache_entry *entry)
{
    fg_store_release(&entry->valid, (uint8_t)0);
}

static inline int fg_cache_entry_is_valid(const fg_cache_entry *entry)
{
    return fg_load_acquire(&entry->valid);
}

static inline void fg_cache_entry_take(fg_cache_entry *entry)
{
    /* Relaxed: whoever takes holds a count already, or is in a section, so the entry cannot be on its way out. */
    if (entry->threads)
        fg_add_relaxed(&entry->count, 1u);
    else
        fg_store_relaxed(&entry->count, fg_load_relaxed(&entry->count) + 1u);
}

static inline void fg_cache_entry_drop(fg_cache_entry *entry)
{
    uint32_t before;
    if (entry->threads) {
        /* Release: my uses happen before the free; acquire: the last dropper sees all of them. */
        before = fg_sub_acq_rel(&entry->count, 1u);
    } else {
        before = fg_load_relaxed(&entry->count);
        fg_store_relaxed(&entry->count, before - 1u);
    }
    if (before == 1)
        entry->free(entry);
}

/* Note that the entry was chosen: stores only if another one was chosen last. Relaxed by guarantee F. */
static inline int fg_cache_touch(fg_cache *cache, fg_cache_entry *entry)
{
    uint64_t now = fg_load_relaxed(&cache->clock);
    if (__builtin_expect(fg_load_relaxed(&entry->stamp) == now, 1))
        return 0;
    if (cache->mode == FG_CACHE_THREADS)
        now = fg_add_relaxed(&cache->clock, UINT64_C(1));
    else
        fg_store_relaxed(&cache->clock, now + 1);
    fg_store_relaxed(&entry->stamp, now + 1);
    return 1;
}

/* LOCKED mode only: look at the current snapshot without counting it; good until the lock is given up. */
static inline fg_cache_snapshot *fg_cache_snapshot_peek(fg_cache *cache)
{
    return fg_load_acquire(&cache->current);
}

/* LOCKED mode only: after a touch that changed something. One store, where an order of all would have to be moved. */
static inline void fg_cache_recency_touch(fg_cache_snapshot *snapshot, uint32_t winner)
{
    snapshot->recency[winner] = fg_load_relaxed(&snapshot->entries[winner]->stamp);
}

static inline void fg_cache_snapshot_retain_locked(fg_cache_snapshot *snapshot)
{
    fg_store_relaxed(&snapshot->count, fg_load_relaxed(&snapshot->count) + 1u);
}

static inline void fg_cache_snapshot_release_locked(fg_cache_snapshot *snapshot)
{
    uint32_t before = fg_load_relaxed(&snapshot->count);
    if (__builtin_expect(before == 1, 0))
        fg_cache_snapshot_drop(snapshot);
    else
        fg_store_relaxed(&snapshot->count, before - 1u);
}

#ifdef __cplusplus
}
#endif

#endif
