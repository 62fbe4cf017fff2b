/* Purpose:   an allocation table that fails the n-th allocation and counts blocks that live, for out-of-memory tests.
 * Model:     alloc_failing_install once, before the first allocation of the process; then alloc_failing_at(n) before each try.
 * Threading: counts are atomic; the countdown is for one thread.
 */
#ifndef TESTS_ALLOC_FAILING_H
#define TESTS_ALLOC_FAILING_H

#include <stddef.h>

void alloc_failing_install(void);
/* The n-th allocation from now on fails (1: the next one), and none after it; 0: none fails. */
void alloc_failing_at(size_t n);
/* For allocators of others that share the countdown: count one allocation; 1: it must fail. */
int alloc_failing_now(void);
/* Nothing fails any more; whether something did is kept. */
void alloc_failing_disarm(void);
/* 1 if that failure has happened. */
int alloc_failing_fired(void);
size_t alloc_failing_living(void);
size_t alloc_failing_living_bytes(void); /* as the allocator reserves them */

#endif
