/* Purpose: from nodes to a plan: flat steps over operands, made once per graph.
 * Model:   first pass: emit steps in graph order, every result a value number; containers inside arguments become steps of their own, ahead of the call
 *          that takes them. Second pass: values get registers, a register being free again after the last step that reads it.
 * Rules:   1. A list, dict or set among the arguments is made anew by every replay: the callee may keep or change it. Only tuples and slices of constants
 *             are passed as they stand.
 *          2. A register is released after the step that reads it last and before that step's result is stored, so both may be the same register.
 */
#include "codegen/graph_internal.h"
#include "runtime/base/alloc.h"

typedef struct builder {
    fg_graph *graph;
    fg_plan *plan;
    uint32_t cap_steps, cap_operands, cap_consts;
    uint32_t n_values;
    uint32_t *value_of_node; /* node index -> value number */
    int32_t node;            /* being compiled */
} builder;

/* Room for one more element in a growing array. */
static fg_status grow(void **array, uint32_t *capacity, uint32_t used, size_t size)
{
    if (used < *capacity)
        return FG_OK;
    uint32_t wanted = *capacity == 0 ? 16 : *capacity * 2;
    void *block = fg_realloc(*array, wanted * size);
    if (block == NULL)
        return FG_ERR_NOMEM;
    *array = block;
    *capacity = wanted;
    return FG_OK;
}

static fg_status add_operand(builder *b, uint32_t operand)
{
    fg_status st = grow((void **)&b->plan->operands, &b->cap_operands, b->plan->n_operands, sizeof(uint32_t));
    if (st == FG_OK)
        b->plan->operands[b->plan->n_operands++] = operand;
    return st;
}

static fg_status add_const(builder *b, PyObject *object, uint32_t *operand)
{
    fg_status st = grow((void **)&b->plan->consts, &b->cap_consts, b->plan->n_consts, sizeof(PyObject *));
    if (st == FG_OK) {
        *operand = FG_OPERAND_CONST | b->plan->n_consts;
        b->plan->consts[b->plan->n_consts++] = Py_NewRef(object);
    }
    return st;
}

/* Append a step over n operands. Its result is a new value, given in *operand. */
static fg_status add_step(builder *b, fg_plan_op op, const uint32_t *operands, uint32_t n, fg_plan_step **out, uint32_t *operand)
{
    fg_status st = grow((void **)&b->plan->steps, &b->cap_steps, b->plan->n_steps, sizeof(fg_plan_step));
    if (st != FG_OK)
        return st;
    fg_plan_step *step = &b->plan->steps[b->plan->n_steps];
    memset(step, 0, sizeof *step);
    step->op = (uint8_t)op;
    step->n_args = n;
    step->first = b->plan->n_operands;
    step->node = b->node;
    step->out = op == FG_PLAN_RETURN ? FG_PLAN_NO_REG : b->n_values;
    for (uint32_t i = 0; i < n; i++)
        FG_TRY(add_operand(b, operands[i]));
    b->plan->n_steps++;
    if (n > b->plan->max_args)
        b->plan->max_args = n;
    if (op != FG_PLAN_RETURN)
        *operand = FG_OPERAND_REG | b->n_values++;
    *out = step;
fail:
    return st;
}

/* 1 if the object can be passed as it stands in every replay. */
static int is_static(PyObject *object)
{
    if (Py_TYPE(object) == &fg_graph_node_type || PyList_CheckExact(object) || PyDict_Check(object) || PySet_CheckExact(object))
        return 0;
    if (PyTuple_Check(object)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); i++)
            if (!is_static(PyTuple_GET_ITEM(object, i)))
                return 0;
    } else if (PySlice_Check(object)) {
        PySliceObject *slice = (PySliceObject *)object;
        return is_static(slice->start) && is_static(slice->stop) && is_static(slice->step);
    }
    return 1;
}

static fg_status emit(builder *b, PyObject *object, uint32_t *operand);

static fg_status emit_all(builder *b, PyObject *const *items, Py_ssize_t n, uint32_t *operands)
{
    fg_status st = FG_OK;
    for (Py_ssize_t i = 0; i < n; i++)
        FG_TRY(emit(b, items[i], &operands[i]));
fail:
    return st;
}

static fg_status emit_sequence(builder *b, fg_plan_op op, PyObject *const *items, Py_ssize_t n, uint32_t *operand)
{
    fg_plan_step *step;
    uint32_t *operands = fg_malloc((size_t)(n + 1) * sizeof(uint32_t));
    if (operands == NULL)
        return FG_ERR_NOMEM;
    fg_status st = emit_all(b, items, n, operands);
    if (st == FG_OK)
        st = add_step(b, op, operands, (uint32_t)n, &step, operand);
    fg_free(operands);
    return st;
}

