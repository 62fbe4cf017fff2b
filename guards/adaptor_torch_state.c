#include "guards/adaptor_torch_state.h"
#include "guards/adaptor_torch.h"
#include "guards/adaptor_torch_fields.h"
#include <dlfcn.h>
#include <stdlib.h>

/* Reading torch's state.
 *
 * On the set-up thread, which nobody has touched, each piece of state is switched on and off through Python; the place in memory that follows
 * is the one to read later:
 *
 *     raw_local_dispatch_key_set   thread-local {included, excluded}: inference, autocast, functorch, dispatch modes
 *     AutogradState                thread-local byte: grad, inference, forward grad, multithreading, view replay
 *     PythonTorchFunctionTLS       thread-local {switch, stack of modes}
 *
 * Only functions that cannot throw are called from C, since an exception that crosses a C frame ends the process. The list, with the reason:
 *     AutogradState::get_tls_state            gives the address of a thread-local
 *     PythonTorchFunctionTLS::get_state       gives the address of a thread-local
 *     get_default_dtype_as_scalartype         reads one global; its code names the place (adaptor_torch_fields.h)
 *     autocast::get_autocast_dtype            only for CPU and CUDA: reads one entry of a thread-local array; it throws for unlisted device
 *                                             types, which are never passed
 * Adding one needs such a reason. If anything does not follow, all state is read through Python's getters instead.
 */

_Static_assert(sizeof(fg_torch_state) == 32, "the state is compared as memory: it may have no holes");

_Thread_local fg_torch_thread fg_torch_thread_now __attribute__((tls_model("initial-exec")));
fg_torch_state_where fg_torch_state_at;

static enum { STATE_NONE, STATE_RAW, STATE_PYTHON } how;
static void *core_library, *cpu_library;
static void *(*autograd_state)(void);
static const void *(*function_state)(void);
static int8_t (*autocast_dtype)(int8_t device_type);
static uint16_t autograd_byte;
static uint64_t autocast_bits[2];                       /* CPU, CUDA */
static uint64_t inference_included, inference_excluded; /* bits that inference mode changes */

#define FG_GETTERS(X)                                      \
    X(grad, "is_grad_enabled")                             \
    X(inference, "is_inference_mode_enabled")              \
    X(forward_grad, "_is_fwd_grad_enabled")                \
    X(multithreading, "_is_multithreading_enabled")        \
    X(view_replay, "_is_view_replay_enabled")              \
    X(included, "_dispatch_tls_local_include_set")         \
    X(excluded, "_dispatch_tls_local_exclude_set")         \
    X(mode_count, "_len_torch_function_stack")             \
    X(mode_at, "_get_function_stack_at")                   \
    X(function_enabled, "_is_torch_function_enabled")      \
    X(function_all_off, "_is_torch_function_all_disabled") \
    X(default_dtype, "get_default_dtype")                  \
    X(autocast_dtype, "get_autocast_dtype")

static struct {
#define X(FIELD, NAME) PyObject *FIELD;
    FG_GETTERS(X)
#undef X
} py;

const char *fg_torch_state_layer(void)
{
    return how == STATE_RAW ? "raw" : how == STATE_PYTHON ? "python" : "none";
}

/* ---- through Python ---- */

/* The truth value or number that a getter gives; -1 with an exception. */
static long ask(PyObject *getter)
{
    PyObject *answer = PyObject_CallNoArgs(getter);
    long value = answer != NULL ? PyLong_AsLong(answer) : -1;
    Py_XDECREF(answer);
    return value;
}

static int ask_words(PyObject *getter, uint64_t *word)
{
    PyObject *set = PyObject_CallNoArgs(getter);
    PyObject *number = set != NULL ? PyObject_CallOneArg(fg_torch_py.raw_repr, set) : NULL;
    Py_XDECREF(set);
    if (number == NULL)
        return 0;
    *word = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    return !PyErr_Occurred();
}

static int ask_autocast_dtype(const char *device, int8_t *out)
{
    PyObject *dtype = PyObject_CallFunction(py.autocast_dtype, "s", device);
    *out = (int8_t)(dtype != NULL ? fg_torch_dtype_number(dtype) : -1);
    Py_XDECREF(dtype);
    return *out >= 0;
}

