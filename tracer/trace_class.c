/* Instances: objects of plain Python classes made during the trace, how they come to exist at run time, and operators that classes define. */
#include "tracer/trace_python.h"

#include <string.h>

fg_flow fg_instance_new(fg_trace *t, fg_value *cls, PyTypeObject *type, fg_value **out)
{
    fg_value *found;
    if (type->tp_flags & Py_TPFLAGS_IS_ABSTRACT)
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%s()", type->tp_name);
    FG_DO(fg_type_lookup(t, cls, type, fg_names.s_del, &found));
    if (found != NULL || fg_is_nn_module(type))
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "class %s, whose instances have a life of their own", type->tp_name);
    if ((*out = fg_value_new(t, FG_V_OBJECT)) == NULL)
        return FG_FLOW_ERROR;
    (*out)->type = type;
    (*out)->c = cls;
    (*out)->is_complete = 1;
    return FG_FLOW_OK;
}

/* A class with a __new__ in Python: *made is the instance that an __init__ goes on with; NULL: there is none, and *out is the result, or a frame was pushed. */
static fg_flow made_by_own(fg_trace *t, fg_value *f, PyTypeObject *type, fg_value **args, int32_t n, PyObject *kwnames, fg_value **made,
                           fg_value **out)
{
    fg_value *make, *init;
    *made = NULL;
    FG_DO(fg_attr_lookup(t, f, fg_names.s_new, &make));
    if (make != NULL)
        FG_DO(fg_look(t, &make));
    if (make == NULL || make->kind != FG_V_FUNC)
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "class %s, which has its own __new__", type->tp_name);
    FG_DO(fg_type_lookup(t, f, type, fg_names.s_init, &init));
    FG_DO(fg_look(t, &init));
    if (init->kind == FG_V_CONST && init->real == fg_names.object_init) {
        FG_DO(fg_call_python(t, make, f, args, n, kwnames, out));
        if (*out == NULL)
            t->frame->made_by = f;
        return FG_FLOW_OK;
    }
    fg_value **all = fg_arena_alloc(&t->arena, (size_t)(n + 1) * sizeof *all);
    if (all == NULL)
        return fg_nomem();
    all[0] = f;
    if (n)
        memcpy(all + 1, args, (size_t)n * sizeof *args);
    FG_DO(fg_call_now(t, make, all, n + 1, kwnames, made));
    FG_DO(fg_look(t, made));
    return (*made)->kind == FG_V_OBJECT && (*made)->type == type
               ? FG_FLOW_OK
               : fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "class %s, whose __new__ gives something else", type->tp_name);
}

