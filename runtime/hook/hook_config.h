/* Purpose:   process-wide switches and counters of the hook layer.
 * Model:     plain variables; hot code tests fg_hook.plain once for everything that makes all gates run plain.
 * Invariants: fg_hook.plain != 0 exactly if the stance is force_eager or the interpreter is going away.
 * Threading: the GIL is held.
 * Ownership: none.
 */
#ifndef FG_HOOK_CONFIG_H
#define FG_HOOK_CONFIG_H

#include "guards/guard_desc.h"
#include <Python.h>
#include <stdint.h>

typedef enum fg_run_state {
#define FG_RUN_STATE(NAME, TEXT) FG_RUN_##NAME,
#include "runtime/hook/run_states.def"
#undef FG_RUN_STATE
    FG_N_RUN_STATES
} fg_run_state;

typedef enum fg_stance {
#define FG_STANCE(NAME, TEXT) FG_STANCE_##NAME,
#include "runtime/hook/stances.def"
#undef FG_STANCE
    FG_N_STANCES
} fg_stance;

typedef enum fg_counter {
#define FG_COUNTER(NAME, TEXT) FG_COUNT_##NAME,
#include "runtime/hook/counters.def"
#undef FG_COUNTER
    FG_N_COUNTERS
} fg_counter;

typedef enum fg_phase {
#define FG_PHASE(NAME, TEXT) FG_PHASE_##NAME,
#include "runtime/hook/phases.def"
#undef FG_PHASE
    FG_N_PHASES
} fg_phase;

typedef struct fg_hook_state {
    uint8_t plain;
    uint8_t stance;
    uint8_t finalizing;
    uint8_t compile_under_tracing;
    uint8_t wait_for_compile;             /* a miss waits for another thread's compile of the same site */
    double wait_for_compile_limit;        /* seconds */
    uint8_t strict;                       /* a failed self-check raises InternalError */
    uint32_t fork_generation;             /* starts at 1; another one in each fork child */
    uint32_t cache_size;                  /* default of new sites */
    uint32_t recompile_limit;             /* default of new gates */
    uint64_t counters[FG_N_COUNTERS];     /* HITS: of entries that are gone; living ones count their own */
    uint64_t refused_by[FG_N_GUARDS + 1]; /* REFUSALS by the kind of the guard that refused; last: those that nobody asked why */
    double seconds[FG_N_PHASES];
} fg_hook_state;

extern fg_hook_state fg_hook;

#define FG_TIME(NAME, n) (fg_hook.seconds[FG_PHASE_##NAME] += (n))
#define FG_COUNT(NAME, n) (fg_hook.counters[FG_COUNT_##NAME] += (uint64_t)(n))

/* Read cache_size, recompile_limit, strict_errors, compile_under_tracing and those of waiting from the module framegate.config, if it is there. Called where something is about
 * to be compiled or is traced, never on a hit. Keeps a pending exception, sets none. */
void fg_hook_config_refresh(void);

void fg_hook_stance_set(fg_stance stance);
void fg_hook_finalizing_set(void);
/* Count fork children from now on, once per process. */
fg_status fg_hook_fork_watch(void);

const char *fg_stance_text(int stance);
const char *fg_run_state_text(int state);
/* -1: no such text. */
int fg_stance_parse(const char *text);
int fg_run_state_parse(const char *text);
const char *fg_counter_text(int counter);
const char *fg_phase_text(int phase);

/* Raise framegate.exc.<name> with a formatted message. Always returns FG_ERR_PYTHON. */
fg_status fg_hook_raise(const char *name, const char *format, ...);

#endif
