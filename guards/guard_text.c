/* The exact text form of a description, which guard_parse.c reads back.
 *
 *   framegate-guards 1
 *   names ('x', 'opt',) ('w',)                      slot names, free variables; None for unknown
 *   n0 = arg 0                                      sources: nK = accessor [parent] [index or key]
 *   n1 = instance_attr n0 'lr'
 *   guard n1 type_is @'builtins:float' 'train.py':12   conditions: source or -, kind, argument, origin
 *   guard n1 equals 0.5
 *   relation distinct n0 n1
 *   relation holds n1 '0 v0 <'                      a computed condition, see guard_expr.h
 *   output n1
 *
 * Constants: ints, floats as repr (float:0x… by bits where repr would lose them), complex(re, im), ASCII string and bytes literals, tuples with a comma
 * after each item, None True False Ellipsis NotImplemented. Identities: @'module:qualname', or ?'text' for one that has no such name.
 */
#include "guards/guard_private.h"
#include <math.h>
#include <stdarg.h>
#include <string.h>

int fg_text_take(PyObject *list, PyObject *text)
{
    if (text == NULL)
        return -1;
    int bad = PyList_Append(list, text);
    Py_DECREF(text);
    return bad;
}

int fg_text_add(PyObject *list, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    PyObject *text = PyUnicode_FromFormatV(format, args);
    va_end(args);
    return fg_text_take(list, text);
}

PyObject *fg_text_join(PyObject *list, const char *separator)
{
    PyObject *between = list != NULL ? PyUnicode_FromString(separator) : NULL;
    PyObject *text = between != NULL ? PyUnicode_Join(between, list) : NULL;
    Py_XDECREF(between);
    Py_XDECREF(list);
    return text;
}

static PyObject *double_text(double value)
{
    if (!isfinite(value)) {
        uint64_t bits;
        char text[32];
        memcpy(&bits, &value, sizeof bits);
        snprintf(text, sizeof text, "float:0x%016llx", (unsigned long long)bits);
        return PyUnicode_FromString(text);
    }
    char *repr = PyOS_double_to_string(value, 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
    PyObject *text = repr != NULL ? PyUnicode_FromString(repr) : NULL;
    PyMem_Free(repr);
    return text;
}

static PyObject *tuple_text(PyObject *tuple)
{
    PyObject *list = PyList_New(0);
    if (list == NULL || fg_text_add(list, "(") < 0)
        goto fail;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
        if ((i > 0 && fg_text_add(list, " ") < 0) || fg_text_take(list, fg_object_text(PyTuple_GET_ITEM(tuple, i))) < 0 ||
            fg_text_add(list, ",") < 0)
            goto fail;
    }
    if (fg_text_add(list, ")") < 0)
        goto fail;
    return fg_text_join(list, "");
fail:
    Py_XDECREF(list);
    return NULL;
}

/* What to call an object that no import finds; runs none of its code. */
static PyObject *kind_and_name(PyObject *object)
{
    const char *kind = Py_TYPE(object)->tp_name;
    if (fg_is_descriptor(object))
        return PyUnicode_FromFormat("%s %s.%S", kind, PyDescr_TYPE(object)->tp_name, PyDescr_NAME(object));
    PyObject *named = PyType_Check(object) || PyFunction_Check(object) ? PyObject_GetAttrString(object, "__qualname__") : NULL;
    if (named == NULL)
        PyErr_Clear();
    PyObject *text = named != NULL ? PyUnicode_FromFormat("%s %S", kind, named) : PyUnicode_FromString(kind);
    Py_XDECREF(named);
    return text;
}

static PyObject *identity_text(PyObject *object)
{
    PyObject *name = fg_identity_name(object), *quoted = NULL, *text = NULL;
    const char *mark = "@";

    if (name == Py_None) {
        mark = "?";
        Py_SETREF(name, kind_and_name(object));
    }
    if (name != NULL && (quoted = PyObject_ASCII(name)) != NULL)
        text = PyUnicode_FromFormat("%s%U", mark, quoted);
    Py_XDECREF(name);
    Py_XDECREF(quoted);
    return text;
}

