/* Epoch-based reclamation (K. Fraser, "Practical lock-freedom", 2004; the retirement list is shared, as writers here are rare).
 *
 *     reader                      writer                          anybody (try_advance)
 *     1 seen = now                4 unlink node (seq_cst)         7 e = now
 *     2 p = load link             5 node.epoch = now              8 every reader: seen == 0 or seen == e, else give up
 *     3 … use *p …, seen = 0      6 push on limbo                 9 CAS now: e -> e+1
 *
 * A node of epoch t is freed by who observes now >= t + 2.
 *
 * Claim: no reader uses p after its free. All numbered accesses to `now`, `seen` and the link are seq_cst, so they have one total order S.
 * Suppose a reader's 2 gave the node that 4 unlinked. Then 2 is before 4 in S, so its 1 is before 4 too. For the node to be freed, now went from
 * t+1 to t+2; that advance's step 7 read t+1, and the writer's 5 read t, so 5 is before that 7 in S. Hence 1 < 2 < 4 < 5 < 7 < 8:
 * the scan saw the reader's mark or a later one of the same reader. The mark is at most t (it was loaded before 5), so it is not t+1, and the
 * scan gave up, unless the reader had left the section. In that case the exit's release store, read by the scan (acquire) and passed on by the
 * CAS of 9 to who observes t+2, orders the reader's last use before the free. A newer mark of the same reader follows its exit in program order. ∎
 *
 * A reader that stalls between loading `now` and storing `seen` shows an old epoch: that holds advances up, and is never unsafe.
 *
 * Rules for changing this file:
 * 1. The link a reader loads inside a section, and the operation that unlinks, stay seq_cst. On x86-64 the load is a plain one.
 * 2. No fences: ThreadSanitizer does not model them.
 * 3. Limbo is pushed singly and taken whole, so there is no ABA; keep it so.
 */
#include "cache/epoch.h"
#include "runtime/base/alloc.h"
#include "runtime/base/log.h"

#include <string.h>

void fg_epoch_init(fg_epoch *epoch)
{
    memset(epoch, 0, sizeof *epoch);
    fg_store_seq_cst(&epoch->now, UINT64_C(1));
}

fg_status fg_epoch_reader_new(fg_epoch *epoch, fg_epoch_reader **out)
{
    for (fg_epoch_reader *r = fg_load_acquire(&epoch->readers); r != NULL; r = r->next) {
        uint32_t expected = 0;
        if (fg_load_relaxed(&r->taken) == 0 && fg_cas_acq_rel(&r->taken, &expected, 1u)) {
            *out = r;
            return FG_OK;
        }
    }
    fg_epoch_reader *reader = fg_calloc(1, sizeof *reader);
    if (reader == NULL)
        return FG_ERR_NOMEM;
    fg_store_relaxed(&reader->taken, 1u);
    reader->domain = epoch;
    reader->next = fg_load_acquire(&epoch->readers);
    /* seq_cst: a scan (step 8) that does not see this record comes before our first mark in S. */
    while (!fg_cas_seq_cst(&epoch->readers, &reader->next, reader)) {
    }
    *out = reader;
    return FG_OK;
}

void fg_epoch_reader_free(fg_epoch_reader *reader)
{
    FG_ASSERT(reader->depth == 0);
    /* Release pairs with the CAS that takes the record again: its next owner sees depth 0. */
    fg_store_release(&reader->taken, 0u);
}

static void try_advance(fg_epoch *epoch)
{
    uint64_t now = fg_load_seq_cst(&epoch->now);
    for (fg_epoch_reader *r = fg_load_seq_cst(&epoch->readers); r != NULL; r = r->next) {
        uint64_t seen = fg_load_seq_cst(&r->seen);
        if (seen != 0 && seen != now)
            return;
    }
    (void)fg_cas_seq_cst(&epoch->now, &now, now + 1);
}

static void push(fg_epoch *epoch, fg_epoch_node *first, fg_epoch_node *last)
{
    last->next = fg_load_relaxed(&epoch->limbo);
    /* Release pairs with the swap in fg_epoch_poll: the node's fields are seen by who frees it. */
    while (!fg_cas_release(&epoch->limbo, &last->next, first)) {
    }
}

size_t fg_epoch_poll(fg_epoch *epoch)
{
    if (fg_load_relaxed(&epoch->limbo) == NULL)
        return 0;
    try_advance(epoch);
    /* The list first, then the epoch: every node in the list is judged by an epoch not older than its own. */
    fg_epoch_node *node = fg_swap_acq_rel(&epoch->limbo, NULL);
    uint64_t now = fg_load_seq_cst(&epoch->now);
    fg_epoch_node *kept = NULL, *kept_last = NULL;
    fg_epoch_node *due = NULL;
    size_t n_due = 0;
    while (node != NULL) {
        fg_epoch_node *next = node->next;
        if (now >= node->epoch + 2) {
            node->next = due;
            due = node;
            n_due++;
        } else {
            node->next = kept;
            if (kept == NULL)
                kept_last = node;
            kept = node;
        }
        node = next;
    }
    if (kept != NULL)
        push(epoch, kept, kept_last);
    fg_add_relaxed(&epoch->n_limbo, (size_t)0 - n_due);
    while (due != NULL) {
        fg_epoch_node *next = due->next;
        due->free(due);
        due = next;
    }
    return n_due;
}

void fg_epoch_retire(fg_epoch *epoch, fg_epoch_node *node, void (*free)(fg_epoch_node *node))
{
    node->free = free;
    node->epoch = fg_load_seq_cst(&epoch->now);
    fg_add_relaxed(&epoch->n_limbo, (size_t)1);
    push(epoch, node, node);
    fg_epoch_poll(epoch);
}

void fg_epoch_fini(fg_epoch *epoch)
{
    fg_epoch_node *node = fg_swap_acq_rel(&epoch->limbo, NULL);
    while (node != NULL) {
        fg_epoch_node *next = node->next;
        node->free(node);
        node = next;
    }
    fg_epoch_reader *reader = fg_swap_acq_rel(&epoch->readers, NULL);
    while (reader != NULL) {
        fg_epoch_reader *next = reader->next;
        FG_ASSERT(fg_load_relaxed(&reader->taken) == 0);
        fg_free(reader);
        reader = next;
    }
}
