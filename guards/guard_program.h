/* Purpose:   the merged guard program of all live entries of one code object, and its evaluation.
 * Model:     each distinct fact is evaluated once and clears bits of `alive`; the winner is the most recently used live bit, and the registers
 *            it walked to are the target's inputs.
 * Invariants: a program is immutable but for its memory of what it saw (memos, counts of failures), on which no answer depends; all evaluation state is on the C stack of the caller.
 * Threading: the GIL is held. While a guard of the program runs Python on a thread, the same program answers FG_EVAL_BUSY on that thread.
 * Ownership: inputs are borrowed from the view unless `held` is not NULL; then fg_eval_release drops what was held (after the target took them).
 */
#ifndef FG_GUARD_PROGRAM_H
#define FG_GUARD_PROGRAM_H

#include "guards/guard_desc.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fg_program fg_program;

/* Build the program of n descriptions (bit i = descs[i]), anew: merging is linear in the conditions, cheaper than one trace by orders of magnitude. old is an
 * earlier program of the same function or NULL, of whatever entries: what failed in it decides the order; it stays as it is. The descriptions must outlive the program. order: recency is asked of the caller at evaluation. */
fg_status fg_program_build(const fg_desc *const *descs, size_t n, const fg_program *old, fg_program **out);
void fg_program_free(fg_program *program);

uint32_t fg_program_max_inputs(const fg_program *program); /* room that fg_program_eval needs in `inputs` */
size_t fg_program_nbytes(const fg_program *program);

typedef enum fg_eval_result {
    FG_EVAL_MISS = 0,
    FG_EVAL_HIT,
    FG_EVAL_BUSY, /* a guard of this program is running Python on this thread: run plain */
    FG_EVAL_ERROR /* KeyboardInterrupt, SystemExit or MemoryError is set */
} fg_eval_result;

typedef struct fg_eval {
    uint32_t winner; /* index of the entry */
    uint32_t n_inputs;
    PyObject **held; /* references to drop after the call took its inputs, or NULL */
    uint32_t n_held;
} fg_eval;

/* Of several entries that hold, the one with the highest recency wins, among equals the first; NULL: the first. usable: words of bits of entries that may
 * win (NULL: all). inputs has room for fg_program_max_inputs() objects. */
fg_eval_result fg_program_eval(const fg_program *program, const fg_view *view, const uint64_t *recency, const uint64_t *usable,
                               PyObject **inputs, fg_eval *out);
void fg_eval_release(fg_eval *eval);

/* Evaluate one description alone and in full (the tests' reference path and GuardTree.check): 1 match, 0 mismatch, -1 error. */
int fg_desc_check(const fg_desc *desc, const fg_view *view);
/* For statistics: the kind of the first condition that refuses the call, PRESENT or ABSENT where a source has no value or one too many; -1: none does,
 * or only asking an impure one would tell. Runs no Python, keeps a pending exception. */
int fg_desc_refusing_kind(const fg_desc *desc, const fg_view *view);

/* Which conditions fail and what was seen: a list of str, empty if all hold. Same bodies as the evaluation. Each line names the source expression,
 * the expected and the seen value, the user's file and line that needed it, and a hint where there is one. */
FG_NEW PyObject *fg_desc_explain(const fg_desc *desc, const fg_view *view);

/* The tree as text, each leaf with the user's line that asked for it (str()), and the exact form that parses back. */
FG_NEW PyObject *fg_desc_tree_str(const fg_desc *desc);
FG_NEW PyObject *fg_desc_to_text(const fg_desc *desc);
/* resolve: NULL or a callable(module_qualname: str) -> object. Identities that nothing resolves never match. */
fg_status fg_desc_from_text(PyObject *text, PyObject *resolve, fg_desc **out);
Py_ssize_t fg_desc_n_guards(const fg_desc *desc);
size_t fg_desc_nbytes(const fg_desc *desc);

/* Called once when something the description holds weakly dies: must only store to memory (it runs inside GC). */
void fg_desc_on_death(fg_desc *desc, void (*invalidate)(void *entry), void *entry);

#ifdef __cplusplus
}
#endif

#endif
