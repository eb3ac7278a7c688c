// The portable normalisations of rows, groups and channels, compiled for AVX2 and AVX-512. The bits
// are the same.
#include "taper/kernels/portable/layer_norm.h"

#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/small_floats.h"
#include "taper/kernels/portable/batch_norm.h"
#include "taper/kernels/portable/group_norm.h"
#include "taper/kernels/shapes/norm.h"

#if TAPER_X86_LEVELS
namespace taper::optimized {

using namespace portable;

#define TAPER_WIDE_LEVEL(level)                                                                  \
  TAPER_WIDE_KERNEL(native_layer_norm, f32, level,                                               \
                    layer_norm::forward<LoopsAt<CpuLevel::level>, float>)                        \
  TAPER_WIDE_KERNEL(native_layer_norm_backward, f32, level,                                      \
                    layer_norm::backward<LoopsAt<CpuLevel::level>, float>)                       \
  TAPER_WIDE_KERNEL(_fused_rms_norm, f32, level,                                                 \
                    layer_norm::rms_forward<LoopsAt<CpuLevel::level>, float>)                    \
  TAPER_WIDE_KERNEL(native_group_norm, f32, level,                                               \
                    group_norm::forward<LoopsAt<CpuLevel::level>, float>)                        \
  TAPER_WIDE_KERNEL(native_group_norm_backward, f32, level, group_norm::prepare_backward<float>, \
                    group_norm::backward<LoopsAt<CpuLevel::level>, float>)                       \
  TAPER_WIDE_KERNEL(_native_batch_norm_legit_no_training, f32, level,                            \
                    batch_norm::no_training<LoopsAt<CpuLevel::level>, float>)                    \
  TAPER_WIDE_KERNEL(_native_batch_norm_legit_no_training, small_float, level,                    \
                    batch_norm::no_training<SmallLoopsAt<CpuLevel::level>, SmallFloat>)          \
  TAPER_WIDE_KERNEL(native_batch_norm_backward, f32, level,                                      \
                    batch_norm::backward<LoopsAt<CpuLevel::level>, float>)
TAPER_WIDE_LEVEL(avx2)
TAPER_WIDE_LEVEL(avx512)

}  // namespace taper::optimized
#endif
