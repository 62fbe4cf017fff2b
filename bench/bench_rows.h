/* Purpose:   what a benchmark written in C gives to its two harnesses: bench_main.cc (time) and count_main.c (instructions).
 * Model:     a program defines fg_bench_rows, ended by a row without a name. `loads` is the lower bound of its row: the same memory read
 *            and compared by hand, with no engine around it. `idle` is what both do beside that (a change to the objects between two
 *            evaluations); counts are given without it.
 * Invariants: run, loads and idle do their operation n times and give a value that depends on each, so that nothing is optimised away.
 * Threading: one thread.
 * Ownership: setup gives the state of a row, or NULL after printing why; it lives until the program ends.
 */
#ifndef FG_BENCH_BENCH_ROWS_H
#define FG_BENCH_BENCH_ROWS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t (*fg_bench_loop)(void *state, size_t n);

typedef struct fg_bench_row {
    const char *name;
    void *(*setup)(const struct fg_bench_row *row);
    fg_bench_loop run;
    fg_bench_loop loads;     /* or NULL */
    fg_bench_loop idle;      /* or NULL */
    int64_t size, option;    /* for setup: how many, and which variant */
    const char *text, *args; /* for setup */
} fg_bench_row;

extern const fg_bench_row fg_bench_rows[];

/* Called once before the first setup; 0 is success. */
int fg_bench_start(void);

#ifdef __cplusplus
}
#endif

#endif
