// How long a memory plan takes, by the number of buffers. Also shows its peak over the lower bound.
//
//   plan_time --benchmark_filter=cat
#include <benchmark/benchmark.h>

#include <random>

#include "taper/exporter/emit/memory_plan.h"

namespace taper::emit {
namespace {

using Buffers = std::vector<PlannedBuffer>;

int64_t random_bytes(std::mt19937& random) {
  return 64 * (1 + static_cast<int64_t>(random() % 64));
}

/// All results wait for one `cat`.
Buffers cat(int count) {
  std::mt19937 random(1);
  Buffers buffers;
  int64_t all = 0;
  for (int i = 0; i < count; ++i) {
    const int64_t bytes = random_bytes(random);
    all += bytes;
    buffers.push_back({bytes, i, count});
  }
  buffers.push_back({all, count, count + 1});
  return buffers;
}

/// Activations wait for the backward pass, which has temporaries of its own.
Buffers training(int count) {
  std::mt19937 random(1);
  Buffers buffers;
  for (int i = 0; i < count / 2; ++i) {
    const int64_t bytes = random_bytes(random);
    buffers.push_back({bytes, i, count - i});
    buffers.push_back({bytes, count - i, count - i + 1 + static_cast<int>(random() % 2)});
  }
  return buffers;
}

/// Each result is read soon.
Buffers inference(int count) {
  std::mt19937 random(1);
  Buffers buffers;
  for (int i = 0; i < count; ++i)
    buffers.push_back({random_bytes(random), i, i + 1 + static_cast<int>(random() % 6)});
  return buffers;
}

void plan(benchmark::State& state, Buffers (*make)(int)) {
  const Buffers buffers = make(static_cast<int>(state.range(0)));
  MemoryPlan plan;
  for (auto _ : state) plan = plan_memory(buffers);
  state.SetComplexityN(state.range(0));
  state.counters["over_bound"] =
      static_cast<double>(plan.peak_bytes) / static_cast<double>(plan.lower_bound_bytes);
}

constexpr int fewest = 1000, most = 64000;
BENCHMARK_CAPTURE(plan, cat, cat)
    ->RangeMultiplier(4)
    ->Range(fewest, most)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oNLogN);
BENCHMARK_CAPTURE(plan, training, training)
    ->RangeMultiplier(4)
    ->Range(fewest, most)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oNLogN);
BENCHMARK_CAPTURE(plan, inference, inference)
    ->RangeMultiplier(4)
    ->Range(fewest, most)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oNLogN);

}  // namespace
}  // namespace taper::emit

BENCHMARK_MAIN();
