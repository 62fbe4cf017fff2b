/* The adaptors without the extension module: NumPy and a foreign DLPack type. torch is covered from Python, where its kinds are easy to make. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include "guards/adaptor_dlpack.h"
#include "guards/adaptor_numpy.h"
#include "tests/c/dlpack_type.h"
#include "tests/c/eval_in.h"
#include <cmocka.h>

static PyObject *globals;

static int record(PyObject *object, fg_tensor_meta *meta, const char **why)
{
    const fg_tensor_adaptor *a = fg_tensor_adaptor_find(Py_TYPE(object));
    assert_non_null(a);
    return a->record(a, object, meta, why);
}

static int matches(PyObject *object, const fg_tensor_meta *meta)
{
    return Py_TYPE(object) == fg_numpy_array_type &&
           fg_numpy_is((PyArrayObject *)object, meta->ndim, meta->dtype, meta->sizes, meta->strides, meta->keys);
}

static void numpy_metadata_is_that_of_the_array(void **state)
{
    (void)state;
    fg_tensor_meta meta;
    const char *why = NULL;
    PyObject *a = eval_in(globals, "np.zeros((3, 5), 'f4').T");
    assert_int_equal(record(a, &meta, &why), 1);
    assert_ptr_equal(meta.adaptor, fg_numpy_adaptor);
    assert_int_equal(meta.ndim, 2);
    assert_int_equal(meta.sizes[0], 5);
    assert_int_equal(meta.strides[0], 4);
    assert_int_equal(meta.strides[1], 20);
    assert_int_equal(meta.dtype, NPY_FLOAT);
    assert_int_equal(meta.keys, FG_NUMPY_WRITEABLE | FG_NUMPY_ALIGNED);
    assert_int_equal(matches(a, &meta), 1);
    PyObject *others[] = {eval_in(globals, "np.zeros((5, 3), 'f4')"), eval_in(globals, "np.zeros((3, 5), 'f8').T"),
                          eval_in(globals, "np.zeros((3, 6), 'f4').T"), eval_in(globals, "1"),
                          eval_in(globals, "np.zeros((3, 5), 'f4').T.view(type('S', (np.ndarray,), {}))")};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_int_equal(matches(others[i], &meta), 0);
        Py_DECREF(others[i]);
    }
    PyObject *locked = eval_in(globals, "(lambda a: (a.setflags(write=False), a)[1])(np.zeros((3, 5), 'f4').T)");
    assert_int_equal(matches(locked, &meta), 0);
    Py_DECREF(locked);
    Py_DECREF(a);
}

static void numpy_kinds_that_are_not_numbers_are_refused(void **state)
{
    static const char *const refused[] = {"np.zeros(3, object)", "np.zeros(3, 'M8[s]')",
                                          "np.zeros(3, 'U4')",   "np.zeros(3, [('a', 'i4')])",
                                          "np.zeros(3, '>f8')",  "np.zeros(3, np.dtype('f8', metadata={'a': 1}))",
                                          "np.zeros(3, 'V7')"};
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        fg_tensor_meta meta;
        const char *why = NULL;
        PyObject *a = eval_in(globals, refused[i]);
        assert_int_equal(record(a, &meta, &why), 0);
        assert_non_null(why);
        Py_DECREF(a);
    }
    PyObject *m = eval_in(globals, "np.ma.zeros(3)");
    assert_null(fg_tensor_adaptor_find(Py_TYPE(m)));
    Py_DECREF(m);
}

static void numpy_swapped_bytes_do_not_match_native(void **state)
{
    (void)state;
    fg_tensor_meta meta;
    PyObject *a = eval_in(globals, "np.zeros(3, 'f8')"), *b = eval_in(globals, "np.zeros(3, '>f8')"),
             *c = eval_in(globals, "__import__('pickle').loads(__import__('pickle').dumps(np.zeros(3)))");
    assert_int_equal(record(a, &meta, NULL), 1);
    assert_int_equal(matches(b, &meta), 0);
    assert_int_equal(matches(c, &meta), 1); /* its dtype object may be another one of equal meaning */
    Py_DECREF(a);
    Py_DECREF(b);
    Py_DECREF(c);
}

static void numpy_views_share_a_storage_and_owners_do_not(void **state)
{
    (void)state;
    PyObject *pair = eval_in(globals, "(lambda a: (a, a[2:][::2], np.arange(9.0)))(np.arange(9.0))");
    const void *(*storage)(PyObject *) = fg_numpy_adaptor->storage;
    assert_non_null(storage(PyTuple_GET_ITEM(pair, 0)));
    assert_ptr_equal(storage(PyTuple_GET_ITEM(pair, 0)), storage(PyTuple_GET_ITEM(pair, 1)));
    assert_ptr_not_equal(storage(PyTuple_GET_ITEM(pair, 0)), storage(PyTuple_GET_ITEM(pair, 2)));
    Py_DECREF(pair);
    pair = eval_in(globals, "(lambda b: (np.frombuffer(b), np.frombuffer(memoryview(b)[8:])))(bytearray(64))");
    assert_non_null(storage(PyTuple_GET_ITEM(pair, 0)));
    assert_ptr_equal(storage(PyTuple_GET_ITEM(pair, 0)), storage(PyTuple_GET_ITEM(pair, 1)));
    Py_DECREF(pair);
}

