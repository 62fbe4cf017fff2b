/* 3.11 announces no changes of dicts: nothing is watched. */
#include "runtime/cpython/dict_watch.h"

int fg_dict_is_watchable(PyObject *object)
{
    (void)object;
    return 0;
}

fg_status fg_dict_watch_set(fg_dict_watch *watch, PyObject *dict, uint8_t *changed, uint8_t *count)
{
    (void)watch, (void)dict, (void)changed, (void)count;
    return FG_ERR_NOMEM; /* not called */
}

void fg_dict_watch_drop(fg_dict_watch *watch)
{
    (void)watch;
}

Py_ssize_t fg_dict_watched(void)
{
    return -1;
}

int fg_dict_watch_init(void)
{
    return 0;
}
