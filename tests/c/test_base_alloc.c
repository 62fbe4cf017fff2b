#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/base/alloc.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static void the_hosts_malloc_stays_its_own(void **state)
{
    (void)state;
    void *before = dlsym(RTLD_DEFAULT, "malloc");
    void *block = fg_malloc(100);
    assert_non_null(block);
    assert_ptr_equal(dlsym(RTLD_DEFAULT, "malloc"), before);
    assert_null(dlsym(RTLD_DEFAULT, "mi_malloc"));
    fg_free(block);
}

static void blocks_keep_their_bytes_when_they_grow(void **state)
{
    (void)state;
    char *block = fg_calloc(10, 10);
    for (int i = 0; i < 100; i++)
        assert_int_equal(block[i], 0);
    memset(block, 3, 100);
    assert_true(fg_usable_size(block) >= 100);
    block = fg_realloc(block, 100000);
    for (int i = 0; i < 100; i++)
        assert_int_equal(block[i], 3);
    fg_free(block);
    fg_free(NULL);
    assert_null(fg_calloc(SIZE_MAX / 2, 4));
}

static void the_environment_chooses_libc(void **state)
{
    (void)state;
    const char *wish = getenv("FRAMEGATE_ALLOC");
    if (wish != NULL && strcmp(wish, "libc") == 0)
        assert_string_equal(fg_alloc_table_get()->name, "libc");
    else
        assert_true(strcmp(fg_alloc_table_get()->name, "libc") == 0 || strcmp(fg_alloc_table_get()->name, "mimalloc") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hosts_malloc_stays_its_own),
        cmocka_unit_test(blocks_keep_their_bytes_when_they_grow),
        cmocka_unit_test(the_environment_chooses_libc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
