/* Guards when memory runs out: every allocation of the engine is made to fail in turn, in building, evaluating, explaining and parsing. Each run must
 * either succeed in full or report the lack, leave a description as it was, and give everything back. */
#include <Python.h>

#include "guards/guard_program.h"
#include "guards/guard_tensor.h"
#include "runtime/base/alloc.h"
#include "tests/c/alloc_failing.h"
#include "tests/c/eval_in.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static PyObject *namespace;

/* A description with every storage of its own: names, keys, weak references, tensor metadata, a long relation, an impure source. */
static fg_status fill(fg_desc *desc, PyObject *args, int variant)
{
    fg_status st;
    fg_node arg, child, many[40];
    uint32_t position;
    fg_origin origin = {NULL, 3};
    fg_tensor_meta meta;
    const char *why = NULL;
    PyObject *key = PyUnicode_InternFromString("lr"), *number = PyLong_FromLong(1000 + variant);

    FG_TRY(fg_desc_source(desc, FG_ACC_ARG, FG_NODE_NONE, NULL, 0, &arg));
    FG_TRY(fg_desc_guard(desc, FG_GUARD_TYPE, arg, (fg_guard_arg){.object = (PyObject *)&PyDict_Type}, origin));
    FG_TRY(fg_desc_source(desc, FG_ACC_DICT_ITEM, arg, key, 0, &child));
    FG_TRY(fg_desc_guard(desc, FG_GUARD_CONST, child, (fg_guard_arg){.object = number}, origin));
    FG_TRY(fg_desc_output(desc, child, &position));
    FG_TRY(fg_desc_source(desc, FG_ACC_ARG, FG_NODE_NONE, NULL, 1, &arg));
    FG_TRY(fg_desc_guard(desc, FG_GUARD_ID, arg, (fg_guard_arg){.object = PyTuple_GET_ITEM(args, 1)}, origin));
    FG_TRY(fg_desc_source(desc, FG_ACC_GETATTR, arg, key, 0, &child));
    FG_TRY(fg_desc_guard(desc, FG_GUARD_NOT_NONE, child, (fg_guard_arg){0}, origin));
    FG_TRY(fg_desc_source(desc, FG_ACC_ARG, FG_NODE_NONE, NULL, 2, &arg));
    const fg_tensor_adaptor *adaptor = fg_tensor_adaptor_find(Py_TYPE(PyTuple_GET_ITEM(args, 2)));
    assert_non_null(adaptor);
    assert_int_equal(adaptor->read(adaptor, PyTuple_GET_ITEM(args, 2), &meta, &why), 1);
    FG_TRY(fg_desc_guard(desc, FG_GUARD_TENSOR, arg, (fg_guard_arg){.meta = &meta}, origin));
    for (int i = 0; i < 40; i++)
        FG_TRY(fg_desc_source(desc, FG_ACC_ARG, FG_NODE_NONE, NULL, 3 + i, &many[i]));
    FG_TRY(fg_desc_relation(desc, FG_GUARD_DISTINCT, many, 40, origin));
fail:
    Py_DECREF(key);
    Py_DECREF(number);
    return st;
}

enum { N_ENTRIES = 5, N_ARGS = 43 };

