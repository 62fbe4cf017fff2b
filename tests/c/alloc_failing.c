#include "tests/c/alloc_failing.h"
#include "runtime/base/alloc.h"
#include "runtime/base/atomics.h"

#include <malloc.h>
#include <stdlib.h>

static _Atomic size_t living, living_bytes;
static size_t countdown;
static int fired;

int alloc_failing_now(void)
{
    if (countdown == 0 || --countdown > 0)
        return 0;
    fired = 1;
    return 1;
}

static void *counted(void *block)
{
    if (block != NULL) {
        fg_add_relaxed(&living, (size_t)1);
        fg_add_relaxed(&living_bytes, malloc_usable_size(block));
    }
    return block;
}

static void *failing_malloc(size_t size)
{
    return alloc_failing_now() ? NULL : counted(malloc(size));
}

static void *failing_calloc(size_t count, size_t size)
{
    return alloc_failing_now() ? NULL : counted(calloc(count, size));
}

static void *failing_realloc(void *block, size_t size)
{
    if (alloc_failing_now())
        return NULL;
    size_t before = block == NULL ? 0 : malloc_usable_size(block);
    void *grown = realloc(block, size);
    if (block == NULL)
        return counted(grown);
    if (grown != NULL)
        fg_add_relaxed(&living_bytes, malloc_usable_size(grown) - before);
    return grown;
}

static void failing_free(void *block)
{
    fg_add_relaxed(&living, (size_t)0 - 1);
    fg_add_relaxed(&living_bytes, (size_t)0 - malloc_usable_size(block));
    free(block);
}

static size_t usable_size(const void *block)
{
    return malloc_usable_size((void *)block);
}

void alloc_failing_install(void)
{
    static const fg_alloc_table table = {"failing", failing_malloc, failing_calloc, failing_realloc, failing_free, usable_size};
    if (fg_alloc_table_set(&table) != FG_OK)
        abort();
}

void alloc_failing_at(size_t n)
{
    countdown = n;
    fired = 0;
}

void alloc_failing_disarm(void)
{
    countdown = 0;
}

int alloc_failing_fired(void)
{
    return fired;
}

size_t alloc_failing_living(void)
{
    return fg_load_relaxed(&living);
}

size_t alloc_failing_living_bytes(void)
{
    return fg_load_relaxed(&living_bytes);
}
