// The portable pooling, compiled for AVX2 and AVX-512: the same bits.
#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/wide.h"
#include "taper/kernels/portable/channels_last_pool.h"
#include "taper/kernels/portable/max_pool.h"
#include "taper/kernels/shapes/channels_last.h"

#if TAPER_X86_LEVELS
namespace taper::optimized {

using namespace portable;

#define TAPER_WIDE_LEVEL(level)                                                          \
  TAPER_WIDE_KERNEL(max_pool2d, f32, level, max_pool::prepare<float>,                    \
                    max_pool::forward<LoopsAt<CpuLevel::level>, float>)                  \
  TAPER_WIDE_KERNEL(taper_max_pool2d, f32, level, channels_last::prepare_max<float>,     \
                    channels_last::max<LoopsAt<CpuLevel::level>, float>)                 \
  TAPER_WIDE_KERNEL(taper_avg_pool2d, f32, level, channels_last::prepare_average<float>, \
                    channels_last::average<LoopsAt<CpuLevel::level>, float>)
TAPER_WIDE_LEVEL(avx2)
TAPER_WIDE_LEVEL(avx512)

}  // namespace taper::optimized
#endif
