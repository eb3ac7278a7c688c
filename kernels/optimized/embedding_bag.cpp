// The portable sums of a table's rows, compiled for AVX2 and AVX-512. The bits are the same.
#include "taper/kernels/portable/embedding_bag.h"

#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/small_floats.h"
#include "taper/kernels/optimized/wide.h"
#include "taper/kernels/shapes/indexing.h"

#if TAPER_X86_LEVELS
namespace taper::optimized {
namespace {

/// Converts with the processor's instructions. A NaN becomes quiet, as it does when a result is
/// narrowed.
template <CpuLevel level>
struct QuickWidening {
  template <class T>
  static void widen(index_t n, const T* x, float* y) {
    widen_quietly<level>(n, x, y);
  }
};

}  // namespace

#define TAPER_WIDE_BAG(variant, T, level)                                      \
  TAPER_WIDE_KERNEL(_embedding_bag, variant, level,                            \
                    portable::embedding_bag::forward<LoopsAt<CpuLevel::level>, \
                                                     QuickWidening<CpuLevel::level>, T, int64_t>)
#define TAPER_WIDE_LEVEL(level)         \
  TAPER_WIDE_BAG(f32_i64, float, level) \
  TAPER_WIDE_BAG(f16_i64, Half, level)  \
  TAPER_WIDE_BAG(bf16_i64, BFloat16, level)
TAPER_WIDE_LEVEL(avx2)
TAPER_WIDE_LEVEL(avx512)

}  // namespace taper::optimized
#endif
