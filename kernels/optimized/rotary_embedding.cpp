// The portable rotary embedding, compiled for AVX2 and AVX-512. The bits are the same.
#include "taper/kernels/portable/rotary_embedding.h"

#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/wide.h"
#include "taper/kernels/shapes/attention.h"

#if TAPER_X86_LEVELS
namespace taper::optimized {

using namespace portable::rotary;

TAPER_WIDE_KERNEL(taper_rotary_embedding, f32, avx2, prepare<float>,
                  run<LoopsAt<CpuLevel::avx2>, float>)
TAPER_WIDE_KERNEL(taper_rotary_embedding, f32, avx512, prepare<float>,
                  run<LoopsAt<CpuLevel::avx512>, float>)

}  // namespace taper::optimized
#endif
