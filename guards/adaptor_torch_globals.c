/* Reading torch's global switches.
 *
 * Most are bytes: of the object at::globalContext() gives, whose place the getter's code names (adaptor_torch_fields.h), or exported statics. Together with
 * the precisions (adaptor_torch_precision.h) these are compared with what they were when they were last put together to bits. Where a place was not found,
 * the getters are asked each time. Only functions that cannot throw are called, since an exception that crosses a C frame ends the process:
 *     at::globalContext                     gives the address of a static object
 *     the getters of SWITCHES               member functions of it that return one bool field each
 *     at::Context::float32Precision         a look-up in a table that the constructor fills; it throws for pairs that are not in it, and only pairs
 *                                           that are in it are passed
 *     at::get_num_threads, omp_get_max_threads         ask OpenMP; the second alone once the first has set the thread up
 *     at::autocast::is_autocast_cache_enabled          reads a thread-local; its place is found once for each thread
 *     SavedTensorDefaultHooks::get_tls_state           gives the address of a thread-local (a stack of hooks), asked once for each thread
 * A switch whose getter this torch does not have, or that only CUDA asks in a torch without it, is left out; without one of the others nothing
 * is read.
 *
 * The stack of hooks is a deque: it is empty where two of its words are equal. Which two is found by pushing hooks and popping them on the set-up
 * thread, whose stack is its own.
 *
 * The level of forward differentiation is a variable of a Python module. It is looked up again when the module's dict has changed.
 */
#include "guards/adaptor_torch_globals.h"
#include "guards/adaptor_torch.h"
#include "guards/adaptor_torch_fields.h"
#include "guards/adaptor_torch_precision.h"
#include "runtime/cpython/frame.h"
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

/* X(text, symbol): exported bytes, each asked only where those before it are on */
#define STATICS(X)                                                      \
    X("anomaly detection", "_ZN5torch8autograd11AnomalyMode8_enabledE") \
    X("anomaly detection of NaN", "_ZN5torch8autograd11AnomalyMode10_check_nanE")

typedef bool (*get_switch)(const void *context);
static get_switch getters[] = {
#define X(TEXT, CUDA, SYMBOL) NULL,
    SWITCHES(X)
#undef X
};
static const volatile uint8_t *statics[] = {
#define X(TEXT, SYMBOL) NULL,
    STATICS(X)
#undef X
};
#define N_SWITCHES (sizeof getters / sizeof *getters)
#define N_STATICS (sizeof statics / sizeof *statics)
#define PRECISION_BITS 4
enum { BIT_STATICS = N_SWITCHES, BIT_LOADED = BIT_STATICS + N_STATICS, BIT_CACHE, BIT_PRECISION };
_Static_assert(BIT_PRECISION + FG_TORCH_PRECISIONS * PRECISION_BITS < 63, "all of it fits a word");

static const void *context;
static int32_t (*precision)(const void *context, int32_t backend, int32_t operation);
static int32_t (*num_threads)(void), (*max_threads)(void);
static bool (*cache_enabled)(void);
static const char *(*hooks_state)(void);
/* Of this thread. */
static _Thread_local struct {
    const char *hooks;                /* hooks_state(); NULL: this thread has not asked yet */
    const volatile uint8_t *cache_on; /* what cache_enabled() reads; NULL: ask it */
} thread __attribute__((tls_model("initial-exec")));
static int cache_found;
static const int32_t *precisions[FG_TORCH_PRECISIONS]; /* where torch keeps them, if that was found */
static int precisions_found;
static uint16_t hooks_begin, hooks_end; /* offsets of the two words */
static int usable, has_cuda;

/* Everything that belongs to the process, as it was when `bits` was put together. */
static struct {
    int n_words, n_values; /* n_words 0: not all places are known, or nothing was read yet */
    struct {
        const volatile uint64_t *at; /* aligned */
        uint64_t mask, seen;
    } words[N_SWITCHES + N_STATICS];
    struct {
        const volatile int32_t *at;
        int32_t seen;
    } values[FG_TORCH_PRECISIONS];
    uint64_t bits;
} memo;

