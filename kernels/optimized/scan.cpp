// The portable running sums, compiled for AVX2 and AVX-512. The bits are the same.
#include "taper/kernels/portable/scan.h"

#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/small_floats.h"

#if TAPER_X86_LEVELS
namespace taper::optimized {

namespace {

template <CpuLevel level, class E>
using CumSum = portable::Scan<SmallLoopsAt<level>, portable::RunningSum, E, Maybe<DType>>;

}  // namespace

#define TAPER_WIDE(variant, E, level)                                               \
  TAPER_WIDE_KERNEL(cumsum, variant, level, (&CumSum<CpuLevel::level, E>::prepare), \
                    (&CumSum<CpuLevel::level, E>::run))
TAPER_WIDE(f32, float, avx2)
TAPER_WIDE(small_float, portable::SmallFloat, avx2)
TAPER_WIDE(f32, float, avx512)
TAPER_WIDE(small_float, portable::SmallFloat, avx512)

}  // namespace taper::optimized
#endif
