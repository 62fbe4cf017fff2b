/* One test for each ordering guarantee A to F of cache/cache.h, and for each promise of progress. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cache/cache.h"
#include "runtime/base/alloc.h"
#include "tests/c/alloc_failing.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum { ALIVE = 0x600d, N_ROUNDS = 3000 };

typedef struct thing {
    fg_cache_entry link;
    int key, mark; /* plain: who may read them is what guarantee A says */
} thing;

static fg_epoch epoch;
static fg_cache cache;
static fg_epoch_reader *mine;
static _Atomic int stop, wrong;
static thing *shared; /* passed on by `turn` */
static _Atomic int turn;
static _Thread_local void (*in_match)(void); /* called once, between a match and the answer */

static void thing_free(fg_cache_entry *link)
{
    ((thing *)link)->mark = 0;
    fg_free(link);
}

static thing *thing_new(int key)
{
    thing *t = fg_calloc(1, sizeof *t);
    assert_non_null(t);
    fg_cache_entry_init(&t->link, FG_CACHE_THREADS, thing_free);
    t->key = key;
    t->mark = ALIVE;
    return t;
}

/* The program is a copy of the keys, so that a look-up can compare what it sees with it. */
static fg_status build(void *owner, fg_cache_entry *const *entries, size_t n, void *old, void **out)
{
    (void)owner, (void)old;
    int *keys = fg_malloc(n * sizeof *keys);
    if (keys == NULL)
        return FG_ERR_NOMEM;
    for (size_t i = 0; i < n; i++)
        keys[i] = ((thing *)entries[i])->key;
    *out = keys;
    return FG_OK;
}

static ptrdiff_t match(const fg_cache_snapshot *snapshot, const uint64_t *skip, void *query)
{
    ptrdiff_t found = -1;
    const int *keys = snapshot->program;
    for (uint32_t i = 0; i < snapshot->n; i++) {
        thing *t = (thing *)snapshot->entries[i];
        if (t->mark != ALIVE || t->key != keys[i])
            fg_add_relaxed(&wrong, 1);
        if (t->key == *(int *)query && !(skip[i / 64] >> (i % 64) & 1))
            found = (ptrdiff_t)i;
    }
    void (*hook)(void) = in_match;
    in_match = NULL;
    if (hook != NULL)
        hook();
    return found;
}

static const fg_cache_ops ops = {build, fg_free, match};

static int open_cache(void **state)
{
    (void)state;
    fg_epoch_init(&epoch);
    fg_store_seq_cst(&stop, 0);
    fg_store_seq_cst(&wrong, 0);
    fg_store_seq_cst(&turn, 0);
    fg_cache_init(&cache, FG_CACHE_THREADS, &ops, NULL, &epoch, 8);
    return fg_epoch_reader_new(&epoch, &mine) == FG_OK ? 0 : -1;
}

static int close_cache(void **state)
{
    (void)state;
    fg_cache_fini(&cache, mine);
    fg_epoch_reader_free(mine);
    fg_epoch_fini(&epoch);
    return alloc_failing_living() == 0 && fg_load_seq_cst(&wrong) == 0 ? 0 : -1;
}

static void add(int key)
{
    thing *t = thing_new(key);
    assert_int_equal(fg_cache_add(&cache, mine, &t->link), FG_OK);
    fg_cache_entry_drop(&t->link);
}

static thing *look_up(int key)
{
    return (thing *)fg_cache_lookup(&cache, mine, &key);
}

static int has(int key)
{
    thing *t = look_up(key);
    if (t != NULL)
        fg_cache_entry_drop(&t->link);
    return t != NULL;
}

/* ---- A and D: a thread that looks up all the time while entries come, go and are reset ---- */

static void *look_around(void *arg)
{
    fg_epoch_reader *reader;
    (void)arg;
    if (fg_epoch_reader_new(&epoch, &reader) != FG_OK)
        abort();
    for (int key = 0; !fg_load_acquire(&stop); key = (key + 1) % 12) {
        thing *t = (thing *)fg_cache_lookup(&cache, reader, &key);
        if (t == NULL)
            continue;
        if (t->mark != ALIVE || t->key != key)
            fg_add_relaxed(&wrong, 1);
        fg_cache_entry_drop(&t->link);
    }
    fg_epoch_reader_free(reader);
    return NULL;
}

