/* f-strings and conversions: text of run-time scalars is a step, text of known values is a constant. */
#include "tracer/trace_python.h"

#include <string.h>

static fg_flow string_step(fg_trace *t, fg_step_op op, int arg, fg_value **parts, int32_t n, PyObject *example, int flags, fg_value **out)
{
    fg_reg *regs = fg_arena_alloc(&t->arena, (size_t)(n + 1) * sizeof *regs), reg;
    if (regs == NULL)
        return fg_nomem();
    if (example != NULL && fg_own(t, example) == NULL)
        return FG_FLOW_ERROR;
    for (int32_t i = 0; i < n; i++)
        FG_DO(fg_materialise(t, parts[i], &regs[i]));
    FG_DO(fg_emit(t, op, flags, arg, NULL, NULL, regs, n, &reg));
    fg_value *v = fg_value_step(t, FG_V_SCALAR, reg, &PyUnicode_Type, example);
    if (v == NULL || (v->items = fg_arena_alloc(&t->arena, (size_t)(n + 1) * sizeof *v->items)) == NULL)
        return fg_nomem();
    memcpy(v->items, parts, (size_t)n * sizeof *parts);
    v->n = v->cap = n;
    *out = v;
    return FG_FLOW_OK;
}

/* Builtin values whose text can be made without anybody else's code. */
static bool is_plain(const fg_value *v)
{
    return fg_is_scalar(v) || (v->kind == FG_V_CONST && v->real == Py_None);
}

/* A class whose metaclass is `type`: its module and its name make its text, str and repr alike. */
static bool is_plain_class(const fg_value *v)
{
    return v->kind == FG_V_CONST && PyType_Check(v->real) && Py_IS_TYPE(v->real, &PyType_Type);
}

static fg_flow class_text(fg_trace *t, fg_value *v, fg_value **out)
{
    static const char *const names[] = {"__module__", "__qualname__"};
    PyObject *parts[2], *text;
    const bool is_fixed = !(((PyTypeObject *)v->real)->tp_flags & Py_TPFLAGS_HEAPTYPE);
    for (int i = 0; i < 2 && !is_fixed; i++) {
        fg_value *part;
        PyObject *name = fg_own(t, PyUnicode_InternFromString(names[i]));
        if (name == NULL)
            return FG_FLOW_ERROR;
        FG_DO(fg_attr_load(t, v, name, &part));
        FG_DO(fg_look(t, &part));
        if (part->type != &PyUnicode_Type)
            return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "the text of a class whose %s is no str", names[i]);
        FG_DO(fg_concrete(t, part));
        parts[i] = part->real;
    }
    if (is_fixed)
        text = PyObject_Repr(v->real);
    else if (PyUnicode_CompareWithASCIIString(parts[0], "builtins") == 0)
        return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "the text of a class of builtins");
    else
        text = PyUnicode_FromFormat("<class '%U.%U'>", parts[0], parts[1]);
    return fg_own(t, text) && (*out = fg_value_const(t, text)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

fg_flow fg_format_value(fg_trace *t, fg_value *v, fg_value *spec, fg_value **out)
{
    FG_DO(fg_look(t, &v));
    if (spec != NULL) {
        FG_DO(fg_look(t, &spec));
        FG_DO(fg_concrete(t, spec));
    }
    if (fg_is_exception(v) && spec == NULL)
        return fg_exception_text(t, v, 1, out);
    if (is_plain_class(v) && (spec == NULL || PyUnicode_GET_LENGTH(spec->real) == 0))
        return class_text(t, v, out);
    if (v->kind == FG_V_TENSOR && !fg_is_covered(t))
        return string_step(t, FG_STEP_FORMAT, 0, (fg_value *[]){v, spec}, spec ? 2 : 1, NULL, FG_SF_RAISES, out);
    if (!is_plain(v))
        return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "format of %s", v->type ? v->type->tp_name : "a run-time object");
    if (v->type == &PyUnicode_Type && spec == NULL) {
        *out = v;
        return FG_FLOW_OK;
    }
    if (v->kind == FG_V_SCALAR && spec != NULL && (t->opaque || fg_is_covered(t)))
        FG_DO(fg_concrete(t, v));
    PyObject *example = NULL;
    if (v->real != NULL && (example = PyObject_Format(v->real, spec ? spec->real : NULL)) == NULL)
        return v->kind == FG_V_CONST ? fg_raise_error(t, "format") : fg_break_on_error(t, FG_BREAK_RAISES, "format");
    if (v->kind == FG_V_CONST)
        return fg_own(t, example) && (*out = fg_value_const(t, example)) ? FG_FLOW_OK : FG_FLOW_ERROR;
    return string_step(t, FG_STEP_FORMAT, 0, (fg_value *[]){v, spec}, spec ? 2 : 1, example, spec ? FG_SF_RAISES : 0, out);
}

fg_flow fg_convert_value(fg_trace *t, fg_value *v, int kind, fg_value **out)
{
    FG_DO(fg_look(t, &v));
    if (fg_is_exception(v))
        return fg_exception_text(t, v, kind, out);
    if (is_plain_class(v) && (kind == 1 || kind == 2))
        return class_text(t, v, out);
    if (!is_plain(v))
        return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "str or repr of %s", v->type ? v->type->tp_name : "a run-time object");
    if (kind == 1)
        return v->type == &PyUnicode_Type ? (*out = v, FG_FLOW_OK) : fg_scalar_call(t, (PyObject *)&PyUnicode_Type, &v, 1, out);
    FG_DO(fg_concrete(t, v));
    PyObject *text = kind == 2 ? PyObject_Repr(v->real) : PyObject_ASCII(v->real);
    if (text == NULL)
        return fg_raise_error(t, "repr");
    return fg_own(t, text) && (*out = fg_value_const(t, text)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

fg_flow fg_build_string(fg_trace *t, fg_value **parts, int32_t n, fg_value **out)
{
    bool all_const = true, all_real = true;
    for (int32_t i = 0; i < n; i++) {
        FG_DO(fg_look(t, &parts[i]));
        if (parts[i]->type != &PyUnicode_Type)
            return fg_break(t, FG_BREAK_INTERNAL, "a part of a string is no str");
        all_const &= parts[i]->kind == FG_V_CONST;
        all_real &= parts[i]->real != NULL;
    }
    PyObject *example = NULL;
    if (all_real) {
        PyObject *tuple = PyTuple_New(n), *empty = PyUnicode_New(0, 0);
        for (int32_t i = 0; tuple && i < n; i++)
            PyTuple_SET_ITEM(tuple, i, Py_NewRef(parts[i]->real));
        example = tuple && empty ? PyUnicode_Join(empty, tuple) : NULL;
        Py_XDECREF(tuple);
        Py_XDECREF(empty);
        if (example == NULL)
            return FG_FLOW_ERROR;
    }
    if (all_const) {
        if (fg_own(t, example) == NULL || (*out = fg_value_const(t, example)) == NULL)
            return FG_FLOW_ERROR;
    } else {
        FG_DO(string_step(t, FG_STEP_BUILD_STRING, 0, parts, n, example, 0, out));
    }
    return FG_FLOW_OK;
}
