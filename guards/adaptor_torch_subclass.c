/* Subclasses of torch.Tensor, as guards see them: the metadata of one that is an ordinary tensor underneath is read as any other's, by the same offsets, since
 * a subclass begins with its base. One that answers for itself (__torch_dispatch__: its key set says so) may have sizes that only its code knows, and is
 * refused: what it is made of is told by its type and its attributes, each by a condition of its own. The tracer takes no subclass for a tensor.
 */
#include "guards/adaptor_torch.h"

static int subclass_read(const fg_tensor_adaptor *self, PyObject *object, fg_tensor_meta *meta, const char **why)
{
    const fg_torch_raw *raw = &fg_torch_raw_now;
    const char *impl = NULL;
    if (raw->tensor != NULL && PyType_IsSubtype(Py_TYPE(object), raw->tensor))
        impl = (const char *)(uintptr_t)fg_torch_raw_word((const char *)object + raw->handle);
    if (impl != NULL && fg_torch_raw_read_impl(impl, meta) == 1) {
        meta->adaptor = self;
        meta->type = Py_TYPE(object);
        return 1;
    }
    if (why != NULL)
        *why = "a tensor of a subclass that answers for itself, or of a kind that is not read from memory";
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
