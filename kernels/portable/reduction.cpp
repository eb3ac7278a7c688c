#include "taper/kernels/portable/reduction_functions.h"

namespace taper::portable {

uint32_t listed_dims(int rank, Span<const int64_t> dims) {
  if (dims.empty()) return all_dims(rank);
  uint32_t set = 0;
  for (int64_t dim : dims) set |= one_dim(rank, dim);
  return set;
}

Reduction plan_reduction(const Shape& shape, uint32_t dims) {
  Reduction plan{};
  plan.walk = Walk();
  plan.outer = plan.inner = plan.reduced = 1;
  int innermost = shape.rank - 1;
  while (innermost >= 0 && shape.sizes[innermost] == 1) --innermost;
  plan.rows = innermost < 0 || (dims >> innermost & 1) != 0;
  // kept dimensions behind the last reduced one stay innermost in the columns form
  int inner_begin = shape.rank;
  if (!plan.rows)
    while (inner_begin > 0 && (dims >> (inner_begin - 1) & 1) == 0) --inner_begin;
  for (int d = 0; d < inner_begin; ++d)
    if ((dims >> d & 1) == 0)
      plan.outer *= shape.sizes[d], plan.walk.add(shape.sizes[d], shape.strides[d]);
  for (int d = 0; d < inner_begin; ++d)
    if ((dims >> d & 1) != 0)
      plan.reduced *= shape.sizes[d], plan.walk.add(shape.sizes[d], shape.strides[d]);
  for (int d = inner_begin; d < shape.rank; ++d)
    plan.inner *= shape.sizes[d], plan.walk.add(shape.sizes[d], shape.strides[d]);
  plan.pieces = plan.reduced <= piece_length ? 1 : (plan.reduced + piece_length - 1) / piece_length;
  return plan;
}

internal::Runs::Runs(const Source& source, index_t first)
    : source_(source), at_(*source.walk, first) {}

const void* internal::Runs::next(index_t most, void* buffer, index_t& count) {
  const int inner = source_.walk->rank - 1;
  const bool dense = !source_.converts && source_.walk->strides[inner] == 1;
  const index_t left = at_.left(inner);
  if (dense && (left >= most || left >= tile_width)) {
    const void* x = source_.at(at_.offset());
    count = left >= most ? most : left / tile_width * tile_width;
    at_.advance(inner, count);
    return x;
  }
  // where dense elements end within a block, that block is copied
  count = dense ? tile_width : buffered;
  if (count > most) count = most;
  char* to = static_cast<char*>(buffer);
  for (index_t n = count, run; n > 0; n -= run) {
    run = at_.left(inner) < n ? at_.left(inner) : n;
    source_.load(source_.at(at_.offset()), source_.walk->strides[inner], run, to);
    to += run * source_.buffer_bytes;
    at_.advance(inner, run);
  }
  return buffer;
}

void internal::convert_rows(const Source& source, index_t first, index_t stride, index_t n,
                            index_t width, void* rows) {
  const bool linear = source.walk->is_linear();
  char* to = static_cast<char*>(rows);
  for (index_t r = 0; r < n; ++r, first += stride, to += tile_width * source.buffer_bytes)
    if (linear)
      source.load(source.at(first), 1, width, to);
    else
      read_block(source, first, width, to);
}

#define TAPER_REDUCTION(op, variant, ...)                             \
  TAPER_KERNEL(op, variant, Reduce<PlainLoops, __VA_ARGS__>::prepare, \
               Reduce<PlainLoops, __VA_ARGS__>::run)
#define TAPER_REDUCTION_FLOATING(op, Op, ...)      \
  TAPER_REDUCTION(op, f32, Op, float __VA_ARGS__)  \
  TAPER_REDUCTION(op, f64, Op, double __VA_ARGS__) \
  TAPER_REDUCTION(op, small_float, Op, SmallFloat __VA_ARGS__)
#define TAPER_REDUCTION_NUMERIC(op, Op, ...)        \
  TAPER_REDUCTION_FLOATING(op, Op, __VA_ARGS__)     \
  TAPER_REDUCTION(op, i64, Op, int64_t __VA_ARGS__) \
  TAPER_REDUCTION(op, small_integer, Op, SmallInteger __VA_ARGS__)
#define TAPER_COMMA ,

TAPER_REDUCTION_NUMERIC(sum_dim_IntList, Sum,
                        TAPER_COMMA MaybeDims TAPER_COMMA bool TAPER_COMMA Maybe<DType>)
TAPER_REDUCTION_NUMERIC(nansum, SumOfNumbers,
                        TAPER_COMMA MaybeDims TAPER_COMMA bool TAPER_COMMA Maybe<DType>)
TAPER_REDUCTION_FLOATING(mean, Mean, TAPER_COMMA Maybe<DType>)
TAPER_REDUCTION_FLOATING(mean_dim, Mean,
                         TAPER_COMMA MaybeDims TAPER_COMMA bool TAPER_COMMA Maybe<DType>)
TAPER_REDUCTION_NUMERIC(prod, Product, TAPER_COMMA Maybe<DType>)
TAPER_REDUCTION_NUMERIC(prod_dim_int, Product,
                        TAPER_COMMA int64_t TAPER_COMMA bool TAPER_COMMA Maybe<DType>)
TAPER_REDUCTION_NUMERIC(amax, Largest, TAPER_COMMA DimList_ TAPER_COMMA bool)
TAPER_REDUCTION_NUMERIC(amin, Smallest, TAPER_COMMA DimList_ TAPER_COMMA bool)
TAPER_REDUCTION_NUMERIC(max, Largest)
TAPER_REDUCTION_NUMERIC(min, Smallest)
#define TAPER_TRUTH(op, Op)                                               \
  TAPER_REDUCTION(op, bool, Op, bool)                                     \
  TAPER_REDUCTION(op, u8, Op, uint8_t)                                    \
  TAPER_REDUCTION(op##_dim, bool, Op, bool, int64_t, bool)                \
  TAPER_REDUCTION(op##_dim, u8, Op, uint8_t, int64_t, bool)               \
  TAPER_KERNEL(op##_dims, bool, OverDims<PlainLoops, Op, bool>::prepare,  \
               OverDims<PlainLoops, Op, bool>::run)                       \
  TAPER_KERNEL(op##_dims, u8, OverDims<PlainLoops, Op, uint8_t>::prepare, \
               OverDims<PlainLoops, Op, uint8_t>::run)
TAPER_TRUTH(any, AnyOf)
TAPER_TRUTH(all, AllOf)

#define TAPER_VECTOR_NORM(variant, E)                                             \
  TAPER_KERNEL(linalg_vector_norm, variant, (VectorNorm<PlainLoops, E>::prepare), \
               (VectorNorm<PlainLoops, E>::run))
TAPER_VECTOR_NORM(f32, float)
TAPER_VECTOR_NORM(f64, double)
TAPER_VECTOR_NORM(small_float, SmallFloat)

#define TAPER_VARIANCE(op, variant, ...)                                \
  TAPER_KERNEL(op, variant, Variance<PlainLoops, __VA_ARGS__>::prepare, \
               Variance<PlainLoops, __VA_ARGS__>::run)
TAPER_VARIANCE(var_correction, f32, float, Maybe<Scalar>)
TAPER_VARIANCE(var_correction, f64, double, Maybe<Scalar>)
TAPER_VARIANCE(var_correction, small_float, SmallFloat, Maybe<Scalar>)
TAPER_VARIANCE(var_dim, f32, float, bool)
TAPER_VARIANCE(var_dim, f64, double, bool)
TAPER_VARIANCE(var_dim, small_float, SmallFloat, bool)

}  // namespace taper::portable
