#include "tracer/trace_python.h"

#include "runtime/cpython/dict.h"
#include "runtime/hook/hook_rules.h"
#include <string.h>
#include <structmember.h>

fg_py_names fg_names;

static fg_status descriptor(PyObject **out, PyTypeObject *type, const char *name)
{
    PyObject *found = PyDict_GetItemString(fg_type_dict(type), name);
    if (found == NULL)
        return FG_ERR_BUG;
    *out = Py_NewRef(found);
    return FG_OK;
}

static PyTypeObject *numpy_type(PyObject *numpy, const char *name)
{
    return (PyTypeObject *)PyObject_GetAttrString(numpy, name);
}

fg_status fg_py_names_init(void)
{
    fg_status st;
    PyObject *numpy = NULL;
#define FG_NAME(ID, TEXT)                                         \
    if ((fg_names.ID = PyUnicode_InternFromString(TEXT)) == NULL) \
        return FG_ERR_PYTHON;
#include "tracer/trace_names.def"
#undef FG_NAME
    FG_TRY(descriptor(&fg_names.object_setattr, &PyBaseObject_Type, "__setattr__"));
    FG_TRY(descriptor(&fg_names.object_getattribute, &PyBaseObject_Type, "__getattribute__"));
    FG_TRY(descriptor(&fg_names.object_init, &PyBaseObject_Type, "__init__"));
    FG_TRY(descriptor(&fg_names.object_new, &PyBaseObject_Type, "__new__"));
    FG_TRY(descriptor(&fg_names.object_class, &PyBaseObject_Type, "__class__"));
    st = FG_ERR_PYTHON;
    if ((numpy = PyImport_ImportModule("numpy")) == NULL)
        return st;
    fg_names.numpy_generic = numpy_type(numpy, "number");
    fg_names.numpy_dtype = numpy_type(numpy, "dtype");
    fg_names.numpy_ndarray = numpy_type(numpy, "ndarray");
    fg_names.numpy_ufunc = numpy_type(numpy, "ufunc");
    fg_names.numpy_finfo = numpy_type(numpy, "finfo");
    fg_names.numpy_iinfo = numpy_type(numpy, "iinfo");
    fg_names.numpy_bool = numpy_type(numpy, "bool_");
    PyObject *dot = PyObject_GetAttrString(numpy, "dot"); /* of a type of its own since NumPy 1.25; a function before */
    fg_names.numpy_dispatcher = dot != NULL ? (PyTypeObject *)Py_NewRef(Py_TYPE(dot)) : NULL;
    Py_XDECREF(dot);
    if (fg_names.numpy_dispatcher && fg_names.numpy_generic && fg_names.numpy_dtype && fg_names.numpy_ndarray && fg_names.numpy_ufunc &&
        fg_names.numpy_bool)
        st = FG_OK;
fail:
    Py_XDECREF(numpy);
    return st;
}

bool fg_py_is_numpy_scalar(PyTypeObject *type)
{
    /* only NumPy's own static types: a subclass may do anything */
    return !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) && (type == fg_names.numpy_bool || PyType_IsSubtype(type, fg_names.numpy_generic));
}

static bool is_named(PyTypeObject *type, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(type->tp_name, names[i]) == 0)
            return true;
    return false;
}

bool fg_py_is_library_constant(PyTypeObject *type)
{
    static const char *const torch_names[] = {"torch.dtype", "torch.device", "torch.layout", "torch.memory_format", "torch.qscheme"};
    if (type == fg_names.numpy_ufunc || (PyType_IsSubtype(type, fg_names.numpy_dtype)))
        return true;
    return !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) && is_named(type, torch_names, sizeof torch_names / sizeof *torch_names);
}

bool fg_py_is_limits(PyTypeObject *type)
{
    static const char *const names[] = {"torch.finfo", "torch.iinfo"};
    return (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) && is_named(type, names, sizeof names / sizeof *names)) || fg_py_is_numpy_limits(type);
}

