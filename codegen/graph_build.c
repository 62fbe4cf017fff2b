/* A framegate.Graph from a run of graph steps. */
#include "codegen/graph_build.h"

#include "codegen/graph.h"
#include <string.h>

static PyObject *operator_module;

static PyObject *operator_get(const char *name)
{
    if (operator_module == NULL && (operator_module = PyImport_ImportModule("operator")) == NULL)
        return NULL;
    return PyObject_GetAttrString(operator_module, name);
}

static PyObject *binary_target(int op)
{
    static const char *const names[26] = {"add",    "and_", "floordiv", "lshift", "matmul",  "mul",  "mod",       "or_",     "pow",
                                          "rshift", "sub",  "truediv",  "xor",    "iadd",    "iand", "ifloordiv", "ilshift", "imatmul",
                                          "imul",   "imod", "ior",      "ipow",   "irshift", "isub", "itruediv",  "ixor"};
    return operator_get(names[op]);
}

static PyObject *step_target(const fg_graph_builder *b, const fg_step *s)
{
    static const char *const compare[] = {"lt", "le", "eq", "ne", "gt", "ge"};
    switch ((fg_step_op)s->op) {
    case FG_STEP_BINARY: /* `x += y` that makes a new value is x + y: what reads a graph may take iadd for a change of x */
        return binary_target(s->flags & FG_SF_EFFECT ? s->arg : s->arg % FG_OP_INPLACE);
    case FG_STEP_COMPARE: return operator_get(compare[s->arg]);
    case FG_STEP_UNARY: return operator_get(s->arg == FG_OP_UNARY_NEGATIVE ? "neg" : s->arg == FG_OP_UNARY_INVERT ? "invert" : "pos");
    case FG_STEP_SUBSCR:
    case FG_STEP_UNPACK: return operator_get("getitem");
    case FG_STEP_STORE_SUBSCR: return operator_get("setitem");
    case FG_STEP_CALL: return Py_NewRef(b->ir->regs[s->args[0]].object);
    case FG_STEP_ATTR:
    case FG_STEP_CALL_METHOD: return Py_NewRef(s->name);
    default: PyErr_SetString(PyExc_SystemError, "a step that is no graph operation"); return NULL;
    }
}

bool fg_step_is_structure(const fg_step *s)
{
    return s->op == FG_STEP_BUILD_TUPLE || s->op == FG_STEP_BUILD_LIST || s->op == FG_STEP_BUILD_SLICE;
}

static PyObject *placeholder(fg_graph_builder *b, fg_reg reg);

/* What a register is in the graph: a constant, a node, or a container of these. New reference. */
static PyObject *node_of(fg_graph_builder *b, fg_reg reg)
{
    const fg_ir_reg *r = &b->ir->regs[reg];
    if (r->kind == FG_REG_CONST)
        return Py_NewRef(r->object);
    if (b->nodes[reg] != NULL)
        return Py_NewRef(b->nodes[reg]);
    if (r->kind == FG_REG_STEP && fg_step_is_structure(&b->ir->steps[r->index])) {
        const fg_step *s = &b->ir->steps[r->index];
        PyObject *made = s->op == FG_STEP_BUILD_LIST ? PyList_New(s->n_args) : PyTuple_New(s->n_args);
        for (int32_t i = 0; made != NULL && i < s->n_args; i++) {
            PyObject *part = node_of(b, s->args[i]);
            if (part == NULL)
                Py_CLEAR(made);
            else if (s->op == FG_STEP_BUILD_LIST)
                PyList_SET_ITEM(made, i, part);
            else
                PyTuple_SET_ITEM(made, i, part);
        }
        if (made != NULL && s->op == FG_STEP_BUILD_SLICE)
            Py_SETREF(made,
                      PySlice_New(PyTuple_GET_ITEM(made, 0), PyTuple_GET_ITEM(made, 1), s->n_args > 2 ? PyTuple_GET_ITEM(made, 2) : NULL));
        return made;
    }
    return Py_XNewRef(placeholder(b, reg));
}

static PyObject *placeholder(fg_graph_builder *b, fg_reg reg)
{
    /* two registers of one input are one placeholder */
    const fg_ir_reg *r = &b->ir->regs[reg];
    for (int32_t i = 0; i < b->n_inputs; i++) {
        const fg_ir_reg *other = &b->ir->regs[b->inputs[i]];
        if (b->inputs[i] == reg || (r->kind == FG_REG_INPUT && other->kind == FG_REG_INPUT && other->index == r->index))
            return b->nodes[reg] = b->nodes[b->inputs[i]];
    }
    PyObject *hint = r->kind == FG_REG_INPUT && b->ir->input_names != NULL && b->ir->input_names[r->index] != NULL
                         ? Py_NewRef(b->ir->input_names[r->index])
                         : PyUnicode_FromString("arg");
    PyObject *empty = PyTuple_New(0), *node = NULL;
    if (hint != NULL && empty != NULL)
        node = fg_graph_add(b->graph, FG_GRAPH_PLACEHOLDER, hint, empty, NULL, NULL, 0, 0);
    Py_XDECREF(hint);
    Py_XDECREF(empty);
    if (node == NULL)
        return NULL;
    b->inputs[b->n_inputs++] = reg;
    return b->nodes[reg] = node;
}

