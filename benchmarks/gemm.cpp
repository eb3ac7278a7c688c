// The f32 matrix product beside the processor's peak: a loop of independent multiply-adds in
// registers, run right before each product on as many threads. On a machine that does other work as
// well, compare the medians.
#include "taper/kernels/optimized/gemm.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "taper/exporter/roofline/loops.h"
#include "taper/runtime/platform/cpu.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"

using namespace taper;
using namespace taper::optimized;

namespace {

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Level {
  CpuLevel level;
  const char* name;
  const Microkernels& kernels;
  const roofline::Loops& loops;
};

using Buffer = std::unique_ptr<float, decltype(&std::free)>;
Buffer buffer(size_t bytes) {
  bytes = (bytes + 127) / 64 * 64;
  Buffer b(static_cast<float*>(std::aligned_alloc(64, bytes)), &std::free);
  for (size_t i = 0; i < bytes / sizeof(float); ++i)
    b.get()[i] = static_cast<float>(i % 61) / 61 - 0.5f;
  return b;
}

void gemm(benchmark::State& state, const Level& level, bool transposed) {
  const int threads = static_cast<int>(state.range(0));
  Gemm g;
  g.m = state.range(1), g.k = state.range(2), g.n = state.range(3);
  const auto bytes = [](index_t count) { return static_cast<size_t>(count) * sizeof(float); };
  const Buffer a = buffer(bytes(g.m * g.k)), b = buffer(bytes(g.k * g.n)),
               c = buffer(bytes(g.m * g.n));
  g.a = a.get(), g.a_row = g.k, g.b = b.get(), g.c = c.get(), g.c_row = g.n;
  g.b_row = transposed ? 1 : g.n, g.b_column = transposed ? g.k : 1;
  const GemmPlan plan = plan_gemm(level.kernels, 1, g.m, g.n, g.k, threads);
  const Buffer scratch = buffer(plan.scratch_bytes());
  const ThreadPool pool(threads);

  constexpr index_t rounds = 20000;
  const double peak_work = 2.0 * rounds * level.loops.multiply_adds_per_round * threads,
               work = 2.0 * g.m * g.k * g.n;
  std::vector<double> rate, peak;
  for (auto _ : state) {
    peak.push_back(peak_work / seconds([&] {
                     parallel_for(pool.threads(), threads, [&](index_t) {
                       benchmark::DoNotOptimize(level.loops.multiply_add(rounds));
                     });
                   }));
    const double time =
        seconds([&] { run_gemm(level.kernels, plan, g, scratch.get(), pool.threads()); });
    state.SetIterationTime(time);
    rate.push_back(work / time);
  }
  std::sort(rate.begin(), rate.end()), std::sort(peak.begin(), peak.end());
  const double median = rate[rate.size() / 2], median_peak = peak[peak.size() / 2];
  state.counters["best_GFLOPS"] = rate.back() / 1e9;
  state.counters["best_peak"] = peak.back() / 1e9;
  state.counters["GFLOPS"] = median / 1e9;
  state.counters["peak"] = median_peak / 1e9;
  state.counters["share"] = median / median_peak;
  state.counters["best_share"] = rate.back() / peak.back();
}

}  // namespace

int main(int argc, char** argv) {
  const Level levels[] = {
#if TAPER_X86_LEVELS
    {CpuLevel::avx512, "avx512", microkernels_avx512, roofline::loops_avx512},
    {CpuLevel::avx2, "avx2", microkernels_avx2, roofline::loops_avx2},
#endif
    {CpuLevel::portable, "portable", microkernels_portable, roofline::loops_portable},
  };
  for (const Level& level : levels) {
    if (!cpu_features().has(features_of(level.level))) continue;
    for (bool transposed : {false, true}) {
      const std::string name =
          std::string("gemm/") + level.name + (transposed ? "/b_transposed" : "");
      benchmark::RegisterBenchmark(name.c_str(), gemm, level, transposed)
          ->ArgNames({"threads", "m", "k", "n"})
          ->Args({1, 512, 2048, 2048})
          ->Args({2, 512, 2048, 2048})
          ->Args({1, 1, 2048, 2048})
          ->Args({1, 64, 400, 120})
          ->Args({1, 1024, 128, 384})
          ->Args({1, 1024, 512, 128})
          ->Args({1, 64, 32, 64})
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
