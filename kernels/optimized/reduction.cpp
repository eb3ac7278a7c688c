// The portable reductions, compiled for AVX2 and AVX-512: the same bits.
#include "taper/kernels/optimized/optimized.h"
#include "taper/kernels/optimized/small_floats.h"
#include "taper/kernels/portable/reduction_functions.h"

#if TAPER_X86_LEVELS
namespace taper::optimized {

using namespace portable;

#define TAPER_WIDE_VARIANT(op, variant, level, ...) \
  TAPER_WIDE_KERNEL(op, variant, level, (&__VA_ARGS__::prepare), (&__VA_ARGS__::run))
#define TAPER_WIDE(op, level, Op, ...)                                                         \
  TAPER_WIDE_VARIANT(op, f32, level, Reduce<LoopsAt<CpuLevel::level>, Op, float, __VA_ARGS__>) \
  TAPER_WIDE_VARIANT(op, small_float, level,                                                   \
                     Reduce<SmallLoopsAt<CpuLevel::level>, Op, SmallFloat, __VA_ARGS__>)
#define TAPER_WIDE_LEVEL(level)                                                                   \
  TAPER_WIDE(sum_dim_IntList, level, Sum, MaybeDims, bool, Maybe<DType>)                          \
  TAPER_WIDE(mean_dim, level, Mean, MaybeDims, bool, Maybe<DType>)                                \
  TAPER_WIDE(mean, level, Mean, Maybe<DType>)                                                     \
  TAPER_WIDE(amax, level, Largest, DimList_, bool)                                                \
  TAPER_WIDE(amin, level, Smallest, DimList_, bool)                                               \
  TAPER_WIDE_VARIANT(linalg_vector_norm, f32, level, VectorNorm<LoopsAt<CpuLevel::level>, float>) \
  TAPER_WIDE_VARIANT(var_correction, f32, level,                                                  \
                     Variance<LoopsAt<CpuLevel::level>, float, Maybe<Scalar>>)                    \
  TAPER_WIDE_VARIANT(var_correction, small_float, level,                                          \
                     Variance<SmallLoopsAt<CpuLevel::level>, SmallFloat, Maybe<Scalar>>)
TAPER_WIDE_LEVEL(avx2)
TAPER_WIDE_LEVEL(avx512)

}  // namespace taper::optimized
#endif
