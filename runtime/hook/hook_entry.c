#include "runtime/hook/hook_entry.h"
#include "guards/guard_program.h"
#include "runtime/base/alloc.h"
#include "runtime/hook/hook_config.h"

static void entry_free(fg_cache_entry *link)
{
    fg_entry *entry = (fg_entry *)link;
    FG_COUNT(HITS, entry->hits);
    /* Dropping objects may run anything, also with an exception set by who evicted us. */
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    fg_desc_free(entry->desc);
    fg_free(entry->straight);
    Py_XDECREF(entry->code);
    Py_XDECREF(entry->graphs);
    Py_XDECREF(entry->extra);
    fg_free(entry);
    PyErr_Restore(type, value, traceback);
}

fg_status fg_entry_new(fg_entry **out)
{
    fg_entry *entry = fg_calloc(1, sizeof *entry);
    *out = entry;
    if (entry == NULL)
        return FG_ERR_NOMEM;
    fg_cache_entry_init(&entry->link, FG_CACHE_LOCKED, entry_free);
    entry->frame_id = entry->entry_id = -1;
    return FG_OK;
}

size_t fg_entry_nbytes(const fg_entry *entry)
{
    return fg_block_bytes(entry, sizeof *entry) + (entry->desc == NULL ? 0 : fg_desc_nbytes(entry->desc)) + entry->program_bytes +
           (entry->straight == NULL ? 0 : fg_block_bytes(entry->straight, fg_straight_nbytes(entry->straight))) + entry->nbytes;
}

/* --- framegate._core.Entry --- */

typedef struct entry_object {
    PyObject_HEAD fg_entry *entry;
    FG_OWNED PyObject *backend;
} entry_object;

static fg_entry *entry_of(PyObject *self)
{
    return ((entry_object *)self)->entry;
}

PyObject *fg_entry_object_new(fg_entry *entry, PyObject *backend)
{
    entry_object *self = PyObject_New(entry_object, &fg_entry_object_type);
    if (self != NULL) {
        fg_entry_take(entry);
        self->entry = entry;
        self->backend = Py_NewRef(entry->graphs == NULL || backend == NULL ? Py_None : backend);
    }
    return (PyObject *)self;
}

fg_entry *fg_entry_object_get(PyObject *object)
{
    if (!Py_IS_TYPE(object, &fg_entry_object_type)) {
        PyErr_Format(PyExc_TypeError, "expected a framegate cache entry, not '%.200s'", Py_TYPE(object)->tp_name);
        return NULL;
    }
    return entry_of(object);
}

static void entry_object_dealloc(PyObject *self)
{
    fg_entry *entry = entry_of(self);
    Py_DECREF(((entry_object *)self)->backend);
    PyObject_Free(self);
    fg_entry_drop(entry);
}

static PyObject *compile_id_get(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromFormat("%d/%d", (int)entry_of(self)->frame_id, (int)entry_of(self)->entry_id);
}

static PyObject *entry_object_repr(PyObject *self)
{
    fg_entry *entry = entry_of(self);
    if (entry->code == NULL)
        return PyUnicode_FromFormat("<framegate entry %d/%d>", (int)entry->frame_id, (int)entry->entry_id);
    return PyUnicode_FromFormat("<framegate entry %d/%d of %U>", (int)entry->frame_id, (int)entry->entry_id, entry->code->co_name);
}

#define OBJECT_GETTER(FIELD)                                    \
    static PyObject *FIELD##_get(PyObject *self, void *closure) \
    {                                                           \
        (void)closure;                                          \
        PyObject *value = (PyObject *)entry_of(self)->FIELD;    \
        return Py_NewRef(value == NULL ? Py_None : value);      \
    }
OBJECT_GETTER(code)
OBJECT_GETTER(graphs)
OBJECT_GETTER(extra)

static PyObject *backend_get(PyObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(((entry_object *)self)->backend);
}

static PyObject *hits_get(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(entry_of(self)->hits);
}

static PyObject *nbytes_get(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromSize_t(fg_entry_nbytes(entry_of(self)));
}

static PyObject *valid_get(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(fg_cache_entry_is_valid(&entry_of(self)->link));
}

static PyObject *repeatable_get(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(entry_of(self)->repeatable);
}

static PyObject *n_guards_get(PyObject *self, void *closure)
{
    (void)closure;
    fg_desc *desc = entry_of(self)->desc;
    return PyLong_FromSsize_t(desc == NULL ? 0 : fg_desc_n_guards(desc));
}

static PyObject *entry_object_invalidate(PyObject *self, PyObject *unused)
{
    (void)unused;
    fg_entry_invalidate(entry_of(self));
    Py_RETURN_NONE;
}

static PyObject *entry_object_compare(PyObject *self, PyObject *other, int op)
{
    if ((op != Py_EQ && op != Py_NE) || !Py_IS_TYPE(other, &fg_entry_object_type))
        Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((entry_of(self) == entry_of(other)) == (op == Py_EQ));
}

static Py_hash_t entry_object_hash(PyObject *self)
{
    return (Py_hash_t)((uintptr_t)entry_of(self) >> 4);
}

static PyGetSetDef entry_object_getset[] = {
    {"compile_id", compile_id_get, NULL, "Which compilation made the entry: \"frame/entry\".", NULL},
    {"code", code_get, NULL, "The generated code object.", NULL},
    {"graphs", graphs_get, NULL, "The captured graphs, or None.", NULL},
    {"backend", backend_get, NULL, "The backend that compiled them, or None.", NULL},
    {"extra", extra_get, NULL, "A dict that tools may use, or None.", NULL},
    {"hits", hits_get, NULL, "Calls that this entry served.", NULL},
    {"nbytes", nbytes_get, NULL, "Bytes held by the entry and its guards.", NULL},
    {"n_guards", n_guards_get, NULL, "Number of guard conditions.", NULL},
    {"repeatable", repeatable_get, NULL, "True if its calls may be run again on copies of what they reach, and nobody notices.", NULL},
    {"valid", valid_get, NULL, "False once something that the entry depends on has died or it was reset.", NULL},
    {0},
};

static PyMethodDef entry_object_methods[] = {
    {"invalidate", entry_object_invalidate, METH_NOARGS, "Never use this entry again."},
    {0},
};

PyTypeObject fg_entry_object_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegate._core.Entry",
    .tp_basicsize = sizeof(entry_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = PyDoc_STR("One specialised version of a function."),
    .tp_dealloc = entry_object_dealloc,
    .tp_repr = entry_object_repr,
    .tp_richcompare = entry_object_compare,
    .tp_hash = entry_object_hash,
    .tp_getset = entry_object_getset,
    .tp_methods = entry_object_methods,
};
