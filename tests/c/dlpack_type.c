#include "tests/c/dlpack_type.h"
#include "guards/adaptor_dlpack.h"

typedef struct tensor {
    PyObject_HEAD int64_t shape[8], strides[8];
    int ndim, has_strides, fail, code, bits, lanes;
} tensor;

static int words(PyObject *tuple, int64_t *out, int *n)
{
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) > 8) {
        PyErr_SetString(PyExc_ValueError, "a tuple of at most 8 ints");
        return -1;
    }
    *n = (int)PyTuple_GET_SIZE(tuple);
    for (int i = 0; i < *n; i++)
        out[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
    return PyErr_Occurred() ? -1 : 0;
}

static int tensor_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"shape", "strides", "dtype", "fail", NULL};
    tensor *t = (tensor *)self;
    PyObject *shape, *strides = Py_None;
    int n = 0;
    t->code = 2;
    t->bits = 32;
    t->lanes = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O(iii)p", names, &shape, &strides, &t->code, &t->bits, &t->lanes, &t->fail))
        return -1;
    if (words(shape, t->shape, &t->ndim) < 0)
        return -1;
    t->has_strides = strides != Py_None;
    return t->has_strides ? words(strides, t->strides, &n) : 0;
}

static int describe(void *object, fg_dlpack_tensor *out)
{
    tensor *t = object;
    if (t->fail) {
        PyErr_SetString(PyExc_BufferError, "no description today");
        return -1;
    }
    out->device.type = 1;
    out->device.index = 0;
    out->ndim = t->ndim;
    out->dtype.code = (uint8_t)t->code;
    out->dtype.bits = (uint8_t)t->bits;
    out->dtype.lanes = (uint16_t)t->lanes;
    out->shape = t->shape;
    out->strides = t->has_strides ? t->strides : NULL;
    return 0;
}

PyObject *dlpack_type_new(int with_table, uint32_t major)
{
    static fg_dlpack_table tables[4];
    PyType_Slot slots[] = {{Py_tp_init, (void *)tensor_init}, {Py_tp_new, (void *)PyType_GenericNew}, {0, NULL}};
    PyType_Spec spec = {"tiny.Tensor", sizeof(tensor), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    PyObject *type = PyType_FromSpec(&spec);
    if (type != NULL && with_table) {
        fg_dlpack_table *table = &tables[major & 3];
        table->version.major = major;
        table->tensor_from_object = describe;
        PyObject *capsule = PyCapsule_New(table, "dlpack_exchange_api", NULL);
        if (capsule == NULL || PyObject_SetAttrString(type, "__dlpack_c_exchange_api__", capsule) < 0)
            Py_CLEAR(type);
        Py_XDECREF(capsule);
    }
    return type;
}
