/* Purpose:   read dictionaries, instance attributes and type lookups without running Python.
 * Model:     the storage is probed directly. A stored key that could only be told from the wanted one by calling its own `__eq__` makes the
 *            answer "undecided"; nothing here ever calls it.
 * Invariants: no function here but fg_abc_token_at, once, allocates, raises, runs Python or changes a reference count. Instance dicts are never
 *            materialised.
 * Threading: the GIL is held.
 * Ownership: keys and values given out are borrowed from the container.
 */
#ifndef FG_CPYTHON_DICT_H
#define FG_CPYTHON_DICT_H

#include "runtime/base/status.h"
#include <Python.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fg_find { FG_FIND_UNDECIDED = -1, FG_FIND_ABSENT = 0, FG_FIND_FOUND = 1 } fg_find;

/* 1 if it stands for a module that is imported when a name that it is bound to is read (since CPython 3.15): not what that read gives. */
int fg_is_lazy_import(const PyObject *object);

/* Equal as dict keys, for values of exact builtin types: FOUND equal, ABSENT different, UNDECIDED where a user's `__eq__` would decide. */
fg_find fg_key_equal(PyObject *key, PyObject *stored);

/* 1 if the object can be a key here: exact str, int, bool, None, float, complex, bytes, Ellipsis, a type whose metaclass keeps the builtin hash
 * and equality, or an exact tuple of those. */
int fg_key_is_plain(PyObject *key);

/* dict: a dict or an instance of a subclass (its own storage is read). hash is PyObject_Hash(key). */
fg_find fg_dict_find(PyObject *dict, PyObject *key, Py_hash_t hash, PyObject **value);
/* The same for a key that is an exact str. */
fg_find fg_dict_find_str(PyObject *dict, PyObject *key, Py_hash_t hash, PyObject **value);

/* Instance dict or inline values; name is an exact str. An object without either has no attribute: ABSENT. */
fg_find fg_attr_find(PyObject *object, PyObject *name, Py_hash_t hash, PyObject **value);

/* The type's own dict; NULL: it has none yet. */
FG_BORROWED PyObject *fg_type_dict(PyTypeObject *type);

/* First hit of name in the dicts of the type's method resolution order; no descriptor is called. */
fg_find fg_type_find(PyTypeObject *type, PyObject *name, Py_hash_t hash, PyObject **value);
/* The same by the interpreter's cache, which this fills; name is an exact str. */
fg_find fg_type_look(PyTypeObject *type, PyObject *name, PyObject **value);

/* Walk the items in the order that iteration gives (an OrderedDict's own order too). Start with *it zeroed; 0 past the end. */
typedef struct fg_dict_iter {
    Py_ssize_t at;
    void *node;
} fg_dict_iter;
int fg_dict_next(PyObject *dict, fg_dict_iter *it, PyObject **key, PyObject **value);

/* Member of a set, frozenset or an instance of a subclass (its own storage is read) that is equal to the key. hash is PyObject_Hash(key). */
fg_find fg_set_find(PyObject *set, PyObject *key, Py_hash_t hash, PyObject **member);

/* Walk the members of a set, frozenset or an instance of a subclass. Start with *at 0; 0 past the end. */
int fg_set_next(PyObject *set, Py_ssize_t *at, PyObject **member);

/* What a weak reference refers to, None if that is gone. */
static inline FG_BORROWED PyObject *fg_weakref_target(PyObject *reference)
{
    PyObject *target = ((PyWeakReference *)reference)->wr_object;
    return Py_REFCNT(target) > 0 ? target : Py_None;
}

/* start (0), stop (1) or step (2) of a range. */
FG_BORROWED PyObject *fg_range_part(PyObject *range, int part);

/* The callable in an exact staticmethod or classmethod, NULL if it has none yet; fget (0), fset (1) or fdel (2) of an exact property, NULL if it
 * has none. */
FG_BORROWED PyObject *fg_descr_func(PyObject *descriptor);
FG_BORROWED PyObject *fg_property_part(PyObject *property, int part);
/* What a mapping proxy shows. */
FG_BORROWED PyObject *fg_proxy_mapping(PyObject *proxy);

/* Where the count of registrations with abstract base classes is (abc.get_cache_token()); found at the first call, which may import; NULL: unknown. */
const uint64_t *fg_abc_token_at(void);

/* 1 if the type has a valid version tag equal to `version` (0 never is). */
int fg_type_version_is(PyTypeObject *type, uint32_t version);
/* The type's version tag, assigned where the interpreter allows; 0: none. */
uint32_t fg_type_version_take(PyTypeObject *type);

#ifdef __cplusplus
}
#endif

#endif
