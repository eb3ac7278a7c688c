// The portable normalisations of rows and groups, compiled for AVX2 and AVX-512: the same bits.
#include "taper/kernels/portable/layer_norm.h"

#include "taper/kernels/optimized/optimized.h"
#include "taper/kernels/optimized/wide.h"
#include "taper/kernels/portable/group_norm.h"
#include "taper/kernels/shapes/norm.h"

#if TAPER_X86_LEVELS
namespace taper::optimized {

#define TAPER_WIDE_LEVEL(level)                                                         \
  TAPER_WIDE_KERNEL(native_layer_norm, f32, level,                                      \
                    portable::layer_norm::forward<LoopsAt<CpuLevel::level>, float>)     \
  TAPER_WIDE_KERNEL(_fused_rms_norm, f32, level,                                        \
                    portable::layer_norm::rms_forward<LoopsAt<CpuLevel::level>, float>) \
  TAPER_WIDE_KERNEL(native_group_norm, f32, level,                                      \
                    portable::group_norm::forward<LoopsAt<CpuLevel::level>, float>)
TAPER_WIDE_LEVEL(avx2)
TAPER_WIDE_LEVEL(avx512)

}  // namespace taper::optimized
#endif
