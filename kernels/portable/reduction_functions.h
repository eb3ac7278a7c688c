// The reductions and their records' functions, over `Loops` (elements.h).
#pragma once
#include <cmath>
#include <limits>

#include "taper/kernels/portable/pointwise.h"
#include "taper/kernels/portable/reduction.h"
#include "taper/kernels/portable/small_rows.h"
#include "taper/kernels/shapes/reduction.h"

namespace taper::portable {

struct Plain {
  static constexpr bool shifts = false, chooses = false;
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
  using Sums = Sum<T>;
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
  static constexpr bool chooses = true;
  static T identity() {
    return std::is_integral_v<T> ? std::numeric_limits<T>::min()
                                 : -std::numeric_limits<T>::infinity();
  }
  static T combine(T a, T b) { return ((a != a) | (a > b)) ? a : b; }
};
template <class T>
struct Smallest : Plain {
  static constexpr bool chooses = true;
  static T identity() {
    return std::is_integral_v<T> ? std::numeric_limits<T>::max()
                                 : std::numeric_limits<T>::infinity();
  }
  static T combine(T a, T b) { return ((a != a) | (a < b)) ? a : b; }
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
/// (sum of |x|^p)^(1 / p), and what it becomes for p = 0, 1, 2, infinity and -infinity.
template <class T>
struct NormOfPowers : Sum<T> {
  T order;
  T map(T x, T) const { return std::pow(std::fabs(x), order); }
  T finish(T sum) const { return std::pow(sum, 1 / order); }
};
template <class T>
struct NormOfSquares : Sum<T> {
  static T map(T x, T) { return x * x; }
  static T finish(T sum) { return std::sqrt(sum); }
};
template <class T>
struct SumOfSizes : Sum<T> {
  static T map(T x, T) { return std::fabs(x); }
};
template <class T>
struct CountOfNonzero : Sum<T> {
  static T map(T x, T) { return static_cast<T>(x != T(0)); }
};
template <class T>
struct LargestSize : Largest<T> {
  static T map(T x, T) { return std::fabs(x); }
};
template <class T>
struct SmallestSize : Smallest<T> {
  static T map(T x, T) { return std::fabs(x); }
};
/// Squares of the distances to the mean, which is `shift`.
template <class T>
struct Deviation : Sum<T> {
  static constexpr bool shifts = true;
  T divisor;
  static T map(T x, T mean) { return (x - mean) * (x - mean); }
  T finish(T sum) const { return sum / divisor; }
};

/// Stores finished results of dtype `computes`, converted to the result's dtype.
inline auto emit_to(const TensorRef& out, DType computes) {
  const Store store = storer(computes, out.dtype);
  const int bytes = size_bytes(out.dtype);
  char* const data = static_cast<char*>(out.data);
  return [=](index_t at, index_t n, const void* values) { store(values, n, data + at * bytes); };
}

template <class T>
void need_partial(Context& context, const Reduction& plan, index_t extra = 0) {
  context.need_scratch(static_cast<size_t>(partial_values(plan) + extra) * sizeof(T));
}

template <class Loops, template <class> class Op, class E, class... P>
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
    const DType computes = internal::computed_dtype<E>(*self.ref);
    const Source source = source_of<Loops>(*self.ref, plan.walk, computes);
    Op<T> op{};
    if constexpr (std::is_base_of_v<Mean<T>, Op<T>>) op.count = static_cast<T>(plan.reduced);
    reduce<Loops>(context.threads, plan, source, op, static_cast<const T*>(nullptr),
                  static_cast<T*>(context.scratch), emit_to(*out.ref, computes));
    return Error::ok;
  }
};

template <class Loops, class E>
struct VectorNorm {
  using T = Compute<E>;
  using Dims = Maybe<Span<const int64_t>>;
  static Error prepare(Context& context, Reduction& plan, AnyView<const E> self, Scalar, Dims dims,
                       bool, Maybe<DType>, View<E>) {
    plan = plan_reduction(self.shape(), reduced_dims(self.rank(), dims));
    need_partial<T>(context, plan);
    return Error::ok;
  }
  static Error run(Context& context, const Reduction& plan, AnyView<const E> self, Scalar ord, Dims,
                   bool, Maybe<DType>, View<E> out) {
    const DType computes = internal::computed_dtype<E>(*self.ref);
    const Source source = source_of<Loops>(*self.ref, plan.walk, computes);
    const auto with = [&](auto loops, auto op) {
      reduce<decltype(loops)>(context.threads, plan, source, op, static_cast<const T*>(nullptr),
                              static_cast<T*>(context.scratch), emit_to(*out.ref, computes));
      return Error::ok;
    };
    const double order = ord.to<double>();
    if (order == 2) return with(Loops(), NormOfSquares<T>());
    if (order == 1) return with(Loops(), SumOfSizes<T>());
    if (order == 0) return with(PlainLoops(), CountOfNonzero<T>());
    if (order == HUGE_VAL) return with(PlainLoops(), LargestSize<T>());
    if (order == -HUGE_VAL) return with(PlainLoops(), SmallestSize<T>());
    NormOfPowers<T> powers{};
    powers.order = static_cast<T>(order);
    return with(PlainLoops(), powers);
  }
};

/// any.dims and all.dims alone take an empty list by its word: nothing is reduced.
template <class Loops, template <class> class Op, class E>
struct OverDims : Reduce<Loops, Op, E, Maybe<Span<const int64_t>>, bool> {
  static Error prepare(Context& context, Reduction& plan, AnyView<const E> self,
                       Maybe<Span<const int64_t>> dims, bool, View<E>) {
    plan =
        plan_reduction(self.shape(), dims && dims->empty() ? 0 : reduced_dims(self.rank(), dims));
    need_partial<E>(context, plan);
    return Error::ok;
  }
};

