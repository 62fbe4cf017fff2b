/* Decoder, assembler and verifier from C: out-of-memory at every allocation, counts of the decode cache, speed of assembling 1000
 * instructions, and the canonical tables against each other. */
#include <Python.h>

#include "runtime/base/alloc.h"
#include "runtime/cpython/canonical_shape.h"
#include "runtime/cpython/frame.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* libc, with the n-th allocation failing. */
static long until_failure = -1, live;

static int fails(void)
{
    return until_failure >= 0 && until_failure-- == 0;
}

static void *failing_malloc(size_t size)
{
    void *block = fails() ? NULL : malloc(size);
    live += block != NULL;
    return block;
}

static void *failing_calloc(size_t count, size_t size)
{
    void *block = fails() ? NULL : calloc(count, size);
    live += block != NULL;
    return block;
}

static void *failing_realloc(void *old, size_t size)
{
    void *block = fails() ? NULL : realloc(old, size);
    live += block != NULL && old == NULL;
    return block;
}

static void failing_free(void *block)
{
    live -= block != NULL;
    free(block);
}

static const fg_alloc_table failing = {"failing", failing_malloc, failing_calloc, failing_realloc, failing_free, NULL};

static PyCodeObject *compiled(const char *source)
{
    PyObject *module = Py_CompileString(source, "test.py", Py_file_input);
    assert_non_null(module);
    PyObject *consts = ((PyCodeObject *)module)->co_consts;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(consts); i++)
        if (PyCode_Check(PyTuple_GET_ITEM(consts, i))) {
            PyCodeObject *code = (PyCodeObject *)Py_NewRef(PyTuple_GET_ITEM(consts, i));
            Py_DECREF(module);
            return code;
        }
    fail_msg("no function in the source");
    return NULL;
}

static const char function[] = "def f(a, b=1, *c, k=2, **d):\n"
                               "    try:\n"
                               "        with a as q:\n"
                               "            return [x + k for x in c if x] or f(a, k=b, **d)\n"
                               "    except (ValueError, TypeError) as e:\n"
                               "        print(f'{a!r:>{b}}', super, 1.0, 1, True, (1, 2.0))\n"
                               "    finally:\n"
                               "        del a\n";

static fg_status again(PyCodeObject *code, PyCodeObject **made)
{
    fg_icode *icode = NULL;
    fg_status st = fg_decode(code, &icode);
    if (st != FG_OK)
        return st;
    fg_asm in = {.instrs = icode->instrs,
                 .n_instrs = icode->n_instrs,
                 .handlers = icode->handlers,
                 .n_handlers = icode->n_handlers,
                 .base = code,
                 .argcount = code->co_argcount,
                 .posonlyargcount = code->co_posonlyargcount,
                 .kwonlyargcount = code->co_kwonlyargcount,
                 .flags = code->co_flags,
                 .firstlineno = code->co_firstlineno};
    in.varnames = PyCode_GetVarnames(code);
    in.cellvars = PyCode_GetCellvars(code);
    in.freevars = PyCode_GetFreevars(code);
    assert_true(in.varnames && in.cellvars && in.freevars);
    st = fg_assemble(&in, made);
    Py_DECREF(in.varnames);
    Py_DECREF(in.cellvars);
    Py_DECREF(in.freevars);
    fg_icode_release(icode);
    return st;
}

static void running_out_of_memory_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    int failures = 0;
    for (long n = 0;; n++) {
        PyCodeObject *code = compiled(function), *made = NULL;
        const long before = live;
        until_failure = n;
        const fg_status st = again(code, &made);
        const int reached = until_failure < 0;
        until_failure = -1;
        if (st == FG_OK) {
            const char *why;
            assert_int_equal(fg_verify_code(made, &why), FG_OK);
            Py_DECREF(made);
        } else {
            failures++;
            assert_true(st == FG_ERR_NOMEM || (st == FG_ERR_PYTHON && PyErr_ExceptionMatches(PyExc_MemoryError)));
            PyErr_Clear();
        }
        Py_DECREF(code);
        assert_int_equal(live, before);
        if (!reached)
            break;
    }
    assert_true(failures >= 4);
}

