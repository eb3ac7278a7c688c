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
  const index_t partial = plan.pieces > 1 ? plan.results() * plan.pieces : 0;
  context.need_scratch(static_cast<size_t>(partial + extra) * sizeof(T));
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

/// The variance of the elements of one result, where squares in f32 overflow.
inline float variance_in_double(const Source& source, const Reduction& plan, index_t result,
                                double divisor) {
  const index_t first = result / plan.inner * plan.reduced * plan.inner + result % plan.inner;
  const auto sum_of = [&](const auto& map) {
    float buffer[tile_width];
    double sum = 0;
    for (index_t at = 0; at < plan.reduced;) {
      const index_t left = plan.reduced - at, n = plan.inner > 1      ? 1
                                                  : left < tile_width ? left
                                                                      : tile_width;
      const auto* x =
          static_cast<const float*>(read_block(source, first + at * plan.inner, n, buffer));
      for (index_t i = 0; i < n; ++i) sum += map(static_cast<double>(x[i]));
      at += n;
    }
    return sum;
  };
  const double mean = sum_of([](double x) { return x; }) / static_cast<double>(plan.reduced);
  const double sum = sum_of([mean](double x) { return (x - mean) * (x - mean); });
  return static_cast<float>(sum / divisor);
}

/// Two passes: means, then mean squares of the distances to them. Scratch: the means, then partial
/// sums.
template <class Loops, class E, class Correction>
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
    const DType computes = internal::computed_dtype<E>(*self.ref);
    const Source source = source_of<Loops>(*self.ref, plan.walk, computes);
    T* const means = static_cast<T*>(context.scratch);
    T* const partial = means + plan.results();
    Mean<T> mean{};
    mean.count = static_cast<T>(plan.reduced);
    reduce<Loops>(context.threads, plan, source, mean, static_cast<const T*>(nullptr), partial,
                  [means](index_t at, index_t n, const T* values) {
                    for (index_t k = 0; k < n; ++k) means[at + k] = values[k];
                  });
    const double divisor = static_cast<double>(plan.reduced) - correction_of(correction, keepdim);
    Deviation<T> deviation{};
    deviation.divisor = static_cast<T>(divisor > 0 ? divisor : 0);
    const auto emit = emit_to(*out.ref, computes);
    reduce<Loops>(context.threads, plan, source, deviation, static_cast<const T*>(means), partial,
                  [&](index_t at, index_t n, const T* values) {
                    if constexpr (std::is_same_v<T, float>) {
                      T finite[tile_width];
                      for (index_t k = 0; k < n; ++k)
                        finite[k] = !(values[k] - values[k] == 0) &&
                                            means[at + k] == means[at + k] && divisor > 0
                                        ? variance_in_double(source, plan, at + k, divisor)
                                        : values[k];
                      emit(at, n, finite);
                    } else {
                      emit(at, n, values);
                    }
                  });
    return Error::ok;
  }
};

using DimList_ = Span<const int64_t>;
using MaybeDims = Maybe<Span<const int64_t>>;

}  // namespace taper::portable
