/* The table is chosen once, by the first allocation: one set by the host program, else the one that the environment variable
 * FRAMEGATE_ALLOC names ("mimalloc" or "libc"), else mimalloc if its library can be loaded, else libc.
 *
 * mimalloc's shared library defines malloc and free too. Linked normally it would take the host's allocator over, so it is opened with
 * RTLD_LOCAL: nobody but us can find its symbols, and only its mi_ functions are asked for. It stays open for the life of the process,
 * since blocks of it may.
 */
#define _GNU_SOURCE
#include "runtime/base/alloc.h"
#include "runtime/base/atomics.h"
#include "runtime/base/log.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static size_t libc_usable_size(const void *block)
{
    return malloc_usable_size((void *)block);
}

static const fg_alloc_table libc_table = {"libc", malloc, calloc, realloc, free, libc_usable_size};

#ifndef FG_ALLOC_LIBC_BLOCKS
static fg_alloc_table mimalloc_table;

/* POSIX gives functions as object pointers here; ISO C has no such conversion, hence the copy of the bits. */
static int find_function(void *library, const char *name, void *function, size_t size)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, size);
    return found != NULL;
}

static const fg_alloc_table *load_mimalloc(void)
{
    static const char *const names[] = {"libmimalloc.so.2", "libmimalloc.so.3", "libmimalloc.so"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library == NULL)
            continue;
        fg_alloc_table table = {.name = "mimalloc"};
#define FIND(FIELD, NAME) find_function(library, NAME, &table.FIELD, sizeof table.FIELD)
        if (FIND(malloc, "mi_malloc") && FIND(calloc, "mi_calloc") && FIND(realloc, "mi_realloc") && FIND(free, "mi_free") &&
            FIND(usable_size, "mi_usable_size")) {
            mimalloc_table = table;
            return &mimalloc_table;
        }
#undef FIND
        dlclose(library);
    }
    return NULL;
}
#endif

static _Atomic(const fg_alloc_table *) chosen; /* NULL until the first use */
static atomic_flag choosing = ATOMIC_FLAG_INIT;

static const fg_alloc_table *choose_table(void)
{
    const fg_alloc_table *table = NULL;
#ifndef FG_ALLOC_LIBC_BLOCKS
    const char *wish = getenv("FRAMEGATE_ALLOC");
    /* Only one thread may fill mimalloc_table; the losers wait for its choice. The loader's own locks are held for longer than this. */
    while (atomic_flag_test_and_set_explicit(&choosing, memory_order_acquire)) {
    }
    table = fg_load_acquire(&chosen);
    if (table == NULL && (wish == NULL || strcmp(wish, "libc") != 0))
        table = load_mimalloc();
#endif
    if (table == NULL)
        table = &libc_table;
    const fg_alloc_table *expected = NULL;
    /* Release pairs with the acquire loads of `chosen`: the table's fields are seen filled. */
    if (!fg_cas_acq_rel(&chosen, &expected, table))
        table = expected;
    atomic_flag_clear_explicit(&choosing, memory_order_release);
    FG_TRACE(BASE, "allocator is %s", table->name);
    return table;
}

static inline const fg_alloc_table *table_get(void)
{
    const fg_alloc_table *table = fg_load_acquire(&chosen);
    return __builtin_expect(table != NULL, 1) ? table : choose_table();
}

const fg_alloc_table *fg_alloc_table_get(void)
{
    return table_get();
}

fg_status fg_alloc_table_set(const fg_alloc_table *table)
{
    if (table == NULL || !table->malloc || !table->calloc || !table->realloc || !table->free)
        return FG_ERR_INVALID;
    const fg_alloc_table *expected = NULL;
    return fg_cas_acq_rel(&chosen, &expected, table) ? FG_OK : FG_ERR_BUSY;
}

void *fg_malloc(size_t size)
{
    return table_get()->malloc(size ? size : 1);
}

void *fg_calloc(size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size)
        return NULL;
    return table_get()->calloc(count ? count : 1, size ? size : 1);
}

void *fg_realloc(void *block, size_t size)
{
    return table_get()->realloc(block, size ? size : 1);
}

void fg_free(void *block)
{
    if (block != NULL)
        table_get()->free(block);
}

void fg_trim(void *array, size_t n, size_t item)
{
    void *old, *less;
    memcpy(&old, array, sizeof old);
    if (old == NULL || n == 0 || (less = fg_realloc(old, n * item)) == NULL)
        return;
    memcpy(array, &less, sizeof less);
}

size_t fg_usable_size(const void *block)
{
    const fg_alloc_table *table = table_get();
    return block != NULL && table->usable_size != NULL ? table->usable_size(block) : 0;
}

size_t fg_block_bytes(const void *block, size_t asked)
{
    size_t usable = fg_usable_size(block);
    return block == NULL ? 0 : usable > 0 ? usable : asked;
}
