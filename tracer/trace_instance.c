/* isinstance and issubclass. A class decides by its MRO, or by a method of its metaclass: one that is Python code is traced, as any other special method.
 *
 * That of an abstract base class ends in two functions of C, which keep their answers: one that was given stays for good if it was yes, and until the next
 * registration if it was no. What they keep is read here, so that the answer is a constant under a fact about the count of registrations. Where nothing
 * is kept yet they are asked, which changes what they keep, as the call would: only if nothing that the trace has recorded could fail before, and if no code
 * of the user's would be run. Else this call runs as plain Python, and the next one finds an answer.
 */
#include "runtime/cpython/dict.h"
#include "tracer/trace_python.h"

#include <string.h>
#include <structmember.h>

fg_flow fg_runtime_type(fg_trace *t, fg_value *v, PyTypeObject **type)
{
    if (v->type != NULL) {
        *type = v->type;
        return FG_FLOW_OK;
    }
    if (v->kind == FG_V_TENSOR) {
        PyObject *standin;
        FG_DO(fg_tensor_standin(t, v, &standin));
        *type = fg_py_is_fake(standin) ? fg_py_torch_tensor_type() : Py_TYPE(standin);
        return FG_FLOW_OK;
    }
    if (v->kind == FG_V_METHOD) {
        *type = v->a->kind == FG_V_FUNC ? &PyMethod_Type : &PyCFunction_Type;
        return FG_FLOW_OK;
    }
    return fg_break(t, FG_BREAK_UNSUPPORTED_VALUE, "the type is only known at run time");
}

/* The class is asked by a method of its metaclass: *found, or NULL where the MRO alone decides. */
static fg_flow own_check(fg_trace *t, fg_value *cls, PyObject *name, fg_value **found)
{
    PyTypeObject *wanted = (PyTypeObject *)cls->real, *meta = Py_TYPE(wanted);
    *found = NULL;
    if (wanted == fg_py_torch_tensor_type() || (meta == &PyType_Type && !(wanted->tp_flags & Py_TPFLAGS_HEAPTYPE)))
        return FG_FLOW_OK;
    fg_value *of;
    FG_DO(fg_object_type(t, cls, &of));
    FG_DO(fg_type_lookup(t, of, meta, name, found)); /* a metaclass may grow one */
    if (*found == NULL)
        return FG_FLOW_OK;
    FG_DO(fg_look(t, found));
    if ((*found)->kind == FG_V_CONST && (*found)->real == fg_py_type_lookup(&PyType_Type, name))
        *found = NULL;
    else if ((*found)->kind != FG_V_FUNC)
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "isinstance with %s, whose metaclass decides", wanted->tp_name);
    return FG_FLOW_OK;
}

static fg_flow ask_metaclass(fg_trace *t, fg_value *check, fg_value *cls, fg_value *v, bool *yes)
{
    fg_value *args[2] = {cls, v}, *answer;
    FG_DO(fg_call_now(t, check, args, 2, NULL, &answer));
    return fg_truth(t, answer, yes);
}

static bool is_tuple(const fg_value *cls)
{
    return cls->kind == FG_V_TUPLE || (cls->kind == FG_V_CONST && PyTuple_CheckExact(cls->real));
}

/* Objects whose attribute __class__ need not be what the descriptor of object gives: proxies, classes with a __getattribute__. */
static bool reads_its_own_way(PyTypeObject *type)
{
    const getattrofunc get = type->tp_getattro;
    return fg_py_type_lookup(type, fg_names.s_getattribute) != fg_names.object_getattribute && get != PyObject_GenericGetAttr &&
           get != PyType_Type.tp_getattro && get != PyModule_Type.tp_getattro && get != PyMethod_Type.tp_getattro &&
           get != PySuper_Type.tp_getattro;
}

/* What the object says its class is, is its type. */
static fg_flow says_its_type(fg_trace *t, fg_value *v, PyTypeObject *type)
{
    if (fg_py_type_lookup(type, fg_names.s_class) != fg_names.object_class || reads_its_own_way(type))
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "isinstance of a %s, which says what its class is", type->tp_name);
    if (v->kind == FG_V_OBJECT) {
        fg_value *of, *found;
        FG_DO(fg_object_type(t, v, &of));
        FG_DO(fg_type_lookup(t, of, type, fg_names.s_class, &found));
        FG_DO(fg_look(t, &found));
        FG_DO(fg_type_lookup(t, of, type, fg_names.s_getattribute, &found));
        FG_DO(fg_look(t, &found));
    }
    return FG_FLOW_OK;
}

