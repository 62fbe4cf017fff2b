/* The cache against a trivial model: a list of keys, most recently used first. Both modes run the same script. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cache/cache.h"
#include "runtime/base/alloc.h"
#include "tests/c/alloc_failing.h"

#include <string.h>

typedef struct thing {
    fg_cache_entry link;
    int key;
} thing;

typedef struct program {
    size_t n;
    int keys[];
} program;

static int things_alive, programs_alive, builds_over_old;

static void thing_free(fg_cache_entry *link)
{
    things_alive--;
    fg_free(link);
}

static thing *thing_new(fg_cache_mode mode, int key)
{
    thing *t = fg_calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    fg_cache_entry_init(&t->link, mode, thing_free);
    t->key = key;
    things_alive++;
    return t;
}

static fg_status build(void *owner, fg_cache_entry *const *entries, size_t n, void *old, void **out)
{
    (void)owner;
    program *p = fg_malloc(sizeof *p + n * sizeof(int));
    if (p == NULL)
        return FG_ERR_NOMEM;
    p->n = n;
    for (size_t i = 0; i < n; i++)
        p->keys[i] = ((thing *)entries[i])->key;
    if (old != NULL) {
        program *o = old;
        assert_true(o->n > 0 && o->n <= FG_CACHE_MAX_ENTRIES); /* alive: it is read */
        builds_over_old++;
    }
    programs_alive++;
    *out = p;
    return FG_OK;
}

static void program_free(void *p)
{
    programs_alive--;
    fg_free(p);
}

static ptrdiff_t match(const fg_cache_snapshot *snapshot, const uint64_t *skip, void *query)
{
    const program *p = snapshot->program;
    ptrdiff_t found = -1;
    assert_int_equal(p->n, snapshot->n);
    for (uint32_t i = 0; i < snapshot->n; i++)
        if (p->keys[i] == *(int *)query && !((skip[i / 64] >> (i % 64)) & 1))
            found = (ptrdiff_t)i;
    return found;
}

static const fg_cache_ops ops = {build, program_free, match};

enum { MODEL_MAX = 200 };
typedef struct model {
    int keys[MODEL_MAX];
    int n, limit;
} model;

static int model_find(const model *m, int key)
{
    for (int i = 0; i < m->n; i++)
        if (m->keys[i] == key)
            return i;
    return -1;
}

static void model_drop(model *m, int at)
{
    memmove(&m->keys[at], &m->keys[at + 1], (size_t)(m->n - at - 1) * sizeof(int));
    m->n--;
}

static void model_front(model *m, int key)
{
    memmove(&m->keys[1], &m->keys[0], (size_t)m->n * sizeof(int));
    m->keys[0] = key;
    m->n++;
    while (m->n > m->limit)
        m->n--;
}

static uint64_t rng_state;
static uint32_t rng(uint32_t n)
{
    rng_state = rng_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(rng_state >> 33) % n;
}

static void compare(fg_cache *cache, const model *m)
{
    uint16_t order[FG_CACHE_MAX_ENTRIES];
    assert_int_equal(fg_cache_verify(cache), FG_OK);
    fg_cache_snapshot *snapshot = fg_cache_snapshot_take(cache);
    int living = 0;
    if (snapshot != NULL) {
        fg_cache_snapshot_order(snapshot, order);
        for (uint32_t k = 0; k < snapshot->n; k++)
            if (fg_cache_entry_is_valid(snapshot->entries[order[k]])) {
                assert_true(living < m->n);
                assert_int_equal(((thing *)snapshot->entries[order[k]])->key, m->keys[living]);
                living++;
            }
        fg_cache_snapshot_drop(snapshot);
    }
    assert_int_equal(living, m->n);
}

static void step(fg_cache *cache, fg_epoch_reader *reader, model *m)
{
    int key = (int)rng(40), at = model_find(m, key);
    uint32_t what = rng(100);
    if (what < 60) {
        fg_cache_entry *found = fg_cache_lookup(cache, reader, &key);
        assert_int_equal(found != NULL, at >= 0);
        if (found != NULL) {
            assert_int_equal(((thing *)found)->key, key);
            fg_cache_entry_drop(found);
            model_drop(m, at);
            model_front(m, key);
        }
    } else if (what < 85) {
        if (at >= 0)
            return;
        thing *t = thing_new((fg_cache_mode)cache->mode, key);
        assert_int_equal(fg_cache_add(cache, reader, &t->link), FG_OK);
        assert_int_equal(fg_cache_add(cache, reader, &t->link), FG_ERR_INVALID);
        fg_cache_entry_drop(&t->link);
        model_front(m, key);
    } else if (what < 97) {
        if (at < 0)
            return;
        fg_cache_entry *found = fg_cache_lookup(cache, reader, &key);
        if (what < 91)
            fg_cache_entry_invalidate(found);
        else
            assert_int_equal(fg_cache_remove(cache, reader, found), FG_OK);
        fg_cache_entry_drop(found);
        model_drop(m, at);
    } else if (what < 98) {
        fg_cache_reset(cache, reader);
        m->n = 0;
    } else if (what < 99) {
        assert_int_equal(fg_cache_rebuild(cache, reader), FG_OK);
    } else {
        m->limit = 1 + (int)rng(20);
        assert_int_equal(fg_cache_limit_set(cache, reader, (uint32_t)m->limit), FG_OK);
        if (m->n > m->limit)
            m->n = m->limit;
    }
}

