/* Purpose:   safe memory reclamation for readers that are real threads: epochs.
 * Model:     a domain has a global epoch; a reader inside a section shows the epoch it saw. What is unlinked is retired with the epoch of that moment
 *            and freed two epochs later. Essay with the proof: cache/epoch.c.
 * Invariants: a reader belongs to one thread at a time; sections nest; no section is kept open across a call that may wait.
 * Threading: all functions from any thread; enter and exit are wait-free, retire and poll lock-free.
 * Ownership: the domain owns reader records (reused, freed with the domain) and retired nodes until it calls their free callback.
 */
#ifndef FG_CACHE_EPOCH_H
#define FG_CACHE_EPOCH_H

#include "runtime/base/atomics.h"
#include "runtime/base/status.h"
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fg_epoch_node {
    struct fg_epoch_node *next;
    uint64_t epoch;
    void (*free)(struct fg_epoch_node *node);
} fg_epoch_node;

typedef struct fg_epoch_reader {
    FG_ATOMIC(uint64_t) seen; /* 0: in no section; else the epoch */
    FG_ATOMIC(uint32_t) taken;
    uint32_t depth;
    struct fg_epoch *domain;
    struct fg_epoch_reader *next; /* set before the record is linked, constant afterwards */
    char pad[FG_CACHE_LINE];      /* records of different threads on different lines */
} fg_epoch_reader;

typedef struct fg_epoch {
    FG_ATOMIC(uint64_t) now; /* starts at 1 */
    FG_ATOMIC(fg_epoch_reader *) readers;
    FG_ATOMIC(fg_epoch_node *) limbo;
    FG_ATOMIC(size_t) n_limbo;
} fg_epoch;

void fg_epoch_init(fg_epoch *epoch);
/* No reader may be registered any more; frees everything retired. */
void fg_epoch_fini(fg_epoch *epoch);

fg_status fg_epoch_reader_new(fg_epoch *epoch, fg_epoch_reader **out);
void fg_epoch_reader_free(fg_epoch_reader *reader);

static inline void fg_epoch_enter(fg_epoch_reader *reader)
{
    /* seq_cst on both: step 1 of the proof in cache/epoch.c; with a release store the reads of the section could come first. */
    if (reader->depth++ == 0)
        fg_store_seq_cst(&reader->seen, fg_load_seq_cst(&reader->domain->now));
}

static inline void fg_epoch_exit(fg_epoch_reader *reader)
{
    /* Release pairs with the scan in try_advance: the section's reads happen before a free that saw us outside. */
    if (--reader->depth == 0)
        fg_store_release(&reader->seen, UINT64_C(0));
}

/* Give up an unlinked node: free(node) is called when no section that could have seen it is open. The unlinking must have been a seq_cst operation. */
void fg_epoch_retire(fg_epoch *epoch, fg_epoch_node *node, void (*free)(fg_epoch_node *node));
/* Try to advance and free what is due; gives the number freed. fg_epoch_retire does it too. */
size_t fg_epoch_poll(fg_epoch *epoch);

#ifdef __cplusplus
}
#endif

#endif