fg_flow fg_call_class(fg_trace *t, fg_value *f, PyTypeObject *type, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out)
{
    fg_value *found;
    if (Py_TYPE(type)->tp_call != PyType_Type.tp_call)
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "class %s, whose metaclass makes its instances", type->tp_name);
    if (Py_TYPE(type) != &PyType_Type) { /* a metaclass may grow one */
        fg_value *meta;
        FG_DO(fg_object_type(t, f, &meta));
        FG_DO(fg_type_lookup(t, meta, Py_TYPE(type), fg_names.s_call, &found));
        if (found != NULL)
            FG_DO(fg_look(t, &found));
    }
    if (PyExceptionClass_Check((PyObject *)type) && fg_py_is_plain_exception(type)) {
        fg_reg *regs = fg_arena_alloc(&t->arena, (size_t)(n + 1) * sizeof *regs), reg;
        if (regs == NULL)
            return fg_nomem();
        if (!fg_py_is_simple_exception(type, kwnames))
            return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%s(), which looks at its arguments", type->tp_name);
        FG_DO(fg_materialise(t, f, &regs[0]));
        for (int32_t i = 0; i < n; i++)
            FG_DO(fg_materialise(t, args[i], &regs[i + 1]));
        FG_DO(fg_emit(t, FG_STEP_CALL, 0, 0, NULL, kwnames, regs, n + 1, &reg));
        if ((*out = fg_value_step(t, FG_V_OPAQUE, reg, type, NULL)) == NULL)
            return FG_FLOW_ERROR;
        (*out)->c = f; /* for `raise`: the class and the arguments */
        for (int32_t i = 0; i < n; i++)
            FG_DO(fg_seq_append(t, *out, args[i]));
        return FG_FLOW_OK;
    }
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || (type->tp_flags & Py_TPFLAGS_IS_ABSTRACT))
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%s()", type->tp_name);
    fg_value *o;
    FG_DO(fg_type_lookup(t, f, type, fg_names.s_new, &found));
    if (found != NULL && Py_IS_TYPE(found->real, &PyStaticMethod_Type)) {
        FG_DO(made_by_own(t, f, type, args, n, kwnames, &o, out));
        if (o == NULL)
            return FG_FLOW_OK;
    } else if (found == NULL || found->real != fg_names.object_new || type->tp_new != PyBaseObject_Type.tp_new) {
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "class %s, which has its own __new__", type->tp_name);
    } else {
        FG_DO(fg_look(t, &found));
        FG_DO(fg_instance_new(t, f, type, &o));
    }
    FG_DO(fg_type_lookup(t, f, type, fg_names.s_init, &found));
    FG_DO(fg_look(t, &found));
    if (found->kind == FG_V_CONST && found->real == fg_names.object_init) {
        if (n > 0)
            return fg_break(t, FG_BREAK_RAISES, "%s() takes no arguments", type->tp_name);
        *out = o;
        return FG_FLOW_OK;
    }
    if (found->kind != FG_V_FUNC)
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "class %s", type->tp_name);
    FG_DO(fg_call_python(t, found, o, args, n, kwnames, out));
    if (*out != NULL) /* a generator: no frame was pushed */
        return fg_break(t, FG_BREAK_RAISES, "__init__() should return None");
    t->frame->on_return = o; /* the new frame: gives the instance */
    return FG_FLOW_OK;
}

/* type.__call__ asks the class of what a __new__ gave for its __init__, if that is an instance of the class that was called. */
fg_flow fg_made_is_ready(fg_trace *t, fg_value *cls, fg_value *made)
{
    PyTypeObject *wanted = cls->kind == FG_V_CONST && PyType_Check(cls->real) ? (PyTypeObject *)cls->real : NULL, *type;
    bool yes;
    FG_DO(fg_runtime_type(t, made, &type));
    if (wanted == type)
        return FG_FLOW_OK;
    if (wanted != NULL)
        FG_DO(fg_is_subclass_of(t, made, type, wanted, &yes));
    return wanted == NULL || yes ? fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "a class whose __new__ gives an instance of a subclass")
                                 : FG_FLOW_OK;
}

fg_flow fg_object_materialise(fg_trace *t, fg_value *o, fg_reg *reg)
{
    fg_reg regs[4];
    if ((regs[0] = fg_ir_reg_add(&t->ir, FG_REG_CONST, fg_names.object_new)) == FG_REG_NONE)
        return fg_nomem();
    FG_DO(fg_materialise(t, o->c, &regs[1]));
    FG_DO(fg_emit(t, FG_STEP_CALL, 0, 0, NULL, NULL, regs, 2, reg));
    FG_SET(t, o->reg, *reg); /* its attributes may lead back to it */
    PyObject *setattr = fg_py_type_lookup(o->type, fg_names.s_setattr);
    for (int32_t i = 0; i < o->map.n; i++) {
        fg_vitem *item = &o->map.items[i];
        if (item->value == NULL)
            continue;
        if (setattr == fg_names.object_setattr) {
            FG_DO(fg_materialise(t, item->value, &regs[0]));
            FG_DO(fg_emit(t, FG_STEP_STORE_ATTR, FG_SF_EFFECT, 0, item->key, NULL, (fg_reg[]){regs[0], *reg}, 2, NULL));
            continue;
        }
        fg_reg unused;
        regs[0] = fg_ir_reg_add(&t->ir, FG_REG_CONST, fg_names.object_setattr);
        regs[1] = *reg;
        regs[2] = fg_ir_reg_add(&t->ir, FG_REG_CONST, item->key);
        if (regs[0] == FG_REG_NONE || regs[2] == FG_REG_NONE)
            return fg_nomem();
        FG_DO(fg_materialise(t, item->value, &regs[3]));
        FG_DO(fg_emit(t, FG_STEP_CALL, FG_SF_EFFECT, 0, NULL, NULL, regs, 4, &unused));
    }
    return FG_FLOW_OK;
}

