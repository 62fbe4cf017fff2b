/* What dies with an object.
 *
 * Rules for a row: the type is exact, its deallocation is known to do nothing but give up the parts that are walked here. Weak references are looked
 * for before any row: their callbacks are the user's. One without a callback tells nobody, and no trace follows one.
 *
 * Classes never die of a lost reference (each is in its own MRO), and a module or its dict lives while sys.modules has it.
 */
#include "guards/guard_drop.h"

#include "guards/adaptor_numpy.h"
#include "guards/adaptor_torch.h"
#include "guards/guard_private.h"
#include "runtime/cpython/dict.h"
#include "runtime/cpython/frame.h"
#include <string.h>
#include <structmember.h>

enum { MAX_OBJECTS = 2000, MAX_DEPTH = 12 };

static destructor class_dealloc;    /* of every class that a class statement makes */
static destructor sequence_dealloc; /* of records such as sys.version_info and torch's pairs of results */
static PyTypeObject *collections[2], *text_iterator, *union_type;
static PyObject *name_key;
static Py_hash_t name_hash;

static PyType_Slot plain_slots[] = {{0, NULL}};
static PyType_Spec plain_spec = {
    .name = "framegate._core.plain_class", .basicsize = sizeof(PyObject), .flags = Py_TPFLAGS_DEFAULT, .slots = plain_slots};

fg_status fg_drop_init(void)
{
    if (name_key != NULL)
        return FG_OK;
    PyObject *plain = PyType_FromSpec(&plain_spec);
    if (plain == NULL)
        return FG_ERR_PYTHON;
    class_dealloc = ((PyTypeObject *)plain)->tp_dealloc;
    Py_DECREF(plain);
    PyObject *record = PySys_GetObject("version_info"), *module = PyImport_ImportModule("_collections");
    static const char *const names[] = {"deque", "defaultdict"};
    if (record == NULL || module == NULL)
        return FG_ERR_PYTHON;
    sequence_dealloc = Py_TYPE(record)->tp_dealloc;
    PyObject *text = PyUnicode_FromString("a"), *iterator = text != NULL ? PyObject_GetIter(text) : NULL;
    Py_XDECREF(text);
    if (iterator == NULL)
        return FG_ERR_PYTHON;
    text_iterator = Py_TYPE(iterator);
    Py_DECREF(iterator);
    PyObject *either = PyNumber_Or((PyObject *)&PyLong_Type, (PyObject *)&PyFloat_Type);
    if (either == NULL)
        return FG_ERR_PYTHON;
    union_type = Py_TYPE(either);
    Py_DECREF(either);
    for (int i = 0; i < 2; i++)
        if ((collections[i] = (PyTypeObject *)PyObject_GetAttrString(module, names[i])) == NULL)
            return FG_ERR_PYTHON;
    Py_DECREF(module);
    if ((name_key = PyUnicode_InternFromString("__name__")) == NULL)
        return FG_ERR_PYTHON;
    name_hash = PyObject_Hash(name_key);
    return FG_OK;
}

static int walk(PyObject *o, int depth, int *left);

static int maybe(PyObject *o, int depth, int *left)
{
    return o == NULL || fg_drop_is_trivial(o) || walk(o, depth, left);
}

static int walk_items(PyObject *const *items, Py_ssize_t n, int depth, int *left)
{
    if (n > *left)
        return 0;
    *left -= (int)n; /* also what is trivial takes time */
    for (Py_ssize_t i = 0; i < n; i++)
        if (!maybe(items[i], depth, left))
            return 0;
    return 1;
}

static int walk_dict(PyObject *dict, int depth, int *left)
{
    fg_dict_iter it = {0};
    PyObject *key, *value;
    if (PyDict_GET_SIZE(dict) > *left)
        return 0;
    *left -= (int)PyDict_GET_SIZE(dict);
    while (fg_dict_next(dict, &it, &key, &value))
        if (!maybe(key, depth, left) || !maybe(value, depth, left))
            return 0;
    return 1;
}

static int walk_set(PyObject *set, int depth, int *left)
{
    Py_ssize_t at = 0;
    PyObject *item;
    if (PySet_GET_SIZE(set) > *left)
        return 0;
    *left -= (int)PySet_GET_SIZE(set);
    while (fg_set_next(set, &at, &item))
        if (!maybe(item, depth, left))
            return 0;
    return 1;
}

/* The dict of a module that sys.modules has. */
static int is_module_dict(PyObject *dict)
{
    PyObject *name, *module, *modules = PyImport_GetModuleDict();
    return name_key != NULL && PyDict_CheckExact(dict) && modules != NULL && PyDict_CheckExact(modules) &&
           fg_dict_find(dict, name_key, name_hash, &name) == FG_FIND_FOUND && PyUnicode_CheckExact(name) &&
           fg_dict_find(modules, name, PyObject_Hash(name), &module) == FG_FIND_FOUND && PyModule_Check(module) &&
           PyModule_GetDict(module) == dict;
}