fg_flow fg_is_subclass_of(fg_trace *t, fg_value *v, PyTypeObject *type, PyTypeObject *wanted, bool *yes)
{
    fg_value *of = NULL;
    if (v->type == type && !(type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE))
        FG_DO(fg_object_type(t, v, &of));
    if (of == NULL && (of = fg_value_const(t, (PyObject *)type)) == NULL)
        return FG_FLOW_ERROR;
    return fg_is_subtype(t, of, type, wanted, yes);
}

static Py_ssize_t union_offset; /* of the tuple of classes */

bool fg_is_union(PyObject *object)
{
    static PyTypeObject *union_type;
    if (union_type == NULL) {
        PyObject *example = PyNumber_Or((PyObject *)&PyLong_Type, (PyObject *)&PyFloat_Type);
        PyObject *member = example != NULL ? fg_py_type_lookup(Py_TYPE(example), fg_names.s_args) : NULL;
        PyErr_Clear();
        if (member == NULL || Py_TYPE(member) != &PyMemberDescr_Type) {
            Py_XDECREF(example);
            return false;
        }
        union_offset = ((PyMemberDescrObject *)member)->d_member->offset;
        union_type = (PyTypeObject *)Py_NewRef((PyObject *)Py_TYPE(example));
        Py_DECREF(example);
    }
    return Py_IS_TYPE(object, union_type);
}

/* int | str: a tuple of classes, where it is one of nothing else (an alias of a generic class is an error, but not for all versions at the same moment). *parts NULL: it is
 * no union. */
static fg_flow union_parts(fg_trace *t, fg_value *cls, fg_value **parts)
{
    *parts = NULL;
    if (cls->real == NULL || !fg_is_union(cls->real))
        return FG_FLOW_OK;
    PyObject *args = *(PyObject **)((char *)cls->real + union_offset);
    for (Py_ssize_t i = 0; args != NULL && i < PyTuple_GET_SIZE(args); i++)
        if (!PyType_Check(PyTuple_GET_ITEM(args, i)))
            return FG_FLOW_OK;
    if (args == NULL)
        return FG_FLOW_OK;
    fg_node node;
    FG_DO(fg_node_of(t, cls, &node));
    if (node != FG_NODE_NONE) {
        *parts = fg_value_lazy(t, FG_ACC_SLOT_ATTR, node, NULL, union_offset, args);
        return *parts != NULL ? fg_look(t, parts) : FG_FLOW_ERROR;
    }
    *parts = fg_value_seq(t, FG_V_TUPLE, NULL, 0);
    for (Py_ssize_t i = 0; *parts != NULL && i < PyTuple_GET_SIZE(args); i++) {
        fg_value *part = fg_value_const(t, PyTuple_GET_ITEM(args, i));
        if (part == NULL)
            return FG_FLOW_ERROR;
        FG_DO(fg_seq_append(t, *parts, part));
    }
    return *parts != NULL ? FG_FLOW_OK : FG_FLOW_ERROR;
}

typedef struct question {
    fg_value *v;
    PyTypeObject *type; /* of v, in isinstance; NULL: issubclass */
    PyObject *special;  /* the method that is asked */
} question;

static fg_flow is_instance(fg_trace *t, const question *q, fg_value *cls, bool *yes)
{
    if (cls->kind != FG_V_CONST || !PyType_Check(cls->real))
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "isinstance with a %s", cls->type ? cls->type->tp_name : "run-time object");
    PyTypeObject *wanted = (PyTypeObject *)cls->real;
    if (q->type == wanted) {
        *yes = true; /* before any __instancecheck__ */
        return FG_FLOW_OK;
    }
    fg_value *check;
    FG_DO(own_check(t, cls, q->special, &check));
    if (check != NULL)
        return ask_metaclass(t, check, cls, q->v, yes);
    FG_DO(fg_is_subclass_of(t, q->v, q->type, wanted, yes));
    return *yes ? FG_FLOW_OK : says_its_type(t, q->v, q->type);
}

