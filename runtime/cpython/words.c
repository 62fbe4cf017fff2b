/* Words that prove reads.
 *
 * Every change of a dict gives it a version that no dict has had before (ma_version_tag, up to 3.13), and a change of a type takes its tag away or gives it
 * another; so equal versions mean: the same dict or type, alive all the time, with the same contents. Where dicts are watched the list has no words of
 * them at all.
 *
 * Without the version, an entry stands for itself: the keys object, the word of its header that has its size and kind (so that the entry lies
 * inside it), the entry's key and value. An instance's values are at fixed places: the class's shared key table only grows, so a name that is not
 * in it stays absent while the number of its entries is the same.
 *
 * Mirrors, of CPython 3.11 to 3.13: dictobject.c (DICT_NEXT_VERSION at each store, insert_into_dictkeys), typeobject.c (assign_version_tag, PyType_Modified),
 * object.h (an instance has either inline values or a dict; since 3.13 a dict may share its values, but then they are still where they were).
 */
#define Py_BUILD_CORE 1
#include "runtime/cpython/words.h"

#include "runtime/cpython/dict_watch.h"
#include "runtime/cpython/object_storage.h"
#include <internal/pycore_moduleobject.h>

_Static_assert(sizeof(void *) == 8 && sizeof(Py_ssize_t) == 8, "words are eight bytes");
_Static_assert(offsetof(PyTypeObject, tp_version_tag) % 8 == 0 &&
                   offsetof(PyTypeObject, tp_finalize) == offsetof(PyTypeObject, tp_version_tag) + 8,
               "the tag of a type is alone in its word");

/* dk_refcnt, then three bytes that are read with the end of it, padding, dk_version, which is read with the start of dk_usable */
_Static_assert(offsetof(PyDictKeysObject, dk_log2_size) == 8 && offsetof(PyDictKeysObject, dk_kind) == 10 &&
                   offsetof(PyDictKeysObject, dk_version) == 12 && offsetof(PyDictKeysObject, dk_usable) == 16,
               "words of a dict's keys have no padding");

#define LOOK_BACK 64

void fg_words_add(fg_words *words, const void *at)
{
    uint32_t first = words->n > LOOK_BACK ? words->n - LOOK_BACK : 0;
    for (uint32_t i = words->n; i-- > first;) {
        if (words->items[i].at == at)
            return;
    }
    if (words->n == FG_WORDS_ROOM) {
        words->overflow = 1;
        return;
    }
    words->items[words->n++] = (fg_word){at, fg_word_now(at)};
}

/* From here on it has been alive, with the same contents: the words of it that are there already say nothing more. */
static int is_watched(const fg_words *words, PyObject *object)
{
    for (uint32_t i = words->n_dicts; i-- > 0;) {
        if (words->dicts[i].dict == object)
            return 1;
    }
    return 0;
}

static void remove_words_of(fg_words *words, PyObject *dict)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < words->n; i++) {
        const uintptr_t offset = (uintptr_t)words->items[i].at - (uintptr_t)dict;
        if (offset >= sizeof(PyDictObject))
            words->items[kept++] = words->items[i];
    }
    words->n = kept;
}

static int watch(fg_words *words, PyObject *object)
{
    if (words->loudness == NULL || !fg_dict_is_watchable(object))
        return is_watched(words, object);
    for (uint32_t i = words->n_dicts; i-- > 0;) {
        if (words->dicts[i].dict == object && words->dicts[i].loudness == words->loudness)
            return 1;
    }
    if (words->n_dicts == FG_WORDS_DICTS)
        return is_watched(words, object);
    remove_words_of(words, object);
    words->dicts[words->n_dicts].dict = object;
    words->dicts[words->n_dicts++].loudness = words->loudness;
    return 1;
}

void fg_words_contents(fg_words *words, PyObject *object)
{
    (void)watch(words, object);
}

fg_proof fg_words_type_version(fg_words *words, PyTypeObject *type)
{
    if (fg_type_version_take(type) == 0)
        return FG_PROOF_NONE;
    fg_words_add(words, &type->tp_version_tag);
    fg_words_add(words, &type->tp_flags);
    return FG_PROOF_STEADY;
}

