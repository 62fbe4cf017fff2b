/* Watches of dicts (runtime/cpython/dict_watch.h), by the interpreter's watchers.
 *
 *     table by address ──> watched dict ──> watch ──> watch …        owners: memos
 *                               │
 *                               └ announced: it has no watches; `stale` keeps it for the next sweep, which takes the mark off
 *
 * Mirrors, of CPython 3.12 to 3.15: pycore_dict.h (_PyDict_NotifyEvent: the low byte of the version, since 3.14 of a tag, has a bit for each watcher).
 */
#define Py_BUILD_CORE 1
#include "runtime/cpython/dict_watch.h"

#include "runtime/base/alloc.h"
#include "runtime/cpython/object_storage.h"

typedef struct fg_watched {
    PyObject *dict;           /* NULL: gone */
    struct fg_watched *next;  /* in the table */
    struct fg_watched *stale; /* announced: the next such one */
    int is_stale;
    fg_dict_watch *watches;
} watched;

static int id = -1;         /* ours among the watchers; -1: off */
static int mark_sticks = 1; /* a mark that is taken off during the announcement is put back */
static watched **table;     /* n_slots lists, a power of two */
static size_t n_slots, n_watched;
static watched *stale; /* ends at `last` */
static watched last;

static uint64_t marks_of(PyObject *dict)
{
#if PY_VERSION_HEX < 0x030e0000
    return ((PyDictObject *)dict)->ma_version_tag & 0xff;
#else
    return ((PyDictObject *)dict)->_ma_watcher_tag & 0xff;
#endif
}

/* Since 3.13 two are the interpreter's own. They run no Python. */
#define MARKS_OF_CPYTHON (PY_VERSION_HEX < 0x030d0000 ? 0u : 3u)

int fg_dict_is_watchable(PyObject *object)
{
    if (id < 0 || !PyDict_CheckExact(object))
        return 0;
    if (PY_VERSION_HEX >= 0x030d0000 && ((PyDictObject *)object)->ma_values != NULL)
        return 0; /* its values may be those of an object */
    return (marks_of(object) & ~(UINT64_C(1) << id) & ~(uint64_t)MARKS_OF_CPYTHON) == 0;
}