static fg_flow is_subclass(fg_trace *t, const question *q, fg_value *cls, bool *yes)
{
    if (q->v->kind != FG_V_CONST || !PyType_Check(q->v->real) || cls->kind != FG_V_CONST || !PyType_Check(cls->real))
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "issubclass with these arguments");
    fg_value *check;
    FG_DO(own_check(t, cls, q->special, &check));
    if (check != NULL)
        return ask_metaclass(t, check, cls, q->v, yes);
    return fg_is_subtype(t, q->v, (PyTypeObject *)q->v->real, (PyTypeObject *)cls->real, yes);
}

/* cls: a class, a tuple or union of such, or an object with the method. */
static fg_flow ask(fg_trace *t, const question *q, fg_value *cls, int depth, bool *yes)
{
    if (depth > 8) /* plain Python counts this as recursion */
        return fg_break(t, FG_BREAK_RECURSION, "%s with tuples nested deep", q->type != NULL ? "isinstance" : "issubclass");
    fg_value *parts;
    FG_DO(fg_look(t, &cls));
    FG_DO(union_parts(t, cls, &parts));
    if (parts != NULL)
        cls = parts;
    if (is_tuple(cls)) {
        fg_value **items;
        int32_t n;
        FG_DO(fg_iterate(t, cls, &items, &n));
        *yes = false;
        for (int32_t i = 0; i < n && !*yes; i++)
            FG_DO(ask(t, q, items[i], depth + 1, yes));
        return FG_FLOW_OK;
    }
    if (cls->kind == FG_V_OBJECT && cls->type != NULL && cls->type != q->type) { /* an alias of the module typing, say */
        fg_value *answer, *v = q->v;
        bool found;
        FG_DO(fg_call_special(t, cls, q->special, &v, 1, &answer, &found));
        if (found)
            return fg_truth(t, answer, yes);
    }
    return q->type != NULL ? is_instance(t, q, cls, yes) : is_subclass(t, q, cls, yes);
}

fg_flow fg_isinstance(fg_trace *t, fg_value *v, fg_value *cls, bool *yes)
{
    question q = {.v = v, .special = fg_names.s_instancecheck};
    FG_DO(fg_runtime_type(t, v, &q.type));
    return ask(t, &q, cls, 0, yes);
}

fg_flow fg_issubclass(fg_trace *t, fg_value *sub, fg_value *cls, bool *yes)
{
    FG_DO(fg_look(t, &sub));
    const question q = {.v = sub, .special = fg_names.s_subclasscheck};
    return ask(t, &q, cls, 0, yes);
}

/* --- abstract base classes */

static PyObject *abc_module, *abc_instancecheck, *abc_subclasscheck; /* kept; NULL: this Python has none of them */

static bool abc_find(void)
{
    static bool done;
    if (done)
        return abc_subclasscheck != NULL;
    done = true;
    PyObject *module = PyImport_ImportModule("_abc");
    PyObject *instance = module != NULL ? PyObject_GetAttrString(module, "_abc_instancecheck") : NULL;
    PyObject *subclass = instance != NULL ? PyObject_GetAttrString(module, "_abc_subclasscheck") : NULL;
    PyErr_Clear();
    if (subclass != NULL && PyCFunction_CheckExact(instance) && PyCFunction_CheckExact(subclass)) {
        abc_module = module;
        abc_instancecheck = instance;
        abc_subclasscheck = subclass;
        return true;
    }
    Py_XDECREF(module);
    Py_XDECREF(instance);
    Py_XDECREF(subclass);
    return false;
}

bool fg_is_abc_check(PyObject *callable)
{
    return abc_find() && (callable == abc_instancecheck || callable == abc_subclasscheck);
}

/* Whether a set of weak references has one to the object; -1: an exception is set. */
static int refers_to(PyObject *set, PyObject *object)
{
    PyObject *it = PyObject_GetIter(set), *ref;
    int yes = 0;
    while (it != NULL && !yes && (ref = PyIter_Next(it)) != NULL) {
        yes = PyWeakref_Check(ref) && fg_weakref_target(ref) == object;
        Py_DECREF(ref);
    }
    Py_XDECREF(it);
    return it == NULL || PyErr_Occurred() ? -1 : yes;
}

