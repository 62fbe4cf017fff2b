/* Dictionaries, inline instance values and type dicts.
 *
 * A dict's keys object is: header, index table (open addressing, power of two), entry array in insertion order. Tables whose keys are all exact
 * strings have entries of two words (key, value), the others of three (hash, key, value). A split dict shares its keys object with the class and
 * has its values in an array of its own, in front of which lies the insertion order, one byte an item.
 *
 * Mirrors, of CPython 3.11 to 3.13: the probe sequence of Objects/dictobject.c (unicodekeys_lookup_unicode, dictkeys_generic_lookup), the order bytes read
 * by dict_keys iteration (get_index_from_order), and the node list of Objects/odictobject.c.
 */
#define Py_BUILD_CORE 1
#include "runtime/cpython/dict.h"

#include "runtime/cpython/object_storage.h"
#if PY_VERSION_HEX >= 0x030f0000
#include <internal/pycore_lazyimportobject.h>
#endif
#include <string.h>

#define PROBE_SHIFT 5

int fg_is_lazy_import(const PyObject *object)
{
#if PY_VERSION_HEX >= 0x030f0000
    return Py_IS_TYPE(object, &PyLazyImport_Type);
#else
    (void)object;
    return 0;
#endif
}

static inline Py_ssize_t index_at(const PyDictKeysObject *keys, size_t slot)
{
    unsigned log2 = keys->dk_log2_size;
    if (log2 < 8)
        return ((const int8_t *)keys->dk_indices)[slot];
    if (log2 < 16)
        return ((const int16_t *)keys->dk_indices)[slot];
    if (log2 < 32)
        return ((const int32_t *)keys->dk_indices)[slot];
    return (Py_ssize_t)((const int64_t *)keys->dk_indices)[slot];
}

static inline PyDictUnicodeEntry *str_entries(const PyDictKeysObject *keys)
{
    return (PyDictUnicodeEntry *)((char *)keys->dk_indices + ((size_t)1 << keys->dk_log2_index_bytes));
}

static inline PyDictKeyEntry *any_entries(const PyDictKeysObject *keys)
{
    return (PyDictKeyEntry *)((char *)keys->dk_indices + ((size_t)1 << keys->dk_log2_index_bytes));
}

static int str_equal_slow(PyObject *a, PyObject *b, Py_hash_t hash)
{
    return ((PyASCIIObject *)b)->hash == hash && fg_key_equal(a, b) == FG_FIND_FOUND;
}

/* Entry index of a str in a table of strings, or -1. */
static inline Py_ssize_t str_index(const PyDictKeysObject *keys, PyObject *key, Py_hash_t hash)
{
    size_t mask = ((size_t)1 << keys->dk_log2_size) - 1;
    size_t perturb = (size_t)hash;
    size_t slot = (size_t)hash & mask;
    const PyDictUnicodeEntry *entries = str_entries(keys);

    for (;;) {
        Py_ssize_t index = index_at(keys, slot);
        if (index >= 0) {
            PyObject *stored = entries[index].me_key;
            if (stored == key || str_equal_slow(key, stored, hash))
                return index;
        } else if (index == DKIX_EMPTY) {
            return -1;
        }
        perturb >>= PROBE_SHIFT;
        slot = (slot * 5 + perturb + 1) & mask;
    }
}

static fg_find general_find(const PyDictKeysObject *keys, PyObject *key, Py_hash_t hash, PyObject **value)
{
    size_t mask = ((size_t)1 << keys->dk_log2_size) - 1;
    size_t perturb = (size_t)hash;
    size_t slot = (size_t)hash & mask;
    const PyDictKeyEntry *entries = any_entries(keys);

    for (;;) {
        Py_ssize_t index = index_at(keys, slot);
        if (index >= 0) {
            const PyDictKeyEntry *entry = &entries[index];
            if (entry->me_key == key) {
                *value = entry->me_value;
                return FG_FIND_FOUND;
            }
            if (entry->me_hash == hash) {
                fg_find same = fg_key_equal(key, entry->me_key);
                if (same == FG_FIND_UNDECIDED)
                    return same;
                if (same == FG_FIND_FOUND) {
                    *value = entry->me_value;
                    return same;
                }
            }
        } else if (index == DKIX_EMPTY) {
            return FG_FIND_ABSENT;
        }
        perturb >>= PROBE_SHIFT;
        slot = (slot * 5 + perturb + 1) & mask;
    }
}

static inline fg_find find_str(PyObject *object, PyObject *key, Py_hash_t hash, PyObject **value)
{
    const PyDictObject *dict = (const PyDictObject *)object;
    const PyDictKeysObject *keys = dict->ma_keys;

    if (keys->dk_kind == DICT_KEYS_GENERAL)
        return general_find(keys, key, hash, value);
    Py_ssize_t index = str_index(keys, key, hash);
    if (index < 0)
        return FG_FIND_ABSENT;
    PyObject *found = dict->ma_values != NULL ? dict->ma_values->values[index] : str_entries(keys)[index].me_value;
    *value = found;
    return found != NULL ? FG_FIND_FOUND : FG_FIND_ABSENT;
}

