// The portable products of doubles, compiled for AVX2 and AVX-512. The bits are the same.
#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/wide.h"
#include "taper/kernels/portable/matmul_functions.h"
#include "taper/kernels/portable/matrix_exp.h"

#if TAPER_X86_LEVELS
namespace taper::optimized {

#define TAPER_WIDE(op, level) \
  TAPER_WIDE_KERNEL(op, f64, level, portable::op<double, LoopsAt<CpuLevel::level>>)
#define TAPER_WIDE_EXP(variant, T, level)                                        \
  TAPER_WIDE_KERNEL(linalg_matrix_exp, variant, level, portable::prepare_exp<T>, \
                    portable::run_exp<T, LoopsAt<CpuLevel::level>>)
#define TAPER_WIDE_LEVEL(level)     \
  TAPER_WIDE(mm, level)             \
  TAPER_WIDE(bmm, level)            \
  TAPER_WIDE(addmm, level)          \
  TAPER_WIDE(baddbmm, level)        \
  TAPER_WIDE(linear, level)         \
  TAPER_WIDE_EXP(f32, float, level) \
  TAPER_WIDE_EXP(f64, double, level)
TAPER_WIDE_LEVEL(avx2)
TAPER_WIDE_LEVEL(avx512)

}  // namespace taper::optimized
#endif
