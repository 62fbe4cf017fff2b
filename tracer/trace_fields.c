/* Attributes that the interpreter keeps in C fields: of functions, bound methods, classes and code objects.
 *
 * What can be assigned (f.__name__, C.__qualname__, f.__defaults__) is a source of its own, read anew at each call; code objects never change. A function
 * that is made in the trace has its fields from its code object.
 */
#include "runtime/cpython/facts.h"
#include "runtime/cpython/dict.h"
#include "runtime/cpython/function.h"
#include "tracer/trace_python.h"

#include <string.h>

static int part_of(PyObject *name, const char *const *parts, int n)
{
    for (int i = 0; i < n; i++) {
        if (PyUnicode_CompareWithASCIIString(name, parts[i]) == 0)
            return i;
    }
    return -1;
}

static fg_flow give_lazy(fg_trace *t, fg_accessor acc, fg_node node, int64_t index, PyObject *real, fg_value **out)
{
    *out = fg_value_lazy(t, acc, node, NULL, index, real);
    return *out != NULL ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static fg_flow give_const(fg_trace *t, PyObject *real, fg_value **out)
{
    *out = fg_value_const(t, real);
    return *out != NULL ? FG_FLOW_OK : FG_FLOW_ERROR;
}

/* A field that is NULL where Python says None. */
static fg_flow give_or_none(fg_trace *t, fg_accessor acc, fg_node node, int64_t index, PyObject *real, fg_value **out)
{
    if (real != NULL)
        return give_lazy(t, acc, node, index, real, out);
    fg_node field;
    FG_DO(fg_source(t, acc, node, NULL, index, &field));
    FG_DO(fg_guard(t, FG_GUARD_ABSENT, field, NULL, 0, 0));
    return give_const(t, Py_None, out);
}

static const char *const function_parts[] = {"__name__", "__qualname__", "__module__", "__doc__"};

static fg_flow existing_function(fg_trace *t, fg_value *f, PyObject *name, fg_value **out)
{
    PyFunctionObject *real = (PyFunctionObject *)f->real;
    fg_node node = f->node;
    int part = part_of(name, function_parts, 4);
    if (part >= 0) {
        PyObject *const fields[] = {real->func_name, real->func_qualname, real->func_module, real->func_doc};
        return give_or_none(t, FG_ACC_FUNC_PART, node, part, fields[part], out);
    }
    static const char *const fields[] = {"__code__", "__defaults__", "__kwdefaults__", "__closure__", "__globals__", "__builtins__"};
    switch (part_of(name, fields, 6)) {
    case 0: {
        fg_node code;
        if (!fg_function_runs_its_code(real))
            break;
        FG_DO(fg_source(t, FG_ACC_FUNC_CODE, node, NULL, 0, &code));
        FG_DO(fg_guard(t, FG_GUARD_ID, code, real->func_code, 0, 0));
        return give_const(t, real->func_code, out);
    }
    case 1: return give_or_none(t, FG_ACC_FUNC_DEFAULTS, node, 0, real->func_defaults, out);
    case 2: return give_or_none(t, FG_ACC_FUNC_KWDEFAULTS, node, 0, real->func_kwdefaults, out);
    case 3: return give_or_none(t, FG_ACC_FUNC_CLOSURE, node, 0, real->func_closure, out);
    case 4: return give_lazy(t, FG_ACC_FUNC_GLOBALS, node, 0, real->func_globals, out);
    case 5: return give_lazy(t, FG_ACC_FUNC_BUILTINS, node, 0, real->func_builtins, out);
    default: break;
    }
    if (fg_py_type_lookup(&PyFunction_Type, name) != NULL)
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of function %U", name, real->func_qualname);
    PyObject *value = NULL;
    if (fg_attr_find(f->real, name, PyObject_Hash(name), &value) == FG_FIND_UNDECIDED)
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of a function with attribute names that are no plain strings", name);
    if (value == NULL)
        return fg_guard(t, FG_GUARD_ATTR_LACKS, node, name, 0, 0);
    if ((*out = fg_value_lazy(t, FG_ACC_INSTANCE_ATTR, node, name, 0, value)) == NULL)
        return FG_FLOW_ERROR;
    return fg_rely_on(t, *out);
}

/* Made in this trace: nothing has been assigned to it, since that is a break. */
static fg_flow new_function(fg_trace *t, fg_value *f, PyObject *name, fg_value **out)
{
    PyCodeObject *code = (PyCodeObject *)f->real;
    switch (part_of(name, function_parts, 4)) {
    case 0: return give_const(t, code->co_name, out);
    case 1: return give_const(t, code->co_qualname, out);
    case 3: {
        PyObject *first = FG_HAS_DOCSTRING(code) && PyTuple_GET_SIZE(code->co_consts) > 0 ? PyTuple_GET_ITEM(code->co_consts, 0) : Py_None;
        return give_const(t, PyUnicode_Check(first) ? first : Py_None, out);
    }
    default: break;
    }
    if (PyUnicode_CompareWithASCIIString(name, "__code__") == 0)
        return give_const(t, f->real, out);
    if (fg_py_type_lookup(&PyFunction_Type, name) != NULL)
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of function %U", name, code->co_qualname);
    *out = NULL;
    return FG_FLOW_OK;
}

fg_flow fg_function_attr(fg_trace *t, fg_value *f, PyObject *name, fg_value **out)
{
    *out = NULL;
    FG_SET(t, f->is_asked, 1);
    return f->node != FG_NODE_NONE ? existing_function(t, f, name, out) : new_function(t, f, name, out);
}

fg_flow fg_method_attr(fg_trace *t, fg_value *m, PyObject *name, fg_value **out)
{
    FG_DO(fg_look(t, &m->a));
    if (name == fg_names.s_self || name == fg_names.s_func) {
        *out = name == fg_names.s_self ? m->b : m->a;
        return FG_FLOW_OK;
    }
    int is_doc = PyUnicode_CompareWithASCIIString(name, "__doc__") == 0;
    if (m->a->kind == FG_V_FUNC && (is_doc || fg_py_type_lookup(&PyMethod_Type, name) == NULL))
        return fg_function_attr(t, m->a, name, out);
    return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of a method", name);
}

fg_flow fg_callable_attr(fg_trace *t, fg_value *o, PyObject *name, fg_value **out)
{
    static const char *const fixed[] = {"__name__", "__doc__"};
    if (PyFunction_Check(o->real)) {
        fg_node node;
        fg_value *f = fg_value_new(t, FG_V_FUNC);
        if (f == NULL)
            return FG_FLOW_ERROR;
        FG_DO(fg_node_of(t, o, &node));
        if (node == FG_NODE_NONE)
            FG_DO(fg_source(t, FG_ACC_CONST, FG_NODE_NONE, o->real, 0, &node));
        f->node = node;
        f->real = o->real;
        f->type = &PyFunction_Type;
        return fg_function_attr(t, f, name, out);
    }
    if (part_of(name, fixed, 2) < 0)
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of %s", name, o->type->tp_name);
    PyObject *value = PyObject_GetAttr(o->real, name);
    if (value == NULL)
        return fg_break_on_error(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "attribute of a builtin");
    return fg_own(t, value) != NULL ? give_const(t, value, out) : FG_FLOW_ERROR;
}

fg_flow fg_class_field(fg_trace *t, fg_value *o, PyObject *name, fg_value **out, bool *handled)
{
    static const char *const parts[] = {"__name__", "__qualname__", "__bases__", "__mro__", "__module__", "__doc__"};
    PyTypeObject *type = (PyTypeObject *)o->real;
    PyHeapTypeObject *heap = (PyHeapTypeObject *)type;
    int part = part_of(name, parts, 6);

    *handled = part >= 0;
    if (!*handled)
        return FG_FLOW_OK;
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) { /* these do not change */
        PyObject *value = PyObject_GetAttr(o->real, name);
        if (value == NULL)
            return fg_break_on_error(t, FG_BREAK_RAISES, "attribute of a class");
        if (fg_own(t, value) == NULL)
            return FG_FLOW_ERROR;
        if (part == 2 || part == 3)
            return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of class %s", name, type->tp_name);
        return give_const(t, value, out);
    }
    if (part >= 4) {
        /* From the class's own dict, where a class statement has put it, never from a base's. */
        PyObject *own = PyDict_GetItemWithError(fg_type_dict(type), name);
        if (own == NULL || (!PyUnicode_CheckExact(own) && own != Py_None))
            return PyErr_Occurred() ? FG_FLOW_ERROR : fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of class %s", name, type->tp_name);
        return fg_type_lookup(t, o, type, name, out);
    }
    fg_node node;
    FG_DO(fg_node_of(t, o, &node));
    if (node == FG_NODE_NONE)
        FG_DO(fg_source(t, FG_ACC_CONST, FG_NODE_NONE, (PyObject *)type, 0, &node));
    switch (part) {
    case 0: return give_lazy(t, FG_ACC_TYPE_PART, node, 0, heap->ht_name, out);
    case 1: return give_lazy(t, FG_ACC_TYPE_PART, node, 1, heap->ht_qualname, out);
    case 2: return give_lazy(t, FG_ACC_BASES, node, 0, type->tp_bases, out);
    default: return give_lazy(t, FG_ACC_MRO, node, 0, type->tp_mro, out);
    }
}

