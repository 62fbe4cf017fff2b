/* What torch says about a tensor of a subclass: its own shape, dtype, device, beside what is inside of it.
 *
 * Such a tensor is an object to the trace, no array: its operations are its class's code. But what torch.Tensor's own members tell about it is read from memory
 * (guards/adaptor_torch_subclass.c), and is the answer of plain Python where nothing of the user's stands in between. Rules:
 *  1. The name leads to torch.Tensor's own descriptor or method; a class that has something else there is traced as any class.
 *  2. The class's __torch_function__ is torch's, or is switched off, and no function mode is there: then each of them gives what the member gives.
 *  3. A wrapper that was made to be asked cannot be read from memory: a break.
 *  4. What was told is one fact about the whole, `tensor`.
 */
#include "guards/adaptor_torch.h"
#include "tracer/trace_python.h"

static fg_flow give(fg_trace *t, PyObject *value, fg_value **out)
{
    if (value == NULL)
        return fg_break_on_error(t, FG_BREAK_RAISES, "metadata");
    return fg_own(t, value) != NULL && (*out = fg_value_const(t, value)) ? FG_FLOW_OK : FG_FLOW_ERROR;
}

static bool is_outer(const fg_value *o)
{
    return o->kind == FG_V_OBJECT && o->real != NULL && o->node != FG_NODE_NONE && !o->is_partial && fg_py_is_torch_type(Py_TYPE(o->real));
}

/* A function of torch's own: that it is this one and has this code, are facts. One that the registry knows is pinned by looking at it. */
static bool is_torch_function(const fg_value *f)
{
    return f->kind == FG_V_CONST || (f->kind == FG_V_FUNC && fg_py_is_library((PyCodeObject *)PyFunction_GET_CODE(f->real)));
}

static fg_flow pin_code(fg_trace *t, fg_value *f)
{
    fg_node node;
    if (f->kind == FG_V_CONST)
        return FG_FLOW_OK;
    FG_DO(fg_guard_const(t, f));
    FG_DO(fg_node_of(t, f, &node));
    FG_DO(fg_source(t, FG_ACC_FUNC_CODE, node, NULL, 0, &node));
    return fg_guard(t, FG_GUARD_ID, node, PyFunction_GET_CODE(f->real), 0, 0);
}

/* The class's __torch_function__: it changes no answer. */
static fg_flow pin_function(fg_trace *t, fg_value *o)
{
    static PyObject *name;
    PyTypeObject *tensor = fg_py_torch_tensor_type();
    fg_value *type, *found, *func;
    fg_node node;
    if (name == NULL && (name = PyUnicode_InternFromString("__torch_function__")) == NULL)
        return FG_FLOW_ERROR;
    FG_DO(fg_object_type(t, o, &type));
    FG_DO(fg_type_lookup(t, type, o->type, name, &found));
    if (found == NULL)
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "%s has no '%U'", o->type->tp_name, name);
    FG_DO(fg_look(t, &found));
    if (found->kind == FG_V_CONST && PyCFunction_CheckExact(found->real) &&
        strcmp(((PyCFunctionObject *)found->real)->m_ml->ml_name, "_disabled_torch_function_impl") == 0)
        return FG_FLOW_OK;
    /* torch's asks whether the class is a subclass of itself, which is a question to its metaclass */
    if (found->real != fg_py_type_lookup(tensor, name) || !Py_IS_TYPE(found->real, &PyClassMethod_Type) ||
        Py_TYPE(o->type) != Py_TYPE(tensor))
        return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "%s has its own %U", o->type->tp_name, name);
    PyObject *real = PyObject_GetAttr(found->real, fg_names.s_func);
    if (real == NULL || fg_own(t, real) == NULL)
        return FG_FLOW_ERROR;
    FG_DO(fg_node_of(t, found, &node));
    if (node == FG_NODE_NONE || (func = fg_value_lazy(t, FG_ACC_DESCR_FUNC, node, NULL, 0, real)) == NULL)
        return fg_break(t, FG_BREAK_GUARD, "'%U' of %s would have to be fixed", name, o->type->tp_name);
    FG_DO(fg_look(t, &func));
    if (!is_torch_function(func))
        return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "'%U' of tensors, which was replaced", name);
    return pin_code(t, func);
}

