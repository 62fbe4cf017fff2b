/* The cache against a list: the bytes are a script of additions, look-ups, invalidations, removals, resets, limits, sweeps and held snapshots, run in both
 * modes; after each step what the cache has, in what order, must be what the list has, and at the end everything must have been freed once. */
#include "cache/cache.h"
#include "runtime/base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_KEYS = 24, N_HELD = 4, ALIVE = 0x600d };

typedef struct thing {
    fg_cache_entry link;
    int key, mark;
} thing;

/* Most recently used first. */
typedef struct model {
    thing *things[N_KEYS];
    int n, limit;
} model;

typedef struct run {
    fg_cache cache;
    fg_epoch epoch;
    fg_epoch_reader *reader;
    model m;
    fg_cache_snapshot *held[N_HELD];
    thing *kept[N_HELD]; /* counted by us */
} run;

static int living_things, living_programs, failing; /* failing: the next builds to refuse */

static void require(int condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "fuzz_cache: %s\n", what);
        abort();
    }
}

static void thing_free(fg_cache_entry *link)
{
    require(((thing *)link)->mark == ALIVE, "an entry is freed twice");
    ((thing *)link)->mark = 0;
    living_things--;
    fg_free(link);
}

static fg_status build(void *owner, fg_cache_entry *const *entries, size_t n, void *old, void **out)
{
    require(owner == &living_things && n > 0, "build");
    if (failing > 0)
        return failing--, FG_ERR_NOMEM;
    int *keys = fg_malloc((n + 1) * sizeof *keys);
    keys[0] = (int)n;
    for (size_t i = 0; i < n; i++)
        keys[i + 1] = ((thing *)entries[i])->key;
    require(old == NULL || ((int *)old)[0] > 0, "old program");
    living_programs++;
    *out = keys;
    return FG_OK;
}

static void program_free(void *program)
{
    living_programs--;
    fg_free(program);
}

static ptrdiff_t match(const fg_cache_snapshot *snapshot, const uint64_t *skip, void *query)
{
    const int *keys = snapshot->program;
    require(keys[0] == (int)snapshot->n, "a snapshot has its own program");
    for (uint32_t i = 0; i < snapshot->n; i++)
        if (keys[i + 1] == *(int *)query && !((skip[i / 64] >> (i % 64)) & 1))
            return (ptrdiff_t)i;
    return -1;
}

static const fg_cache_ops ops = {build, program_free, match};

static int model_find(const model *m, int key)
{
    for (int i = 0; i < m->n; i++)
        if (m->things[i]->key == key)
            return i;
    return -1;
}

static void model_drop(model *m, int at)
{
    memmove(&m->things[at], &m->things[at + 1], (size_t)(m->n - at - 1) * sizeof m->things[0]);
    m->n--;
}

static void model_front(model *m, thing *t)
{
    if (m->n == N_KEYS)
        m->n--;
    memmove(&m->things[1], &m->things[0], (size_t)m->n * sizeof m->things[0]);
    m->things[0] = t;
    m->n = m->n + 1 > m->limit ? m->limit : m->n + 1;
}

static fg_cache_snapshot *snapshot_take(run *r)
{
    if (r->reader != NULL)
        fg_epoch_enter(r->reader);
    fg_cache_snapshot *snapshot = fg_cache_snapshot_take(&r->cache);
    if (r->reader != NULL)
        fg_epoch_exit(r->reader);
    return snapshot;
}

static void compare(run *r)
{
    uint16_t order[FG_CACHE_MAX_ENTRIES];
    int n = 0;
    require(fg_cache_verify(&r->cache) == FG_OK, "verify");
    fg_cache_snapshot *snapshot = snapshot_take(r);
    if (snapshot != NULL) {
        fg_cache_snapshot_order(snapshot, order);
        for (uint32_t k = 0; k < snapshot->n; k++) {
            if (!fg_cache_entry_is_valid(snapshot->entries[order[k]]))
                continue;
            require(n < r->m.n && snapshot->entries[order[k]] == &r->m.things[n]->link, "another entry, or another order");
            n++;
        }
        fg_cache_snapshot_drop(snapshot);
    }
    require(n == r->m.n, "an entry was lost");
}

