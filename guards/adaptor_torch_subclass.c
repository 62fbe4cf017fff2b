/* Subclasses of torch.Tensor, as guards see them: the metadata of one that is an ordinary tensor underneath is read as any other's, by the same offsets, since
 * a subclass begins with its base. One that answers for itself (__torch_dispatch__: its key set says so) has outer sizes of its own in the same places, unless
 * it was made to compute them (dispatch_sizes_strides_policy and its like, symbolic sizes): bits beside the dtype say so, and such a one is refused. Where these
 * bits are is found as the offsets are. What such a tensor is made of is told by its attributes, each by a condition of its own. The tracer takes no subclass for
 * a tensor.
 */
#include "guards/adaptor_torch.h"

static struct {
    uint64_t keys;         /* what makes a tensor answer for itself; 0: not found, such tensors are refused */
    uint64_t mask, stored; /* of the word that holds the dtype: how it is where nothing is computed */
} wrappers;

static uint64_t policy_word(const char *impl)
{
    return fg_torch_raw_word(impl + (fg_torch_raw_now.dtype & ~7));
}

static int read_impl(const char *impl, fg_tensor_meta *meta)
{
    uint64_t keys = fg_torch_raw_word(impl + fg_torch_raw_now.keys);
    if ((keys & fg_torch_raw_now.keys_slow & ~wrappers.keys) || (policy_word(impl) & wrappers.mask) != wrappers.stored)
        return 0;
    fg_torch_raw_fields(impl, keys, meta);
    return 1;
}

static const char *impl_of(PyObject *object)
{
    return (const char *)(uintptr_t)fg_torch_raw_word((const char *)object + fg_torch_raw_now.handle);
}

static int subclass_read(const fg_tensor_adaptor *self, PyObject *object, fg_tensor_meta *meta, const char **why)
{
    const fg_torch_raw *raw = &fg_torch_raw_now;
    const char *impl = NULL;
    if (raw->tensor != NULL && PyType_IsSubtype(Py_TYPE(object), raw->tensor))
        impl = impl_of(object);
    if (impl != NULL && read_impl(impl, meta)) {
        meta->adaptor = self;
        meta->type = Py_TYPE(object);
        return 1;
    }
    if (why != NULL)
        *why = "a tensor of a subclass that computes its sizes, or of a kind that is not read from memory";
    return 0;
}

static PyObject *subclass_dtype(const fg_tensor_meta *meta)
{
    return fg_torch_adaptors[FG_TORCH_RAW].dtype_object(meta);
}

static const fg_tensor_adaptor adaptor = {
    "torch", "subclass", FG_PURE_READ | FG_PURE_STORAGE, subclass_read, subclass_read, NULL, subclass_dtype, NULL, NULL, NULL, NULL};

const fg_tensor_adaptor *fg_torch_subclass_adaptor(PyTypeObject *type)
{
    return fg_torch_setup() && fg_torch_raw_now.tensor != NULL && PyType_IsSubtype(type, fg_torch_raw_now.tensor) ? &adaptor : NULL;
}

/* ---- where it is said that sizes are computed ---- */

static PyObject *wrapper_class(void)
{
    PyObject *dispatch = PyObject_CallFunction((PyObject *)&PyStaticMethod_Type, "O", (PyObject *)&PyBaseObject_Type);
    PyObject *type = dispatch == NULL ? NULL
                                      : PyObject_CallFunction((PyObject *)&PyType_Type, "s(O){sO}", "fg_wrapper",
                                                              (PyObject *)fg_torch_py.tensor, "__torch_dispatch__", dispatch);
    Py_XDECREF(dispatch);
    return type;
}

/* Of a few ranks, dtypes and strides, one that requires grad: a bit that is the same in all of these, and another where something is computed, says so. */
static const struct wrapper_row {
    const char *sizes, *strides, *dtype;
    int requires_grad;
} plain_rows[] = {{"2,3", "3,1", "float32", 0}, {"5", "1", "float64", 0}, {"", "", "int64", 0},
                  {"2,3", "1,2", "float32", 0}, {"0", "1", "uint8", 0},   {"2,3,1,2,2,3", "36,12,12,6,3,1", "float32", 1}};
#define N_PLAIN (sizeof plain_rows / sizeof *plain_rows)

