/* Purpose:   development traces and checks that cost nothing in a release build.
 * Model:     builds with FRAMEGATE_DEBUG defined print a line per FG_TRACE of each layer named in the environment variable
 *            FRAMEGATE_DEBUG_TRACE ("cache,hook" or "all"); other builds compile FG_TRACE to nothing but still check its format.
 * Invariants: a trace never changes behaviour: no allocation, errno kept, no Python.
 * Threading: one write per line.
 * Ownership: none.
 */
#ifndef FG_BASE_LOG_H
#define FG_BASE_LOG_H

#include "runtime/base/status.h"
#include <stddef.h>

typedef enum fg_layer {
#define FG_LAYER(NAME, TEXT) FG_LAYER_##NAME,
#include "runtime/base/layers.def"
#undef FG_LAYER
    FG_N_LAYERS
} fg_layer;

int fg_log_is_on(fg_layer layer);
void fg_log_write(fg_layer layer, const char *func, const char *format, ...) __attribute__((format(printf, 3, 4)));

#ifdef FRAMEGATE_DEBUG
#define FG_DEBUG_ON 1
#else
#define FG_DEBUG_ON 0
#endif

/* FG_TRACE(CACHE, "published %p", p) */
#define FG_TRACE(LAYER, ...)                                       \
    do {                                                           \
        if (FG_DEBUG_ON && fg_log_is_on(FG_LAYER_##LAYER))         \
            fg_log_write(FG_LAYER_##LAYER, __func__, __VA_ARGS__); \
    } while (0)

/* A check at function entry, in debug builds only. */
#define FG_ASSERT(cond)             \
    do {                            \
        if (FG_DEBUG_ON && !(cond)) \
            (void)FG_BUG(#cond);    \
    } while (0)

/* The pointer itself, reported where it is used if it is NULL in a debug build. */
#define FG_CHECKED(pointer) ((void)(FG_DEBUG_ON && (pointer) == NULL && FG_BUG(#pointer " is NULL")), (pointer))

#endif
