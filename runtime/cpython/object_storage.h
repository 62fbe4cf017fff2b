/* Purpose:   where an object keeps its attributes: the one thing about dicts and instances that the versions do differently.
 * Model:     an instance of a plain class keeps its values in an array of its own until someone asks for __dict__; the type's shared key table says
 *            which name has which place, and bytes before the array give the order of insertion:
 *
 *                [ ... order, used, size ][ value 0 ][ value 1 ] ...        names: the type's ht_cached_keys
 *
 *            3.11 has two words before the object, the array's address and the dict's, of which one is NULL; 3.12 has one word, whose low bit says
 *            which of the two it is. 3.13 has the array behind the object's own fields and the dict's address before it:
 *
 *                dict, ... object [ capacity, size, embedded, valid ][ value 0 ][ value 1 ] ... [ order ... ]
 *
 *            As long as the array is valid it holds the attributes; a dict that has been asked for shares it.
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

_Static_assert(sizeof(PyDictObject) == 48 && offsetof(PyDictObject, ma_keys) == 32 && offsetof(PyDictObject, ma_used) == 16,
               "PyDictObject of 3.11 to 3.15");
_Static_assert(offsetof(struct _dictkeysobject, dk_log2_size) == 8 && offsetof(struct _dictkeysobject, dk_version) == 12 &&
                   offsetof(struct _dictkeysobject, dk_nentries) == 24 && offsetof(struct _dictkeysobject, dk_indices) == 32,
               "keys header of 3.11 to 3.15 (pycore_dict.h)");
_Static_assert(sizeof(PyDictUnicodeEntry) == 16 && sizeof(PyDictKeyEntry) == 24, "entries of 3.11 to 3.15");

#if PY_VERSION_HEX >> 16 == 0x030b
/* The object's type has Py_TPFLAGS_MANAGED_DICT. Inline values, or NULL and its dict, which may be NULL too. Since 3.13 there may be both. */
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
#else
_Static_assert(offsetof(PyDictValues, values) == 8 && offsetof(PyDictValues, size) == 1 && offsetof(PyDictValues, valid) == 3,
               "inline values since 3.13 (pycore_dict.h)");

static inline PyDictValues *fg_managed_values(PyObject *object, PyObject **dict)
{
    *dict = (PyObject *)_PyObject_GetManagedDict(object);
    if (!(Py_TYPE(object)->tp_flags & Py_TPFLAGS_INLINE_VALUES))
        return NULL;
    PyDictValues *values = _PyObject_InlineValues(object);
    return values->valid ? values : NULL;
}
#endif

/* How many values there are, and the place of the i-th one in order of insertion. */
static inline Py_ssize_t fg_values_size(const PyDictValues *values)
{
#if PY_VERSION_HEX < 0x030d0000
    return ((const uint8_t *)values)[-2];
#else
    return values->size;
#endif
}

static inline Py_ssize_t fg_values_place(const PyDictValues *values, Py_ssize_t i)
{
#if PY_VERSION_HEX < 0x030d0000
    return ((const uint8_t *)values)[-3 - i];
#else
    return ((const uint8_t *)&values->values[values->capacity])[i];
#endif
}

/* The word that changes with each change of the dict, NULL: there is none. In 3.13 a store to an attribute of the object whose values the dict shares leaves
 * the dict's version as it is; later dicts have none. */
static inline const uint64_t *fg_dict_version_at(const PyDictObject *dict)
{
#if PY_VERSION_HEX < 0x030e0000
    return PY_VERSION_HEX < 0x030d0000 || dict->ma_values == NULL ? &dict->ma_version_tag : NULL;
#else
    (void)dict;
    return NULL;
#endif
}

/* The type has a version tag that stands for what it is now. Since 3.13 that is any but 0; before, a flag says so. */
static inline int fg_type_tag_is_valid(const PyTypeObject *type)
{
    return PY_VERSION_HEX < 0x030d0000 ? (type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG) != 0 : type->tp_version_tag != 0;
}

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
