/* Inference against the real call: same metadata, same exception, nothing printed, nothing changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "tracer/infer_meta.h"
#include "tests/c/eval_in.h"
#include <cmocka.h>

static PyObject *globals;
static int has_torch;

static fg_status standins(PyObject *tuple, PyObject **out)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
        PyObject *item = PyTuple_GET_ITEM(tuple, i);
        const fg_tensor_adaptor *a = fg_tensor_adaptor_find(Py_TYPE(item));
        fg_tensor_meta meta;
        if (a == NULL) {
            out[i] = Py_NewRef(item);
            continue;
        }
        assert_int_equal(a->record(a, item, &meta, NULL), 1);
        fg_status st = fg_standin_new(&meta, &out[i]);
        if (st != FG_OK)
            return st;
    }
    return FG_OK;
}

/* Run callable(*args) for real and on stand-ins. 1 compared equal; 0 the inference said nothing. */
static int compare(const char *callable_text, const char *args_text)
{
    PyObject *callable = eval_in(globals, callable_text), *args = eval_in(globals, args_text), *fake[8] = {NULL}, *guess = NULL;
    int unsupported = 0, result = 0;
    PyObject *real = PyObject_Call(callable, args, NULL), *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    fg_status st = standins(args, fake);
    if (st == FG_OK)
        st = fg_standin_call(callable, fake, (size_t)PyTuple_GET_SIZE(args), NULL, &guess, &unsupported);
    if (st == FG_ERR_PYTHON) {
        PyObject *type2, *value2, *trace2;
        PyErr_Fetch(&type2, &value2, &trace2);
        if (real != NULL) {
            PyErr_Restore(type2, value2, trace2);
            PyErr_Print();
            fail_msg("%s%s: the inference raises, the real call does not", callable_text, args_text);
        }
        assert_ptr_equal(type, type2);
        PyObject *a = PyObject_Str(value), *b = PyObject_Str(value2);
        assert_string_equal(PyUnicode_AsUTF8(a), PyUnicode_AsUTF8(b));
        Py_DECREF(a);
        Py_DECREF(b);
        Py_XDECREF(type2);
        Py_XDECREF(value2);
        Py_XDECREF(trace2);
        result = 1;
    } else if (st == FG_OK && !unsupported) {
        if (real == NULL)
            fail_msg("%s%s: raises, the inference did not", callable_text, args_text);
        fg_tensor_meta a, b;
        const fg_tensor_adaptor *adaptor = fg_tensor_adaptor_find(Py_TYPE(real));
        if (adaptor != NULL) {
            assert_int_equal(adaptor->record(adaptor, real, &a, NULL), 1);
            assert_int_equal(fg_standin_read(guess, &b), 1);
            if (!fg_tensor_meta_same(&a, &b))
                fail_msg("%s%s: the inferred metadata is not that of the real result", callable_text, args_text);
        } else {
            assert_ptr_equal(Py_TYPE(real), Py_TYPE(guess));
        }
        result = 1;
    } else {
        assert_int_equal(st == FG_OK || st == FG_ERR_UNSUPPORTED, 1);
        assert_null(PyErr_Occurred());
    }
    for (int i = 0; i < 8; i++)
        Py_XDECREF(fake[i]);
    Py_XDECREF(guess);
    Py_XDECREF(real);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    Py_DECREF(callable);
    Py_DECREF(args);
    return result;
}