fg_proof fg_words_type(fg_words *words, PyObject *object, int steady, int known)
{
    PyTypeObject *type = Py_TYPE(object);
    int heap = (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0;

    if (steady && !heap && !PyModule_Check(object))
        return FG_PROOF_STEADY; /* such an object never gets another class */
    if (is_watched(words, object))
        return FG_PROOF_STEADY;
    fg_words_add(words, &object->ob_type);
    if (!heap || known)
        return FG_PROOF_OBJECT;
    return fg_words_type_version(words, type);
}

/* The version without its lowest byte, which has the marks of who watches the dict and says nothing about it, and with the first byte of the word behind
 * it. */
static const void *past_marks(const uint64_t *version)
{
    return PY_VERSION_HEX < 0x030c0000 ? (const char *)version : (const char *)version + 1;
}

fg_proof fg_words_dict_version(fg_words *words, PyObject *dict)
{
    if (watch(words, dict))
        return FG_PROOF_STEADY;
    const uint64_t *version = fg_dict_version_at((PyDictObject *)dict);
    if (version == NULL)
        return FG_PROOF_NONE;
    fg_words_add(words, past_marks(version));
    return FG_PROOF_STEADY;
}

/* Entry of an exact str in a table of strings; -1: not there. The probe counts on interned names: one that is only equal is found, too. */
static Py_ssize_t entry_of(PyDictKeysObject *keys, PyObject *name)
{
    const PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(keys);
    for (Py_ssize_t i = 0; i < keys->dk_nentries; i++) {
        PyObject *stored = entries[i].me_key;
        if (stored == name || (stored != NULL && fg_key_equal(name, stored) == FG_FIND_FOUND))
            return i;
    }
    return -1;
}

/* A name in a key table shared by the instances of a class, values in an array of the instance's own. */
static fg_proof shared_entry(fg_words *words, PyDictKeysObject *keys, PyDictValues *values, PyObject *name)
{
    Py_ssize_t index = entry_of(keys, name);
    if (index >= 0)
        fg_words_add(words, &values->values[index]);
    else
        fg_words_add(words, &keys->dk_nentries);
    return FG_PROOF_OBJECT;
}

fg_proof fg_words_dict(fg_words *words, PyObject *object, PyObject *key, Py_hash_t hash, int fine)
{
    PyDictObject *dict = (PyDictObject *)object;
    PyDictKeysObject *keys = dict->ma_keys;
    PyObject *value;

    if (watch(words, object))
        return FG_PROOF_STEADY;
    if (!fine && fg_dict_version_at(dict) != NULL)
        return fg_words_dict_version(words, object);
    if (keys->dk_kind == DICT_KEYS_GENERAL || !PyUnicode_CheckExact(key))
        return FG_PROOF_NONE;
    if (dict->ma_values != NULL) {
        /* The table may be freed with its class: only the whole tells that it has not been. */
        return FG_PROOF_NONE;
    }
    Py_ssize_t index = entry_of(keys, key);
    fg_words_add(words, &dict->ma_keys);
    fg_words_add(words, &dict->ma_values);
    fg_words_add_short(words, &keys->dk_log2_size, 3); /* and the kind */
    if (index < 0 || fg_dict_find(object, key, hash, &value) != FG_FIND_FOUND) {
        fg_words_add(words, &keys->dk_version); /* and how many more fit: a new key changes both */
        return keys->dk_version != 0 ? FG_PROOF_OBJECT : FG_PROOF_NONE;
    }
    if (DK_UNICODE_ENTRIES(keys)[index].me_key != key)
        return FG_PROOF_NONE; /* nobody keeps that twin of the name alive: its address says nothing later */
    fg_words_add(words, &DK_UNICODE_ENTRIES(keys)[index].me_key);
    fg_words_add(words, &DK_UNICODE_ENTRIES(keys)[index].me_value);
    return FG_PROOF_OBJECT;
}

/* The words that say which storage an object has. */
static void add_storage(fg_words *words, PyObject *object, int has_values, int has_dict)
{
#if PY_VERSION_HEX >> 16 == 0x030b
    if (!has_values)
        fg_words_add(words, _PyObject_ManagedDictPointer(object));
    if (has_values || !has_dict)
        fg_words_add(words, _PyObject_ValuesPointer(object));
#elif PY_VERSION_HEX >> 16 == 0x030c
    (void)has_values, (void)has_dict;
    fg_words_add(words, _PyObject_DictOrValuesPointer(object));
#else
    (void)has_dict;
    if (Py_TYPE(object)->tp_flags & Py_TPFLAGS_INLINE_VALUES)
        fg_words_add(words, _PyObject_InlineValues(object)); /* their header says whether they are valid */
    if (!has_values)
        fg_words_add(words, _PyObject_ManagedDictPointer(object));
#endif
}

fg_proof fg_words_attr(fg_words *words, PyObject *object, PyObject *name, Py_hash_t hash, int fine)
{
    PyTypeObject *type = Py_TYPE(object);

    if (!(type->tp_flags & Py_TPFLAGS_MANAGED_DICT)) {
        Py_ssize_t offset = type->tp_dictoffset;
        if (offset == 0)
            return FG_PROOF_STEADY;
        if (offset < 0)
            return FG_PROOF_NONE; /* lies behind the items of a var-sized object */
        PyObject **slot = (PyObject **)((char *)object + offset);
        fg_words_add(words, slot);
        return *slot == NULL ? FG_PROOF_OBJECT : fg_words_dict(words, *slot, name, hash, fine);
    }
    PyObject *stored;
    PyDictValues *inline_values = fg_managed_values(object, &stored);
    add_storage(words, object, inline_values != NULL, stored != NULL);
    if (inline_values != NULL)
        return shared_entry(words, ((PyHeapTypeObject *)type)->ht_cached_keys, inline_values, name);
    if (stored == NULL)
        return FG_PROOF_OBJECT;
    PyDictObject *dict = (PyDictObject *)stored;
    PyDictKeysObject *cached = ((PyHeapTypeObject *)type)->ht_cached_keys;
    if (PY_VERSION_HEX < 0x030d0000 && fine && dict->ma_values != NULL && dict->ma_keys == cached) {
        /* Made from inline values and still of that shape: the class keeps the table. */
        fg_words_add(words, &dict->ma_keys);
        fg_words_add(words, &dict->ma_values);
        return shared_entry(words, cached, dict->ma_values, name);
    }
    return fg_words_dict(words, stored, name, hash, fine);
}

fg_proof fg_words_module_dict(fg_words *words, PyObject *module)
{
    fg_words_add(words, &((PyModuleObject *)module)->md_dict);
    return FG_PROOF_OBJECT;
}

fg_proof fg_words_element(fg_words *words, PyObject *sequence, Py_ssize_t index)
{
    Py_ssize_t size = Py_SIZE(sequence);
    fg_words_add(words, &((PyVarObject *)sequence)->ob_size);
    if (index < 0)
        index += size;
    if (index < 0 || index >= size)
        return FG_PROOF_OBJECT;
    if (PyList_Check(sequence)) {
        fg_words_add(words, &((PyListObject *)sequence)->ob_item);
        fg_words_add(words, &((PyListObject *)sequence)->ob_item[index]);
    } else {
        fg_words_add(words, &((PyTupleObject *)sequence)->ob_item[index]);
    }
    return FG_PROOF_OBJECT;
}

fg_proof fg_words_length(fg_words *words, PyObject *container)
{
    if (is_watched(words, container))
        return FG_PROOF_STEADY;
    if (PyDict_Check(container))
        fg_words_add(words, &((PyDictObject *)container)->ma_used);
    else if (PyAnySet_Check(container))
        fg_words_add(words, &((PySetObject *)container)->used);
    else if (PyList_Check(container) || PyTuple_Check(container) || PyBytes_Check(container))
        fg_words_add(words, &((PyVarObject *)container)->ob_size);
    else
        return FG_PROOF_NONE;
    return FG_PROOF_OBJECT;
}
