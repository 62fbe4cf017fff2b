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
    PyObject **slots = fg_frame_slots(fg_frame_current());
    PyObject *cell = slots[PyLong_AsSsize_t(args[1])], *first = slots[PyLong_AsSsize_t(args[2])];
    if (args[3] == Py_True && first != NULL && PyCell_Check(first))
        first = PyCell_GET(first);
    if (first == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "super(): arg[0] deleted");
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

static PyMethodDef super_def = {"super_here", (PyCFunction)(void (*)(void))super_here, METH_FASTCALL, NULL};

PyObject *fg_super_function(void)
{
    static PyObject *function;
    if (function == NULL)
        function = PyCFunction_New(&super_def, NULL);
    return Py_XNewRef(function);
}