bool fg_py_is_numpy_limits(PyTypeObject *type)
{
    return type == fg_names.numpy_finfo || type == fg_names.numpy_iinfo;
}

bool fg_py_is_function_record(PyObject *self)
{
    static const char text[] = "pybind11_builtins.pybind11_detail_function_record_";
    return PyCapsule_CheckExact(self) || strncmp(Py_TYPE(self)->tp_name, text, sizeof text - 1) == 0;
}

bool fg_py_is_torch_size(PyTypeObject *type)
{
    return PyType_IsSubtype(type, &PyTuple_Type) && !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) && strcmp(type->tp_name, "torch.Size") == 0;
}

/* torch.return_types.*: a tuple with names. */
bool fg_py_is_torch_result(PyTypeObject *type)
{
    return !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) && PyType_IsSubtype(type, &PyTuple_Type) &&
           strncmp(type->tp_name, "torch.return_types.", 19) == 0;
}

Py_ssize_t fg_py_result_field(PyTypeObject *type, PyObject *name)
{
    PyObject *descr = fg_py_type_lookup(type, name);
    if (descr == NULL || Py_TYPE(descr) != &PyMemberDescr_Type)
        return -1;
    return (((PyMemberDescrObject *)descr)->d_member->offset - (Py_ssize_t)offsetof(PyTupleObject, ob_item)) /
           (Py_ssize_t)sizeof(PyObject *);
}

/* --- torch, once it is loaded */

static struct {
    PyObject *module_class, *module_file, *tensor_class, *fake_class;
    bool complete;
} torch_cache;

static PyObject *loaded(const char *module, const char *name)
{
    PyObject *modules = PySys_GetObject("modules");
    PyObject *found = modules ? PyDict_GetItemString(modules, module) : NULL;
    if (found == NULL)
        return NULL;
    if (name == NULL)
        return Py_NewRef(found);
    PyObject *dict = PyModule_Check(found) ? PyModule_GetDict(found) : NULL, *object = dict ? PyDict_GetItemString(dict, name) : NULL;
    return Py_XNewRef(object);
}

static void torch_look(void)
{
    static Py_ssize_t seen_modules;
    if (torch_cache.complete)
        return;
    PyObject *modules = PySys_GetObject("modules");
    if (modules == NULL || PyObject_Size(modules) == seen_modules)
        return;
    seen_modules = PyObject_Size(modules);
    if (torch_cache.module_class == NULL)
        torch_cache.module_class = loaded("torch.nn.modules.module", "Module");
    if (torch_cache.module_file == NULL)
        torch_cache.module_file = loaded("torch.nn.modules.module", NULL);
    if (torch_cache.tensor_class == NULL)
        torch_cache.tensor_class = loaded("torch", "Tensor");
    torch_cache.complete = torch_cache.module_class && torch_cache.module_file && torch_cache.tensor_class;
}

PyObject *fg_py_torch_module_class(void)
{
    torch_look();
    return torch_cache.module_class && PyType_Check(torch_cache.module_class) ? torch_cache.module_class : NULL;
}

PyObject *fg_py_torch_module_file(void)
{
    torch_look();
    return torch_cache.module_file;
}

PyTypeObject *fg_py_torch_tensor_type(void)
{
    torch_look();
    return torch_cache.tensor_class && PyType_Check(torch_cache.tensor_class) ? (PyTypeObject *)torch_cache.tensor_class : NULL;
}

bool fg_py_is_torch_type(PyTypeObject *type)
{
    PyTypeObject *tensor = fg_py_torch_tensor_type();
    return tensor != NULL && PyType_IsSubtype(type, tensor);
}

bool fg_py_is_fake(PyObject *object)
{
    return strcmp(Py_TYPE(object)->tp_name, "FakeTensor") == 0;
}

/* --- callables */

