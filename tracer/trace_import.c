/* import in a function: of a module that is there already it is a look into the interpreter's table of modules, which becomes a fact like any other look into a
 * dict. What is not there yet, or is just being imported, breaks, and so does an import statement whose __import__ was replaced.
 */
#include "runtime/cpython/frame.h"
#include "tracer/trace_python.h"

#include <string.h>

/* The dict that the interpreter began with as sys.modules: an import statement goes on with it whatever becomes of that name. */
static fg_flow loaded_table(fg_trace *t, fg_value **out)
{
    PyObject *modules = fg_interpreter_modules();
    if (modules == NULL || !PyDict_CheckExact(modules))
        return fg_break(t, FG_BREAK_UNSUPPORTED_INSTRUCTION, "import with a sys.modules that is no plain dict");
    if ((*out = fg_value_lazy(t, FG_ACC_CONST, FG_NODE_NONE, modules, 0, modules)) == NULL)
        return FG_FLOW_ERROR;
    return fg_look(t, out);
}

static fg_flow loaded(fg_trace *t, PyObject *name, fg_value **out)
{
    fg_value *table;
    FG_DO(loaded_table(t, &table));
    FG_DO(fg_dict_get(t, table, name, out));
    if (*out == NULL)
        return fg_break(t, FG_BREAK_UNSUPPORTED_INSTRUCTION, "import of %U, which is not imported yet", name);
    FG_DO(fg_look(t, out));
    if ((*out)->kind != FG_V_OBJECT || (*out)->type != &PyModule_Type || (*out)->node == FG_NODE_NONE)
        return fg_break(t, FG_BREAK_UNSUPPORTED_INSTRUCTION, "import of %U, which is no plain module", name);
    /* a module that is being imported by another thread is waited for */
    PyObject *spec = PyDict_GetItemString(PyModule_GetDict((*out)->real), "__spec__");
    if (spec != NULL && spec != Py_None) {
        PyObject *busy = strcmp(Py_TYPE(spec)->tp_name, "ModuleSpec") == 0 ? PyObject_GetAttrString(spec, "_initializing") : NULL;
        bool is_ready = busy == Py_False || (busy == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_AttributeError));
        Py_XDECREF(busy);
        PyErr_Clear();
        if (!is_ready)
            return fg_break(t, FG_BREAK_UNSUPPORTED_INSTRUCTION, "import of %U while it is being imported", name);
    }
    return FG_FLOW_OK;
}

/* builtins.__import__ as the interpreter made it: what an import statement then does is done without calling it. */
static bool is_interpreters(PyObject *import)
{
    PyObject *self = PyCFunction_Check(import) ? PyCFunction_GET_SELF(import) : NULL;
    return self != NULL && PyModule_Check(self) && PyModule_GetDef(self) != NULL &&
           strcmp(PyModule_GetDef(self)->m_name, "builtins") == 0 &&
           strcmp(((PyCFunctionObject *)import)->m_ml->ml_name, "__import__") == 0;
}

/* The whole name of what `from .name import` is about. */
static fg_flow absolute(fg_trace *t, fg_tframe *f, PyObject *name, long level, PyObject **out)
{
    fg_value *package;
    PyObject *key = fg_own(t, PyUnicode_InternFromString("__package__"));
    if (key == NULL)
        return FG_FLOW_ERROR;
    FG_DO(fg_dict_get(t, f->globals, key, &package));
    if (package == NULL)
        return fg_break(t, FG_BREAK_UNSUPPORTED_INSTRUCTION, "relative import without __package__");
    FG_DO(fg_look(t, &package));
    if (package->type != &PyUnicode_Type)
        return fg_break(t, FG_BREAK_UNSUPPORTED_INSTRUCTION, "relative import without __package__");
    FG_DO(fg_concrete(t, package));
    PyObject *spec = PyDict_GetItemString(f->globals->real, "__spec__");
    PyObject *parent = spec != NULL && spec != Py_None ? PyObject_GetAttrString(spec, "parent") : NULL;
    bool agrees =
        spec == NULL || spec == Py_None || (parent != NULL && PyUnicode_Check(parent) && PyUnicode_Compare(parent, package->real) == 0);
    Py_XDECREF(parent);
    PyErr_Clear();
    if (!agrees) /* which warns */
        return fg_break(t, FG_BREAK_UNSUPPORTED_INSTRUCTION, "relative import with another __spec__");
    Py_ssize_t end = PyUnicode_GET_LENGTH(package->real);
    for (long i = 1; i < level && end > 0; i++)
        end = PyUnicode_FindChar(package->real, '.', 0, end, -1);
    if (end <= 0)
        return fg_break(t, FG_BREAK_RAISES, "relative import beyond the package");
    PyObject *base = fg_own(t, PyUnicode_Substring(package->real, 0, end));
    *out = base == NULL || PyUnicode_GET_LENGTH(name) == 0 ? base : fg_own(t, PyUnicode_FromFormat("%U.%U", base, name));
    return *out ? FG_FLOW_OK : FG_FLOW_ERROR;
}

fg_flow fg_import(fg_trace *t, fg_tframe *f, PyObject *name, fg_value *level, fg_value *names, fg_value **out)
{
    fg_value *import;
    bool is_own = false;
    PyObject *key = fg_own(t, PyUnicode_InternFromString("__import__"));
    if (key == NULL)
        return FG_FLOW_ERROR;
    FG_DO(fg_look(t, &f->globals));
    FG_DO(fg_look(t, &f->builtins));
    FG_DO(fg_dict_get(t, f->builtins, key, &import));
    if (import != NULL)
        FG_DO(fg_look(t, &import));
    is_own = import != NULL && import->kind == FG_V_CONST && is_interpreters(import->real);
    if (!is_own || level->kind != FG_V_CONST || !PyLong_CheckExact(level->real) || names->kind != FG_V_CONST)
        return fg_break(t, FG_BREAK_UNSUPPORTED_INSTRUCTION, "import with another __import__");
    long up = PyLong_AsLong(level->real);
    if (up > 0)
        FG_DO(absolute(t, f, name, up, &name));
    FG_DO(loaded(t, name, out));
    if (names->real == Py_None || (PyTuple_CheckExact(names->real) && PyTuple_GET_SIZE(names->real) == 0)) {
        Py_ssize_t dot = PyUnicode_FindChar(name, '.', 0, PyUnicode_GET_LENGTH(name), 1);
        if (dot < 0)
            return FG_FLOW_OK;
        PyObject *first = fg_own(t, PyUnicode_Substring(name, 0, dot));
        return first ? loaded(t, first, out) : FG_FLOW_ERROR;
    }
    if (!PyTuple_CheckExact(names->real))
        return fg_break(t, FG_BREAK_UNSUPPORTED_INSTRUCTION, "import of %U", name);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names->real); i++) { /* what a package lacks would be imported */
        fg_value *found;
        FG_DO(fg_attr_load(t, *out, PyTuple_GET_ITEM(names->real, i), &found));
    }
    return FG_FLOW_OK;
}
