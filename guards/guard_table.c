/* Constant tables: n conditions of one kind on one value, answered by one look-up.
 *
 * The rows of a tensor table share type and adaptor. Of their metadata only some words differ; a greedy choice takes the word that tells most rows
 * apart, then the next, until all rows are told apart. The hash reads those words only (mostly one size), and the row it finds is compared in
 * full, so the answer does not depend on the choice.
 */
#include "guards/guard_insn.h"
#include <stdlib.h>
#include <string.h>

static uint64_t row_word(const fg_meta_record *row, int position)
{
    return fg_meta_word(position, row->ndim, row->dtype, row->keys, row->device_type, row->device_index, row->requires_grad, row->layout,
                        row->dims, row->dims + row->ndim);
}

static int word_order(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static uint32_t count_distinct(uint64_t *words, uint32_t n)
{
    uint32_t distinct = n > 0;
    qsort(words, n, sizeof *words, word_order);
    for (uint32_t i = 1; i < n; i++)
        distinct += words[i] != words[i - 1];
    return distinct;
}

static void choose_positions(fg_table *table, const fg_leaf *leaves, uint32_t n, uint64_t *scratch)
{
    uint8_t differs[FG_META_WORDS] = {0};
    uint32_t best_count = 1;

    for (uint32_t i = 1; i < n; i++) {
        for (int p = 0; p < FG_META_WORDS; p++)
            differs[p] |= row_word(leaves[0].p, p) != row_word(leaves[i].p, p);
    }
    while (best_count < n) {
        int best = -1;
        for (int p = 0; p < FG_META_WORDS; p++) {
            if (!differs[p])
                continue;
            table->positions[table->n_positions++] = (uint16_t)p;
            for (uint32_t i = 0; i < n; i++) {
                const fg_meta_record *row = leaves[i].p;
                scratch[i] = FG_META_HASH(table, row, row->dims, row->dims + row->ndim);
            }
            table->n_positions--;
            uint32_t count = count_distinct(scratch, n);
            if (count > best_count) {
                best_count = count;
                best = p;
                if (count == n)
                    break;
            }
        }
        if (best < 0)
            return; /* rows that hash alike are still told apart by the full comparison */
        table->positions[table->n_positions++] = (uint16_t)best;
        differs[best] = 0;
    }
}

static uint64_t row_hash(const fg_table *table, fg_pi op, const fg_leaf *leaf)
{
    if (op == FG_PI_TABLE_TENSOR) {
        const fg_meta_record *row = leaf->p;
        return FG_META_HASH(table, row, row->dims, row->dims + row->ndim);
    }
    if (op == FG_PI_TABLE_CONST)
        return fg_const_hash((PyObject *)leaf->p);
    if (op == FG_PI_TABLE_LENGTH)
        return (uint64_t)leaf->lo;
    return (uint64_t)(uintptr_t)leaf->p >> 4;
}

fg_table *fg_table_new(fg_pi op, const fg_leaf *leaves, const uint64_t *masks, uint32_t n, size_t *nbytes)
{
    uint32_t room = 4, bits = 2;
    while (room < n + n / 2 + 1) {
        room *= 2;
        bits++;
    }
    *nbytes = sizeof(fg_table) + room * sizeof(fg_slot);
    fg_table *table = fg_calloc(1, *nbytes);
    uint64_t *scratch = fg_malloc((n + 1) * sizeof *scratch);
    if (table == NULL || scratch == NULL) {
        fg_free(table);
        fg_free(scratch);
        return NULL;
    }
    table->room = room;
    table->shift = 64 - bits;
    if (op == FG_PI_TABLE_TENSOR)
        choose_positions(table, leaves, n, scratch);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t hash = row_hash(table, op, &leaves[i]);
        /* States are few and read once: they are compared in order, from the first slot on. */
        uint32_t at = op == FG_PI_TABLE_STATE ? 0 : fg_table_home(table, hash);
        while (table->slots[at].used)
            at = (at + 1) & (room - 1);
        table->slots[at] = (fg_slot){.hash = hash, .mask = masks[i], .leaf = leaves[i], .used = 1};
    }
    fg_free(scratch);
    return table;
}
