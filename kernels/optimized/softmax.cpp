// The portable softmax, compiled for AVX2 and AVX-512 with fused multiply-adds.
#include "taper/kernels/portable/softmax.h"

#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/wide.h"

#if TAPER_X86_LEVELS
namespace taper::optimized {

using namespace portable::softmax;
using portable::math::Fused;

#define TAPER_WIDE(level)                                                            \
  TAPER_WIDE_KERNEL(_softmax, f32, level, prepare<float>,                            \
                    forward<LoopsAt<CpuLevel::level>, float, false, Fused>)          \
  TAPER_WIDE_KERNEL(_log_softmax, f32, level, prepare<float>,                        \
                    forward<LoopsAt<CpuLevel::level>, float, true, Fused>)           \
  TAPER_WIDE_KERNEL(_softmax_backward_data, f32, level, prepare_backward<float>,     \
                    backward<LoopsAt<CpuLevel::level>, float, false, Fused>)         \
  TAPER_WIDE_KERNEL(_log_softmax_backward_data, f32, level, prepare_backward<float>, \
                    backward<LoopsAt<CpuLevel::level>, float, true, Fused>)
TAPER_WIDE(avx2)
TAPER_WIDE(avx512)

}  // namespace taper::optimized
#endif
