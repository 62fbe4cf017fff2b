/* Threads that look up, add, invalidate and reset at once. What is checked: an answer has the key that was asked for and is not freed, nothing leaks, and the
 * guarantees of cache/cache.h; ThreadSanitizer checks the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cache/cache.h"
#include "runtime/base/alloc.h"
#include "tests/c/alloc_failing.h"

#include <pthread.h>

enum { N_THREADS = 6, N_STEPS = 4000, N_KEYS = 24, ALIVE = 0x600d, DEAD = 0xdead };

typedef struct thing {
    fg_cache_entry link;
    uint32_t mark;
    uint32_t key; /* written before the publication, read without further order: guarantee A */
} thing;

static fg_epoch epoch;
static fg_cache cache;
static _Atomic uint32_t made, freed, wrong, found_count, resets, invalidations;

static void thing_free(fg_cache_entry *link)
{
    ((thing *)link)->mark = DEAD;
    fg_add_relaxed(&freed, 1u);
    fg_free(link);
}

static fg_status build(void *owner, fg_cache_entry *const *entries, size_t n, void *old, void **out)
{
    (void)owner, (void)old;
    uint32_t *keys = fg_malloc((n + 1) * sizeof *keys);
    if (keys == NULL)
        return FG_ERR_NOMEM;
    keys[0] = (uint32_t)n;
    for (size_t i = 0; i < n; i++)
        keys[i + 1] = ((thing *)entries[i])->key;
    *out = keys;
    return FG_OK;
}

static ptrdiff_t match(const fg_cache_snapshot *snapshot, const uint64_t *skip, void *query)
{
    const uint32_t *keys = snapshot->program;
    if (keys[0] != snapshot->n)
        fg_add_relaxed(&wrong, 1u);
    for (uint32_t i = 0; i < snapshot->n; i++)
        if (keys[i + 1] == *(uint32_t *)query && !((skip[i / 64] >> (i % 64)) & 1))
            return (ptrdiff_t)i;
    return -1;
}

static const fg_cache_ops ops = {build, fg_free, match};

static void *worker(void *arg)
{
    uint64_t random = (uintptr_t)arg * UINT64_C(0x9e3779b97f4a7c15) + 1;
    fg_epoch_reader *reader;
    if (fg_epoch_reader_new(&epoch, &reader) != FG_OK)
        return NULL;
    for (int i = 0; i < N_STEPS; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint32_t key = (uint32_t)(random >> 40) % N_KEYS, what = (uint32_t)(random >> 33) % 100;
        fg_cache_entry *entry = fg_cache_lookup(&cache, reader, &key);
        if (entry != NULL) {
            thing *t = (thing *)entry;
            fg_add_relaxed(&found_count, 1u);
            if (t->mark != ALIVE || t->key != key)
                fg_add_relaxed(&wrong, 1u);
            if (what < 3) {
                fg_cache_entry_invalidate(entry);
                fg_add_relaxed(&invalidations, 1u);
                fg_cache_entry *again = fg_cache_lookup(&cache, reader, &key);
                if (again == entry) /* guarantee C */
                    fg_add_relaxed(&wrong, 1u);
                if (again != NULL)
                    fg_cache_entry_drop(again);
            } else if (what < 5 && fg_cache_remove(&cache, reader, entry) != FG_OK) {
                fg_add_relaxed(&wrong, 1u);
            }
            if (t->mark != ALIVE) /* guarantee E */
                fg_add_relaxed(&wrong, 1u);
            fg_cache_entry_drop(entry);
        } else if (what < 70) {
            thing *t = fg_calloc(1, sizeof *t);
            fg_cache_entry_init(&t->link, FG_CACHE_THREADS, thing_free);
            t->mark = ALIVE;
            t->key = key;
            fg_add_relaxed(&made, 1u);
            if (fg_cache_add(&cache, reader, &t->link) != FG_OK)
                fg_add_relaxed(&wrong, 1u);
            fg_cache_entry_drop(&t->link);
        } else if (what == 99) {
            fg_cache_reset(&cache, reader);
            fg_add_relaxed(&resets, 1u);
        } else if (what == 98) {
            fg_cache_limit_set(&cache, reader, 4 + key);
        }
    }
    fg_epoch_reader_free(reader);
    return NULL;
}

static void threads_see_only_living_entries_of_their_key(void **state)
{
    (void)state;
    pthread_t threads[N_THREADS];
    fg_epoch_init(&epoch);
    fg_cache_init(&cache, FG_CACHE_THREADS, &ops, NULL, &epoch, 16);
    for (uintptr_t i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, worker, (void *)i), 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(fg_cache_verify(&cache), FG_OK);
    fg_epoch_reader *reader;
    assert_int_equal(fg_epoch_reader_new(&epoch, &reader), FG_OK);
    fg_cache_fini(&cache, reader);
    fg_epoch_reader_free(reader);
    /* Reclamation went on during the run, not only at the end. */
    assert_true(fg_load_relaxed(&made) == 0 || fg_load_relaxed(&freed) > fg_load_relaxed(&made) / 2);
    fg_epoch_fini(&epoch);
    assert_int_equal(wrong, 0);
    /* All of it happened in this run. */
    assert_true(found_count > 1000 && resets > 10 && invalidations > 10 && fg_load_relaxed(&cache.evictions) > 10);
    assert_int_equal(made, freed);
    assert_int_equal(alloc_failing_living(), 0);
}

static void a_section_holds_up_reclamation_and_its_end_lets_it_go(void **state)
{
    (void)state;
    fg_epoch_reader *inside, *outside;
    fg_epoch_node *node = fg_malloc(sizeof *node);
    fg_epoch_init(&epoch);
    assert_int_equal(fg_epoch_reader_new(&epoch, &inside), FG_OK);
    assert_int_equal(fg_epoch_reader_new(&epoch, &outside), FG_OK);
    fg_epoch_enter(inside);
    fg_epoch_enter(inside);
    fg_epoch_retire(&epoch, node, (void (*)(fg_epoch_node *))fg_free);
    for (int i = 0; i < 10; i++)
        assert_int_equal(fg_epoch_poll(&epoch), 0);
    fg_epoch_exit(inside);
    assert_int_equal(fg_epoch_poll(&epoch), 0);
    fg_epoch_exit(inside);
    size_t n = 0;
    for (int i = 0; i < 3; i++)
        n += fg_epoch_poll(&epoch);
    assert_int_equal(n, 1);
    fg_epoch_reader_free(outside);
    fg_epoch_reader *again;
    assert_int_equal(fg_epoch_reader_new(&epoch, &again), FG_OK);
    assert_ptr_equal(again, outside);
    fg_epoch_reader_free(again);
    fg_epoch_reader_free(inside);
    fg_epoch_fini(&epoch);
    assert_int_equal(alloc_failing_living(), 0);
}

int main(void)
{
    alloc_failing_install();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_see_only_living_entries_of_their_key),
        cmocka_unit_test(a_section_holds_up_reclamation_and_its_end_lets_it_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
