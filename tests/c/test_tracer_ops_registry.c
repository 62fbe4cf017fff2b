/* The registry of operations: keys, bases, replacement, growth, signatures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tracer/ops_registry.h"

static PyObject *text(const char *s)
{
    PyObject *o = PyUnicode_FromString(s);
    assert_non_null(o);
    return o;
}

static PyObject *builtin(const char *name)
{
    PyObject *o = PyDict_GetItemString(PyEval_GetBuiltins(), name);
    assert_non_null(o);
    return o;
}

static void unknown_callable_has_no_row(void **state)
{
    (void)state;
    assert_null(fg_op_find(builtin("print")));
    assert_null(fg_op_find(NULL));
    assert_false(PyErr_Occurred());
}

static void a_registered_callable_is_found_and_can_be_replaced_and_forgotten(void **state)
{
    (void)state;
    PyObject *name = text("builtins.abs");
    assert_int_equal(fg_op_register(builtin("abs"), NULL, name, FG_OPF_SCALARS, FG_RAISES_METADATA, FG_RESULT_TENSOR, 0), FG_OK);
    const fg_op_row *first = fg_op_find(builtin("abs"));
    assert_non_null(first);
    assert_int_equal(first->flags, FG_OPF_SCALARS);
    assert_int_equal(fg_op_register(builtin("abs"), NULL, name, 0, FG_RAISES_DATA, FG_RESULT_TENSOR, 0), FG_OK);
    assert_int_equal(fg_op_find(builtin("abs"))->raises, FG_RAISES_DATA);
    assert_int_equal(first->raises, FG_RAISES_METADATA); /* an old row stays readable */
    fg_op_forget(builtin("abs"));
    assert_null(fg_op_find(builtin("abs")));
    Py_DECREF(name);
}

static void members_are_found_on_the_exact_type_and_its_registered_base_only(void **state)
{
    (void)state;
    PyObject *name = text("int.real"), *key = text("real"), *other = text("imag");
    assert_int_equal(fg_op_register(NULL, &PyLong_Type, name, FG_OPF_VIEW, FG_RAISES_NEVER, FG_RESULT_TENSOR, 1), FG_OK);
    assert_non_null(fg_op_find_member(&PyLong_Type, key));
    assert_null(fg_op_find_member(&PyLong_Type, other));
    assert_null(fg_op_find_member(&PyBool_Type, key));
    assert_int_equal(fg_op_register_base(&PyBool_Type, &PyLong_Type), FG_OK);
    assert_ptr_equal(fg_op_find_member(&PyBool_Type, key), fg_op_find_member(&PyLong_Type, key));
    assert_int_equal(fg_op_register_base(&PyLong_Type, &PyBool_Type), FG_ERR_INVALID);
    assert_int_equal(fg_op_register_base(&PyLong_Type, &PyLong_Type), FG_ERR_INVALID);
    Py_DECREF(name);
    Py_DECREF(key);
    Py_DECREF(other);
}

static void bad_rows_are_refused(void **state)
{
    (void)state;
    PyObject *name = text("x");
    assert_int_equal(fg_op_register(NULL, NULL, name, 0, 0, 0, 0), FG_ERR_INVALID);
    assert_int_equal(fg_op_register(builtin("abs"), &PyLong_Type, name, 0, 0, 0, 0), FG_ERR_INVALID);
    assert_int_equal(fg_op_register(builtin("abs"), NULL, name, 1u << 30, 0, 0, 0), FG_ERR_INVALID);
    assert_int_equal(fg_op_register(builtin("abs"), NULL, name, 0, 9, 0, 0), FG_ERR_INVALID);
    assert_int_equal(fg_op_register(builtin("abs"), NULL, name, 0, 0, 77, 0), FG_ERR_INVALID);
    Py_DECREF(name);
}

static void the_tables_grow(void **state)
{
    (void)state;
    enum { N = 5000 };
    static PyObject *functions[N];
    PyObject *name = text("made.up");
    for (int i = 0; i < N; i++) {
        functions[i] = PyCFunction_New(((PyCFunctionObject *)builtin("abs"))->m_ml, Py_None);
        assert_non_null(functions[i]);
        assert_int_equal(fg_op_register(functions[i], NULL, name, (uint32_t)i & 15, FG_RAISES_DATA, FG_RESULT_TENSOR, 0), FG_OK);
    }
    for (int i = 0; i < N; i++)
        assert_int_equal(fg_op_find(functions[i])->flags, i & 15);
    for (int i = 0; i < N; i++)
        Py_DECREF(functions[i]);
    Py_DECREF(name);
}