static PyObject *level_dict, *level_key; /* owned; NULL: this torch keeps the level elsewhere */
static uint64_t level_version;           /* of level_dict when there was no level; 0: never seen so */

PyObject *fg_torch_globals_difference(int64_t seen, int64_t want)
{
    static const char *const names[] = {
#define X(TEXT, CUDA, SYMBOL) TEXT,
        SWITCHES(X)
#undef X
#define X(TEXT, SYMBOL) TEXT,
            STATICS(X)
#undef X
                "torch",
        "autocast cache",
    };
    unsigned bit = (unsigned)__builtin_ctzll((uint64_t)(seen ^ want));
    if (bit >= BIT_PRECISION)
        return PyUnicode_FromString("another precision of 32-bit float operations");
    int on = (int)((uint64_t)seen >> bit & 1);
    return PyUnicode_FromFormat("%s %s instead of %s", names[bit], on ? "on" : "off", on ? "off" : "on");
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

/* 1 if the memo's bits are still those of the process. */
static inline int memo_holds(void)
{
    uint64_t changed = 0;
    for (int i = 0; i < memo.n_words; i++)
        changed |= (*memo.words[i].at & memo.words[i].mask) ^ memo.words[i].seen;
    for (int i = 0; i < memo.n_values; i++)
        changed |= (uint32_t)(*memo.values[i].at ^ memo.values[i].seen);
    return changed == 0 && memo.n_words > 0;
}

static __attribute__((cold, noinline)) uint64_t memo_renew(void)
{
    uint64_t bits = UINT64_C(1) << BIT_LOADED;
    for (int i = 0; i < memo.n_words; i++)
        memo.words[i].seen = *memo.words[i].at & memo.words[i].mask;
    for (int i = 0; i < memo.n_values; i++)
        memo.values[i].seen = *memo.values[i].at;
    for (size_t i = 0; i < N_SWITCHES; i++)
        bits |= getters[i] != NULL ? (uint64_t)getters[i](context) << i : 0;
    for (size_t i = 0; i < N_STATICS && statics[i] != NULL && *statics[i] != 0; i++)
        bits |= UINT64_C(1) << (BIT_STATICS + i);
    return memo.bits = bits | precision_bits() << BIT_PRECISION;
}

/* Whether the level of forward differentiation is the ordinary one; may not set an exception. */
static __attribute__((cold, noinline)) int level_look(void)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *level = PyDict_GetItemWithError(level_dict, level_key); /* borrowed */
    int none = level != NULL && PyLong_CheckExact(level) && PyLong_AsLong(level) == -1;
    PyErr_Restore(type, value, trace);
    level_version = none ? fg_dict_version(level_dict) : 0;
    return none;
}

static __attribute__((cold, noinline)) int thread_begin(void)
{
    if (!usable && (!fg_torch_setup() || !usable))
        return 0;
    (void)num_threads(); /* sets OpenMP up on this thread */
    thread.hooks = hooks_state();
    thread.cache_on = cache_found ? fg_torch_thread_field_of((const void *)cache_enabled) : NULL;
    return 1;
}

static int torch_is_loaded(void)
{
    PyObject *loaded = PySys_GetObject("modules"); /* borrowed from the interpreter */
    return loaded != NULL && PyDict_Check(loaded) && PyDict_GetItemString(loaded, "torch") != NULL;
}

int fg_torch_globals_read(fg_torch_globals *globals)
{
    *globals = (fg_torch_globals){0};
    if (thread.hooks == NULL) {
        if (!usable && !torch_is_loaded())
            return 1;
        if (!thread_begin())
            return 0;
    }
    if (word_at(thread.hooks + hooks_begin) != word_at(thread.hooks + hooks_end))
        return 0;
    if (level_dict != NULL && (level_version == 0 || fg_dict_version(level_dict) != level_version) && !level_look())
        return 0;
    uint64_t bits = memo_holds() ? memo.bits : memo_renew();
    bits |= (uint64_t)(thread.cache_on != NULL ? *thread.cache_on != 0 : cache_enabled()) << BIT_CACHE;
    globals->bits = (int64_t)bits;
    globals->threads = max_threads();
    return 1;
}

