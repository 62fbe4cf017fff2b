/* The registry of operations as functions of the extension module: arguments <-> C, no logic. */
#include "tracer/ops_registry.h"

static const char *const RAISES_NAMES[] = {"never", "metadata", "data"};
static const char *const RESULT_NAMES[] = {"tensor", "tensors", "scalar", "meta", "none", "self", "other"};
static const char *const ROLE_NAMES[] = {"unknown", "operand", "constant", "out",      "written",
                                         "inplace", "fixed",   "text",     "required", "count"};

static const struct {
    const char *name;
    long value;
} CONSTANTS[] = {
    {"OPF_DATA_OUTPUT", FG_OPF_DATA_OUTPUT},
    {"OPF_MUTATES_FIRST", FG_OPF_MUTATES_FIRST},
    {"OPF_OUT_KEYWORD", FG_OPF_OUT_KEYWORD},
    {"OPF_VIEW", FG_OPF_VIEW},
    {"OPF_MAY_RETURN_ARG", FG_OPF_MAY_RETURN_ARG},
    {"OPF_SCALARS", FG_OPF_SCALARS},
    {"OPF_NEEDS_FRAME", FG_OPF_NEEDS_FRAME},
    {"OPF_STATE", FG_OPF_STATE},
    {"OPF_CREATES", FG_OPF_CREATES},
    {"OPF_CHANGES_META", FG_OPF_CHANGES_META},
    {"OPF_ERRSTATE", FG_OPF_ERRSTATE},
    {"OPF_NEEDS_DATA", FG_OPF_NEEDS_DATA},
    {"OPF_ORDER", FG_OPF_ORDER},
    {"RAISES_NEVER", FG_RAISES_NEVER},
    {"RAISES_METADATA", FG_RAISES_METADATA},
    {"RAISES_DATA", FG_RAISES_DATA},
    {"RESULT_TENSOR", FG_RESULT_TENSOR},
    {"RESULT_TENSORS", FG_RESULT_TENSORS},
    {"RESULT_SCALAR", FG_RESULT_SCALAR},
    {"RESULT_META", FG_RESULT_META},
    {"RESULT_NONE", FG_RESULT_NONE},
    {"RESULT_SELF", FG_RESULT_SELF},
    {"RESULT_OTHER", FG_RESULT_OTHER},
};

static PyObject *raise_status(fg_status st)
{
    if (st == FG_ERR_NOMEM)
        return PyErr_NoMemory();
    if (st != FG_ERR_PYTHON)
        PyErr_Format(PyExc_ValueError, "operation row: %s", fg_status_text(st));
    return NULL;
}

static PyObject *signature_list(const fg_op_signature *signature)
{
    if (signature == NULL)
        return Py_NewRef(Py_None);
    PyObject *list = PyList_New(0);
    if (list == NULL)
        return NULL;
    for (uint16_t i = 0; i < signature->n_params; i++) {
        const fg_op_param *param = &signature->params[i];
        const char *kind = i < signature->n_named_from ? "positional" : i < signature->n_positional ? "both" : "keyword";
        PyObject *item = Py_BuildValue("(OssO)", param->name, ROLE_NAMES[param->role], kind, param->value == NULL ? Py_None : param->value);
        if (item == NULL || PyList_Append(list, item) < 0) {
            Py_XDECREF(item);
            Py_DECREF(list);
            return NULL;
        }
        Py_DECREF(item);
    }
    if (signature->rest != FG_ROLE_UNKNOWN) {
        PyObject *item = Py_BuildValue("(ssss)", "", ROLE_NAMES[signature->rest], "rest", "");
        if (item == NULL || PyList_Append(list, item) < 0) {
            Py_XDECREF(item);
            Py_DECREF(list);
            return NULL;
        }
        Py_DECREF(item);
    }
    return list;
}

static PyObject *row_dict(const fg_op_row *row)
{
    PyObject *signature = signature_list(row->signature);
    if (signature == NULL)
        return NULL;
    return Py_BuildValue("{sOsOsIsssssOsN}", "name", row->name, "callable", row->callable == NULL ? Py_None : row->callable, "flags",
                         (unsigned)row->flags, "raises", RAISES_NAMES[row->raises], "result", RESULT_NAMES[row->result], "is_attribute",
                         row->is_attribute ? Py_True : Py_False, "signature", signature);
}

static PyObject *register_op(PyObject *Py_UNUSED(module), PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"callable", "type", "name", "flags", "raises", "result", "is_attribute", "signature", NULL};
    PyObject *callable, *type, *name, *signature = Py_None;
    unsigned flags = 0;
    int raises = FG_RAISES_DATA, result = FG_RESULT_TENSOR, is_attribute = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOU|IiipO:register_op", keywords, &callable, &type, &name, &flags, &raises, &result,
                                     &is_attribute, &signature))
        return NULL;
    if (type != Py_None && !PyType_Check(type))
        return PyErr_Format(PyExc_TypeError, "register_op: type must be a type or None");
    if (callable != Py_None && !PyCallable_Check(callable))
        return PyErr_Format(PyExc_TypeError, "register_op: callable must be callable or None");
    fg_status st = fg_op_register_with(callable == Py_None ? NULL : callable, type == Py_None ? NULL : (PyTypeObject *)type, name, flags,
                                       raises, result, is_attribute, signature == Py_None ? NULL : signature);
    return st == FG_OK ? Py_NewRef(Py_None) : raise_status(st);
}

