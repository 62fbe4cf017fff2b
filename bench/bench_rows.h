/* Purpose:   what a benchmark written in C gives to the harness, which is C++.
 * Model:     a program defines fg_bench_rows, ended by a row without a name. A row whose name ends in "/loads" is the lower bound of the
 *            row before it: the same memory read and compared, with no engine around it.
 * Invariants: run does its operation n times and gives a value that depends on each, so that nothing is optimised away.
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

typedef struct fg_bench_row {
    const char *name;
    void *(*setup)(int64_t arg);
    uint64_t (*run)(void *state, size_t n);
    int64_t arg;
} fg_bench_row;

extern const fg_bench_row fg_bench_rows[];

/* Called once before the first setup; 0 is success. */
int fg_bench_start(void);

#ifdef __cplusplus
}
#endif

#endif
