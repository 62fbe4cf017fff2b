/* Purpose: calling a graph: one loop over the steps of its plan.
 * Model:   results live in registers on the C stack, each released right after the last step that reads it, as an expression in Python would. The caller's
 *          arguments are borrowed from its array for the whole call.
 * Rules:   1. Every exit leaves no register behind: after RETURN all are empty (the plan releases each after its last use), after a failure the loop
 *             under `fail` empties them.
 *          2. A step may run anything, this graph included: all state is local, the plan is immutable, and the caller holds the graph.
 */
#include "codegen/graph_internal.h"
#include "runtime/base/alloc.h"

#define SMALL_FRAME 40
#define SIGNAL_INTERVAL 32 /* steps between two looks for Ctrl-C: a long graph of C calls would never see it */

static PyObject *make_list(const fg_plan_step *step, PyObject *const *args)
{
    PyObject *list = PyList_New(step->n_args);
    for (uint32_t i = 0; list != NULL && i < step->n_args; i++)
        PyList_SET_ITEM(list, i, Py_NewRef(args[i]));
    return list;
}

static PyObject *make_tuple(const fg_plan_step *step, PyObject *const *args)
{
    PyObject *tuple = PyTuple_New(step->n_args);
    for (uint32_t i = 0; tuple != NULL && i < step->n_args; i++)
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
    return tuple;
}

static PyObject *make_set(const fg_plan_step *step, PyObject *const *args)
{
    PyObject *set = PySet_New(NULL);
    for (uint32_t i = 0; set != NULL && i < step->n_args; i++)
        if (PySet_Add(set, args[i]) < 0)
            Py_CLEAR(set);
    return set;
}

static PyObject *make_dict(const fg_plan_step *step, PyObject *const *args)
{
    PyObject *dict = PyDict_New();
    for (uint32_t i = 0; dict != NULL && i < step->n_args; i++)
        if (PyDict_SetItem(dict, PyTuple_GET_ITEM(step->names, i), args[i]) < 0)
            Py_CLEAR(dict);
    return dict;
}

/* args[-1] may be written: the room before the arguments that vectorcall's offset flag promises. */
static inline PyObject *step_run(const fg_plan_step *step, PyObject **args)
{
    size_t n_positional = step->n_args - (step->names == NULL ? 0 : (size_t)PyTuple_GET_SIZE(step->names));
    switch ((fg_plan_op)step->op) {
    case FG_PLAN_CALL: return PyObject_Vectorcall(step->u.callable, args, n_positional | PY_VECTORCALL_ARGUMENTS_OFFSET, step->names);
    case FG_PLAN_METHOD:
        return PyObject_VectorcallMethod(step->u.callable, args, n_positional | PY_VECTORCALL_ARGUMENTS_OFFSET, step->names);
    case FG_PLAN_ATTR: return PyObject_GetAttr(args[0], step->u.callable);
    case FG_PLAN_UNARY: return step->u.unary(args[0]);
    case FG_PLAN_BINARY: return step->u.binary(args[0], args[1]);
    case FG_PLAN_COMPARE: return PyObject_RichCompare(args[0], args[1], step->compare);
    case FG_PLAN_TUPLE: return make_tuple(step, args);
    case FG_PLAN_LIST: return make_list(step, args);
    case FG_PLAN_SET: return make_set(step, args);
    case FG_PLAN_DICT: return make_dict(step, args);
    case FG_PLAN_SLICE: return PySlice_New(args[0], args[1], args[2]);
    case FG_PLAN_CONVERT: return PyObject_CallOneArg(step->u.callable, args[0]);
    case FG_PLAN_RETURN: return Py_NewRef(args[0]);
    }
    FG_BUG("unknown step in a graph's plan");
    PyErr_SetString(PyExc_SystemError, "framegate: unknown step in a graph's plan");
    return NULL;
}

static PyObject *arity_error(fg_graph *graph, Py_ssize_t n_args, PyObject *kwnames)
{
    if (kwnames != NULL && PyTuple_GET_SIZE(kwnames) > 0)
        PyErr_Format(PyExc_TypeError, "%U() takes its inputs by position, no keywords", graph->name);
    else
        PyErr_Format(PyExc_TypeError, "%U() takes %d inputs, one for each placeholder, but %zd were given", graph->name,
                     (int)graph->n_placeholders, n_args);
    return NULL;
}

static int plan_make(fg_graph *graph)
{
    fg_plan *plan = NULL;
    fg_status st = fg_plan_new(graph, &plan);
    if (st != FG_OK) {
        if (st != FG_ERR_PYTHON)
            PyErr_NoMemory();
        return -1;
    }
    if (graph->plan != NULL) /* a named tuple's _make lookup let another thread be first */
        fg_plan_free(plan);
    else
        graph->plan = plan;
    return 0;
}

/* Who asks later knows the exception as an object. */
static void note_failure(fg_graph *graph, int32_t node)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    graph->failed = node;
    graph->failed_with = value;
    PyErr_Restore(type, value, traceback);
}

PyObject *fg_graph_replay(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    fg_graph *graph = (fg_graph *)self;
    Py_ssize_t n_args = PyVectorcall_NARGS(nargsf);
    if (n_args != graph->n_placeholders || (kwnames != NULL && PyTuple_GET_SIZE(kwnames) > 0))
        return arity_error(graph, n_args, kwnames);
    if (graph->plan == NULL && plan_make(graph) < 0)
        return NULL;

    const fg_plan *plan = graph->plan;
    PyObject *small[SMALL_FRAME], **regs = small, *result = NULL;
    size_t size = (size_t)plan->n_regs + 1 + plan->max_args;
    if (size > SMALL_FRAME && (regs = fg_malloc(size * sizeof *regs)) == NULL)
        return PyErr_NoMemory();
    for (uint32_t i = 0; i <= plan->n_regs; i++)
        regs[i] = NULL;
    PyObject **stack = regs + plan->n_regs + 1;
    PyObject *const *const bases[3] = {args, regs, plan->consts};

    const fg_plan_step *step = plan->steps, *end = step + plan->n_steps;
    for (;;) {
        const uint32_t *operands = plan->operands + step->first;
        for (uint32_t i = 0; i < step->n_args; i++)
            stack[i] = bases[FG_OPERAND_BASE(operands[i])][FG_OPERAND_INDEX(operands[i])];
        result = step_run(step, stack);
        if (result == NULL)
            goto fail;
        const uint32_t *drops = plan->drops + step->first_drop;
        for (uint32_t i = 0; i < step->n_drops; i++) {
            PyObject *dead = regs[drops[i]];
            regs[drops[i]] = NULL;
            Py_DECREF(dead);
        }
        if (step->out != FG_PLAN_NO_REG)
            regs[step->out] = result;
        else if (step + 1 == end)
            break;
        else
            Py_DECREF(result);
        step++;
        if ((step - plan->steps) % SIGNAL_INTERVAL == 0 && PyErr_CheckSignals() < 0)
            goto fail;
    }
    if (regs != small)
        fg_free(regs);
    return result;

fail:
    note_failure(graph, step->node);
    for (uint32_t i = 0; i < plan->n_regs; i++)
        Py_XDECREF(regs[i]);
    if (regs != small)
        fg_free(regs);
    return NULL;
}
