/* Purpose:   C11 atomics whose names carry the memory order.
 * Model:     thin macros over <stdatomic.h>; there is no wrapper without an order and none with a default one.
 * Invariants: every use outside this file says what it pairs with and why a weaker order fails; relaxed uses say why no order is needed.
 * Threading: that is the point.
 * Ownership: none.
 *
 * There are no fences here on purpose: ThreadSanitizer does not see them. Where an order between two locations is needed, both accesses
 * are seq_cst operations.
 */
#ifndef FG_BASE_ATOMICS_H
#define FG_BASE_ATOMICS_H

#include <stdatomic.h>
#include <stdint.h>

#define fg_load_relaxed(p) atomic_load_explicit((p), memory_order_relaxed)
#define fg_load_acquire(p) atomic_load_explicit((p), memory_order_acquire)
#define fg_load_seq_cst(p) atomic_load_explicit((p), memory_order_seq_cst)

#define fg_store_relaxed(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)
#define fg_store_release(p, v) atomic_store_explicit((p), (v), memory_order_release)
#define fg_store_seq_cst(p, v) atomic_store_explicit((p), (v), memory_order_seq_cst)

#define fg_add_relaxed(p, v) atomic_fetch_add_explicit((p), (v), memory_order_relaxed)
#define fg_sub_acq_rel(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_acq_rel)
#define fg_swap_acq_rel(p, v) atomic_exchange_explicit((p), (v), memory_order_acq_rel)

/* Compare and swap; a failure loads the current value into *expected with the second order. */
#define fg_cas_acq_rel(p, expected, v) \
    atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_acq_rel, memory_order_acquire)
#define fg_cas_seq_cst(p, expected, v) \
    atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_seq_cst, memory_order_seq_cst)
#define fg_cas_release(p, expected, v) \
    atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_release, memory_order_relaxed)

#define FG_CACHE_LINE 64

#endif
