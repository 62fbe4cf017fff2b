/* Purpose:   bump allocation for state that dies all at once (a trace, a program build).
 * Model:     chunks of doubling size; a mark is a position, rewinding to it frees everything after it.
 * Invariants: blocks are aligned to 16 bytes and zeroed; nothing is freed singly.
 * Threading: one thread at a time.
 * Ownership: the arena owns its blocks. Under FG_ALLOC_LIBC_BLOCKS builds each block is one malloc, poisoned on rewind.
 */
#ifndef FG_BASE_ARENA_H
#define FG_BASE_ARENA_H

#include <stddef.h>

typedef struct fg_arena_chunk fg_arena_chunk;
typedef struct fg_arena {
    fg_arena_chunk *top;
    char *at, *end;
    size_t total; /* bytes handed out */
} fg_arena;
typedef struct fg_arena_mark {
    fg_arena_chunk *top;
    char *at;
    size_t total;
} fg_arena_mark;

void fg_arena_init(fg_arena *arena);
void fg_arena_fini(fg_arena *arena);
void *fg_arena_alloc(fg_arena *arena, size_t size); /* zeroed; NULL: out of memory */
fg_arena_mark fg_arena_mark_get(const fg_arena *arena);
void fg_arena_rewind(fg_arena *arena, fg_arena_mark mark);

#endif
