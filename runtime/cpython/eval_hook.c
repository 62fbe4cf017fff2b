/* Our evaluator.
 *
 *     called ── stack left? ── no ──► RecursionError
 *                   │ yes
 *             thread asks? ── no ────────────────────────┐
 *                   │ yes                                │
 *             notes say "passes"? ── yes ────────────────┤
 *                   │ no                                 ▼
 *             marked by a gate? ── yes ──► pass on to the evaluator before
 *                   │ no                                 ▲
 *                 offer ── not taken ────────────────────┘
 *                   └ taken ──► dispose of the frame
 *
 * What the thread asks for and where its stack ends is remembered for the thread that asked last, so that the common way is a few comparisons and a jump.
 *
 * Who else uses the slot: an evaluator installed later may call ours (it is then passed frames as ever) or not; and ours may be put on top again of one
 * that calls it already, which would go round in circles. So arming first tries whether ours is reached, and passing on to a foreign evaluator notices
 * a frame that comes back.
 */
#define Py_BUILD_CORE 1
#include "runtime/cpython/eval_hook.h"

#include "runtime/cpython/eval_version.h"
#include <internal/pycore_ceval.h>
#include <internal/pycore_interp.h>
#undef Py_BUILD_CORE

enum { PASS_RESERVE = 64 * 1024 };

#if PY_VERSION_HEX >> 16 == 0x030b
#define REQUEST_INDEX _PyEval_RequestCodeExtraIndex
#define NOTES_GET _PyCode_GetExtra
#define NOTES_SET _PyCode_SetExtra
#else
#define REQUEST_INDEX PyUnstable_Eval_RequestCodeExtraIndex
#define NOTES_GET PyUnstable_Code_GetExtra
#define NOTES_SET PyUnstable_Code_SetExtra
#endif

int fg_eval_armed;
static int linked, probing, reached;
static const fg_eval_users *users;
static PyInterpreterState *home;
static _PyFrameEvalFunction previous = _PyEval_EvalFrameDefault;
static Py_ssize_t notes_index = -1;
static fg_code_notes generated = {NULL, 1};

static _Thread_local PyObject *marked; /* only compared */
static _Thread_local _PyInterpreterFrame *passed_on;

/* Of the thread that called last; id 0: of nobody. */
static struct {
    uint64_t id;
    uintptr_t lowest, size;
    const void *asker;
} last;

/* --- notes --- */

/* Mirrors _PyCodeObjectExtra of Objects/codeobject.c, which no header has; fg_eval_init tries it. */
typedef struct extras {
    Py_ssize_t n;
    void *each[1];
} extras;

static inline fg_code_notes *notes_of(const PyCodeObject *code)
{
    const extras *all = code->co_extra;
    return all != NULL && all->n > notes_index ? all->each[notes_index] : NULL;
}

fg_code_notes *fg_code_notes_get(PyCodeObject *code)
{
    return notes_index < 0 ? NULL : notes_of(code);
}

fg_status fg_code_notes_set(PyCodeObject *code, fg_code_notes *notes)
{
    if (notes_index < 0)
        return FG_ERR_LIMIT;
    if (NOTES_SET((PyObject *)code, notes_index, notes) == 0)
        return FG_OK;
    PyErr_Clear();
    return FG_ERR_NOMEM;
}

fg_status fg_code_is_generated_set(PyCodeObject *code)
{
    return notes_index < 0 ? FG_OK : fg_code_notes_set(code, &generated);
}

static void notes_free(void *notes)
{
    if (notes != NULL && notes != &generated)
        users->notes_free(notes);
}

/* --- the evaluator --- */

/* A foreign evaluator may lead back here: then there is nobody left to pass on to. */
static __attribute__((noinline)) PyObject *pass_to_other(PyThreadState *thread, _PyInterpreterFrame *frame, int throwflag)
{
    if (passed_on == frame)
        return _PyEval_EvalFrameDefault(thread, frame, throwflag);
    _PyInterpreterFrame *const outer = passed_on;
    passed_on = frame;
    PyObject *result = previous(thread, frame, throwflag);
    passed_on = outer;
    return result;
}

static inline __attribute__((always_inline)) PyObject *pass(PyThreadState *thread, _PyInterpreterFrame *frame, int throwflag)
{
    fg_thread_levels_add(FG_EVALUATOR_LEVELS);
    PyObject *result =
        previous == _PyEval_EvalFrameDefault ? _PyEval_EvalFrameDefault(thread, frame, throwflag) : pass_to_other(thread, frame, throwflag);
    fg_thread_levels_add(-FG_EVALUATOR_LEVELS);
    return result;
}

/* The thread that called is not the one that called last, or is near the end of its stack. 0: there is no room for the call. */
static __attribute__((noinline)) int look_at_thread(const PyThreadState *thread)
{
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    const size_t left = fg_stack_left();
    last.id = left == SIZE_MAX ? 0 : thread->id; /* on a stack of its own (a coroutine library) each call is looked at */
    last.lowest = left == SIZE_MAX ? 0 : here - left;
    last.size = left == 0 ? 0 : SIZE_MAX - last.lowest;
    last.asker = thread->interp == home ? users->asker() : NULL;
    return left >= PASS_RESERVE || fg_stack_fits_plain();
}