static void run_script(fg_cache_mode mode, uint64_t seed)
{
    fg_epoch epoch;
    fg_epoch_reader *reader = NULL;
    fg_cache cache;
    model m = {.limit = 8};
    rng_state = seed;
    fg_epoch_init(&epoch);
    if (mode == FG_CACHE_THREADS)
        assert_int_equal(fg_epoch_reader_new(&epoch, &reader), FG_OK);
    fg_cache_init(&cache, mode, &ops, NULL, &epoch, 8);
    for (int i = 0; i < 3000; i++) {
        step(&cache, reader, &m);
        compare(&cache, &m);
    }
    fg_cache_fini(&cache, reader);
    if (reader != NULL)
        fg_epoch_reader_free(reader);
    fg_epoch_fini(&epoch);
    assert_int_equal(things_alive, 0);
    assert_int_equal(programs_alive, 0);
    assert_int_equal(alloc_failing_living(), 0);
}

static void behaves_as_the_model_under_a_lock(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++)
        run_script(FG_CACHE_LOCKED, seed);
    assert_true(builds_over_old > 100);
}

static void behaves_as_the_model_with_epochs(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++)
        run_script(FG_CACHE_THREADS, seed);
}

static void running_out_of_memory_changes_nothing(void **state)
{
    (void)state;
    int failures = 0;
    fg_cache cache;
    fg_cache_init(&cache, FG_CACHE_LOCKED, &ops, NULL, NULL, 4);
    for (int key = 0; key < 8; key++) {
        for (size_t n = 1;; n++) {
            thing *t = thing_new(FG_CACHE_LOCKED, key);
            fg_cache_snapshot *before = fg_cache_snapshot_peek(&cache);
            alloc_failing_at(n);
            fg_status st = fg_cache_add(&cache, NULL, &t->link);
            int fired = alloc_failing_fired();
            alloc_failing_at(0);
            fg_cache_entry_drop(&t->link);
            assert_int_equal(fg_cache_verify(&cache), FG_OK);
            if (!fired) {
                assert_int_equal(st, FG_OK);
                break;
            }
            failures++;
            assert_int_equal(st, FG_ERR_NOMEM);
            assert_ptr_equal(fg_cache_snapshot_peek(&cache), before);
        }
    }
    assert_int_equal(failures, 16);
    assert_int_equal(fg_load_relaxed(&cache.evictions), 4);
    fg_cache_fini(&cache, NULL);
    assert_int_equal(alloc_failing_living(), 0);
}

static void a_counted_entry_outlives_its_eviction(void **state)
{
    (void)state;
    fg_cache cache;
    fg_cache_init(&cache, FG_CACHE_LOCKED, &ops, NULL, NULL, 1);
    thing *first = thing_new(FG_CACHE_LOCKED, 1), *second = thing_new(FG_CACHE_LOCKED, 2);
    assert_int_equal(fg_cache_add(&cache, NULL, &first->link), FG_OK);
    assert_int_equal(fg_cache_add(&cache, NULL, &second->link), FG_OK);
    assert_int_equal(things_alive, 2);
    assert_int_equal(first->key, 1);
    fg_cache_entry_drop(&first->link);
    assert_int_equal(things_alive, 1);
    fg_cache_reset(&cache, NULL);
    assert_false(fg_cache_entry_is_valid(&second->link));
    fg_cache_entry_drop(&second->link);
    assert_int_equal(things_alive, 0);
}

static void recency_in_place_follows_what_is_chosen(void **state)
{
    (void)state;
    fg_cache cache;
    fg_cache_init(&cache, FG_CACHE_LOCKED, &ops, NULL, NULL, 8);
    for (int key = 0; key < 4; key++) {
        thing *t = thing_new(FG_CACHE_LOCKED, key);
        assert_int_equal(fg_cache_add(&cache, NULL, &t->link), FG_OK);
        fg_cache_entry_drop(&t->link);
    }
    fg_cache_snapshot *mine = fg_cache_snapshot_take(&cache);
    for (int i = 1; i < 4; i++)
        assert_true(mine->recency[i] > mine->recency[i - 1]);
    assert_int_equal(fg_cache_touch(&cache, mine->entries[1]), 1);
    fg_cache_recency_touch(mine, 1);
    assert_int_equal(fg_cache_touch(&cache, mine->entries[1]), 0);
    assert_true(mine->recency[1] > mine->recency[3] && mine->recency[2] < mine->recency[3]);
    uint16_t order[4];
    const uint16_t want[4] = {1, 3, 2, 0};
    fg_cache_snapshot_order(mine, order);
    assert_memory_equal(order, want, sizeof want);
    assert_int_equal(fg_cache_verify(&cache), FG_OK);
    fg_cache_snapshot_drop(mine);
    fg_cache_fini(&cache, NULL);
}

int main(void)
{
    alloc_failing_install();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(behaves_as_the_model_under_a_lock),       cmocka_unit_test(behaves_as_the_model_with_epochs),
        cmocka_unit_test(running_out_of_memory_changes_nothing),   cmocka_unit_test(a_counted_entry_outlives_its_eviction),
        cmocka_unit_test(recency_in_place_follows_what_is_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
