/* The harness that counts instructions: run under callgrind, with instrumentation off at the start. Each row is set up and run until it is
 * steady; then the loops of all rows run with counting on, and each leaves a part in callgrind's output, named by its row.
 * tools/counts.py runs the program and reads the parts. */
#include "bench/bench_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/callgrind.h>

enum { WARM = 512, COUNTED = 128 };

static volatile uint64_t sink;

static void count(const char *name, const char *what, fg_bench_loop loop, void *state)
{
    char label[128];
    if (!loop)
        return;
    snprintf(label, sizeof label, "%s %s %d", name, what, COUNTED);
    CALLGRIND_ZERO_STATS;
    sink += loop(state, COUNTED);
    CALLGRIND_DUMP_STATS_AT(label);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--about") == 0) {
        printf("%s\n", FG_BENCH_BUILD " " __VERSION__);
        return 0;
    }
    if (!RUNNING_ON_VALGRIND) {
        fprintf(stderr, "this program counts under valgrind only: ./dev counts\n");
        return 2;
    }
    if (fg_bench_start() != 0)
        return 1;
    size_t n = 0;
    while (fg_bench_rows[n].name)
        n++;
    void **states = calloc(n + 1, sizeof *states);
    if (!states)
        return 1;
    for (size_t i = 0; i < n; i++) {
        const fg_bench_row *row = &fg_bench_rows[i];
        if (!(states[i] = row->setup(row)))
            return 1;
        sink += row->run(states[i], WARM);
    }
    CALLGRIND_START_INSTRUMENTATION;
    for (size_t i = 0; i < n; i++) {
        const fg_bench_row *row = &fg_bench_rows[i];
        count(row->name, "run", row->run, states[i]);
        count(row->name, "loads", row->loads, states[i]);
        count(row->name, "idle", row->idle, states[i]);
    }
    CALLGRIND_STOP_INSTRUMENTATION;
    return 0;
}