static fg_status run_everything(PyObject *args, int *hits)
{
    fg_status st = FG_OK;
    fg_desc *descs[N_ENTRIES] = {NULL}, *parsed = NULL;
    fg_program *program = NULL;
    PyObject *inputs[256], *text = NULL, *tree = NULL, *why = NULL;
    fg_view view = {.slots = ((PyTupleObject *)args)->ob_item, .n_slots = N_ARGS};

    *hits = 0;
    for (int i = 0; i < N_ENTRIES; i++) {
        FG_TRY(fg_desc_new(&descs[i]));
        fg_desc_mark mark = fg_desc_mark_get(descs[i]);
        if ((st = fill(descs[i], args, i)) != FG_OK) {
            /* What was added goes back; then the description is as new. */
            fg_desc_rewind(descs[i], mark);
            assert_int_equal(fg_desc_n_guards(descs[i]), 0);
            assert_int_equal(fg_desc_n_outputs(descs[i]), 0);
            goto fail;
        }
    }
    FG_TRY(fg_program_build((const fg_desc *const *)descs, N_ENTRIES, NULL, &program));
    assert_true(fg_program_max_inputs(program) <= 256);
    fg_eval out = {0};
    fg_eval_result answer = fg_program_eval(program, &view, NULL, NULL, inputs, &out);
    if (answer == FG_EVAL_ERROR)
        FG_TRY(FG_ERR_PYTHON);
    assert_int_equal(answer, FG_EVAL_HIT);
    assert_int_equal(out.winner, 2);
    assert_int_equal(out.n_inputs, 1);
    assert_ptr_equal(inputs[0], PyDict_GetItemString(PyTuple_GET_ITEM(args, 0), "lr"));
    fg_eval_release(&out);
    ++*hits;
    int ok = fg_desc_check(descs[2], &view);
    FG_TRY(ok < 0 ? FG_ERR_PYTHON : FG_OK);
    assert_int_equal(ok, 1);
    if ((why = fg_desc_explain(descs[1], &view)) == NULL)
        FG_TRY(FG_ERR_PYTHON);
    assert_int_equal(PyList_GET_SIZE(why), 1);
    if ((tree = fg_desc_tree_str(descs[0])) == NULL || (text = fg_desc_to_text(descs[0])) == NULL)
        FG_TRY(FG_ERR_PYTHON);
    FG_TRY(fg_desc_from_text(text, NULL, &parsed));
    assert_int_equal(fg_desc_n_guards(parsed), fg_desc_n_guards(descs[0]));
fail:
    Py_XDECREF(why);
    Py_XDECREF(tree);
    Py_XDECREF(text);
    fg_program_free(program);
    fg_desc_free(parsed);
    for (int i = 0; i < N_ENTRIES; i++)
        fg_desc_free(descs[i]);
    return st;
}

enum { N_ROWS = 6, N_ITEMS = 5, CALM = 300 };

/* A list of lists, all of whose items are asked for: neighbours whose memos last, so that one record serves for all of them. Without memory for a record
 * the answer is the same. */
static fg_status run_rows(PyObject *args, int *hits)
{
    fg_status st = FG_OK;
    fg_desc *desc = NULL;
    fg_program *program = NULL;
    fg_node all, one, item;
    fg_origin origin = {NULL, 3};
    fg_guard_arg is_list = {.object = (PyObject *)&PyList_Type};
    PyObject *inputs[256];
    fg_view view = {.slots = ((PyTupleObject *)args)->ob_item, .n_slots = 1};

    *hits = 0;
    FG_TRY(fg_desc_new(&desc));
    FG_TRY(fg_desc_source(desc, FG_ACC_ARG, FG_NODE_NONE, NULL, 0, &all));
    FG_TRY(fg_desc_guard(desc, FG_GUARD_TYPE, all, is_list, origin));
    for (int i = 0; i < N_ROWS; i++) {
        PyObject *list = PyList_GET_ITEM(PyTuple_GET_ITEM(args, 0), i);
        FG_TRY(fg_desc_source(desc, FG_ACC_LIST_ITEM, all, NULL, i, &one));
        FG_TRY(fg_desc_guard(desc, FG_GUARD_TYPE, one, is_list, origin));
        for (int k = 0; k < N_ITEMS; k++) {
            FG_TRY(fg_desc_source(desc, FG_ACC_LIST_ITEM, one, NULL, k, &item));
            FG_TRY(fg_desc_guard(desc, FG_GUARD_ID, item, (fg_guard_arg){.object = PyList_GET_ITEM(list, k)}, origin));
        }
    }
    FG_TRY(fg_program_build((const fg_desc *const *)&desc, 1, NULL, &program));
    for (int i = 0; i < CALM; i++) {
        fg_eval out = {0};
        assert_int_equal(fg_program_eval(program, &view, NULL, NULL, inputs, &out), FG_EVAL_HIT);
        fg_eval_release(&out);
    }
    ++*hits;
fail:
    fg_program_free(program);
    fg_desc_free(desc);
    return st;
}

static PyObject *make_args(void)
{
    return eval_in(namespace, "({'lr': 1002}, Thing(), np.ones((2, 3)), *[object() for i in range(40)])");
}