static watched **find(PyObject *dict)
{
    watched **at = &table[((uintptr_t)dict >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (n_slots - 1)];
    while (*at != NULL && (*at)->dict != dict)
        at = &(*at)->next;
    return at;
}

static fg_status make_room(void)
{
    if (n_watched < n_slots)
        return FG_OK;
    const size_t n_old = n_slots, more = n_old != 0 ? 2 * n_old : 64;
    watched **old = table, **room = fg_calloc(more, sizeof *room);
    if (room == NULL)
        return FG_ERR_NOMEM;
    table = room;
    n_slots = more;
    for (size_t i = 0; i < n_old; i++) {
        for (watched *one = old[i], *next; one != NULL; one = next) {
            next = one->next;
            one->next = NULL;
            *find(one->dict) = one;
        }
    }
    fg_free(old);
    return FG_OK;
}

/* It is in the table: take it out, and the mark off. */
static void forget(watched *one)
{
    *find(one->dict) = one->next;
    n_watched--;
    if (PyDict_Unwatch(id, one->dict) < 0)
        PyErr_Clear();
}

static void tell_all(watched *one)
{
    for (fg_dict_watch *watch = one->watches, *next; watch != NULL; watch = next) {
        next = watch->next;
        watch->dict = NULL;
        *watch->changed = 1;
        *watch->count += *watch->count < 255;
    }
    one->watches = NULL;
}

static void sweep(void)
{
    while (stale != &last) {
        watched *one = stale;
        stale = one->stale;
        if (one->dict != NULL)
            forget(one);
        fg_free(one);
    }
}

static int announced(PyDict_WatchEvent event, PyObject *dict, PyObject *key, PyObject *value)
{
    (void)key, (void)value;
    watched **at = n_slots != 0 ? find(dict) : NULL, *one = at != NULL ? *at : NULL;
    if (one == NULL)
        return 0;
    tell_all(one);
    if (!one->is_stale) {
        one->is_stale = 1;
        one->stale = stale;
        stale = one;
    }
    if (event == PyDict_EVENT_DEALLOCATED || !mark_sticks) {
        forget(one);
        one->dict = NULL;
    }
    return 0;
}

fg_status fg_dict_watch_set(fg_dict_watch *watch, PyObject *dict, uint8_t *changed, uint8_t *count)
{
    fg_status st = FG_OK;
    watched *made = NULL;

    sweep();
    FG_TRY(make_room());
    watched **at = find(dict);
    if (*at == NULL) {
        if ((made = fg_calloc(1, sizeof *made)) == NULL)
            FG_TRY(FG_ERR_NOMEM);
        if (PyDict_Watch(id, dict) < 0) {
            PyErr_Clear();
            FG_TRY(FG_ERR_NOMEM);
        }
        made->dict = dict;
        *at = made;
        n_watched++;
    }
    *watch = (fg_dict_watch){*at, (*at)->watches, &(*at)->watches, changed, count};
    if (watch->next != NULL)
        watch->next->from = &watch->next;
    (*at)->watches = watch;
    return FG_OK;
fail:
    fg_free(made);
    return st;
}

void fg_dict_watch_drop(fg_dict_watch *watch)
{
    watched *one = watch->dict;
    if (one == NULL)
        return;
    *watch->from = watch->next;
    if (watch->next != NULL)
        watch->next->from = watch->from;
    watch->dict = NULL;
    if (one->watches == NULL) {
        forget(one);
        fg_free(one);
    }
    sweep();
}

Py_ssize_t fg_dict_watched(void)
{
    sweep();
    return id < 0 ? -1 : (Py_ssize_t)n_watched;
}

static void leave(void)
{
    if (id < 0)
        return;
    for (size_t i = 0; i < n_slots; i++) {
        while (table[i] != NULL) {
            watched *one = table[i];
            tell_all(one);
            forget(one);
            one->dict = NULL;
            if (!one->is_stale)
                fg_free(one);
        }
    }
    sweep();
    fg_free(table);
    table = NULL;
    n_slots = 0;
    if (PyDict_ClearWatcher(id) < 0)
        PyErr_Clear();
    id = -1;
}

/* ---- the self-test ---- */

static fg_dict_watch trial;
static uint8_t trial_changed, trial_count;

static PyObject *trial_watch(PyObject *self, PyObject *dict)
{
    (void)self;
    fg_dict_watch_drop(&trial);
    trial_changed = 0;
    if (!fg_dict_is_watchable(dict))
        Py_RETURN_FALSE;
    return fg_dict_watch_set(&trial, dict, &trial_changed, &trial_count) == FG_OK ? Py_NewRef(Py_True) : PyErr_NoMemory();
}

static PyObject *trial_seen(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return PyBool_FromLong(trial_changed);
}

/* Whether a mark that is taken off during the announcement stays off. */
static int mark_comes_off(void)
{
    PyObject *dict = PyDict_New();
    int off = 0;
    if (dict != NULL && fg_dict_watch_set(&trial, dict, &trial_changed, &trial_count) == FG_OK) {
        mark_sticks = 0;
        off = PyDict_SetItemString(dict, "a", Py_None) == 0 && trial_changed && (marks_of(dict) >> id & 1) == 0;
        fg_dict_watch_drop(&trial);
    }
    Py_XDECREF(dict);
    return off;
}

static PyObject *exiting(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    leave();
    Py_RETURN_NONE;
}

static PyMethodDef exiting_def = {"_drop_watches", exiting, METH_NOARGS, "At exit: nothing is watched any more."};

static int register_exit(void)
{
    PyObject *atexit = PyImport_ImportModule("atexit"), *callback = NULL, *result = NULL;
    if (atexit != NULL && (callback = PyCFunction_New(&exiting_def, NULL)) != NULL)
        result = PyObject_CallMethod(atexit, "register", "O", callback);
    Py_XDECREF(atexit);
    Py_XDECREF(callback);
    Py_XDECREF(result);
    return result != NULL ? 0 : -1;
}

int fg_dict_watch_init(void)
{
    if (id >= 0)
        return 0;
    stale = &last;
    if ((id = PyDict_AddWatcher(announced)) < 0) {
        PyErr_Clear(); /* others have them all */
        return 0;
    }
    mark_sticks = !mark_comes_off();
    const int works = fg_dict_watch_try(trial_watch, trial_seen);
    fg_dict_watch_drop(&trial);
    if (!works) {
        leave();
        return 0;
    }
    return register_exit();
}
