/* Whether a source is known to vary: another description of the same code fixes its value otherwise. */
#include "guards/guard_private.h"

enum { MAX_PATH = 32 }; /* links that are followed */

static int same_record(const fg_desc *a, const fg_node_record *one, const fg_desc *b, const fg_node_record *other)
{
    if (one->acc != other->acc || one->index != other->index || one->hash != other->hash)
        return 0;
    if (one->acc == FG_ACC_CONST)
        return one->hold >= 0 && other->hold >= 0 && fg_hold_get(&a->holds[one->hold]) != NULL &&
               fg_hold_get(&a->holds[one->hold]) == fg_hold_get(&b->holds[other->hold]);
    return one->key == other->key || (one->key != NULL && other->key != NULL && fg_const_same(one->key, other->key));
}

/* The source of `in` that is reached as this one of `of`; FG_NODE_NONE: there is none. */
static fg_node same_source(const fg_desc *in, const fg_desc *of, fg_node node)
{
    fg_node path[MAX_PATH], found = FG_NODE_NONE;
    int n = 0;
    for (; node >= 0; node = of->nodes[node].parent) {
        if (n == MAX_PATH)
            return FG_NODE_NONE;
        path[n++] = node;
    }
    while (n-- > 0) {
        fg_node next = FG_NODE_NONE;
        for (uint32_t i = 0; i < in->n_nodes && next < 0; i++) {
            if (in->nodes[i].parent == found && same_record(in, &in->nodes[i], of, &of->nodes[path[n]]))
                next = (fg_node)i;
        }
        if (next < 0)
            return FG_NODE_NONE;
        found = next;
    }
    return found;
}

int fg_desc_fixes_otherwise(const fg_desc *desc, const fg_desc *now, fg_guard_kind kind, fg_node node, PyObject *value)
{
    const fg_node same = same_source(desc, now, node);
    for (uint32_t i = 0; same >= 0 && i < desc->n_guards; i++) {
        const fg_guard_record *guard = &desc->guards[i];
        if (guard->kind == kind && guard->node == same && guard->leaf.p != NULL && Py_IS_TYPE((PyObject *)guard->leaf.p, Py_TYPE(value)) &&
            !fg_const_same((PyObject *)guard->leaf.p, value))
            return 1;
    }
    return 0;
}
