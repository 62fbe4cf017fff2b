/* What a torch tensor's class has under the name of a member that is used: facts, since any program may put something else there.
 *
 * What the trace knows about a result, and what a compiler builds in, is that of the operation which the registry knows. Rules:
 *  1. Everything that reads a member or applies an operator asks here, by the name that the interpreter would look up.
 *  2. A member that is Python code and not torch's own is no operation that is known: a break.
 *  3. The classes of NumPy's arrays are static.
 */
#include "tracer/trace_python.h"

#include <string.h>

static fg_flow pin(fg_trace *t, PyTypeObject *type, PyObject *name)
{
    fg_value *of = fg_value_const(t, (PyObject *)type), *found;
    if (of == NULL)
        return FG_FLOW_ERROR;
    FG_DO(fg_type_lookup(t, of, type, name, &found));
    if (found == NULL)
        return FG_FLOW_OK;
    FG_DO(fg_look(t, &found));
    if (found->kind == FG_V_CONST)
        return FG_FLOW_OK;
    if (found->kind != FG_V_FUNC || !fg_py_is_library((PyCodeObject *)PyFunction_GET_CODE(found->real)))
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "'%U' of tensors, which was replaced", name);
    fg_node node;
    FG_DO(fg_guard_const(t, found));
    FG_DO(fg_node_of(t, found, &node));
    FG_DO(fg_source(t, FG_ACC_FUNC_CODE, node, NULL, 0, &node));
    return fg_guard(t, FG_GUARD_ID, node, PyFunction_GET_CODE(found->real), 0, 0);
}

/* A trace uses the same few of torch.Tensor's members again and again: those that are facts already are the keys of t->members. */
fg_flow fg_pin_member(fg_trace *t, const fg_value *v, PyObject *name)
{
    PyTypeObject *base = fg_py_torch_tensor_type(), *type = v->type != NULL ? v->type : base;
    if (v->kind != FG_V_TENSOR || type == NULL || !fg_py_is_torch_type(type))
        return FG_FLOW_OK;
    if (type != base)
        return pin(t, type, name);
    const Py_hash_t hash = PyObject_Hash(name);
    if (t->members == NULL) {
        fg_value *members = fg_value_new(t, FG_V_DICT);
        if (members == NULL)
            return FG_FLOW_ERROR;
        FG_SET(t, t->members, members);
    }
    if (fg_map_find(&t->members->map, name, hash) != NULL)
        return FG_FLOW_OK;
    FG_DO(pin(t, type, name));
    return fg_map_set(t, &t->members->map, name, hash, t->members, 1);
}

/* "__" what "__", kept. */
static PyObject *special(PyObject **kept, const char *before, const char *what)
{
    if (*kept == NULL) {
        PyObject *name = PyUnicode_FromFormat("__%s%s__", before, what);
        if (name != NULL)
            PyUnicode_InternInPlace(&name);
        *kept = name;
    }
    return *kept;
}

static fg_flow pin_special(fg_trace *t, const fg_value *v, PyObject **kept, const char *before, const char *what)
{
    return special(kept, before, what) != NULL ? fg_pin_member(t, v, *kept) : FG_FLOW_ERROR;
}

/* Place in the table of special names: an operator and its reflected and in-place forms. */
enum { PLAIN, REFLECTED, INPLACE, FORMS };

static fg_flow pin_binary(fg_trace *t, int op, bool in_place, fg_value **operands)
{
    static const char *const names[FG_OP_INPLACE] = {"add", "and", "floordiv", "lshift", "matmul",  "mul", "mod",
                                                     "or",  "pow", "rshift",   "sub",    "truediv", "xor"};
    static PyObject *kept[FG_OP_INPLACE][FORMS];
    if (in_place)
        FG_DO(pin_special(t, operands[0], &kept[op][INPLACE], "i", names[op]));
    FG_DO(pin_special(t, operands[0], &kept[op][PLAIN], "", names[op]));
    return pin_special(t, operands[1], &kept[op][REFLECTED], "r", names[op]);
}

static fg_flow pin_compare(fg_trace *t, int op, fg_value **operands)
{
    static const struct {
        const char *name;
        int reflected;
    } names[6] = {{"lt", Py_GT}, {"le", Py_GE}, {"eq", Py_EQ}, {"ne", Py_NE}, {"gt", Py_LT}, {"ge", Py_LE}};
    static PyObject *kept[6];
    FG_DO(pin_special(t, operands[0], &kept[op], "", names[op].name));
    const int other = names[op].reflected;
    return pin_special(t, operands[1], &kept[other], "", names[other].name);
}

/* "operator.iadd", "builtins.abs", … */
fg_flow fg_pin_function(fg_trace *t, const fg_op_row *row, fg_value **operands, int32_t n)
{
    static const struct {
        const char *of, *is;
    } others[] = {{"and_", "and"}, {"or_", "or"}, {"inv", "invert"}, {"truth", "bool"}, {"not_", "bool"}};
    const char *what = PyUnicode_AsUTF8(row->name);
    PyObject *name = NULL;
    if (what == NULL)
        return FG_FLOW_ERROR;
    if (strncmp(what, "operator.", 9) != 0 && strncmp(what, "builtins.", 9) != 0)
        return FG_FLOW_OK;
    what += 9;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        what = strcmp(what, others[i].of) == 0 ? others[i].is : what;
    const bool in_place = (row->flags & FG_OPF_MUTATES_FIRST) && *what == 'i';
    for (int32_t i = 0; i < n && i < 2; i++) {
        for (int form = 0; form <= (in_place && i == 0); form++) {
            name = NULL;
            if (special(&name, i == 1 ? "r" : "", what + (in_place && (form == 1 || i == 1))) == NULL || fg_own(t, name) == NULL)
                return FG_FLOW_ERROR;
            FG_DO(fg_pin_member(t, operands[i], name));
        }
    }
    return FG_FLOW_OK;
}

fg_flow fg_pin_members(fg_trace *t, fg_step_op op, int arg, PyObject *name, fg_value **operands)
{
    static PyObject *getitem, *unary[3];
    switch (op) {
    case FG_STEP_CALL_METHOD:
    case FG_STEP_ATTR: return fg_pin_member(t, operands[0], name);
    case FG_STEP_SUBSCR: return pin_special(t, operands[0], &getitem, "", "getitem");
    case FG_STEP_COMPARE: return arg >= 0 && arg < 6 ? pin_compare(t, arg, operands) : FG_FLOW_OK;
    case FG_STEP_BINARY: return pin_binary(t, arg % FG_OP_INPLACE, arg >= FG_OP_INPLACE, operands);
    case FG_STEP_UNARY:
        return arg == FG_OP_UNARY_NEGATIVE ? pin_special(t, operands[0], &unary[0], "", "neg")
               : arg == FG_OP_UNARY_INVERT ? pin_special(t, operands[0], &unary[1], "", "invert")
                                           : pin_special(t, operands[0], &unary[2], "", "pos");
    default: return FG_FLOW_OK;
    }
}

fg_flow fg_pin_store(fg_trace *t, const fg_value *v)
{
    static PyObject *setitem;
    return pin_special(t, v, &setitem, "", "setitem");
}

fg_flow fg_pin_length(fg_trace *t, const fg_value *v)
{
    static PyObject *len;
    return pin_special(t, v, &len, "", "len");
}

fg_flow fg_pin_iteration(fg_trace *t, const fg_value *v)
{
    static PyObject *iter;
    return pin_special(t, v, &iter, "", "iter");
}
