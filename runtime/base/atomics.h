/* Purpose:   C11 atomics whose names carry the memory order; for a C++ program, std::atomic of the same layout.
 * Model:     thin macros over <stdatomic.h> or <atomic>; there is no wrapper without an order and none with a default one.
 * Invariants: every use outside this file says what it pairs with and why a weaker order fails; relaxed uses say why no order is needed.
 * Threading: that is the point.
 * Ownership: none.
 *
 * There are no fences here on purpose: ThreadSanitizer does not see them. Where an order between two locations is needed, both accesses
 * are seq_cst operations.
 */
#ifndef FG_BASE_ATOMICS_H
#define FG_BASE_ATOMICS_H

#include <stdint.h>

#ifdef __cplusplus
#include <atomic>
#define FG_ATOMIC(TYPE) std::atomic<TYPE>
#define FG_STD(NAME) std::NAME
#else
#include <stdatomic.h>
#define FG_ATOMIC(TYPE) _Atomic(TYPE)
#define FG_STD(NAME) NAME
#endif

#define fg_load_relaxed(p) FG_STD(atomic_load_explicit)((p), FG_STD(memory_order_relaxed))
#define fg_load_acquire(p) FG_STD(atomic_load_explicit)((p), FG_STD(memory_order_acquire))
#define fg_load_seq_cst(p) FG_STD(atomic_load_explicit)((p), FG_STD(memory_order_seq_cst))

#define fg_store_relaxed(p, v) FG_STD(atomic_store_explicit)((p), (v), FG_STD(memory_order_relaxed))
#define fg_store_release(p, v) FG_STD(atomic_store_explicit)((p), (v), FG_STD(memory_order_release))
#define fg_store_seq_cst(p, v) FG_STD(atomic_store_explicit)((p), (v), FG_STD(memory_order_seq_cst))

#define fg_add_relaxed(p, v) FG_STD(atomic_fetch_add_explicit)((p), (v), FG_STD(memory_order_relaxed))
#define fg_sub_acq_rel(p, v) FG_STD(atomic_fetch_sub_explicit)((p), (v), FG_STD(memory_order_acq_rel))
#define fg_swap_acq_rel(p, v) FG_STD(atomic_exchange_explicit)((p), (v), FG_STD(memory_order_acq_rel))

/* Compare and swap; a failure loads the current value into *expected with the second order. */
#define fg_cas_acq_rel(p, expected, v) \
    FG_STD(atomic_compare_exchange_strong_explicit)((p), (expected), (v), FG_STD(memory_order_acq_rel), FG_STD(memory_order_acquire))
#define fg_cas_seq_cst(p, expected, v) \
    FG_STD(atomic_compare_exchange_strong_explicit)((p), (expected), (v), FG_STD(memory_order_seq_cst), FG_STD(memory_order_seq_cst))
#define fg_cas_release(p, expected, v) \
    FG_STD(atomic_compare_exchange_strong_explicit)((p), (expected), (v), FG_STD(memory_order_release), FG_STD(memory_order_relaxed))

#define FG_CACHE_LINE 64

#endif
