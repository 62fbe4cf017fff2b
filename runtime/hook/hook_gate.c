/* The hot path of a compiled call starts here: gate_call. What it reads in order: the gate (two cache lines), its function's code pointer,
 * the site's snapshot, the program, the entry, the target.
 */
#include "runtime/hook/hook_gate.h"
#include "runtime/base/alloc.h"
#include "runtime/cpython/frame.h"
#include "runtime/cpython/function.h"
#include "runtime/hook/hook_handover.h"
#include "runtime/hook/hook_hit.h"
#include "runtime/hook/hook_thread.h"

#include <stddef.h>
#include <string.h>

enum { FEW_SLOTS = 16 };

static fg_gate *gate_of(PyObject *self)
{
    return (fg_gate *)self;
}

fg_status fg_gate_prepare(fg_gate *gate)
{
    fg_status st = FG_OK;
    PyCodeObject *code = (PyCodeObject *)((PyFunctionObject *)gate->func)->func_code, *old;
    fg_bind_shape shape = {0}, old_shape;
    fg_site *site = NULL;
    if (gate->code == code)
        return FG_OK;
    Py_INCREF(code);
    FG_TRY(fg_bind_shape_init(&shape, code));
    FG_TRY(fg_registry_site(code, &gate->options, &site));
    old = gate->code;
    old_shape = gate->shape;
    gate->code = code;
    gate->shape = shape;
    gate->n_exact = fg_bind_shape_exact(&shape);
    gate->drops_args = (uint8_t)fg_handover_drops_args(code);
    gate->always_plain = (code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) != 0;
    fg_site_owner_attach(&gate->owner, site);
    fg_site_drop(site);
    fg_bind_shape_fini(&old_shape);
    Py_XDECREF(old);
    return FG_OK;
fail:
    fg_bind_shape_fini(&shape);
    Py_DECREF(code);
    return st;
}

static PyObject *run_plain(fg_gate *gate, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    return fg_handover_plain((PyObject *)gate, gate->func, args, nargsf, kwnames);
}

static inline void make_view(fg_view *view, const fg_gate *gate, PyObject *const *slots, Py_ssize_t n_slots, PyObject *const *lent,
                             Py_ssize_t n_lent)
{
    PyFunctionObject *func = (PyFunctionObject *)gate->func;
    view->slots = slots;
    view->n_slots = n_slots;
    view->closure = func->func_closure;
    view->globals = func->func_globals;
    view->builtins = func->func_builtins;
    view->func = gate->func;
    view->lent = lent;
    view->n_lent = n_lent;
    view->frame = NULL;
}

static __attribute__((noinline)) PyObject *stack_exhausted(fg_gate *gate)
{
    PyErr_Format(PyExc_RecursionError, "maximum recursion depth exceeded: no C stack is left to call %U",
                 ((PyFunctionObject *)gate->func)->func_qualname);
    return NULL;
}

/* Binding allocates, so the collector may run a destructor that gives the function another code and calls it, which changes the gate's shape. What is
 * bound is for the code of before; 1 if that is the gate's still. */
static int bind(fg_gate *gate, PyObject *const *args, Py_ssize_t n_args, PyObject *kwnames, PyObject **slots)
{
    PyCodeObject *code = (PyCodeObject *)Py_NewRef(gate->code);
    fg_bind_shape shape = gate->shape;
    Py_INCREF(shape.names);
    int bound = fg_bind_call(&shape, gate->func, args, n_args, kwnames, slots);
    if (bound && gate->code != code) {
        fg_bind_release(slots, shape.n_slots);
        bound = 0;
    }
    fg_bind_shape_fini(&shape);
    Py_DECREF(code);
    return bound;
}

