/* torch.nn.Module: attribute look-up through its three dicts, and its call when no hook is in the way.
 *
 * Calling a module runs `_call_impl`, which goes straight to `forward` where the module's four hook dicts and four global ones are empty. These eight
 * lengths are facts, and so are the absence of an instance `forward` and of a compiled call; then `forward` is traced into.
 */
#include "runtime/cpython/frame.h"
#include "guards/adaptor_torch.h"
#include "tracer/trace_python.h"

#include <string.h>

bool fg_is_nn_module(PyTypeObject *type)
{
    PyObject *cls = fg_py_torch_module_class();
    return cls != NULL && PyType_IsSubtype(type, (PyTypeObject *)cls);
}

/* The dict `name` of the instance, as a value; NULL if the instance has none. */
static fg_flow own_dict(fg_trace *t, fg_value *m, PyObject *name, fg_value **out)
{
    *out = NULL;
    fg_vitem *item = fg_map_find(&m->map, name, PyObject_Hash(name));
    if (item != NULL) {
        *out = item->value;
    } else {
        PyObject *real = fg_instance_attr(m->real, name);
        if (real == NULL)
            return FG_FLOW_OK;
        if ((*out = fg_value_lazy(t, FG_ACC_INSTANCE_ATTR, m->node, name, 0, real)) == NULL)
            return FG_FLOW_ERROR;
    }
    if (*out == NULL)
        return FG_FLOW_OK;
    FG_DO(fg_look(t, out));
    if ((*out)->kind != FG_V_DICT)
        *out = NULL;
    return FG_FLOW_OK;
}

fg_flow fg_module_attr(fg_trace *t, fg_value *m, PyObject *name, fg_value **out)
{
    PyObject *const dicts[3] = {fg_names.s_parameters, fg_names.s_buffers, fg_names.s_modules};
    *out = NULL;
    for (int i = 0; i < 3 && *out == NULL; i++) {
        fg_value *dict;
        FG_DO(own_dict(t, m, dicts[i], &dict));
        if (dict == NULL)
            return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "module of type %s without %U", m->type->tp_name, dicts[i]);
        FG_DO(fg_dict_get(t, dict, name, out));
    }
    return FG_FLOW_OK;
}

static fg_flow has_no_hooks(fg_trace *t, fg_value *m, bool *none)
{
    static const char *const names[] = {"_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"};
    *none = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !m->is_partial; i++) { /* a new module has none */
        PyObject *name = fg_own(t, PyUnicode_InternFromString(names[i]));
        PyObject *hooks = name ? fg_instance_attr(m->real, name) : NULL;
        if (name == NULL)
            return FG_FLOW_ERROR;
        fg_node node;
        if (hooks == NULL || !PyDict_Check(hooks) || PyDict_GET_SIZE(hooks) != 0)
            return FG_FLOW_OK;
        FG_DO(fg_source(t, FG_ACC_INSTANCE_ATTR, m->node, name, 0, &node));
        FG_DO(fg_guard(t, FG_GUARD_LENGTH, node, NULL, 0, 0));
    }
    PyObject *module = fg_py_torch_module_file(); /* torch.nn.modules.module */
    static const char *const globals[] = {"_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks",
                                          "_global_backward_pre_hooks"};
    if (module == NULL)
        return FG_FLOW_OK;
    fg_node root, dict;
    FG_DO(fg_source(t, FG_ACC_CONST, FG_NODE_NONE, module, 0, &root));
    FG_DO(fg_source(t, FG_ACC_MODULE_DICT, root, NULL, 0, &dict));
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++) {
        PyObject *name = fg_own(t, PyUnicode_InternFromString(globals[i]));
        PyObject *hooks = name ? PyDict_GetItemWithError(PyModule_GetDict(module), name) : NULL;
        if (name == NULL)
            return FG_FLOW_ERROR;
        fg_node node;
        if (hooks == NULL || !PyDict_Check(hooks) || PyDict_GET_SIZE(hooks) != 0)
            return PyErr_Occurred() ? FG_FLOW_ERROR : FG_FLOW_OK;
        FG_DO(fg_source(t, FG_ACC_DICT_ITEM, dict, name, 0, &node));
        FG_DO(fg_guard(t, FG_GUARD_LENGTH, node, NULL, 0, 0));
    }
    *none = true;
    return FG_FLOW_OK;
}

