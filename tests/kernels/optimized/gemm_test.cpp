#include "taper/kernels/optimized/gemm.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "taper/runtime/platform/cpu.h"
#include "taper/tests/kernels/optimized/kernel_call.h"

namespace taper::optimized {
namespace {

using tests::Array;

std::vector<const Microkernels*> levels() {
  std::vector<const Microkernels*> found{&microkernels_portable};
#if TAPER_X86_LEVELS
  if (cpu_features().has(CpuFeature::avx2)) found.push_back(&microkernels_avx2);
  if (cpu_features().has(CpuFeature::avx512)) found.push_back(&microkernels_avx512);
#endif
  return found;
}

void run(const Microkernels& kernels, const Gemm& gemm, int threads = 1) {
  const GemmPlan plan = plan_gemm(kernels, gemm.batch, gemm.m, gemm.n, gemm.k, threads);
  const std::unique_ptr<void, decltype(&std::free)> scratch(
      std::aligned_alloc(64, (plan.scratch_bytes() + 63) / 64 * 64 + 64), &std::free);
  run_gemm(kernels, plan, gemm, scratch.get(), nullptr);
}

TEST(gemm, adds_after_the_sum) {
  const index_t m = 25, n = 70, k = 300;
  const Array a = Array::random({m, k}, 1), b = Array::random({k, n}, 2),
              bias = Array::random({m}, 3);
  for (const Microkernels* kernels : levels()) {
    Array plain({m, n}), fused({m, n});
    Gemm g;
    g.m = m, g.n = n, g.k = k, g.a = a.data(), g.a_row = k, g.b = b.data(), g.b_row = n,
    g.c = plain.data(), g.c_row = n;
    run(*kernels, g);
    g.c = fused.data(), g.addend = bias.data(), g.addend_row = 1;
    run(*kernels, g);
    for (index_t i = 0; i < m * n; ++i) EXPECT_EQ(fused[i], plain[i] + bias[i / n]);
  }
}

TEST(gemm, has_the_same_bits_at_both_levels_with_fused_multiply_add) {
#if TAPER_X86_LEVELS
  if (!cpu_features().has(CpuFeature::avx512)) GTEST_SKIP() << "needs AVX-512";
  const index_t m = 40, n = 90, k = 700;
  const Array a = Array::random({m, k}, 4), b = Array::random({k, n}, 5);
  Array c[2] = {Array({m, n}), Array({m, n})};
  for (int level = 0; level < 2; ++level) {
    Gemm g;
    g.m = m, g.n = n, g.k = k, g.a = a.data(), g.a_row = k, g.b = b.data(), g.b_row = n,
    g.c = c[level].data(), g.c_row = n;
    run(level == 0 ? microkernels_avx2 : microkernels_avx512, g);
  }
  EXPECT_EQ(c[0].values(), c[1].values());
#else
  GTEST_SKIP() << "one level here";
#endif
}

TEST(gemm, needs_no_less_scratch_for_a_larger_shape) {
  for (const Microkernels* kernels : levels())
    for (const DType dtype : {DType::f32, DType::bf16})
      for (int threads : {1, 3}) {
        size_t before = 0;
        for (index_t m = 1; m < 2000; m += 7) {
          Gemm g;
          g.m = m, g.n = 900, g.k = 600, g.dtype = g.b_dtype = dtype;
          const size_t bytes = plan_gemm(*kernels, g, threads).scratch_bytes();
          EXPECT_GE(bytes, before) << m << " rows";
          before = bytes;
        }
      }
}

TEST(gemm, bounds_its_scratch) {
  for (const Microkernels* kernels : levels())
    EXPECT_LE(plan_gemm(*kernels, 1, 100000, 100000, 100000, 2).scratch_bytes(), size_t{2} << 20);
}

}  // namespace
}  // namespace taper::optimized
