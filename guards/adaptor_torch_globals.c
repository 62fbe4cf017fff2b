/* Reading torch's global switches.
 *
 * Only functions that cannot throw are called, since an exception that crosses a C frame ends the process:
 *     at::globalContext                     gives the address of a static object
 *     the getters of SWITCHES               member functions of it that return one bool field each
 *     at::Context::float32Precision         a look-up in a table that the constructor fills; it throws for pairs that are not in it, and only pairs
 *                                           that are in it are passed
 *     at::get_num_threads                   asks OpenMP
 *     at::autocast::is_autocast_cache_enabled          reads a thread-local
 *     SavedTensorDefaultHooks::get_tls_state           gives the address of a thread-local (a stack of hooks), asked once for each thread
 * A switch whose getter this torch does not have, or that only CUDA asks in a torch without it, is left out; without one of the others nothing
 * is read.
 *
 * The stack of hooks is a deque: it is empty where two of its words are equal. Which two is found by pushing hooks and popping them on the set-up
 * thread, whose stack is its own.
 */
#include "guards/adaptor_torch_globals.h"
#include "guards/adaptor_torch.h"
#include "guards/adaptor_torch_precision.h"
#include <dlfcn.h>
#include <string.h>

/* X(text, 1 if only CUDA asks it, symbol) */
#define SWITCHES(X)                                                                                    \
    X("deterministic algorithms", 0, "_ZNK2at7Context23deterministicAlgorithmsEv")                     \
    X("warning of deterministic algorithms", 0, "_ZNK2at7Context31deterministicAlgorithmsWarnOnlyEv")  \
    X("filling of uninitialized memory", 0, "_ZNK2at7Context36deterministicFillUninitializedMemoryEv") \
    X("cuDNN", 1, "_ZNK2at7Context16userEnabledCuDNNEv")                                               \
    X("deterministic cuDNN", 1, "_ZNK2at7Context18deterministicCuDNNEv")                               \
    X("cuDNN benchmark", 1, "_ZNK2at7Context14benchmarkCuDNNEv")                                       \
    X("oneDNN", 0, "_ZNK2at7Context17userEnabledMkldnnEv")                                             \
    X("deterministic oneDNN", 0, "_ZNK2at7Context19deterministicMkldnnEv")                             \
    X("TF32 in oneDNN", 0, "_ZNK2at7Context15allowTF32OneDNNEv")                                       \
    X("flash attention", 0, "_ZNK2at7Context19userEnabledFlashSDPEv")                                  \
    X("memory-efficient attention", 1, "_ZNK2at7Context23userEnabledMemEfficientSDPEv")                \
    X("plain attention", 0, "_ZNK2at7Context18userEnabledMathSDPEv")                                   \
    X("cuDNN attention", 1, "_ZNK2at7Context19userEnabledCuDNNSDPEv")

/* X(1 if only CUDA asks it, backend and operation as torch numbers them), where the table is not found. set_float32_matmul_precision writes the first and
 * the last; the second is the convolutions of cuDNN. */
#define PRECISIONS(X) X(0, 2, 3) X(1, 1, 1) X(1, 1, 3)

typedef bool (*get_switch)(const void *context);
static get_switch getters[] = {
#define X(TEXT, CUDA, SYMBOL) NULL,
    SWITCHES(X)
#undef X
};
#define N_SWITCHES (sizeof getters / sizeof *getters)
#define PRECISION_BITS 4
enum { BIT_LOADED = N_SWITCHES, BIT_CACHE, BIT_PRECISION };
_Static_assert(BIT_PRECISION + FG_TORCH_PRECISIONS * PRECISION_BITS < 63, "all of it fits a word");

static const void *context;
static int32_t (*precision)(const void *context, int32_t backend, int32_t operation);
static int32_t (*num_threads)(void);
static bool (*cache_enabled)(void);
static const char *(*hooks_state)(void);
static _Thread_local const char *thread_hooks __attribute__((tls_model("initial-exec"))); /* hooks_state() of this thread */
static const int32_t *precisions[FG_TORCH_PRECISIONS];                                    /* where torch keeps them, if that was found */
static int precisions_found;
static uint16_t hooks_begin, hooks_end; /* offsets of the two words */
static int usable, has_cuda;

const char *fg_torch_globals_name(int64_t bits)
{
    static const char *const names[] = {
#define X(TEXT, CUDA, SYMBOL) TEXT,
        SWITCHES(X)
#undef X
            "torch",
        "autocast cache",
    };
    unsigned bit = (unsigned)__builtin_ctzll((uint64_t)bits);
    return bit < BIT_PRECISION ? names[bit] : "precision of 32-bit float operations";
}