/* Calls that need binding. */
static __attribute__((noinline)) PyObject *call_bound(fg_gate *gate, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    PyObject *few[FEW_SLOTS], **slots = few, *result = NULL;
    Py_ssize_t n = gate->shape.n_slots;
    fg_view view;
    if (n > FEW_SLOTS && (slots = fg_malloc((size_t)n * sizeof *slots)) == NULL)
        return run_plain(gate, args, nargsf, kwnames);
    fg_outcome outcome = FG_OUTCOME_PLAIN;
    if (bind(gate, args, PyVectorcall_NARGS(nargsf), kwnames, slots)) {
        make_view(&view, gate, slots, n, args, PyVectorcall_NARGS(nargsf) + (kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0));
        outcome = fg_site_dispatch(&gate->owner, &view, &result);
        /* Plain code gets its arguments anew; ours must not keep a temporary of the call alive meanwhile. */
        fg_bind_release(slots, n);
    }
    if (slots != few)
        fg_free(slots);
    return outcome == FG_OUTCOME_PLAIN ? run_plain(gate, args, nargsf, kwnames) : result;
}

/* First call, changed __code__. */
static __attribute__((noinline)) int prepare_call(fg_gate *gate)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    fg_status st = fg_gate_prepare(gate);
    PyErr_Restore(type, value, traceback); /* over an exception of ours: it only says that this call runs plain */
    return st == FG_OK;
}

static PyObject *gate_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    fg_gate *gate = gate_of(self);
    if (FG_UNLIKELY(!fg_thread_is_ordinary(FG_STACK_RESERVE))) {
        const fg_thread_says says = fg_ask_thread();
        if (says != FG_CALL_GOES_ON)
            return says == FG_CALL_RUNS_PLAIN ? run_plain(gate, args, nargsf, kwnames) : stack_exhausted(gate);
    }
    if (FG_UNLIKELY(fg_hook.plain | gate->owner.state) && (fg_hook.plain || gate->owner.state == FG_RUN_DISABLED))
        return run_plain(gate, args, nargsf, kwnames);
    if (FG_UNLIKELY((PyObject *)gate->code != ((PyFunctionObject *)gate->func)->func_code) && !prepare_call(gate))
        return run_plain(gate, args, nargsf, kwnames);
    if (FG_UNLIKELY(gate->always_plain) ||
        (gate->drops_args && fg_handover_is_heard(args, PyVectorcall_NARGS(nargsf) + (kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0))))
        return run_plain(gate, args, nargsf, kwnames);
    if (FG_UNLIKELY(kwnames != NULL) || FG_UNLIKELY(PyVectorcall_NARGS(nargsf) != gate->n_exact))
        return call_bound(gate, args, nargsf, kwnames);
    fg_view view;
    PyObject *result = NULL;
    make_view(&view, gate, args, gate->n_exact, args, gate->n_exact);
    fg_hit hit = fg_site_hit(&gate->owner, &view, &result);
    if (FG_LIKELY(hit == FG_HIT_DONE))
        return result;
    if (fg_site_dispatch_rest(&gate->owner, &view, hit, &result) == FG_OUTCOME_PLAIN)
        return run_plain(gate, args, nargsf, kwnames);
    return result;
}

/* gate_call measures the C stack; some versions count levels besides. */
static PyObject *gate_call_levelled(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    fg_thread_levels_add(FG_EVALUATOR_LEVELS);
    const PyFunctionObject *func = (PyFunctionObject *)gate_of(self)->func;
    PyObject *result = FG_UNLIKELY(!fg_function_runs_its_code(func) || fg_code_is_monitored((PyCodeObject *)func->func_code))
                           ? run_plain(gate_of(self), args, nargsf, kwnames)
                           : gate_call(self, args, nargsf, kwnames);
    fg_thread_levels_add(-FG_EVALUATOR_LEVELS);
    return result;
}

PyObject *fg_gate_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    return (FG_CODES_MAY_BE_MONITORED ? gate_call_levelled : gate_call)(self, args, nargsf, kwnames);
}

