/* What an entry needs of each of its sources: a value, an absence, or nothing; worked out from the conditions before any evaluation. */
#include "guards/guard_private.h"
#include <structmember.h>
#include <string.h>

int fg_slot_is_member(const PyTypeObject *type, int64_t offset)
{
    PyObject *mro = type->tp_mro;
    if (mro == NULL || offset < (int64_t)sizeof(PyObject) || offset > type->tp_basicsize - (int64_t)sizeof(PyObject *))
        return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        Py_ssize_t at = 0;
        PyObject *dict = fg_type_dict(base), *name, *value;
        /* tp_members of a class with __slots__ is not kept by the interpreter; the descriptors in its dict are. */
        while (dict != NULL && PyDict_Next(dict, &at, &name, &value)) {
            if (!Py_IS_TYPE(value, &PyMemberDescr_Type))
                continue;
            const PyMemberDef *member = ((PyMemberDescrObject *)value)->d_member;
            if (member->offset == offset && (member->type == T_OBJECT_EX || member->type == T_OBJECT) &&
                PyType_IsSubtype((PyTypeObject *)type, PyDescr_TYPE(value)))
                return 1;
        }
    }
    return 0;
}

static int hold_is_bound(const fg_desc *desc, int32_t hold)
{
    return hold < 0 || fg_hold_get(&desc->holds[hold]) != NULL;
}

static int node_is_possible(const fg_desc *desc, fg_node node)
{
    const fg_node_record *record = &desc->nodes[node];
    if (!hold_is_bound(desc, record->hold))
        return 0;
    if (record->acc == FG_ACC_SLOT_ATTR) {
        const PyTypeObject *type = fg_desc_type_of(desc, record->parent);
        return type != NULL && fg_slot_is_member(type, record->index);
    }
    return 1;
}

static int guard_is_possible(const fg_desc *desc, const fg_guard_record *guard)
{
    if (!hold_is_bound(desc, guard->hold))
        return 0;
    if (guard->kind == FG_GUARD_TENSOR || guard->kind == FG_GUARD_GRADIENT) {
        const fg_meta_record *meta = guard->leaf.p;
        return meta->adaptor != NULL && meta->type != NULL && (guard->kind == FG_GUARD_TENSOR || meta->adaptor->gradient != NULL);
    }
    if (guard->kind == FG_GUARD_STORAGE_DISTINCT || guard->kind == FG_GUARD_MEMORY_APART) {
        for (uint32_t i = 0; i < guard->n_ids; i++) {
            const fg_tensor_adaptor *adaptor = fg_relation_adaptor(desc, ((const fg_node *)guard->owned)[i]);
            if (adaptor == NULL || adaptor->storage == NULL)
                return 0;
        }
    } else if (guard->kind == FG_GUARD_EXPR) {
        const fg_expr *expr = fg_guard_expr(guard->kind, &guard->leaf);
        for (uint32_t i = 0; i < expr->n; i++) {
            const fg_expr_step *step = &expr->steps[i];
            if (fg_expr_is_tensor(step) && fg_relation_adaptor(desc, ((const fg_node *)guard->owned)[step->node]) == NULL)
                return 0;
        }
    }
    return 1;
}

/* What a relation asks of the adaptors of its sources: FG_PURE_ bits. */
static unsigned relation_uses(const fg_guard_record *guard, uint32_t at)
{
    if (guard->kind == FG_GUARD_STORAGE_DISTINCT)
        return FG_PURE_STORAGE;
    if (guard->kind == FG_GUARD_MEMORY_APART)
        return FG_PURE_STORAGE | FG_PURE_READ;
    const fg_expr *expr = fg_guard_expr(guard->kind, &guard->leaf);
    for (uint32_t i = 0; expr != NULL && i < expr->n; i++) {
        if (fg_expr_is_tensor(&expr->steps[i]) && expr->steps[i].node == at)
            return FG_PURE_READ;
    }
    return 0;
}

