/* Purpose:   whether a call on this thread may be served by an entry.
 * Model:     fg_thread_is_ordinary of the layer below is the quick question; where it says no, each reason is asked for.
 * Threading: the GIL is held.
 * Ownership: none.
 */
#ifndef FG_HOOK_THREAD_H
#define FG_HOOK_THREAD_H

#include <Python.h>

enum { FG_STACK_RESERVE = 96 * 1024 };

typedef enum fg_thread_says { FG_CALL_GOES_ON, FG_CALL_RUNS_PLAIN, FG_CALL_HAS_NO_STACK } fg_thread_says;
fg_thread_says fg_ask_thread(void);

#endif
