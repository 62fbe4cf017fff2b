#include "guards/adaptor_torch.h"
#include "guards/adaptor_torch_globals.h"
#include "guards/adaptor_torch_state.h"
#include <pythread.h>
#include <stdlib.h>

/* torch's adaptor: set-up at first sight, choice of the layer, recording.
 *
 *     raw ── verified against ──┐
 *     C ABI ────────────────────┤   Python's answer over the battery, at first sight;
 *     harvested descriptors ────┤   again for each tensor that the tracer records
 *     attributes ───────────────┘   (= the answer)
 *
 * Each layer has an adaptor of its own, because they differ in what they may do while guards are evaluated; the one of the layer in use reads.
 *
 * First sight is when the tracer or a guard miss meets a type of torch's family, or when the state is asked for while sys.modules has torch.
 * The set-up runs on a thread of its own, because torch's modes, grad switches and autocast belong to a thread: on the user's thread the
 * battery would be made under whatever the user has switched on, and a mode's Python code would see our tensors.
 */

fg_torch_names fg_torch_py;

static enum { UNSEEN, RUNNING, READY, UNUSABLE } stage;
static fg_torch_layer layer_now = FG_TORCH_NONE;
static const char *notes[FG_TORCH_N_LAYERS] = {"", "", "", ""};
static uint8_t usable[FG_TORCH_N_LAYERS];

static const fg_torch_read layers[FG_TORCH_N_LAYERS] = {fg_torch_raw_layer_read, fg_torch_cabi_read, fg_torch_harvest_read,
                                                        fg_torch_python_read};

static int adaptor_read(const fg_tensor_adaptor *self, PyObject *object, fg_tensor_meta *meta, const char **why);
static int raw_read(const fg_tensor_adaptor *self, PyObject *object, fg_tensor_meta *meta, const char **why);
static int adaptor_record(const fg_tensor_adaptor *self, PyObject *object, fg_tensor_meta *meta, const char **why);
static const void *storage_raw(PyObject *object);
static const void *storage_python(PyObject *object);
static PyObject *adaptor_dtype(const fg_tensor_meta *meta);
static int adaptor_place(const fg_tensor_adaptor *self, PyObject *object, fg_tensor_place *place);

/* What a layer may do is fixed at compile time, so entries know it for good: those of a layer that was dropped match nothing any more. */
const fg_tensor_adaptor fg_torch_adaptors[FG_TORCH_N_LAYERS] = {
    {"torch", "raw", FG_PURE_READ | FG_PURE_STORAGE | FG_PURE_GRADIENT, raw_read, adaptor_record, storage_raw, adaptor_dtype,
     fg_torch_words, adaptor_place, fg_torch_storage_extent, fg_torch_grad_raw},
    {"torch", "cabi", FG_PURE_READ, adaptor_read, adaptor_record, storage_python, adaptor_dtype, NULL, adaptor_place,
     fg_torch_storage_extent, fg_torch_grad_python},
    {"torch", "harvest", 0, adaptor_read, adaptor_record, storage_python, adaptor_dtype, NULL, adaptor_place, fg_torch_storage_extent,
     fg_torch_grad_python},
    {"torch", "python", 0, adaptor_read, adaptor_record, storage_python, adaptor_dtype, NULL, adaptor_place, fg_torch_storage_extent,
     fg_torch_grad_python},
};

static void layer_choose(void)
{
    int i = 0;
    while (i < FG_TORCH_N_LAYERS && !usable[i])
        i++;
    layer_now = (fg_torch_layer)i;
    if (i != FG_TORCH_RAW)
        fg_torch_raw_drop();
}

static void layer_drop(fg_torch_layer layer, const char *note)
{
    usable[layer] = 0;
    notes[layer] = note;
    layer_choose();
}

const fg_tensor_adaptor *fg_torch_adaptor_now(void)
{
    return layer_now == FG_TORCH_NONE ? NULL : &fg_torch_adaptors[layer_now];
}

int fg_torch_adaptor_is(const fg_tensor_adaptor *adaptor)
{
    for (int i = 0; i < FG_TORCH_N_LAYERS; i++)
        if (adaptor == &fg_torch_adaptors[i])
            return 1;
    return 0;
}

const char *fg_torch_layer_note(fg_torch_layer layer)
{
    return notes[layer];
}

static int adaptor_read(const fg_tensor_adaptor *self, PyObject *object, fg_tensor_meta *meta, const char **why)
{
    if (self != fg_torch_adaptor_now()) {
        if (why != NULL)
            *why = "the way of reading torch tensors that was in use then is not in use any more";
        return 0;
    }
    int r = layers[layer_now](object, meta, why);
    meta->adaptor = self;
    return r;
}

