/* Interceptions and the threads that they were entered on. What they do with a frame is in hook_frames.c.
 *
 * The list of what a thread has entered is kept with its thread state, so that it goes when that goes; what is still entered then goes on its own when it
 * is left, or never.
 *
 * The evaluator stays armed while an object lives that was ever entered: who enters and leaves often keeps one object, and pays for the slot once.
 */
#include "runtime/hook/hook_intercept.h"

#include "runtime/base/alloc.h"

#include <string.h>

typedef struct fg_active fg_active;

typedef struct thread_list {
    fg_active *top;
    uint8_t is_orphan; /* its thread is gone */
} thread_list;

/* What Python holds: one that was entered has a lease on the evaluator. */
typedef struct fg_handle {
    PyObject_HEAD FG_OWNED fg_interception *interception;
    fg_active *entered; /* newest first */
    uint8_t has_lease;
} fg_handle;

struct fg_active {
    FG_OWNED fg_handle *handle;
    thread_list *thread;
    fg_active *below; /* on the thread */
    fg_active *next;  /* of the handle */
};

enum { OWN_DEPTH = 1000 };

static PyTypeObject handle_type;
static fg_interception *kept, *all;
static Py_ssize_t leases;

static _Thread_local thread_list *list_here; /* of the thread state with this id */
static _Thread_local uint64_t list_of;
static _Thread_local uint32_t paused;

/* --- threads --- */

static thread_list *find_list(void)
{
    const PyThreadState *thread = PyThreadState_Get();
    return list_of == thread->id ? list_here : NULL;
}

static const void *asker_here(void)
{
    const thread_list *list = paused > 0 || fg_thread_is_plain() ? NULL : find_list();
    return list == NULL || list->top == NULL ? NULL : list->top->handle->interception;
}

void fg_intercept_pause(void)
{
    paused++;
    fg_thread_depth_add(OWN_DEPTH);
    fg_eval_forget_thread();
}

void fg_intercept_resume(void)
{
    paused--;
    fg_thread_depth_add(-OWN_DEPTH);
    fg_eval_forget_thread();
}

static const char list_name[] = "framegate.interceptions";

static void list_gone(PyObject *capsule)
{
    thread_list *list = PyCapsule_GetPointer(capsule, list_name);
    if (list->top != NULL)
        list->is_orphan = 1;
    else
        fg_free(list);
}

static thread_list *make_list(void)
{
    thread_list *list = find_list();
    if (list != NULL)
        return list;
    PyObject *dict = PyThreadState_GetDict(), *capsule = NULL; /* borrowed */
    if (dict == NULL || (list = fg_calloc(1, sizeof *list)) == NULL)
        return (thread_list *)PyErr_NoMemory();
    if ((capsule = PyCapsule_New(list, list_name, list_gone)) == NULL) {
        fg_free(list);
        return NULL;
    }
    int failed = PyDict_SetItemString(dict, list_name, capsule) < 0;
    Py_DECREF(capsule); /* frees the list if the dict has not got it */
    if (failed)
        return NULL;
    list_here = list;
    list_of = PyThreadState_Get()->id;
    return list;
}

/* --- interceptions --- */

static int interception_traverse(PyObject *self, visitproc visit, void *arg)
{
    fg_interception *interception = (fg_interception *)self;
    Py_VISIT(interception->options.dict);
    Py_VISIT(interception->filter);
    for (fg_frame_row *row = interception->rows; row != NULL; row = row->next) {
        int stop = fg_site_owner_traverse(&row->owner, visit, arg);
        if (stop)
            return stop;
    }
    return 0;
}

static int interception_clear(PyObject *self)
{
    fg_interception *interception = (fg_interception *)self;
    interception->is_cleared = 1;
    fg_frames_drop_rows(interception);
    fg_site_options_clear(&interception->options);
    Py_CLEAR(interception->filter);
    return 0;
}

static void interception_dealloc(PyObject *self)
{
    fg_interception *interception = (fg_interception *)self;
    PyObject_GC_UnTrack(self);
    interception_clear(self);
    *interception->link_all = interception->next_all;
    if (interception->next_all != NULL)
        interception->next_all->link_all = interception->link_all;
    PyObject_GC_Del(self);
}

