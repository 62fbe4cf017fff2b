/* How a description learns that something it holds weakly has died.
 *
 * The callback of the weak references is a small C object. The interpreter calls it from inside deallocation and garbage collection, so it only
 * stores: the description's flag, and whatever the entry's owner does in `invalidate` (a store, too). It answers None and allocates nothing: it is
 * called by vectorcall.
 */
#include "guards/guard_private.h"

typedef struct watch_object {
    PyObject_HEAD fg_desc *desc; /* NULL once the description is gone */
    vectorcallfunc vectorcall;
} watch_object;

static PyObject *watch_call(PyObject *self, PyObject *const *args, size_t n, PyObject *kwnames)
{
    (void)args, (void)n, (void)kwnames;
    fg_desc *desc = ((watch_object *)self)->desc;
    if (desc != NULL) {
        desc->dead = 1;
        if (desc->invalidate != NULL)
            desc->invalidate(desc->entry);
    }
    Py_RETURN_NONE;
}

static void watch_dealloc(PyObject *self)
{
    PyObject_Free(self);
}

static PyTypeObject watch_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegate._core._death_watch",
    .tp_basicsize = sizeof(watch_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_vectorcall_offset = offsetof(watch_object, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_dealloc = watch_dealloc,
};

PyObject *fg_watch_get(fg_desc *desc)
{
    if (desc->watch == NULL) {
        if (PyType_Ready(&watch_type) < 0)
            return NULL;
        watch_object *watch = PyObject_New(watch_object, &watch_type);
        if (watch == NULL)
            return NULL;
        watch->desc = desc;
        watch->vectorcall = watch_call;
        desc->watch = (PyObject *)watch;
    }
    return desc->watch;
}

int fg_watch_is(const PyObject *callback)
{
    return Py_TYPE(callback) == &watch_type;
}

void fg_watch_forget(fg_desc *desc)
{
    if (desc->watch != NULL)
        ((watch_object *)desc->watch)->desc = NULL;
    Py_CLEAR(desc->watch);
}
