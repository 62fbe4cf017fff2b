/* Purpose:   one body per accessor: from a parent's value to the value of its child.
 * Model:     FOUND gives a value, ABSENT says that a legal parent has none, UNDECIDED that the parent is not of a kind that could have one (or
 *            that only a user's code could tell); then every condition fails, ABSENT too.
 * Invariants: pure: reads memory only, after it has looked at the parent's type itself. SLOT_ATTR is the exception: it may be read only after
 *            a fact has proven the parent's exact type. GETATTR runs Python and gives a new reference; it is not here.
 * Threading: the GIL is held.
 * Ownership: values are borrowed from their parents.
 */
#ifndef FG_GUARD_READ_H
#define FG_GUARD_READ_H

#include "guards/guard_desc.h"
#include "runtime/cpython/function.h"
#include "runtime/cpython/iterators.h"

#define FG_READ(NAME) \
    static inline fg_find fg_read_##NAME(const fg_view *view, PyObject *parent, PyObject *key, int64_t n, PyObject **value)
#define FG_UNUSED_READ ((void)view, (void)parent, (void)key, (void)n)

static inline fg_find fg_read_pointer(PyObject *object, PyObject **value)
{
    *value = object;
    return object != NULL ? FG_FIND_FOUND : FG_FIND_ABSENT;
}

FG_READ(ARG)
{
    FG_UNUSED_READ;
    return n < view->n_slots ? fg_read_pointer(view->slots[n], value) : FG_FIND_ABSENT;
}

FG_READ(FREEVAR)
{
    FG_UNUSED_READ;
    PyObject *closure = view->closure;
    if (closure == NULL || n >= PyTuple_GET_SIZE(closure))
        return FG_FIND_ABSENT;
    return fg_read_pointer(PyTuple_GET_ITEM(closure, n), value);
}

FG_READ(GLOBALS)
{
    FG_UNUSED_READ;
    return fg_read_pointer(view->globals, value);
}

FG_READ(BUILTINS)
{
    FG_UNUSED_READ;
    return fg_read_pointer(view->builtins, value);
}

FG_READ(FUNC)
{
    FG_UNUSED_READ;
    return fg_read_pointer(view->func, value);
}

/* key is the object, or the weak reference to it when n is 1. */
FG_READ(CONST)
{
    FG_UNUSED_READ;
    PyObject *object = n ? fg_weakref_target(key) : key;
    if (n && object == Py_None)
        return FG_FIND_UNDECIDED;
    return fg_read_pointer(object, value);
}

FG_READ(CELL_CONTENTS)
{
    FG_UNUSED_READ;
    return PyCell_Check(parent) ? fg_read_pointer(PyCell_GET(parent), value) : FG_FIND_UNDECIDED;
}

/* n is the key's hash. */
FG_READ(DICT_ITEM)
{
    FG_UNUSED_READ;
    return PyDict_Check(parent) ? fg_dict_find(parent, key, (Py_hash_t)n, value) : FG_FIND_UNDECIDED;
}

FG_READ(LIST_ITEM)
{
    FG_UNUSED_READ;
    if (!PyList_Check(parent))
        return FG_FIND_UNDECIDED;
    Py_ssize_t size = PyList_GET_SIZE(parent);
    if (n < 0)
        n += size;
    return n >= 0 && n < size ? fg_read_pointer(PyList_GET_ITEM(parent, n), value) : FG_FIND_ABSENT;
}

FG_READ(TUPLE_ITEM)
{
    FG_UNUSED_READ;
    if (!PyTuple_Check(parent))
        return FG_FIND_UNDECIDED;
    Py_ssize_t size = PyTuple_GET_SIZE(parent);
    if (n < 0)
        n += size;
    return n >= 0 && n < size ? fg_read_pointer(PyTuple_GET_ITEM(parent, n), value) : FG_FIND_ABSENT;
}

FG_READ(TYPE)
{
    FG_UNUSED_READ;
    return fg_read_pointer((PyObject *)Py_TYPE(parent), value);
}

FG_READ(TYPE_LOOKUP)
{
    FG_UNUSED_READ;
    return PyType_Check(parent) ? fg_type_find((PyTypeObject *)parent, key, (Py_hash_t)n, value) : FG_FIND_UNDECIDED;
}

FG_READ(INSTANCE_ATTR)
{
    FG_UNUSED_READ;
    return fg_attr_find(parent, key, (Py_hash_t)n, value);
}