PyTypeObject fg_interception_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegate._core.Interception",
    .tp_basicsize = sizeof(fg_interception),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = interception_dealloc,
    .tp_traverse = interception_traverse,
    .tp_clear = interception_clear,
};

static fg_interception *find_kept(const fg_site_options *options, uint32_t limit, int run_only)
{
    fg_interception *each = kept;
    while (each != NULL &&
           !(fg_site_options_equal(&each->options, options) && each->recompile_limit == limit && each->run_only == run_only))
        each = each->next_kept;
    return each;
}

/* Takes the options over. */
static FG_NEW fg_interception *make_interception(fg_site_options *options, PyObject *filter, uint32_t limit, int run_only)
{
    fg_interception *made = filter == NULL && options->immortal ? find_kept(options, limit, run_only) : NULL;
    if (made != NULL) {
        fg_site_options_clear(options);
        return (fg_interception *)Py_NewRef((PyObject *)made);
    }
    made = PyObject_GC_New(fg_interception, &fg_interception_type);
    if (made == NULL) {
        fg_site_options_clear(options);
        return NULL;
    }
    memset((char *)made + sizeof(PyObject), 0, sizeof *made - sizeof(PyObject));
    made->options = *options;
    made->filter = Py_XNewRef(filter);
    made->recompile_limit = limit;
    made->run_only = (uint8_t)run_only;
    made->next_all = all;
    made->link_all = &all;
    if (all != NULL)
        all->link_all = &made->next_all;
    all = made;
    if (filter == NULL && made->options.immortal) {
        made->next_kept = kept;
        kept = (fg_interception *)Py_NewRef((PyObject *)made);
    }
    PyObject_GC_Track(made);
    return made;
}

void fg_intercept_forget(PyCodeObject *code)
{
    for (fg_interception *each = all; each != NULL; each = each->next_all)
        for (fg_frame_row *row = each->rows; row != NULL; row = row->next)
            if (code == NULL || row->notes->code == code)
                fg_frames_forget_row(row);
}

/* --- handles --- */

static PyObject *handle_enter(PyObject *object, PyObject *unused)
{
    (void)unused;
    fg_handle *self = (fg_handle *)object;
    thread_list *list = make_list();
    if (list == NULL)
        return NULL;
    fg_status st = fg_eval_arm();
    if (st != FG_OK) {
        if (st != FG_ERR_PYTHON)
            PyErr_SetString(PyExc_RuntimeError,
                            st == FG_ERR_UNSUPPORTED
                                ? "framegate.intercept works in the interpreter that imported framegate, not in another one"
                                : "framegate.intercept: the interpreter has no room left for data beside code objects");
        return NULL;
    }
    fg_active *active = fg_malloc(sizeof *active);
    if (active == NULL)
        return PyErr_NoMemory();
    *active = (fg_active){(fg_handle *)Py_NewRef(object), list, list->top, self->entered};
    list->top = active;
    self->entered = active;
    if (!self->has_lease) {
        self->has_lease = 1;
        leases++;
    }
    fg_eval_forget_thread();
    Py_RETURN_NONE;
}

/* The newest of this thread, else the newest of any. */
static fg_active *find_entered(const fg_handle *self)
{
    const thread_list *list = find_list();
    for (fg_active *each = self->entered; each != NULL && list != NULL; each = each->next)
        if (each->thread == list)
            return each;
    return self->entered;
}

static PyObject *handle_leave(PyObject *object, PyObject *unused)
{
    (void)unused;
    fg_handle *self = (fg_handle *)object;
    fg_active *active = find_entered(self), **at = &self->entered;
    if (active == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "this framegate.intercept is not entered");
        return NULL;
    }
    thread_list *list = active->thread;
    while (*at != active)
        at = &(*at)->next;
    *at = active->next;
    for (at = &list->top; *at != active;)
        at = &(*at)->below;
    *at = active->below;
    if (list->is_orphan && list->top == NULL)
        fg_free(list);
    fg_free(active);
    fg_eval_forget_thread();
    Py_DECREF(self); /* the caller has one more */
    Py_RETURN_NONE;
}

static int handle_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((fg_handle *)self)->interception);
    return 0;
}

