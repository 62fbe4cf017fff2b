/* Purpose:   values for C tests, written as Python expressions.
 * Ownership: the value is the caller's.
 */
#ifndef TESTS_EVAL_IN_H
#define TESTS_EVAL_IN_H

#include <Python.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* The value of an expression in a namespace; one that raises fails the test. */
static inline PyObject *eval_in(PyObject *names, const char *text)
{
    PyObject *value = PyRun_String(text, Py_eval_input, names, names);
    if (value == NULL)
        PyErr_Print();
    assert_non_null(value);
    return value;
}

#endif