static uint64_t word_at(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* All precisions as bits: the values that torch keeps, or else what its getter says of those that are asked for. */
static uint64_t precision_bits(void)
{
    uint64_t bits = 0;
    unsigned at = 0;
    for (; precisions_found && at < FG_TORCH_PRECISIONS; at++)
        bits |= (uint64_t)(*(const volatile int32_t *)precisions[at] & 15) << at * PRECISION_BITS;
    if (precisions_found || precision == NULL)
        return bits;
#define X(CUDA, BACKEND, OPERATION)                                                             \
    if (!CUDA || has_cuda)                                                                      \
        bits |= (uint64_t)(precision(context, BACKEND, OPERATION) & 15) << at * PRECISION_BITS; \
    at++;
    PRECISIONS(X)
#undef X
    return bits;
}

int fg_torch_globals_read(fg_torch_globals *globals)
{
    *globals = (fg_torch_globals){0};
    if (!usable) {
        PyObject *loaded = PySys_GetObject("modules"); /* borrowed from the interpreter */
        if (loaded == NULL || !PyDict_Check(loaded) || PyDict_GetItemString(loaded, "torch") == NULL)
            return 1;
        if (!fg_torch_setup() || !usable)
            return 0;
    }
    if (thread_hooks == NULL)
        thread_hooks = hooks_state();
    const char *hooks = thread_hooks;
    if (word_at(hooks + hooks_begin) != word_at(hooks + hooks_end))
        return 0;
    uint64_t bits = UINT64_C(1) << BIT_LOADED | (uint64_t)cache_enabled() << BIT_CACHE;
    for (size_t i = 0; i < N_SWITCHES; i++)
        bits |= getters[i] != NULL ? (uint64_t)getters[i](context) << i : 0;
    bits |= precision_bits() << BIT_PRECISION;
    globals->bits = (int64_t)bits;
    globals->threads = num_threads();
    return 1;
}

#define HOOKS_WINDOW 80 /* a deque */

/* Which word of the stack's record moves when a hook is pushed, and which stays where that one was. */
static fg_status hooks_find(void)
{
    char before[HOOKS_WINDOW], during[HOOKS_WINDOW], after[HOOKS_WINDOW];
    PyObject *autograd = PyObject_GetAttrString(fg_torch_py.c, "_autograd"), *done = NULL;
    fg_status st = FG_ERR_UNSUPPORTED;
    const char *record = hooks_state();
    memcpy(before, record, sizeof before);
    if (autograd != NULL)
        done = PyObject_CallMethod(autograd, "_push_saved_tensors_default_hooks", "OO", (PyObject *)&PyBaseObject_Type,
                                   (PyObject *)&PyBaseObject_Type);
    if (done == NULL)
        goto done;
    memcpy(during, record, sizeof during);
    Py_SETREF(done, PyObject_CallMethod(autograd, "_pop_saved_tensors_default_hooks", NULL));
    memcpy(after, record, sizeof after);
    if (done == NULL || memcmp(before, after, sizeof before) != 0)
        goto done;
    int moved = -1, stays = -1;
    for (int at = 0; at < HOOKS_WINDOW; at += 8) {
        if (word_at(before + at) == word_at(during + at))
            continue;
        if (moved >= 0)
            goto done;
        moved = at;
    }
    for (int at = 0; moved >= 0 && stays < 0 && at < moved; at += 8) {
        if (word_at(before + at) == word_at(before + moved))
            stays = at;
    }
    if (stays < 0)
        goto done;
    hooks_begin = (uint16_t)stays;
    hooks_end = (uint16_t)moved;
    st = FG_OK;
done:
    Py_XDECREF(autograd);
    Py_XDECREF(done);
    PyErr_Clear();
    return st;
}

fg_status fg_torch_globals_find(void)
{
    static const struct {
        const char *name;
        int cuda;
    } symbols[] = {
#define X(TEXT, CUDA, SYMBOL) {SYMBOL, CUDA},
        SWITCHES(X)
#undef X
    };
    void *cpu = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
    if (cpu == NULL)
        return FG_ERR_UNSUPPORTED;
    const void *(*global_context)(void) = (const void *(*)(void))dlsym(cpu, "_ZN2at13globalContextEv");
    num_threads = (int32_t(*)(void))dlsym(cpu, "_ZN2at15get_num_threadsEv");
    cache_enabled = (bool (*)(void))dlsym(cpu, "_ZN2at8autocast25is_autocast_cache_enabledEv");
    hooks_state = (const char *(*)(void))dlsym(cpu, "_ZN2at23SavedTensorDefaultHooks13get_tls_stateEv");
    precision =
        (int32_t(*)(const void *, int32_t, int32_t))dlsym(cpu, "_ZNK2at7Context16float32PrecisionENS_14Float32BackendENS_9Float32OpE");
    PyObject *cuda = PyObject_GetAttrString(fg_torch_py.c, "_has_cuda");
    has_cuda = cuda != Py_False;
    Py_XDECREF(cuda);
    PyErr_Clear();
    for (size_t i = 0; i < N_SWITCHES; i++)
        getters[i] = symbols[i].cuda && !has_cuda ? NULL : (get_switch)dlsym(cpu, symbols[i].name);
    if (global_context == NULL || num_threads == NULL || cache_enabled == NULL || hooks_state == NULL || hooks_find() != FG_OK)
        return FG_ERR_UNSUPPORTED;
    context = global_context();
    precisions_found = fg_torch_precision_find(context, precisions);
    usable = 1;
    return FG_OK;
}