/* callable(value) as a step; the callable is kept as a constant of the plan so that it lives. */
static fg_status emit_convert(builder *b, PyObject *callable, uint32_t *operand)
{
    fg_plan_step *step;
    uint32_t kept;
    fg_status st;
    FG_TRY(add_const(b, callable, &kept));
    FG_TRY(add_step(b, FG_PLAN_CONVERT, operand, 1, &step, operand));
    step->u.callable = callable;
fail:
    return st;
}

static fg_status emit_tuple(builder *b, PyObject *tuple, uint32_t *operand)
{
    fg_status st;
    PyObject *make = NULL;
    FG_TRY(emit_sequence(b, FG_PLAN_TUPLE, &PyTuple_GET_ITEM(tuple, 0), PyTuple_GET_SIZE(tuple), operand));
    if (PyTuple_CheckExact(tuple))
        return FG_OK;
    make = PyObject_GetAttrString((PyObject *)Py_TYPE(tuple), "_make"); /* a named tuple's constructor from one iterable */
    if (make == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) {
            st = FG_ERR_PYTHON;
            goto fail;
        }
        PyErr_Clear();
        make = Py_NewRef(Py_TYPE(tuple)); /* struct sequences and torch.Size take one iterable */
    }
    st = emit_convert(b, make, operand);
fail:
    Py_XDECREF(make);
    return st;
}

static fg_status emit_dict(builder *b, PyObject *dict, uint32_t *operand)
{
    fg_status st = FG_ERR_PYTHON;
    fg_plan_step *step;
    PyObject *values = PyDict_Values(dict), *keys_list = PyDict_Keys(dict);
    PyObject *keys = keys_list == NULL ? NULL : PyList_AsTuple(keys_list);
    if (values == NULL || keys == NULL)
        goto fail;
    FG_TRY(emit_sequence(b, FG_PLAN_DICT, ((PyListObject *)values)->ob_item, PyList_GET_SIZE(values), operand));
    step = &b->plan->steps[b->plan->n_steps - 1];
    step->names = Py_NewRef(keys);
    if (!PyDict_CheckExact(dict)) {
        if (Py_TYPE(dict) != &PyODict_Type) {
            PyErr_Format(PyExc_TypeError,
                         "a graph operation cannot take a %s as an argument: only dict and OrderedDict are made anew for each call",
                         Py_TYPE(dict)->tp_name);
            st = FG_ERR_PYTHON;
            goto fail;
        }
        st = emit_convert(b, (PyObject *)&PyODict_Type, operand);
    }
fail:
    Py_XDECREF(values);
    Py_XDECREF(keys_list);
    Py_XDECREF(keys);
    return st;
}

static fg_status emit_set(builder *b, PyObject *set, uint32_t *operand)
{
    PyObject *list = PySequence_List(set);
    if (list == NULL)
        return FG_ERR_PYTHON;
    fg_status st = emit_sequence(b, FG_PLAN_SET, ((PyListObject *)list)->ob_item, PyList_GET_SIZE(list), operand);
    if (st == FG_OK && PyFrozenSet_CheckExact(set))
        st = emit_convert(b, (PyObject *)&PyFrozenSet_Type, operand);
    Py_DECREF(list);
    return st;
}

/* 1 a set or frozenset with nodes inside, 0 not, -1 error. */
static int has_nodes(PyObject *set)
{
    PyObject *list = PyList_New(0);
    int result = list == NULL || fg_graph_inputs_collect(set, list) < 0 ? -1 : PyList_GET_SIZE(list) > 0;
    Py_XDECREF(list);
    return result;
}

