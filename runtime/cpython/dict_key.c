/* Equality of dict keys among exact builtin types, in which no user code can take part. */
#include "runtime/cpython/dict.h"
#include <math.h>
#include <string.h>

static int is_number(PyObject *object)
{
    return PyLong_CheckExact(object) || PyBool_Check(object) || PyFloat_CheckExact(object) || PyComplex_CheckExact(object);
}

/* A double as the exact integer it is, when both sides can be held in 53 bits; 0 if the answer needs more than that. */
static fg_find int_equals_double(PyObject *integer, double real)
{
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(integer, &overflow);
    const long long limit = 1LL << 53;

    if (!isfinite(real))
        return FG_FIND_ABSENT;
    if (overflow || value > limit || value < -limit)
        return fabs(real) < (double)limit ? FG_FIND_ABSENT : FG_FIND_UNDECIDED;
    return (double)value == real ? FG_FIND_FOUND : FG_FIND_ABSENT;
}

static fg_find numbers_equal(PyObject *a, PyObject *b)
{
    if (PyComplex_CheckExact(a) || PyComplex_CheckExact(b)) {
        if (!PyComplex_CheckExact(a)) {
            PyObject *swap = a;
            a = b;
            b = swap;
        }
        Py_complex left = PyComplex_AsCComplex(a);
        if (PyComplex_CheckExact(b)) {
            Py_complex right = PyComplex_AsCComplex(b);
            return left.real == right.real && left.imag == right.imag ? FG_FIND_FOUND : FG_FIND_ABSENT;
        }
        if (left.imag != 0.0)
            return FG_FIND_ABSENT;
        if (PyFloat_CheckExact(b))
            return left.real == PyFloat_AS_DOUBLE(b) ? FG_FIND_FOUND : FG_FIND_ABSENT;
        return int_equals_double(b, left.real);
    }
    if (PyFloat_CheckExact(a))
        return PyFloat_CheckExact(b) ? (PyFloat_AS_DOUBLE(a) == PyFloat_AS_DOUBLE(b) ? FG_FIND_FOUND : FG_FIND_ABSENT)
                                     : int_equals_double(b, PyFloat_AS_DOUBLE(a));
    if (PyFloat_CheckExact(b))
        return int_equals_double(a, PyFloat_AS_DOUBLE(b));
    /* Two integers: the builtin comparison reads digits only and gives an immortal-like singleton. */
    PyObject *same = PyLong_Type.tp_richcompare(a, b, Py_EQ);
    if (same == NULL)
        return FG_FIND_UNDECIDED;
    fg_find answer = same == Py_True ? FG_FIND_FOUND : FG_FIND_ABSENT;
    Py_DECREF(same);
    return answer;
}

static int str_same(PyObject *a, PyObject *b)
{
    Py_ssize_t n = PyUnicode_GET_LENGTH(a);
    if (n != PyUnicode_GET_LENGTH(b))
        return 0;
    unsigned kind = (unsigned)PyUnicode_KIND(a);
    if (kind != (unsigned)PyUnicode_KIND(b))
        return 0;
    return memcmp(PyUnicode_DATA(a), PyUnicode_DATA(b), (size_t)n * kind) == 0;
}

fg_find fg_key_equal(PyObject *key, PyObject *stored)
{
    if (key == stored)
        return FG_FIND_FOUND;
    if (PyUnicode_CheckExact(key) && PyUnicode_CheckExact(stored)) {
        if (!PyUnicode_IS_READY(key) || !PyUnicode_IS_READY(stored))
            return FG_FIND_UNDECIDED;
        return str_same(key, stored) ? FG_FIND_FOUND : FG_FIND_ABSENT;
    }
    if (is_number(stored))
        return is_number(key) ? numbers_equal(key, stored) : FG_FIND_ABSENT;
    if (PyUnicode_CheckExact(stored))
        return FG_FIND_ABSENT;
    if (PyBytes_CheckExact(stored)) {
        if (!PyBytes_CheckExact(key) || PyBytes_GET_SIZE(key) != PyBytes_GET_SIZE(stored))
            return FG_FIND_ABSENT;
        return memcmp(PyBytes_AS_STRING(key), PyBytes_AS_STRING(stored), (size_t)PyBytes_GET_SIZE(key)) == 0 ? FG_FIND_FOUND
                                                                                                             : FG_FIND_ABSENT;
    }
    if (PyTuple_CheckExact(stored)) {
        if (!PyTuple_CheckExact(key))
            return FG_FIND_ABSENT;
        Py_ssize_t n = PyTuple_GET_SIZE(key);
        /* Comparison of tuples stops at the first pair that differs, so an undecided pair may not be passed over. Tuples of different lengths
         * are walked too before they differ, which would call the user's code: undecided then. */
        Py_ssize_t m = PyTuple_GET_SIZE(stored);
        for (Py_ssize_t i = 0; i < n && i < m; i++) {
            fg_find item = fg_key_equal(PyTuple_GET_ITEM(key, i), PyTuple_GET_ITEM(stored, i));
            if (item != FG_FIND_FOUND)
                return item;
        }
        return n == m ? FG_FIND_FOUND : FG_FIND_ABSENT;
    }
    /* Identity is the whole of equality for a type that has object's own comparison; the wanted key's builtin type declines foreign ones. */
    if (Py_TYPE(stored)->tp_richcompare == PyBaseObject_Type.tp_richcompare || Py_TYPE(stored)->tp_richcompare == NULL)
        return FG_FIND_ABSENT;
    return FG_FIND_UNDECIDED;
}

int fg_key_is_plain(PyObject *key)
{
    if (PyUnicode_CheckExact(key) || is_number(key) || PyBytes_CheckExact(key) || key == Py_None || key == Py_Ellipsis)
        return 1;
    if (PyType_Check(key))
        return Py_TYPE(key)->tp_hash == PyType_Type.tp_hash && Py_TYPE(key)->tp_richcompare == PyType_Type.tp_richcompare;
    if (PyTuple_CheckExact(key)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++) {
            if (!fg_key_is_plain(PyTuple_GET_ITEM(key, i)))
                return 0;
        }
        return 1;
    }
    return 0;
}
