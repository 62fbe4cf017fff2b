/* Straight-line code without the loop, CPython 3.11.
 *
 * The frame lies on the interpreter's own stack of frames and is linked as the thread's current one. prev_instr names the instruction that runs, so
 * lines are right. If somebody asked for the frame object (a traceback, a warning, sys._getframe), the object outlives the frame: then it takes the
 * frame's contents over, as the interpreter's own does.
 *
 * Mirrors, of CPython 3.11: the instructions of Python/ceval.c named below, their error messages included; the order in which a frame is left and
 * cleared (exit_unwind, _PyFrame_Clear) and take_ownership of Python/frame.c.
 */
#define Py_BUILD_CORE 1
#include "runtime/cpython/straight.h"

#include "runtime/base/alloc.h"
#include "runtime/cpython/bytecode_raw.h"
#include "runtime/cpython/operators.h"
#include <frameobject.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_pystate.h>
#include <opcode.h>
#include <string.h>

/* ---- plans ---- */

static int is_straight(const fg_raw *raw, PyCodeObject *code)
{
    switch (raw->op) {
    case FG_RAW_RESUME: return raw->arg == 0 || raw->arg == 2;
    case FG_RAW_BINARY_OP: return raw->arg <= NB_INPLACE_XOR;
    case FG_RAW_COMPARE_OP: return raw->arg <= Py_GE;
    case FG_RAW_LOAD_CONST: return !PyCode_Check(PyTuple_GET_ITEM(code->co_consts, raw->arg));
    case FG_RAW_NOP:
    case FG_RAW_PRECALL:
    case FG_RAW_PUSH_NULL:
    case FG_RAW_LOAD_FAST:
    case FG_RAW_STORE_FAST:
    case FG_RAW_POP_TOP:
    case FG_RAW_SWAP:
    case FG_RAW_COPY:
    case FG_RAW_UNARY_NEGATIVE:
    case FG_RAW_UNARY_POSITIVE:
    case FG_RAW_UNARY_INVERT:
    case FG_RAW_BINARY_SUBSCR:
    case FG_RAW_STORE_SUBSCR:
    case FG_RAW_LOAD_ATTR:
    case FG_RAW_STORE_ATTR:
    case FG_RAW_LOAD_METHOD:
    case FG_RAW_KW_NAMES:
    case FG_RAW_CALL:
    case FG_RAW_IS_OP:
    case FG_RAW_BUILD_TUPLE:
    case FG_RAW_BUILD_LIST:
    case FG_RAW_UNPACK_SEQUENCE:
    case FG_RAW_RETURN_VALUE: return 1;
    default: return 0;
    }
}

/* Instructions that do nothing here. */
static int is_silent(int op)
{
    return op == FG_RAW_RESUME || op == FG_RAW_NOP || op == FG_RAW_PRECALL;
}

/* 1 if every instruction is of the known ones and the last one is the only return. */
static int raw_is_straight(const fg_raw_code *raw, PyCodeObject *code)
{
    if (raw->n_ops == 0 || raw->n_entries > 0 || raw->ops[raw->n_ops - 1].op != FG_RAW_RETURN_VALUE)
        return 0;
    for (int32_t i = 0; i < raw->n_ops; i++) {
        const fg_raw *op = &raw->ops[i];
        if (op->arg > UINT8_MAX || op->unit > UINT16_MAX || !is_straight(op, code) || (op->op == FG_RAW_RETURN_VALUE && i + 1 < raw->n_ops))
            return 0;
    }
    return 1;
}

fg_status fg_straight_plan(PyCodeObject *code, fg_straight **out)
{
    const int refused = CO_VARARGS | CO_VARKEYWORDS | CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE;
    fg_raw_code raw = {0};
    fg_straight *plan = NULL;

    *out = NULL;
    if ((code->co_flags & refused) || !(code->co_flags & CO_OPTIMIZED) || code->co_ncellvars > 0 || code->co_nfreevars > 0 ||
        code->co_kwonlyargcount > 0 || code->co_nlocalsplus + code->co_stacksize > FG_STRAIGHT_SLOTS ||
        Py_SIZE(code) > 16 * FG_STRAIGHT_OPS)
        return FG_OK;
    fg_status st = fg_raw_read(code, &raw);
    if (st == FG_OK && raw.n_ops <= 2 * FG_STRAIGHT_OPS && raw_is_straight(&raw, code)) {
        plan = fg_calloc(1, sizeof *plan + (size_t)raw.n_ops * sizeof plan->ops[0]);
        if (plan == NULL)
            st = FG_ERR_NOMEM;
    }
    for (int32_t i = 0; plan != NULL && i < raw.n_ops; i++) {
        const fg_raw *op = &raw.ops[i];
        if (is_silent(op->op))
            continue;
        if (plan->n_ops == FG_STRAIGHT_OPS) { /* long code gains nothing, and the loop specialises it */
            fg_free(plan);
            plan = NULL;
            break;
        }
        plan->ops[plan->n_ops].op = op->op;
        plan->ops[plan->n_ops].arg = (uint8_t)op->arg;
        plan->ops[plan->n_ops++].unit = (uint16_t)op->unit;
    }
    if (plan != NULL)
        plan->n_locals = (uint8_t)code->co_nlocalsplus;
    fg_raw_fini(&raw);
    *out = plan;
    return st == FG_ERR_NOMEM ? st : FG_OK;
}