static fg_status emit(builder *b, PyObject *object, uint32_t *operand)
{
    if (Py_TYPE(object) == &fg_graph_node_type) {
        fg_graph_node *node = (fg_graph_node *)object;
        if (node->op == FG_GRAPH_PLACEHOLDER)
            *operand = FG_OPERAND_ARG | (uint32_t)node->slot;
        else
            *operand = FG_OPERAND_REG | b->value_of_node[node->index];
        return FG_OK;
    }
    if (PyFrozenSet_CheckExact(object)) {
        int nodes = has_nodes(object);
        if (nodes != 0)
            return nodes < 0 ? FG_ERR_PYTHON : emit_set(b, object, operand);
    }
    if (is_static(object))
        return add_const(b, object, operand);
    if (PyTuple_Check(object))
        return emit_tuple(b, object, operand);
    if (PyList_CheckExact(object))
        return emit_sequence(b, FG_PLAN_LIST, ((PyListObject *)object)->ob_item, PyList_GET_SIZE(object), operand);
    if (PySet_CheckExact(object))
        return emit_set(b, object, operand);
    if (PyDict_Check(object))
        return emit_dict(b, object, operand);
    PySliceObject *slice = (PySliceObject *)object; /* the last kind that is_static refuses */
    PyObject *parts[3] = {slice->start, slice->stop, slice->step};
    return emit_sequence(b, FG_PLAN_SLICE, parts, 3, operand);
}

static fg_status emit_call(builder *b, fg_graph_node *node, uint32_t *operand)
{
    fg_status st = FG_OK;
    fg_plan_step *step;
    PyObject *keys = NULL, *values = NULL;
    Py_ssize_t n_args = PyTuple_GET_SIZE(node->args), n_kw = node->kwargs == NULL ? 0 : PyDict_GET_SIZE(node->kwargs);
    uint32_t *operands = fg_malloc((size_t)(n_args + n_kw + 1) * sizeof(uint32_t));
    if (operands == NULL)
        return FG_ERR_NOMEM;
    FG_TRY(emit_all(b, &PyTuple_GET_ITEM(node->args, 0), n_args, operands));
    if (n_kw > 0) {
        st = FG_ERR_PYTHON;
        if ((values = PyDict_Values(node->kwargs)) == NULL || (keys = PyDict_Keys(node->kwargs)) == NULL)
            goto fail;
        Py_SETREF(keys, PyList_AsTuple(keys));
        if (keys == NULL)
            goto fail;
        FG_TRY(emit_all(b, ((PyListObject *)values)->ob_item, n_kw, operands + n_args));
    }
    const fg_fast_op *fast = node->op == FG_GRAPH_CALL_FUNCTION && n_kw == 0 ? fg_fast_op_find(node->target, n_args) : NULL;
    fg_plan_op op = fast != NULL                         ? (fg_plan_op)fast->step
                    : node->op == FG_GRAPH_CALL_FUNCTION ? FG_PLAN_CALL
                    : node->op == FG_GRAPH_CALL_METHOD   ? FG_PLAN_METHOD
                                                         : FG_PLAN_ATTR;
    FG_TRY(add_step(b, op, operands, (uint32_t)(n_args + n_kw), &step, operand));
    step->names = Py_XNewRef(keys);
    if (fast == NULL)
        step->u.callable = node->target;
    else if (fast->step == FG_PLAN_UNARY)
        step->u.unary = fast->unary;
    else if (fast->step == FG_PLAN_BINARY)
        step->u.binary = fast->binary;
    else
        step->compare = fast->compare;
fail:
    Py_XDECREF(keys);
    Py_XDECREF(values);
    fg_free(operands);
    return st;
}

static fg_status emit_nodes(builder *b)
{
    fg_status st = FG_OK;
    for (int32_t i = 0; i < b->graph->n_nodes; i++) {
        fg_graph_node *node = b->graph->nodes[i];
        uint32_t operand;
        fg_plan_step *step;
        if (node->op == FG_GRAPH_PLACEHOLDER)
            continue;
        b->node = i;
        if (fg_graph_args_check(b->graph, node->args, i) < 0 ||
            (node->kwargs != NULL && fg_graph_args_check(b->graph, node->kwargs, i) < 0))
            return FG_ERR_PYTHON;
        if (node->op == FG_GRAPH_OUTPUT) {
            FG_TRY(emit(b, PyTuple_GET_ITEM(node->args, 0), &operand));
            FG_TRY(add_step(b, FG_PLAN_RETURN, &operand, 1, &step, &operand));
        } else {
            FG_TRY(emit_call(b, node, &operand));
            b->value_of_node[i] = FG_OPERAND_INDEX(operand);
        }
    }
fail:
    return st;
}

