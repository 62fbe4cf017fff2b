/* Purpose:   the interpreter's slot for a function that evaluates frames (PEP 523), and what the engine keeps with a code object.
 * Model:     while it is armed, our evaluator is called for each frame and passes it on to the evaluator that was there before, unless the thread asks for
 *            frames (an asker: any pointer that is not NULL) and the asker, once offered the frame, has given its result. What an asker has no interest
 *            in is noted with the code object, so that it is offered once.
 * Invariants: 1. An evaluator that somebody else installed is never removed: ours leaves the slot only from on top. It passes on what it is still given.
 *             2. A frame is either evaluated or disposed of as this version wants it (eval_version.h), exactly once.
 *             3. The C stack is measured at each call, also on threads that ask for nothing: an armed evaluator makes calls that take none into such that do.
 * Threading: the GIL is held. Which asker a thread has is asked again after fg_eval_forget_thread.
 * Ownership: notes belong to the code object from fg_code_notes_set on; the free function given to fg_eval_init gets them when it dies.
 */
#ifndef FG_CPYTHON_EVAL_HOOK_H
#define FG_CPYTHON_EVAL_HOOK_H

#include "runtime/cpython/frame.h"

/* The head of what is kept with a code object. */
typedef struct fg_code_notes {
    const void *passed_by; /* this asker is not interested in frames of the code */
    uint8_t passes;        /* nobody is */
} fg_code_notes;

typedef enum fg_frame_kind {
    FG_FRAME_FRESH,   /* nothing of it ran */
    FG_FRAME_STARTED, /* of a generator or the like, which goes on */
    FG_FRAME_THROWN   /* the same, and an exception is thrown into it */
} fg_frame_kind;

typedef struct fg_eval_users {
    /* The calling thread's asker, NULL: none. Never runs Python. */
    const void *(*asker)(void);
    /* A frame that is not the thread's newest yet. 1: evaluated (*result, or NULL with an exception); 0: to be passed on, the exception state is as
     * before. Only a fresh frame may be evaluated; those of the other kinds are offered once a code object and asker. */
    int (*offer)(const void *asker, fg_frame *frame, fg_frame_kind kind, fg_code_notes *notes, FG_NEW PyObject **result);
    void (*notes_free)(void *notes); /* may be called with NULL */
} fg_eval_users;

/* Once, before anything else here. FG_ERR_LIMIT: the interpreter has no slot left for notes. */
fg_status fg_eval_init(const fg_eval_users *users);
/* Put our evaluator on top, unless it is reached already. */
fg_status fg_eval_arm(void);
/* Take it out of the slot if it is on top. */
void fg_eval_disarm(void);
int fg_eval_is_on_top(void);
/* 1 if it was installed and not taken out again: it is on top, or under somebody else's. */
int fg_eval_is_linked(void);
/* The thread's asker, stack or plainness is not what it was. */
void fg_eval_forget_thread(void);

/* NULL: none. */
fg_code_notes *fg_code_notes_get(PyCodeObject *code);
/* Gives the notes to the code object, which had none. */
fg_status fg_code_notes_set(PyCodeObject *code, fg_code_notes *notes);
/* The code is generated: no interest to anybody. */
fg_status fg_code_is_generated_set(PyCodeObject *code);

/* The next frame of this function, on this thread, is passed on. Undone by fg_eval_unmark where the function was not reached. */
extern __attribute__((visibility("hidden"))) int fg_eval_armed;
void fg_eval_mark_slow(PyObject *func);
static inline void fg_eval_mark(PyObject *func)
{
    if (__builtin_expect(fg_eval_armed, 0))
        fg_eval_mark_slow(func);
}
static inline void fg_eval_unmark(void)
{
    if (__builtin_expect(fg_eval_armed, 0))
        fg_eval_mark_slow(NULL);
}

#endif