PyObject *fg_object_text(PyObject *object)
{
    if (object == Py_None || PyBool_Check(object) || object == Py_Ellipsis || object == Py_NotImplemented)
        return PyObject_Repr(object);
    if (PyLong_CheckExact(object)) {
        int overflow = 0;
        (void)PyLong_AsLongLongAndOverflow(object, &overflow);
        return PyNumber_ToBase(object, overflow ? 16 : 10);
    }
    if (PyFloat_CheckExact(object))
        return double_text(PyFloat_AS_DOUBLE(object));
    if (PyComplex_CheckExact(object)) {
        Py_complex value = PyComplex_AsCComplex(object);
        PyObject *real = double_text(value.real), *imag = double_text(value.imag), *text = NULL;
        if (real != NULL && imag != NULL)
            text = PyUnicode_FromFormat("complex(%U, %U)", real, imag);
        Py_XDECREF(real);
        Py_XDECREF(imag);
        return text;
    }
    if (PyUnicode_CheckExact(object))
        return PyObject_ASCII(object);
    if (PyBytes_CheckExact(object))
        return PyObject_Repr(object);
    if (PyTuple_CheckExact(object))
        return tuple_text(object);
    return identity_text(object);
}

PyObject *fg_hold_text(const fg_hold *hold)
{
    if (hold->label != NULL)
        return Py_NewRef(hold->label);
    PyObject *object = fg_hold_get(hold);
    if (object == NULL)
        return PyUnicode_FromString("?'dead'");
    if (hold->own)
        return PyUnicode_FromFormat("<own %s>", Py_TYPE(object)->tp_name);
    Py_INCREF(object);
    PyObject *text = fg_object_text(object);
    Py_DECREF(object);
    return text;
}

static PyObject *meta_text(const fg_desc *desc, const fg_guard_record *guard)
{
    const fg_meta_record *meta = guard->leaf.p;
    PyObject *list = PyList_New(0), *library = NULL;

    if (list == NULL || (library = guard->library != NULL ? PyObject_ASCII(guard->library) : PyUnicode_FromString("''")) == NULL)
        goto fail;
    if (fg_text_add(list, "%U ", library) < 0 ||
        fg_text_take(list, guard->hold >= 0 ? fg_hold_text(&desc->holds[guard->hold]) : PyUnicode_FromString("?''")) < 0 ||
        fg_text_add(list, " keys=%llu dtype=%d device=%d:%d grad=%d layout=%d sizes=(", (unsigned long long)meta->keys, (int)meta->dtype,
                    (int)meta->device_type, (int)meta->device_index, (int)meta->requires_grad, (int)meta->layout) < 0)
        goto fail;
    for (int32_t i = 0; i < 2 * meta->ndim; i++) {
        if (fg_text_add(list, i == meta->ndim ? ") strides=(%lld," : "%lld,", (long long)meta->dims[i]) < 0)
            goto fail;
    }
    if (fg_text_add(list, meta->ndim > 0 ? ")" : ") strides=()") < 0)
        goto fail;
    Py_DECREF(library);
    return fg_text_join(list, "");
fail:
    Py_XDECREF(list);
    Py_XDECREF(library);
    return NULL;
}

PyObject *fg_guard_arg_text(const fg_desc *desc, const fg_guard_record *guard)
{
    switch (fg_guard_arg_class(guard->kind)) {
    case FG_ARG_NONE:
    case FG_ARG_NODES:
    case FG_ARG_EXPR: return PyUnicode_FromString("");
    case FG_ARG_OBJECT: return fg_hold_text(&desc->holds[guard->hold]);
    case FG_ARG_INT: return PyUnicode_FromFormat("%lld", (long long)guard->leaf.lo);
    case FG_ARG_RANGE: return PyUnicode_FromFormat("%lld %lld", (long long)guard->leaf.lo, (long long)guard->leaf.hi);
    case FG_ARG_META: return meta_text(desc, guard);
    case FG_ARG_STATE: {
        const fg_torch_state *s = guard->leaf.p;
        return PyUnicode_FromFormat(
            "included=%llu excluded=%llu device=%lld autograd=%d modes=%d disabled=%d dtype=%d autocast=%d:%d present=%d",
            (unsigned long long)s->keys_included, (unsigned long long)s->keys_excluded, (long long)s->default_device, (int)s->autograd,
            (int)s->function_mode_depth, (int)s->function_disabled, (int)s->default_dtype, (int)s->autocast_dtype[0],
            (int)s->autocast_dtype[1], (int)s->present);
    }
    }
    return NULL;
}

