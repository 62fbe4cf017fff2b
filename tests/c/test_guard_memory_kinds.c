/* Every kind of guard and every accessor when memory runs out: for each line of descriptions, each allocation in parsing, sealing, building (also over an
 * older program, whose counts are read), evaluating, checking, explaining and printing is made to fail in turn. */
#include <Python.h>

#include "guards/guard_drop.h"
#include "guards/guard_private.h"
#include "guards/guard_tensor.h"
#include "runtime/cpython/iterators.h"
#include "tests/c/alloc_failing.h"
#include "tests/c/dlpack_type.h"
#include "tests/c/eval_in.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static PyObject *namespace, *resolve;

#define ARRAY "tensor 'numpy' @'b:np.ndarray' keys=6 dtype=12 device=1:0 grad=0 layout=0 sizes=(4,8,) strides=(64,8,)"
#define STATE "torch_state included=0 excluded=0 device=0 autograd=0 modes=0 disabled=0 dtype=0 autocast=0:0 present=0"
#define TWO "n0 = arg 0\nn1 = arg 1\n"
#define ARRAYS TWO "guard n0 type_is @'b:np.ndarray'\nguard n1 type_is @'b:np.ndarray'\n"
#define PLACES TWO "guard n0 type_is @'b:tiny'\nguard n1 type_is @'b:tiny'\n"

/* Several kinds to a text, as long as they can all be asked of the same call; the answer without a lack of memory does not matter. */
static const struct {
    const char *text, *args;
} cases[] = {
    {"n0 = arg 0\nguard n0 present\nguard n0 type_is @'b:int'\nguard n0 is_not_none\nguard n0 equals 12345678901234567890123\nguard n0 "
     "truth 1\noutput n0\n",
     "(int('12345678901234567890123'),)"},
    {"n0 = arg 0\nguard n0 in_range 3 9\nn1 = arg 1\nguard n1 absent\nn2 = arg 2\nguard n2 is_nan\n", "(5,)"},
    {"n0 = arg 0\nguard n0 is @'b:C'\nguard n0 is_subtype @'b:C'\nguard n0 is_no_subtype @'b:dict'\n", "(C,)"},
    {"n0 = arg 0\nguard n0 length 2\nguard n0 dict_has 'lr'\nguard n0 dict_lacks (1, 'a',)\nguard n0 dict_keys ('lr', 'mo',)\nguard n0 "
     "item_drops_quietly 'lr'\n",
     "({'lr': 1, 'mo': [2]},)"},
    {"n0 = arg 0\nguard n0 set_has 'lr'\nguard n0 set_lacks 5\nguard n0 set_items ('lr', 'mo',)\n", "({'lr', 'mo'},)"},
    {"n0 = arg 0\nguard n0 attr_has 'a'\nguard n0 attr_lacks 'b'\nguard n0 drops_quietly 0\nguard n0 attr_drops_quietly 'a'\nguard n0 "
     "accepts @'b:callable'\n",
     "(C(),)"},
    {"n0 = arg 0\nguard n0 iterator_at (0, 2,)\nn1 = iterator_part n0 0\nn2 = iterator_item n0 1\nguard n2 equals 2\n", "(iter((1, 2)),)"},
    {"n0 = arg 0\nguard n0 " ARRAY
     "\nguard n0 gradient 'numpy' @'b:np.ndarray' keys=0 dtype=0 device=0:0 grad=0 layout=0 sizes=() strides=()\n",
     "(x,)"},
    {"guard - " STATE "\nguard - torch_globals 0 0\nguard - abc_token 5\n", "()"},
    {TWO "n2 = arg 2\nrelation same n0 n1\nrelation distinct n0 n2\nrelation no_dict_of n0 n1 n2\n", "(c, c, vars(c))"},
    {ARRAYS
     "relation storage_distinct n0 n1\nrelation memory_apart n0 n1\nrelation holds n0 n1 'size0.0 size1.0 + 2 * offset0 offset1 != and'\n",
     "(np.ones(4), np.ones(4))"},
    {PLACES "relation memory_apart n0 n1\nrelation holds n0 'offset0 0 =='\n", "(tiny((0,)), tiny((2, 0)))"},
    {"n0 = freevar 0\nn1 = cell_contents n0\nn2 = globals\nn3 = dict_item n2 'C'\nn4 = builtins\nn5 = dict_item n4 'len'\nn6 = "
     "function\nguard n1 is None\n"
     "guard n3 is @'b:C'\nguard n5 is @'b:len'\nguard n6 is_not_none\n",
     "(here,)"},
    {"n0 = const @'b:C'\nn1 = type_lookup n0 'method'\nn2 = mro n0\nn3 = bases n0\nn4 = type_part n0 0\nguard n1 present\nguard n2 length "
     "2\nguard n3 length 1\n"
     "guard n4 equals 'C'\n",
     "()"},
    {"n0 = arg 0\nn1 = dict_key n0 0\nn2 = arg 1\nn3 = proxy_mapping n2\nn4 = arg 2\nn5 = weakref n4\nn6 = arg 3\nn7 = list_item n6 0\nn8 "
     "= tuple_item n7 -1\n"
     "guard n1 equals 'lr'\nguard n3 length 0\nguard n5 type_is @'b:C'\nguard n8 equals 2\n",
     "({'lr': 1}, types.MappingProxyType({}), weakref.ref(c), [(1, 2)])"},
    {"n0 = arg 0\nn1 = type n0\nn2 = instance_attr n0 'a'\nn3 = arg 1\nguard n3 type_is @'b:Slots'\nn4 = slot_attr n3 16\nn5 = arg 2\nn6 = "
     "module_dict n5\n"
     "guard n1 is @'b:C'\nguard n2 equals 1\nguard n4 equals 1\nguard n6 dict_has 'ndarray'\n",
     "(c, Slots(1), np)"},
    {"n0 = function\nn1 = code n0\nn2 = defaults n0\nn3 = kwdefaults n0\nn4 = closure n0\nn5 = func_globals n0\nn6 = func_builtins n0\nn7 "
     "= function_part n0 0\n"
     "n8 = code_part n1 3\nn9 = code_consts n1\nguard n2 length 1\nguard n3 length 1\nguard n4 length 1\nguard n5 dict_has 'C'\nguard n6 "
     "dict_has 'len'\n"
     "guard n7 equals 'inner'\nguard n8 equals 'inner'\nguard n9 type_is @'b:tuple'\n",
     "(here,)"},
    {"n0 = arg 0\nn1 = method_func n0\nn2 = method_self n0\nn3 = arg 1\nn4 = descr_func n3\nn5 = arg 2\nn6 = property_part n5 0\nn7 = arg "
     "3\nn8 = range_part n7 0\n"
     "guard n1 is @'b:C.method'\nguard n2 type_is @'b:C'\nguard n4 is @'b:len'\nguard n6 is @'b:len'\nguard n8 equals 5\n",
     "(c.method, staticmethod(len), property(len), range(5, 9))"},
    {"n0 = arg 0\nn1 = slice_part n0 1\nn2 = arg 1\nn3 = deque_item n2 1\nn4 = arg 2\nn5 = view_dict n4\nn6 = arg 3\nn7 = builtin_self "
     "n6\nn8 = getattr n6 '__name__'\n"
     "guard n1 equals 9\nguard n3 equals 2\nguard n5 dict_has 'lr'\nguard n7 length 1\nguard n8 equals 'append'\n",
     "(slice(5, 9), collections.deque((1, 2)), {'lr': 7}.keys(), [1].append)"},
};
enum { N_CASES = sizeof cases / sizeof *cases, N_SLOTS = 8, N_ENTRIES = 3 };