/* Placeholders come first: look through the operands before the node itself is added. */
static fg_status note_inputs(fg_graph_builder *b, fg_reg reg, int depth)
{
    const fg_ir_reg *r = &b->ir->regs[reg];
    if (r->kind == FG_REG_CONST || b->nodes[reg] != NULL || b->in_graph[reg])
        return FG_OK;
    if (r->kind == FG_REG_STEP && fg_step_is_structure(&b->ir->steps[r->index]) && depth < 16) {
        const fg_step *s = &b->ir->steps[r->index];
        for (int32_t i = 0; i < s->n_args; i++) {
            fg_status st = note_inputs(b, s->args[i], depth + 1);
            if (st != FG_OK)
                return st;
        }
        return FG_OK;
    }
    return placeholder(b, reg) ? FG_OK : FG_ERR_PYTHON;
}

static fg_status add_step(fg_graph_builder *b, const fg_step *s)
{
    bool method = s->op == FG_STEP_CALL_METHOD, attr = s->op == FG_STEP_ATTR;
    int32_t first = s->op == FG_STEP_CALL, nkw = s->kwnames ? (int32_t)PyTuple_GET_SIZE(s->kwnames) : 0, npos = s->n_args - first - nkw;
    const fg_reg *args = s->args + first;
    fg_reg swapped[3];
    if (s->op == FG_STEP_STORE_SUBSCR) { /* [value, object, key] -> setitem(object, key, value) */
        swapped[0] = s->args[1];
        swapped[1] = s->args[2];
        swapped[2] = s->args[0];
        args = swapped;
    }
    const fg_site_ref *site = s->site >= 0 ? &b->ir->sites[s->site] : NULL;
    int32_t rounds = s->op == FG_STEP_UNPACK ? s->n_results : 1;
    for (int32_t k = 0; k < rounds; k++) {
        PyObject *target = step_target(b, s), *tuple = PyTuple_New(npos + (s->op == FG_STEP_UNPACK)), *kwargs = nkw ? PyDict_New() : NULL,
                 *node = NULL;
        if (target == NULL || tuple == NULL || (nkw && kwargs == NULL))
            goto done;
        for (int32_t i = 0; i < npos; i++) {
            PyObject *arg = node_of(b, args[i]);
            if (arg == NULL)
                goto done;
            PyTuple_SET_ITEM(tuple, i, arg);
        }
        if (s->op == FG_STEP_UNPACK) {
            PyObject *index = PyLong_FromLong(k);
            if (index == NULL)
                goto done;
            PyTuple_SET_ITEM(tuple, 1, index);
        }
        for (int32_t i = 0; i < nkw; i++) {
            PyObject *arg = node_of(b, args[npos + i]);
            int failed = arg == NULL || PyDict_SetItem(kwargs, PyTuple_GET_ITEM(s->kwnames, i), arg) < 0;
            Py_XDECREF(arg);
            if (failed)
                goto done;
        }
        node = fg_graph_add(b->graph,
                            method ? FG_GRAPH_CALL_METHOD
                            : attr ? FG_GRAPH_GET_ATTR
                                   : FG_GRAPH_CALL_FUNCTION,
                            target, tuple, kwargs, site ? site->code : NULL, site ? site->instr->line : 0, site ? site->instr->offset : 0);
    done:
        Py_XDECREF(target);
        Py_XDECREF(tuple);
        Py_XDECREF(kwargs);
        if (node == NULL)
            return FG_ERR_PYTHON;
        fg_graph_site_set(b->graph, s->site);
        if (s->n_results > 0)
            b->nodes[s->result + k] = node;
    }
    return FG_OK;
}

static fg_status add_output(fg_graph_builder *b, const fg_reg *outputs, int32_t n)
{
    PyObject *results = PyTuple_New(n), *args = NULL;
    fg_status st = FG_ERR_PYTHON;
    for (int32_t i = 0; results != NULL && i < n; i++)
        PyTuple_SET_ITEM(results, i, Py_NewRef(b->nodes[outputs[i]] ? b->nodes[outputs[i]] : Py_None));
    if (results != NULL && (args = PyTuple_Pack(1, results)) != NULL &&
        fg_graph_add(b->graph, FG_GRAPH_OUTPUT, NULL, args, NULL, NULL, 0, 0) != NULL)
        st = FG_OK;
    Py_XDECREF(results);
    Py_XDECREF(args);
    return st;
}

fg_status fg_graph_build(fg_graph_builder *b, const int32_t *steps, int32_t n, const fg_reg *outputs, int32_t n_outputs)
{
    fg_status st;
    fg_ir *ir = b->ir;
    b->nodes = fg_arena_alloc(ir->arena, (size_t)(ir->n_regs + 1) * sizeof *b->nodes);
    b->in_graph = fg_arena_alloc(ir->arena, (size_t)ir->n_regs + 1);
    b->inputs = fg_arena_alloc(ir->arena, (size_t)(ir->n_regs + 1) * sizeof *b->inputs);
    if (b->nodes == NULL || b->in_graph == NULL || b->inputs == NULL)
        return FG_ERR_NOMEM;
    if ((b->graph = fg_graph_new()) == NULL)
        return FG_ERR_PYTHON;
    for (int32_t i = 0; i < n; i++)
        for (int32_t k = 0; k < ir->steps[steps[i]].n_results; k++)
            b->in_graph[ir->steps[steps[i]].result + k] = 1;
    for (int32_t i = 0; i < n; i++) {
        const fg_step *s = &ir->steps[steps[i]];
        for (int32_t k = s->op == FG_STEP_CALL; k < s->n_args; k++)
            FG_TRY(note_inputs(b, s->args[k], 0));
    }
    for (int32_t i = 0; i < n; i++)
        FG_TRY(add_step(b, &ir->steps[steps[i]]));
    FG_TRY(add_output(b, outputs, n_outputs));
    return FG_OK;
fail:
    Py_CLEAR(b->graph);
    return st;
}