static int add_names(PyObject *list, PyObject *names)
{
    return fg_text_take(list, names != NULL && PyTuple_CheckExact(names) ? fg_object_text(names) : PyUnicode_FromString("None"));
}

static int add_origin(PyObject *list, const fg_guard_record *guard)
{
    if (guard->file == NULL)
        return fg_text_add(list, "\n");
    PyObject *quoted = PyObject_ASCII(guard->file);
    int bad = quoted == NULL || fg_text_add(list, " %U:%d\n", quoted, guard->line) < 0;
    Py_XDECREF(quoted);
    return bad ? -1 : 0;
}

static int add_node(PyObject *list, const fg_desc *desc, uint32_t index)
{
    const fg_node_record *node = &desc->nodes[index];
    if (fg_text_add(list, "n%u = %s", index, fg_accessor_text(node->acc)) < 0 ||
        (node->parent >= 0 && fg_text_add(list, " n%d", (int)node->parent) < 0))
        return -1;
    switch (fg_accessor_key(node->acc)) {
    case FG_KEY_NONE: break;
    case FG_KEY_INDEX:
        if (fg_text_add(list, " %lld", (long long)node->index) < 0)
            return -1;
        break;
    case FG_KEY_NAME:
    case FG_KEY_OBJECT:
        if (fg_text_add(list, " ") < 0 || fg_text_take(list, fg_hold_text(&desc->holds[node->hold])) < 0)
            return -1;
        break;
    }
    return fg_text_add(list, "\n");
}

static int add_expression(PyObject *list, const fg_guard_record *guard)
{
    PyObject *text = fg_expr_text(fg_guard_expr(guard->kind, &guard->leaf));
    int bad = text == NULL || fg_text_add(list, " '%U'", text) < 0;
    Py_XDECREF(text);
    return bad ? -1 : 0;
}

static int add_guard(PyObject *list, const fg_desc *desc, const fg_guard_record *guard)
{
    if (guard->n_ids > 0) {
        if (fg_text_add(list, "relation %s", fg_guard_text(guard->kind)) < 0)
            return -1;
        for (uint32_t i = 0; i < guard->n_ids; i++) {
            if (fg_text_add(list, " n%d", (int)((const fg_node *)guard->owned)[i]) < 0)
                return -1;
        }
        if (guard->kind == FG_GUARD_EXPR && add_expression(list, guard) < 0)
            return -1;
        return add_origin(list, guard);
    }
    if ((guard->node >= 0 ? fg_text_add(list, "guard n%d %s", (int)guard->node, fg_guard_text(guard->kind))
                          : fg_text_add(list, "guard - %s", fg_guard_text(guard->kind))) < 0)
        return -1;
    if (fg_guard_arg_class(guard->kind) != FG_ARG_NONE &&
        (fg_text_add(list, " ") < 0 || fg_text_take(list, fg_guard_arg_text(desc, guard)) < 0))
        return -1;
    return add_origin(list, guard);
}

PyObject *fg_desc_to_text(const fg_desc *desc)
{
    PyObject *list = PyList_New(0);
    if (list == NULL || fg_text_add(list, "framegate-guards 1\n") < 0)
        goto fail;
    if (desc->slot_names != NULL || desc->free_names != NULL) {
        if (fg_text_add(list, "names ") < 0 || add_names(list, desc->slot_names) < 0 || fg_text_add(list, " ") < 0 ||
            add_names(list, desc->free_names) < 0 || fg_text_add(list, "\n") < 0)
            goto fail;
    }
    for (uint32_t i = 0; i < desc->n_nodes; i++) {
        if (!fg_node_is_own(desc, (fg_node)i) && add_node(list, desc, i) < 0)
            goto fail;
    }
    for (uint32_t i = 0; i < desc->n_guards; i++) {
        if (add_guard(list, desc, &desc->guards[i]) < 0)
            goto fail;
    }
    for (uint32_t i = 0; i < desc->n_outputs; i++) {
        if (!fg_node_is_own(desc, desc->outputs[i]) && fg_text_add(list, "output n%d\n", (int)desc->outputs[i]) < 0)
            goto fail;
    }
    return fg_text_join(list, "");
fail:
    Py_XDECREF(list);
    return NULL;
}
