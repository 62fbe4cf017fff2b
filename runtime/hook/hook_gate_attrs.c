/* What a gate looks like from outside: the function it stands for. A name is the gate's own if the table of methods and attributes below has it;
 * every other one is the function's, live in both directions. __class__ is the gate's, so that isinstance tells the truth; the predicates of `inspect`
 * go by duck type and by __wrapped__.
 */
#include "runtime/hook/hook_gate.h"

static PyObject *func_of(PyObject *self)
{
    return ((fg_gate *)self)->func;
}

static FG_OWNED PyObject *reducer;

void fg_gate_reducer_set(PyObject *callable)
{
    Py_XSETREF(reducer, callable == Py_None ? NULL : Py_XNewRef(callable));
}

/* Names that `object` and the type's own dict would answer although they are the function's. */
static int is_functions_own(PyObject *name)
{
    return PyUnicode_CompareWithASCIIString(name, "__doc__") == 0 || PyUnicode_CompareWithASCIIString(name, "__module__") == 0;
}

PyObject *fg_gate_getattro(PyObject *self, PyObject *name)
{
    if (PyUnicode_Check(name) && !is_functions_own(name)) {
        /* What the type has (methods, __wrapped__, object's protocol); the gate itself has no dict. */
        PyObject *value = PyObject_GenericGetAttr(self, name);
        if (value != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError))
            return value;
        PyErr_Clear();
    }
    return PyObject_GetAttr(func_of(self), name);
}

int fg_gate_setattro(PyObject *self, PyObject *name, PyObject *value)
{
    /* functools.update_wrapper(gate, function) says again what __wrapped__ says already; on the function it would be a cycle. */
    if (value == func_of(self) && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0)
        return 0;
    return PyObject_SetAttr(func_of(self), name, value);
}

PyObject *fg_gate_repr(PyObject *self)
{
    PyFunctionObject *func = (PyFunctionObject *)func_of(self);
    return PyUnicode_FromFormat("<framegate gate of %U at %p>", func->func_qualname, self);
}

static PyObject *wrapped_get(PyObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(func_of(self));
}

static PyObject *self_get(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    return Py_NewRef(self);
}

static PyObject *gate_dir(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *names = PyObject_Dir(func_of(self));
    if (names == NULL)
        return NULL;
    PyObject *own = PyUnicode_InternFromString("__wrapped__");
    int there = own == NULL ? -1 : PySequence_Contains(names, own);
    if (there < 0 || (there == 0 && PyList_Append(names, own) < 0))
        Py_CLEAR(names);
    Py_XDECREF(own);
    return names;
}

/* The object that module and qualified name lead to, or NULL without an exception. */
static PyObject *find_by_name(PyObject *module_name, PyObject *qualname)
{
    PyObject *found = NULL, *parts = NULL, *dot = PyUnicode_FromString(".");
    if (dot == NULL || !PyUnicode_Check(module_name) || !PyUnicode_Check(qualname) || (parts = PyUnicode_Split(qualname, dot, -1)) == NULL)
        goto done;
    found = PyImport_GetModule(module_name);
    for (Py_ssize_t i = 0; found != NULL && i < PyList_GET_SIZE(parts); i++)
        Py_SETREF(found, PyObject_GetAttr(found, PyList_GET_ITEM(parts, i)));
done:
    PyErr_Clear();
    Py_XDECREF(parts);
    Py_XDECREF(dot);
    return found;
}

static PyObject *gate_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyFunctionObject *func = (PyFunctionObject *)func_of(self);
    PyObject *module_name = PyObject_GetAttrString((PyObject *)func, "__module__");
    if (module_name == NULL)
        return NULL;
    PyObject *named = find_by_name(module_name, func->func_qualname);
    Py_DECREF(module_name);
    int leads_back = named == self;
    Py_XDECREF(named);
    if (leads_back)
        return Py_NewRef(func->func_qualname);
    if (reducer != NULL)
        return PyObject_CallOneArg(reducer, self);
    PyErr_Format(PyExc_TypeError, "cannot pickle the gate of %U: its name does not lead back to it", func->func_qualname);
    return NULL;
}

/* A class statement makes these of functions, by their exact type; of a gate it is done when the class tells it its name. */
static PyObject *set_name(PyObject *self, PyObject *args)
{
    PyObject *owner, *name, *made = NULL;
    if (!PyArg_ParseTuple(args, "O!U:__set_name__", &PyType_Type, &owner, &name))
        return NULL;
    if (PyUnicode_CompareWithASCIIString(name, "__init_subclass__") == 0 ||
        PyUnicode_CompareWithASCIIString(name, "__class_getitem__") == 0)
        made = PyClassMethod_New(self);
    else if (PyUnicode_CompareWithASCIIString(name, "__new__") == 0)
        made = PyStaticMethod_New(self);
    else
        Py_RETURN_NONE;
    int failed = made == NULL || PyType_Type.tp_setattro(owner, name, made) < 0;
    Py_XDECREF(made);
    return failed ? NULL : Py_NewRef(Py_None);
}

PyMethodDef fg_gate_methods[] = {
    {"__set_name__", set_name, METH_VARARGS, "__new__, __init_subclass__ and __class_getitem__ become what they are for functions."},
    {"__copy__", self_get, METH_NOARGS, "Functions are not copied; neither is a gate."},
    {"__deepcopy__", self_get, METH_O, "Functions are not copied; neither is a gate."},
    {"__reduce__", gate_reduce, METH_NOARGS, "By name where the name leads back to this gate, else through the package."},
    {"__reduce_ex__", gate_reduce, METH_O, "By name where the name leads back to this gate, else through the package."},
    {"__dir__", gate_dir, METH_NOARGS, "The function's names and __wrapped__."},
    {0},
};

PyGetSetDef fg_gate_getset[] = {
    {"__wrapped__", wrapped_get, NULL, "The function that this gate stands for.", NULL},
    {0},
};
