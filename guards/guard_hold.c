/* What a description holds, and which way.
 *
 * Which way an object is held:
 *   a class made by a `class` statement or by C on the heap    weakly (dies with its module or function)
 *   a static type, a scalar, a module function of C            strongly: it is there for the life of the process in practice
 *   anything else with weak references                         weakly
 *   a callable of a static C type without them            strongly (ufuncs)
 *   a C object without them that refers to nothing mutable     strongly (dtypes, descriptors, code constants)
 *   a dtype that has an object of the user's (metadata, titles)    refused
 *   a container, cell, frame, instance without weak references refused: an entry must never keep it alive, and its address alone proves nothing
 */
#include "guards/adaptor_numpy.h"
#include "guards/guard_private.h"
#include "runtime/cpython/frame.h"
#include "runtime/cpython/iterators.h"

/* 1 for instances of classes made by a `class` statement: their deallocator is the interpreter's own for such classes, which any of them shows. */
static int is_python_class(PyTypeObject *type)
{
    static destructor dealloc;
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return 0;
    if (dealloc == NULL) {
        static PyType_Slot slots[] = {{0, NULL}};
        static PyType_Spec spec = {"framegate._core._plain", 0, 0, Py_TPFLAGS_DEFAULT, slots};
        PyObject *plain = PyType_FromSpec(&spec);
        if (plain == NULL) {
            PyErr_Clear();
            return 1;
        }
        dealloc = ((PyTypeObject *)plain)->tp_dealloc;
        Py_DECREF(plain);
    }
    return type->tp_dealloc == dealloc;
}

typedef enum hold_class { HOLD_REFUSED, HOLD_STRONG, HOLD_WEAK } hold_class;

static hold_class hold_classify(PyObject *object, int depth)
{
    PyTypeObject *type = Py_TYPE(object);

    if (PyType_Check(object))
        return ((PyTypeObject *)object)->tp_flags & Py_TPFLAGS_HEAPTYPE ? HOLD_WEAK : HOLD_STRONG;
    if (fg_const_is_scalar(object) || object == fg_interpreter_modules()) /* which lives as long as the interpreter */
        return HOLD_STRONG;
    if (PyCFunction_CheckExact(object)) {
        PyObject *self = PyCFunction_GET_SELF(object);
        if (self == NULL || PyModule_Check(self))
            return HOLD_STRONG;
    }
    if (PyTuple_CheckExact(object)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); i++) {
            if (depth > 64 || hold_classify(PyTuple_GET_ITEM(object, i), depth + 1) != HOLD_STRONG)
                return HOLD_REFUSED;
        }
        return HOLD_STRONG;
    }
    if (PyType_SUPPORTS_WEAKREFS(type))
        return HOLD_WEAK;
    if (PyList_Check(object) || PyDict_Check(object) || PyByteArray_Check(object) || PyAnySet_Check(object) || PyTuple_Check(object) ||
        is_python_class(type))
        return HOLD_REFUSED;
    const int dtype = fg_numpy_dtype_is_plain(object);
    if (dtype >= 0)
        return dtype ? HOLD_STRONG : HOLD_REFUSED;
    if (!PyType_IS_GC(type) || fg_is_descriptor(object) || fg_is_tuple_field(object)) /* number and text */
        return HOLD_STRONG;
    /* ufuncs and array functions: callables of C that refer to their documentation and to other functions of their library */
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) && type->tp_call != NULL)
        return HOLD_STRONG;
    return HOLD_REFUSED;
}

fg_status fg_hold_take(fg_desc *desc, PyObject *object, fg_hold_mode mode, int32_t *out)
{
    int strong = mode == FG_HOLD_OWNED || (mode == FG_HOLD_VALUE && !PyType_Check(object));
    hold_class how = strong ? HOLD_STRONG : hold_classify(object, 0);
    if (how == HOLD_REFUSED)
        return FG_ERR_UNSUPPORTED;
    if (fg_grow(&desc->holds, &desc->cap_holds, desc->n_holds + 1, sizeof *desc->holds) != FG_OK)
        return FG_ERR_NOMEM;

    fg_hold hold = {.raw = object};
    if (how == HOLD_STRONG) {
        hold.ref = Py_NewRef(object);
    } else {
        PyObject *watch = fg_watch_get(desc);
        hold.weak = 1;
        hold.ref = watch != NULL ? PyWeakref_NewRef(object, watch) : NULL;
        if (hold.ref == NULL)
            return FG_ERR_PYTHON;
    }
    *out = (int32_t)desc->n_holds;
    desc->holds[desc->n_holds++] = hold;
    return FG_OK;
}

fg_status fg_hold_unbound(fg_desc *desc, PyObject *label, int32_t *out)
{
    if (fg_grow(&desc->holds, &desc->cap_holds, desc->n_holds + 1, sizeof *desc->holds) != FG_OK)
        return FG_ERR_NOMEM;
    *out = (int32_t)desc->n_holds;
    desc->holds[desc->n_holds++] = (fg_hold){.label = Py_NewRef(label)};
    return FG_OK;
}

void fg_hold_pop_to(fg_desc *desc, uint32_t n)
{
    while (desc->n_holds > n) {
        /* Dropping may run the destructor of a user's object only for what was held strongly: the callable of an ACCEPTS, no other. */
        fg_hold hold = desc->holds[--desc->n_holds];
        Py_XDECREF(hold.ref);
        Py_XDECREF(hold.label);
    }
}
