#include "codegen/super_call.h"

#include "runtime/cpython/frame.h"

/* mirrors super_init_without_args (Objects/typeobject.c): the order of the checks and their texts */
static PyObject *super_here(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    if (n != 4) {
        PyErr_SetString(PyExc_SystemError, "framegate: super_here takes 4 arguments");
        return NULL;
    }
    if (!PyType_Check(args[0]) || !PyType_IsSubtype((PyTypeObject *)args[0], &PySuper_Type))
        return PyObject_CallNoArgs(args[0]);
    fg_frame *frame = fg_frame_current();
    const Py_ssize_t cell_slot = PyLong_AsSsize_t(args[1]), first_slot = PyLong_AsSsize_t(args[2]);
    if (first_slot < 0) {
        PyErr_SetString(PyExc_RuntimeError, "super(): no arguments");
        return NULL;
    }
    PyObject *cell = cell_slot < 0 ? NULL : fg_frame_slot(frame, cell_slot), *first = fg_frame_slot(frame, first_slot);
    if (args[3] == Py_True && first != NULL && PyCell_Check(first))
        first = PyCell_GET(first);
    if (first == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "super(): arg[0] deleted");
        return NULL;
    }
    if (cell_slot < 0) {
        PyErr_SetString(PyExc_RuntimeError, "super(): __class__ cell not found");
        return NULL;
    }
    PyObject *cls = cell != NULL && PyCell_Check(cell) ? PyCell_GET(cell) : NULL;
    if (cls == NULL) {
        PyErr_SetString(PyExc_RuntimeError, cell ? "super(): empty __class__ cell" : "super(): bad __class__ cell");
        return NULL;
    }
    if (!PyType_Check(cls)) {
        PyErr_Format(PyExc_RuntimeError, "super(): __class__ is not a type (%s)", Py_TYPE(cls)->tp_name);
        return NULL;
    }
    PyObject *stack[2] = {Py_NewRef(cls), Py_NewRef(first)}, *result = PyObject_Vectorcall(args[0], stack, 2, NULL);
    Py_DECREF(stack[0]);
    Py_DECREF(stack[1]);
    return result;
}

/* The same where class and first argument are values: (callable, class, first argument). */
static PyObject *super_of(PyObject *module, PyObject *all)
{
    (void)module;
    if (!PyTuple_Check(all) || PyTuple_GET_SIZE(all) != 3) {
        PyErr_SetString(PyExc_SystemError, "framegate: super_of takes a tuple of 3");
        return NULL;
    }
    PyObject *callable = PyTuple_GET_ITEM(all, 0);
    if (!PyType_Check(callable) || !PyType_IsSubtype((PyTypeObject *)callable, &PySuper_Type))
        return PyObject_CallNoArgs(callable);
    return PyObject_Vectorcall(callable, ((PyTupleObject *)all)->ob_item + 1, 2, NULL);
}

static PyMethodDef of_def = {"super_of", super_of, METH_O, NULL};

PyObject *fg_super_of_function(void)
{
    static PyObject *function;
    if (function == NULL)
        function = PyCFunction_New(&of_def, NULL);
    return Py_XNewRef(function);
}

static PyMethodDef super_def = {"super_here", (PyCFunction)(void (*)(void))super_here, METH_FASTCALL, NULL};

PyObject *fg_super_function(void)
{
    static PyObject *function;
    if (function == NULL)
        function = PyCFunction_New(&super_def, NULL);
    return Py_XNewRef(function);
}