fg_status fg_gate_with_view(fg_gate *gate, PyObject *const *args, Py_ssize_t n_args, PyObject *kwnames,
                            fg_status (*use)(fg_gate *gate, const fg_view *view, void *arg), void *arg)
{
    fg_status st = FG_OK;
    PyObject **slots = NULL;
    Py_ssize_t n = 0;
    fg_view view;
    FG_TRY(fg_gate_prepare(gate));
    n = gate->shape.n_slots;
    if ((slots = fg_calloc((size_t)n + 1, sizeof *slots)) == NULL) {
        st = FG_ERR_NOMEM;
        goto fail;
    }
    if (!bind(gate, args, n_args, kwnames, slots)) {
        st = FG_ERR_INVALID;
        goto fail;
    }
    make_view(&view, gate, slots, n, NULL, 0);
    st = use(gate, &view, arg);
fail:
    if (slots != NULL)
        fg_bind_release(slots, n);
    fg_free(slots);
    return st;
}

PyObject *fg_gate_new(PyObject *func, PyObject *options)
{
    if (!PyFunction_Check(func)) {
        PyErr_Format(PyExc_TypeError, "a gate stands for a Python function, not for '%.200s'", Py_TYPE(func)->tp_name);
        return NULL;
    }
    fg_site_options read;
    if (fg_site_options_read(options, &read) != FG_OK)
        return NULL;
    PyObject *limit = read.dict == NULL ? NULL : PyDict_GetItemString(read.dict, "recompile_limit");
    long n = limit == NULL || limit == Py_None ? 0 : PyLong_AsLong(limit);
    if (limit != NULL && limit != Py_None && (n < 1 || n > INT32_MAX)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "recompile_limit must be a positive integer");
        fg_site_options_clear(&read);
        return NULL;
    }
    fg_gate *gate = PyObject_GC_New(fg_gate, &fg_gate_type);
    if (gate == NULL) {
        fg_site_options_clear(&read);
        return NULL;
    }
    memset((char *)gate + sizeof(PyObject), 0, sizeof *gate - sizeof(PyObject));
    gate->vectorcall = FG_CODES_MAY_BE_MONITORED ? gate_call_levelled : gate_call;
    gate->func = Py_NewRef(func);
    gate->n_exact = -1;
    gate->options = read;
    fg_site_owner_init(&gate->owner, (PyObject *)gate);
    gate->owner.recompile_limit = (uint32_t)n;
    PyObject_GC_Track(gate);
    return (PyObject *)gate;
}

static int gate_traverse(PyObject *self, visitproc visit, void *arg)
{
    fg_gate *gate = gate_of(self);
    Py_VISIT(gate->func);
    Py_VISIT(gate->code);
    Py_VISIT(gate->shape.names);
    Py_VISIT(gate->options.dict);
    return fg_site_owner_traverse(&gate->owner, visit, arg);
}

/* The function itself stays: a gate that is called while its cycle is torn down still has one to call. Its cycles go through the function's own clear
 * (globals, closure), through the targets and the options. */
static int gate_clear(PyObject *self)
{
    fg_gate *gate = gate_of(self);
    fg_target_drop_all(&gate->owner);
    fg_site_options_clear(&gate->options);
    return 0;
}

static void gate_dealloc(PyObject *self)
{
    fg_gate *gate = gate_of(self);
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, gate_dealloc) if (gate->weakrefs != NULL) PyObject_ClearWeakRefs(self);
    fg_site_options_clear(&gate->options); /* first: the site asks who else holds the backend */
    fg_site_owner_fini(&gate->owner);
    fg_bind_shape_fini(&gate->shape);
    Py_CLEAR(gate->code);
    Py_CLEAR(gate->func);
    PyObject_GC_Del(self);
    Py_TRASHCAN_END
}

static PyObject *gate_descr_get(PyObject *self, PyObject *object, PyObject *type)
{
    (void)type;
    return object == NULL || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

PyTypeObject fg_gate_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegate._core.Gate",
    .tp_basicsize = sizeof(fg_gate),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR |
                Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_vectorcall_offset = offsetof(fg_gate, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_dealloc = gate_dealloc,
    .tp_traverse = gate_traverse,
    .tp_clear = gate_clear,
    .tp_weaklistoffset = offsetof(fg_gate, weakrefs),
    .tp_descr_get = gate_descr_get,
    .tp_getattro = fg_gate_getattro,
    .tp_setattro = fg_gate_setattro,
    .tp_repr = fg_gate_repr,
    .tp_methods = fg_gate_methods,
    .tp_getset = fg_gate_getset,
};