/* While the layer is off it knows no type. The rest is for Meta tensors, and for the reason of a refusal. */
static int raw_read(const fg_tensor_adaptor *self, PyObject *object, fg_tensor_meta *meta, const char **why)
{
    return fg_torch_raw_read(object, meta) == 1 ? 1 : adaptor_read(self, object, meta, why);
}

const char *fg_torch_keys_refuse(uint64_t keys)
{
    if (keys == 0)
        return "an undefined tensor";
    if (keys & ~fg_torch_py.keys_allowed)
        return "a kind of torch tensor that is not captured (subclass with Python dispatch, functorch wrapper, nested, sparse, quantized, "
               "mkldnn, …)";
    return NULL;
}

static int adaptor_record(const fg_tensor_adaptor *self, PyObject *object, fg_tensor_meta *meta, const char **why)
{
    fg_tensor_meta truth;
    fg_torch_state state;
    (void)self;
    while (layer_now != FG_TORCH_NONE) {
        if (adaptor_read(fg_torch_adaptor_now(), object, meta, why) != 1)
            return 0;
        if (layer_now == FG_TORCH_PYTHON)
            return 1;
        /* Python's answer would run the code of a function mode: compare with the C interface then, which knows no modes. */
        int modes = !fg_torch_state_read(&state) || state.function_mode_depth != 0;
        if (!modes) {
            if (!fg_torch_python_read(object, &truth, why))
                return 0; /* symbolic sizes, most likely: nothing wrong with the layer */
        } else if (!usable[FG_TORCH_CABI] || layer_now == FG_TORCH_CABI || !fg_torch_cabi_read(object, &truth, NULL)) {
            return 1;
        }
        if (fg_tensor_meta_same(meta, &truth))
            return 1;
        layer_drop(layer_now, "disagreed with Python on a recorded tensor");
    }
    if (why != NULL)
        *why = "no way of reading torch tensors is usable in this process";
    return 0;
}

static const void *storage_raw(PyObject *object)
{
    const char *impl = fg_torch_raw_impl(object); /* NULL while the layer is off */
    if (impl == NULL || (fg_torch_raw_word(impl + fg_torch_raw_now.keys) & ~fg_torch_py.keys_allowed))
        return NULL;
    return (const void *)(uintptr_t)fg_torch_raw_word(impl + fg_torch_raw_now.storage);
}

static const void *storage_python(PyObject *object)
{
    fg_tensor_meta meta;
    const fg_tensor_adaptor *now = fg_torch_adaptor_now();
    if (now == NULL || now->read(now, object, &meta, NULL) != 1)
        return NULL;
    PyObject *type, *value, *trace, *number = NULL;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *storage = PyObject_CallMethod(object, "untyped_storage", NULL);
    if (storage != NULL)
        number = PyObject_GetAttrString(storage, "_cdata");
    uint64_t word = number != NULL ? PyLong_AsUnsignedLongLong(number) : 0;
    if (PyErr_Occurred()) {
        PyErr_Clear();
        word = 0;
    }
    Py_XDECREF(number);
    Py_XDECREF(storage);
    PyErr_Restore(type, value, trace);
    return (const void *)(uintptr_t)word;
}

static int adaptor_place(const fg_tensor_adaptor *self, PyObject *object, fg_tensor_place *place)
{
    fg_tensor_meta meta;
    int64_t offset;
    if (adaptor_read(self, object, &meta, NULL) != 1 || meta.dtype < 0 || meta.dtype >= FG_TORCH_N_DTYPES)
        return 0;
    int64_t itemsize = fg_torch_py.itemsizes[meta.dtype];
    return itemsize > 0 && fg_torch_cabi_offset(object, &offset) && !__builtin_mul_overflow(offset, itemsize, &offset) &&
           fg_tensor_place_of(offset, itemsize, itemsize, &meta, place);
}

static PyObject *adaptor_dtype(const fg_tensor_meta *meta)
{
    PyObject *dtype = meta->dtype >= 0 && meta->dtype < FG_TORCH_N_DTYPES ? fg_torch_py.dtypes[meta->dtype] : NULL;
    if (dtype == NULL)
        return PyUnicode_FromFormat("torch scalar type %d", meta->dtype);
    Py_INCREF(dtype);
    return dtype;
}

/* ---- set-up ---- */

static uint64_t key_bits(PyObject *set_type, PyObject *key_type, const char *name)
{
    PyObject *key = PyObject_GetAttrString(key_type, name);
    PyObject *set = key != NULL ? PyObject_CallOneArg(set_type, key) : NULL;
    PyObject *number = set != NULL ? PyObject_CallOneArg(fg_torch_py.raw_repr, set) : NULL;
    uint64_t bits = number != NULL ? PyLong_AsUnsignedLongLong(number) : 0;
    Py_XDECREF(key);
    Py_XDECREF(set);
    Py_XDECREF(number);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return bits;
}

