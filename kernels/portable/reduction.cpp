#include "taper/kernels/portable/reduction.h"

#include <limits>

#include "taper/kernels/portable/pointwise.h"
#include "taper/kernels/shapes/reduction.h"

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

namespace {

struct Plain {
  static constexpr bool shifts = false;
  template <class T>
  static T map(T x, T) {
    return x;
  }
  template <class T>
  static T finish(T x) {
    return x;
  }
};
template <class T>
struct Sum : Plain {
  static T identity() { return T(0); }
  static T combine(T a, T b) { return wrapping_add(a, b); }
};
template <class T>
struct SumOfNumbers : Sum<T> {
  static T map(T x, T) { return x == x ? x : T(0); }
};
template <class T>
struct Mean : Sum<T> {
  T count;
  T finish(T sum) const { return sum / count; }
};
template <class T>
struct Product : Plain {
  static T identity() { return T(1); }
  static T combine(T a, T b) { return wrapping_mul(a, b); }
};
/// NaN wins.
template <class T>
struct Largest : Plain {
  static T identity() {
    return std::is_integral_v<T> ? std::numeric_limits<T>::min()
                                 : -std::numeric_limits<T>::infinity();
  }
  static T combine(T a, T b) { return a != a || a > b ? a : b; }
};
template <class T>
struct Smallest : Plain {
  static T identity() {
    return std::is_integral_v<T> ? std::numeric_limits<T>::max()
                                 : std::numeric_limits<T>::infinity();
  }
  static T combine(T a, T b) { return a != a || a < b ? a : b; }
};
template <class T>
struct AnyOf : Plain {
  static T map(T x, T) { return x != T(0); }
  static T identity() { return false; }
  static T combine(T a, T b) { return a | b; }
};
template <class T>
struct AllOf : Plain {
  static T map(T x, T) { return x != T(0); }
  static T identity() { return true; }
  static T combine(T a, T b) { return a & b; }
};
/// Squares of the distances to the mean, which is `shift`.
template <class T>
struct Deviation : Sum<T> {
  static constexpr bool shifts = true;
  T divisor;
  static T map(T x, T mean) { return (x - mean) * (x - mean); }
  T finish(T sum) const { return sum / divisor; }
};

/// Stores finished results, converted to the result's dtype.
template <class R>
auto emit_to(View<R> out) {
  const DType computes = internal::computed_dtype<R>(*out.ref);
  const Store store = storer(computes, out.dtype());
  const int bytes = size_bytes(out.dtype());
  char* const data = static_cast<char*>(out.ref->data);
  return [=](index_t at, index_t n, const void* values) { store(values, n, data + at * bytes); };
}

template <class T>
void need_partial(Context& context, const Reduction& plan, index_t extra = 0) {
  const index_t partial = plan.pieces > 1 ? plan.results() * plan.pieces : 0;
  context.need_scratch(static_cast<size_t>(partial + extra) * sizeof(T));
}

template <template <class> class Op, class E, class... P>
struct Reduce {
  using T = Compute<E>;
  static Error prepare(Context& context, Reduction& plan, AnyView<const E> self, P... parameters,
                       View<E>) {
    plan = plan_reduction(self.shape(), reduced_dims(self.rank(), parameters...));
    need_partial<T>(context, plan);
    return Error::ok;
  }
  static Error run(Context& context, const Reduction& plan, AnyView<const E> self, P...,
                   View<E> out) {
    const Source source(*self.ref, plan.walk, internal::computed_dtype<E>(*self.ref));
    Op<T> op{};
    if constexpr (std::is_base_of_v<Mean<T>, Op<T>>) op.count = static_cast<T>(plan.reduced);
    reduce(context.threads, plan, source, op, static_cast<const T*>(nullptr),
           static_cast<T*>(context.scratch), emit_to(out));
    return Error::ok;
  }
};

/// any.dims and all.dims alone take an empty list by its word: nothing is reduced.
template <template <class> class Op, class E>
struct OverDims : Reduce<Op, E, Maybe<Span<const int64_t>>, bool> {
  static Error prepare(Context& context, Reduction& plan, AnyView<const E> self,
                       Maybe<Span<const int64_t>> dims, bool, View<E>) {
    plan =
        plan_reduction(self.shape(), dims && dims->empty() ? 0 : reduced_dims(self.rank(), dims));
    need_partial<E>(context, plan);
    return Error::ok;
  }
};

double correction_of(const Maybe<Scalar>& correction, bool) {
  return correction ? correction->to<double>() : 1;
}
double correction_of(bool unbiased, bool) { return unbiased ? 1 : 0; }

/// Two passes: means, then mean squares of the distances to them. Scratch: the means, then partial
/// sums.
template <class E, class Correction>
struct Variance {
  using T = Compute<E>;
  using Dims = Maybe<Span<const int64_t>>;
  static Error prepare(Context& context, Reduction& plan, AnyView<const E> self, Dims dims,
                       Correction, bool, View<E>) {
    plan = plan_reduction(self.shape(), reduced_dims(self.rank(), dims));
    need_partial<T>(context, plan, plan.results());
    return Error::ok;
  }
  static Error run(Context& context, const Reduction& plan, AnyView<const E> self, Dims,
                   Correction correction, bool keepdim, View<E> out) {
    const Source source(*self.ref, plan.walk, internal::computed_dtype<E>(*self.ref));
    T* const means = static_cast<T*>(context.scratch);
    T* const partial = means + plan.results();
    Mean<T> mean{};
    mean.count = static_cast<T>(plan.reduced);
    reduce(context.threads, plan, source, mean, static_cast<const T*>(nullptr), partial,
           [means](index_t at, index_t n, const T* values) {
             for (index_t k = 0; k < n; ++k) means[at + k] = values[k];
           });
    const double divisor = static_cast<double>(plan.reduced) - correction_of(correction, keepdim);
    Deviation<T> deviation{};
    deviation.divisor = static_cast<T>(divisor > 0 ? divisor : 0);
    reduce(context.threads, plan, source, deviation, static_cast<const T*>(means), partial,
           emit_to(out));
    return Error::ok;
  }
};

using DimList_ = Span<const int64_t>;
using MaybeDims = Maybe<Span<const int64_t>>;

}  // namespace

