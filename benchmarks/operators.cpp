// Operators through the device kernels, the way eager calls them without a tape: the calls of
// operators.json at 1 and 2 threads. Beside each time stands a roof of the same run: the
// processor's peak of multiply-adds for products, otherwise a copy by as many threads that reads
// and writes as many bytes as the operator does, so that it meets the same caches.
//
//   operators [operators.json]      a name begins with the line's number: --benchmark_filter=^007/
//
// `best_ns` is the least of many short samples: what the code can do on a machine that others use.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>

#include "taper/benchmarks/gemm_peak.h"
#include "taper/benchmarks/operator_cases.h"
#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/threads.h"
#include "taper/runtime/platform/cpu.h"

using namespace taper;

namespace {

constexpr double sample_ns = 20000;  // shorter calls are timed several at a time

double nanoseconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

/// The least time of one call, and calls in one sample.
double best_of(int samples, const std::function<void()>& work, int& calls) {
  work();
  calls = static_cast<int>(std::max(1.0, sample_ns / nanoseconds(work)));
  double best = 1e30;
  for (int i = 0; i < samples; ++i)
    best = std::min(best, nanoseconds([&] {
                            for (int k = 0; k < calls; ++k) work();
                          }) / calls);
  return best;
}

/// Bytes a nanosecond, read and written, of a copy that touches `bytes` bytes.
double copy_rate(double bytes) {
  const size_t half = std::max<size_t>(static_cast<size_t>(bytes / 2), 64);
  using Buffer = std::unique_ptr<char, decltype(&std::free)>;
  const Buffer from(static_cast<char*>(std::malloc(half)), &std::free),
      to(static_cast<char*>(std::malloc(half)), &std::free);
  std::memset(from.get(), 1, half), std::memset(to.get(), 1, half);
  const index_t parts = half < (1 << 16) || !eager::threads() ? 1 : eager::threads()->count;
  const auto size = static_cast<index_t>(half);
  int calls;
  const double time = best_of(
      20,
      [&] {
        parallel_for(eager::threads(), parts, [&](index_t i) {
          const index_t begin = size * i / parts, end = size * (i + 1) / parts;
          std::memcpy(to.get() + begin, from.get() + begin, static_cast<size_t>(end - begin));
        });
        benchmark::ClobberMemory();
      },
      calls);
  return 2 * static_cast<double>(size) / time;
}

double peak_rate() {
  FmaLoop loop = fma_loop_portable;
#if TAPER_X86_LEVELS
  if (cpu_has(CpuLevel::avx2)) loop = fma_loop_avx2;
  if (cpu_has(CpuLevel::avx512)) loop = fma_loop_avx512;
#endif
  const int threads = eager::threads() ? eager::threads()->count : 1;
  constexpr index_t rounds = 20000;
  int calls;
  const double time = best_of(
      20,
      [&] {
        parallel_for(eager::threads(), threads,
                     [&](index_t) { benchmark::DoNotOptimize(loop.run(rounds)); });
      },
      calls);
  return 2.0 * rounds * static_cast<double>(loop.per_round) * threads / time;
}

void run(benchmark::State& state, const OperatorCases& cases, size_t index, int threads) {
  eager::set_threads(threads);
  eager::NoGrad guard;
  const OperatorCase c = cases.make(index);
  std::vector<eager::Tensor> results;
  try {
    results = c.run();
  } catch (const std::exception& e) {
    state.SkipWithError(e.what());
    return;
  }
  int calls;
  best_of(
      1, [&] { c.run(); }, calls);
  std::vector<double> times;
  for (auto _ : state) {
    const double time = nanoseconds([&] {
      for (int k = 0; k < calls; ++k) c.run();
    });
    state.SetIterationTime(time * 1e-9);
    times.push_back(time / calls);
  }
  std::sort(times.begin(), times.end());
  const double best = times.front(), flops = c.flops(results[0]), bytes = c.bytes(results);
  state.counters["best_ns"] = best;
  state.counters["median_ns"] = times[times.size() / 2];
  state.counters["ns_per_element"] = best / c.elements(results[0]);
  state.counters["flops"] = flops, state.counters["bytes"] = bytes;
  if (flops > 0) {
    state.counters["GFLOPS"] = flops / best;
    state.counters["share"] = flops / best / peak_rate();
  } else {
    state.counters["GBps"] = bytes / best;
    state.counters["share"] = bytes / best / copy_rate(bytes);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  benchmark::Initialize(&argc, argv);
  const OperatorCases cases(argc > 1 ? argv[1] : TAPER_OPERATOR_CASES);
  for (size_t i = 0; i < cases.count(); ++i)
    for (const int threads : {1, 2}) {
      const std::string number = std::to_string(1000 + i).substr(1);
      benchmark::RegisterBenchmark(
          (number + "/" + std::to_string(threads) + "/" + cases.name(i)).c_str(),
          [&cases, i, threads](benchmark::State& state) { run(state, cases, i, threads); })
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond);
    }
  benchmark::RunSpecifiedBenchmarks();
} catch (const std::exception& e) {
  std::cerr << "operators: " << e.what() << "\n";
  return 1;
}