/* All modes on the stack are torch's own default-device modes: then the device of the innermost one describes them. (The module's CURRENT_DEVICE
 * does not: `with torch.device(...)` leaves it alone.) 1, or 0 for any other mode. */
static int default_device(long depth, int64_t *out)
{
    PyObject *name = PyUnicode_FromString("torch.utils._device"), *module = name != NULL ? PyImport_GetModule(name) : NULL;
    PyObject *mode_type = module != NULL ? PyObject_GetAttrString(module, "DeviceContext") : NULL, *device = NULL;
    int ok = mode_type != NULL;
    for (long i = 0; ok && i < depth; i++) {
        PyObject *mode = PyObject_CallFunction(py.mode_at, "l", i);
        ok = mode != NULL && (PyObject *)Py_TYPE(mode) == mode_type;
        if (ok && i == depth - 1)
            device = PyObject_GetAttrString(mode, "device");
        Py_XDECREF(mode);
    }
    ok = ok && device != NULL && strcmp(Py_TYPE(device)->tp_name, "torch.device") == 0;
    if (ok) {
        *out = PyObject_Hash(device);
        ok = *out != -1;
    }
    Py_XDECREF(name);
    Py_XDECREF(module);
    Py_XDECREF(mode_type);
    Py_XDECREF(device);
    return ok;
}

static int read_python(fg_torch_state *s)
{
    long grad = ask(py.grad), inference = ask(py.inference), forward = ask(py.forward_grad), threads = ask(py.multithreading),
         replay = ask(py.view_replay), enabled = ask(py.function_enabled), all_off = ask(py.function_all_off), depth = ask(py.mode_count);
    if (PyErr_Occurred() || !ask_words(py.included, &s->keys_included) || !ask_words(py.excluded, &s->keys_excluded))
        return 0;
    PyObject *dtype = PyObject_CallNoArgs(py.default_dtype);
    s->default_dtype = (int8_t)(dtype != NULL ? fg_torch_dtype_number(dtype) : -1);
    Py_XDECREF(dtype);
    s->autograd = (uint8_t)(grad | inference << 1 | forward << 2 | threads << 3 | replay << 4);
    s->function_mode_depth = (uint8_t)(depth > 255 ? 255 : depth);
    s->function_disabled = (uint8_t)(all_off ? 2 : enabled ? 0 : 1);
    return s->default_dtype >= 0;
}

/* ---- the rest of the reading, common to both ways ---- */

static int read_rest(fg_torch_state *s)
{
    static const char *const devices[2] = {"cpu", "cuda"};
    uint64_t changed_in = s->keys_included ^ fg_torch_state_at.keys_included;
    uint64_t changed_ex = s->keys_excluded ^ fg_torch_state_at.keys_excluded;
    if ((changed_in & ~inference_included) || (changed_ex & ~(inference_excluded | autocast_bits[0] | autocast_bits[1])))
        return 0; /* a dispatch mode, a functorch level, tracing, autocast elsewhere */
    for (int i = 0; i < 2; i++) {
        s->autocast_dtype[i] = -1;
        if (!(changed_ex & autocast_bits[i]))
            continue;
        if (how == STATE_RAW)
            s->autocast_dtype[i] = autocast_dtype((int8_t)i);
        else if (!ask_autocast_dtype(devices[i], &s->autocast_dtype[i]))
            return 0;
    }
    s->default_device = -1;
    return s->function_mode_depth == 0 || default_device(s->function_mode_depth, &s->default_device);
}

static void read_raw(const fg_torch_thread *t, fg_torch_state *s)
{
    uint64_t stack[2];
    memcpy(stack, t->function + fg_torch_state_at.modes, sizeof stack);
    uint64_t depth = (stack[1] - stack[0]) / 16;
    s->keys_included = t->keys[0];
    s->keys_excluded = t->keys[1];
    s->autograd = *t->autograd;
    s->function_mode_depth = (uint8_t)(depth > 255 ? 255 : depth);
    s->function_disabled = (uint8_t)t->function[fg_torch_state_at.disabled];
    s->default_dtype = fg_torch_default_dtype();
}