fg_find fg_dict_find_str(PyObject *dict, PyObject *key, Py_hash_t hash, PyObject **value)
{
    return find_str(dict, key, hash, value);
}

fg_find fg_dict_find(PyObject *dict, PyObject *key, Py_hash_t hash, PyObject **value)
{
    const PyDictKeysObject *keys = ((const PyDictObject *)dict)->ma_keys;
    if (PyUnicode_CheckExact(key))
        return find_str(dict, key, hash, value);
    if (keys->dk_kind != DICT_KEYS_GENERAL)
        return FG_FIND_ABSENT; /* only exact strings are in there */
    return general_find(keys, key, hash, value);
}

fg_find fg_attr_find(PyObject *object, PyObject *name, Py_hash_t hash, PyObject **value)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject *dict;

    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
        const PyDictValues *values = fg_managed_values(object, &dict);
        if (values != NULL) {
            Py_ssize_t index = str_index(((PyHeapTypeObject *)type)->ht_cached_keys, name, hash);
            if (index < 0)
                return FG_FIND_ABSENT;
            *value = values->values[index];
            return *value != NULL ? FG_FIND_FOUND : FG_FIND_ABSENT;
        }
    } else {
        Py_ssize_t offset = type->tp_dictoffset;
        if (offset == 0)
            return FG_FIND_ABSENT;
        if (offset < 0) {
            Py_ssize_t items = Py_SIZE(object);
            offset += (Py_ssize_t)_PyObject_VAR_SIZE(type, items < 0 ? -items : items);
        }
        dict = *(PyObject **)((char *)object + offset);
    }
    return dict != NULL ? find_str(dict, name, hash, value) : FG_FIND_ABSENT;
}

PyObject *fg_type_dict(PyTypeObject *type)
{
    return fg_type_own_dict(type);
}

fg_find fg_type_find(PyTypeObject *type, PyObject *name, Py_hash_t hash, PyObject **value)
{
    PyObject *mro = type->tp_mro;
    if (mro == NULL)
        return FG_FIND_UNDECIDED;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *base = PyTuple_GET_ITEM(mro, i);
        PyObject *dict = PyType_Check(base) ? fg_type_own_dict((PyTypeObject *)base) : NULL;
        if (dict == NULL)
            return FG_FIND_UNDECIDED;
        fg_find found = find_str(dict, name, hash, value);
        if (found != FG_FIND_ABSENT)
            return found;
    }
    return FG_FIND_ABSENT;
}

/* A look-up by the interpreter compares strings alone, so that no code of the user's takes part. */
static int names_are_strings(PyTypeObject *type)
{
    PyObject *mro = type->tp_mro;
    for (Py_ssize_t i = 0; mro != NULL && i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        if (!PyType_Check((PyObject *)base))
            return 0;
        if (base->tp_flags & Py_TPFLAGS_IMMUTABLETYPE)
            continue;
        PyObject *dict = fg_type_own_dict(base);
        if (dict == NULL || ((PyDictObject *)dict)->ma_keys->dk_kind == DICT_KEYS_GENERAL)
            return 0;
    }
    return mro != NULL;
}

fg_find fg_type_look(PyTypeObject *type, PyObject *name, PyObject **value)
{
    if (!names_are_strings(type))
        return fg_type_find(type, name, PyObject_Hash(name), value);
    *value = _PyType_Lookup(type, name);
    return *value != NULL ? FG_FIND_FOUND : FG_FIND_ABSENT;
}

/* The ordered dict's list: odictobject.c keeps these types to itself. */
typedef struct odict_node {
    PyObject *key;
    Py_hash_t hash;
    struct odict_node *next, *prev;
} odict_node;
typedef struct odict_head {
    PyDictObject dict;
    odict_node *first, *last;
    odict_node **fast_nodes;
    Py_ssize_t fast_nodes_size;
    void *resize_sentinel;
    size_t state;
    PyObject *instance_dict, *weakrefs;
} odict_head;

int fg_dict_next(PyObject *object, fg_dict_iter *it, PyObject **key, PyObject **value)
{
    const PyDictObject *dict = (const PyDictObject *)object;
    const PyDictKeysObject *keys = dict->ma_keys;

    if (PyODict_Check(object)) {
        if (PyODict_Type.tp_basicsize != (Py_ssize_t)sizeof(odict_head))
            return 0;
        odict_node *node = it->at == 0 ? ((const odict_head *)dict)->first : ((odict_node *)it->node)->next;
        if (node == NULL)
            return 0;
        it->at++;
        it->node = node;
        *key = node->key;
        *value = NULL;
        return fg_dict_find(object, node->key, node->hash, value) == FG_FIND_FOUND;
    }
    if (dict->ma_values != NULL) {
        if (it->at >= dict->ma_used || it->at >= fg_values_size(dict->ma_values))
            return 0;
        Py_ssize_t index = fg_values_place(dict->ma_values, it->at);
        it->at++;
        *key = str_entries(keys)[index].me_key;
        *value = dict->ma_values->values[index];
        return *value != NULL;
    }
    while (it->at < keys->dk_nentries) {
        Py_ssize_t index = it->at++;
        if (keys->dk_kind == DICT_KEYS_GENERAL) {
            *key = any_entries(keys)[index].me_key;
            *value = any_entries(keys)[index].me_value;
        } else {
            *key = str_entries(keys)[index].me_key;
            *value = str_entries(keys)[index].me_value;
        }
        if (*value != NULL)
            return 1;
    }
    return 0;
}

