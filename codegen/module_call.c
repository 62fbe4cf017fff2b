/* The state of the slot is one capsule-free object kept in the class's dict under STATE_NAME, so that it lives and dies with the class. */
#include "codegen/module_call.h"
#include "runtime/base/alloc.h"

#include <stddef.h>
#include <structmember.h>
#include <string.h>

enum { N_OWN = 4, N_GLOBAL = 4, FEW_ARGS = 12 };

static const char *const own_texts[N_OWN] = {"_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"};
static const char *const global_texts[N_GLOBAL] = {"_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks",
                                                   "_global_backward_pre_hooks"};
static PyObject *own_names[N_OWN], *global_names[N_GLOBAL], *s_forward, *s_compiled, *s_state;

typedef struct call_state {
    PyObject_HEAD Py_ssize_t original, gate; /* offsets of the two slots */
    FG_OWNED PyObject *plain_call;           /* the __call__ for calls that hooks change; NULL: there are no hooks to look for */
    FG_OWNED PyObject *global_hooks;         /* dict of the module that has the global hook tables */
} call_state;

static void state_dealloc(PyObject *object)
{
    call_state *self = (call_state *)object;
    Py_CLEAR(self->plain_call);
    Py_CLEAR(self->global_hooks);
    PyObject_Free(self);
}

static PyTypeObject call_state_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegate._core.ModuleCallState",
    .tp_basicsize = sizeof(call_state),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = state_dealloc,
};

/* 1: some table of these names is there and not empty, or is not a dict. The names are interned str, so no lookup runs Python. */
static int any_full(PyObject *dict, PyObject *const *names, int n)
{
    for (int i = 0; i < n; i++) {
        PyObject *table = PyDict_GetItemWithError(dict, names[i]);
        if (table == NULL || !PyDict_Check(table) || PyDict_GET_SIZE(table) != 0)
            return 1;
    }
    return 0;
}

static int hooks_apply(const call_state *state, PyObject *self)
{
    if (state->plain_call == NULL)
        return 0;
    PyObject *dict = PyObject_GenericGetDict(self, NULL); /* shared with the original and made already */
    if (dict == NULL) {
        PyErr_Clear();
        return 1;
    }
    PyObject *compiled = PyDict_GetItemWithError(dict, s_compiled);
    int apply = any_full(dict, own_names, N_OWN) || any_full(state->global_hooks, global_names, N_GLOBAL) ||
                PyDict_GetItemWithError(dict, s_forward) != NULL || (compiled != NULL && compiled != Py_None);
    Py_DECREF(dict);
    PyErr_Clear();
    return apply;
}

static FG_BORROWED call_state *state_of(PyTypeObject *type)
{
    PyObject *state = _PyType_Lookup(type, s_state); /* a user's subclass of the made class has it in a base */
    return state != NULL && Py_IS_TYPE(state, &call_state_type) ? (call_state *)state : NULL;
}

static PyObject *call_with_self(PyObject *callable, PyObject *first, PyObject *args, PyObject *kwargs)
{
    Py_ssize_t n = PyTuple_GET_SIZE(args), n_keywords = kwargs == NULL ? 0 : PyDict_GET_SIZE(kwargs), position = 0;
    PyObject *few[FEW_ARGS + 2], **stack = few, *kwnames = NULL, *key, *value, *result = NULL;
    if (n + n_keywords > FEW_ARGS && (stack = fg_malloc((size_t)(n + n_keywords + 2) * sizeof *stack)) == NULL)
        return PyErr_NoMemory();
    stack[0] = NULL; /* room for the callee */
    stack[1] = first;
    if (n > 0)
        memcpy(stack + 2, &PyTuple_GET_ITEM(args, 0), (size_t)n * sizeof *stack);
    if (n_keywords > 0 && (kwnames = PyTuple_New(n_keywords)) == NULL)
        goto done;
    for (Py_ssize_t i = 0; i < n_keywords && PyDict_Next(kwargs, &position, &key, &value); i++) {
        PyTuple_SET_ITEM(kwnames, i, Py_NewRef(key));
        stack[2 + n + i] = value; /* args and kwargs are this call's own and hold the values */
    }
    result = PyObject_Vectorcall(callable, stack + 1, (size_t)(n + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, kwnames);
done:
    Py_XDECREF(kwnames);
    if (stack != few)
        fg_free(stack);
    return result;
}

static PyObject *module_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    call_state *state = state_of(Py_TYPE(self));
    if (state == NULL) {
        PyErr_Format(PyExc_TypeError, "a compiled '%.200s' has lost its call state", Py_TYPE(self)->tp_name);
        return NULL;
    }
    Py_INCREF(state);
    PyObject *original = *(PyObject **)((char *)self + state->original), *gate = *(PyObject **)((char *)self + state->gate), *result;
    if (original == NULL || gate == NULL) {
        PyErr_Format(PyExc_TypeError, "this compiled '%.200s' was not made by framegate.compile", Py_TYPE(self)->tp_name);
        result = NULL;
    } else {
        Py_INCREF(original);
        Py_INCREF(gate);
        result =
            hooks_apply(state, self) ? call_with_self(state->plain_call, self, args, kwargs) : call_with_self(gate, original, args, kwargs);
        Py_DECREF(original);
        Py_DECREF(gate);
    }
    Py_DECREF(state);
    return result;
}

