/* Purpose:   framegate._core, the extension module: runs each layer's init function over one module object.
 * Model:     multi-phase initialisation with a module that exists once per process, since the layers' tables (operations, adaptors, caches,
 *            static types) do. A second import, after the name was deleted from sys.modules, gives the same object.
 * Invariants: the layers' init functions run once, lowest first; after a failed one the module cannot be imported again in this process.
 * Threading: the import lock and the GIL are held.
 * Ownership: the_module is a reference kept until the process ends: native code of the layers may outlive sys.modules.
 */
#include "runtime/base/status.h"
#include <Python.h>

#ifdef Py_GIL_DISABLED
#error "framegate needs the GIL: free-threaded builds of CPython are not supported"
#endif

#ifdef FG_PARTIAL_BUILD
#define FG_MODULE_INIT(function) fg_status function(PyObject *module) __attribute__((weak));
#else
#define FG_MODULE_INIT(function) fg_status function(PyObject *module);
#endif
#include "python_bindings/ext/module_inits.def"
#undef FG_MODULE_INIT

typedef struct fg_module_init {
    const char *name;
    fg_status (*run)(PyObject *module);
} fg_module_init;

static const fg_module_init module_inits[] = {
#define FG_MODULE_INIT(function) {#function, function},
#include "python_bindings/ext/module_inits.def"
#undef FG_MODULE_INIT
};

static FG_OWNED PyObject *the_module;
static PyInterpreterState *the_interpreter;
static enum { MODULE_NEW, MODULE_READY, MODULE_FAILED } module_state;

/* An exception for a status that has none yet. */
static void set_error(fg_status st, const char *where)
{
    if (st == FG_ERR_PYTHON && PyErr_Occurred())
        return;
    if (st == FG_ERR_NOMEM)
        PyErr_NoMemory();
    else
        PyErr_Format(PyExc_ImportError, "framegate._core: %s failed: %s", where, fg_status_text(st));
}

/* The tables of runtime/cpython/ are those of one minor version; Py_Version is the one that runs. */
static int check_version(void)
{
    unsigned long major = Py_Version >> 24, minor = (Py_Version >> 16) & 0xff;
    if (major == PY_MAJOR_VERSION && minor == PY_MINOR_VERSION)
        return 0;
    PyErr_Format(PyExc_ImportError,
                 "framegate._core was built for CPython %d.%d and cannot run on %lu.%lu: install framegate again with this interpreter",
                 PY_MAJOR_VERSION, PY_MINOR_VERSION, major, minor);
    return -1;
}

static FG_NEW PyObject *module_create(PyObject *spec, PyModuleDef *def)
{
    (void)def;
    if (check_version() < 0)
        return NULL;
    if (the_module) {
        if (the_interpreter != PyInterpreterState_Get()) {
            PyErr_SetString(PyExc_ImportError, "framegate._core is already in use by another interpreter of this process");
            return NULL;
        }
        return Py_NewRef(the_module);
    }
    PyObject *name = PyObject_GetAttrString(spec, "name");
    if (!name)
        return NULL;
    PyObject *module = PyModule_NewObject(name);
    Py_DECREF(name);
    if (!module)
        return NULL;
    the_module = Py_NewRef(module);
    the_interpreter = PyInterpreterState_Get();
    return module;
}

static int module_exec(PyObject *module)
{
    if (module_state == MODULE_READY)
        return 0;
    if (module_state == MODULE_FAILED) {
        PyErr_SetString(PyExc_ImportError, "framegate._core: an earlier import in this process failed; see its error");
        return -1;
    }
    module_state = MODULE_FAILED;
    for (size_t i = 0; i < sizeof module_inits / sizeof *module_inits; i++) {
        if (!module_inits[i].run)
            continue;
        fg_status st = module_inits[i].run(module);
        if (st != FG_OK) {
            set_error(st, module_inits[i].name);
            return -1;
        }
    }
    if (PyModule_AddStringConstant(module, "__version__", FG_VERSION_STRING) < 0)
        return -1;
    module_state = MODULE_READY;
    return 0;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_create, module_create},
    {Py_mod_exec, module_exec},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "framegate._core",
    .m_doc = "The C part of framegate: caches, guards, tracer and code generation. Use the package framegate instead.",
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&module_def);
}