/* The fact, and what it says. */
static fg_flow read_outer(fg_trace *t, fg_value *o, PyObject *name, fg_tensor_meta *meta)
{
    fg_torch_state state;
    const fg_tensor_adaptor *adaptor = fg_tensor_adaptor_describe(o->type);
    const char *why = NULL;
    if (!fg_torch_state_read(&state) || state.function_mode_depth != 0)
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of a tensor under a function mode", name);
    if (adaptor == NULL || adaptor->record(adaptor, o->real, meta, &why) != 1)
        return fg_break(t, FG_BREAK_UNKNOWN_TENSOR_KIND, "'%U' of %s: %s", name, o->type->tp_name, why != NULL ? why : "not read");
    FG_DO(pin_function(t, o));
    FG_SET(t, t->uses_torch, true);
    return fg_guard_meta(t, FG_GUARD_TENSOR, o->node, meta);
}

static PyObject *ints(const int64_t *numbers, int32_t n)
{
    PyObject *tuple = PyTuple_New(n);
    for (int32_t i = 0; tuple != NULL && i < n; i++) {
        PyObject *number = PyLong_FromLongLong(numbers[i]);
        if (number == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, number);
    }
    return tuple;
}

/* torch.Size of these, NULL with an exception or, where torch has something else under the name, without one. */
static PyObject *size_new(const fg_tensor_meta *meta)
{
    PyObject *type = PyObject_GetAttrString(fg_torch_py.torch, "Size"), *size = NULL;
    PyObject *tuple =
        type != NULL && PyType_Check(type) && fg_py_is_torch_size((PyTypeObject *)type) ? ints(meta->sizes, meta->ndim) : NULL;
    if (tuple != NULL)
        size = PyObject_CallOneArg(type, tuple);
    Py_XDECREF(type);
    Py_XDECREF(tuple);
    return size;
}

static PyObject *device_new(const fg_tensor_meta *meta)
{
    const int type = meta->device_type;
    PyObject *name = type >= 0 && type < FG_TORCH_N_DEVICES ? fg_torch_py.device_names[type] : NULL;
    PyObject *make = name != NULL ? PyObject_GetAttrString(fg_torch_py.torch, "device") : NULL, *device = NULL;
    if (make != NULL && PyType_Check(make) && fg_py_is_library_constant((PyTypeObject *)make))
        device =
            meta->device_index < 0 ? PyObject_CallOneArg(make, name) : PyObject_CallFunction(make, "Oi", name, (int)meta->device_index);
    Py_XDECREF(make);
    return device;
}

static PyObject *dtype_new(const fg_tensor_meta *meta)
{
    PyObject *dtype = meta->adaptor->dtype_object(meta);
    if (dtype != NULL && !fg_py_is_library_constant(Py_TYPE(dtype)))
        Py_CLEAR(dtype); /* one that is not known */
    return dtype;
}

static PyObject *ndim_new(const fg_tensor_meta *meta)
{
    return PyLong_FromLong(meta->ndim);
}

static PyObject *grad_new(const fg_tensor_meta *meta)
{
    return PyBool_FromLong(meta->requires_grad);
}

fg_flow fg_outer_attr(fg_trace *t, fg_value *o, const fg_value *found, PyObject *name, fg_value **out, bool *handled)
{
    static const struct {
        const char *name;
        PyObject *(*make)(const fg_tensor_meta *meta);
    } members[] = {{"shape", size_new}, {"dtype", dtype_new}, {"device", device_new}, {"ndim", ndim_new}, {"requires_grad", grad_new}};
    size_t i = 0;
    fg_tensor_meta meta;
    *handled = false;
    if (!is_outer(o) || !Py_IS_TYPE(found->real, &PyGetSetDescr_Type) ||
        found->real != fg_py_type_lookup(fg_py_torch_tensor_type(), name) ||
        !fg_torch_type_is_family(((PyDescrObject *)found->real)->d_type))
        return FG_FLOW_OK;
    while (i < sizeof members / sizeof *members && PyUnicode_CompareWithASCIIString(name, members[i].name) != 0)
        i++;
    if (i == sizeof members / sizeof *members)
        return FG_FLOW_OK;
    *handled = true;
    FG_DO(read_outer(t, o, name, &meta));
    PyObject *value = members[i].make(&meta);
    if (value == NULL && !PyErr_Occurred())
        return fg_break(t, FG_BREAK_UNSUPPORTED_ATTRIBUTE, "'%U' of %s, which has no name here", name, o->type->tp_name);
    return give(t, value, out);
}