/* A method of C on an instance: only those of `object` that classes rely on. */
fg_flow fg_call_object_method(fg_trace *t, fg_value *self, PyObject *descr, PyObject *name, fg_value **args, int32_t n, fg_value **out)
{
    if (descr == fg_names.object_init && n == 0)
        return (*out = fg_value_const(t, Py_None)) ? FG_FLOW_OK : FG_FLOW_ERROR;
    if (descr == fg_names.object_setattr && n == 2) { /* how frozen dataclasses fill themselves in */
        PyObject *attr;
        FG_DO(fg_key_const(t, args[0], &attr));
        fg_value *type, *found;
        FG_DO(fg_object_type(t, self, &type));
        FG_DO(fg_type_lookup(t, type, self->type, attr, &found));
        if (found != NULL && Py_TYPE(found->real)->tp_descr_set != NULL)
            return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "object.__setattr__ of a descriptor");
        if (!fg_is_virtual(self))
            return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "object.__setattr__ on an existing object");
        FG_DO(fg_map_set(t, &self->map, attr, PyObject_Hash(attr), args[1], 1));
        return (*out = fg_value_const(t, Py_None)) ? FG_FLOW_OK : FG_FLOW_ERROR;
    }
    if (descr == fg_names.object_getattribute && n == 1 && self->type != &PyModule_Type) {
        PyObject *attr;
        FG_DO(fg_key_const(t, args[0], &attr));
        if (PyUnicode_CheckExact(attr))
            return fg_attr_load_generic(t, self, attr, out);
    }
    bool handled;
    FG_DO(fg_outer_method(t, self, descr, name, args, n, out, &handled));
    if (handled)
        return FG_FLOW_OK;
    if (fg_is_old_set(self) && fg_py_type_lookup(self->type, name) == descr) {
        FG_DO(fg_set_method(t, self, name, args, n, out, &handled));
        if (handled)
            return FG_FLOW_OK;
    }
    return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "%s.%U", self->type->tp_name, name);
}

/* --- operators of classes */

static const char *const binary_names[13] = {"add", "and", "floordiv", "lshift", "matmul",  "mul", "mod",
                                             "or",  "pow", "rshift",   "sub",    "truediv", "xor"};

static fg_flow find_special(fg_trace *t, fg_value *o, const char *prefix, const char *name, fg_value **out)
{
    *out = NULL;
    if (o->kind != FG_V_OBJECT)
        return FG_FLOW_OK;
    PyObject *text = PyUnicode_FromFormat("__%s%s__", prefix, name);
    if (text != NULL)
        PyUnicode_InternInPlace(&text);
    if (fg_own(t, text) == NULL)
        return FG_FLOW_ERROR;
    fg_value *type;
    FG_DO(fg_object_type(t, o, &type));
    FG_DO(fg_type_lookup(t, type, o->type, text, out));
    return *out ? fg_look(t, out) : FG_FLOW_OK;
}

fg_flow fg_call_special(fg_trace *t, fg_value *o, PyObject *name, fg_value **args, int32_t n, fg_value **out, bool *found)
{
    fg_value *type, *f;
    *found = false;
    FG_DO(fg_object_type(t, o, &type));
    FG_DO(fg_type_lookup(t, type, o->type, name, &f));
    if (f == NULL)
        return FG_FLOW_OK;
    FG_DO(fg_look(t, &f));
    if (f->kind != FG_V_FUNC)
        return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "%U of %s", name, o->type->tp_name);
    fg_value *all[4] = {o};
    for (int32_t i = 0; i < n && i < 3; i++)
        all[i + 1] = args[i];
    *found = true;
    return fg_call_now(t, f, all, n + 1, NULL, out);
}