static PyObject *make(PyObject *type, const char *args)
{
    PyObject *tuple = eval_in(globals, args), *t = PyObject_Call(type, tuple, NULL);
    Py_DECREF(tuple);
    assert_non_null(t);
    return t;
}

static void dlpack_tensors_are_read_through_their_table(void **state)
{
    (void)state;
    fg_tensor_meta meta;
    const char *why = NULL;
    PyObject *type = dlpack_type_new(1, 1);
    assert_non_null(type);
    const fg_tensor_adaptor *a = fg_tensor_adaptor_find((PyTypeObject *)type);
    assert_non_null(a);
    assert_string_equal(a->layer, "dlpack");
    assert_ptr_equal(a, fg_tensor_adaptor_find((PyTypeObject *)type));
    PyObject *t = make(type, "((2, 3, 4), (1, 2, 6))");
    assert_int_equal(a->record(a, t, &meta, &why), 1);
    assert_int_equal(meta.dtype, 2 << 16 | 32 << 8 | 1);
    assert_int_equal(meta.sizes[1], 3);
    assert_int_equal(meta.strides[2], 6);
    Py_DECREF(t);
    t = make(type, "((2, 3, 4),)"); /* no strides: C order */
    assert_int_equal(a->read(a, t, &meta, &why), 1);
    assert_int_equal(meta.strides[0], 12);
    assert_int_equal(meta.strides[1], 4);
    assert_int_equal(meta.strides[2], 1);
    /* All memory of a kind of device is one storage. */
    PyObject *other = make(type, "((1,),)");
    assert_non_null(a->storage(t));
    assert_ptr_equal(a->storage(t), a->storage(other));
    assert_null(a->storage(Py_None));
    Py_DECREF(other);
    PyObject *name = a->dtype_object(&meta);
    assert_string_equal(PyUnicode_AsUTF8(name), "float32");
    Py_DECREF(name);
    Py_DECREF(t);
    Py_DECREF(type);
}

static void dlpack_refusals_keep_the_pending_exception(void **state)
{
    (void)state;
    fg_tensor_meta meta;
    const char *why = NULL;
    PyObject *type = dlpack_type_new(1, 1), *t = make(type, "((2,), None, (2, 32, 1), True)");
    const fg_tensor_adaptor *a = fg_tensor_adaptor_find((PyTypeObject *)type);
    PyErr_SetString(PyExc_KeyError, "kept");
    assert_int_equal(a->read(a, t, &meta, &why), 0);
    assert_non_null(why);
    assert_true(PyErr_ExceptionMatches(PyExc_KeyError));
    PyErr_Clear();
    PyObject *other = eval_in(globals, "1");
    assert_int_equal(a->read(a, other, &meta, &why), 0);
    Py_DECREF(other);
    Py_DECREF(t);
    Py_DECREF(type);
    type = dlpack_type_new(1, 2); /* a later major version */
    assert_null(fg_tensor_adaptor_find((PyTypeObject *)type));
    Py_DECREF(type);
    type = dlpack_type_new(0, 1);
    assert_null(fg_tensor_adaptor_find((PyTypeObject *)type));
    Py_DECREF(type);
}

static void torch_state_is_empty_without_torch(void **state)
{
    (void)state;
    fg_torch_state a, b;
    assert_int_equal(fg_torch_state_read(&a), 1);
    assert_int_equal(fg_torch_state_read(&b), 1);
    assert_int_equal(a.present, 0);
    assert_memory_equal(&a, &b, sizeof a);
}

int main(void)
{
    Py_Initialize();
    if (fg_tensor_init() != FG_OK) {
        PyErr_Print();
        return 1;
    }
    globals = PyDict_New();
    PyDict_SetItemString(globals, "__builtins__", PyEval_GetBuiltins());
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyDict_SetItemString(globals, "np", numpy);
    Py_DECREF(numpy);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numpy_metadata_is_that_of_the_array),         cmocka_unit_test(numpy_kinds_that_are_not_numbers_are_refused),
        cmocka_unit_test(numpy_swapped_bytes_do_not_match_native),     cmocka_unit_test(numpy_views_share_a_storage_and_owners_do_not),
        cmocka_unit_test(dlpack_tensors_are_read_through_their_table), cmocka_unit_test(dlpack_refusals_keep_the_pending_exception),
        cmocka_unit_test(torch_state_is_empty_without_torch)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    Py_DECREF(globals);
    return failed;
}