/* torch notes tensors in weak dicts of its own while it infers and compiles: what takes them out again is nothing to the user. */
static int is_torch_callback(PyObject *callback)
{
    PyObject *name;
    return PyFunction_Check(callback) && is_module_dict(((PyFunctionObject *)callback)->func_globals) &&
           fg_dict_find(((PyFunctionObject *)callback)->func_globals, name_key, name_hash, &name) == FG_FIND_FOUND &&
           PyUnicode_GET_LENGTH(name) > 6 && PyUnicode_KIND(name) == PyUnicode_1BYTE_KIND && memcmp(PyUnicode_DATA(name), "torch.", 6) == 0;
}

/* Somebody is called when the object is gone, and not only an entry of ours whose guards compare it. */
static int is_watched(const PyObject *list)
{
    for (const PyWeakReference *ref = (const PyWeakReference *)list; ref != NULL; ref = ref->wr_next)
        if (ref->wr_callback != NULL && !fg_watch_is(ref->wr_callback) && !is_torch_callback(ref->wr_callback))
            return 1;
    return 0;
}

/* A namespace with a function of its own keeps itself alive, like the dict of a module. */
static int is_lasting(PyObject *globals)
{
    enum { ENOUGH = 64 };
    fg_dict_iter it = {0};
    PyObject *key, *value;
    if (is_module_dict(globals))
        return 1;
    for (int i = 0; i < ENOUGH && PyDict_CheckExact(globals) && fg_dict_next(globals, &it, &key, &value); i++)
        if (PyFunction_Check(value) && ((PyFunctionObject *)value)->func_globals == globals)
            return 1;
    return 0;
}

static int walk_function(PyObject *o, int depth, int *left)
{
    const PyFunctionObject *f = (const PyFunctionObject *)o;
    return is_lasting(f->func_globals) && maybe(f->func_closure, depth, left) && maybe(f->func_defaults, depth, left) &&
           maybe(f->func_kwdefaults, depth, left) && maybe(f->func_dict, depth, left) && maybe(f->func_annotations, depth, left) &&
           maybe(f->func_doc, depth, left) && maybe(f->func_module, depth, left);
}

/* The function of a bound method mostly belongs to the object's class, which keeps it. */
static int walk_method(PyObject *o, int depth, int *left)
{
    PyObject *func = PyMethod_GET_FUNCTION(o), *self = PyMethod_GET_SELF(o), *found = NULL;
    if (PyFunction_Check(func) && PyUnicode_CheckExact(((PyFunctionObject *)func)->func_name)) {
        PyObject *name = ((PyFunctionObject *)func)->func_name;
        fg_type_find(Py_TYPE(self), name, PyObject_Hash(name), &found);
    }
    return (found == func || maybe(func, depth, left)) && maybe(self, depth, left);
}

static int walk_array(PyObject *o, int depth, int *left)
{
    const PyArrayObject_fields *array = (const PyArrayObject_fields *)o;
    int number = array->descr->type_num;
    return !is_watched(array->weakreflist) && (unsigned)number < FG_NUMPY_N_TYPES && number != NPY_OBJECT &&
           fg_numpy_descrs[number] != NULL && maybe(array->base, depth, left);
}

static int walk_attributes(PyObject *o, int depth, int *left)
{
    Py_ssize_t at = 0;
    PyObject *name, *value;
    if (!fg_type_has_instance_dict(Py_TYPE(o)))
        return 1;
    while (fg_instance_attr_next(o, &at, &name, &value))
        if (--*left < 0 || !maybe(value, depth, left))
            return 0;
    return 1;
}

typedef struct walk_state {
    int depth, *left;
} walk_state;

static int visit_part(PyObject *part, void *state)
{
    const walk_state *w = state;
    return --*w->left < 0 || !maybe(part, w->depth, w->left);
}

static int walk_holder(PyObject *o, int depth, int *left)
{
    walk_state w = {depth, left};
    return Py_TYPE(o)->tp_traverse != NULL && Py_TYPE(o)->tp_traverse(o, visit_part, &w) == 0;
}

/* Tensors and the operations of their history that are written in Python: hooks, and the last of these operations, are shown to the collector. Memory and
 * the rest of the history are the library's own. */
static int is_torch_base(PyTypeObject *type)
{
    static PyTypeObject *known; /* a static type of torch's */
    if (type == known)
        return 1;
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE)
        return 0;
    if (!fg_torch_type_is_family(type))
        return strcmp(type->tp_name, "torch._C._FunctionBase") == 0;
    known = type;
    return 1;
}

/* Made by a class statement; torch gives its classes another deallocation in some versions. */
static int is_class(PyTypeObject *type)
{
    return type->tp_dealloc == class_dealloc || ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) && fg_torch_type_is_family(type));
}