static fg_flow call_special(fg_trace *t, fg_value *f, fg_value *self, fg_value *other, fg_value **out)
{
    if (f->kind != FG_V_FUNC)
        return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "operator of %s", self->type->tp_name);
    FG_DO(fg_call_python(t, f, self, &other, 1, NULL, out));
    if (*out == NULL)                                /* else it is a generator, and no frame was pushed */
        t->frame->on_result = FG_RESULT_IMPLEMENTED; /* NotImplemented would go on with the other operand */
    return FG_FLOW_OK;
}

/* Whether b's class comes first: it is a subclass of a's. */
static fg_flow is_refined_by(fg_trace *t, fg_value *a, fg_value *b, bool *yes)
{
    fg_value *of;
    *yes = false;
    if (a->type == b->type || a->type == NULL || b->type == NULL)
        return FG_FLOW_OK;
    FG_DO(fg_object_type(t, b, &of));
    return fg_is_subtype(t, of, b->type, a->type, yes);
}

static fg_flow object_binary(fg_trace *t, int op, fg_value *a, fg_value *b, fg_value **out)
{
    fg_value *f = NULL, *r = NULL;
    if (op >= FG_OP_INPLACE)
        FG_DO(find_special(t, a, "i", binary_names[op - FG_OP_INPLACE], &f));
    if (f == NULL)
        FG_DO(find_special(t, a, "", binary_names[op % FG_OP_INPLACE], &f));
    FG_DO(find_special(t, b, "r", binary_names[op % FG_OP_INPLACE], &r));
    bool refined = false;
    if (f != NULL && r != NULL)
        FG_DO(is_refined_by(t, a, b, &refined));
    if (f != NULL && !refined)
        return call_special(t, f, a, b, out);
    if (f == NULL && r != NULL && a->kind != FG_V_OPAQUE && a->kind != FG_V_TENSOR)
        return call_special(t, r, b, a, out);
    return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "operator between %s and %s", a->type ? a->type->tp_name : "a run-time object",
                    b->type ? b->type->tp_name : "a run-time object");
}

static fg_flow seq_binary(fg_trace *t, int op, fg_value *a, fg_value *b, fg_value **out, bool *handled)
{
    *handled = true;
    if (op % FG_OP_INPLACE == 0 && a->kind == FG_V_LIST && (b->kind == FG_V_LIST || op == 13)) {
        fg_value **items;
        int32_t n;
        if (op == 13) { /* extends in place and is the same list */
            PyObject *extend = fg_names.s_extend;
            FG_DO(fg_container_method(t, a, extend, &b, 1, NULL, out));
            *out = a;
            return FG_FLOW_OK;
        }
        FG_DO(fg_iterate(t, a, &items, &n));
        if ((*out = fg_value_seq(t, FG_V_LIST, items, n)) == NULL)
            return FG_FLOW_ERROR;
        FG_DO(fg_iterate(t, b, &items, &n));
        for (int32_t i = 0; i < n; i++)
            FG_DO(fg_seq_append(t, *out, items[i]));
        return FG_FLOW_OK;
    }
    if (op % FG_OP_INPLACE == 0 && (a->kind == FG_V_TUPLE || (a->kind == FG_V_CONST && PyTuple_CheckExact(a->real))) &&
        (b->kind == FG_V_TUPLE || (b->kind == FG_V_CONST && PyTuple_CheckExact(b->real))) &&
        (a->kind == FG_V_TUPLE || b->kind == FG_V_TUPLE)) {
        fg_value **items;
        int32_t n;
        FG_DO(fg_iterate(t, a, &items, &n));
        if ((*out = fg_value_seq(t, FG_V_TUPLE, items, n)) == NULL)
            return FG_FLOW_ERROR;
        FG_DO(fg_iterate(t, b, &items, &n));
        for (int32_t i = 0; i < n; i++)
            FG_DO(fg_seq_append(t, *out, items[i]));
        return FG_FLOW_OK;
    }
    bool a_seq = a->kind == FG_V_LIST || a->kind == FG_V_TUPLE, b_seq = b->kind == FG_V_LIST || b->kind == FG_V_TUPLE;
    if (op == 5 && ((a_seq && fg_is_scalar(b)) || (b_seq && fg_is_scalar(a)))) {
        fg_value *seq = a_seq ? a : b, *times = a_seq ? b : a, **items;
        int64_t count;
        int32_t n;
        FG_DO(fg_index_value(t, times, &count));
        FG_DO(fg_iterate(t, seq, &items, &n));
        if (count > 100000 || count * n > 100000)
            return fg_break(t, FG_BREAK_TOO_LONG, "a sequence of %d elements, %lld times", (int)n, (long long)count);
        if ((*out = fg_value_seq(t, (fg_vkind)seq->kind, NULL, 0)) == NULL)
            return FG_FLOW_ERROR;
        for (int64_t k = 0; k < count; k++)
            for (int32_t i = 0; i < n; i++)
                FG_DO(fg_seq_append(t, *out, items[i]));
        return FG_FLOW_OK;
    }
    *handled = false;
    return FG_FLOW_OK;
}

