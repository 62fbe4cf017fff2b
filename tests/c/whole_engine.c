#include "tests/c/whole_engine.h"

#include <Python.h>
#include <stdio.h>

PyMODINIT_FUNC PyInit__core(void); /* python_bindings/ext/module.c */

int whole_engine_install(void)
{
    return PyImport_AppendInittab("framegate._core", PyInit__core);
}

int whole_engine_run(const char *name)
{
    char path[4096];
    PyObject *folders = PySys_GetObject("path"), *package = PyUnicode_FromString(FG_SOURCE_DIR "/python_bindings");
    int failed = folders == NULL || package == NULL || PyList_Insert(folders, 0, package) < 0;
    Py_XDECREF(package);
    if (failed) {
        PyErr_Print();
        return -1;
    }
    snprintf(path, sizeof path, FG_SOURCE_DIR "/tests/c/%s", name);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return -1;
    return PyRun_SimpleFileEx(file, path, 1);
}