int fg_guard_is_impure(const fg_desc *desc, const fg_guard_record *guard)
{
    const fg_tensor_adaptor *adaptor;

    if (guard->node >= 0) {
        if (fg_guard_arg_class(guard->kind) != FG_ARG_META || desc->nodes[guard->node].impure)
            return desc->nodes[guard->node].impure;
        adaptor = ((const fg_meta_record *)guard->leaf.p)->adaptor;
        return adaptor != NULL && !(adaptor->pure & (guard->kind == FG_GUARD_GRADIENT ? FG_PURE_GRADIENT : FG_PURE_READ));
    }
    for (uint32_t i = 0; i < guard->n_ids; i++) {
        fg_node id = ((const fg_node *)guard->owned)[i];
        if (desc->nodes[id].impure)
            return 1;
        unsigned uses = relation_uses(guard, i);
        if (uses != 0 && (adaptor = fg_relation_adaptor(desc, id)) != NULL && (uses & ~adaptor->pure) != 0)
            return 1;
    }
    return 0;
}

fg_status fg_want_init(const fg_desc *desc, fg_want *want)
{
    uint32_t n = desc->n_nodes;

    *want = (fg_want){0};
    want->of_node = fg_calloc(1, n + 1);
    want->by_node = fg_malloc((desc->n_guards + 1) * sizeof *want->by_node);
    want->first = fg_calloc(n + 3, sizeof *want->first);
    want->impure = fg_malloc(desc->n_guards + 1);
    if (want->of_node == NULL || want->by_node == NULL || want->first == NULL || want->impure == NULL) {
        fg_want_fini(want);
        return FG_ERR_NOMEM;
    }
    if (desc->dead)
        want->never = 1;

    for (uint32_t i = 0; i < desc->n_guards; i++) {
        const fg_guard_record *guard = &desc->guards[i];
        want->user |= guard->kind == FG_GUARD_ACCEPTS;
        want->impure[i] = (uint8_t)fg_guard_is_impure(desc, guard);
        want->n_impure += want->impure[i] || guard->kind == FG_GUARD_ACCEPTS;
        if (guard->node >= 0)
            want->of_node[guard->node] |= guard->kind == FG_GUARD_ABSENT ? FG_WANT_ABSENT : FG_WANT_PRESENT;
        for (uint32_t k = 0; k < guard->n_ids; k++)
            want->of_node[((const fg_node *)guard->owned)[k]] |= FG_WANT_PRESENT;
        want->first[(guard->node >= 0 ? (uint32_t)guard->node : n) + 2]++;
        if (!want->never && !guard_is_possible(desc, guard))
            want->never = 1;
    }
    for (uint32_t i = 0; i < desc->n_outputs; i++)
        want->of_node[desc->outputs[i]] |= FG_WANT_PRESENT;
    for (uint32_t i = n; i-- > 0;) {
        if (want->of_node[i] != 0 && desc->nodes[i].parent >= 0)
            want->of_node[desc->nodes[i].parent] |= FG_WANT_PRESENT;
        want->n_impure += desc->nodes[i].impure && want->of_node[i] != 0;
    }
    for (uint32_t i = 0; i < n && !want->never; i++) {
        if (want->of_node[i] == (FG_WANT_PRESENT | FG_WANT_ABSENT) || (want->of_node[i] != 0 && !node_is_possible(desc, (fg_node)i)))
            want->never = 1;
    }

    /* A counting sort by node: first[i + 1] is where node i begins while it fills, and where it ended after. */
    for (uint32_t i = 1; i < n + 3; i++)
        want->first[i] += want->first[i - 1];
    for (uint32_t i = 0; i < desc->n_guards; i++)
        want->by_node[want->first[(desc->guards[i].node >= 0 ? (uint32_t)desc->guards[i].node : n) + 1]++] = (int32_t)i;
    return FG_OK;
}

void fg_want_fini(fg_want *want)
{
    fg_free(want->of_node);
    fg_free(want->by_node);
    fg_free(want->first);
    fg_free(want->impure);
    *want = (fg_want){0};
}
