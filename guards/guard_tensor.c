#include "guards/guard_tensor.h"
#include "guards/adaptor_dlpack.h"
#include "guards/adaptor_numpy_init.h"
#include "guards/adaptor_numpy.h"
#include "guards/adaptor_torch.h"

int fg_tensor_meta_same(const fg_tensor_meta *a, const fg_tensor_meta *b)
{
    if (a->type != b->type || a->keys != b->keys || a->dtype != b->dtype || a->device_type != b->device_type ||
        a->device_index != b->device_index || a->requires_grad != b->requires_grad || a->layout != b->layout || a->ndim != b->ndim)
        return 0;
    if (a->ndim <= 0)
        return a->ndim == 0;
    size_t bytes = (size_t)a->ndim * sizeof *a->sizes;
    return memcmp(a->sizes, b->sizes, bytes) == 0 && memcmp(a->strides, b->strides, bytes) == 0;
}

int fg_tensor_place_of(int64_t first, int64_t itemsize, int64_t unit, const fg_tensor_meta *meta, fg_tensor_place *place)
{
    *place = (fg_tensor_place){first, first, first};
    for (int32_t i = 0; i < meta->ndim; i++) {
        if (meta->sizes[i] == 0)
            return 1;
    }
    for (int32_t i = 0; i < meta->ndim; i++) {
        int64_t *side = meta->strides[i] < 0 ? &place->lo : &place->hi, reach;
        if (__builtin_mul_overflow(meta->strides[i], unit, &reach) || __builtin_mul_overflow(meta->sizes[i] - 1, reach, &reach) ||
            __builtin_add_overflow(*side, reach, side))
            return 0;
    }
    return !__builtin_add_overflow(place->hi, itemsize, &place->hi);
}

int fg_tensor_memory_of(const fg_tensor_adaptor *adaptor, PyObject *object, fg_tensor_memory *memory)
{
    static const char addresses; /* one space for all storages whose extent is known */
    const void *storage = adaptor->storage != NULL ? adaptor->storage(object) : NULL;
    fg_tensor_place place;

    if (storage == NULL)
        return adaptor->storage != NULL && !(adaptor->pure & FG_PURE_STORAGE) && PyErr_Occurred() ? -1 : 0;
    *memory = (fg_tensor_memory){.space = storage, .lo = INT64_MIN, .hi = INT64_MAX};
    int64_t base = 0;
    if (adaptor->extent != NULL) {
        int r = adaptor->extent(storage, &memory->lo, &memory->hi);
        if (r < 0)
            return 0;
        if (r == 0) {
            memory->lo = INT64_MIN;
            memory->hi = INT64_MAX;
        } else {
            memory->space = &addresses;
            base = memory->lo;
        }
    }
    int placed = adaptor->place != NULL ? adaptor->place(adaptor, object, &place) : 0;
    if (placed < 0)
        return -1;
    memory->is_placed =
        placed == 1 && !__builtin_add_overflow(place.lo, base, &memory->elements) && !__builtin_add_overflow(place.hi, base, &memory->end);
    return 1;
}

fg_status fg_tensor_init(void)
{
    return fg_numpy_init();
}

const fg_tensor_adaptor *fg_tensor_adaptor_known(const PyTypeObject *type)
{
    if (type == fg_numpy_array_type)
        return fg_numpy_adaptor;
    if (type == fg_torch_py.tensor || type == fg_torch_py.parameter)
        return fg_torch_adaptor_now();
    return fg_dlpack_adaptor_known(type);
}

const fg_tensor_adaptor *fg_tensor_adaptor_describe(PyTypeObject *type)
{
    const fg_tensor_adaptor *adaptor = fg_tensor_adaptor_find(type);
    return adaptor == NULL && fg_torch_type_is_family(type) ? fg_torch_subclass_adaptor(type) : adaptor;
}

const fg_tensor_adaptor *fg_tensor_adaptor_find(PyTypeObject *type)
{
    if (type == fg_numpy_array_type)
        return fg_numpy_adaptor;
    /* Subclasses of ndarray export DLPack in no way that keeps their own rules: they are no tensors to us. */
    if (fg_numpy_array_type != NULL && PyType_IsSubtype(type, fg_numpy_array_type))
        return NULL;
    if (fg_torch_type_is_family(type))
        return fg_torch_adaptor_find(type);
    return fg_dlpack_adaptor_find(type);
}
