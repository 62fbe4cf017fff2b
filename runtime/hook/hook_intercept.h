/* Purpose:   interceptions: who asks for the frames that nobody wrapped, on which thread, and what becomes of each frame.
 * Model:     an interception is options, a filter and a row for each code object that it was offered. Entering one puts it on top of the thread's list; the
 *            top one is asked about each frame (hook_frames.c). What it has no interest in is noted with the code object and never offered again.
 *
 *     thread ──► active ──► active           interception ──► row ──► row         code object ──► notes ──► row ──► row
 *                   └──► interception                           └──► site                                    (one for each interception)
 *
 * Invariants: a row is in two lists, that of its interception, which owns it, and that of its code object's notes; it goes when either goes.
 *             A row's targets hold no globals, closure or code between calls (they are a shared owner's), so that nothing hidden from the collector keeps
 *             a function's world alive.
 * Threading: the GIL is held. An interception that was entered on one thread may be left on another.
 * Ownership: an interception is an object that the collector sees, with what its rows hold. Those that are alike and whose options hold nothing that
 *            could lead back to them are one object, which lives for ever: so a loop that makes them anew compiles once.
 */
#ifndef FG_HOOK_INTERCEPT_H
#define FG_HOOK_INTERCEPT_H

#include "runtime/cpython/eval_hook.h"
#include "runtime/hook/hook_site.h"

typedef enum fg_row_state { FG_ROW_NEW, FG_ROW_OFFERS, FG_ROW_PASSES } fg_row_state;

typedef struct fg_frame_row fg_frame_row;
typedef struct fg_interception fg_interception;

struct fg_frame_row {
    fg_site_owner owner;
    fg_interception *interception;
    struct fg_frame_notes *notes; /* of its code object */
    Py_ssize_t n_slots;
    uint8_t state, drops_args;
    fg_frame_row *next_of_code;
    fg_frame_row *next, **link; /* of the interception */
};

/* What the engine keeps with a code object that it was offered. */
typedef struct fg_frame_notes {
    fg_code_notes head;
    PyCodeObject *code; /* whose they are */
    fg_frame_row *rows;
} fg_frame_notes;

struct fg_interception {
    PyObject_HEAD fg_site_options options;
    FG_OWNED PyObject *filter; /* NULL: every code object */
    uint32_t recompile_limit;
    uint8_t run_only;
    uint8_t is_cleared; /* by the collector */
    fg_frame_row *rows;
    struct fg_active *active; /* where it was entered, newest first */
    fg_interception *next_kept;
    fg_interception *next_all, **link_all;
};

extern PyTypeObject fg_interception_type;

fg_status fg_intercept_init(PyObject *module);

/* Between pause and resume, which nest, this thread runs Python on the engine's account: its frames are offered to nobody, and the depth of the user's calls does
 * not count. */
void fg_intercept_pause(void);
void fg_intercept_resume(void);

/* Forget what was decided about frames of this code, NULL: of all code. */
void fg_intercept_forget(PyCodeObject *code);

/* hook_frames.c */
int fg_frames_offer(const void *asker, fg_frame *frame, fg_frame_kind kind, fg_code_notes *notes, FG_NEW PyObject **result);
void fg_frames_notes_free(void *notes);
/* Give up all rows of an interception. */
void fg_frames_drop_rows(fg_interception *interception);
void fg_frames_forget_row(fg_frame_row *row);
/* Files that begin so are the engine's own. */
fg_status fg_frames_own_files_set(PyObject *prefix);
/* callable(code, reason), asked once for each code object whose frames are left alone; NULL or None: nobody. */
void fg_frames_log_set(PyObject *callable);

#endif