static const struct computed_row {
    const char *option, *value; /* NULL: True */
} computed_rows[] = {{"dispatch_sizes_strides_policy", "strides"},
                     {"dispatch_sizes_strides_policy", "sizes"},
                     {"dispatch_device", NULL},
                     {"dispatch_layout", NULL}};
#define N_COMPUTED (sizeof computed_rows / sizeof *computed_rows)

static PyObject *wrapper_make(PyObject *type, const struct wrapper_row *row, const struct computed_row *computed)
{
    PyObject *make = PyObject_GetAttrString((PyObject *)fg_torch_py.tensor, "_make_wrapper_subclass"), *made = NULL;
    PyObject *sizes = fg_torch_ints(row->sizes), *strides = fg_torch_ints(row->strides), *args = NULL, *kwargs = NULL;
    PyObject *dtype = PyObject_GetAttrString(fg_torch_py.torch, row->dtype);
    if (make == NULL || sizes == NULL || strides == NULL || dtype == NULL)
        goto done;
    args = Py_BuildValue("(OO)", type, sizes);
    kwargs = Py_BuildValue("{sO,sO,ss,sO}", "strides", strides, "dtype", dtype, "device", "cpu", "requires_grad",
                           row->requires_grad ? Py_True : Py_False);
    if (args == NULL || kwargs == NULL)
        goto done;
    if (computed != NULL) {
        PyObject *value = computed->value != NULL ? PyUnicode_FromString(computed->value) : Py_NewRef(Py_True);
        int set = value != NULL ? PyDict_SetItemString(kwargs, computed->option, value) : -1;
        Py_XDECREF(value);
        if (set < 0)
            goto done;
    }
    made = PyObject_Call(make, args, kwargs);
done:
    Py_XDECREF(make);
    Py_XDECREF(sizes);
    Py_XDECREF(strides);
    Py_XDECREF(dtype);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return made;
}

static int ints_are(const int64_t *seen, int n, const char *text)
{
    PyObject *ints = fg_torch_ints(text);
    int same = ints != NULL && PyTuple_GET_SIZE(ints) == n;
    for (int i = 0; same && i < n; i++)
        same = PyLong_AsLongLong(PyTuple_GET_ITEM(ints, i)) == seen[i];
    Py_XDECREF(ints);
    return same;
}

/* 1 if what is read of the wrapper is what it was made with. */
static int reads_right(PyObject *wrapper, const struct wrapper_row *row)
{
    fg_tensor_meta meta = {0};
    if (!read_impl(impl_of(wrapper), &meta) || meta.requires_grad != row->requires_grad || meta.device_type != 0 ||
        !ints_are(meta.sizes, meta.ndim, row->sizes) || !ints_are(meta.strides, meta.ndim, row->strides))
        return 0;
    PyObject *want = PyObject_GetAttrString(fg_torch_py.torch, row->dtype), *seen = subclass_dtype(&meta);
    int same = want != NULL && want == seen;
    Py_XDECREF(want);
    Py_XDECREF(seen);
    return same;
}

void fg_torch_wrappers_find(void)
{
    PyObject *type = wrapper_class(), *plain[N_PLAIN] = {NULL};
    uint64_t same = ~UINT64_C(0), first = 0, mask = 0;
    int fine = type != NULL;

    for (size_t i = 0; fine && i < N_PLAIN; i++) {
        plain[i] = wrapper_make(type, &plain_rows[i], NULL);
        if ((fine = plain[i] != NULL)) {
            uint64_t word = policy_word(impl_of(plain[i]));
            first = i == 0 ? word : first;
            same &= ~(word ^ first);
        }
    }
    for (size_t i = 0; fine && i < N_COMPUTED; i++) {
        PyObject *computed = wrapper_make(type, &plain_rows[0], &computed_rows[i]);
        uint64_t differs = computed != NULL ? (policy_word(impl_of(computed)) ^ first) & same : 0;
        fine = differs != 0;
        mask |= differs;
        Py_XDECREF(computed);
    }
    if (fine) {
        wrappers.keys = fg_torch_key_bits("Python") | fg_torch_key_bits("PythonTLSSnapshot");
        wrappers.mask = mask;
        wrappers.stored = first & mask;
    }
    for (size_t i = 0; i < N_PLAIN; i++) {
        fine = fine && reads_right(plain[i], &plain_rows[i]);
        Py_XDECREF(plain[i]);
    }
    Py_XDECREF(type);
    PyErr_Clear();
    if (!fine)
        wrappers.keys = wrappers.mask = wrappers.stored = 0;
}