static void add(run *r, int key, int hold)
{
    thing *t = fg_calloc(1, sizeof *t);
    fg_cache_entry_init(&t->link, (fg_cache_mode)r->cache.mode, thing_free);
    t->key = key;
    t->mark = ALIVE;
    living_things++;
    fg_status st = fg_cache_add(&r->cache, r->reader, &t->link);
    require(st == FG_OK || st == FG_ERR_NOMEM, "add");
    if (st == FG_OK) {
        require(fg_cache_add(&r->cache, r->reader, &t->link) == FG_ERR_INVALID, "an entry is added once");
        model_front(&r->m, t);
    }
    if (r->kept[hold] == NULL)
        r->kept[hold] = t;
    else
        fg_cache_entry_drop(&t->link);
}

static void step(run *r, unsigned what, int key)
{
    int at = model_find(&r->m, key), hold = key % N_HELD;
    thing *t = at >= 0 ? r->m.things[at] : NULL;
    fg_status st = FG_OK;

    switch (what) {
    case 0:
    case 1:
    case 2: {
        fg_cache_entry *found = fg_cache_lookup(&r->cache, r->reader, &key);
        require(found == (t != NULL ? &t->link : NULL), "look-up");
        if (found == NULL)
            break;
        require(t->mark == ALIVE && t->key == key, "a living entry of its key");
        model_drop(&r->m, at);
        model_front(&r->m, t);
        fg_cache_entry_drop(found);
        break;
    }
    case 3:
    case 4:
    case 5:
        if (t == NULL)
            add(r, key, hold);
        break;
    case 6:
    case 7:
        if (t == NULL)
            break;
        fg_cache_entry_take(&t->link);
        if (what == 6)
            fg_cache_entry_invalidate(&t->link);
        else
            st = fg_cache_remove(&r->cache, r->reader, &t->link);
        model_drop(&r->m, at);
        require(fg_cache_lookup(&r->cache, r->reader, &key) == NULL, "guarantee C");
        fg_cache_entry_drop(&t->link);
        break;
    case 8:
        fg_cache_reset(&r->cache, r->reader);
        r->m.n = 0;
        break;
    case 9:
        st = fg_cache_limit_set(&r->cache, r->reader, (uint32_t)key);
        r->m.limit = key == 0 ? 1 : key;
        if (st != FG_OK) /* the limit stands, the next writer applies it */
            st = fg_cache_limit_set(&r->cache, r->reader, (uint32_t)key);
        while (st != FG_OK)
            st = fg_cache_sweep(&r->cache, r->reader);
        r->m.n = r->m.n > r->m.limit ? r->m.limit : r->m.n;
        break;
    case 10: st = key % 2 ? fg_cache_rebuild(&r->cache, r->reader) : fg_cache_sweep(&r->cache, r->reader); break;
    case 11:
        if (r->held[hold] != NULL) {
            fg_cache_snapshot_drop(r->held[hold]);
            r->held[hold] = NULL;
        } else {
            r->held[hold] = snapshot_take(r);
        }
        break;
    case 12:
        if (r->kept[hold] != NULL) {
            require(r->kept[hold]->mark == ALIVE, "guarantee E");
            fg_cache_entry_drop(&r->kept[hold]->link);
            r->kept[hold] = NULL;
        }
        break;
    case 13: failing = key % 3; break;
    default: fg_epoch_poll(&r->epoch); break;
    }
    require(st == FG_OK || st == FG_ERR_NOMEM, "status");
}

static void script(fg_cache_mode mode, const uint8_t *data, size_t size)
{
    run r = {.m = {.limit = 5}};
    failing = 0;
    fg_epoch_init(&r.epoch);
    if (mode == FG_CACHE_THREADS)
        require(fg_epoch_reader_new(&r.epoch, &r.reader) == FG_OK, "reader");
    fg_cache_init(&r.cache, mode, &ops, &living_things, &r.epoch, 5);
    for (size_t i = 0; i + 1 < size; i += 2) {
        step(&r, data[i] % 15, data[i + 1] % N_KEYS);
        compare(&r);
    }
    fg_cache_fini(&r.cache, r.reader);
    for (int i = 0; i < N_HELD; i++) {
        if (r.held[i] != NULL)
            fg_cache_snapshot_drop(r.held[i]);
        if (r.kept[i] != NULL) {
            require(r.kept[i]->mark == ALIVE, "guarantee E");
            fg_cache_entry_drop(&r.kept[i]->link);
        }
    }
    if (r.reader != NULL)
        fg_epoch_reader_free(r.reader);
    fg_epoch_fini(&r.epoch);
    require(living_things == 0 && living_programs == 0, "something was not freed");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    script(FG_CACHE_LOCKED, data, size);
    script(FG_CACHE_THREADS, data, size);
    return 0;
}