static void a_and_d_a_look_up_sees_written_entries_and_one_snapshot(void **state)
{
    pthread_t threads[2];
    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look_around, NULL), 0);
    for (int i = 0; i < N_ROUNDS; i++) {
        add(i % 12);
        if (i % 50 == 49)
            fg_cache_reset(&cache, mine);
    }
    fg_store_release(&stop, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(fg_load_seq_cst(&wrong), 0);
}

/* ---- B and C: what a writer did is seen by a look-up that begins after it, in another thread ---- */

static void *answer_turns(void *arg)
{
    fg_epoch_reader *reader;
    (void)arg;
    if (fg_epoch_reader_new(&epoch, &reader) != FG_OK)
        abort();
    for (int round = 0; round < N_ROUNDS; round++) {
        while (fg_load_acquire(&turn) != 2 * round + 1)
            sched_yield();
        int key = 1;
        fg_cache_entry *found = fg_cache_lookup(&cache, reader, &key);
        if (found != (shared != NULL ? &shared->link : NULL))
            fg_add_relaxed(&wrong, 1);
        if (found != NULL)
            fg_cache_entry_drop(found);
        fg_store_release(&turn, 2 * round + 2);
    }
    fg_epoch_reader_free(reader);
    return NULL;
}

static void b_and_c_effects_are_seen_by_look_ups_that_begin_later(void **state)
{
    pthread_t thread;
    thing *t = NULL;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, answer_turns, NULL), 0);
    for (int round = 0; round < N_ROUNDS; round++) {
        if (t == NULL) {
            shared = t = thing_new(1);
            assert_int_equal(fg_cache_add(&cache, mine, &t->link), FG_OK);
        } else {
            if (round % 6 == 1)
                fg_cache_entry_invalidate(&t->link);
            else if (round % 6 == 3)
                assert_int_equal(fg_cache_remove(&cache, mine, &t->link), FG_OK);
            else
                fg_cache_reset(&cache, mine);
            fg_cache_entry_drop(&t->link);
            shared = t = NULL;
        }
        fg_store_release(&turn, 2 * round + 1);
        while (fg_load_acquire(&turn) != 2 * round + 2)
            sched_yield();
    }
    pthread_join(thread, NULL);
    assert_int_equal(fg_load_seq_cst(&wrong), 0);
    assert_null(t);
}

static void invalidate_shared(void)
{
    fg_cache_entry_invalidate(&shared->link);
}

static void c_validity_is_read_after_the_match(void **state)
{
    (void)state;
    shared = thing_new(1);
    assert_int_equal(fg_cache_add(&cache, mine, &shared->link), FG_OK);
    in_match = invalidate_shared;
    assert_null(look_up(1));
    fg_cache_entry_drop(&shared->link);
}

/* ---- E ---- */

static void e_what_a_look_up_returned_outlives_eviction_invalidation_and_reset(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        add(1);
        thing *t = look_up(1);
        assert_non_null(t);
        if (how == 0) {
            for (int key = 2; key < 12; key++)
                add(key);
            assert_true(fg_load_relaxed(&cache.evictions) > 0);
        } else if (how == 1) {
            assert_int_equal(fg_cache_remove(&cache, mine, &t->link), FG_OK);
        }
        fg_cache_reset(&cache, mine);
        for (int i = 0; i < 5; i++)
            fg_epoch_poll(&epoch);
        assert_false(has(1));
        assert_int_equal(t->mark, ALIVE);
        fg_cache_entry_drop(&t->link);
    }
}

/* ---- F ---- */

static void f_recency_decides_who_leaves_and_never_what_is_true(void **state)
{
    (void)state;
    for (int key = 0; key < 8; key++)
        add(key);
    assert_true(has(0));
    add(8); /* 1 is the least recently used now */
    assert_false(has(1));
    assert_true(has(0));
    fg_store_relaxed(&cache.clock, UINT64_C(0)); /* a clock that lost its memory: other victims, the same answers */
    for (int key = 20; key < 40; key++) {
        add(key);
        assert_true(has(key));
    }
    assert_int_equal(fg_cache_verify(&cache), FG_OK);
}

