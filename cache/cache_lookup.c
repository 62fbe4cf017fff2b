#include "cache/cache.h"

#include <string.h>

enum { WORDS = FG_CACHE_MAX_ENTRIES / 64 };

void fg_cache_snapshot_usable(const fg_cache_snapshot *snapshot, uint64_t *words)
{
    memset(words, 0, (snapshot->n + 63) / 64 * sizeof *words);
    for (uint32_t i = 0; i < snapshot->n; i++)
        if (fg_cache_entry_is_valid(snapshot->entries[i]))
            words[i / 64] |= UINT64_C(1) << (i % 64);
}

void fg_cache_snapshot_order(const fg_cache_snapshot *snapshot, uint16_t *order)
{
    uint64_t stamps[FG_CACHE_MAX_ENTRIES];
    for (uint32_t i = 0; i < snapshot->n; i++) {
        /* One load each: a stamp that moves while we sort would make the sort inconsistent. Relaxed by guarantee F. */
        uint64_t stamp = stamps[i] = fg_load_relaxed(&snapshot->entries[i]->stamp);
        uint32_t at = i;
        for (; at > 0 && stamps[order[at - 1]] < stamp; at--)
            order[at] = order[at - 1];
        order[at] = (uint16_t)i;
    }
}

ptrdiff_t fg_cache_snapshot_find(const fg_cache_snapshot *snapshot, const fg_cache_entry *entry)
{
    for (uint32_t i = 0; i < snapshot->n; i++)
        if (snapshot->entries[i] == entry)
            return (ptrdiff_t)i;
    return -1;
}

fg_cache_entry *fg_cache_lookup(fg_cache *cache, fg_epoch_reader *reader, void *query)
{
    fg_cache_entry *found = NULL;
    fg_cache_snapshot *snapshot;
    if (cache->mode == FG_CACHE_THREADS) {
        fg_epoch_enter(reader);
        /* seq_cst: step 2 of the proof in cache/epoch.c; as an acquire it pairs with the publishing CAS (guarantees A and D). */
        snapshot = fg_load_seq_cst(&cache->current);
    } else {
        snapshot = fg_cache_snapshot_take(cache);
    }
    if (snapshot != NULL) {
        uint64_t skip[WORDS];
        memset(skip, 0, (snapshot->n + 63) / 64 * sizeof *skip);
        for (uint32_t tries = 0; tries < snapshot->n; tries++) {
            ptrdiff_t i = cache->ops->match(snapshot, skip, query);
            if (i < 0)
                break;
            fg_cache_entry *entry = snapshot->entries[i];
            /* The last thing that is read, for guarantee C. */
            if (fg_cache_entry_is_valid(entry)) {
                fg_cache_entry_take(entry);
                fg_cache_touch(cache, entry);
                found = entry;
                break;
            }
            skip[i / 64] |= UINT64_C(1) << (i % 64);
        }
    }
    if (cache->mode == FG_CACHE_THREADS)
        fg_epoch_exit(reader);
    else if (snapshot != NULL)
        fg_cache_snapshot_drop(snapshot);
    return found;
}