uint64_t fg_torch_key_bits(const char *name)
{
    PyObject *set_type = PyObject_GetAttrString(fg_torch_py.c, "DispatchKeySet");
    PyObject *key_type = PyObject_GetAttrString(fg_torch_py.c, "DispatchKey");
    uint64_t bits = 0;
    if (set_type != NULL && key_type != NULL)
        bits = key_bits(set_type, key_type, name);
    Py_XDECREF(set_type);
    Py_XDECREF(key_type);
    PyErr_Clear();
    return bits;
}

/* Take every name the layers need; FG_ERR_UNSUPPORTED if one is missing. */
static fg_status names_take(void)
{
    static const char *const keys[] = {
#define FG_TORCH_KEY(NAME) #NAME,
#include "guards/adaptor_torch_keys.def"
#undef FG_TORCH_KEY
    };
    fg_torch_names *t = &fg_torch_py;
    PyObject *nn = NULL, *set_type = NULL;
    fg_status st = FG_ERR_UNSUPPORTED;
    t->c = PyObject_GetAttrString(t->torch, "_C");
    t->tensor = (PyTypeObject *)PyObject_GetAttrString(t->torch, "Tensor");
    nn = PyObject_GetAttrString(t->torch, "nn");
    t->strided = PyObject_GetAttrString(t->torch, "strided");
    if (t->c == NULL || t->tensor == NULL || nn == NULL || t->strided == NULL)
        goto fail;
    t->parameter = (PyTypeObject *)PyObject_GetAttrString(nn, "Parameter");
    t->dispatch_keys = PyObject_GetAttrString(t->c, "_dispatch_keys");
    t->mode_count = PyObject_GetAttrString(t->c, "_len_torch_function_stack");
    set_type = PyObject_GetAttrString(t->c, "DispatchKeySet");
    if (set_type != NULL)
        t->raw_repr = PyObject_GetAttrString(set_type, "raw_repr");
    if (t->parameter == NULL || t->dispatch_keys == NULL || t->mode_count == NULL || t->raw_repr == NULL || !PyType_Check(t->tensor) ||
        !PyType_Check(t->parameter))
        goto fail;
#define FG_TORCH_DTYPE(NUMBER, NAME) t->dtypes[NUMBER] = PyObject_GetAttrString(t->torch, #NAME);
#include "guards/adaptor_torch_dtypes.def"
#undef FG_TORCH_DTYPE
    PyErr_Clear(); /* a type this torch does not have */
    for (int i = 0; i < FG_TORCH_N_DTYPES; i++) {
        PyObject *size = t->dtypes[i] != NULL ? PyObject_GetAttrString(t->dtypes[i], "itemsize") : NULL;
        t->itemsizes[i] = size != NULL ? (uint8_t)PyLong_AsLong(size) : 0;
        Py_XDECREF(size);
        PyErr_Clear();
    }
#define FG_TORCH_DEVICE(NUMBER, NAME) t->device_names[NUMBER] = PyUnicode_InternFromString(#NAME);
#include "guards/adaptor_torch_devices.def"
#undef FG_TORCH_DEVICE
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        t->keys_allowed |= fg_torch_key_bits(keys[i]);
    t->keys_meta = fg_torch_key_bits("Meta") & ~fg_torch_key_bits("Dense");
    /* Bits that would let a refused kind through mean a numbering we do not understand. */
    if (t->keys_meta == 0 || fg_torch_key_bits("Python") == 0 || (fg_torch_key_bits("Python") & t->keys_allowed) != 0 ||
        (fg_torch_key_bits("Sparse") & t->keys_allowed) != 0)
        goto fail;
    st = FG_OK;
fail:
    Py_XDECREF(nn);
    Py_XDECREF(set_type);
    PyErr_Clear();
    return st;
}

static void layer_try(fg_torch_layer layer, fg_status found, const fg_torch_sample *samples, size_t n)
{
    if (found != FG_OK)
        notes[layer] = "something it needs was not found in this torch";
    else if (!fg_torch_battery_agrees(samples, n, layers[layer]))
        notes[layer] = "disagreed with Python over the battery";
    else
        usable[layer] = 1;
}

static int layer_floor(void)
{
    const char *wish = getenv("FRAMEGATE_TORCH_LAYER");
    for (int i = 0; wish != NULL && i < FG_TORCH_N_LAYERS; i++)
        if (strcmp(wish, fg_torch_adaptors[i].layer) == 0)
            return i;
    return wish != NULL && strcmp(wish, "none") == 0 ? FG_TORCH_NONE : 0;
}

