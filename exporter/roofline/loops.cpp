#include "taper/exporter/roofline/loops.h"

#include "taper/runtime/platform/cpu.h"

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "taper/exporter/roofline/loops.cpp"
#include "hwy/foreach_target.h"
#include "taper/kernels/optimized/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace taper::optimized {
namespace HWY_NAMESPACE {
namespace {

constexpr int chains = 12, streams = 8;

template <int count>
float sum_of(Vec (&vectors)[count]) {
  for (int i = 1; i < count; ++i) vectors[0] = add(vectors[0], vectors[i]);
  float lane[lanes];
  store(vectors[0], lane);
  float sum = 0;
  for (const float x : lane) sum += x;
  return sum;
}

float multiply_add_in_registers(index_t rounds) {
  Vec sum[chains];
  const Vec x = broadcast(0.999f), y = broadcast(0.001f);
  TAPER_UNROLL for (int i = 0; i < chains; ++i) sum[i] = broadcast(static_cast<float>(i));
  for (index_t round = 0; round < rounds; ++round)
    TAPER_UNROLL for (int i = 0; i < chains; ++i) sum[i] = multiply_add(sum[i], x, y);
  return sum_of(sum);
}

// Several sums, so that no addition waits for the one before it.
float read_all(const float* from, index_t count) {
  static_assert(roofline::block % (streams * lanes) == 0);
  Vec sum[streams];
  TAPER_UNROLL for (int i = 0; i < streams; ++i) sum[i] = broadcast(0);
  for (index_t at = 0; at < count; at += streams * lanes)
    TAPER_UNROLL for (int i = 0; i < streams; ++i) sum[i] =
        add(sum[i], load(from + at + i * lanes));
  return sum_of(sum);
}

void halve_all(float* numbers, index_t count) {
  const Vec half = broadcast(0.5f), zero = broadcast(0);
  for (index_t at = 0; at < count; at += streams * lanes)
    TAPER_UNROLL for (int i = 0; i < streams; ++i) {
      float* const x = numbers + at + i * lanes;
      store(multiply_add(load(x), half, zero), x);
    }
}

constexpr roofline::Loops level_loops{multiply_add_in_registers, index_t{chains} * lanes, read_all,
                                      halve_all};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace taper::optimized
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taper::roofline {
using namespace optimized;  // the levels are namespaces in it

TAPER_DEFINE_LEVEL_TABLES(Loops, loops, level_loops)

const Loops& fastest_loops() {
#if TAPER_X86_LEVELS
  if (cpu_features().has(features_of(CpuLevel::avx512))) return loops<CpuLevel::avx512>();
  if (cpu_features().has(features_of(CpuLevel::avx2))) return loops<CpuLevel::avx2>();
#endif
  return loops<CpuLevel::portable>();
}

}  // namespace taper::roofline
#endif