FG_READ(SLOT_ATTR)
{
    FG_UNUSED_READ;
    return fg_read_pointer(*(PyObject **)((char *)parent + n), value);
}

FG_READ(MODULE_DICT)
{
    FG_UNUSED_READ;
    return PyModule_Check(parent) ? fg_read_pointer(PyModule_GetDict(parent), value) : FG_FIND_UNDECIDED;
}

#define FG_READ_FUNC_FIELD(NAME, FIELD)                                                                                    \
    FG_READ(NAME)                                                                                                          \
    {                                                                                                                      \
        FG_UNUSED_READ;                                                                                                    \
        return PyFunction_Check(parent) ? fg_read_pointer(((PyFunctionObject *)parent)->FIELD, value) : FG_FIND_UNDECIDED; \
    }
FG_READ(FUNC_CODE)
{
    FG_UNUSED_READ;
    if (!PyFunction_Check(parent) || !fg_function_runs_its_code((PyFunctionObject *)parent))
        return FG_FIND_UNDECIDED;
    return fg_read_pointer(((PyFunctionObject *)parent)->func_code, value);
}

FG_READ_FUNC_FIELD(FUNC_DEFAULTS, func_defaults)
FG_READ_FUNC_FIELD(FUNC_KWDEFAULTS, func_kwdefaults)
FG_READ_FUNC_FIELD(FUNC_CLOSURE, func_closure)
FG_READ_FUNC_FIELD(FUNC_GLOBALS, func_globals)
FG_READ_FUNC_FIELD(FUNC_BUILTINS, func_builtins)

FG_READ(METHOD_FUNC)
{
    FG_UNUSED_READ;
    return PyMethod_Check(parent) ? fg_read_pointer(PyMethod_GET_FUNCTION(parent), value) : FG_FIND_UNDECIDED;
}

FG_READ(METHOD_SELF)
{
    FG_UNUSED_READ;
    return PyMethod_Check(parent) ? fg_read_pointer(PyMethod_GET_SELF(parent), value) : FG_FIND_UNDECIDED;
}

FG_READ(RANGE_PART)
{
    FG_UNUSED_READ;
    return PyRange_Check(parent) ? fg_read_pointer(fg_range_part(parent, (int)n), value) : FG_FIND_UNDECIDED;
}

FG_READ(SLICE_PART)
{
    FG_UNUSED_READ;
    if (!PySlice_Check(parent))
        return FG_FIND_UNDECIDED;
    PySliceObject *slice = (PySliceObject *)parent;
    return fg_read_pointer(n == 0 ? slice->start : n == 1 ? slice->stop : slice->step, value);
}

FG_READ(DESCR_FUNC)
{
    FG_UNUSED_READ;
    if (!Py_IS_TYPE(parent, &PyStaticMethod_Type) && !Py_IS_TYPE(parent, &PyClassMethod_Type))
        return FG_FIND_UNDECIDED;
    return fg_read_pointer(fg_descr_func(parent), value);
}

FG_READ(PROPERTY_PART)
{
    FG_UNUSED_READ;
    return Py_IS_TYPE(parent, &PyProperty_Type) ? fg_read_pointer(fg_property_part(parent, (int)n), value) : FG_FIND_UNDECIDED;
}

FG_READ(DICT_KEY)
{
    FG_UNUSED_READ;
    fg_dict_iter it = {0};
    PyObject *unused;
    if (!PyDict_Check(parent))
        return FG_FIND_UNDECIDED;
    if (n >= PyDict_GET_SIZE(parent))
        return FG_FIND_ABSENT;
    do {
        if (!fg_dict_next(parent, &it, value, &unused))
            return FG_FIND_ABSENT;
    } while (n-- > 0);
    return FG_FIND_FOUND;
}

FG_READ(PROXY_MAPPING)
{
    FG_UNUSED_READ;
    return Py_IS_TYPE(parent, &PyDictProxy_Type) ? fg_read_pointer(fg_proxy_mapping(parent), value) : FG_FIND_UNDECIDED;
}

FG_READ(MRO)
{
    FG_UNUSED_READ;
    return PyType_Check(parent) ? fg_read_pointer(((PyTypeObject *)parent)->tp_mro, value) : FG_FIND_UNDECIDED;
}