/* Offset of an object slot that the class itself defines; -1 with an exception. */
static Py_ssize_t slot_offset(PyObject *class, const char *name)
{
    PyObject *descriptor = PyObject_GetAttrString(class, name);
    if (descriptor == NULL)
        return -1;
    Py_ssize_t offset = -1;
    if (Py_IS_TYPE(descriptor, &PyMemberDescr_Type) && ((PyMemberDescrObject *)descriptor)->d_member->type == T_OBJECT_EX &&
        PyDescr_TYPE(descriptor) == (PyTypeObject *)class)
        offset = ((PyMemberDescrObject *)descriptor)->d_member->offset;
    else
        PyErr_Format(PyExc_TypeError, "%s is not a slot of the class", name);
    Py_DECREF(descriptor);
    return offset;
}

static PyObject *module_call_arm(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *class, *plain_call, *global_hooks;
    if (!PyArg_ParseTuple(args, "O!OO:module_call_arm", &PyType_Type, &class, &plain_call, &global_hooks))
        return NULL;
    if (plain_call != Py_None && !PyDict_Check(global_hooks)) {
        PyErr_SetString(PyExc_TypeError, "module_call_arm takes the dict of the module that has the global hooks");
        return NULL;
    }
    Py_ssize_t original = slot_offset(class, "_framegate_original"), gate = original < 0 ? -1 : slot_offset(class, "_framegate_gate");
    if (gate < 0)
        return NULL;
    call_state *state = PyObject_New(call_state, &call_state_type);
    if (state == NULL)
        return NULL;
    state->original = original;
    state->gate = gate;
    state->plain_call = plain_call == Py_None ? NULL : Py_NewRef(plain_call);
    state->global_hooks = plain_call == Py_None ? NULL : Py_NewRef(global_hooks);
    int failed = PyType_Type.tp_setattro(class, s_state, (PyObject *)state) < 0;
    Py_DECREF(state);
    if (failed)
        return NULL;
    /* Last, since setting an attribute of a class may fill its slots anew. The class's own __call__ attribute stays for who asks for it. */
    ((PyTypeObject *)class)->tp_call = module_call;
    PyType_Modified((PyTypeObject *)class);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"module_call_arm", module_call_arm, METH_VARARGS,
     "module_call_arm(class, plain_call, global_hooks, /)\n--\n\nGive a made class the C call slot. plain_call None: there are no hooks to "
     "look for."},
    {NULL, NULL, 0, NULL},
};

static int intern_all(const char *const *texts, PyObject **names, int n)
{
    for (int i = 0; i < n; i++)
        if (names[i] == NULL && (names[i] = PyUnicode_InternFromString(texts[i])) == NULL)
            return -1;
    return 0;
}

fg_status fg_module_call_init(PyObject *module)
{
    if (intern_all(own_texts, own_names, N_OWN) < 0 || intern_all(global_texts, global_names, N_GLOBAL) < 0 ||
        (s_forward = PyUnicode_InternFromString("forward")) == NULL ||
        (s_compiled = PyUnicode_InternFromString("_compiled_call_impl")) == NULL ||
        (s_state = PyUnicode_InternFromString("_framegate_call_state")) == NULL || PyType_Ready(&call_state_type) < 0 ||
        PyModule_AddFunctions(module, functions) < 0)
        return FG_ERR_PYTHON;
    return FG_OK;
}