/* An instance of a class made by a class statement: its attributes, its slots, and what its builtin base keeps. */
static int walk_instance(PyObject *o, int depth, int *left)
{
    PyTypeObject *type = Py_TYPE(o);
    if (type->tp_finalize != NULL || type->tp_del != NULL || !walk_attributes(o, depth, left))
        return 0;
    for (; is_class(type); type = type->tp_base) {
        const PyMemberDef *member = (const PyMemberDef *)((const char *)type + Py_TYPE(type)->tp_basicsize);
        for (Py_ssize_t i = 0; i < Py_SIZE(type); i++, member++)
            if (member->type == T_OBJECT_EX && !(member->flags & READONLY) &&
                !maybe(*(PyObject **)((char *)o + member->offset), depth, left))
                return 0;
    }
    if (type == &PyBaseObject_Type || type == &PyLong_Type || type == &PyFloat_Type || type == &PyUnicode_Type || type == &PyBytes_Type)
        return 1;
    if (type == &PyDict_Type)
        return walk_dict(o, depth, left);
    if (type == &PyList_Type)
        return walk_items(((PyListObject *)o)->ob_item, Py_SIZE(o), depth, left);
    if (type == &PyTuple_Type)
        return walk_items(((PyTupleObject *)o)->ob_item, Py_SIZE(o), depth, left);
    if (type == &PySet_Type || type == &PyFrozenSet_Type)
        return walk_set(o, depth, left);
    return is_torch_base(type) && walk_holder(o, depth, left);
}

/* Builtin types whose end does nothing but give up what the collector's walk shows. */
static int is_plain_holder(const PyTypeObject *type)
{
    static PyTypeObject *const known[] = {
        &PyListIter_Type,      &PyTupleIter_Type, &PySetIter_Type,    &PyDictIterKey_Type, &PyDictIterItem_Type, &PyEnum_Type,
        &PyDictIterValue_Type, &PyZip_Type,       &PyMap_Type,        &PyFilter_Type,      &PyReversed_Type,     &PyDictKeys_Type,
        &PyDictValues_Type,    &PyDictItems_Type, &PyDictProxy_Type,  &PyUnicodeIter_Type, &PyStaticMethod_Type, &PyClassMethod_Type,
        &PyProperty_Type,      &PySuper_Type,     &PyListRevIter_Type};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (type == known[i])
            return 1;
    return type == text_iterator || type == union_type || type == collections[0] || type == collections[1] ||
           type->tp_dealloc == sequence_dealloc || type->tp_dealloc == PyTuple_Type.tp_dealloc;
}

static int walk(PyObject *o, int depth, int *left)
{
    PyTypeObject *type = Py_TYPE(o);
    if (fg_drop_is_trivial(o) || PyType_Check(o))
        return 1;
    if (++depth > MAX_DEPTH || --*left < 0)
        return 0;
    if (type == fg_numpy_array_type)
        return walk_array(o, depth, left);
    if (is_watched(fg_object_weakrefs(o)))
        return PyModule_Check(o) && is_module_dict(PyModule_GetDict(o));
    if (type == &PyList_Type)
        return walk_items(((PyListObject *)o)->ob_item, Py_SIZE(o), depth, left);
    if (type == &PyTuple_Type)
        return walk_items(((PyTupleObject *)o)->ob_item, Py_SIZE(o), depth, left);
    if (type == &PyDict_Type || type == &PyODict_Type)
        return walk_dict(o, depth, left) && walk_attributes(o, depth, left);
    if (type == &PySet_Type || type == &PyFrozenSet_Type)
        return walk_set(o, depth, left);
    if (type == &PySlice_Type) {
        const PySliceObject *s = (const PySliceObject *)o;
        return maybe(s->start, depth, left) && maybe(s->stop, depth, left) && maybe(s->step, depth, left);
    }
    if (type == &PyMethod_Type)
        return walk_method(o, depth, left);
    if (type == &PyCFunction_Type)
        return maybe(PyCFunction_GET_SELF(o), depth, left);
    if (type == &PyCell_Type)
        return maybe(PyCell_GET(o), depth, left);
    if (type == &PyFunction_Type)
        return walk_function(o, depth, left);
    if (PyModule_Check(o))
        return is_module_dict(PyModule_GetDict(o));
    if (is_class(type))
        return walk_instance(o, depth, left);
    if (type->tp_finalize != NULL || type->tp_del != NULL)
        return 0;
    if (is_plain_holder(type))
        return walk_holder(o, depth, left);
    /* what the collector need not see holds no objects that could reach a user's, but for records of NumPy */
    return !(type->tp_flags & (Py_TPFLAGS_HEAPTYPE | Py_TPFLAGS_HAVE_GC)) && Py_TYPE(type) == &PyType_Type &&
           !(fg_numpy_array_type != NULL && PyType_IsSubtype(type, &PyVoidArrType_Type));
}

int fg_drop_is_quiet(PyObject *object)
{
    int left = MAX_OBJECTS;
    return walk(object, 0, &left);
}