/* ---- progress: no call waits for another one that has stopped in the middle ---- */

static int in_the_middle;

static void everything_else(void)
{
    fg_epoch_reader *own = mine;
    in_the_middle = 1;
    assert_int_equal(fg_epoch_reader_new(&epoch, &mine), FG_OK); /* another thread's, while the first stands inside its look-up */
    add(2);
    assert_true(has(2));
    thing *t = look_up(1);
    assert_non_null(t);
    assert_int_equal(fg_cache_remove(&cache, mine, &t->link), FG_OK);
    fg_cache_reset(&cache, mine);
    assert_int_equal(fg_cache_limit_set(&cache, mine, 3), FG_OK);
    for (int i = 0; i < 5; i++)
        fg_epoch_poll(&epoch);
    assert_int_equal(t->mark, ALIVE); /* the one that stands has not let it go */
    fg_cache_entry_drop(&t->link);
    fg_epoch_reader_free(mine);
    mine = own;
}

static void a_look_up_that_stands_still_holds_nobody_up(void **state)
{
    (void)state;
    in_the_middle = 0;
    add(1);
    in_match = everything_else;
    assert_null(look_up(1)); /* removed while it stood */
    assert_int_equal(in_the_middle, 1);
}

static int builds;

/* Each build but the last is overtaken by another writer, as if the other thread came between. */
static fg_status build_overtaken(void *owner, fg_cache_entry *const *entries, size_t n, void *old, void **out)
{
    static int depth;
    fg_status st = build(owner, entries, n, old, out);
    builds++;
    if (st == FG_OK && depth < 5) {
        depth++;
        thing *t = thing_new(100 + depth);
        st = fg_cache_add(&cache, mine, &t->link);
        fg_cache_entry_drop(&t->link);
    }
    return st;
}

static void a_writer_starts_again_only_because_another_one_succeeded(void **state)
{
    static const fg_cache_ops overtaken = {build_overtaken, fg_free, match};
    (void)state;
    cache.ops = &overtaken;
    builds = 0;
    add(1);
    cache.ops = &ops;
    assert_true(has(1));
    for (int depth = 1; depth <= 5; depth++)
        assert_true(has(100 + depth));
    /* Six additions; each of the five that were overtaken built once more, and no more often. */
    assert_int_equal(builds, 6 + 5);
}

static void invalidation_allocates_nothing(void **state)
{
    (void)state;
    add(1);
    thing *t = look_up(1);
    alloc_failing_at(1);
    fg_cache_entry_invalidate(&t->link);
    thing *again = look_up(1);
    int fired = alloc_failing_fired();
    alloc_failing_at(0);
    assert_null(again);
    assert_int_equal(fired, 0);
    fg_cache_entry_drop(&t->link);
}

static void a_reset_allocates_nothing(void **state)
{
    (void)state;
    add(1);
    alloc_failing_at(1);
    fg_cache_reset(&cache, mine);
    int fired = alloc_failing_fired();
    alloc_failing_at(0);
    assert_int_equal(fired, 0);
    assert_false(has(1));
}

int main(void)
{
    alloc_failing_install();
#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, open_cache, close_cache)
    const struct CMUnitTest tests[] = {
        TEST(a_and_d_a_look_up_sees_written_entries_and_one_snapshot),
        TEST(b_and_c_effects_are_seen_by_look_ups_that_begin_later),
        TEST(c_validity_is_read_after_the_match),
        TEST(e_what_a_look_up_returned_outlives_eviction_invalidation_and_reset),
        TEST(f_recency_decides_who_leaves_and_never_what_is_true),
        TEST(a_look_up_that_stands_still_holds_nobody_up),
        TEST(a_writer_starts_again_only_because_another_one_succeeded),
        TEST(invalidation_allocates_nothing),
        TEST(a_reset_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