PyObject *fg_py_rule(PyObject *rules, PyObject *callable)
{
    if (PyFunction_Check(callable))
        return fg_rules_of_function(rules, callable);
    /* the other keys are identity-hashed callables; a hash or == of a user's class is never called for a look-up of ours */
    if (!(PyCFunction_Check(callable) || Py_TYPE(callable) == &PyType_Type || Py_TYPE(callable) == fg_names.numpy_ufunc ||
          Py_TYPE(callable) == &PyMethodDescr_Type))
        return NULL;
    PyObject *rule = PyDict_GetItemWithError(rules, callable);
    if (rule == NULL)
        PyErr_Clear();
    return rule;
}

PyObject *fg_py_callable_name(PyObject *callable)
{
    if (PyFunction_Check(callable) || PyCFunction_Check(callable) || Py_TYPE(callable) == &PyMethodDescr_Type ||
        Py_TYPE(callable) == &PyWrapperDescr_Type || Py_TYPE(callable) == fg_names.numpy_ufunc) {
        PyObject *name = PyObject_GetAttr(callable, fg_names.s_name);
        if (name != NULL && PyUnicode_Check(name))
            return name;
        Py_XDECREF(name);
        PyErr_Clear();
    }
    return PyUnicode_FromString(PyType_Check(callable) ? ((PyTypeObject *)callable)->tp_name : Py_TYPE(callable)->tp_name);
}

bool fg_py_is_c_code(PyObject *callable)
{
    PyTypeObject *type = Py_TYPE(callable);
    if (PyType_Check(callable))
        return !(((PyTypeObject *)callable)->tp_flags & Py_TPFLAGS_HEAPTYPE);
    if (PyCFunction_Check(callable) || type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type || type == fg_names.numpy_ufunc)
        return true;
    if (type != fg_names.numpy_dispatcher)
        return false;
    PyObject *inner = PyObject_GetAttr(callable, fg_names.s_implementation);
    const bool is_c = inner != NULL && PyCFunction_Check(inner);
    Py_XDECREF(inner);
    PyErr_Clear();
    return is_c;
}

bool fg_py_has_side_effects(PyObject *callable)
{
    static const char *const names[] = {"print", "input", "open", "exec", "eval", "__import__", "breakpoint", "setattr", "delattr"};
    if (!PyCFunction_Check(callable))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(((PyCFunctionObject *)callable)->m_ml->ml_name, names[i]) == 0)
            return true;
    return false;
}

/* 1: math, 2: operator; by the module object that the C function belongs to. */
int fg_py_pure_module(PyObject *callable)
{
    PyObject *self = PyCFunction_GET_SELF(callable);
    if (self == NULL || !PyModule_Check(self))
        return 0;
    const char *name = PyModule_GetName(self);
    if (name == NULL) {
        PyErr_Clear();
        return 0;
    }
    const char *method = ((PyCFunctionObject *)callable)->m_ml->ml_name;
    if (strcmp(name, "math") == 0)
        return strcmp(method, "fsum") != 0 && strcmp(method, "prod") != 0 && strcmp(method, "dist") != 0 &&
               strcmp(method, "sumprod") != 0 && strcmp(method, "factorial") != 0 && strcmp(method, "comb") != 0 &&
               strcmp(method, "perm") != 0;
    return strcmp(name, "_operator") == 0 ? 2 : 0;
}

bool fg_py_is_index(PyObject *callable)
{
    return PyCFunction_CheckExact(callable) && fg_py_pure_module(callable) == 2 &&
           strcmp(((PyCFunctionObject *)callable)->m_ml->ml_name, "index") == 0;
}

bool fg_py_is_plain_exception(PyTypeObject *type)
{
    /* made by C alone: a Python __init__ or __new__ anywhere in its bases fills these with slot functions of heap types */
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return true;
    PyTypeObject *base = type;
    while (base->tp_flags & Py_TPFLAGS_HEAPTYPE)
        base = base->tp_base;
    return type->tp_init == base->tp_init && type->tp_new == base->tp_new && type->tp_finalize == base->tp_finalize;
}

