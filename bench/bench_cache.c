/* Look-up in a cache of n entries, by the entry at the front or round robin, under the outer lock and with epochs.
 * The lower bound of each row walks the same entries in a plain array. */
#include "bench/bench_rows.h"
#include "cache/cache.h"
#include "runtime/base/alloc.h"

#include <stdio.h>

typedef struct bench_entry {
    fg_cache_entry link;
    uint64_t key;
} bench_entry;

typedef struct bench_cache {
    fg_cache cache;
    fg_epoch epoch;
    fg_epoch_reader *reader;
    bench_entry **entries;
    uint64_t n;
} bench_cache;

static void entry_free(fg_cache_entry *entry)
{
    fg_free(entry);
}

static ptrdiff_t match(const fg_cache_snapshot *snapshot, const uint64_t *skip, void *query)
{
    uint64_t key = *(const uint64_t *)query;
    for (uint32_t i = 0; i < snapshot->n; i++) {
        const bench_entry *entry = (const bench_entry *)snapshot->entries[i];
        if (entry->key == key && !(skip && (skip[i / 64] >> (i % 64) & 1)))
            return (ptrdiff_t)i;
    }
    return -1;
}

static const fg_cache_ops ops = {.match = match};

static bench_cache *cache_new(fg_cache_mode mode, int64_t n)
{
    bench_cache *b = fg_calloc(1, sizeof *b);
    bench_entry **entries = fg_calloc((size_t)n, sizeof *entries);
    if (!b || !entries)
        goto fail;
    b->entries = entries;
    b->n = (uint64_t)n;
    if (mode == FG_CACHE_THREADS) {
        fg_epoch_init(&b->epoch);
        if (fg_epoch_reader_new(&b->epoch, &b->reader) != FG_OK)
            goto fail;
    }
    fg_cache_init(&b->cache, mode, &ops, b, mode == FG_CACHE_THREADS ? &b->epoch : NULL, (uint32_t)n);
    for (int64_t i = 0; i < n; i++) {
        bench_entry *entry = fg_calloc(1, sizeof *entry);
        if (!entry)
            goto fail;
        fg_cache_entry_init(&entry->link, mode, entry_free);
        entry->key = (uint64_t)i;
        entries[i] = entry;
        if (fg_cache_add(&b->cache, b->reader, &entry->link) != FG_OK)
            goto fail;
    }
    return b;
fail:
    /* The program ends after this: what was made is not worth taking apart. */
    fprintf(stderr, "bench_cache: out of memory\n");
    return NULL;
}

static void *setup(const fg_bench_row *row)
{
    return cache_new((fg_cache_mode)row->option, row->size);
}

static uint64_t run_lookups(void *state, size_t n)
{
    bench_cache *b = state;
    uint64_t found = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t key = i % b->n;
        fg_cache_entry *entry = fg_cache_lookup(&b->cache, b->reader, &key);
        if (entry) {
            found++;
            fg_cache_entry_drop(entry);
        }
    }
    return found;
}

static uint64_t run_loads(void *state, size_t n)
{
    bench_cache *b = state;
    uint64_t found = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t key = i % b->n;
        for (uint64_t k = 0; k < b->n; k++) {
            if (((volatile bench_entry *)b->entries[k])->key == key) {
                found++;
                break;
            }
        }
    }
    return found;
}

#define ROWS(N)                                                                                    \
    {"lookup/locked/" #N, setup, run_lookups, run_loads, NULL, N, FG_CACHE_LOCKED, NULL, NULL},    \
    {                                                                                              \
        "lookup/threads/" #N, setup, run_lookups, run_loads, NULL, N, FG_CACHE_THREADS, NULL, NULL \
    }

const fg_bench_row fg_bench_rows[] = {ROWS(1), ROWS(8), ROWS(64), {NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL}};

int fg_bench_start(void)
{
    return 0;
}
