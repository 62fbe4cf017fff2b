/* A slice of a ModuleList or Sequential: a new module of the same class over some of the modules.
 *
 * It is made at run time, by the subscript itself, and only where something uses the module as a whole: going through it, and calling a Sequential, is done
 * with what is known of its parts. What its constructor sets is known for its three dicts alone, so the value is partial: another attribute than these, which its
 * class does not have either, breaks (fg_attr_in_instance).
 */
#include "tracer/trace_python.h"

/* Hooks that torch calls for each module that is put into another one would be called by the constructor. */
static fg_flow has_no_registration_hooks(fg_trace *t, bool *none)
{
    PyObject *module = fg_py_torch_module_file();
    PyObject *name = fg_own(t, PyUnicode_InternFromString("_global_module_registration_hooks"));
    PyObject *hooks = name && module ? PyDict_GetItemWithError(PyModule_GetDict(module), name) : NULL;
    fg_node root, dict, node;
    *none = false;
    if (name == NULL || PyErr_Occurred())
        return FG_FLOW_ERROR;
    if (hooks == NULL || !PyDict_Check(hooks) || PyDict_GET_SIZE(hooks) != 0)
        return FG_FLOW_OK;
    FG_DO(fg_source(t, FG_ACC_CONST, FG_NODE_NONE, module, 0, &root));
    FG_DO(fg_source(t, FG_ACC_MODULE_DICT, root, NULL, 0, &dict));
    FG_DO(fg_source(t, FG_ACC_DICT_ITEM, dict, name, 0, &node));
    FG_DO(fg_guard(t, FG_GUARD_LENGTH, node, NULL, 0, 0));
    *none = true;
    return FG_FLOW_OK;
}

/* torch's own class of this name, whose constructor is known. */
static bool is_container(const PyTypeObject *type, const char *name)
{
    static PyObject *containers;
    if (containers == NULL && (containers = PyImport_ImportModule("torch.nn.modules.container")) == NULL) {
        PyErr_Clear();
        return false;
    }
    PyObject *cls = PyDict_GetItemString(PyModule_GetDict(containers), name);
    return cls == (const PyObject *)type;
}

/* One of the new module's dicts: at run time it is the module's attribute, so that a change of it is one there. */
static fg_flow add_dict(fg_trace *t, fg_value *m, PyObject *name, fg_value **out)
{
    fg_value *dict = fg_value_new(t, FG_V_DICT);
    fg_reg reg;
    if (dict == NULL)
        return FG_FLOW_ERROR;
    dict->is_complete = 1;
    dict->type = &PyDict_Type;
    FG_DO(fg_emit(t, FG_STEP_ATTR, 0, 0, name, NULL, &m->reg, 1, &reg));
    *out = dict;
    FG_DO(fg_map_set(t, &m->map, name, PyObject_Hash(name), dict, 1));
    dict->reg = reg;
    return FG_FLOW_OK;
}

fg_flow fg_module_slice(fg_trace *t, fg_value *o, fg_value *k, PyObject *slice, fg_value **out, bool *handled)
{
    fg_value *type, *found, *modules, *part, *dicts[3];
    PyObject *const names[3] = {fg_names.s_parameters, fg_names.s_buffers, fg_names.s_modules};
    const bool is_list = is_container(o->type, "ModuleList");
    Py_ssize_t start, stop, step;
    fg_reg regs[2], reg;
    bool none;
    *handled = false;
    if (!is_list && !is_container(o->type, "Sequential"))
        return FG_FLOW_OK;
    FG_DO(has_no_registration_hooks(t, &none));
    FG_DO(fg_object_type(t, o, &type));
    FG_DO(fg_type_lookup(t, type, o->type, fg_names.s_getitem, &found));
    if (found != NULL)
        FG_DO(fg_look(t, &found));
    FG_DO(fg_attr_lookup(t, o, fg_names.s_modules, &modules));
    if (modules != NULL)
        FG_DO(fg_look(t, &modules));
    if (!none || found == NULL || found->kind != FG_V_FUNC || modules == NULL || modules->kind != FG_V_DICT)
        return FG_FLOW_OK;
    FG_DO(fg_guard_const(t, found));
    FG_DO(fg_dict_load(t, modules));
    if (PySlice_Unpack(slice, &start, &stop, &step) < 0)
        return fg_break_on_error(t, FG_BREAK_RAISES, "slice");
    const Py_ssize_t n = PySlice_AdjustIndices(modules->map.n, &start, &stop, step);
    FG_DO(fg_materialise(t, o, &regs[0]));
    FG_DO(fg_materialise(t, k, &regs[1]));
    FG_DO(fg_emit(t, FG_STEP_SUBSCR, 0, 0, NULL, NULL, regs, 2, &reg));
    if ((part = fg_value_step(t, FG_V_OBJECT, reg, o->type, NULL)) == NULL)
        return FG_FLOW_ERROR;
    part->c = type;
    part->is_partial = 1;
    for (int i = 0; i < 3; i++)
        FG_DO(add_dict(t, part, names[i], &dicts[i]));
    for (Py_ssize_t i = 0; i < n; i++) {
        fg_vitem *item = &modules->map.items[start + i * step];
        fg_value *module = item->value;
        PyObject *name = is_list ? fg_own(t, PyUnicode_FromFormat("%zd", i)) : item->key;
        if (name == NULL)
            return FG_FLOW_ERROR;
        FG_DO(fg_look(t, &module));
        if (module->kind != FG_V_OBJECT || !fg_is_nn_module(module->type) || !PyUnicode_CheckExact(name))
            return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "a slice of a %s of other things than modules", o->type->tp_name);
        FG_DO(fg_map_set(t, &dicts[2]->map, name, PyObject_Hash(name), module, 1));
    }
    *out = part;
    *handled = true;
    return FG_FLOW_OK;
}
