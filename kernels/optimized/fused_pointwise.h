// Programs of pointwise operators at each CPU level.
#pragma once
#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/portable/fused_pointwise.h"

namespace taper::optimized {

#if TAPER_X86_LEVELS
extern const portable::fused::RunProgram run_avx2_program, run_avx512_program;
#endif

/// With the bits of the level's single operators.
template <CpuLevel level>
portable::fused::RunProgram program_runner() {
#if TAPER_X86_LEVELS
  if constexpr (level >= CpuLevel::avx512) return run_avx512_program;
  if constexpr (level == CpuLevel::avx2) return run_avx2_program;
#endif
  return portable::fused::run_portable_program;
}

}  // namespace taper::optimized
