/* Purpose:   tell whether an object could go away without anything of the user's being run.
 * Model:     walks what would die with the object: exact builtin values and containers, arrays, instances of plain classes. A finalizer, a weak
 *            reference, or an object whose deallocation we do not know anywhere in it makes the answer no. So does a walk that gets too long.
 * Invariants: pure: reads memory only. A yes holds for every way in which the parts may survive; no is always allowed.
 * Threading: the GIL is held.
 * Ownership: nothing is taken.
 */
#ifndef FG_GUARD_DROP_H
#define FG_GUARD_DROP_H

#include "guards/adaptor_numpy.h"
#include "runtime/base/status.h"
#include <Python.h>

/* Once per process, before any question. */
fg_status fg_drop_init(void);

/* 1 if losing the object, even its last reference, runs no code of the user's. */
int fg_drop_is_quiet(FG_BORROWED PyObject *object);

/* 1 for values of the types that are quiet whatever they hold: None, numbers, text. */
static inline int fg_drop_is_trivial(const PyObject *object)
{
    const PyTypeObject *type = Py_TYPE(object);
    return object == Py_None || type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type || type == &PyUnicode_Type ||
           type == &PyBytes_Type || type == &PyComplex_Type;
}

/* The same as fg_drop_is_quiet, in line for what is stored most. */
static inline int fg_drop_passes(PyObject *object)
{
    if (Py_TYPE(object) == fg_numpy_array_type) {
        const PyArrayObject_fields *array = (const PyArrayObject_fields *)object;
        int number = array->descr->type_num;
        if (array->weakreflist == NULL && array->base == NULL && number >= NPY_BOOL && number < NPY_OBJECT)
            return 1;
    }
    return fg_drop_is_trivial(object) || fg_drop_is_quiet(object);
}

#endif
