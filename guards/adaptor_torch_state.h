/* Purpose:   torch's thread-local and global state, read fast enough for every call.
 * Model:     pointers into torch's thread-local objects are fetched once per thread and kept in a thread-local of ours; after that the state is
 *            a few loads. Where calibration failed, Python's getters are asked.
 * Invariants: the state of a thread under something that is not described by the fields (a dispatch mode, a functorch level, a function mode
 *            that is not a default device, autocast on a rare device) cannot be read: the answer is 0, never a wrong state.
 * Threading: the GIL is held; each thread sees its own state.
 * Ownership: the pointers live as long as their thread.
 */
#ifndef FG_GUARDS_ADAPTOR_TORCH_STATE_H
#define FG_GUARDS_ADAPTOR_TORCH_STATE_H

#include "guards/guard_tensor.h"
#include <string.h>

/* Initial-exec: a load without a call. 24 bytes, well inside what the loader keeps free for libraries that are loaded late. */
typedef struct fg_torch_thread {
    const uint64_t *keys;    /* {included, excluded}; NULL: this thread has not asked yet, or the state is read through Python */
    const uint8_t *autograd; /* the byte itself */
    const char *function;    /* torch's record of function modes */
} fg_torch_thread;
extern __attribute__((visibility("hidden"), tls_model("initial-exec"))) _Thread_local fg_torch_thread fg_torch_thread_now;

typedef struct fg_torch_state_where {
    const volatile uint8_t *default_dtype_at; /* the byte that the getter reads; NULL: ask it */
    int8_t (*default_dtype)(void);
    uint64_t keys_included, keys_excluded;   /* the words of an ordinary thread */
    uint64_t quick_included, quick_excluded; /* bits that may differ from those without asking anything else */
    uint16_t modes, disabled;                /* offsets in the function record: {begin, end} of the stack; the switch */
} fg_torch_state_where;
extern __attribute__((visibility("hidden"))) fg_torch_state_where fg_torch_state_at;

static inline int8_t fg_torch_default_dtype(void)
{
    return fg_torch_state_at.default_dtype_at != NULL ? (int8_t)*fg_torch_state_at.default_dtype_at : fg_torch_state_at.default_dtype();
}

/* The rare cases: first call on a thread, modes, autocast, torch not seen yet. */
__attribute__((visibility("hidden"))) int fg_torch_state_read_slow(fg_torch_state *state);

/* What fg_torch_state_read does, inline: 1 read, 0 not readable here. */
static inline int fg_torch_state_read_inline(fg_torch_state *state)
{
    const fg_torch_thread *thread = &fg_torch_thread_now;
    const fg_torch_state_where *at = &fg_torch_state_at;
    const uint64_t *keys = thread->keys;
    if (keys == NULL)
        return fg_torch_state_read_slow(state);
    uint64_t stack[2];
    memcpy(stack, thread->function + at->modes, sizeof stack);
    if (((keys[0] ^ at->keys_included) & ~at->quick_included) | ((keys[1] ^ at->keys_excluded) & ~at->quick_excluded) |
        (stack[0] ^ stack[1]))
        return fg_torch_state_read_slow(state);
    state->keys_included = keys[0];
    state->keys_excluded = keys[1];
    state->default_device = -1;
    state->autograd = *thread->autograd;
    state->function_mode_depth = 0;
    state->function_disabled = (uint8_t)thread->function[at->disabled];
    state->default_dtype = fg_torch_default_dtype();
    state->autocast_dtype[0] = state->autocast_dtype[1] = -1;
    state->present = 1;
    state->reserved = 0;
    return 1;
}

/* 1 if the thread's state is the recorded one. Field by field from torch's memory: going through a struct in memory would wait for narrow stores
 * to be read back as wide loads. */
static inline int fg_torch_state_matches(const fg_torch_state *want)
{
    const fg_torch_thread *thread = &fg_torch_thread_now;
    const fg_torch_state_where *at = &fg_torch_state_at;
    const uint64_t *keys = thread->keys;
    uint64_t stack[2];
    if (keys != NULL) {
        memcpy(stack, thread->function + at->modes, sizeof stack);
        if (!(((keys[0] ^ at->keys_included) & ~at->quick_included) | ((keys[1] ^ at->keys_excluded) & ~at->quick_excluded) |
              (stack[0] ^ stack[1])))
            return !((keys[0] ^ want->keys_included) | (keys[1] ^ want->keys_excluded) | (want->default_device ^ -1) |
                     (*thread->autograd ^ want->autograd) | want->function_mode_depth |
                     ((uint8_t)thread->function[at->disabled] ^ want->function_disabled) |
                     (fg_torch_default_dtype() ^ want->default_dtype) | (want->autocast_dtype[0] ^ -1) | (want->autocast_dtype[1] ^ -1) |
                     (want->present ^ 1));
    }
    fg_torch_state now;
    return fg_torch_state_read_slow(&now) && memcmp(&now, want, sizeof now) == 0;
}

#endif