/* size(), stride() and with a dimension; dim() and its like. */
static fg_flow answer(fg_trace *t, PyObject *name, const fg_tensor_meta *meta, fg_value **args, int32_t n, fg_value **out)
{
    const bool is_size = PyUnicode_CompareWithASCIIString(name, "size") == 0;
    if (is_size || PyUnicode_CompareWithASCIIString(name, "stride") == 0) {
        const int64_t *numbers = is_size ? meta->sizes : meta->strides;
        int64_t at;
        if (n == 0) {
            PyObject *all = is_size ? size_new(meta) : ints(numbers, meta->ndim);
            if (all == NULL && !PyErr_Occurred())
                return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "'%U' with another torch.Size", name);
            return give(t, all, out);
        }
        FG_DO(fg_look(t, &args[0]));
        if (n != 1 || args[0]->type != &PyLong_Type)
            return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "'%U' of what is no dimension", name);
        FG_DO(fg_index_value(t, args[0], &at));
        if (at < -meta->ndim || at >= meta->ndim)
            return fg_break(t, FG_BREAK_RAISES, "'%U' of dimension %lld of %d", name, (long long)at, (int)meta->ndim);
        return give(t, PyLong_FromLongLong(numbers[at < 0 ? at + meta->ndim : at]), out);
    }
    if (n != 0)
        return fg_break(t, FG_BREAK_RAISES, "%U() takes no arguments", name);
    if (PyUnicode_CompareWithASCIIString(name, "dim") == 0 || PyUnicode_CompareWithASCIIString(name, "ndimension") == 0)
        return give(t, PyLong_FromLong(meta->ndim), out);
    int64_t count = 1;
    for (int32_t i = 0; i < meta->ndim; i++) {
        if (__builtin_mul_overflow(count, meta->sizes[i], &count))
            return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "'%U' of more elements than a machine's integer has", name);
    }
    return give(t, PyLong_FromLongLong(count), out);
}

fg_flow fg_outer_method(fg_trace *t, fg_value *o, const PyObject *descr, PyObject *name, fg_value **args, int32_t n, fg_value **out,
                        bool *handled)
{
    static const char *const names[] = {"size", "stride", "dim", "ndimension", "numel", "nelement"};
    size_t i = 0;
    fg_tensor_meta meta;
    *handled = false;
    if (!is_outer(o) || !Py_IS_TYPE(descr, &PyMethodDescr_Type) || descr != fg_py_type_lookup(fg_py_torch_tensor_type(), name) ||
        !fg_torch_type_is_family(((const PyDescrObject *)descr)->d_type))
        return FG_FLOW_OK;
    while (i < sizeof names / sizeof *names && PyUnicode_CompareWithASCIIString(name, names[i]) != 0)
        i++;
    if (i == sizeof names / sizeof *names)
        return FG_FLOW_OK;
    *handled = true;
    FG_DO(read_outer(t, o, name, &meta));
    return answer(t, name, &meta, args, n, out);
}

/* torch.Tensor's __len__ is Python code, which asks the tensor for dim() and shape, whatever these are to its class. */
fg_flow fg_outer_len(fg_trace *t, fg_value *o, int64_t *len, bool *handled)
{
    static PyObject *dim, *shape;
    PyTypeObject *tensor = fg_py_torch_tensor_type();
    fg_value *type, *found, *method, *sizes;
    *handled = false;
    if (!is_outer(o))
        return FG_FLOW_OK;
    if ((dim == NULL && (dim = PyUnicode_InternFromString("dim")) == NULL) ||
        (shape == NULL && (shape = PyUnicode_InternFromString("shape")) == NULL))
        return FG_FLOW_ERROR;
    FG_DO(fg_object_type(t, o, &type));
    FG_DO(fg_type_lookup(t, type, o->type, fg_names.s_len, &found));
    if (found == NULL || found->real != fg_py_type_lookup(tensor, fg_names.s_len))
        return FG_FLOW_OK;
    FG_DO(fg_look(t, &found));
    if (!is_torch_function(found))
        return FG_FLOW_OK;
    *handled = true;
    FG_DO(pin_code(t, found));
    FG_DO(fg_attr_lookup(t, o, dim, &method));
    FG_DO(fg_attr_lookup(t, o, shape, &sizes));
    if (method == NULL || method->kind != FG_V_METHOD || method->b != o || method->a->kind != FG_V_CONST ||
        method->a->real != fg_py_type_lookup(tensor, dim) || sizes == NULL || sizes->kind != FG_V_CONST ||
        !fg_py_is_torch_size(Py_TYPE(sizes->real)))
        return fg_break(t, FG_BREAK_USER_CODE_IN_OPERATOR, "len() of a %s, which has its own shape or dim()", o->type->tp_name);
    if (PyTuple_GET_SIZE(sizes->real) == 0)
        return fg_break(t, FG_BREAK_RAISES, "len() of a 0-d tensor");
    FG_DO(pin_function(t, o));
    *len = PyLong_AsLongLong(PyTuple_GET_ITEM(sizes->real, 0));
    return FG_FLOW_OK;
}
