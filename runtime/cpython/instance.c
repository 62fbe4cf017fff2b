/* Instance attributes and versions, read without changing how an object keeps them (object_storage.h).
 *
 * Asking through the interpreter (_PyObject_GetDictPtr, __dict__) would make the dict and slow the object down for good, so the table is
 * probed here. The probe compares exact str keys and str subclasses that compare as str does; another type of key is taken as different.
 */
#define Py_BUILD_CORE 1
#include "runtime/cpython/dict.h"
#include "runtime/cpython/frame.h"
#include "runtime/cpython/object_storage.h"
#undef Py_BUILD_CORE
#include <string.h>

static Py_ssize_t index_at(const PyDictKeysObject *keys, size_t i)
{
    switch (keys->dk_log2_index_bytes - keys->dk_log2_size) {
    case 0: return ((const int8_t *)keys->dk_indices)[i];
    case 1: return ((const int16_t *)keys->dk_indices)[i];
    case 2: return ((const int32_t *)keys->dk_indices)[i];
    default: return (Py_ssize_t)((const int64_t *)keys->dk_indices)[i];
    }
}

static int same_str(PyObject *a, PyObject *b)
{
    if (PyUnicode_READY(a) < 0 || PyUnicode_READY(b) < 0 || PyUnicode_GET_LENGTH(a) != PyUnicode_GET_LENGTH(b) ||
        PyUnicode_KIND(a) != PyUnicode_KIND(b))
        return 0;
    return memcmp(PyUnicode_DATA(a), PyUnicode_DATA(b), (size_t)PyUnicode_GET_LENGTH(a) * PyUnicode_KIND(a)) == 0;
}

static int key_is(PyObject *key, PyObject *name)
{
    if (key == name)
        return 1;
    if (!key || !PyUnicode_Check(key) || Py_TYPE(key)->tp_richcompare != PyUnicode_Type.tp_richcompare)
        return 0;
    return same_str(key, name);
}

/* Index of the name's entry in the table, -1: not there. */
static Py_ssize_t find_key(PyDictKeysObject *keys, PyObject *name)
{
    Py_hash_t hash = ((PyASCIIObject *)name)->hash;
    if (hash == -1)
        hash = PyObject_Hash(name);
    const size_t mask = ((size_t)1 << keys->dk_log2_size) - 1;
    size_t perturb = (size_t)hash, i = perturb & mask;
    for (;;) {
        const Py_ssize_t found = index_at(keys, i);
        if (found == DKIX_EMPTY)
            return -1;
        if (found >= 0) {
            if (keys->dk_kind == DICT_KEYS_GENERAL) {
                const PyDictKeyEntry *entry = &DK_ENTRIES(keys)[found];
                if (entry->me_hash == hash && key_is(entry->me_key, name))
                    return found;
            } else {
                PyObject *key = DK_UNICODE_ENTRIES(keys)[found].me_key;
                if (key == name || (key && ((PyASCIIObject *)key)->hash == hash && same_str(key, name)))
                    return found;
            }
        }
        perturb >>= 5;
        i = (i * 5 + perturb + 1) & mask;
    }
}

static PyObject *dict_value(PyDictObject *dict, PyObject *name)
{
    PyDictKeysObject *keys = dict->ma_keys;
    const Py_ssize_t i = find_key(keys, name);
    if (i < 0)
        return NULL;
    if (dict->ma_values)
        return dict->ma_values->values[i];
    return keys->dk_kind == DICT_KEYS_GENERAL ? DK_ENTRIES(keys)[i].me_value : DK_UNICODE_ENTRIES(keys)[i].me_value;
}

/* Where the object keeps its attributes: inline values, a dict, or (both NULL) nowhere yet. */
static PyDictValues *find_storage(PyObject *object, PyObject **dict)
{
    PyTypeObject *type = Py_TYPE(object);
    *dict = NULL;
    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT)
        return fg_managed_values(object, dict);
    if (type->tp_dictoffset) {
        PyObject **at = _PyObject_GetDictPtr(object); /* no managed dict: plain pointer arithmetic */
        if (at)
            *dict = *at;
    }
    if (*dict && !PyDict_Check(*dict))
        *dict = NULL;
    return NULL;
}

PyObject *fg_instance_dict(PyObject *object)
{
    PyObject *dict;
    (void)find_storage(object, &dict);
    return dict;
}

PyObject *fg_instance_attr(PyObject *object, PyObject *name)
{
    PyObject *dict;
    PyDictValues *values = find_storage(object, &dict);
    if (!values)
        return dict ? dict_value((PyDictObject *)dict, name) : NULL;
    PyDictKeysObject *keys = ((PyHeapTypeObject *)Py_TYPE(object))->ht_cached_keys;
    const Py_ssize_t i = find_key(keys, name);
    return i >= 0 ? values->values[i] : NULL;
}

int fg_instance_attr_next(PyObject *object, Py_ssize_t *position, PyObject **name, PyObject **value)
{
    PyObject *dict;
    PyDictValues *values = find_storage(object, &dict);
    if (!values)
        return dict ? PyDict_Next(dict, position, name, value) : 0;
    PyDictKeysObject *keys = ((PyHeapTypeObject *)Py_TYPE(object))->ht_cached_keys;
    while (*position < fg_values_size(values)) {
        const Py_ssize_t i = fg_values_place(values, (*position)++);
        if (values->values[i]) {
            *name = DK_UNICODE_ENTRIES(keys)[i].me_key;
            *value = values->values[i];
            return 1;
        }
    }
    return 0;
}

int fg_type_has_instance_dict(PyTypeObject *type)
{
    return type->tp_dictoffset != 0;
}

/* Mirrors _PyObject_GET_WEAKREFS_LISTPTR: since 3.12 classes keep the list in front of the object, so the offset may be negative. */
PyObject *fg_object_weakrefs(PyObject *object)
{
    const Py_ssize_t offset = Py_TYPE(object)->tp_weaklistoffset;
    return offset != 0 ? *(PyObject **)((char *)object + offset) : NULL;
}

uint64_t fg_dict_version(PyObject *dict)
{
    const uint64_t *version = fg_dict_version_at((PyDictObject *)dict);
    return version != NULL ? *version : 0;
}

uint64_t fg_type_version(PyTypeObject *type)
{
    return fg_type_version_take(type);
}