/* Making one can neither fail nor give an instance of another class: no keyword, and no constructor that looks at its arguments. */
bool fg_py_is_simple_exception(PyTypeObject *type, PyObject *kwnames)
{
    PyTypeObject *base = (PyTypeObject *)PyExc_BaseException, *stop = (PyTypeObject *)PyExc_StopIteration,
                 *exit = (PyTypeObject *)PyExc_SystemExit, *name = (PyTypeObject *)PyExc_NameError,
                 *attr = (PyTypeObject *)PyExc_AttributeError, *import = (PyTypeObject *)PyExc_ImportError;
    initproc init = type->tp_init;
    return kwnames == NULL && type->tp_new == base->tp_new &&
           (init == base->tp_init || init == stop->tp_init || init == exit->tp_init || init == name->tp_init || init == attr->tp_init ||
            init == import->tp_init);
}

/* Code objects of the package's own polyfills: no traceback entry, no user line. */
bool fg_py_is_polyfill(PyCodeObject *code)
{
    Py_ssize_t n;
    const char *file = PyUnicode_AsUTF8AndSize(code->co_filename, &n);
    if (file == NULL) {
        PyErr_Clear();
        return false;
    }
    return strstr(file, "framegate/polyfills/") != NULL;
}

static const char *file_of(PyCodeObject *code)
{
    const char *file = PyUnicode_AsUTF8(code->co_filename);
    if (file == NULL)
        PyErr_Clear();
    return file != NULL ? file : "";
}

static bool is_installed(const char *file)
{
    return strstr(file, "/site-packages/") != NULL || strstr(file, "/dist-packages/") != NULL;
}

/* Where this interpreter says that its library lies; installed packages may lie in there too. */
static bool is_of_interpreter(const char *file)
{
    static char stdlib[512];
    static Py_ssize_t n_stdlib = -1;
    if (n_stdlib < 0) {
        PyObject *dir = PySys_GetObject("_stdlib_dir");
        const char *text = dir != NULL && PyUnicode_Check(dir) ? PyUnicode_AsUTF8AndSize(dir, &n_stdlib) : NULL;
        if (text == NULL || n_stdlib + 1 >= (Py_ssize_t)sizeof stdlib) {
            PyErr_Clear();
            n_stdlib = 0;
        } else if (n_stdlib > 0) {
            memcpy(stdlib, text, (size_t)n_stdlib);
            stdlib[n_stdlib++] = '/';
        }
    }
    return (n_stdlib > 0 && strncmp(file, stdlib, (size_t)n_stdlib) == 0) || strncmp(file, "<frozen ", 8) == 0;
}

/* Code of the standard library or of an installed package: not what a user of compile() wrote. */
bool fg_py_is_library(PyCodeObject *code)
{
    const char *file = file_of(code);
    return is_installed(file) || is_of_interpreter(file);
}

bool fg_py_leads_to_users(PyCodeObject *code)
{
    static const char *const wrappers[] = {"contextlib.py", "functools.py", "collections/__init__.py", "_collections_abc.py",
                                           "_collections_abc>"};
    const char *file = file_of(code);
    const size_t n = strlen(file);
    if (is_installed(file) || !is_of_interpreter(file))
        return true;
    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++) {
        const size_t k = strlen(wrappers[i]);
        if (n >= k && strcmp(file + n - k, wrappers[i]) == 0)
            return true;
    }
    return false;
}

int fg_py_range_parts(fg_trace *t, PyObject *range, PyObject *parts[3])
{
    (void)t;
    for (int i = 0; i < 3; i++)
        parts[i] = fg_range_part(range, i);
    return 0;
}

PyObject *fg_py_type_lookup(PyTypeObject *type, PyObject *name)
{
    PyObject *found;
    return fg_type_look(type, name, &found) == FG_FIND_FOUND ? found : NULL;
}

static void release_icode(PyObject *capsule)
{
    fg_icode_release(PyCapsule_GetPointer(capsule, NULL));
}

PyObject *fg_py_icode_capsule(fg_icode *icode)
{
    PyObject *capsule = PyCapsule_New(icode, NULL, release_icode);
    if (capsule == NULL)
        fg_icode_release(icode);
    return capsule;
}