static __attribute__((noinline)) PyObject *offer(PyThreadState *thread, _PyInterpreterFrame *frame, int throwflag)
{
    const fg_frame_kind kind = throwflag ? FG_FRAME_THROWN : frame->owner != FRAME_OWNED_BY_THREAD ? FG_FRAME_STARTED : FG_FRAME_FRESH;
    PyObject *const func = fg_slot_object(*fg_field_func(frame)), *result = NULL;
    if (marked != NULL && marked == func && kind == FG_FRAME_FRESH) {
        marked = NULL;
        return pass(thread, frame, throwflag);
    }
    if (thread->tracing > 0 ||
        !users->offer(last.asker, (fg_frame *)frame, kind, notes_of((PyCodeObject *)fg_slot_object(*fg_field_code(frame))), &result))
        return pass(thread, frame, throwflag);
    fg_version_frame_done(thread, frame);
    return result;
}

static PyObject *evaluate(PyThreadState *thread, _PyInterpreterFrame *frame, int throwflag)
{
    const uintptr_t left = (uintptr_t)__builtin_frame_address(0) - last.lowest;
    if (FG_UNLIKELY((thread->id != last.id) | (left - PASS_RESERVE >= last.size))) {
        if (!look_at_thread(thread))
            return fg_version_frame_refuse(thread, frame, throwflag);
        reached |= probing;
    }
    if (last.asker != NULL) {
        const fg_code_notes *notes = notes_of((PyCodeObject *)fg_slot_object(*fg_field_code(frame)));
        if (notes == NULL || !(notes->passes | (notes->passed_by == last.asker)))
            return offer(thread, frame, throwflag);
    }
    return pass(thread, frame, throwflag);
}

void fg_eval_mark_slow(PyObject *func)
{
    marked = func;
}

void fg_eval_forget_thread(void)
{
    last.id = 0;
}

/* --- the slot --- */

int fg_eval_is_on_top(void)
{
    return home != NULL && _PyInterpreterState_GetEvalFrameFunc(home) == evaluate;
}

int fg_eval_is_linked(void)
{
    return linked;
}

/* Is ours called for a frame of this thread, whoever is on top? */
static fg_status probe(int *out)
{
    fg_status st = FG_ERR_PYTHON;
    PyObject *globals = PyDict_New(), *result = NULL;
    PyObject *code = globals == NULL ? NULL : Py_CompileString("None", "<framegate>", Py_eval_input);
    if (code != NULL) {
        fg_eval_forget_thread();
        probing = 1;
        reached = 0;
        result = PyEval_EvalCode(code, globals, globals);
        probing = 0;
        *out = reached;
    }
    st = result == NULL ? FG_ERR_PYTHON : FG_OK;
    Py_XDECREF(result);
    Py_XDECREF(code);
    Py_XDECREF(globals);
    return st;
}

fg_status fg_eval_arm(void)
{
    fg_status st;
    int is_reached = 0;
    if (users == NULL || notes_index < 0)
        return FG_ERR_LIMIT;
    if (PyInterpreterState_Get() != home)
        return FG_ERR_UNSUPPORTED;
    fg_eval_armed = 1;
    if (fg_eval_is_on_top())
        return FG_OK;
    if (linked) {
        FG_TRY(probe(&is_reached));
        if (is_reached)
            return FG_OK;
    }
    previous = _PyInterpreterState_GetEvalFrameFunc(home);
    fg_eval_forget_thread();
    _PyInterpreterState_SetEvalFrameFunc(home, evaluate);
    linked = 1;
    return FG_OK;
fail:
    return st;
}

void fg_eval_disarm(void)
{
    fg_eval_armed = 0;
    if (!linked || !fg_eval_is_on_top())
        return;
    _PyInterpreterState_SetEvalFrameFunc(home, previous);
    linked = 0;
}

/* The mirror of the interpreter's struct reads what its function wrote. */
static fg_status try_notes(void)
{
    void *read = NULL;
    PyCodeObject *code = PyCode_NewEmpty("<framegate>", "notes", 1);
    if (code == NULL)
        return FG_ERR_PYTHON;
    fg_status st = fg_code_notes_set(code, &generated);
    if (st == FG_OK && (NOTES_GET((PyObject *)code, notes_index, &read) < 0 || read != &generated || notes_of(code) != &generated))
        st = FG_BUG("co_extra is not what codeobject.c of this version has");
    Py_DECREF(code);
    return st;
}

fg_status fg_eval_init(const fg_eval_users *given)
{
    users = given;
    home = PyInterpreterState_Get();
    notes_index = REQUEST_INDEX(notes_free);
    fg_status st = notes_index < 0 ? FG_ERR_LIMIT : try_notes();
    return st == FG_OK ? fg_version_eval_init() : st;
}