typedef enum fg_kept { KEPT_ERROR, KEPT_NOTHING, KEPT_YES, KEPT_NO, KEPT_REGISTERED /* yes, after the hook was asked */ } fg_kept;

/* What the class keeps about another one. */
static fg_kept kept_answer(PyObject *cls, PyObject *sub, uint64_t *token)
{
    fg_kept kept = KEPT_ERROR;
    PyObject *now = PyObject_CallMethod(abc_module, "get_cache_token", NULL);
    PyObject *dump = now != NULL ? PyObject_CallMethod(abc_module, "_get_dump", "O", cls) : NULL; /* copies */
    if (dump != NULL && PyTuple_CheckExact(dump) && PyTuple_GET_SIZE(dump) == 4) {
        int yes = refers_to(PyTuple_GET_ITEM(dump, 1), sub), no = yes == 0 ? refers_to(PyTuple_GET_ITEM(dump, 2), sub) : 0;
        uint64_t version = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(dump, 3));
        *token = PyLong_AsUnsignedLongLong(now);
        if (!PyErr_Occurred() && yes >= 0 && no >= 0)
            kept = yes ? KEPT_YES : no && version == *token ? KEPT_NO : KEPT_NOTHING;
        int registered = kept == KEPT_NOTHING ? refers_to(PyTuple_GET_ITEM(dump, 0), sub) : 0;
        if (registered != 0)
            kept = registered < 0 ? KEPT_ERROR : KEPT_REGISTERED;
    }
    Py_XDECREF(now);
    Py_XDECREF(dump);
    return kept;
}

/* Functions of these modules look at the __mro__ of a class and at the dicts in it, and at nothing else. */
static bool is_known_hook(PyObject *hook)
{
    static const char *const modules[] = {"abc", "_collections_abc", "contextlib", "numbers", "os"};
    PyObject *loaded = PyImport_GetModuleDict();
    if (Py_IS_TYPE(hook, &PyClassMethod_Type))
        hook = fg_descr_func(hook);
    if (hook == NULL || !PyFunction_Check(hook))
        return hook != NULL && Py_TYPE(hook) == &PyClassMethodDescr_Type; /* object's own */
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        PyObject *module = PyDict_GetItemString(loaded, modules[i]); /* borrowed */
        if (module != NULL && PyModule_Check(module) && PyFunction_GET_GLOBALS(hook) == PyModule_GetDict(module))
            return true;
    }
    return false;
}

/* Asking the class, and so each class below it and each that was registered, runs no code but that of the library. budget: classes to look at. */
static bool asks_no_user(PyTypeObject *cls, int *budget)
{
    PyTypeObject *meta = Py_TYPE(cls);
    PyObject *check = fg_py_type_lookup(meta, fg_names.s_subclasscheck), *hook;
    if ((*budget)-- <= 0 || meta->tp_getattro != PyType_Type.tp_getattro || check == NULL)
        return false;
    if (check == fg_py_type_lookup(&PyType_Type, fg_names.s_subclasscheck))
        return true; /* by its MRO */
    hook = fg_py_type_lookup(cls, fg_names.s_subclasshook);
    if (!is_known_hook(check) || hook == NULL || !is_known_hook(hook) || fg_py_type_lookup(cls, fg_names.s_subclasscheck) != NULL ||
        fg_py_type_lookup(cls, fg_names.s_subclasses) != NULL ||
        fg_py_type_lookup(meta, fg_names.s_subclasses) != fg_py_type_lookup(&PyType_Type, fg_names.s_subclasses))
        return false;
    PyObject *dump = PyObject_CallMethod(abc_module, "_get_dump", "O", (PyObject *)cls), *below = NULL, *it = NULL, *item;
    bool fine = dump != NULL && (below = PyObject_CallMethod((PyObject *)&PyType_Type, "__subclasses__", "O", (PyObject *)cls)) != NULL &&
                PyList_CheckExact(below) && (it = PyObject_GetIter(PyTuple_GET_ITEM(dump, 0))) != NULL;
    for (Py_ssize_t i = 0; fine && i < PyList_GET_SIZE(below); i++)
        fine = PyType_Check(PyList_GET_ITEM(below, i)) && asks_no_user((PyTypeObject *)PyList_GET_ITEM(below, i), budget);
    while (fine && (item = PyIter_Next(it)) != NULL) {
        PyObject *registered = PyWeakref_Check(item) ? fg_weakref_target(item) : NULL;
        fine =
            registered != NULL && (registered == Py_None || (PyType_Check(registered) && asks_no_user((PyTypeObject *)registered, budget)));
        Py_DECREF(item);
    }
    fine = fine && !PyErr_Occurred();
    PyErr_Clear();
    Py_XDECREF(it);
    Py_XDECREF(below);
    Py_XDECREF(dump);
    return fine;
}

