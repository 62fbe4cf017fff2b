/* Purpose:   one table of allocation functions behind every byte the engine owns.
 * Model:     mimalloc (loaded privately, so that the host's malloc stays its own) or libc; a host program may set its own.
 * Invariants: a block is freed by the table that made it: the table is set once, before the first allocation.
 * Threading: the table's functions must be thread safe; setting it is not.
 * Ownership: the caller owns what it allocates. NULL means out of memory; nothing is set or printed.
 */
#ifndef FG_BASE_ALLOC_H
#define FG_BASE_ALLOC_H

#include "runtime/base/status.h"
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fg_alloc_table {
    const char *name;
    void *(*malloc)(size_t size);
    void *(*calloc)(size_t count, size_t size);
    void *(*realloc)(void *block, size_t size);
    void (*free)(void *block);
    size_t (*usable_size)(const void *block); /* bytes really reserved for the block; may be NULL */
} fg_alloc_table;

void *fg_malloc(size_t size);
void *fg_calloc(size_t count, size_t size);
void *fg_realloc(void *block, size_t size);
void fg_free(void *block);                        /* NULL is fine */
void fg_trim(void *array, size_t n, size_t item); /* *array's room beyond n items goes back; where that fails, it stays */
size_t fg_usable_size(const void *block);
size_t fg_block_bytes(const void *block,
                      size_t asked); /* what it takes: usable_size where the table can say, else what was asked for; NULL: 0 */

const fg_alloc_table *fg_alloc_table_get(void);
fg_status fg_alloc_table_set(const fg_alloc_table *table); /* FG_ERR_BUSY after the first allocation */

#ifdef __cplusplus
}
#endif

#endif
