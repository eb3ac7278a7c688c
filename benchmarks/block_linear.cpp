// linear with weights in blocks, beside the bandwidth of reading memory, the peak of integers and
// the f32 product of the same sizes: taper::block_linear_q8, which rounds its input, and
// taper::block_linear. The weights of a call are not in the caches: calls take turns with copies
// that are larger together. On a machine that does other work as well, compare the best figures.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "taper/benchmarks/byte_peaks.h"
#include "taper/benchmarks/kernel_calls.h"
#include "taper/exporter/roofline/roofline.h"
#include "taper/kernels/optimized/optimized.h"
#include "taper/kernels/quantized/panels.h"
#include "taper/kernels/quantized/quantized.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"

using namespace taper;
using benchmarks::buffer, benchmarks::Buffer, benchmarks::record, benchmarks::seconds,
    benchmarks::slot;

namespace {

constexpr size_t beyond_caches = size_t{128} << 20;

void product(benchmark::State& state, const Kernel& kernel, Layout layout) {
  const int threads = static_cast<int>(state.range(0));
  const index_t rows = state.range(1), columns = state.range(2), depth = state.range(3);
  const index_t x_sizes[] = {rows, depth}, w_sizes[] = {columns, depth},
                y_sizes[] = {rows, columns};
  const Shape x_shape = Shape::dense(x_sizes), w_shape = Shape::dense(w_sizes),
              y_shape = Shape::dense(y_sizes);
  const auto floats = [](const Shape& s) { return static_cast<size_t>(s.numel()) * sizeof(float); };
  const size_t bytes =
      is_in_block_panels(layout)
          ? static_cast<size_t>((columns + 15) / 16 * quantized::panel_bytes(layout, depth))
          : stored_bytes(floats(w_shape), layout);
  const size_t copies = beyond_caches / bytes + 2;
  const Buffer x = buffer(floats(x_shape)), y = buffer(floats(y_shape)), w = buffer(bytes * copies);
  std::mt19937 engine(1);
  std::uniform_real_distribution<float> distribution(-1, 1);
  for (index_t i = 0; i < x_shape.numel(); ++i)
    reinterpret_cast<float*>(x.get())[i] = distribution(engine);

  const ThreadPool pool(threads);
  TensorRef x_ref{x.get(), &x_shape, DType::f32}, y_ref{y.get(), &y_shape, DType::f32},
      w_ref{w.get(), &w_shape, DType::f32, layout};
  const Slot slots[] = {slot(&x_ref), slot(&w_ref), slot(nullptr), slot(&y_ref)};
  Context context;
  context.threads = pool.threads();
  alignas(8) std::byte plan[max_plan_bytes];
  if (kernel.prepare(context, plan, slots) != Error::ok) return state.SkipWithError("prepare");
  const Buffer scratch = buffer(context.scratch_bytes);
  context.scratch = scratch.get();

  const benchmarks::BytePeak peak = benchmarks::byte_peak_of(kernel.name);
  constexpr int64_t rounds = 2000;
  size_t copy = 0;
  double best = 1e9, best_peak = 1e9;
  for (auto _ : state) {
    w_ref.data = w.get() + bytes * (copy++ % copies);
    const auto start = std::chrono::steady_clock::now();
    if (kernel.run(context, plan, slots) != Error::ok) return state.SkipWithError("run");
    const double time = seconds(start);
    state.SetIterationTime(time);
    best = std::min(best, time);
    if (peak.loop == nullptr || rows < 64) continue;
    const auto peak_start = std::chrono::steady_clock::now();
    parallel_for(pool.threads(), threads, [&](index_t) { peak.loop(rounds); });
    best_peak = std::min(best_peak, seconds(peak_start));
  }
  static const double read[2] = {
      roofline::measure_peaks(nullptr).bandwidths.back().read_gbps,
      roofline::measure_peaks(ThreadPool(2).threads()).bandwidths.back().read_gbps};
  const double operations = 2.0 * static_cast<double>(rows * columns * depth);
  state.counters["best_us"] = best * 1e6;
  state.counters["GOPS"] = operations / best * 1e-9;
  state.counters["GB/s"] = static_cast<double>(bytes) / best * 1e-9;
  if (best_peak < 1e9) {
    const double most = peak.operations * rounds * threads / best_peak * 1e-9;
    state.counters["peak_GOPS"] = most;
    state.counters["share"] = state.counters["GOPS"] / most;
  }
  if (threads <= 2) state.counters["read_GB/s"] = read[threads - 1];
}

}  // namespace

int main(int argc, char** argv) {
  struct Format {
    const char* name;
    Layout layout;
  };
  const Format formats[] = {{"q4_0", Layout::q4_0_panels}, {"q4_1", Layout::q4_1_panels},
                            {"q8_0", Layout::q8_0_panels}, {"q4_k", Layout::q4_k_panels},
                            {"q6_k", Layout::q6_k_panels}, {"mxfp4", Layout::mxfp4},
                            {"q5_k", Layout::q5_k},        {"q3_k", Layout::q3_k}};
  const Format float_inputs[] = {{"q4_0", Layout::q4_0_panels},
                                 {"nf4", Layout::nf4},
                                 {"mxfp4", Layout::mxfp4},
                                 {"mxfp6_e2m3", Layout::mxfp6_e2m3},
                                 {"mxfp8_e4m3", Layout::mxfp8_e4m3}};
  const Kernel &q8 = record(quantized::all, ops::taper_block_linear_q8),
               &floats = record(quantized::all, ops::taper_block_linear),
               &f32 = record(optimized::all, ops::linear);
  const auto add = [](const std::string& name, const Kernel& kernel, Layout layout) {
    auto* b = benchmark::RegisterBenchmark(name.c_str(), product, kernel, layout);
    b->ArgNames({"threads", "rows", "columns", "depth"})->UseManualTime();
    for (const int64_t threads : {1, 2})
      for (const int64_t rows : {1, 2, 4, 8, 64, 512}) b->Args({threads, rows, 2048, 2048});
  };
  for (const Format& f : formats) add(std::string(f.name) + "/" + q8.name, q8, f.layout);
  for (const Format& f : float_inputs)
    add(std::string(f.name) + "/" + floats.name, floats, f.layout);
  add(std::string("f32/") + f32.name, f32, Layout::panels_of_first);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