/* Values to registers. Scratch tables are indexed by value. */
static fg_status assign_registers(builder *b)
{
    fg_plan *plan = b->plan;
    fg_status st = FG_ERR_NOMEM;
    size_t n = (size_t)b->n_values + 1;
    uint32_t n_free = 0;
    uint32_t *last_use = fg_calloc(n, sizeof(uint32_t)); /* step index + 1; 0: never used */
    uint32_t *reg_of = fg_calloc(n, sizeof(uint32_t));
    uint32_t *free_regs = fg_calloc(n, sizeof(uint32_t));
    plan->drops = fg_calloc(n, sizeof(uint32_t));
    if (last_use == NULL || reg_of == NULL || free_regs == NULL || plan->drops == NULL)
        goto fail;
    for (uint32_t s = 0; s < plan->n_steps; s++)
        for (uint32_t i = 0; i < plan->steps[s].n_args; i++) {
            uint32_t operand = plan->operands[plan->steps[s].first + i];
            if (FG_OPERAND_BASE(operand) == 1)
                last_use[FG_OPERAND_INDEX(operand)] = s + 1;
        }
    for (uint32_t s = 0; s < plan->n_steps; s++) {
        fg_plan_step *step = &plan->steps[s];
        step->first_drop = plan->n_drops;
        for (uint32_t i = 0; i < step->n_args; i++) {
            uint32_t *operand = &plan->operands[step->first + i];
            if (FG_OPERAND_BASE(*operand) != 1)
                continue;
            uint32_t value = FG_OPERAND_INDEX(*operand);
            *operand = FG_OPERAND_REG | reg_of[value];
            if (last_use[value] == s + 1) {
                last_use[value] = 0; /* so that a second mention in this step drops nothing more */
                plan->drops[plan->n_drops++] = reg_of[value];
                free_regs[n_free++] = reg_of[value];
            }
        }
        step->n_drops = plan->n_drops - step->first_drop;
        if (step->out != FG_PLAN_NO_REG) {
            uint32_t value = step->out;
            if (last_use[value] == 0) {
                step->out = FG_PLAN_NO_REG;
            } else {
                reg_of[value] = n_free > 0 ? free_regs[--n_free] : plan->n_regs++;
                step->out = reg_of[value];
            }
        }
    }
    st = FG_OK;
fail:
    fg_free(last_use);
    fg_free(reg_of);
    fg_free(free_regs);
    return st;
}

fg_status fg_plan_new(fg_graph *graph, fg_plan **out)
{
    fg_status st = FG_ERR_NOMEM;
    builder b = {.graph = graph};
    if (!graph->has_output) {
        PyErr_SetString(PyExc_RuntimeError, "this graph has no output node yet, so it cannot be called");
        return FG_ERR_PYTHON;
    }
    b.plan = fg_calloc(1, sizeof *b.plan);
    b.value_of_node = fg_calloc((size_t)graph->n_nodes + 1, sizeof(uint32_t));
    if (b.plan == NULL || b.value_of_node == NULL)
        goto fail;
    FG_TRY(emit_nodes(&b));
    FG_TRY(assign_registers(&b));
    fg_free(b.value_of_node);
    fg_trim(&b.plan->steps, b.plan->n_steps, sizeof *b.plan->steps);
    fg_trim(&b.plan->operands, b.plan->n_operands, sizeof *b.plan->operands);
    fg_trim(&b.plan->drops, b.plan->n_drops, sizeof *b.plan->drops);
    fg_trim(&b.plan->consts, b.plan->n_consts, sizeof *b.plan->consts);
    *out = b.plan;
    return FG_OK;
fail:
    fg_free(b.value_of_node);
    fg_plan_free(b.plan);
    return st;
}

void fg_plan_free(fg_plan *plan)
{
    if (plan == NULL)
        return;
    for (uint32_t i = 0; i < plan->n_steps; i++)
        Py_XDECREF(plan->steps[i].names);
    for (uint32_t i = 0; i < plan->n_consts; i++)
        Py_DECREF(plan->consts[i]);
    fg_free(plan->steps);
    fg_free(plan->operands);
    fg_free(plan->drops);
    fg_free(plan->consts);
    fg_free(plan);
}

int fg_plan_traverse(const fg_plan *plan, visitproc visit, void *arg)
{
    for (uint32_t i = 0; plan != NULL && i < plan->n_consts; i++)
        Py_VISIT(plan->consts[i]);
    for (uint32_t i = 0; plan != NULL && i < plan->n_steps; i++)
        Py_VISIT(plan->steps[i].names);
    return 0;
}

size_t fg_plan_nbytes(const fg_plan *plan)
{
    if (plan == NULL)
        return 0;
    return sizeof *plan + plan->n_steps * sizeof(fg_plan_step) + (plan->n_operands + plan->n_drops) * sizeof(uint32_t) +
           plan->n_consts * sizeof(PyObject *);
}