static void decoding_twice_gives_the_same_and_does_not_hold_the_code(void **state)
{
    (void)state;
    PyCodeObject *code = compiled(function);
    const Py_ssize_t before = Py_REFCNT(code);
    fg_icode *one = NULL, *two = NULL;
    assert_int_equal(fg_decode(code, &one), FG_OK);
    assert_int_equal(fg_decode(code, &two), FG_OK);
    assert_ptr_equal(one, two);
    assert_int_equal(Py_REFCNT(code), before + 1);
    fg_icode_release(one);
    assert_int_equal(Py_REFCNT(code), before + 1);
    fg_icode_release(two);
    assert_int_equal(Py_REFCNT(code), before);
    assert_int_equal(fg_decode(code, &two), FG_OK);
    assert_ptr_equal(one, two);
    const long with_block = live;
    Py_DECREF(code); /* the holder keeps the code object */
    assert_string_equal(PyUnicode_AsUTF8(two->code->co_name), "f");
    fg_icode_release(two);
    assert_int_equal(live, with_block - 1);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void a_thousand_instructions_take_well_under_a_millisecond(void **state)
{
    (void)state;
    char source[16384] = "def f(a, b):\n";
    for (int i = 0; i < 70; i++)
        strcat(source, "    b = a.m(b, len(a)) + b[a]\n    if b: a.x = g(b)\n");
    PyCodeObject *code = compiled(source), *made = NULL;
    fg_icode *icode;
    assert_int_equal(fg_decode(code, &icode), FG_OK);
    const int n = icode->n_instrs;
    assert_true(n > 1000);
    double best = 1, best_decode = 1;
    for (int round = 0; round < 30; round++) {
        const double start = seconds();
        assert_int_equal(again(code, &made), FG_OK);
        const double took = seconds() - start;
        best = took < best ? took : best;
        Py_DECREF(made);
        PyCodeObject *fresh = compiled(source);
        fg_icode *other;
        const double decode = seconds();
        assert_int_equal(fg_decode(fresh, &other), FG_OK);
        best_decode = seconds() - decode < best_decode ? seconds() - decode : best_decode;
        fg_icode_release(other);
        Py_DECREF(fresh);
    }
    fg_icode_release(icode);
    Py_DECREF(code);
    print_message("%d instructions: decode %.1f us, assemble %.1f us\n", n, 1e6 * best_decode, 1e6 * best);
    assert_true(best < 2e-3); /* loose: sanitizer builds run this too */
}

static void stack_left_is_cheap_and_shrinks(void **state)
{
    (void)state;
    volatile size_t sink = 0;
    const size_t here = fg_stack_left();
    assert_true(here > 4096 && here != SIZE_MAX);
    const double start = seconds();
    for (int i = 0; i < 1000000; i++)
        sink += fg_stack_left();
    print_message("fg_stack_left: %.2f ns\n", 1e3 * (seconds() - start));
    assert_true(sink > 0);
}

static void every_canonical_op_has_a_name_and_a_shape(void **state)
{
    (void)state;
    for (int op = 0; op < FG_N_COPS; op++) {
        const fg_instr instr = {.op = (uint8_t)op, .arg = 2, .target = -1, .handler = -1};
        const fg_shape shape = fg_instr_shape(&instr, 0);
        assert_true(strlen(fg_cop_name(op)) > 2);
        assert_int_equal(fg_instr_effect(&instr, 0), shape.pushes - shape.pops);
        assert_true(fg_instr_reach(&instr) >= shape.pops || op == FG_OP_COPY || op == FG_OP_SWAP);
        assert_in_range(fg_cop_raises(op), 0, 2);
    }
    assert_string_equal(fg_cop_name(-1), "?");
    assert_string_equal(fg_cop_name(FG_N_COPS), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(running_out_of_memory_is_reported_and_leaks_nothing),
        cmocka_unit_test(decoding_twice_gives_the_same_and_does_not_hold_the_code),
        cmocka_unit_test(a_thousand_instructions_take_well_under_a_millisecond),
        cmocka_unit_test(stack_left_is_cheap_and_shrinks),
        cmocka_unit_test(every_canonical_op_has_a_name_and_a_shape),
    };
    if (fg_alloc_table_set(&failing) != FG_OK)
        return 1;
    Py_InitializeEx(0);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return Py_FinalizeEx() < 0 || failed;
}
