/* A description that is complete, in one block.
 *
 * While it is built it has arrays with room to grow and chains to find equal sources by. An entry keeps neither: sealing counts what is there, lays it out
 * in one block and frees the rest, which is more than half.
 *
 *     block: nodes | guards | holds | outputs | what each guard owns
 */
#include "guards/guard_private.h"
#include <string.h>

/* What the guard keeps outside of its record. */
static size_t owned_bytes(const fg_guard_record *guard)
{
    if (guard->owned == NULL)
        return 0;
    if (fg_guard_arg_class(guard->kind) == FG_ARG_META)
        return sizeof(fg_meta_record) + 2 * (size_t)((const fg_meta_record *)guard->owned)->ndim * sizeof(int64_t);
    if (guard->kind == FG_GUARD_TORCH_STATE)
        return sizeof(fg_torch_state);
    const fg_expr *expr = fg_guard_expr(guard->kind, &guard->leaf);
    if (expr != NULL)
        return (size_t)((const char *)expr - (const char *)guard->owned) + fg_expr_nbytes(expr);
    return guard->n_ids * sizeof(fg_node);
}

static size_t aligned(size_t n)
{
    return (n + 15) / 16 * 16;
}

/* Copy into the block at *at, and go on behind it. */
static void *put(char *block, size_t *at, const void *from, size_t n)
{
    void *to = block + *at;
    if (n > 0)
        memcpy(to, from, n);
    *at += aligned(n);
    return to;
}

fg_status fg_desc_seal(fg_desc *desc)
{
    size_t n_nodes = desc->n_nodes * sizeof *desc->nodes, n_guards = desc->n_guards * sizeof *desc->guards,
           n_holds = desc->n_holds * sizeof *desc->holds, n_outputs = desc->n_outputs * sizeof *desc->outputs;
    size_t size = aligned(n_nodes) + aligned(n_guards) + aligned(n_holds) + aligned(n_outputs), at = 0;

    if (desc->block != NULL)
        return FG_OK;
    for (uint32_t i = 0; i < desc->n_guards; i++)
        size += aligned(owned_bytes(&desc->guards[i]));
    char *block = fg_malloc(size > 0 ? size : 1);
    if (block == NULL)
        return FG_ERR_NOMEM;
    fg_desc old = *desc;
    desc->nodes = put(block, &at, old.nodes, n_nodes);
    desc->guards = put(block, &at, old.guards, n_guards);
    desc->holds = put(block, &at, old.holds, n_holds);
    desc->outputs = put(block, &at, old.outputs, n_outputs);
    for (uint32_t i = 0; i < desc->n_guards; i++) {
        fg_guard_record *guard = &desc->guards[i];
        char *was = guard->owned;
        if (was == NULL)
            continue;
        guard->owned = put(block, &at, was, owned_bytes(guard));
        if (guard->leaf.p == was)
            guard->leaf.p = guard->owned;
        if (guard->kind == FG_GUARD_EXPR)
            guard->leaf.hi += (intptr_t)guard->owned - (intptr_t)was;
        fg_free(was);
    }
    fg_desc_free_arrays(&old);
    desc->node_heads = desc->guard_heads = NULL;
    desc->n_heads = 0;
    desc->cap_nodes = desc->cap_guards = desc->cap_outputs = desc->cap_holds = 0;
    desc->block = block;
    desc->block_bytes = size;
    return FG_OK;
}

size_t fg_desc_nbytes(const fg_desc *desc)
{
    size_t size = fg_block_bytes(desc, sizeof *desc);
    if (desc->block != NULL)
        return size + fg_block_bytes(desc->block, desc->block_bytes);
    size += desc->cap_nodes * sizeof *desc->nodes + desc->cap_guards * sizeof *desc->guards + desc->cap_outputs * sizeof *desc->outputs +
            desc->cap_holds * sizeof *desc->holds + 2 * (size_t)desc->n_heads * sizeof *desc->node_heads;
    for (uint32_t i = 0; i < desc->n_guards; i++)
        size += owned_bytes(&desc->guards[i]);
    return size;
}
