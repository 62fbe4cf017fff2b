/* How much C stack this thread has left.
 *
 * The bounds of a thread's stack do not change, so they are asked for once a thread; after that the answer is one thread-local read and a
 * subtraction, and as long as no other thread asks, fg_thread_is_ordinary does without even that. Code that runs on a stack of its own (a
 * coroutine library) is outside the bounds: nothing is known there, and the answer is the largest number.
 *
 * A thread that runs plain never becomes the one that asked last: so fg_thread_is_ordinary says no there without looking at anything more.
 */
#define _GNU_SOURCE
#include "runtime/cpython/eval_hook.h"
#include <pthread.h>

/* Below this distance from the lowest address the kernel or a guard page may already refuse. */
#define GUARD_ZONE (64 * 1024)

static _Thread_local uintptr_t lowest, highest; /* 0, 0: not asked yet */
static _Thread_local uintptr_t last;            /* the lowest address that is there at all; 0: nothing is known */
static _Thread_local uint32_t plain_depth;
fg_thread_stack fg_thread_stack_last;

/* Stacks smaller than this are asked about at each call. */
#define WORTH (1024 * 1024)

/* What one more call of plain Python takes at most, with what it calls in C. */
#define PLAIN_ROOM (12 * 1024)

static __attribute__((noinline)) void find_bounds(void)
{
    pthread_attr_t attr;
    void *base = NULL;
    size_t size = 0, guard = 0;
    lowest = 1, highest = 1;
    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return;
    if (pthread_attr_getstack(&attr, &base, &size) == 0 && pthread_attr_getguardsize(&attr, &guard) == 0 && size > guard) {
        last = (uintptr_t)base + guard;
        highest = (uintptr_t)base + size;
        lowest = size > guard + GUARD_ZONE ? last + GUARD_ZONE : highest;
    }
    pthread_attr_destroy(&attr);
}

size_t fg_stack_left(void)
{
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (!highest)
        find_bounds();
    if (here - lowest < highest - lowest) {
        const PyThreadState *thread = fg_thread_state();
        if (thread != NULL && highest - lowest >= WORTH && plain_depth == 0)
            fg_thread_stack_last = (fg_thread_stack){thread->id, lowest, highest - lowest, fg_thread_monitors(thread)};
        return here - lowest;
    }
    return here < lowest && lowest - here <= GUARD_ZONE ? 0 : SIZE_MAX;
}

int fg_stack_fits_plain(void)
{
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    return last != 0 && highest - last < WORTH && here > last && here - last > PLAIN_ROOM;
}

void fg_thread_plain_enter(void)
{
    plain_depth++;
    fg_thread_stack_last = (fg_thread_stack){0};
    fg_eval_forget_thread();
}

void fg_thread_plain_leave(void)
{
    plain_depth--;
    fg_eval_forget_thread();
}

int fg_thread_is_plain(void)
{
    return plain_depth != 0;
}
