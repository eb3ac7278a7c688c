#include "taper/benchmarks/gemm_peak.h"

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "taper/benchmarks/gemm_peak.cpp"
#include "hwy/foreach_target.h"
#include "taper/kernels/optimized/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace taper::optimized {
namespace HWY_NAMESPACE {
namespace {

constexpr int chains = 12;

float run(index_t rounds) {
  Vec sum[chains];
  const Vec x = broadcast(0.999f), y = broadcast(0.001f);
  _Pragma("GCC unroll 16") for (int i = 0; i < chains; ++i) sum[i] =
      broadcast(static_cast<float>(i));
  for (index_t round = 0; round < rounds; ++round)
    _Pragma("GCC unroll 16") for (int i = 0; i < chains; ++i) sum[i] = multiply_add(sum[i], x, y);
  _Pragma("GCC unroll 16") for (int i = 1; i < chains; ++i) sum[0] = add(sum[0], sum[i]);
  float lane[lanes];
  store(sum[0], lane);
  return lane[0];
}

constexpr FmaLoop loop{run, index_t{chains} * lanes};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace taper::optimized
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taper {

const FmaLoop fma_loop_portable = optimized::HWY_STATIC_DISPATCH(loop);
#if TAPER_X86_LEVELS
#if HWY_TARGETS & HWY_AVX2
const FmaLoop fma_loop_avx2 = optimized::N_AVX2::loop;
#else
const FmaLoop fma_loop_avx2 = fma_loop_portable;
#endif
const FmaLoop fma_loop_avx512 = optimized::N_AVX3::loop;
#endif

}  // namespace taper
#endif
