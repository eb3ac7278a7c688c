// The processor's f32 peak, as a loop to be timed.
#pragma once
#include "taper/kernels/optimized/levels.h"

namespace taper {

/// `run(rounds)` makes rounds * per_round multiply-adds, all in registers and enough of them
/// independent to keep the units busy.
struct FmaLoop {
  float (*run)(index_t rounds);
  index_t per_round;
};

extern const FmaLoop fma_loop_portable;
#if TAPER_X86_LEVELS
extern const FmaLoop fma_loop_avx2, fma_loop_avx512;
#endif

}  // namespace taper
