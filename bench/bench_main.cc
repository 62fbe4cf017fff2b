// The Google Benchmark harness around rows written in C: the engine's headers are C11 and are not for C++.
#include "bench/bench_rows.h"

#include <benchmark/benchmark.h>
#include <string>

namespace
{

constexpr size_t kBatch = 1000;

void RunLoop(benchmark::State &state, const fg_bench_row *row, fg_bench_loop loop)
{
    void *data = row->setup(row);
    if (data == nullptr) {
        state.SkipWithError("setup failed");
        return;
    }
    uint64_t sum = loop(data, kBatch);
    while (state.KeepRunningBatch(kBatch))
        sum += loop(data, kBatch);
    benchmark::DoNotOptimize(sum);
}

} // namespace

int main(int argc, char **argv)
{
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv) || fg_bench_start() != 0)
        return 1;
    for (const fg_bench_row *row = fg_bench_rows; row->name != nullptr; row++) {
        const auto add = [row](const char *suffix, fg_bench_loop loop) {
            if (loop == nullptr)
                return;
            const std::string name = std::string(row->name) + suffix;
            benchmark::RegisterBenchmark(name.c_str(), [row, loop](benchmark::State &state) { RunLoop(state, row, loop); });
        };
        add("", row->run);
        add("/loads", row->loads);
        add("/idle", row->idle);
    }
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
