#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/base/alloc.h"
#include "runtime/base/arena.h"
#include "runtime/base/hash.h"
#include "tests/c/alloc_failing.h"

#include <stdio.h>
#include <string.h>

static int is_zero(const char *block, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (block[i] != 0)
            return 0;
    return 1;
}

static void blocks_are_aligned_zeroed_and_apart(void **state)
{
    (void)state;
    fg_arena arena;
    char *blocks[600];
    fg_arena_init(&arena);
    for (size_t i = 0; i < 600; i++) {
        blocks[i] = fg_arena_alloc(&arena, i * 7);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        assert_true(is_zero(blocks[i], i * 7));
        memset(blocks[i], (int)i, i * 7);
    }
    for (size_t i = 0; i < 600; i++)
        for (size_t k = 0; k < i * 7; k++)
            assert_int_equal((unsigned char)blocks[i][k], i & 0xff);
    fg_arena_fini(&arena);
    assert_int_equal(alloc_failing_living(), 0);
}

static void rewinding_frees_what_came_after_the_mark_only(void **state)
{
    (void)state;
    fg_arena arena;
    fg_arena_init(&arena);
    char *kept = fg_arena_alloc(&arena, 100);
    memset(kept, 7, 100);
    fg_arena_mark mark = fg_arena_mark_get(&arena);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 100; i++) {
            char *block = fg_arena_alloc(&arena, 1000);
            assert_true(is_zero(block, 1000));
            memset(block, 0xff, 1000);
        }
        fg_arena_rewind(&arena, mark);
        assert_int_equal(arena.total, mark.total);
    }
    assert_int_equal(kept[99], 7);
    fg_arena_rewind(&arena, (fg_arena_mark){NULL, NULL, 0});
    assert_int_equal(alloc_failing_living(), 0);
    assert_non_null(fg_arena_alloc(&arena, 5000));
    fg_arena_fini(&arena);
}

static void a_failed_allocation_leaves_the_arena_usable(void **state)
{
    (void)state;
    fg_arena arena;
    fg_arena_init(&arena);
    assert_null(fg_arena_alloc(&arena, SIZE_MAX - 8));
    alloc_failing_at(1);
    assert_null(fg_arena_alloc(&arena, 10));
    assert_true(alloc_failing_fired());
    assert_non_null(fg_arena_alloc(&arena, 10));
    fg_arena_fini(&arena);
    assert_int_equal(alloc_failing_living(), 0);
}

static void the_table_is_set_once(void **state)
{
    (void)state;
    assert_string_equal(fg_alloc_table_get()->name, "failing");
    assert_int_equal(fg_alloc_table_set(fg_alloc_table_get()), FG_ERR_BUSY);
    assert_int_equal(fg_alloc_table_set(&(fg_alloc_table){.name = "empty"}), FG_ERR_INVALID);
}

static void hashes_tell_neighbours_apart(void **state)
{
    (void)state;
    assert_int_not_equal(fg_hash_word(1), fg_hash_word(2));
    assert_int_not_equal(fg_hash_mix(1, 2), fg_hash_mix(2, 1));
    assert_int_equal(fg_hash_bytes("abc", 3, 1), fg_hash_bytes("abc", 3, 1));
    assert_int_not_equal(fg_hash_bytes("abc", 3, 1), fg_hash_bytes("abc", 3, 2));
}

static void every_status_has_a_text(void **state)
{
    (void)state;
    for (int st = FG_OK; st <= FG_ERR_BUG; st++) {
        assert_true(strlen(fg_status_text((fg_status)st)) > 3);
        assert_string_not_equal(fg_status_text((fg_status)st), "unknown status code");
    }
}

int main(void)
{
    alloc_failing_install();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_aligned_zeroed_and_apart),
        cmocka_unit_test(rewinding_frees_what_came_after_the_mark_only),
        cmocka_unit_test(a_failed_allocation_leaves_the_arena_usable),
        cmocka_unit_test(the_table_is_set_once),
        cmocka_unit_test(hashes_tell_neighbours_apart),
        cmocka_unit_test(every_status_has_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
