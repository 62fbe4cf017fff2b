/* Purpose:   where an object keeps its attributes: the one thing about dicts and instances that the versions do differently.
 * Model:     an instance of a plain class keeps its values in an array of its own until someone asks for __dict__; the type's shared key table says
 *            which name has which place, and bytes before the array give the order of insertion:
 *
 *                [ ... order, used, size ][ value 0 ][ value 1 ] ...        names: the type's ht_cached_keys
 *
 *            3.11 has two words before the object, the array's address and the dict's, of which one is NULL; 3.12 has one word, whose low bit says
 *            which of the two it is.
 * Invariants: nothing here makes a dict, allocates or raises.
 * Threading: the GIL is held.
 * Ownership: all borrowed.
 */
#ifndef FG_CPYTHON_OBJECT_STORAGE_H
#define FG_CPYTHON_OBJECT_STORAGE_H

#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1 /* a file that includes this defines it before anything of the interpreter */
#endif
#include <Python.h>
#include <internal/pycore_dict.h>
#include <internal/pycore_object.h>
#include <stddef.h>

_Static_assert(sizeof(PyDictObject) == 48 && offsetof(PyDictObject, ma_version_tag) == 24 && offsetof(PyDictObject, ma_used) == 16,
               "PyDictObject of 3.11 and 3.12");
_Static_assert(offsetof(struct _dictkeysobject, dk_log2_size) == 8 && offsetof(struct _dictkeysobject, dk_version) == 12 &&
                   offsetof(struct _dictkeysobject, dk_nentries) == 24 && offsetof(struct _dictkeysobject, dk_indices) == 32,
               "keys header of 3.11 and 3.12 (pycore_dict.h)");
_Static_assert(sizeof(PyDictUnicodeEntry) == 16 && sizeof(PyDictKeyEntry) == 24, "entries of 3.11 and 3.12");

#if PY_VERSION_HEX >> 16 == 0x030b
/* The object's type has Py_TPFLAGS_MANAGED_DICT. Inline values, or NULL and its dict, which may be NULL too. */
static inline PyDictValues *fg_managed_values(PyObject *object, PyObject **dict)
{
    PyDictValues *values = *_PyObject_ValuesPointer(object);
    *dict = values != NULL ? NULL : *_PyObject_ManagedDictPointer(object);
    return values;
}
#elif PY_VERSION_HEX >> 16 == 0x030c
static inline PyDictValues *fg_managed_values(PyObject *object, PyObject **dict)
{
    const PyDictOrValues stored = *_PyObject_DictOrValuesPointer(object);
    const int inlined = _PyDictOrValues_IsValues(stored);
    *dict = inlined ? NULL : _PyDictOrValues_GetDict(stored);
    return inlined ? _PyDictOrValues_GetValues(stored) : NULL;
}
#endif

/* A type's own dict. 3.12 keeps those of static builtin types elsewhere, for each interpreter. */
static inline PyObject *fg_type_own_dict(PyTypeObject *type)
{
#if PY_VERSION_HEX >> 16 == 0x030b
    return type->tp_dict;
#else
    if (type->tp_dict != NULL)
        return type->tp_dict;
    PyObject *dict = PyType_GetDict(type);
    Py_XDECREF(dict); /* the type holds it */
    return dict;
#endif
}

#endif
