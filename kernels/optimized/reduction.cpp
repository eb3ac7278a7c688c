// The portable reductions, compiled for AVX2 and AVX-512: the same bits.
#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/small_floats.h"
#include "taper/kernels/portable/reduction_functions.h"

#if TAPER_X86_LEVELS
namespace taper::optimized {

using namespace portable;

namespace {

template <class Loops, class E>
using SumOf = Reduce<Loops, Sum, E, MaybeDims, bool, Maybe<DType>>;
template <class Loops, class E>
using MeanOf = Reduce<Loops, Mean, E, MaybeDims, bool, Maybe<DType>>;
template <class Loops, class E>
using MeanOfAll = Reduce<Loops, Mean, E, Maybe<DType>>;
template <class Loops, class E>
using LargestOf = Reduce<Loops, Largest, E, DimList_, bool>;
template <class Loops, class E>
using SmallestOf = Reduce<Loops, Smallest, E, DimList_, bool>;
template <class Loops, class E>
using LargestOfAll = Reduce<Loops, Largest, E>;
template <class Loops, class E>
using SmallestOfAll = Reduce<Loops, Smallest, E>;
template <class Loops, class E>
using VarianceOf = Variance<Loops, E, Maybe<Scalar>>;
template <class Loops, class E>
using DeviationOf = Variance<Loops, E, Maybe<Scalar>, Spread::deviation>;
template <class Loops, class E>
using VarianceAndMeanOf = VarianceAndMean<Loops, E, Spread::variance>;
template <class Loops, class E>
using DeviationAndMeanOf = VarianceAndMean<Loops, E, Spread::deviation>;

}  // namespace

#define TAPER_WIDE(op, variant, level, Kernel, Loops, E)                               \
  TAPER_WIDE_KERNEL(op, variant, level, (&Kernel<Loops<CpuLevel::level>, E>::prepare), \
                    (&Kernel<Loops<CpuLevel::level>, E>::run))
#define TAPER_WIDE_FLOATS(op, level, Kernel)         \
  TAPER_WIDE(op, f32, level, Kernel, LoopsAt, float) \
  TAPER_WIDE(op, small_float, level, Kernel, SmallLoopsAt, SmallFloat)
#define TAPER_WIDE_LEVEL(level)                                    \
  TAPER_WIDE_FLOATS(sum_dim_IntList, level, SumOf)                 \
  TAPER_WIDE(sum_dim_IntList, f64, level, SumOf, LoopsAt, double)  \
  TAPER_WIDE(sum_dim_IntList, i64, level, SumOf, LoopsAt, int64_t) \
  TAPER_WIDE_FLOATS(mean_dim, level, MeanOf)                       \
  TAPER_WIDE_FLOATS(mean, level, MeanOfAll)                        \
  TAPER_WIDE_FLOATS(amax, level, LargestOf)                        \
  TAPER_WIDE(amax, i64, level, LargestOf, LoopsAt, int64_t)        \
  TAPER_WIDE_FLOATS(amin, level, SmallestOf)                       \
  TAPER_WIDE(amin, i64, level, SmallestOf, LoopsAt, int64_t)       \
  TAPER_WIDE_FLOATS(max, level, LargestOfAll)                      \
  TAPER_WIDE_FLOATS(min, level, SmallestOfAll)                     \
  TAPER_WIDE_FLOATS(linalg_vector_norm, level, VectorNorm)         \
  TAPER_WIDE_FLOATS(var_correction, level, VarianceOf)             \
  TAPER_WIDE_FLOATS(std_correction, level, DeviationOf)            \
  TAPER_WIDE_FLOATS(var_mean_correction, level, VarianceAndMeanOf) \
  TAPER_WIDE_FLOATS(std_mean_correction, level, DeviationAndMeanOf)
TAPER_WIDE_LEVEL(avx2)
TAPER_WIDE_LEVEL(avx512)

}  // namespace taper::optimized
#endif
