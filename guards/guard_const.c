/* Constants by exact type and bits. */
#include "guards/guard_const.h"
#include "runtime/base/hash.h"
#include <string.h>

int fg_const_is_scalar(PyObject *object)
{
    return PyLong_CheckExact(object) || PyBool_Check(object) || PyFloat_CheckExact(object) || PyComplex_CheckExact(object) ||
           PyUnicode_CheckExact(object) || PyBytes_CheckExact(object);
}

static int str_same(PyObject *a, PyObject *b)
{
    Py_ssize_t n = PyUnicode_GET_LENGTH(a);
    return n == PyUnicode_GET_LENGTH(b) && PyUnicode_KIND(a) == PyUnicode_KIND(b) &&
           memcmp(PyUnicode_DATA(a), PyUnicode_DATA(b), (size_t)n * (size_t)PyUnicode_KIND(a)) == 0;
}

static int int_same(PyObject *a, PyObject *b)
{
    PyObject *same = PyLong_Type.tp_richcompare(a, b, Py_EQ);
    int answer = same == Py_True;
    Py_XDECREF(same);
    return answer;
}

static int complex_same(PyObject *a, PyObject *b)
{
    Py_complex left = PyComplex_AsCComplex(a), right = PyComplex_AsCComplex(b);
    return memcmp(&left, &right, sizeof left) == 0;
}

int fg_const_same_slow(PyObject *a, PyObject *b)
{
    if (PyUnicode_CheckExact(a))
        return str_same(a, b);
    if (PyLong_CheckExact(a))
        return int_same(a, b);
    if (PyFloat_CheckExact(a)) {
        double left = PyFloat_AS_DOUBLE(a), right = PyFloat_AS_DOUBLE(b);
        return memcmp(&left, &right, sizeof left) == 0;
    }
    if (PyBytes_CheckExact(a))
        return PyBytes_GET_SIZE(a) == PyBytes_GET_SIZE(b) &&
               memcmp(PyBytes_AS_STRING(a), PyBytes_AS_STRING(b), (size_t)PyBytes_GET_SIZE(a)) == 0;
    if (PyComplex_CheckExact(a))
        return complex_same(a, b);
    if (PyTuple_CheckExact(a)) {
        if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b))
            return 0;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); i++) {
            if (!fg_const_same(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i)))
                return 0;
        }
        return 1;
    }
    return 0;
}

uint64_t fg_const_hash(PyObject *object)
{
    uint64_t type = (uint64_t)(uintptr_t)Py_TYPE(object) >> 4;

    if (PyLong_CheckExact(object)) {
        int overflow = 0;
        long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
        return overflow ? type + (uint64_t)overflow : fg_hash_mix(type, (uint64_t)value);
    }
    if (PyUnicode_CheckExact(object)) {
        /* A str remembers its hash; one that was never hashed is hashed over its bytes each time by another route, which must agree: so the
         * interpreter's own hash is asked for, which is pure arithmetic here and cannot fail for an exact str. */
        return fg_hash_mix(type, (uint64_t)PyUnicode_Type.tp_hash(object));
    }
    if (PyFloat_CheckExact(object)) {
        double value = PyFloat_AS_DOUBLE(object);
        return fg_hash_bytes(&value, sizeof value, type);
    }
    if (PyComplex_CheckExact(object)) {
        Py_complex value = PyComplex_AsCComplex(object);
        return fg_hash_bytes(&value, sizeof value, type);
    }
    if (PyBytes_CheckExact(object))
        return fg_hash_bytes(PyBytes_AS_STRING(object), (size_t)PyBytes_GET_SIZE(object), type);
    if (PyTuple_CheckExact(object)) {
        uint64_t hash = type;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); i++)
            hash = fg_hash_mix(hash, fg_const_hash(PyTuple_GET_ITEM(object, i)));
        return hash;
    }
    return fg_hash_mix(7, (uint64_t)(uintptr_t)object >> 4);
}
