// The Google Benchmark harness around rows written in C: the engine's headers are C11 and are not for C++.
#include "bench/bench_rows.h"

#include <benchmark/benchmark.h>

namespace
{

constexpr size_t kBatch = 1000;

void RunRow(benchmark::State &state, const fg_bench_row *row)
{
    void *data = row->setup(row->arg);
    if (data == nullptr) {
        state.SkipWithError("setup failed");
        return;
    }
    uint64_t sum = row->run(data, kBatch);
    while (state.KeepRunningBatch(kBatch))
        sum += row->run(data, kBatch);
    benchmark::DoNotOptimize(sum);
}

} // namespace

int main(int argc, char **argv)
{
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv) || fg_bench_start() != 0)
        return 1;
    for (const fg_bench_row *row = fg_bench_rows; row->name != nullptr; row++)
        benchmark::RegisterBenchmark(row->name, [row](benchmark::State &state) { RunRow(state, row); });
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