static fg_status ok_or_python(const void *made)
{
    return made != NULL ? FG_OK : FG_ERR_PYTHON;
}

static fg_status evaluate(const fg_program *program, const fg_view *view, int *answer)
{
    PyObject *inputs[256];
    fg_eval out = {0};
    assert_true(fg_program_max_inputs(program) <= 256);
    *answer = fg_program_eval(program, view, NULL, NULL, inputs, &out);
    fg_eval_release(&out);
    return *answer == FG_EVAL_ERROR ? FG_ERR_PYTHON : FG_OK;
}

/* Three entries of the text and one that is nothing alike, so that masks and tables have something to tell apart. */
static fg_status run_everything(PyObject *text, PyObject *other, const fg_view *view, int *hit)
{
    fg_status st = FG_OK;
    fg_desc *descs[N_ENTRIES] = {NULL};
    fg_program *one = NULL, *all = NULL, *again = NULL;
    PyObject *why = NULL, *tree = NULL, *printed = NULL;
    int answer, checked;

    for (int i = 0; i < N_ENTRIES; i++)
        FG_TRY(fg_desc_from_text(i == 1 ? other : text, resolve, &descs[i]));
    FG_TRY(fg_desc_seal(descs[0]));
    FG_TRY(fg_program_build((const fg_desc *const *)descs, 1, NULL, &one));
    FG_TRY(evaluate(one, view, hit));
    FG_TRY(fg_program_build((const fg_desc *const *)descs, N_ENTRIES, one, &all));
    for (int i = 0; i < 3; i++) { /* memos are made now */
        FG_TRY(evaluate(all, view, &answer));
        assert_int_equal(answer, *hit);
    }
    FG_TRY(fg_program_build((const fg_desc *const *)descs, N_ENTRIES, all, &again));
    FG_TRY(evaluate(again, view, &answer));
    assert_int_equal(answer, *hit);
    checked = fg_desc_check(descs[2], view);
    FG_TRY(checked < 0 ? FG_ERR_PYTHON : FG_OK);
    assert_int_equal(checked, *hit == FG_EVAL_HIT);
    FG_TRY(ok_or_python(why = fg_desc_explain(descs[0], view)));
    assert_int_equal(PyList_GET_SIZE(why) == 0, checked);
    FG_TRY(ok_or_python(tree = fg_desc_tree_str(descs[0])));
    FG_TRY(ok_or_python(printed = fg_desc_to_text(descs[0])));
    (void)fg_desc_refusing_kind(descs[0], view);
fail:
    Py_XDECREF(why);
    Py_XDECREF(tree);
    Py_XDECREF(printed);
    fg_program_free(one);
    fg_program_free(all);
    fg_program_free(again);
    for (int i = 0; i < N_ENTRIES; i++)
        fg_desc_free(descs[i]);
    return st;
}