static int thread_fill(fg_torch_thread *t)
{
    /* dlsym of a thread-local object gives this thread's copy. */
    t->keys = dlsym(core_library, "_ZN3c104impl26raw_local_dispatch_key_setE");
    t->autograd = (const uint8_t *)autograd_state() + autograd_byte;
    t->function = function_state();
    return t->keys != NULL && t->function != NULL;
}

int fg_torch_state_read_slow(fg_torch_state *state)
{
    memset(state, 0, sizeof *state);
    if (how == STATE_NONE) {
        PyObject *loaded = PySys_GetObject("modules"); /* borrowed from the interpreter */
        if (loaded == NULL || !PyDict_Check(loaded) || PyDict_GetItemString(loaded, "torch") == NULL) {
            state->default_device = 0;
            return 1;
        }
        if (!fg_torch_setup() || how == STATE_NONE)
            return 0;
    }
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    int ok;
    if (how == STATE_RAW) {
        if (fg_torch_thread_now.keys == NULL) {
            fg_torch_thread t;
            if (!thread_fill(&t)) {
                PyErr_Restore(type, value, trace);
                return 0;
            }
            fg_torch_thread_now = t;
        }
        read_raw(&fg_torch_thread_now, state);
        ok = read_rest(state);
    } else {
        ok = read_python(state) && read_rest(state);
    }
    state->present = 1;
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
    return ok;
}

int fg_torch_state_read(fg_torch_state *state)
{
    return fg_torch_state_read_inline(state);
}

/* ---- calibration, on the set-up thread ---- */

/* One switch of torch, turned on and off through Python. */
typedef struct toggle {
    PyObject *context; /* entered and left */
} toggle;

static int context_on(toggle *t, PyObject *made)
{
    t->context = made;
    PyObject *entered = made != NULL ? PyObject_CallMethod(made, "__enter__", NULL) : NULL;
    if (entered == NULL) {
        Py_CLEAR(t->context);
        PyErr_Clear();
        return 0;
    }
    Py_DECREF(entered);
    return 1;
}

static void context_off(toggle *t)
{
    PyObject *left = PyObject_CallMethod(t->context, "__exit__", "OOO", Py_None, Py_None, Py_None);
    Py_XDECREF(left);
    Py_CLEAR(t->context);
    PyErr_Clear();
}

static int call_c(const char *name, const char *format, PyObject *argument)
{
    PyObject *r =
        argument != NULL ? PyObject_CallMethod(fg_torch_py.c, name, format, argument) : PyObject_CallMethod(fg_torch_py.c, name, NULL);
    Py_XDECREF(r);
    if (r == NULL)
        PyErr_Clear();
    return r != NULL;
}

#define AUTOGRAD_WINDOW 48
#define FUNCTION_WINDOW 32 /* the record is no shorter; what lies behind it is not ours to read */

/* The only byte in which the two snapshots differ, -1: none or several. */
static int differing_byte(const uint8_t *a, const uint8_t *b, int n)
{
    int at = -1;
    for (int i = 0; i < n; i++)
        if (a[i] != b[i]) {
            if (at >= 0)
                return -1;
            at = i;
        }
    return at;
}

static int find_autograd(void)
{
    static const struct {
        const char *set;
        PyObject **get;
    } switches[] = {{"_set_grad_enabled", &py.grad},
                    {"_set_fwd_grad_enabled", &py.forward_grad},
                    {"_set_multithreading_enabled", &py.multithreading},
                    {"_set_view_replay_enabled", &py.view_replay}};
    uint8_t before[AUTOGRAD_WINDOW], after[AUTOGRAD_WINDOW], restored[AUTOGRAD_WINDOW];
    const void *state = autograd_state();
    int at = -1;
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        long was = ask(*switches[i].get);
        if (was < 0)
            return 0;
        memcpy(before, state, sizeof before);
        int ok = call_c(switches[i].set, "O", was ? Py_False : Py_True);
        memcpy(after, state, sizeof after);
        ok = call_c(switches[i].set, "O", was ? Py_True : Py_False) && ok;
        memcpy(restored, state, sizeof restored);
        int byte = differing_byte(before, after, AUTOGRAD_WINDOW);
        if (!ok || byte < 0 || (at >= 0 && byte != at) || memcmp(before, restored, sizeof before) != 0)
            return 0;
        at = byte;
    }
    autograd_byte = (uint16_t)at;
    return 1;
}

