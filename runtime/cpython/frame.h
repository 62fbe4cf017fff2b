/* Purpose:   the interpreter's frame, dicts and types, as far as the rest of the engine may look at them.
 * Model:     one implementation per CPython version; nothing outside runtime/cpython/ includes an internal header.
 * Threading: the GIL is held.
 */
#ifndef FG_CPYTHON_FRAME_H
#define FG_CPYTHON_FRAME_H

#include "runtime/base/status.h"
#include <Python.h>
#include <stdint.h>
#include <string.h>

/* This thread's state, NULL: it has none. */
static inline PyThreadState *fg_thread_state(void)
{
#if PY_VERSION_HEX < 0x030d0000
    return _PyThreadState_UncheckedGet();
#else
    return PyThreadState_GetUnchecked();
#endif
}

/* The innermost Python frame of this thread (the caller, when asked from a C function that it calls). */
typedef struct fg_frame fg_frame;
fg_frame *fg_frame_current(void); /* NULL: no Python frame */
FG_BORROWED PyCodeObject *fg_frame_code(fg_frame *frame);
FG_BORROWED PyObject *fg_frame_func(fg_frame *frame);
/* One of its slots, which are its fast locals followed by its stack; NULL: unbound. */
FG_BORROWED PyObject *fg_frame_slot(fg_frame *frame, Py_ssize_t index);
/* n values of its stack from slot `first` on, borrowed. A running frame does not say how deep its stack is: the caller knows. Slots that are NULL are passed
 * over: they are the second ones of values that take two. */
void fg_frame_values(fg_frame *frame, Py_ssize_t first, Py_ssize_t n, PyObject **out);
/* Replace one slot (steals value; NULL unbinds); the old value is dropped last. */
void fg_frame_slot_set(fg_frame *frame, Py_ssize_t index, FG_STEALS PyObject *value);
int fg_frame_line(fg_frame *frame);
/* While another frame stands for it, a running frame is not there for who walks the stack (sys._getframe, warnings, tracebacks), as if it had not begun. */
typedef struct fg_hidden_frame {
    fg_frame *frame;
    const void *at; /* the instruction that it is at */
} fg_hidden_frame;
void fg_frame_hide(fg_hidden_frame *hidden, fg_frame *frame);
void fg_frame_show(const fg_hidden_frame *hidden);
/* The first n slots of a frame that has not begun, as objects, borrowed; n is at most FG_FACT_MOST_ARGUMENTS. Where slots are words with tags, the objects are
 * written into room, which has FG_FACT_ARGUMENTS_ROOM places. */
PyObject *const *fg_frame_arguments(fg_frame *frame, Py_ssize_t n, PyObject **room);
/* The slot has no object from now on; what was its reference is the caller's. */
void fg_frame_slot_forget(fg_frame *frame, Py_ssize_t index);
/* The slot lets go of its object, of which there is another reference. */
void fg_frame_slot_drop(fg_frame *frame, Py_ssize_t index);
/* The arguments of a call that the frame which runs makes: where they are on its stack, which will drop what is there then. callee has been called with these
 * n. NULL: they are elsewhere. */
typedef struct fg_frame_args fg_frame_args;
fg_frame_args *fg_frame_args_find(PyObject *callee, PyObject *const *values, Py_ssize_t n);
/* Take the stack's reference to argument i; None is there instead. 0: it does not own one. */
int fg_frame_args_take(fg_frame_args *args, Py_ssize_t i);

/* 1 if this thread is being traced, profiled or monitored (settrace, setprofile, events of sys.monitoring for all code), so that the user's own code should run. */
int fg_thread_traced(void);

/* 1 if something asynchronous (a signal, an exception set from outside) waits for this thread to run Python code. */
int fg_signal_is_pending(void);

/* Bytes of C stack left to this thread before the guard zone; measured from the thread's own bounds. */
size_t fg_stack_left(void);
/* 1 on a thread that was made with a small stack, while a plain call still fits: nothing is compiled there, but that is no reason to fail. */
int fg_stack_fits_plain(void);

/* The usable stack of the thread that asked last. Ids of threads are never used again; 0: nobody's. monitors: what its interpreter monitors, NULL on
 * versions that cannot. */
typedef struct fg_thread_stack {
    uint64_t id;
    uintptr_t lowest, size;
    const uint8_t *monitors;
} fg_thread_stack;
extern __attribute__((visibility("hidden"))) fg_thread_stack fg_thread_stack_last;

/* Between enter and leave, which nest, this thread runs everything plain. */
void fg_thread_plain_enter(void);
void fg_thread_plain_leave(void);
int fg_thread_is_plain(void);