fg_flow fg_call_module(fg_trace *t, fg_value *m, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out, bool *handled)
{
    *handled = false;
    PyTypeObject *module_class = (PyTypeObject *)fg_py_torch_module_class();
    fg_value *type, *found;
    FG_DO(fg_object_type(t, m, &type));
    FG_DO(fg_type_lookup(t, type, m->type, fg_names.s_call, &found));
    if (found == NULL || found->real != fg_py_type_lookup(module_class, fg_names.s_call))
        return FG_FLOW_OK; /* its own __call__: an ordinary object */
    FG_DO(fg_look(t, &found));
    FG_DO(fg_guard_const(t, found));
    bool none;
    FG_DO(has_no_hooks(t, m, &none));
    if (!none)
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "module of type %s with hooks", m->type->tp_name);
    fg_value *compiled;
    FG_DO(fg_attr_lookup(t, m, fg_names.s_compiled_call_impl, &compiled));
    if (compiled != NULL)
        FG_DO(fg_look(t, &compiled));
    if (compiled != NULL && !(compiled->kind == FG_V_CONST && compiled->real == Py_None))
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "module of type %s that was compiled by torch", m->type->tp_name);
    fg_value *forward;
    FG_DO(fg_attr_load(t, m, fg_names.s_forward, &forward));
    if (forward == NULL)
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "forward is a property");
    *handled = true;
    FG_SET(t, t->uses_torch, true);
    return fg_call(t, forward, args, n, kwnames, out);
}

/* The name of a function of the module torch._C, NULL: it is another callable. */
static const char *name_in_torch_c(PyObject *callable)
{
    PyObject *self = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : NULL;
    PyObject *told =
        self != NULL && fg_py_is_function_record(self) ? ((PyCFunctionObject *)callable)->m_module : NULL; /* one of pybind11 */
    const char *module = self != NULL && PyModule_Check(self)    ? PyModule_GetName(self)
                         : told != NULL && PyUnicode_Check(told) ? PyUnicode_AsUTF8(told)
                                                                 : NULL;
    if (module == NULL)
        PyErr_Clear();
    return module != NULL && strcmp(module, "torch._C") == 0 ? ((PyCFunctionObject *)callable)->m_ml->ml_name : NULL;
}

/* Whether torch.jit.trace is at work: it has a dispatch key of its own, so the state of the thread says it, which is a fact. */
static fg_flow tracing_state(fg_trace *t, PyObject *callable, fg_value **out, bool *handled)
{
    PyObject *answer = PyObject_CallNoArgs(callable);
    if (answer == NULL)
        return fg_break_on_error(t, FG_BREAK_TORCH_STATE, "torch.jit's state");
    *handled = answer == Py_None || answer == Py_False;
    if (fg_own(t, answer) == NULL)
        return FG_FLOW_ERROR;
    if (!*handled)
        return FG_FLOW_OK;
    FG_SET(t, t->uses_torch, true);
    return (*out = fg_value_const(t, answer)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

/* What torch's Python code asks torch._C: whether there is a tracer; _has_torch_function and its two relatives, false where all that is asked about are torch's
 * own tensors, parameters and plain values. */
fg_flow fg_torch_question(fg_trace *t, PyObject *callable, fg_value **args, int32_t n, fg_value **out, bool *handled)
{
    *handled = false;
    const char *name = name_in_torch_c(callable);
    if (name != NULL && n == 0 && (strcmp(name, "_get_tracing_state") == 0 || strcmp(name, "_is_tracing") == 0))
        return tracing_state(t, callable, out, handled);
    if (name == NULL || strncmp(name, "_has_torch_function", 19) != 0)
        return FG_FLOW_OK;
    const char *rest = name + 19;
    fg_value **items = args;
    int32_t n_items = n;
    if (*rest == 0 && n == 1)
        FG_DO(fg_iterate(t, args[0], &items, &n_items));
    for (int32_t i = 0; i < n_items; i++) {
        FG_DO(fg_look(t, &items[i]));
        const fg_value *v = items[i];
        bool is_own = v->kind == FG_V_TENSOR && fg_tensor_library(v) == FG_LIB_TORCH &&
                      (v->type == NULL || v->type == fg_py_torch_tensor_type() || v->type == fg_torch_py.parameter);
        if (!is_own && v->kind != FG_V_SCALAR && !(v->kind == FG_V_CONST && (v->real == Py_None || fg_is_fold_const(v->real))))
            return FG_FLOW_OK;
    }
    FG_SET(t, t->uses_torch, true); /* a mode would answer otherwise */
    *handled = true;
    return (*out = fg_value_const(t, Py_False)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}
