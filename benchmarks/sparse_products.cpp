// y = x wᵀ with f32 weights of which two of four are zero: a tile that skips the zeros, beside the
// products of Taper with all weights in f32, in 8 and in 4 bits. One core. docs/quantization.md
// ("Zeros") has the figures. Needs AVX-512.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "taper/benchmarks/kernel_calls.h"
#include "taper/kernels/optimized/optimized.h"
#include "taper/kernels/quantized/panels.h"
#include "taper/kernels/quantized/quantized.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

using namespace taper;
using benchmarks::buffer, benchmarks::Buffer, benchmarks::record, benchmarks::seconds,
    benchmarks::slot;

namespace {

constexpr index_t width = 16;  // columns of y that are computed together
constexpr index_t most_rows = 8;
constexpr size_t beyond_caches = size_t{128} << 20;

/// Of 16 columns and four neighbours along the depth.
struct Group {
  float weights[2][width];  ///< those that are not zero
  uint8_t places[width];    ///< where both lie among the four, in two halves of a byte
};

constexpr int groups_ahead = 24;  // the processor's own prefetch is late
// GCC 12 warns of an uninitialized value in intrinsics without a mask.
constexpr __mmask16 every = 0xffff;

template <int rows>
__attribute__((target("avx512f,avx512vl"))) void multiply(const Group* w, const float* x,
                                                          index_t depth, float* y,
                                                          index_t columns) {
  __m512 sums[rows];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) sums[r] = _mm512_setzero_ps();
  for (index_t k = 0; k < depth; k += 4, ++w) {
    for (size_t line = 0; line < sizeof(Group); line += 64)
      __builtin_prefetch(reinterpret_cast<const std::byte*>(w + groups_ahead) + line);
    const __m128i both = _mm_loadu_si128(reinterpret_cast<const __m128i*>(w->places));
    const __m512i first = _mm512_maskz_cvtepu8_epi32(every, both),
                  second = _mm512_maskz_srli_epi32(every, first, 4);
    const __m512 one = _mm512_loadu_ps(w->weights[0]), other = _mm512_loadu_ps(w->weights[1]);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const __m512 four = _mm512_maskz_broadcast_f32x4(every, _mm_loadu_ps(x + r * depth + k));
      sums[r] = _mm512_fmadd_ps(_mm512_maskz_permutevar_ps(every, four, first), one, sums[r]);
      sums[r] = _mm512_fmadd_ps(_mm512_maskz_permutevar_ps(every, four, second), other, sums[r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) _mm512_storeu_ps(y + r * columns, sums[r]);
}
void multiply_sparse(const Group* w, const float* x, index_t rows, index_t n, float* y) {
  for (index_t c = 0; c < n; c += width, w += n / 4)
    for (index_t r = 0; r < rows; r += most_rows) {
      const auto tile = rows == 1 ? multiply<1> : rows == 4 ? multiply<4> : multiply<most_rows>;
      tile(w, x + r * n, n, y + r * n + c, n);
    }
}

/// 16 columns of random weights. `dense` is a part of Layout::panels_of_first.
void fill(float (&dense)[4][width], Group& sparse, std::mt19937& random) {
  std::memset(dense, 0, sizeof dense);
  for (index_t c = 0; c < width; ++c) {
    const auto first = static_cast<uint8_t>(random() % 3),
               second = static_cast<uint8_t>(first + 1 + random() % (3u - first));
    sparse.weights[0][c] = static_cast<float>(random() % 100) / 100;
    sparse.weights[1][c] = 0.5f - sparse.weights[0][c];
    dense[first][c] = sparse.weights[0][c], dense[second][c] = sparse.weights[1][c];
    sparse.places[c] = static_cast<uint8_t>(first | second << 4);
  }
}

/// A product of Taper. Calls take turns with copies of the weight, so that it lies in memory.
class Product {
 public:
  Product(const Kernel& kernel, Layout layout, const TensorRef& x, const TensorRef& y, index_t n)
      : kernel_(kernel),
        bytes_(layout == Layout::panels_of_first
                   ? static_cast<size_t>(n * n) * sizeof(float)
                   : static_cast<size_t>(n / width * quantized::panel_bytes(layout, n))),
        copies_(beyond_caches / bytes_ + 2),
        weights_(buffer(bytes_ * copies_)),
        sizes_(Shape::dense(std::vector<index_t>{n, n})),
        weight_{weights_.get(), &sizes_, DType::f32, layout},
        slots_{slot(&x), slot(&weight_), slot(nullptr), slot(&y)} {
    if (kernel_.prepare(context_, plan_, slots_) != Error::ok) std::abort();
    scratch_ = buffer(context_.scratch_bytes), context_.scratch = scratch_.get();
  }
  void run() {
    weight_.data = weights_.get() + bytes_ * (calls_++ % copies_);
    if (kernel_.run(context_, plan_, slots_) != Error::ok) std::abort();
  }
  size_t copies() const { return copies_; }
  float* weights(size_t copy) { return reinterpret_cast<float*>(weights_.get() + bytes_ * copy); }

 private:
  const Kernel& kernel_;
  size_t bytes_, copies_, calls_ = 0;
  Buffer weights_, scratch_{nullptr, &std::free};
  Shape sizes_;
  TensorRef weight_;
  Slot slots_[4];
  Context context_;
  alignas(8) std::byte plan_[max_plan_bytes];
};

void product(benchmark::State& state) {
  const index_t rows = state.range(0), n = state.range(1), groups = n / width * n / 4;
  const Shape shape = Shape::dense(std::vector<index_t>{rows, n});
  const auto bytes = static_cast<size_t>(rows * n) * sizeof(float);
  const Buffer x = buffer(bytes), y = buffer(bytes), z = buffer(bytes);
  const TensorRef x_ref{x.get(), &shape, DType::f32}, y_ref{y.get(), &shape, DType::f32},
      z_ref{z.get(), &shape, DType::f32};
  Product dense(record(optimized::all, ops::linear), Layout::panels_of_first, x_ref, y_ref, n),
      eight(record(quantized::all, ops::taper_block_linear_q8), Layout::q8_0_panels, x_ref, z_ref,
            n),
      four(record(quantized::all, ops::taper_block_linear_q8), Layout::q4_0_panels, x_ref, z_ref,
           n);
  std::vector<Group> sparse(static_cast<size_t>(groups) * dense.copies());
  std::mt19937 random(1);
  for (size_t copy = 0; copy < dense.copies(); ++copy)
    for (index_t g = 0; g < groups; ++g)
      fill(reinterpret_cast<float(*)[4][width]>(dense.weights(copy))[g],
           sparse[copy * static_cast<size_t>(groups) + static_cast<size_t>(g)], random);
  auto* const from = reinterpret_cast<float*>(x.get());
  for (index_t i = 0; i < rows * n; ++i) from[i] = static_cast<float>(random() % 200) / 100 - 1;
  std::vector<float> of_sparse(static_cast<size_t>(rows * n));

  double best[4] = {1e9, 1e9, 1e9, 1e9};
  const auto time = [&](int i, const auto& run) {
    const auto start = std::chrono::steady_clock::now();
    run();
    best[i] = std::min(best[i], seconds(start));
  };
  size_t copy = 0;
  for (auto _ : state) {
    time(0, [&] {
      multiply_sparse(&sparse[copy++ % dense.copies() * static_cast<size_t>(groups)], from, rows, n,
                      of_sparse.data());
    });
    time(1, [&] { dense.run(); });
    const auto* got = reinterpret_cast<const float*>(y.get());
    for (size_t i = 0; i < of_sparse.size(); ++i)
      if (std::abs(got[i] - of_sparse[i]) > 1e-2f)
        return state.SkipWithError("the products differ");
    time(2, [&] { eight.run(); });
    time(3, [&] { four.run(); });
  }
  const char* const names[] = {"sparse_us", "f32_us", "q8_0_us", "q4_0_us"};
  for (int i = 0; i < 4; ++i) state.counters[names[i]] = best[i] * 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  if (!__builtin_cpu_supports("avx512f")) return std::puts("this machine has no AVX-512"), 0;
  auto* benchmark = benchmark::RegisterBenchmark("product", product);
  benchmark->ArgNames({"rows", "n"})->Unit(benchmark::kMicrosecond);
  for (const std::vector<int64_t>& sizes :
       std::vector<std::vector<int64_t>>{{1, 4096}, {4, 4096}, {8, 2048}, {96, 2048}})
    benchmark->Args(sizes);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

#else
int main() { return std::puts("it needs AVX-512"), 0; }
#endif
