// Chains of pointwise operators at the same levels as the single operators, so that they have the
// same bits.
#include "taper/kernels/optimized/fused_pointwise.h"

#include "taper/kernels/optimized/wide.h"

#if TAPER_X86_LEVELS
namespace taper::optimized {

#define TAPER_WIDE(level)                                                                  \
  TAPER_WIDE_KERNEL(taper_pointwise, f32, level, portable::fused::prepare,                 \
                    portable::fused::run<LoopsAt<CpuLevel::level>, portable::math::Fused>) \
  const portable::fused::RunProgram run_##level##_program =                                \
      portable::fused::run_program<LoopsAt<CpuLevel::level>, portable::math::Fused>;       \
  const portable::fused::RunProgram run_##level##_plain_program =                          \
      portable::fused::run_program<LoopsAt<CpuLevel::level>, portable::fused::PlainProgram>;
TAPER_WIDE(avx2)
TAPER_WIDE(avx512)

}  // namespace taper::optimized
#endif