/* Mirrors set_lookkey of Objects/setobject.c. */
#define LINEAR_PROBES 9
fg_find fg_set_find(PyObject *object, PyObject *key, Py_hash_t hash, PyObject **member)
{
    const PySetObject *set = (const PySetObject *)object;
    size_t mask = (size_t)set->mask, perturb = (size_t)hash, slot = (size_t)hash & mask;

    for (;;) {
        const setentry *entry = &set->table[slot];
        for (int probes = slot + LINEAR_PROBES <= mask ? LINEAR_PROBES : 0; probes >= 0; probes--, entry++) {
            if (entry->hash == 0 && entry->key == NULL)
                return FG_FIND_ABSENT;
            if (entry->hash != hash)
                continue;
            fg_find same = entry->key == key ? FG_FIND_FOUND : fg_key_equal(key, entry->key);
            if (same != FG_FIND_ABSENT) {
                *member = entry->key;
                return same;
            }
        }
        perturb >>= PROBE_SHIFT;
        slot = (slot * 5 + 1 + perturb) & mask;
    }
}

int fg_set_next(PyObject *object, Py_ssize_t *at, PyObject **member)
{
    const PySetObject *set = (const PySetObject *)object;
    while (*at <= set->mask) {
        const setentry *entry = &set->table[(*at)++];
        if (entry->key != NULL && entry->hash != -1) { /* -1: where a member was taken out */
            *member = entry->key;
            return 1;
        }
    }
    return 0;
}

/* rangeobject.c keeps its struct to itself: start, stop, step, length follow the header. */
PyObject *fg_range_part(PyObject *range, int part)
{
    return ((PyObject **)((char *)range + sizeof(PyObject)))[part];
}

/* funcobject.c: the callable follows the header. */
PyObject *fg_descr_func(PyObject *descriptor)
{
    return *(PyObject **)((char *)descriptor + sizeof(PyObject));
}

/* descrobject.c: getter, setter and deleter follow the header. */
PyObject *fg_property_part(PyObject *property, int part)
{
    PyObject *object = ((PyObject **)((char *)property + sizeof(PyObject)))[part];
    return object != Py_None ? object : NULL;
}

/* descrobject.c: the mapping follows the header. */
PyObject *fg_proxy_mapping(PyObject *proxy)
{
    return *(PyObject **)((char *)proxy + sizeof(PyObject));
}

/* Mirrors _abcmodule_state of Modules/_abc.c: a type, then the counter. What is found is compared with what the module says. */
const uint64_t *fg_abc_token_at(void)
{
    static const uint64_t *at;
    static int asked;
    if (asked)
        return at;
    asked = 1;
    PyObject *module = PyImport_ImportModule("_abc"); /* kept: the counter is in its state */
    PyObject *token = module != NULL ? PyObject_CallMethod(module, "get_cache_token", NULL) : NULL;
    PyModuleDef *def = module != NULL && PyModule_Check(module) ? PyModule_GetDef(module) : NULL;
    if (token != NULL && def != NULL && def->m_size == 16) {
        const uint64_t *state = PyModule_GetState(module);
        if (state != NULL && PyLong_AsUnsignedLongLong(token) == state[1])
            at = state + 1;
    }
    Py_XDECREF(token);
    PyErr_Clear();
    return at;
}

int fg_type_version_is(PyTypeObject *type, uint32_t version)
{
    return version != 0 && type->tp_version_tag == version && fg_type_tag_is_valid(type);
}

uint32_t fg_type_version_take(PyTypeObject *type)
{
    if (!fg_type_tag_is_valid(type)) {
        /* A lookup of any name makes the interpreter assign a tag; no descriptor is called by it. The class's namespace may have keys that it compares
         * by code of the user's, which may do anything to what is being read: such a class has no version here. */
        static PyObject *name;
        PyObject *unused;
        if (name == NULL && (name = PyUnicode_InternFromString("__doc__")) == NULL) {
            PyErr_Clear();
            return 0;
        }
        if (fg_type_find(type, name, PyObject_Hash(name), &unused) == FG_FIND_UNDECIDED)
            return 0;
        (void)_PyType_Lookup(type, name);
    }
    return fg_type_tag_is_valid(type) ? (uint32_t)type->tp_version_tag : 0;
}