static int handle_clear(PyObject *self)
{
    Py_CLEAR(((fg_handle *)self)->interception);
    return 0;
}

static void handle_dealloc(PyObject *object)
{
    fg_handle *self = (fg_handle *)object;
    PyObject_GC_UnTrack(object);
    if (self->has_lease && --leases == 0)
        fg_eval_disarm();
    handle_clear(object);
    PyObject_GC_Del(object);
}

static PyMethodDef handle_methods[] = {
    {"enter", handle_enter, METH_NOARGS, "From now on this thread's frames are offered."},
    {"leave", handle_leave, METH_NOARGS, "Undo the newest enter, of this thread if there is one. RuntimeError: it is not entered."},
    {0},
};

static PyTypeObject handle_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegate._core.Intercept",
    .tp_basicsize = sizeof(fg_handle),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = handle_dealloc,
    .tp_traverse = handle_traverse,
    .tp_clear = handle_clear,
    .tp_methods = handle_methods,
};

static PyObject *intercept_new(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *options, *filter;
    int run_only, limit;
    fg_site_options read;
    if (!PyArg_ParseTuple(args, "OOip:intercept_new", &options, &filter, &limit, &run_only))
        return NULL;
    if (fg_site_options_read(options, &read) != FG_OK)
        return NULL;
    fg_interception *interception = make_interception(&read, filter == Py_None ? NULL : filter, limit < 0 ? 0 : (uint32_t)limit, run_only);
    if (interception == NULL)
        return NULL;
    fg_handle *handle = PyObject_GC_New(fg_handle, &handle_type);
    if (handle == NULL) {
        Py_DECREF(interception);
        return NULL;
    }
    handle->interception = interception;
    handle->entered = NULL;
    handle->has_lease = 0;
    PyObject_GC_Track(handle);
    return (PyObject *)handle;
}

static PyObject *intercept_state(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return Py_BuildValue("{s:O,s:O,s:O,s:n}", "on_top", fg_eval_is_on_top() ? Py_True : Py_False, "linked",
                         fg_eval_is_linked() ? Py_True : Py_False, "asks", asker_here() != NULL ? Py_True : Py_False, "leases", leases);
}

static PyObject *intercept_log(PyObject *module, PyObject *callable)
{
    (void)module;
    fg_frames_log_set(callable);
    Py_RETURN_NONE;
}

static PyObject *intercept_own_files(PyObject *module, PyObject *prefix)
{
    (void)module;
    if (fg_frames_own_files_set(prefix) != FG_OK)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *intercept_forget(PyObject *module, PyObject *code)
{
    (void)module;
    if (!PyCode_Check(code))
        return PyErr_Format(PyExc_TypeError, "intercept_forget takes a code object, not '%.200s'", Py_TYPE(code)->tp_name);
    fg_intercept_forget((PyCodeObject *)code);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"intercept_new", intercept_new, METH_VARARGS,
     "intercept_new(options, filter, recompile_limit, run_only) -> an object to enter and leave. recompile_limit 0: the configured one."},
    {"intercept_state", intercept_state, METH_NOARGS,
     "intercept_state() -> dict: on_top (our evaluator is the first), linked (it is somewhere), asks (of this thread), leases"},
    {"intercept_log", intercept_log, METH_O,
     "intercept_log(callable): callable(code, reason) hears once of each code object that is left alone; None: nobody."},
    {"intercept_own_files", intercept_own_files, METH_O,
     "intercept_own_files(prefix): code of files whose names begin so is never intercepted."},
    {"intercept_forget", intercept_forget, METH_O, "intercept_forget(code): decide anew about its frames."},
    {0},
};

static const fg_eval_users users = {.asker = asker_here, .offer = fg_frames_offer, .notes_free = fg_frames_notes_free};

fg_status fg_intercept_init(PyObject *module)
{
    if (PyType_Ready(&fg_interception_type) < 0 || PyType_Ready(&handle_type) < 0 || PyModule_AddFunctions(module, functions) < 0)
        return FG_ERR_PYTHON;
    fg_status st = fg_eval_init(&users);
    return st == FG_ERR_LIMIT ? FG_OK : st; /* entering says so */
}