/* ---- instructions ---- */

/* UNPACK_SEQUENCE: n items, the first one on top. The sequence is taken. NULL: an exception is set and nothing was pushed. */
static PyObject **unpack_iterable(PyObject *seq, int n, PyObject **sp)
{
    PyObject *it = PyObject_GetIter(seq), *item;
    int got = 0;

    if (it == NULL) {
        if (PyErr_ExceptionMatches(PyExc_TypeError) && Py_TYPE(seq)->tp_iter == NULL && !PySequence_Check(seq))
            PyErr_Format(PyExc_TypeError, "cannot unpack non-iterable %.200s object", Py_TYPE(seq)->tp_name);
        Py_DECREF(seq);
        return NULL;
    }
    while (got < n && (item = PyIter_Next(it)) != NULL)
        sp[n - 1 - got++] = item;
    if (got < n) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "not enough values to unpack (expected %d, got %d)", n, got);
    } else if ((item = PyIter_Next(it)) != NULL) {
        Py_DECREF(item);
        PyErr_Format(PyExc_ValueError, "too many values to unpack (expected %d)", n);
    }
    int failed = PyErr_Occurred() != NULL;
    for (int i = 0; failed && i < got; i++)
        Py_DECREF(sp[n - 1 - i]);
    Py_DECREF(it);
    Py_DECREF(seq);
    return failed ? NULL : sp + n;
}

static PyObject **unpack(PyObject *seq, int n, PyObject **sp)
{
    PyObject **items = PyTuple_CheckExact(seq)  ? ((PyTupleObject *)seq)->ob_item
                       : PyList_CheckExact(seq) ? ((PyListObject *)seq)->ob_item
                                                : NULL;
    if (items == NULL || Py_SIZE(seq) != n)
        return unpack_iterable(seq, n, sp);
    for (int i = n; i-- > 0;)
        *sp++ = Py_NewRef(items[i]);
    Py_DECREF(seq);
    return sp;
}

/* CALL: [method or NULL, self or callable, arguments…]. */
static PyObject **call(PyObject **sp, int n, PyObject *kwnames)
{
    PyObject **base = sp - n - 2;
    int is_method = base[0] != NULL;
    PyObject **args = is_method ? base + 1 : base + 2, *callable = is_method ? base[0] : base[1];
    Py_ssize_t n_args = (sp - args) - (kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0);
    PyObject *result = PyObject_Vectorcall(callable, args, (size_t)n_args | PY_VECTORCALL_ARGUMENTS_OFFSET, kwnames);
    Py_DECREF(callable);
    for (PyObject **at = args; at < sp; at++)
        Py_DECREF(*at);
    *base = result;
    return result != NULL ? base + 1 : NULL;
}

/* ---- the frame ---- */

/* Somebody keeps the frame object: it gets the frame's contents and owns them from now on. The frame is not the thread's current one any more. */
static void frame_give(PyFrameObject *object, _PyInterpreterFrame *frame, int n_locals, PyThreadState *tstate)
{
    frame->stacktop = n_locals;
    memcpy(object->_f_frame_data, frame, (size_t)((char *)&frame->localsplus[n_locals] - (char *)frame));
    frame = (_PyInterpreterFrame *)(void *)object->_f_frame_data;
    object->f_frame = frame;
    frame->owner = FRAME_OWNED_BY_FRAME_OBJECT;
    frame->frame_obj = NULL;
    Py_INCREF(frame->f_func);
    Py_INCREF(frame->f_code);
    frame->previous = NULL;
    /* Making the caller's frame object may run out of memory: then the chain ends here, as in the interpreter. */
    object->f_back = PyThreadState_GetFrame(tstate);
    if (object->f_back == NULL)
        PyErr_Clear();
    if (!PyObject_GC_IsTracked((PyObject *)object))
        PyObject_GC_Track(object);
}

