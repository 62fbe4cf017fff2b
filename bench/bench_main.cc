// The Google Benchmark harness around rows written in C: the engine's headers are C11 and are not for C++. Each row is timed with its memory in the caches
// and, where it is small enough to be made many times over, with memory that other copies of it have pushed out of them (/cold). At the end every row
// stands beside its lower bound.
#include "bench/bench_rows.h"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace
{

constexpr size_t kBatch = 1000;
constexpr size_t kCopies = 4096, kLargest = 16; // copies of a row of size 1; rows that are larger have no cold memory of their own

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

// The copies of a row, in an order that no prefetcher knows. They live as long as the program, like all states.
const std::vector<void *> &Copies(const fg_bench_row *row)
{
    static std::map<const fg_bench_row *, std::vector<void *>> all;
    std::vector<void *> &copies = all[row];
    const size_t n = row->text == nullptr ? kCopies / static_cast<size_t>(row->size) : kCopies;
    while (copies.size() < n) {
        void *data = row->setup(row);
        if (data == nullptr)
            return copies;
        row->run(data, 4); // so that what is remembered is remembered
        copies.push_back(data);
    }
    std::shuffle(copies.begin(), copies.end(), std::mt19937(1));
    return copies;
}

void RunCold(benchmark::State &state, const fg_bench_row *row, fg_bench_loop loop)
{
    const std::vector<void *> &copies = Copies(row);
    if (copies.empty()) {
        state.SkipWithError("setup failed");
        return;
    }
    uint64_t sum = 0;
    while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(copies.size()))) {
        for (void *data : copies)
            sum += loop(data, 1);
    }
    benchmark::DoNotOptimize(sum);
}

bool HasCold(const fg_bench_row *row)
{
    return row->idle == nullptr && (row->text != nullptr || (row->size > 0 && static_cast<size_t>(row->size) <= kLargest));
}

// Prints as usual, and remembers the times for the table of ratios.
class Reporter : public benchmark::ConsoleReporter
{
  public:
    void ReportRuns(const std::vector<Run> &runs) override
    {
        for (const Run &run : runs) {
            if (run.run_type == Run::RT_Iteration && run.iterations > 0)
                times_[run.benchmark_name()] = run.GetAdjustedRealTime();
        }
        ConsoleReporter::ReportRuns(runs);
    }

    void PrintRatios() const
    {
        std::printf("\n%-44s %10s %10s %8s\n", "row", "ns", "loads, ns", "ratio");
        for (const fg_bench_row *row = fg_bench_rows; row->name != nullptr; row++) {
            for (const char *memory : {"", "/cold"}) {
                const std::string name = std::string(row->name) + memory;
                const auto run = times_.find(name), loads = times_.find(name + "/loads"), idle = times_.find(name + "/idle");
                if (run == times_.end() || loads == times_.end())
                    continue;
                const double rest = idle != times_.end() ? idle->second : 0, bound = loads->second - rest;
                std::printf("%-44s %10.1f %10.1f %8.1f\n", name.c_str(), run->second - rest, bound, (run->second - rest) / bound);
            }
        }
    }

  private:
    std::map<std::string, double> times_;
};

} // namespace

int main(int argc, char **argv)
{
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv) || fg_bench_start() != 0)
        return 1;
    for (const fg_bench_row *row = fg_bench_rows; row->name != nullptr; row++) {
        const auto add = [row](const char *suffix, fg_bench_loop loop, auto body) {
            if (loop == nullptr)
                return;
            const std::string name = std::string(row->name) + suffix;
            benchmark::RegisterBenchmark(name.c_str(), [row, loop, body](benchmark::State &state) { body(state, row, loop); });
        };
        add("", row->run, RunLoop);
        add("/loads", row->loads, RunLoop);
        add("/idle", row->idle, RunLoop);
        if (HasCold(row)) {
            add("/cold", row->run, RunCold);
            add("/cold/loads", row->loads, RunCold);
        }
    }
    Reporter reporter;
    benchmark::RunSpecifiedBenchmarks(&reporter);
    reporter.PrintRatios();
    return 0;
}