static void signatures_give_roles_by_place_and_by_name(void **state)
{
    (void)state;
    PyObject *name = text("s"), *sig = text("a b / axis: out> copy=True mode' size+ in_place? stats! | keep: extra");
    assert_int_equal(fg_op_register_with(builtin("min"), NULL, name, 0, FG_RAISES_DATA, FG_RESULT_TENSOR, 0, sig), FG_OK);
    const fg_op_row *row = fg_op_find(builtin("min"));
    static const fg_op_role expected[] = {FG_ROLE_OPERAND, FG_ROLE_OPERAND,  FG_ROLE_CONSTANT, FG_ROLE_OUT,     FG_ROLE_FIXED,
                                          FG_ROLE_TEXT,    FG_ROLE_REQUIRED, FG_ROLE_INPLACE,  FG_ROLE_WRITTEN, FG_ROLE_UNKNOWN};
    for (Py_ssize_t i = 0; i < 10; i++)
        assert_int_equal(fg_op_role_get(row, i, NULL), expected[i]);
    PyObject *key = text("out");
    assert_int_equal(fg_op_role_get(row, -1, key), FG_ROLE_OUT);
    Py_SETREF(key, text("a")); /* positional only */
    assert_int_equal(fg_op_role_get(row, -1, key), FG_ROLE_UNKNOWN);
    Py_SETREF(key, text("keep"));
    assert_int_equal(fg_op_role_get(row, -1, key), FG_ROLE_CONSTANT);
    Py_SETREF(key, text("copy"));
    assert_ptr_equal(fg_op_param_find(row, -1, key)->value, Py_True);
    Py_DECREF(key);
    Py_DECREF(sig);
    Py_DECREF(name);
}

static void rest_and_bad_signature_texts(void **state)
{
    (void)state;
    const fg_op_signature *signature = NULL, *again = NULL;
    PyObject *good = text("self *shape: | order:");
    assert_int_equal(fg_op_signature_parse(good, &signature), FG_OK);
    assert_int_equal(fg_op_signature_parse(good, &again), FG_OK);
    assert_ptr_equal(signature, again);
    fg_op_row row = {.signature = signature};
    assert_int_equal(fg_op_role_get(&row, 50, NULL), FG_ROLE_CONSTANT);
    static const char *const bad[] = {"a%", "a::", "=True", "a=Maybe", "*", ":"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        PyObject *o = text(bad[i]);
        assert_int_equal(fg_op_signature_parse(o, &again), FG_ERR_INVALID);
        Py_DECREF(o);
    }
    Py_DECREF(good);
}

static int g_calls;
static PyObject *late_callback(PyObject *self, PyObject *none)
{
    (void)self;
    (void)none;
    g_calls++;
    return PyBool_FromLong(g_calls == 2);
}
static PyMethodDef LATE = {"late", late_callback, METH_NOARGS, NULL};

static void late_rows_are_asked_for_until_they_are_there_and_keep_a_pending_exception(void **state)
{
    (void)state;
    PyObject *callback = PyCFunction_New(&LATE, NULL), *sys_name = text("sys"), *absent = text("no_such_module_at_all");
    assert_int_equal(fg_op_register_late(absent, callback), FG_OK);
    assert_int_equal(fg_op_register_late(sys_name, callback), FG_OK);
    PyErr_SetString(PyExc_KeyError, "mine");
    for (int i = 0; i < 4; i++)
        assert_null(fg_op_find(builtin("print")));
    assert_true(PyErr_ExceptionMatches(PyExc_KeyError));
    PyErr_Clear();
    assert_int_equal(g_calls, 2);
    Py_DECREF(callback);
    Py_DECREF(sys_name);
    Py_DECREF(absent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_callable_has_no_row),
        cmocka_unit_test(a_registered_callable_is_found_and_can_be_replaced_and_forgotten),
        cmocka_unit_test(members_are_found_on_the_exact_type_and_its_registered_base_only),
        cmocka_unit_test(bad_rows_are_refused),
        cmocka_unit_test(the_tables_grow),
        cmocka_unit_test(signatures_give_roles_by_place_and_by_name),
        cmocka_unit_test(rest_and_bad_signature_texts),
        cmocka_unit_test(late_rows_are_asked_for_until_they_are_there_and_keep_a_pending_exception),
    };
    Py_Initialize();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