/* Members and computed attributes of a code object whose values are numbers, texts or tuples of these. */
fg_flow fg_code_attr(fg_trace *t, fg_value *o, PyObject *name, fg_value **out)
{
    PyObject *descr = fg_py_type_lookup(&PyCode_Type, name);
    if (descr == NULL) {
        *out = NULL;
        return FG_FLOW_OK;
    }
    PyObject *value = Py_TYPE(descr)->tp_descr_set != NULL ? PyObject_GetAttr(o->real, name) : NULL;
    if (value != NULL && fg_own(t, value) == NULL)
        return FG_FLOW_ERROR;
    if (value == NULL || !fg_is_fold_const(value))
        return PyErr_Occurred() ? fg_break_on_error(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "attribute of a code object")
                                : fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of a code object", name);
    return give_const(t, value, out);
}

fg_flow fg_super_call(fg_trace *t, fg_value *g, fg_value *cls, fg_value *self, fg_value **out)
{
    FG_DO(fg_look(t, &g));
    FG_DO(fg_look(t, &cls));
    FG_DO(fg_look(t, &self));
    if (g->kind != FG_V_CONST || g->real != (PyObject *)&PySuper_Type || cls->kind != FG_V_CONST || !PyType_Check(cls->real))
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "super");
    fg_value *v = fg_value_new(t, FG_V_SUPER);
    if (v == NULL)
        return FG_FLOW_ERROR;
    bool on_class = self->kind == FG_V_CONST && PyType_Check(self->real);
    if (self->kind != FG_V_OBJECT && !on_class)
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "super of %s", self->type ? self->type->tp_name : "a run-time object");
    if (!PyType_IsSubtype(on_class ? (PyTypeObject *)self->real : self->type, (PyTypeObject *)cls->real))
        return fg_break(t, FG_BREAK_RAISES, "super(type, obj): obj must be an instance or subtype of type");
    v->a = cls;
    v->b = self;
    if (!on_class)
        FG_DO(fg_object_type(t, self, &v->c));
    *out = v;
    return FG_FLOW_OK;
}