static void fail_each(fg_status (*run)(PyObject *args, int *hits), PyObject *args, size_t at_least)
{
    int hits;
    size_t n;

    for (n = 1; n < 5000; n++) {
        size_t before = alloc_failing_living();
        alloc_failing_at(n);
        fg_status st = run(args, &hits);
        int reached = alloc_failing_fired();
        alloc_failing_at(0);
        if (st == FG_OK) {
            assert_null(PyErr_Occurred());
            assert_int_equal(hits, 1);
        } else if (st == FG_ERR_PYTHON) {
            assert_true(PyErr_ExceptionMatches(PyExc_MemoryError));
            PyErr_Clear();
        } else {
            assert_int_equal(st, FG_ERR_NOMEM);
            assert_null(PyErr_Occurred());
        }
        assert_int_equal(alloc_failing_living(), before);
        if (!reached) {
            assert_int_equal(st, FG_OK);
            break;
        }
    }
    assert_in_range(n, at_least, 4999);
    Py_DECREF(args);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    fail_each(run_everything, make_args(), 50);
}

static void every_allocation_of_rows_of_memos_may_fail(void **state)
{
    (void)state;
    fail_each(run_rows, eval_in(namespace, "([[object() for k in range(5)] for i in range(6)],)"), 10);
}

static int deaths;
static void count_death(void *entry)
{
    deaths += *(int *)entry;
}

static void death_is_told_once_and_late_listeners_hear_of_it(void **state)
{
    fg_desc *desc;
    fg_node arg;
    int entry = 1;
    PyObject *thing = eval_in(namespace, "Thing()");
    (void)state;

    deaths = 0;
    assert_int_equal(fg_desc_new(&desc), FG_OK);
    assert_int_equal(fg_desc_source(desc, FG_ACC_ARG, FG_NODE_NONE, NULL, 0, &arg), FG_OK);
    assert_int_equal(fg_desc_guard(desc, FG_GUARD_ID, arg, (fg_guard_arg){.object = thing}, (fg_origin){0}), FG_OK);
    fg_view view = {.slots = &thing, .n_slots = 1};
    assert_int_equal(fg_desc_check(desc, &view), 1);
    fg_desc_on_death(desc, count_death, &entry);
    Py_ssize_t count = Py_REFCNT(thing);
    assert_int_equal(count, 1); /* the description does not keep it alive */
    Py_CLEAR(thing);
    assert_int_equal(deaths, 1);
    fg_desc_on_death(desc, count_death, &entry);
    assert_int_equal(deaths, 2);
    thing = Py_NewRef(Py_None);
    assert_int_equal(fg_desc_check(desc, &view), 0);
    Py_DECREF(thing);
    fg_desc_free(desc);
}

static void freed_description_hears_nothing(void **state)
{
    fg_desc *desc;
    fg_node arg;
    int entry = 1;
    PyObject *thing = eval_in(namespace, "Thing()");
    (void)state;

    deaths = 0;
    assert_int_equal(fg_desc_new(&desc), FG_OK);
    assert_int_equal(fg_desc_source(desc, FG_ACC_ARG, FG_NODE_NONE, NULL, 0, &arg), FG_OK);
    assert_int_equal(fg_desc_guard(desc, FG_GUARD_ID, arg, (fg_guard_arg){.object = thing}, (fg_origin){0}), FG_OK);
    fg_desc_on_death(desc, count_death, &entry);
    fg_desc_free(desc);
    Py_DECREF(thing);
    assert_int_equal(deaths, 0);
}

static void pending_exception_survives_an_evaluation(void **state)
{
    fg_desc *desc;
    fg_program *program;
    fg_node arg, child;
    PyObject *thing = eval_in(namespace, "Thing()"), *inputs[16], *name = PyUnicode_InternFromString("lr"),
             *none = PyUnicode_InternFromString("missing");
    fg_eval out;
    (void)state;

    assert_int_equal(fg_desc_new(&desc), FG_OK);
    assert_int_equal(fg_desc_source(desc, FG_ACC_ARG, FG_NODE_NONE, NULL, 0, &arg), FG_OK);
    assert_int_equal(fg_desc_source(desc, FG_ACC_GETATTR, arg, name, 0, &child), FG_OK);
    assert_int_equal(fg_desc_guard(desc, FG_GUARD_PRESENT, child, (fg_guard_arg){0}, (fg_origin){0}), FG_OK);
    assert_int_equal(fg_desc_source(desc, FG_ACC_GETATTR, arg, none, 0, &child), FG_OK);
    assert_int_equal(fg_desc_guard(desc, FG_GUARD_ABSENT, child, (fg_guard_arg){0}, (fg_origin){0}), FG_OK);
    const fg_desc *descs[] = {desc};
    assert_int_equal(fg_program_build(descs, 1, NULL, &program), FG_OK);
    fg_view view = {.slots = &thing, .n_slots = 1};
    PyErr_SetString(PyExc_KeyError, "pending");
    assert_int_equal(fg_program_eval(program, &view, NULL, NULL, inputs, &out), FG_EVAL_HIT);
    assert_true(PyErr_ExceptionMatches(PyExc_KeyError));
    fg_eval_release(&out);
    assert_true(PyErr_ExceptionMatches(PyExc_KeyError));
    PyErr_Clear();
    fg_program_free(program);
    fg_desc_free(desc);
    Py_DECREF(thing);
    Py_DECREF(name);
    Py_DECREF(none);
}