/* 1 if events of sys.monitoring are on for this code object alone. */
#if PY_VERSION_HEX >= 0x030c0000
enum { FG_CODES_MAY_BE_MONITORED = 1 };
/* Bytes of what is monitored for all code and for one code object; thread_state.c compares them with the structs, which are internal since 3.14. */
enum {
    FG_GLOBAL_EVENTS = PY_VERSION_HEX < 0x030e0000 ? 15 : 16,
    FG_LOCAL_EVENTS = PY_VERSION_HEX < 0x030d0000   ? 15
                      : PY_VERSION_HEX < 0x030e0000 ? 10
                      : PY_VERSION_HEX < 0x030f0000 ? 11
                                                    : 16
};

static inline int fg_any_monitor(const uint8_t *tools)
{
    uint64_t low, high;
    memcpy(&low, tools, 8);
    memcpy(&high, tools + FG_GLOBAL_EVENTS - 8, 8);
    return (low | high) != 0;
}

static inline int fg_code_is_monitored(const PyCodeObject *code)
{
    const uint8_t *local = (const uint8_t *)code->_co_monitoring; /* what the struct begins with */
    for (int i = 0; local != NULL && i < FG_LOCAL_EVENTS; i++)
        if (local[i])
            return 1;
    return 0;
}
#else
enum { FG_CODES_MAY_BE_MONITORED = 0 };
static inline int fg_any_monitor(const uint8_t *tools)
{
    (void)tools;
    return 0;
}

static inline int fg_code_is_monitored(const PyCodeObject *code)
{
    (void)code;
    return 0;
}
#endif
const uint8_t *fg_thread_monitors(const PyThreadState *thread);

/* 1 if this thread is not traced, does not run plain and has more than so much stack left; 0: each has to be asked for. */
static inline int fg_thread_is_ordinary(size_t reserve)
{
    const PyThreadState *thread = fg_thread_state();
    const uintptr_t left = (uintptr_t)__builtin_frame_address(0) - fg_thread_stack_last.lowest;
    const int ordinary = (thread->id == fg_thread_stack_last.id) & (left - reserve < fg_thread_stack_last.size - reserve) &
                         (thread->c_tracefunc == NULL) & (thread->c_profilefunc == NULL);
    return ordinary && !fg_any_monitor(fg_thread_stack_last.monitors);
}

/* Each entry into the evaluator takes this many of the levels of C calls that the interpreter allows a thread (PY_EVAL_C_STACK_UNITS of CPython 3.12 and 3.13; later versions measure the C stack),
 * which plain Python calling Python does not. Whoever has measured the C stack gives them back while it calls: a recursion that plain Python can do is not
 * cut short. */
#if PY_VERSION_HEX >= 0x030c0000 && PY_VERSION_HEX < 0x030e0000
enum { FG_EVALUATOR_LEVELS = 2 };
static inline void fg_thread_levels_add(int n)
{
    fg_thread_state()->c_recursion_remaining += n;
}
#else
enum { FG_EVALUATOR_LEVELS = 0 };
static inline void fg_thread_levels_add(int n)
{
    (void)n;
}
#endif

/* Levels of Python calls, of those that the interpreter's recursion limit allows this thread: what the engine itself calls is not to fail where the user's program
 * is nearly as deep as it may be. */
static inline void fg_thread_depth_add(int n)
{
    PyThreadState *const thread = fg_thread_state();
#if PY_VERSION_HEX >= 0x030c0000
    thread->py_recursion_remaining += n;
#else
    thread->recursion_remaining += n;
#endif
}

/* An attribute's value in the instance dict or the inline values of an object, borrowed, or NULL. Never materialises a dict, never raises. name is interned. */
FG_BORROWED PyObject *fg_instance_attr(PyObject *object, PyObject *name);
/* Number of instance attributes and the i-th one in insertion order (name, value borrowed); 0 past the end. For the tracer. */
int fg_instance_attr_next(PyObject *object, Py_ssize_t *position, PyObject **name, PyObject **value);
/* The dict that is the object's attributes, NULL while it has none. Never materialises one. */
FG_BORROWED PyObject *fg_instance_dict(PyObject *object);
/* 1 if the type keeps instance attributes in a dict or inline values. */
int fg_type_has_instance_dict(PyTypeObject *type);

/* What the interpreter began with as sys.modules and imports from, whatever that name is bound to now; NULL at the interpreter's end. */
FG_BORROWED PyObject *fg_interpreter_modules(void);

/* The first of the weak references to an object that is no type, NULL: there is none. */
FG_BORROWED PyObject *fg_object_weakrefs(PyObject *object);

/* Versions; 0 means none is available, never equal to a recorded one. */
uint64_t fg_dict_version(PyObject *dict);
uint64_t fg_type_version(PyTypeObject *type); /* assigns one where the interpreter allows */

/* Put a traceback entry (user's code object, byte offset of the instruction) for an inlined call between the exception's newest entry and what is below it. */
fg_status fg_traceback_add(PyObject *exception, PyCodeObject *code, PyObject *globals, int byte_offset, int line);

#endif