#define HOOKS_WINDOW 80 /* a deque */

/* 1 if the byte follows the getter; the set-up thread's is its own. */
static int cache_find(void)
{
    const volatile uint8_t *at = fg_torch_thread_field_of((const void *)cache_enabled);
    bool was = cache_enabled();
    if (at == NULL || *at != was)
        return 0;
    int follows = 1;
    for (int turn = 0; turn < 2; turn++) {
        bool want = turn == 0 ? !was : was;
        PyObject *done = PyObject_CallMethod(fg_torch_py.torch, "set_autocast_cache_enabled", "O", want ? Py_True : Py_False);
        follows = follows && done != NULL && cache_enabled() == want && *at == want;
        Py_XDECREF(done);
    }
    PyErr_Clear();
    return follows;
}

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

/* Where all that the memo compares lies; without a place of each it stays empty. */
static void memo_find(void)
{
    const volatile uint8_t *places[N_SWITCHES + N_STATICS];
    int n = 0;

    for (size_t i = 0; i < N_SWITCHES; i++) {
        if (getters[i] == NULL)
            continue;
        places[n] = fg_torch_field_of((const void *)getters[i], context);
        if (places[n] == NULL || *places[n] != (uint8_t)getters[i](context))
            return;
        n++;
    }
    for (size_t i = 0; i < N_STATICS; i++)
        if (statics[i] != NULL)
            places[n++] = statics[i];
    if (!precisions_found && precision != NULL)
        return;
    for (int i = 0; i < n; i++) {
        uintptr_t at = (uintptr_t)places[i] & ~(uintptr_t)7;
        int word = 0;
        while (word < memo.n_words && (uintptr_t)memo.words[word].at != at)
            word++;
        memo.n_words += word == memo.n_words;
        memo.words[word].at = (const volatile uint64_t *)at;
        memo.words[word].mask |= UINT64_C(255) << 8 * ((uintptr_t)places[i] & 7);
    }
    for (; precisions_found && memo.n_values < FG_TORCH_PRECISIONS; memo.n_values++)
        memo.values[memo.n_values].at = precisions[memo.n_values];
}

/* The short question after the number of threads, if it has the same answer; the set-up thread's number is its own. */
static int32_t (*threads_find(void *library))(void)
{
    int32_t (*get)(void) = (int32_t(*)(void))dlsym(library, "omp_get_max_threads");
    void (*set)(int32_t) = (void (*)(int32_t))dlsym(library, "omp_set_num_threads");
    int32_t now = num_threads();
    if (get == NULL || set == NULL)
        return num_threads;
    set(now + 3);
    int same = num_threads() == now + 3 && get() == now + 3;
    set(now);
    return same && num_threads() == now && get() == now ? get : num_threads;
}

static void level_find(void)
{
    PyObject *name = PyUnicode_FromString("torch.autograd.forward_ad"), *module = name != NULL ? PyImport_GetModule(name) : NULL;
    level_key = PyUnicode_InternFromString("_current_level");
    if (module != NULL && PyModule_Check(module) && level_key != NULL &&
        PyDict_GetItemWithError(PyModule_GetDict(module), level_key) != NULL)
        level_dict = Py_NewRef(PyModule_GetDict(module));
    Py_XDECREF(name);
    Py_XDECREF(module);
    PyErr_Clear();
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
    static const char *const static_symbols[] = {
#define X(TEXT, SYMBOL) SYMBOL,
        STATICS(X)
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
    for (size_t i = 0; i < N_STATICS; i++)
        statics[i] = dlsym(cpu, static_symbols[i]);
    context = global_context();
    precisions_found = fg_torch_precision_find(context, precisions);
    max_threads = threads_find(cpu);
    cache_found = cache_find();
    level_find();
    memo_find();
    usable = 1;
    return FG_OK;
}