/* A class of C, None, or a union of such. */
static bool is_builtin_class(const fg_value *v)
{
    if (v->kind != FG_V_CONST)
        return false;
    if (PyType_Check(v->real))
        return Py_TYPE(v->real) == &PyType_Type && !(((PyTypeObject *)v->real)->tp_flags & Py_TPFLAGS_HEAPTYPE);
    return v->real == Py_None || (v->node == FG_NODE_NONE && fg_is_union(v->real));
}

fg_flow fg_binary(fg_trace *t, int op, fg_value *a, fg_value *b, fg_value **out)
{
    bool handled;
    FG_DO(fg_look(t, &a));
    FG_DO(fg_look(t, &b));
    if (a->kind == FG_V_TENSOR || b->kind == FG_V_TENSOR) {
        if (a->kind == FG_V_OBJECT || b->kind == FG_V_OBJECT)
            return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "operator between an array and a %s",
                            (a->kind == FG_V_OBJECT ? a : b)->type->tp_name);
        return fg_tensor_binary(t, op, a, b, out);
    }
    FG_DO(seq_binary(t, op, a, b, out, &handled));
    if (handled)
        return FG_FLOW_OK;
    if (fg_is_scalar(a) && fg_is_scalar(b))
        return fg_scalar_binary(t, op, a, b, out);
    if (a->kind == FG_V_CONST && b->kind == FG_V_CONST && fg_is_fold_const(a->real) && fg_is_fold_const(b->real))
        return fg_scalar_binary(t, op, a, b, out);
    if (a->type == &PyUnicode_Type && op % FG_OP_INPLACE == 6 && (b->kind == FG_V_TUPLE || fg_is_scalar(b)))
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "formatting with %%");
    if (a->kind == FG_V_OBJECT || b->kind == FG_V_OBJECT) {
        fg_value *pair[2];
        bool members = false;
        if (op % 13 != 4) /* integers have no @ */
            FG_DO(fg_enum_binary(t, binary_names[op % 13], a, b, pair, &members));
        return members ? fg_scalar_binary(t, op, pair[0], pair[1], out) : object_binary(t, op, a, b, out);
    }
    if (op % FG_OP_INPLACE == 7 && is_builtin_class(a) && is_builtin_class(b)) {
        PyObject *either = fg_own(t, PyNumber_Or(a->real, b->real)); /* a union of classes: nothing of the user's is in it */
        return either && (*out = fg_value_const(t, either)) ? FG_FLOW_OK : fg_break_on_error(t, FG_BREAK_RAISES, "union");
    }
    return fg_break(t, FG_BREAK_RAISES, "operator between %s and %s", a->type ? a->type->tp_name : "a run-time object",
                    b->type ? b->type->tp_name : "a run-time object");
}

