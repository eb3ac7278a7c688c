// Programs of pointwise operators at each CPU level.
#pragma once
#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/portable/fused_pointwise.h"

namespace taper::optimized {

#if TAPER_X86_LEVELS
extern const portable::fused::RunProgram run_avx2_program, run_avx512_program,
    run_avx2_plain_program, run_avx512_plain_program;
#endif

/// With the bits of the level's single operators. `plain`: it runs only programs that `is_plain`.
template <CpuLevel level, bool plain = false>
portable::fused::RunProgram program_runner() {
#if TAPER_X86_LEVELS
  if constexpr (level >= CpuLevel::avx512 && plain)
    return run_avx512_plain_program;
  else if constexpr (level >= CpuLevel::avx512)
    return run_avx512_program;
  else if constexpr (level == CpuLevel::avx2 && plain)
    return run_avx2_plain_program;
  else if constexpr (level == CpuLevel::avx2)
    return run_avx2_program;
#endif
  if constexpr (plain)
    return portable::fused::run_portable_plain_program;
  else
    return portable::fused::run_portable_program;
}

}  // namespace taper::optimized