inline double correction_of(const Maybe<Scalar>& correction, bool) {
  return correction ? correction->to<double>() : 1;
}
inline double correction_of(bool unbiased, bool) { return unbiased ? 1 : 0; }

/// The sum in double of map(x) over the elements of one result.
template <class T, class Map>
double sum_in_double(const Source& source, const Reduction& plan, index_t result, const Map& map) {
  const index_t first = result / plan.inner * plan.reduced * plan.inner + result % plan.inner;
  T buffer[tile_width];
  double sum = 0;
  for (index_t at = 0; at < plan.reduced;) {
    const index_t left = plan.reduced - at, n = plan.inner > 1      ? 1
                                                : left < tile_width ? left
                                                                    : tile_width;
    const auto* x = static_cast<const T*>(read_block(source, first + at * plan.inner, n, buffer));
    for (index_t i = 0; i < n; ++i) sum += map(static_cast<double>(x[i]));
    at += n;
  }
  return sum;
}
/// Where a sum in f32 overflows. The mean of finite numbers is finite. It is a running mean: as in
/// PyTorch, one with an infinity becomes NaN with the next element.
template <class T>
double mean_in_double(const Source& source, const Reduction& plan, index_t result) {
  double mean = plan.reduced > 0 ? 0 : std::numeric_limits<double>::quiet_NaN(), count = 0;
  sum_in_double<T>(source, plan, result, [&](double x) { return mean += (x - mean) / ++count; });
  return mean;
}
/// Where squares in f32 overflow or lose their digits.
template <class T>
double variance_in_double(const Source& source, const Reduction& plan, index_t result,
                          double divisor) {
  const double mean = mean_in_double<T>(source, plan, result);
  const double sum =
      sum_in_double<T>(source, plan, result, [mean](double x) { return (x - mean) * (x - mean); });
  return sum / divisor;
}

enum class Spread : uint8_t { variance, deviation };

/// The variance or its root, in two passes: means, then mean squares of the distances to them.
/// Scratch: the means, then partial sums. A line of f32 whose sums leave the range is computed in
/// double.
template <class Loops, class E, class Correction, Spread spread = Spread::variance>
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
    compute(context, plan, *self.ref, correction_of(correction, keepdim), *out.ref, nullptr);
    return Error::ok;
  }

 protected:
  static bool is_finite(T x) { return x - x == 0; }

  static void compute(Context& context, const Reduction& plan, const TensorRef& self,
                      double correction, const TensorRef& out, const TensorRef* mean_out) {
    const DType computes = internal::computed_dtype<E>(self);
    const Source source = source_of<Loops>(self, plan.walk, computes);
    T* const means = static_cast<T*>(context.scratch);
    T* const partial = means + plan.results();
    Mean<T> mean{};
    mean.count = static_cast<T>(plan.reduced);
    const auto emit_mean = emit_to(mean_out != nullptr ? *mean_out : out, computes);
    reduce<Loops>(context.threads, plan, source, mean, static_cast<const T*>(nullptr), partial,
                  [&](index_t at, index_t n, const T* values) {
                    for (index_t k = 0; k < n; ++k) {
                      means[at + k] = is_finite(values[k])
                                          ? values[k]
                                          : static_cast<T>(mean_in_double<T>(source, plan, at + k));
                    }
                    if (mean_out != nullptr) emit_mean(at, n, means + at);
                  });
    const double divisor = static_cast<double>(plan.reduced) - correction;
    Deviation<T> deviation{};
    deviation.divisor = static_cast<T>(divisor > 0 ? divisor : 0);
    const auto emit = emit_to(out, computes);
    reduce<Loops>(context.threads, plan, source, deviation, static_cast<const T*>(means), partial,
                  [&](index_t at, index_t n, const T* values) {
                    T finished[tile_width];
                    for (index_t k = 0; k < n; ++k)
                      finished[k] = finish(source, plan, at + k, values[k], means[at + k], divisor);
                    emit(at, n, finished);
                  });
  }

 private:
  static T finish(const Source& source, const Reduction& plan, index_t result, T variance, T mean,
                  double divisor) {
    constexpr bool root = spread == Spread::deviation;
    if constexpr (std::is_same_v<T, float>) {
      constexpr T few_digits = 1e-30f;  // squares nearer to 0 are no normal numbers
      const bool lost = !is_finite(variance) || (root && variance < few_digits);
      if (lost && is_finite(mean) && divisor > 0) {
        const double exact = variance_in_double<T>(source, plan, result, divisor);
        return static_cast<T>(root ? std::sqrt(exact) : exact);
      }
    }
    return root ? std::sqrt(variance) : variance;
  }
};

/// And the mean.
template <class Loops, class E, Spread spread>
struct VarianceAndMean : Variance<Loops, E, Maybe<Scalar>, spread> {
  using Alone = Variance<Loops, E, Maybe<Scalar>, spread>;
  using typename Alone::Dims;
  static Error prepare(Context& context, Reduction& plan, AnyView<const E> self, Dims dims,
                       Maybe<Scalar> correction, bool keepdim, View<E> out, View<E>) {
    return Alone::prepare(context, plan, self, dims, correction, keepdim, out);
  }
  static Error run(Context& context, const Reduction& plan, AnyView<const E> self, Dims,
                   Maybe<Scalar> correction, bool keepdim, View<E> out, View<E> mean) {
    Alone::compute(context, plan, *self.ref, correction_of(correction, keepdim), *out.ref,
                   mean.ref);
    return Error::ok;
  }
};

using DimList_ = Span<const int64_t>;
using MaybeDims = Maybe<Span<const int64_t>>;

}  // namespace taper::portable