static void frame_clear(_PyInterpreterFrame *frame, int n_locals, PyThreadState *tstate)
{
    PyFrameObject *object = frame->frame_obj;
    if (object != NULL) {
        frame->frame_obj = NULL;
        if (Py_REFCNT(object) > 1) {
            PyObject *type, *value, *trace;
            PyErr_Fetch(&type, &value, &trace);
            frame_give(object, frame, n_locals, tstate);
            PyErr_Restore(type, value, trace);
            Py_DECREF(object);
            return;
        }
        Py_DECREF(object);
    }
    Py_XDECREF(frame->f_locals);
    for (int i = 0; i < n_locals; i++)
        Py_XDECREF(frame->localsplus[i]);
}

static __attribute__((noinline)) void trace_back(PyThreadState *tstate)
{
    PyObject *type, *value, *trace;
    if (!PyErr_Occurred()) /* as the interpreter says it, where memory ends */
        PyErr_SetString(PyExc_SystemError, "error return without exception set");
    PyErr_Fetch(&type, &value, &trace);
    PyFrameObject *frame = PyThreadState_GetFrame(tstate);
    PyErr_Restore(type, value, trace);
    if (frame != NULL)
        PyTraceBack_Here(frame);
    Py_XDECREF(frame);
}

PyObject *fg_straight_run(const fg_straight *plan, PyObject *function, PyObject *const *inputs)
{
    PyFunctionObject *func = (PyFunctionObject *)function;
    PyCodeObject *code = (PyCodeObject *)func->func_code;
    PyThreadState *tstate = _PyThreadState_UncheckedGet();
    PyObject **const base = tstate->datastack_top;
    const Py_ssize_t room = FRAME_SPECIALS_SIZE + plan->n_locals + code->co_stacksize;
    _PyInterpreterFrame *const frame = (_PyInterpreterFrame *)base;
    const int n_args = code->co_argcount, n_locals = plan->n_locals;
    PyObject **const locals = frame->localsplus, **sp = locals + n_locals, *result = NULL, *kwnames = NULL, *a;

    /* At the limit of the recursion, which the interpreter says in its own words, and at the end of a chunk of its stack, which it frees. */
    if (tstate->recursion_remaining <= 1 || base == NULL || room >= tstate->datastack_limit - base)
        return func->vectorcall(function, inputs, (size_t)n_args, NULL);
    tstate->recursion_remaining--;
    tstate->datastack_top = base + room;
    frame->f_func = func; /* both borrowed: the caller holds the function */
    frame->f_code = code;
    frame->f_globals = func->func_globals;
    frame->f_builtins = func->func_builtins;
    frame->f_locals = NULL;
    frame->frame_obj = NULL;
    frame->stacktop = -1; /* as while the loop runs it */
    frame->is_entry = false;
    frame->owner = FRAME_OWNED_BY_THREAD;
    for (int i = 0; i < n_args; i++)
        locals[i] = Py_NewRef(inputs[i]);
    for (int i = n_args; i < n_locals; i++)
        locals[i] = NULL;
    _Py_CODEUNIT *const first = _PyCode_CODE(code);
    frame->prev_instr = first + plan->ops[0].unit;
    frame->previous = tstate->cframe->current_frame;
    tstate->cframe->current_frame = frame;

    for (uint32_t i = 0;; i++) {
        const int arg = plan->ops[i].arg;
        frame->prev_instr = first + plan->ops[i].unit;
        switch (plan->ops[i].op) {
        case FG_RAW_PUSH_NULL: *sp++ = NULL; continue;
        case FG_RAW_LOAD_CONST: *sp++ = Py_NewRef(PyTuple_GET_ITEM(code->co_consts, arg)); continue;
        case FG_RAW_LOAD_FAST:
            if (locals[arg] == NULL) {
                PyErr_Format(PyExc_UnboundLocalError, "cannot access local variable '%.200U' where it is not associated with a value",
                             PyTuple_GET_ITEM(code->co_localsplusnames, arg));
                goto failed;
            }
            *sp++ = Py_NewRef(locals[arg]);
            continue;
        case FG_RAW_STORE_FAST:
            a = locals[arg];
            locals[arg] = *--sp;
            Py_XDECREF(a);
            continue;
        case FG_RAW_POP_TOP: Py_DECREF(*--sp); continue;
        case FG_RAW_SWAP:
            a = sp[-1];
            sp[-1] = sp[-arg];
            sp[-arg] = a;
            continue;
        case FG_RAW_COPY:
            *sp = Py_NewRef(sp[-arg]);
            sp++;
            continue;
        case FG_RAW_BINARY_OP: result = fg_binary_operators[arg](sp[-2], sp[-1]); goto took_two;
        case FG_RAW_COMPARE_OP: result = PyObject_RichCompare(sp[-2], sp[-1], arg); goto took_two;
        case FG_RAW_IS_OP: result = Py_NewRef((sp[-2] == sp[-1]) ^ arg ? Py_True : Py_False); goto took_two;
        case FG_RAW_BINARY_SUBSCR: result = PyObject_GetItem(sp[-2], sp[-1]); goto took_two;
        case FG_RAW_STORE_SUBSCR: {
            int failed = PyObject_SetItem(sp[-2], sp[-1], sp[-3]);
            sp -= 3;
            Py_DECREF(sp[0]);
            Py_DECREF(sp[1]);
            Py_DECREF(sp[2]);
            if (failed)
                goto failed;
            continue;
        }
        case FG_RAW_STORE_ATTR: {
            int failed = PyObject_SetAttr(sp[-1], PyTuple_GET_ITEM(code->co_names, arg), sp[-2]);
            sp -= 2;
            Py_DECREF(sp[0]);
            Py_DECREF(sp[1]);
            if (failed)
                goto failed;
            continue;
        }
        case FG_RAW_UNARY_NEGATIVE: result = PyNumber_Negative(sp[-1]); goto took_one;
        case FG_RAW_UNARY_POSITIVE: result = PyNumber_Positive(sp[-1]); goto took_one;
        case FG_RAW_UNARY_INVERT: result = PyNumber_Invert(sp[-1]); goto took_one;
        case FG_RAW_LOAD_ATTR: result = PyObject_GetAttr(sp[-1], PyTuple_GET_ITEM(code->co_names, arg)); goto took_one;
        case FG_RAW_LOAD_METHOD: {
            PyObject *method = NULL;
            a = sp[-1];
            int unbound = _PyObject_GetMethod(a, PyTuple_GET_ITEM(code->co_names, arg), &method);
            if (method == NULL)
                goto failed;
            sp[-1] = unbound ? method : NULL;
            *sp++ = unbound ? a : method;
            if (!unbound)
                Py_DECREF(a);
            continue;
        }
        case FG_RAW_KW_NAMES: kwnames = PyTuple_GET_ITEM(code->co_consts, arg); continue;
        case FG_RAW_CALL: {
            PyObject **after = call(sp, arg, kwnames);
            kwnames = NULL;
            sp = after != NULL ? after : sp - arg - 2;
            if (after == NULL)
                goto failed;
            continue;
        }
        case FG_RAW_BUILD_TUPLE:
        case FG_RAW_BUILD_LIST:
            result = plan->ops[i].op == FG_RAW_BUILD_TUPLE ? PyTuple_New(arg) : PyList_New(arg);
            if (result == NULL)
                goto failed;
            sp -= arg;
            if (arg > 0) /* an empty list has no array */
                memcpy(PySequence_Fast_ITEMS(result), sp, (size_t)arg * sizeof *sp);
            break;
        case FG_RAW_UNPACK_SEQUENCE: {
            a = *--sp;
            PyObject **after = unpack(a, arg, sp);
            if (after == NULL)
                goto failed;
            sp = after;
            continue;
        }
        case FG_RAW_RETURN_VALUE: result = *--sp; goto leave;
        default: Py_UNREACHABLE();
        }
        goto give;
    took_two: /* the left one dies first */
        sp -= 2;
        Py_DECREF(sp[0]);
        Py_DECREF(sp[1]);
        goto give;
    took_one:
        Py_DECREF(*--sp);
    give:
        if (result == NULL)
            goto failed;
        *sp++ = result;
    }
failed:
    trace_back(tstate);
    result = NULL;
    while (sp > locals + n_locals) {
        sp--;
        Py_XDECREF(*sp);
    }
leave:
    tstate->cframe->current_frame = frame->previous;
    frame_clear(frame, n_locals, tstate);
    tstate->datastack_top = base;
    tstate->recursion_remaining++;
    return result;
}
