// Tensors filled with one number, written with wider vectors.
#include "taper/kernels/portable/creation.h"

#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/wide.h"
#include "taper/kernels/shapes/creation.h"

#if TAPER_X86_LEVELS
namespace taper::optimized {

#define TAPER_WIDE(level)                                                       \
  TAPER_WIDE_KERNEL(full, any, level, portable::full<LoopsAt<CpuLevel::level>>) \
  TAPER_WIDE_KERNEL(fill_Scalar, any, level, portable::prepare_fill,            \
                    portable::fill_scalar<LoopsAt<CpuLevel::level>>)
TAPER_WIDE(avx2)
TAPER_WIDE(avx512)

}  // namespace taper::optimized
#endif
