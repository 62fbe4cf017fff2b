/* Objects that instructions of CPython 3.14 and later versions find by a number. */
#include "runtime/cpython/frame.h"
#include "runtime/cpython/since314/since314.h"
#define Py_BUILD_CORE 1
#include <internal/pycore_ceval.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_object.h>
#include <internal/pycore_stackref.h>
#undef Py_BUILD_CORE

/* Mirrors _LOAD_SPECIAL of Python/bytecodes.c, and binds. */
static PyObject *special_exit(PyObject *manager)
{
    const _Py_SpecialMethod *special = &_Py_SpecialMethods[FG_SPECIAL_EXIT];
    _PyStackRef found[2] = {PyStackRef_NULL, PyStackRef_FromPyObjectNew(manager)};
    const int status = _PyObject_LookupSpecialMethod(special->name, found);
    if (status <= 0) {
        if (status == 0)
            PyErr_Format(PyExc_TypeError,
                         _PyEval_SpecialMethodCanSuggest(manager, FG_SPECIAL_EXIT) ? special->error_suggestion : special->error, manager);
        PyStackRef_XCLOSE(found[1]);
        return NULL;
    }
    PyObject *function = PyStackRef_AsPyObjectSteal(found[0]);
    if (PyStackRef_IsNull(found[1]))
        return function;
    PyObject *self = PyStackRef_AsPyObjectSteal(found[1]), *bound = PyMethod_New(function, self);
    Py_DECREF(function);
    Py_DECREF(self);
    return bound;
}

typedef struct fg_applied_thing {
    PyObject_HEAD PyObject *(*run)(PyObject *object);
} fg_applied_thing;

static PyTypeObject applied_type;

static PyObject *apply(PyObject *left, PyObject *right)
{
    return Py_IS_TYPE(left, &applied_type) ? ((fg_applied_thing *)left)->run(right) : Py_NewRef(Py_NotImplemented);
}

static PyNumberMethods applied_as_number = {.nb_matrix_multiply = apply};

static PyTypeObject applied_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegate._core.Applied",
    .tp_basicsize = sizeof(fg_applied_thing),
    .tp_as_number = &applied_as_number,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};

PyObject *fg_applied_object(fg_applied which)
{
    static PyObject *(*const runs[FG_N_APPLIED])(PyObject *) = {[FG_APPLIED_EXIT] = special_exit, [FG_APPLIED_ITER] = PyObject_GetIter};
    static PyObject *objects[FG_N_APPLIED]; /* live as long as the process */
    if (objects[which] != NULL)
        return objects[which];
    fg_applied_thing *made = PyType_Ready(&applied_type) < 0 ? NULL : PyObject_New(fg_applied_thing, &applied_type);
    if (made != NULL)
        made->run = runs[which];
    return objects[which] = (PyObject *)made;
}

/* AssertionError is none: what a failing `assert` does is not foreseen. */
PyObject *fg_common_object(int which)
{
    return which == FG_COMMON_ASSERTION_ERROR ? NULL : fg_thread_state()->interp->common_consts[which];
}