FG_READ(TYPE_PART)
{
    FG_UNUSED_READ;
    if (!PyType_Check(parent) || !(((PyTypeObject *)parent)->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return FG_FIND_UNDECIDED;
    PyHeapTypeObject *type = (PyHeapTypeObject *)parent;
    return fg_read_pointer(n == 0 ? type->ht_name : type->ht_qualname, value);
}

FG_READ(CODE_CONSTS)
{
    FG_UNUSED_READ;
    return PyCode_Check(parent) ? fg_read_pointer(((PyCodeObject *)parent)->co_consts, value) : FG_FIND_UNDECIDED;
}

FG_READ(WEAKREF)
{
    FG_UNUSED_READ;
    if (!PyWeakref_CheckRef(parent))
        return FG_FIND_UNDECIDED;
    PyObject *target = fg_weakref_target(parent);
    return fg_read_pointer(target != Py_None ? target : NULL, value);
}

FG_READ(ITER_PART)
{
    FG_UNUSED_READ;
    fg_iterator it;
    if (!fg_iterator_read(parent, &it) || n >= it.n_parts)
        return FG_FIND_UNDECIDED;
    return fg_read_pointer(it.parts[n], value);
}

FG_READ(ITER_ITEM)
{
    FG_UNUSED_READ;
    return fg_iterator_item(parent, n, value);
}

FG_READ(DEQUE_ITEM)
{
    FG_UNUSED_READ;
    return fg_is_deque(parent) ? fg_read_pointer(fg_deque_item(parent, n), value) : FG_FIND_UNDECIDED;
}

FG_READ(VIEW_DICT)
{
    FG_UNUSED_READ;
    PyObject *dict = fg_view_dict(parent);
    return dict != NULL ? fg_read_pointer(dict, value) : FG_FIND_UNDECIDED;
}

/* Where the part of a function or of a code object lies. */
static inline PyObject **fg_func_part(PyObject *object, int64_t n)
{
    PyFunctionObject *func = (PyFunctionObject *)object;
    switch (n) {
    case 0: return &func->func_name;
    case 1: return &func->func_qualname;
    case 2: return &func->func_module;
    case 3: return &func->func_doc;
    case 4: return &func->func_dict;
    default: return &func->func_annotations;
    }
}

static inline PyObject **fg_code_part(PyObject *object, int64_t n)
{
    PyCodeObject *code = (PyCodeObject *)object;
    switch (n) {
    case 0: return &code->co_names;
    case 1: return &code->co_localsplusnames;
    case 2: return &code->co_filename;
    case 3: return &code->co_name;
    case 4: return &code->co_qualname;
    default: return &code->co_exceptiontable;
    }
}

FG_READ(FUNC_PART)
{
    FG_UNUSED_READ;
    return PyFunction_Check(parent) ? fg_read_pointer(*fg_func_part(parent, n), value) : FG_FIND_UNDECIDED;
}

FG_READ(CODE_PART)
{
    FG_UNUSED_READ;
    return PyCode_Check(parent) ? fg_read_pointer(*fg_code_part(parent, n), value) : FG_FIND_UNDECIDED;
}

FG_READ(BUILTIN_SELF)
{
    FG_UNUSED_READ;
    return PyCFunction_Check(parent) ? fg_read_pointer(PyCFunction_GET_SELF(parent), value) : FG_FIND_UNDECIDED;
}

FG_READ(BASES)
{
    FG_UNUSED_READ;
    return PyType_Check(parent) ? fg_read_pointer(((PyTypeObject *)parent)->tp_bases, value) : FG_FIND_UNDECIDED;
}

/* GETATTR: FOUND with a new reference, ABSENT for AttributeError, UNDECIDED for any other Exception (both cleared), -2 with the exception set for
 * MemoryError and what is no Exception. No exception may be pending when it is called. */
#define FG_READ_ERROR (-2)
/* ACCEPTS: 1 true, 0 false or an Exception (cleared; its class to *raised, which may be NULL), -1 with the exception set as above. The caller holds both. */
int fg_user_accepts(PyObject *callable, PyObject *value, FG_NEW PyObject **raised);
int fg_read_getattr(PyObject *parent, PyObject *name, FG_NEW PyObject **value);

/* The pure ones through one call, for walkers that are no hot path. GETATTR is UNDECIDED here. */
fg_find fg_read_any(fg_accessor acc, const fg_view *view, PyObject *parent, PyObject *key, int64_t n, PyObject **value);

#endif