fg_flow fg_compare(fg_trace *t, int op, fg_value *a, fg_value *b, fg_value **out)
{
    static const char *const names[] = {"lt", "le", "eq", "ne", "gt", "ge"};
    static const int swapped[] = {Py_GT, Py_GE, Py_EQ, Py_NE, Py_LT, Py_LE};
    FG_DO(fg_look(t, &a));
    FG_DO(fg_look(t, &b));
    if (a->kind == FG_V_TENSOR || b->kind == FG_V_TENSOR)
        return fg_tensor_compare(t, op, a, b, out);
    if (fg_is_scalar(a) && fg_is_scalar(b))
        return fg_scalar_compare(t, op, a, b, out);
    fg_value *pair[2] = {a, b};
    bool members = false;
    if (a->kind == FG_V_OBJECT || b->kind == FG_V_OBJECT)
        FG_DO(fg_enum_numbers(t, pair, &members));
    if (members)
        return fg_scalar_compare(t, op, pair[0], pair[1], out);
    PyObject *of_members;
    FG_DO(fg_enum_compare(t, op, a, b, &of_members));
    if (of_members != NULL)
        return (*out = fg_value_const(t, of_members)) ? FG_FLOW_OK : FG_FLOW_ERROR;
    fg_value *f = NULL, *r = NULL;
    bool a_default = a->kind == FG_V_OBJECT && a->type->tp_richcompare == PyBaseObject_Type.tp_richcompare;
    bool b_default = b->kind == FG_V_OBJECT && b->type->tp_richcompare == PyBaseObject_Type.tp_richcompare;
    if (a->kind == FG_V_OBJECT)
        FG_DO(find_special(t, a, "", names[op], &f));
    if (b->kind == FG_V_OBJECT)
        FG_DO(find_special(t, b, "", names[swapped[op]], &r));
    bool refined = false;
    if (f != NULL && f->kind == FG_V_FUNC && b->kind == FG_V_OBJECT && !b_default)
        FG_DO(is_refined_by(t, a, b, &refined));
    if (f != NULL && f->kind == FG_V_FUNC && !refined)
        return call_special(t, f, a, b, out);
    if (r != NULL && r->kind == FG_V_FUNC && a_default)
        return call_special(t, r, b, a, out);
    if (op != Py_EQ && op != Py_NE) {
        if (a->kind == FG_V_CONST && b->kind == FG_V_CONST && fg_is_fold_const(a->real) && fg_is_fold_const(b->real)) {
            PyObject *result = PyObject_RichCompare(a->real, b->real, op);
            if (result == NULL)
                return fg_break_on_error(t, FG_BREAK_RAISES, "comparison");
            return fg_own(t, result) && (*out = fg_value_const(t, result)) ? FG_FLOW_OK : FG_FLOW_ERROR;
        }
        return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "order of %s and %s", a->type ? a->type->tp_name : "a run-time object",
                        b->type ? b->type->tp_name : "a run-time object");
    }
    bool equal;
    /* != without an own __ne__ is the negation of an inherited __eq__; with a Python __eq__ that is user code */
    if ((a->kind == FG_V_OBJECT && !a_default) || (b->kind == FG_V_OBJECT && !b_default))
        return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "comparison of %s and %s", a->type ? a->type->tp_name : "?",
                        b->type ? b->type->tp_name : "?");
    if (a_default != b_default) { /* the other side is a builtin, which never equals an instance of a plain class */
        fg_value *other = a_default ? b : a;
        if (other->kind == FG_V_OPAQUE)
            return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "comparison with a run-time object");
        equal = false;
    } else {
        FG_DO(fg_equal(t, a, b, &equal));
    }
    return (*out = fg_value_const(t, (op == Py_EQ) == equal ? Py_True : Py_False)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}