#define TAPER_REDUCTION(op, variant, ...) \
  TAPER_KERNEL(op, variant, Reduce<__VA_ARGS__>::prepare, Reduce<__VA_ARGS__>::run)
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
#define TAPER_TRUTH(op, Op)                                                           \
  TAPER_REDUCTION(op, bool, Op, bool)                                                 \
  TAPER_REDUCTION(op, u8, Op, uint8_t)                                                \
  TAPER_REDUCTION(op##_dim, bool, Op, bool, int64_t, bool)                            \
  TAPER_REDUCTION(op##_dim, u8, Op, uint8_t, int64_t, bool)                           \
  TAPER_KERNEL(op##_dims, bool, OverDims<Op, bool>::prepare, OverDims<Op, bool>::run) \
  TAPER_KERNEL(op##_dims, u8, OverDims<Op, uint8_t>::prepare, OverDims<Op, uint8_t>::run)
TAPER_TRUTH(any, AnyOf)
TAPER_TRUTH(all, AllOf)

#define TAPER_VARIANCE(op, variant, ...) \
  TAPER_KERNEL(op, variant, Variance<__VA_ARGS__>::prepare, Variance<__VA_ARGS__>::run)
TAPER_VARIANCE(var_correction, f32, float, Maybe<Scalar>)
TAPER_VARIANCE(var_correction, f64, double, Maybe<Scalar>)
TAPER_VARIANCE(var_correction, small_float, SmallFloat, Maybe<Scalar>)
TAPER_VARIANCE(var_dim, f32, float, bool)
TAPER_VARIANCE(var_dim, f64, double, bool)
TAPER_VARIANCE(var_dim, small_float, SmallFloat, bool)

}  // namespace taper::portable