static void numpy_calls_give_the_real_metadata_or_exception(void **state)
{
    static const char *const rows[][2] = {{"np.add", "(np.zeros((3, 1), 'i4'), np.zeros(5, 'f4'))"},
                                          {"np.add", "(np.zeros((3, 4)).T, np.zeros((4, 3)))"},
                                          {"np.add", "(np.zeros((3, 4)).T, np.zeros((3, 4)).T)"},
                                          {"np.sum", "(np.zeros((3, 4)), 1)"},
                                          {"np.sum", "(np.zeros((3, 4)),)"},
                                          {"np.matmul", "(np.zeros((3, 4)), np.zeros((4, 5)))"},
                                          {"np.matmul", "(np.zeros((3, 4)), np.zeros((3, 5)))"},
                                          {"np.add", "(np.zeros(3), np.zeros(4))"},
                                          {"np.divide", "(np.zeros(3), np.zeros(3))"},
                                          {"np.transpose", "(np.zeros((3, 4, 5)), (2, 0, 1))"},
                                          {"np.reshape", "(np.zeros((3, 4)).T, (6, 2))"},
                                          {"np.reshape", "(np.zeros((3, 4)), (5, 2))"},
                                          {"np.copy", "(np.zeros((3, 4)).T,)"},
                                          {"np.flip", "(np.zeros((3, 4)),)"},
                                          {"np.exp", "(np.zeros((700, 800)),)"},
                                          {"np.add", "(np.zeros((700, 800)), np.zeros(800))"},
                                          {"np.sum", "(np.zeros((700, 800), 'f4'), 0)"},
                                          {"np.negative", "(np.zeros((3, 4))[::-1, ::2],)"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!compare(rows[i][0], rows[i][1]))
            fail_msg("%s%s: nothing was inferred", rows[i][0], rows[i][1]);
}

static void what_cannot_be_known_is_not_said(void **state)
{
    (void)state;
    assert_int_equal(compare("np.add", "(np.zeros((700, 800)), np.zeros((30, 700)).T[:, :1] if 0 else np.zeros((800, 700)).T)"), 0);
    assert_int_equal(compare("np.transpose", "(np.zeros((700, 800)),)"), 0);
    PyObject *repeat = eval_in(globals, "np.repeat"), *args[2] = {eval_in(globals, "np.zeros(3)"), eval_in(globals, "10**12")}, *out;
    int unsupported = 0;
    assert_int_equal(fg_standin_call(repeat, args, 2, NULL, &out, &unsupported), FG_OK);
    assert_int_equal(unsupported, 1);
    assert_null(out);
    Py_DECREF(repeat);
    Py_DECREF(args[0]);
    Py_DECREF(args[1]);
}

static void inference_is_silent_and_leaves_no_trace(void **state)
{
    (void)state;
    Py_DECREF(eval_in(globals, "globals().pop('__warningregistry__', None)"));
    PyObject *before =
        eval_in(globals, "(len(warnings.filters), repr(np.geterr()), np.random.get_state()[2], getattr(warnings, '_filters_version', 0))");
    PyObject *warn = eval_in(globals, "lambda a: (warnings.warn('never shown', UserWarning), a)[1]"), *a = eval_in(globals, "np.zeros(3)"),
             *out;
    PyObject *ignored = eval_in(globals, "warnings.filters.insert(0, ('error', None, UserWarning, None, 0))");
    int unsupported = 0;
    assert_int_equal(fg_standin_call(warn, &a, 1, NULL, &out, &unsupported), FG_OK);
    assert_int_equal(unsupported, 0);
    Py_DECREF(out);
    Py_DECREF(ignored);
    ignored = eval_in(globals, "warnings.filters.pop(0)");
    PyObject *after =
        eval_in(globals, "(len(warnings.filters), repr(np.geterr()), np.random.get_state()[2], getattr(warnings, '_filters_version', 0))");
    assert_int_equal(PyObject_RichCompareBool(before, after, Py_EQ), 1);
    PyObject *shown = eval_in(globals, "[k for k in globals().get('__warningregistry__', {}) if k != 'version']");
    assert_int_equal(PyObject_Length(shown), 0);
    Py_DECREF(shown);
    Py_DECREF(before);
    Py_DECREF(after);
    Py_DECREF(ignored);
    Py_DECREF(warn);
    Py_DECREF(a);
}

static void torch_calls_give_the_real_metadata_or_exception(void **state)
{
    static const char *const rows[][2] = {{"torch.add", "(torch.ones(3, 1), torch.ones(5, dtype=torch.float64))"},
                                          {"torch.matmul", "(torch.ones(3, 4), torch.ones(4, 5))"},
                                          {"torch.matmul", "(torch.ones(3, 4), torch.ones(3, 5))"},
                                          {"torch.relu", "(torch.nn.Parameter(torch.ones(3, 4)),)"},
                                          {"torch.sum", "(torch.ones(3, 4).t(), 1)"},
                                          {"torch.add", "(torch.ones(3, 4).t(), torch.ones(3, 4).t())"},
                                          {"torch.transpose", "(torch.ones(3, 4, 5), 0, 2)"},
                                          {"torch.relu", "(torch.empty(3, 4, device='meta'),)"},
                                          {"torch.add", "(torch.ones(200, 300), torch.ones(300))"},
                                          {"torch.sum", "(torch.ones(200, 300, requires_grad=True), 1)"},
                                          {"torch.transpose", "(torch.ones(200, 300), 0, 1)"}};
    (void)state;
    if (!has_torch)
        skip();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!compare(rows[i][0], rows[i][1]))
            fail_msg("%s%s: nothing was inferred", rows[i][0], rows[i][1]);
}

/* A fake refuses in words of its own, and may log: what it raises is not what the user would see. */
static void torch_refusals_of_fakes_are_not_said(void **state)
{
    (void)state;
    if (!has_torch)
        skip();
    assert_int_equal(compare("torch.matmul", "(torch.ones(200, 300), torch.ones(200, 300))"), 0);
    assert_int_equal(compare("torch.nonzero", "(torch.ones(200, 300),)"), 0);
    PyObject *disabled = eval_in(globals, "__import__('logging').getLogger('torch._subclasses.fake_tensor').disabled");
    assert_ptr_equal(disabled, Py_False);
    Py_DECREF(disabled);
}

static void torch_in_place_change_of_a_grad_tensor_is_unknown(void **state)
{
    (void)state;
    if (!has_torch)
        skip();
    assert_int_equal(compare("torch.Tensor.add_", "(torch.ones(3, requires_grad=True), 1)"), 0);
    assert_int_equal(compare("torch.Tensor.add_", "(torch.ones(3), 1)"), 1);
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
    PyRun_String("import warnings\nimport numpy as np", Py_file_input, globals, globals);
    PyRun_String("import torch", Py_file_input, globals, globals);
    has_torch = !PyErr_Occurred();
    PyErr_Clear();
    const struct CMUnitTest tests[] = {cmocka_unit_test(numpy_calls_give_the_real_metadata_or_exception),
                                       cmocka_unit_test(what_cannot_be_known_is_not_said),
                                       cmocka_unit_test(inference_is_silent_and_leaves_no_trace),
                                       cmocka_unit_test(torch_calls_give_the_real_metadata_or_exception),
                                       cmocka_unit_test(torch_refusals_of_fakes_are_not_said),
                                       cmocka_unit_test(torch_in_place_change_of_a_grad_tensor_is_unknown)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    Py_DECREF(globals);
    return failed;
}