static void view_of(fg_view *view, PyObject *args, PyObject **slots)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++)
        slots[i] = PyTuple_GET_ITEM(args, i);
    *view = (fg_view){.slots = slots, .n_slots = N_SLOTS, .globals = namespace, .builtins = PyEval_GetBuiltins()};
    if (slots[0] != NULL && PyFunction_Check(slots[0])) {
        view->func = slots[0];
        view->closure = ((PyFunctionObject *)slots[0])->func_closure;
    }
}

static void each_allocation_of_each_kind_may_fail(void **state)
{
    uint8_t kinds[FG_N_GUARDS] = {0}, accessors[FG_N_ACCESSORS] = {0};
    PyObject *other =
        PyUnicode_FromString("framegate-guards 1\nn0 = arg 0\nguard n0 equals 'nothing alike'\nn1 = arg 1\nguard n1 length 77\n");
    (void)state;

    for (int c = 0; c < N_CASES; c++) {
        PyObject *args = eval_in(namespace, cases[c].args), *slots[N_SLOTS] = {NULL};
        PyObject *text = PyUnicode_FromFormat("framegate-guards 1\n%s", cases[c].text);
        fg_view view;
        fg_desc *desc;
        int hit;
        view_of(&view, args, slots);
        assert_int_equal(fg_desc_from_text(text, resolve, &desc), FG_OK);
        for (uint32_t i = 0; i < desc->n_guards; i++)
            kinds[desc->guards[i].kind] = 1;
        for (uint32_t i = 0; i < desc->n_nodes; i++)
            accessors[desc->nodes[i].acc] = 1;
        fg_desc_free(desc);
        assert_int_equal(run_everything(text, other, &view, &hit), FG_OK); /* what is made once in a process is made now */
        for (size_t n = 1;; n++) {
            size_t before = alloc_failing_living();
            alloc_failing_at(n);
            fg_status st = run_everything(text, other, &view, &hit);
            int reached = alloc_failing_fired();
            alloc_failing_at(0);
            if (st == FG_ERR_PYTHON) {
                assert_true(PyErr_ExceptionMatches(PyExc_MemoryError));
                PyErr_Clear();
            } else {
                assert_true(st == FG_OK || st == FG_ERR_NOMEM);
                assert_null(PyErr_Occurred());
            }
            assert_int_equal(alloc_failing_living(), before);
            if (!reached) {
                assert_int_equal(st, FG_OK);
                assert_true(n > 10);
                break;
            }
        }
        Py_DECREF(text);
        Py_DECREF(args);
    }
    for (int i = 0; i < FG_N_GUARDS; i++) {
        if (!kinds[i])
            print_error("no case has the kind %s\n", fg_guard_text(i));
        assert_true(kinds[i]);
    }
    for (int i = 0; i < FG_N_ACCESSORS; i++) {
        if (!accessors[i])
            print_error("no case has the accessor %s\n", fg_accessor_text(i));
        assert_true(accessors[i]);
    }
    Py_DECREF(other);
}

static const char prelude[] = "import collections, types, weakref\n"
                              "import numpy as np\n"
                              "class C:\n"
                              "    def __init__(self): self.a = 1\n"
                              "    def method(self): pass\n"
                              "class Slots:\n"
                              "    __slots__ = ('a',)\n"
                              "    def __init__(self, a): self.a = a\n"
                              "def closed(v):\n"
                              "    def inner(p=1, *, q=2): return v\n"
                              "    return inner\n"
                              "here, x, c = closed(None), np.ones((4, 8)), C()\n"
                              "resolve = lambda name: eval(name.partition(':')[2], globals())\n";

static int start(void **state)
{
    (void)state;
    alloc_failing_install();
    Py_Initialize();
    namespace = PyDict_New();
    PyObject *tiny = dlpack_type_new(1, 1), *name = PyUnicode_FromString("b");
    if (tiny == NULL || PyDict_SetItemString(namespace, "__builtins__", PyEval_GetBuiltins()) < 0 ||
        PyDict_SetItemString(namespace, "__name__", name) < 0 || PyDict_SetItemString(namespace, "tiny", tiny) < 0 ||
        PyRun_String(prelude, Py_file_input, namespace, namespace) == NULL) {
        PyErr_Print();
        return 1;
    }
    resolve = PyDict_GetItemString(namespace, "resolve");
    return fg_tensor_init() != FG_OK || fg_drop_init() != FG_OK || fg_iterators_init() != FG_OK;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation_of_each_kind_may_fail)};
    return cmocka_run_group_tests(tests, start, NULL);
}