static int find_function_record(void)
{
    uint8_t shots[4][FUNCTION_WINDOW];
    const void *record = function_state();
    int depth = 0, found = -1, count = 0;
    memcpy(shots[0], record, FUNCTION_WINDOW);
    for (; depth < 3; depth++) {
        /* Any object but None, which torch takes for "no mode"; nothing between here and the pops asks a mode. */
        if (!call_c("_push_on_torch_function_stack", "O", fg_torch_py.torch))
            break;
        memcpy(shots[depth + 1], record, FUNCTION_WINDOW);
    }
    for (int i = 0; i < depth; i++)
        call_c("_pop_torch_function_stack", NULL, NULL);
    if (depth != 3)
        return 0;
    for (int at = 0; at + 16 <= FUNCTION_WINDOW; at += 8) {
        int i = 0;
        for (; i < 4; i++) {
            uint64_t words[2];
            memcpy(words, shots[i] + at, sizeof words);
            if (words[1] - words[0] != 16u * (unsigned)i)
                break;
        }
        if (i == 4) {
            found = at;
            count++;
        }
    }
    if (count != 1)
        return 0;
    fg_torch_state_at.modes = (uint16_t)found;
    toggle t;
    int at = -1;
    static const struct {
        const char *name;
        uint8_t value;
    } contexts[] = {{"DisableTorchFunctionSubclass", 1}, {"DisableTorchFunction", 2}};
    for (int i = 0; i < 2; i++) {
        memcpy(shots[0], record, FUNCTION_WINDOW);
        if (!context_on(&t, PyObject_CallMethod(fg_torch_py.c, contexts[i].name, NULL)))
            return 0;
        memcpy(shots[1], record, FUNCTION_WINDOW);
        context_off(&t);
        int byte = differing_byte(shots[0], shots[1], FUNCTION_WINDOW);
        if (byte < 0 || (at >= 0 && byte != at) || shots[0][byte] != 0 || shots[1][byte] != contexts[i].value)
            return 0;
        at = byte;
    }
    fg_torch_state_at.disabled = (uint16_t)at;
    return 1;
}

/* What both ways say now, relative to the ordinary state, is the same. */
static int ways_agree(const fg_torch_thread *thread, const fg_torch_state *raw_base, const fg_torch_state *py_base)
{
    fg_torch_state a, b;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    read_raw(thread, &a);
    if (!read_python(&b)) {
        PyErr_Clear();
        return 0;
    }
    return (a.keys_included ^ raw_base->keys_included) == (b.keys_included ^ py_base->keys_included) &&
           (a.keys_excluded ^ raw_base->keys_excluded) == (b.keys_excluded ^ py_base->keys_excluded) &&
           a.function_mode_depth == b.function_mode_depth && a.function_disabled == b.function_disabled &&
           a.default_dtype == b.default_dtype && (a.autograd == raw_base->autograd) == (b.autograd == py_base->autograd);
}