static PyObject *register_ops(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *owner, *prefix, *names, *text;
    unsigned flags;
    int raises, result, is_attribute = 0;
    Py_ssize_t count = 0;
    const fg_op_signature *signature = NULL;
    if (!PyArg_ParseTuple(args, "OUO!IiiO|p:register_ops", &owner, &prefix, &PyTuple_Type, &names, &flags, &raises, &result, &text,
                          &is_attribute))
        return NULL;
    fg_status st = text == Py_None ? FG_OK : fg_op_signature_parse(text, &signature);
    if (st == FG_OK)
        st = fg_op_register_many(owner, prefix, names, flags, raises, result, is_attribute, signature, &count);
    return st == FG_OK ? PyLong_FromSsize_t(count) : raise_status(st);
}

static PyObject *register_bound_ops(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyTypeObject *type;
    PyObject *prefix, *names, *text;
    unsigned flags;
    int raises, result;
    const fg_op_signature *signature = NULL;
    if (!PyArg_ParseTuple(args, "O!UO!IiiU:register_bound_ops", &PyType_Type, &type, &prefix, &PyTuple_Type, &names, &flags, &raises,
                          &result, &text))
        return NULL;
    fg_status st = fg_op_signature_parse(text, &signature);
    if (st == FG_OK)
        st = fg_op_register_bound(type, prefix, names, flags, raises, result, signature);
    return st == FG_OK ? Py_NewRef(Py_None) : raise_status(st);
}

static PyObject *register_late_ops(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *module_name, *callback;
    if (!PyArg_ParseTuple(args, "UO:register_late_ops", &module_name, &callback))
        return NULL;
    fg_status st = fg_op_register_late(module_name, callback);
    return st == FG_OK ? Py_NewRef(Py_None) : raise_status(st);
}

static PyObject *register_op_base(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyTypeObject *type, *base;
    if (!PyArg_ParseTuple(args, "O!O!:register_op_base", &PyType_Type, &type, &PyType_Type, &base))
        return NULL;
    fg_status st = fg_op_register_base(type, base);
    return st == FG_OK ? Py_NewRef(Py_None) : raise_status(st);
}

static PyObject *forget_op(PyObject *Py_UNUSED(module), PyObject *callable)
{
    fg_op_forget(callable);
    Py_RETURN_NONE;
}

static PyObject *op_info(PyObject *Py_UNUSED(module), PyObject *callable)
{
    const fg_op_row *row = fg_op_find(callable);
    return row == NULL ? Py_NewRef(Py_None) : row_dict(row);
}

static PyObject *member_info(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyTypeObject *type;
    PyObject *name;
    if (!PyArg_ParseTuple(args, "O!U:member_info", &PyType_Type, &type, &name))
        return NULL;
    const fg_op_row *row = fg_op_find_member(type, name);
    return row == NULL ? Py_NewRef(Py_None) : row_dict(row);
}

static int append_row(const fg_op_row *row, void *list)
{
    PyObject *dict = row_dict(row);
    int failed = dict == NULL || PyList_Append(list, dict) < 0;
    Py_XDECREF(dict);
    return failed ? -1 : 0;
}

static PyObject *op_table(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    PyObject *list = PyList_New(0);
    if (list != NULL && fg_op_rows_visit(append_row, list) < 0)
        Py_CLEAR(list);
    return list;
}

static PyMethodDef METHODS[] = {
    {"register_op", (PyCFunction)(void (*)(void))register_op, METH_VARARGS | METH_KEYWORDS,
     "register_op(callable, type, name, flags=0, raises=RAISES_DATA, result=RESULT_TENSOR, is_attribute=False, signature=None)\n--\n\n"
     "Make one callable, or one member of a type (callable=None), an operation."},
    {"register_ops", register_ops, METH_VARARGS,
     "register_ops(owner, prefix, names, flags, raises, result, signature, is_attribute=False, /)\n--\n\n"
     "One row for each of the names that the module or type has; the number found."},
    {"register_bound_ops", register_bound_ops, METH_VARARGS,
     "register_bound_ops(type, prefix, names, flags, raises, result, signature, /)\n--\n\n"
     "Rows for builtin methods of this type bound to an object that is an operation itself."},
    {"register_late_ops", register_late_ops, METH_VARARGS,
     "register_late_ops(module_name, callback, /)\n--\n\nCall back when the module has been imported, until the callback returns true."},
    {"register_op_base", register_op_base, METH_VARARGS,
     "register_op_base(type, base, /)\n--\n\nMembers of type without a row are looked up on base."},
    {"forget_op", forget_op, METH_O, "forget_op(callable, /)\n--\n\nThe callable is no operation any more."},
    {"op_info", op_info, METH_O, "op_info(callable, /)\n--\n\nThe row of a callable as a dict, or None."},
    {"member_info", member_info, METH_VARARGS, "member_info(type, name, /)\n--\n\nThe row of a method or attribute as a dict, or None."},
    {"op_table", op_table, METH_NOARGS, "op_table()\n--\n\nAll rows as dicts, in no order."},
    {NULL, NULL, 0, NULL},
};

fg_status fg_ops_module_init(PyObject *module)
{
    if (PyModule_AddFunctions(module, METHODS) < 0)
        return FG_ERR_PYTHON;
    for (size_t i = 0; i < sizeof(CONSTANTS) / sizeof(CONSTANTS[0]); i++)
        if (PyModule_AddIntConstant(module, CONSTANTS[i].name, CONSTANTS[i].value) < 0)
            return FG_ERR_PYTHON;
    return FG_OK;
}
