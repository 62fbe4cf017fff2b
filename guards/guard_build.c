/* Building a merged program.
 *
 * 1. Merge: the sources of all entries that take part go into one tree, keyed by (parent, accessor, key by exact type and bits); each has two sets
 *    of entries, those that need a value there and those that need an absence. Conditions go to the merged source they are on, each distinct one
 *    once, with the set of entries that ask for it. A condition that another of the same entry implies is dropped.
 * 2. Order: what failed often in the program before goes to the front of what it may change places with (guard_order.c).
 * 3. Emit: state first, then the roots with their conditions (arguments tell most), then each root's subtree depth first, relations last. Depth first
 *    makes everything below a source contiguous, so that its instruction can lead past it (`skip`).
 * 4. Three or more conditions of one kind on one source become a table.
 *
 *          arg 0                      LOAD_ARG       {A,B,C}   skip 3 ─┐
 *          ├ type_is dict  {A,B}      FACT_TYPE      {A,B}             │
 *          ├ type_is list  {C}        FACT_TYPE      {C}               │
 *          ├ ['lr']        {A,B}      LOAD_DICT_ITEM {A,B}    skip 1   │
 *          │ └ equals 0.1  {A}        FACT_CONST     {A}               │
 *          └ [0]           {C}        LOAD_LIST_ITEM {C}      <────────┘
 *
 * Rules for changing it: a child's set is inside its parent's; a source's conditions are emitted before its children; SLOT_ATTR depends on both.
 */
#include "guards/guard_memo.h"
#include "guards/guard_merge.h"
#include <string.h>

fg_status fg_program_build(const fg_desc *const *descs, size_t n, const fg_program *old, fg_program **out)
{
    fg_status st;
    fg_build b = {.descs = descs, .first_root = -1, .last_root = -1, .first_loose = -1, .last_loose = -1};

    if (n > UINT16_MAX)
        return FG_ERR_LIMIT;
    b.program = fg_calloc(1, sizeof *b.program);
    if (b.program == NULL)
        return FG_ERR_NOMEM;
    b.program->n_entries = (uint32_t)n;
    b.program->n_words = b.n_words = n > 64 ? (uint32_t)(n + 63) / 64 : 1;
    b.program->single = n == 1;
    b.program->entries = fg_calloc(n + 1, sizeof *b.program->entries);
    b.program->all = fg_calloc(b.n_words, sizeof *b.program->all);
    if (b.program->entries == NULL || b.program->all == NULL)
        FG_TRY(FG_ERR_NOMEM);
    for (uint32_t i = 0; i < n; i++)
        FG_TRY(fg_build_merge(&b, i));
    FG_TRY(fg_build_order(&b, old));
    FG_TRY(fg_build_emit(&b));
    FG_TRY(fg_build_widen(b.program));
    fg_program *made = b.program;
    fg_trim(&made->code, made->n_code, sizeof *made->code);
    fg_trim(&made->keys, made->n_code, sizeof *made->keys);
    fg_trim(&made->masks, made->n_masks, sizeof *made->masks);
    if (made->any_impure || made->n_words > 1 || (made->single && made->entries[0].never))
        made->way = FG_WAY_ANY;
    else
        made->way = made->single ? FG_WAY_ONE : FG_WAY_WORD;
    *out = b.program;
    b.program = NULL;
fail:
    for (uint32_t i = 0; i < b.n_facts; i++) {
        fg_free(b.facts[i].ids);
        fg_free(b.facts[i].adaptors);
    }
    fg_free(b.nodes);
    fg_free(b.facts);
    fg_free(b.sets);
    fg_free(b.heads);
    fg_free(b.starts);
    fg_free(b.weights);
    fg_program_free(b.program);
    return st;
}

void fg_program_free(fg_program *program)
{
    if (program == NULL)
        return;
    for (uint32_t i = 0; program->entries != NULL && i < program->n_entries; i++)
        fg_free(program->entries[i].outputs);
    for (uint32_t i = 0; i < program->n_memos; i++)
        fg_memo_free(program->memos[i]);
    for (uint32_t i = 0; i < program->n_blocks; i++)
        fg_free(program->blocks[i]);
    fg_free(program->memos);
    fg_free(program->reg_facts);
    fg_free(program->blocks);
    fg_free(program->entries);
    fg_free(program->all);
    fg_free(program->masks);
    fg_free(program->code);
    fg_free(program->keys);
    fg_free(program);
}

uint32_t fg_program_max_inputs(const fg_program *program)
{
    return program->single ? program->n_regs : program->max_outputs + program->n_regs;
}

size_t fg_program_nbytes(const fg_program *program)
{
    size_t size = sizeof *program + program->n_code * (sizeof *program->code + sizeof *program->keys) +
                  program->n_masks * sizeof *program->masks + program->n_words * sizeof *program->all +
                  (program->n_entries + 1) * sizeof *program->entries + program->block_bytes +
                  program->cap_blocks * sizeof *program->blocks + program->cap_memos * sizeof *program->memos + program->n_regs;
    for (uint32_t i = 0; i < program->n_memos; i++)
        size += fg_memo_nbytes(program->memos[i]);
    for (uint32_t i = 0; i < program->n_entries; i++)
        size += program->entries[i].n_outputs * sizeof *program->entries[i].outputs;
    return size;
}