/* The hook of the class is one of the library's, and stays that. */
static fg_flow pin_hook(fg_trace *t, fg_value *cls)
{
    fg_value *hook;
    fg_node node;
    PyTypeObject *wanted = (PyTypeObject *)cls->real;
    PyObject *real = fg_py_type_lookup(wanted, fg_names.s_subclasshook);
    if (real == NULL || !is_known_hook(real) || Py_TYPE(wanted)->tp_getattro != PyType_Type.tp_getattro)
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "isinstance with %s, which has a __subclasshook__ of its own", wanted->tp_name);
    FG_DO(fg_type_lookup(t, cls, wanted, fg_names.s_subclasshook, &hook));
    FG_DO(fg_look(t, &hook));
    if (!Py_IS_TYPE(real, &PyClassMethod_Type))
        return FG_FLOW_OK;
    FG_DO(fg_node_of(t, hook, &node));
    fg_value *func = fg_value_lazy(t, FG_ACC_DESCR_FUNC, node, NULL, 0, fg_descr_func(real));
    if (func == NULL)
        return FG_FLOW_ERROR;
    FG_DO(fg_look(t, &func));
    FG_DO(fg_guard_const(t, func));
    FG_DO(fg_node_of(t, func, &node));
    FG_DO(fg_source(t, FG_ACC_FUNC_CODE, node, NULL, 0, &node));
    return fg_guard(t, FG_GUARD_ID, node, PyFunction_GET_CODE(func->real), 0, 0);
}

fg_flow fg_abc_check(fg_trace *t, PyObject *callable, fg_value *cls, fg_value *v, bool *yes)
{
    PyTypeObject *type = NULL;
    uint64_t token = 0;
    int budget = 1000;
    FG_DO(fg_look(t, &cls));
    if (cls->kind != FG_V_CONST || !PyType_Check(cls->real))
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "an abstract base class that is none");
    if (callable == abc_instancecheck) {
        FG_DO(fg_runtime_type(t, v, &type));
        FG_DO(says_its_type(t, v, type));
    } else if (v->kind == FG_V_CONST && PyType_Check(v->real)) {
        type = (PyTypeObject *)v->real;
    } else {
        return fg_break(t, FG_BREAK_UNSUPPORTED_CALL, "issubclass with these arguments");
    }
    fg_kept kept = kept_answer(cls->real, (PyObject *)type, &token);
    if (kept == KEPT_NOTHING && t->ir.n_steps == 0 && Py_TYPE(type)->tp_getattro == PyType_Type.tp_getattro &&
        asks_no_user((PyTypeObject *)cls->real, &budget)) {
        if (PyObject_IsSubclass((PyObject *)type, cls->real) < 0)
            return fg_break_on_error(t, FG_BREAK_UNSUPPORTED_CALL, "isinstance with an abstract base class");
        kept = kept_answer(cls->real, (PyObject *)type, &token);
    }
    if (kept == KEPT_ERROR)
        return fg_break_on_error(t, FG_BREAK_UNSUPPORTED_CALL, "isinstance with an abstract base class");
    if (kept == KEPT_NOTHING || (kept == KEPT_NO && fg_abc_token_at() == NULL))
        return fg_break(t, FG_BREAK_NOT_ASKED, "%s, of a %s", ((PyTypeObject *)cls->real)->tp_name, type->tp_name);
    *yes = kept != KEPT_NO;
    if (kept == KEPT_REGISTERED)
        return pin_hook(t, cls);
    return *yes ? FG_FLOW_OK : fg_guard(t, FG_GUARD_ABC_TOKEN, FG_NODE_NONE, NULL, (int64_t)token, 0);
}
