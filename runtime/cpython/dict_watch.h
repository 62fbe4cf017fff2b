/* Purpose:   learn that a dict has changed or died without looking at it: for memos, which then need no word of it.
 * Model:     whoever depends on dicts as they are has one watch for each. A dict with watches is registered by its address and marked for the interpreter,
 *            which announces every change of it, and its end, before it is made (PyDict_AddWatcher, since 3.12). The first announcement drops
 *            all of its watches; each tells its owner by two stores. So one change of a dict costs whoever makes it a call and a look-up; the next ones
 *            cost nothing, or little until watches are set or dropped the next time (3.12 puts the mark back while the announcement is made).
 * Invariants: off until the self-test has seen this interpreter announce every way of changing a dict (since312_watch_test.c); then, while a watch is
 *            set, the dict is alive and has the keys, the values and the order that it had. Nothing here runs Python, but for init.
 *            A dict that others watch, too, is not taken: what they run when it is announced would see it as it still is, and think it watched from then on.
 * Threading: the GIL is held. Announcements come from anywhere, deallocation and garbage collection among them.
 * Ownership: dicts are borrowed: their end is announced. A watch is its owner's memory, which stays where it is until it is dropped.
 */
#ifndef FG_CPYTHON_DICT_WATCH_H
#define FG_CPYTHON_DICT_WATCH_H

#include "runtime/base/status.h"
#include <Python.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fg_dict_watch {
    struct fg_watched *dict;            /* NULL: not set, or dropped */
    struct fg_dict_watch *next, **from; /* the others of this dict */
    uint8_t *changed;                   /* set to 1 when the dict changes */
    uint8_t *count;                     /* of such changes, up to 255 */
} fg_dict_watch;

/* 1 if a watch can be set on this object. */
int fg_dict_is_watchable(PyObject *object);
/* The dict is watchable. FG_ERR_NOMEM: not set. */
fg_status fg_dict_watch_set(fg_dict_watch *watch, PyObject *dict, uint8_t *changed, uint8_t *count);
void fg_dict_watch_drop(fg_dict_watch *watch);

/* How many dicts are watched; -1: none can be. */
Py_ssize_t fg_dict_watched(void);

/* Try whether dicts can be watched here, and register the exit, which takes all watches as changed. 0, or -1 with an exception. */
int fg_dict_watch_init(void);
/* 1 if each kind of change is seen. watch(dict) is False where it cannot be watched, seen() tells of an announcement since then (since312_watch_test.c). */
int fg_dict_watch_try(PyCFunction watch, PyCFunction seen);

#ifdef __cplusplus
}
#endif

#endif