/* On the private thread, with the GIL. */
static int setup_body(void)
{
    fg_torch_sample *samples = NULL;
    size_t n = 0;
    if (names_take() != FG_OK || fg_torch_battery_new(&samples, &n) != FG_OK)
        return 0;
    usable[FG_TORCH_PYTHON] = 1;
    layer_try(FG_TORCH_HARVEST, fg_torch_harvest_find(), samples, n);
    /* The C interface may use the raw offset of the key set, so that offset is found first; its verification covers both. */
    fg_status raw = fg_torch_raw_find(samples, n);
    layer_try(FG_TORCH_CABI, fg_torch_cabi_find(samples, n), samples, n);
    layer_try(FG_TORCH_RAW, usable[FG_TORCH_CABI] ? raw : FG_ERR_UNSUPPORTED, samples, n);
    for (int i = 0; i < layer_floor(); i++) {
        usable[i] = 0;
        notes[i] = "switched off by FRAMEGATE_TORCH_LAYER";
    }
    layer_choose();
    if (layer_now == FG_TORCH_RAW) {
        fg_torch_grad_find();
        fg_torch_gradient_find();
        fg_torch_wrappers_find();
    }
    fg_torch_battery_free(samples, n);
    fg_torch_storage_find();
    (void)fg_torch_globals_find(); /* the tracer asks whether it can be read */
    return fg_torch_state_find() == FG_OK;
}

typedef struct setup_job {
    PyInterpreterState *interp;
    PyThread_type_lock done;
    int ok;
} setup_job;

static void setup_thread(void *data)
{
    setup_job *job = data;
    PyThreadState *self = PyThreadState_New(job->interp);
    if (self != NULL) {
        PyEval_RestoreThread(self);
        job->ok = setup_body();
        PyErr_Clear();
        PyThreadState_Clear(self);
        PyThreadState_DeleteCurrent();
    }
    PyThread_release_lock(job->done);
}

/* torch as sys.modules has it, if its import is complete; never imports. */
static PyObject *torch_loaded(void)
{
    PyObject *name = PyUnicode_InternFromString("torch"), *module = NULL, *spec = NULL, *busy = NULL;
    if (name != NULL)
        module = PyImport_GetModule(name);
    Py_XDECREF(name);
    if (module != NULL && PyModule_Check(module)) {
        PyObject *dict = PyModule_GetDict(module);
        spec = PyDict_GetItemString(dict, "__spec__"); /* borrowed; the module's dict holds it */
        busy = spec != NULL ? PyObject_GetAttrString(spec, "_initializing") : NULL;
        PyErr_Clear();
        if (busy != Py_True) {
            Py_XDECREF(busy);
            return module;
        }
    }
    PyErr_Clear();
    Py_XDECREF(busy);
    Py_XDECREF(module);
    return NULL;
}

int fg_torch_setup(void)
{
    if (stage == READY || stage == UNUSABLE || stage == RUNNING)
        return stage == READY;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    setup_job job = {PyThreadState_Get()->interp, NULL, 0};
    PyObject *torch = torch_loaded();
    if (torch != NULL && (job.done = PyThread_allocate_lock()) != NULL) {
        stage = RUNNING; /* others that come here while this thread waits are told "not yet" */
        fg_torch_py.torch = torch;
        torch = NULL;
        PyThread_acquire_lock(job.done, WAIT_LOCK);
        if (PyThread_start_new_thread(setup_thread, &job) != PYTHREAD_INVALID_THREAD_ID) {
            Py_BEGIN_ALLOW_THREADS PyThread_acquire_lock(job.done, WAIT_LOCK);
            Py_END_ALLOW_THREADS
        }
        PyThread_release_lock(job.done);
        PyThread_free_lock(job.done);
        stage = job.ok ? READY : UNUSABLE;
        if (!job.ok)
            layer_now = FG_TORCH_NONE, fg_torch_raw_drop();
    }
    Py_XDECREF(torch);
    PyErr_Restore(type, value, trace);
    return stage == READY;
}

int fg_torch_type_is_family(PyTypeObject *type)
{
    PyObject *mro = type->tp_mro;
    if (mro == NULL || !PyTuple_Check(mro))
        return 0;
    /* The base is a static type near the end: its C name tells it without asking Python. */
    for (Py_ssize_t i = PyTuple_GET_SIZE(mro) - 1; i >= 0; i--) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        if (strncmp(base->tp_name, "torch._C.", 9) == 0 && strstr(base->tp_name, "TensorBase") != NULL)
            return 1;
    }
    return 0;
}

const fg_tensor_adaptor *fg_torch_adaptor_find(PyTypeObject *type)
{
    if (!fg_torch_setup() || layer_now == FG_TORCH_NONE)
        return NULL;
    return type == fg_torch_py.tensor || type == fg_torch_py.parameter ? fg_torch_adaptor_now() : NULL;
}
