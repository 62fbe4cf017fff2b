/* The guard text parser: any bytes give a description or an error; what parses prints to text that parses to the same text, and can be checked,
 * explained and built into a program whose answer is the check's. */
#include <Python.h>

#include "guards/guard_program.h"
#include "guards/guard_tensor.h"
#include "runtime/base/alloc.h"
#include "runtime/cpython/iterators.h"

#include <stdio.h>
#include <stdlib.h>

static PyObject *args;

static void require(int condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "fuzz_guard_text: %s\n", what);
        PyErr_Print();
        abort();
    }
}

static void start(void)
{
    Py_Initialize();
    require(fg_tensor_init() == FG_OK && fg_iterators_init() == FG_OK, "numpy");
    PyObject *names = PyDict_New();
    require(names != NULL && PyDict_SetItemString(names, "__builtins__", PyEval_GetBuiltins()) == 0, "names");
    args = PyRun_String("({'lr': 0.5, 1: [1, 2], (1, 'a'): b'x'}, [1, (2, 3)], __import__('numpy').ones((2, 3)), 7, 'text', len)",
                        Py_eval_input, names, names);
    require(args != NULL, "arguments");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fg_desc *desc, *again;
    fg_program *program;
    fg_eval out = {0};

    if (args == NULL)
        start();
    PyObject *text = PyUnicode_DecodeUTF8((const char *)data, (Py_ssize_t)size, "surrogateescape");
    require(text != NULL, "decoding");
    fg_status st = fg_desc_from_text(text, NULL, &desc);
    Py_DECREF(text);
    if (st != FG_OK) {
        require(st == FG_ERR_PYTHON && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_ValueError), "an error of another kind");
        PyErr_Clear();
        return 0;
    }
    PyObject *printed = fg_desc_to_text(desc);
    require(printed != NULL, "printing");
    require(fg_desc_from_text(printed, NULL, &again) == FG_OK, "what was printed does not parse");
    PyObject *twice = fg_desc_to_text(again);
    require(twice != NULL && PyUnicode_Compare(printed, twice) == 0, "printing is not stable");

    fg_view view = {.slots = ((PyTupleObject *)args)->ob_item, .n_slots = PyTuple_GET_SIZE(args)};
    int ok = fg_desc_check(desc, &view);
    require(ok >= 0, "check");
    PyObject *why = fg_desc_explain(desc, &view), *tree = fg_desc_tree_str(desc);
    require(why != NULL && tree != NULL, "explanation");
    require((PyList_GET_SIZE(why) == 0) == ok, "explanation and check disagree");
    const fg_desc *both[] = {desc, again};
    for (size_t n = 1; n <= 2; n++) {
        require(fg_program_build(both, n, NULL, &program) == FG_OK, "building");
        PyObject **inputs = malloc((fg_program_max_inputs(program) + 1) * sizeof *inputs);
        fg_eval_result answer = fg_program_eval(program, &view, NULL, NULL, inputs, &out);
        require(answer == (ok ? FG_EVAL_HIT : FG_EVAL_MISS), "program and check disagree");
        fg_eval_release(&out);
        free(inputs);
        fg_program_free(program);
    }
    Py_DECREF(why);
    Py_DECREF(tree);
    Py_DECREF(printed);
    Py_DECREF(twice);
    fg_desc_free(desc);
    fg_desc_free(again);
    return 0;
}
