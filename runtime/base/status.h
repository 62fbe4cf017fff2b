/* Purpose:   the result codes of every fallible function, and the ownership and bug macros.
 * Model:     a function that can fail returns fg_status and gives its result through out-parameters.
 * Invariants: FG_ERR_PYTHON means a Python exception is set; no other code leaves one set.
 * Threading: none.
 * Ownership: FG_NEW (the caller owns the reference), FG_BORROWED (it does not), FG_STEALS (the callee takes it),
 *            FG_OWNED (this struct field holds a reference); they expand to nothing and are for the reader.
 */
#ifndef FG_BASE_STATUS_H
#define FG_BASE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fg_status {
#define FG_STATUS(NAME, TEXT) FG_##NAME,
#include "runtime/base/errors.def"
#undef FG_STATUS
} fg_status;

#define FG_NEW
#define FG_BORROWED
#define FG_STEALS
#define FG_OWNED

/* What nearly always is, or nearly never, where the compiler's own order of the branches was measured to cost. */
#define FG_LIKELY(x) __builtin_expect(!!(x), 1)
#define FG_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Leave the enclosing function through its `fail:` label. Needs a local `fg_status st`. */
#define FG_TRY(expr)                \
    do {                            \
        if ((st = (expr)) != FG_OK) \
            goto fail;              \
    } while (0)

/* A broken invariant of ours: prints the place, aborts in debug builds, and yields FG_ERR_BUG. */
fg_status fg_bug_at(const char *file, int line, const char *what);
#define FG_BUG(what) fg_bug_at(__FILE__, __LINE__, (what))

/* The text of a code, for messages; never NULL. */
const char *fg_status_text(fg_status st);

#ifdef __cplusplus
}
#endif

#endif