/* What an entry owns is behind all sources and has no conditions: a text leaves it out, and numbers the others by their places. */
static void what_an_entry_owns_stands_last(void **state)
{
    (void)state;
    fg_desc *desc;
    fg_node arg, own, again, other, both[2];
    fg_origin origin = {NULL, 1};
    uint32_t position;
    PyObject *one = PyRun_String("np.zeros(3)", Py_eval_input, namespace, namespace);
    PyObject *two = PyRun_String("np.zeros(3)", Py_eval_input, namespace, namespace);

    assert_int_equal(fg_desc_new(&desc), FG_OK);
    assert_int_equal(fg_desc_source(desc, FG_ACC_ARG, FG_NODE_NONE, NULL, 0, &arg), FG_OK);
    assert_int_equal(fg_desc_source(desc, FG_ACC_CONST, FG_NODE_NONE, (PyObject *)&PyList_Type, 0, &other), FG_OK);
    fg_desc_mark mark = fg_desc_mark_get(desc);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(fg_desc_own(desc, (PyObject *)&PyList_Type, &again), FG_ERR_INVALID);
        assert_int_equal(fg_desc_own(desc, one, &own), FG_OK);
        assert_int_equal(fg_desc_own(desc, two, &other), FG_OK);
        assert_int_equal(fg_desc_own(desc, one, &again), FG_OK);
        assert_int_equal(again, own);
        assert_int_equal(fg_desc_output(desc, own, &position), FG_OK);
        assert_int_equal(fg_desc_source(desc, FG_ACC_ARG, FG_NODE_NONE, NULL, 0, &again), FG_OK); /* known */
        assert_int_equal(again, arg);
        assert_int_equal(fg_desc_source(desc, FG_ACC_ARG, FG_NODE_NONE, NULL, 1, &again), FG_ERR_INVALID);
        assert_int_equal(fg_desc_source(desc, FG_ACC_LIST_ITEM, own, NULL, 0, &again), FG_ERR_INVALID);
        assert_int_equal(fg_desc_guard(desc, FG_GUARD_PRESENT, own, (fg_guard_arg){0}, origin), FG_ERR_INVALID);
        both[0] = arg;
        both[1] = own;
        assert_int_equal(fg_desc_relation(desc, FG_GUARD_SAME, both, 2, origin), FG_ERR_INVALID);
        assert_int_equal(fg_desc_guard(desc, FG_GUARD_PRESENT, arg, (fg_guard_arg){0}, origin), FG_OK);
        PyObject *text = fg_desc_to_text(desc);
        assert_non_null(text);
        assert_null(strstr(PyUnicode_AsUTF8(text), "n2"));
        assert_null(strstr(PyUnicode_AsUTF8(text), "output"));
        Py_DECREF(text);
        fg_desc_rewind(desc, mark);
        assert_int_equal(Py_REFCNT(one), 1);
    }
    assert_int_equal(fg_desc_source(desc, FG_ACC_ARG, FG_NODE_NONE, NULL, 1, &again), FG_OK);
    fg_desc_free(desc);
    Py_DECREF(one);
    Py_DECREF(two);
}

static int start(void **state)
{
    (void)state;
    alloc_failing_install();
    Py_Initialize();
    namespace = PyDict_New();
    PyDict_SetItemString(namespace, "__builtins__", PyEval_GetBuiltins());
    PyObject *done = PyRun_String("import numpy as np\nclass Thing:\n    lr = 5\n", Py_file_input, namespace, namespace);
    if (done == NULL) {
        PyErr_Print();
        return 1;
    }
    Py_DECREF(done);
    return fg_tensor_init() != FG_OK;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(every_allocation_of_rows_of_memos_may_fail),
        cmocka_unit_test(death_is_told_once_and_late_listeners_hear_of_it),
        cmocka_unit_test(freed_description_hears_nothing),
        cmocka_unit_test(pending_exception_survives_an_evaluation),
        cmocka_unit_test(what_an_entry_owns_stands_last),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
