#include "runtime/base/arena.h"
#include "runtime/base/alloc.h"

#include <stdint.h>
#include <string.h>

enum { ALIGN = 16, FIRST_CHUNK = 4096, MAX_CHUNK = 1 << 20 };

struct fg_arena_chunk {
    fg_arena_chunk *below;
    size_t size; /* of the bytes that follow */
};

#define HEADER ((sizeof(fg_arena_chunk) + ALIGN - 1) & ~(size_t)(ALIGN - 1))

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define POISON(at, size) __asan_poison_memory_region((at), (size))
#define UNPOISON(at, size) __asan_unpoison_memory_region((at), (size))
#else
#define POISON(at, size) ((void)0)
#define UNPOISON(at, size) ((void)0)
#endif

static char *chunk_start(fg_arena_chunk *chunk)
{
    return (char *)chunk + HEADER;
}

void fg_arena_init(fg_arena *arena)
{
    memset(arena, 0, sizeof *arena);
}

static void drop_top(fg_arena *arena)
{
    fg_arena_chunk *chunk = arena->top;
    arena->top = chunk->below;
    UNPOISON(chunk_start(chunk), chunk->size);
#ifdef FG_ALLOC_LIBC_BLOCKS
    /* A reader of rewound state sees bytes that fail fast even where no sanitizer looks. */
    memset(chunk_start(chunk), 0xDB, chunk->size);
#endif
    fg_free(chunk);
}

static int add_chunk(fg_arena *arena, size_t size)
{
    fg_arena_chunk *chunk = fg_malloc(HEADER + size);
    if (chunk == NULL)
        return 0;
    chunk->below = arena->top;
    chunk->size = size;
    arena->top = chunk;
    return 1;
}

void *fg_arena_alloc(fg_arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = size ? (size + ALIGN - 1) & ~(size_t)(ALIGN - 1) : ALIGN;
#ifdef FG_ALLOC_LIBC_BLOCKS
    if (!add_chunk(arena, size))
        return NULL;
    arena->at = arena->end = chunk_start(arena->top) + size;
    char *block = chunk_start(arena->top);
#else
    if (size > (size_t)(arena->end - arena->at)) {
        size_t wanted = arena->top == NULL ? FIRST_CHUNK : arena->top->size * 2;
        if (wanted > MAX_CHUNK)
            wanted = MAX_CHUNK;
        if (wanted < size)
            wanted = size;
        if (!add_chunk(arena, wanted))
            return NULL;
        arena->at = chunk_start(arena->top);
        arena->end = arena->at + wanted;
        POISON(arena->at, wanted);
    }
    char *block = arena->at;
    UNPOISON(block, size);
    arena->at += size;
#endif
    arena->total += size;
    memset(block, 0, size);
    return block;
}

fg_arena_mark fg_arena_mark_get(const fg_arena *arena)
{
    return (fg_arena_mark){arena->top, arena->at, arena->total};
}

void fg_arena_rewind(fg_arena *arena, fg_arena_mark mark)
{
    while (arena->top != mark.top)
        drop_top(arena);
    arena->at = mark.at;
    arena->end = arena->top == NULL ? NULL : chunk_start(arena->top) + arena->top->size;
    arena->total = mark.total;
    if (arena->end != arena->at)
        POISON(arena->at, (size_t)(arena->end - arena->at));
}

void fg_arena_fini(fg_arena *arena)
{
    fg_arena_rewind(arena, (fg_arena_mark){NULL, NULL, 0});
}