static fg_status find_raw(const fg_torch_state *py_base)
{
    fg_torch_state base;
    fg_torch_thread thread;
    toggle t;
    int8_t dtype;
    core_library = dlopen("libc10.so", RTLD_NOLOAD | RTLD_LAZY);
    cpu_library = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
    if (core_library == NULL || cpu_library == NULL)
        return FG_ERR_UNSUPPORTED;
    autograd_state = (void *(*)(void))dlsym(core_library, "_ZN3c1013AutogradState13get_tls_stateEv");
    function_state = (const void *(*)(void))dlsym(cpu_library, "_ZN2at4impl22PythonTorchFunctionTLS9get_stateEv");
    autocast_dtype = (int8_t(*)(int8_t))dlsym(cpu_library, "_ZN2at8autocast18get_autocast_dtypeEN3c1010DeviceTypeE");
    fg_torch_state_at.default_dtype = (int8_t(*)(void))dlsym(core_library, "_ZN3c1031get_default_dtype_as_scalartypeEv");
    if (autograd_state == NULL || function_state == NULL || autocast_dtype == NULL || fg_torch_state_at.default_dtype == NULL ||
        !find_autograd() || !find_function_record() || !thread_fill(&thread))
        return FG_ERR_UNSUPPORTED;
    fg_torch_state_at.default_dtype_at = fg_torch_field_of((const void *)fg_torch_state_at.default_dtype, NULL);
    if (fg_torch_default_dtype() != fg_torch_state_at.default_dtype())
        fg_torch_state_at.default_dtype_at = NULL;
    memset(&base, 0, sizeof base);
    read_raw(&thread, &base);
    if (!ways_agree(&thread, &base, py_base))
        return FG_ERR_UNSUPPORTED;
    /* Inference mode: both words and the byte. */
    if (!context_on(&t, PyObject_CallMethod(fg_torch_py.c, "_InferenceMode", "O", Py_True)))
        return FG_ERR_UNSUPPORTED;
    int ok = ways_agree(&thread, &base, py_base) && *thread.autograd != base.autograd;
    context_off(&t);
    /* Autocast: the excluded word, and the one getter that takes an argument. */
    PyObject *r = PyObject_CallMethod(fg_torch_py.torch, "set_autocast_enabled", "sO", "cpu", Py_True);
    ok = r != NULL && ok && ways_agree(&thread, &base, py_base) && (thread.keys[1] ^ base.keys_excluded) == autocast_bits[0] &&
         ask_autocast_dtype("cpu", &dtype) && autocast_dtype(0) == dtype && ask_autocast_dtype("cuda", &dtype) &&
         autocast_dtype(1) == dtype;
    Py_XDECREF(r);
    PyErr_Clear();
    r = PyObject_CallMethod(fg_torch_py.torch, "set_autocast_enabled", "sO", "cpu", Py_False);
    Py_XDECREF(r);
    PyErr_Clear();
    if (!ok || !ways_agree(&thread, &base, py_base))
        return FG_ERR_UNSUPPORTED;
    fg_torch_state_at.keys_included = base.keys_included;
    fg_torch_state_at.keys_excluded = base.keys_excluded;
    return FG_OK;
}

fg_status fg_torch_state_find(void)
{
    fg_torch_state base, inference;
    toggle t;
#define X(FIELD, NAME)                                                              \
    if ((py.FIELD = PyObject_GetAttrString(fg_torch_py.c, NAME)) == NULL) {         \
        PyErr_Clear();                                                              \
        if ((py.FIELD = PyObject_GetAttrString(fg_torch_py.torch, NAME)) == NULL) { \
            PyErr_Clear();                                                          \
            return FG_ERR_UNSUPPORTED;                                              \
        }                                                                           \
    }
    FG_GETTERS(X)
#undef X
    memset(&base, 0, sizeof base);
    memset(&inference, 0, sizeof inference);
    if (!read_python(&base) || !context_on(&t, PyObject_CallMethod(fg_torch_py.c, "_InferenceMode", "O", Py_True))) {
        PyErr_Clear();
        return FG_ERR_UNSUPPORTED;
    }
    int ok = read_python(&inference);
    context_off(&t);
    if (!ok)
        return FG_ERR_UNSUPPORTED;
    autocast_bits[0] = fg_torch_key_bits("AutocastCPU");
    autocast_bits[1] = fg_torch_key_bits("AutocastCUDA");
    inference_included = base.keys_included ^ inference.keys_included;
    inference_excluded = base.keys_excluded ^ inference.keys_excluded;
    fg_torch_state_at.quick_included = inference_included;
    fg_torch_state_at.quick_excluded = inference_excluded;
    fg_torch_state_at.keys_included = base.keys_included;
    fg_torch_state_at.keys_excluded = base.keys_excluded;
    how = getenv("FRAMEGATE_TORCH_LAYER") == NULL && find_raw(&base) == FG_OK ? STATE_RAW : STATE_PYTHON;
    return FG_OK;
}
