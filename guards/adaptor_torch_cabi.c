#include "guards/adaptor_torch.h"
#include <dlfcn.h>

/* The C interface that torch itself exports for ahead-of-time compiled models: getters over a handle, which is the address of the word that
 * holds the impl inside the Python object. They catch C++ exceptions and return a code, so no exception can cross a C frame; but a caught one
 * costs a millisecond, and kinds with a size policy of their own would run Python. Therefore the key set is asked first and such kinds never
 * get here. The data pointer is never asked for: that would materialise a copy-on-write tensor.
 */

typedef int32_t (*get_i64)(void *handle, int64_t *out);
typedef int32_t (*get_i32)(void *handle, int32_t *out);
typedef int32_t (*get_words)(void *handle, int64_t **out);

static get_i64 get_dim, get_offset;
static get_i32 get_dtype, get_device_type, get_device_index;
static get_words get_sizes, get_strides;
static bool (*impl_requires_grad)(const void *impl);
static uint16_t slot;

static void *symbol(void *library, const char *name)
{
    return library != NULL ? dlsym(library, name) : NULL;
}

fg_status fg_torch_cabi_find(const fg_torch_sample *samples, size_t n)
{
    /* NOLOAD: only what `import torch` has loaded. The handles stay open for the life of the process. */
    void *cpu = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
    void *core = dlopen("libc10.so", RTLD_NOLOAD | RTLD_LAZY);
    get_dim = (get_i64)symbol(cpu, "aoti_torch_get_dim");
    get_offset = (get_i64)symbol(cpu, "aoti_torch_get_storage_offset");
    get_dtype = (get_i32)symbol(cpu, "aoti_torch_get_dtype");
    get_device_type = (get_i32)symbol(cpu, "aoti_torch_get_device_type");
    get_device_index = (get_i32)symbol(cpu, "aoti_torch_get_device_index");
    get_sizes = (get_words)symbol(cpu, "aoti_torch_get_sizes");
    get_strides = (get_words)symbol(cpu, "aoti_torch_get_strides");
    /* Cannot throw: tests the autograd record and calls its virtual requires_grad, which reads two fields. */
    impl_requires_grad = (bool (*)(const void *))symbol(core, "_ZNK3c1010TensorImpl13requires_gradEv");
    slot = fg_torch_slot_find(samples, n);
    uint64_t keys;
    /* To ask Python for the keys would allocate, and so run destructors: the layer is pure. */
    if (slot == 0 || n == 0 || !fg_torch_raw_keys(samples[0].object, &keys) || get_dim == NULL || get_dtype == NULL ||
        get_device_type == NULL || get_device_index == NULL || get_sizes == NULL || get_strides == NULL || impl_requires_grad == NULL)
        return FG_ERR_UNSUPPORTED;
    return FG_OK;
}

int fg_torch_cabi_offset(PyObject *object, int64_t *offset)
{
    return slot != 0 && get_offset != NULL && get_offset((char *)object + slot, offset) == 0;
}

int fg_torch_cabi_read(PyObject *object, fg_tensor_meta *meta, const char **why)
{
    const char *reason = NULL;
    int64_t ndim, *sizes, *strides;
    int32_t dtype, device_type, device_index;
    void *handle = (char *)object + slot;
    if (Py_TYPE(object) != fg_torch_py.tensor && Py_TYPE(object) != fg_torch_py.parameter) {
        reason = "not an exact torch.Tensor or torch.nn.Parameter";
        goto refuse;
    }
    const void *impl = (const void *)(uintptr_t)fg_torch_raw_word(handle);
    if (impl == NULL) {
        reason = "the tensor is being torn down";
        goto refuse;
    }
    if (!fg_torch_raw_keys(object, &meta->keys)) {
        reason = "where torch keeps the tensor's dispatch keys is not known";
        goto refuse;
    }
    if ((reason = fg_torch_keys_refuse(meta->keys)) != NULL)
        goto refuse;
    if (get_dim(handle, &ndim) != 0 || get_sizes(handle, &sizes) != 0 || get_strides(handle, &strides) != 0 ||
        get_dtype(handle, &dtype) != 0 || get_device_type(handle, &device_type) != 0 || get_device_index(handle, &device_index) != 0) {
        reason = "the tensor has no plain sizes (symbolic)";
        goto refuse;
    }
    meta->adaptor = &fg_torch_adaptors[FG_TORCH_CABI];
    meta->type = Py_TYPE(object);
    meta->dtype = dtype;
    meta->device_type = (int16_t)device_type;
    meta->device_index = (int16_t)device_index;
    meta->layout = 0;
    meta->ndim = (int32_t)ndim;
    meta->sizes = sizes;
    meta->strides = strides;
    meta->requires_grad = impl_requires_grad(impl);
    return 1;
refuse:
    if (why != NULL)
        *why = reason;
    return 0;
}
