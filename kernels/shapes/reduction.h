// Rules of reductions, of the search for minima and maxima, and of running sums.
#pragma once
#include "taper/kernels/rule.h"
#include "taper/kernels/shapes/checks.h"

namespace taper {
namespace internal {

/// Removes the dimensions of a set (bit i: dimension i), or gives them size 1.
template <class D>
void drop_dims(const TensorType<D>& self, uint32_t set, bool keepdim, TensorType<D>& out) {
  out.rank = 0;
  for (int i = 0; i < self.rank; ++i) {
    const bool drops = (set >> i & 1) != 0;
    if (!drops || keepdim) out.sizes[out.rank++] = drops ? D(1) : self.sizes[i];
  }
}
inline uint32_t every_dim(int rank) { return (1u << rank) - 1; }

/// The set of a list of dimensions. Each may occur once; an empty list means all.
template <class D>
bool dim_set(Facts<D>& facts, int rank, Span<const int64_t> dims, uint32_t& set) {
  set = dims.empty() ? every_dim(rank) : 0;
  for (int64_t dim : dims) {
    if (!normalize_dim(facts, dim, rank)) return false;
    if (!facts.require((set >> dim & 1) == 0, TAPER_TEXT("dim {} appears twice"), dim))
      return false;
    set |= 1u << dim;
  }
  return true;
}
template <class D>
bool dim_set(Facts<D>& facts, int rank, const Maybe<Span<const int64_t>>& dims, uint32_t& set) {
  return dim_set(facts, rank, dims ? *dims : Span<const int64_t>(), set);
}
template <class D>
bool dim_set(Facts<D>& facts, int rank, int64_t dim, uint32_t& set) {
  if (!normalize_dim(facts, dim, rank)) return false;
  set = 1u << dim;
  return true;
}

/// Requires an element along each reduced dimension: no elements have no maximum.
template <class D>
bool has_elements(Facts<D>& facts, const TensorType<D>& self, uint32_t set) {
  for (int i = 0; i < self.rank; ++i)
    if ((set >> i & 1) != 0 &&
        !facts.at_least(self[i], D(1),
                        TAPER_TEXT("a reduced dimension has size {}, needs at least {}")))
      return false;
  return true;
}

template <class D>
bool needs_floating(Facts<D>& facts, DType dtype) {
  return facts.require(is_floating(dtype), TAPER_TEXT("needs a floating dtype; give dtype="));
}

/// The dtype of a result. `boolean` of u8 is u8, as in PyTorch.
enum class Result : uint8_t { same, floating, boolean };

template <Result result, class D>
bool result_dtype(Facts<D>& facts, DType self, TensorType<D>& out) {
  out.dtype = result == Result::boolean && self != DType::u8 ? DType::boolean : self;
  return result != Result::floating || needs_floating(facts, self);
}

/// self -> one element.
template <Promotion promotion_, Result result, bool needs_elements, class... S>
struct ReduceAllRule {
  static constexpr Promotion promotion = promotion_;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, S..., TensorType<D>& out) {
    out.rank = 0;
    return result_dtype<result>(facts, self.dtype, out) &&
           (!needs_elements || has_elements(facts, self, every_dim(self.rank)));
  }
};
/// self, dim(s), keepdim, ….
template <Promotion promotion_, Result result, bool needs_elements, class Dims, class... S>
struct ReduceRule {
  static constexpr Promotion promotion = promotion_;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Dims dims, bool keepdim, S...,
                    TensorType<D>& out) {
    uint32_t set = 0;
    if (!dim_set(facts, self.rank, dims, set)) return false;
    drop_dims(self, set, keepdim, out);
    return result_dtype<result>(facts, self.dtype, out) &&
           (!needs_elements || has_elements(facts, self, set));
  }
};
/// The position of a minimum or maximum, or its value and position.
struct ArgRule {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Maybe<int64_t> dim, bool keepdim,
                    TensorType<D>& out) {
    uint32_t set = every_dim(self.rank);
    if (dim && !dim_set(facts, self.rank, *dim, set)) return false;
    drop_dims(self, set, keepdim, out);
    out.dtype = DType::i64;
    return has_elements(facts, self, set);
  }
};
struct ExtremeRule {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, int64_t dim, bool keepdim,
                    TensorType<D>& values, TensorType<D>& indices) {
    uint32_t set = 0;
    if (!dim_set(facts, self.rank, dim, set)) return false;
    drop_dims(self, set, keepdim, values);
    values.dtype = self.dtype;
    indices.like(values, DType::i64);
    return has_elements(facts, self, set);
  }
};
struct ScanRule {
  static constexpr Promotion promotion = Promotion::integer_sum;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, int64_t dim, Maybe<DType>,
                    TensorType<D>& out) {
    out.like(self);
    return normalize_dim(facts, dim, self.rank);
  }
};

/// Running minima or maxima and their positions.
struct RunningExtremeRule {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, int64_t dim, TensorType<D>& values,
                    TensorType<D>& indices) {
    values.like(self);
    indices.like(self, DType::i64);
    return normalize_dim(facts, dim, self.rank);
  }
};

using SomeDims = Maybe<Span<const int64_t>>;

/// The rows any.dims and all.dims. An empty list reduces nothing here; only an absent one means
/// all.
struct TruthRule {
  static constexpr Promotion promotion = Promotion::truth;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, SomeDims dims, bool keepdim,
                    TensorType<D>& out) {
    uint32_t set = 0;
    if (!dim_set(facts, self.rank, dims, set)) return false;
    if (dims && dims->empty()) set = 0;
    drop_dims(self, set, keepdim, out);
    return result_dtype<Result::boolean>(facts, self.dtype, out);
  }
};

}  // namespace internal

#define TAPER_REDUCE_ALL_RULE(op, ...) \
  template <>                          \
  struct Rule<ops::op> : internal::ReduceAllRule<__VA_ARGS__> {};
#define TAPER_REDUCE_RULE(op, ...) \
  template <>                      \
  struct Rule<ops::op> : internal::ReduceRule<__VA_ARGS__> {};

TAPER_REDUCE_RULE(sum_dim_IntList, Promotion::integer_sum, internal::Result::same, false,
                  internal::SomeDims, Maybe<DType>)
TAPER_REDUCE_RULE(nansum, Promotion::integer_sum, internal::Result::same, false, internal::SomeDims,
                  Maybe<DType>)
TAPER_REDUCE_ALL_RULE(prod, Promotion::integer_sum, internal::Result::same, false, Maybe<DType>)
TAPER_REDUCE_RULE(prod_dim_int, Promotion::integer_sum, internal::Result::same, false, int64_t,
                  Maybe<DType>)
// integers without `dtype` become i64 and are refused
TAPER_REDUCE_ALL_RULE(mean, Promotion::integer_sum, internal::Result::floating, false, Maybe<DType>)
/// No elements have no minimum and no maximum, nor a sum of negative powers.
template <>
struct Rule<ops::linalg_vector_norm> {
  static constexpr Promotion promotion = Promotion::integer_sum;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Scalar ord, Maybe<DimList<D>> dim,
                    bool keepdim, Maybe<DType>, TensorType<D>& out) {
    // The schema says SymInt, but these are numbers.
    int64_t dims[max_rank];
    const int64_t n = self.rank > 0 ? self.rank : 1;
    const index_t count = dim ? dim->size() : 0;
    if (!facts.require(count <= n, TAPER_TEXT("{} dims of a tensor of rank {}"), count, self.rank))
      return false;
    for (index_t i = 0; i < count; ++i) {
      for (dims[i] = -n; dims[i] < n && !facts.proves_equal((*dim)[i], D(dims[i]));) ++dims[i];
      if (!facts.require(dims[i] < n, TAPER_TEXT("dim {} is outside [{}, {})"), (*dim)[i], -n, n))
        return false;
    }
    uint32_t set = 0;
    if (!internal::dim_set(facts, self.rank, Span<const int64_t>(dims, count), set)) return false;
    internal::drop_dims(self, set, keepdim, out);
    const double order = ord.to<double>();
    const bool needs_elements = order < 0 || order - order != 0;
    return internal::result_dtype<internal::Result::floating>(facts, self.dtype, out) &&
           (!needs_elements || internal::has_elements(facts, self, set));
  }
};
TAPER_REDUCE_RULE(mean_dim, Promotion::integer_sum, internal::Result::floating, false,
                  internal::SomeDims, Maybe<DType>)
TAPER_REDUCE_RULE(amax, Promotion::none, internal::Result::same, true, Span<const int64_t>)
TAPER_REDUCE_RULE(amin, Promotion::none, internal::Result::same, true, Span<const int64_t>)
TAPER_REDUCE_ALL_RULE(max, Promotion::none, internal::Result::same, true)
TAPER_REDUCE_ALL_RULE(min, Promotion::none, internal::Result::same, true)
TAPER_REDUCE_ALL_RULE(any, Promotion::truth, internal::Result::boolean, false)
TAPER_REDUCE_RULE(any_dim, Promotion::truth, internal::Result::boolean, false, int64_t)
TAPER_REDUCE_ALL_RULE(all, Promotion::truth, internal::Result::boolean, false)
TAPER_REDUCE_RULE(all_dim, Promotion::truth, internal::Result::boolean, false, int64_t)
#undef TAPER_REDUCE_ALL_RULE
#undef TAPER_REDUCE_RULE

template <>
struct Rule<ops::any_dims> : internal::TruthRule {};
template <>
struct Rule<ops::all_dims> : internal::TruthRule {};
template <>
struct Rule<ops::argmax> : internal::ArgRule {};
template <>
struct Rule<ops::argmin> : internal::ArgRule {};
template <>
struct Rule<ops::max_dim> : internal::ExtremeRule {};
template <>
struct Rule<ops::min_dim> : internal::ExtremeRule {};
template <>
struct Rule<ops::cumsum> : internal::ScanRule {};
template <>
struct Rule<ops::cumprod> : internal::ScanRule {};
template <>
struct Rule<ops::cummax> : internal::RunningExtremeRule {};
template <>
struct Rule<ops::cummin> : internal::RunningExtremeRule {};

template <>
struct Rule<ops::logcumsumexp> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, int64_t dim, TensorType<D>& out) {
    out.like(self);
    return normalize_dim(facts, dim, self.rank) &&
           facts.require(is_floating(self.dtype), TAPER_TEXT("needs a floating dtype"));
  }
};
template <>
struct Rule<ops::taper_linear_recurrence> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& a, const TensorType<D>& b, int64_t dim,
                    TensorType<D>& out) {
    out.like(b);
    return normalize_dim(facts, dim, b.rank) &&
           facts.require(is_floating(b.dtype), TAPER_TEXT("needs a floating dtype")) &&
           facts.require(a.dtype == b.dtype, TAPER_TEXT("a and b have different dtypes")) &&
           internal::same_sizes(facts, a, b, TAPER_TEXT("a has {} dimensions, b {}"),
                                TAPER_TEXT("a has extent {} where b has {}"));
  }
};

// The median is the lower of two middle elements. If an element is NaN, it is NaN.
template <>
struct Rule<ops::median> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, TensorType<D>& out) {
    out.rank = 0, out.dtype = self.dtype;
    return is_floating(self.dtype) ||
           internal::has_elements(facts, self, internal::every_dim(self.rank));
  }
};
template <>
struct Rule<ops::median_dim> : internal::ExtremeRule {};
template <>
struct Rule<ops::kthvalue> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, D k, int64_t dim, bool keepdim,
                    TensorType<D>& values, TensorType<D>& indices) {
    return internal::ExtremeRule::shape(facts, self, dim, keepdim, values, indices) &&
           facts.at_least(k, D(1), TAPER_TEXT("k is {}, must be at least {}")) &&
           facts.at_least(
               self.rank == 0 ? D(1) : self[static_cast<int>(dim < 0 ? dim + self.rank : dim)], k,
               TAPER_TEXT("the dimension has only {} elements, k is {}"));
  }
};

template <>
struct Rule<ops::var_correction> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, internal::SomeDims dims,
                    Maybe<Scalar>, bool keepdim, TensorType<D>& out) {
    uint32_t set = 0;
    if (!internal::dim_set(facts, self.rank, dims, set)) return false;
    internal::drop_dims(self, set, keepdim, out);
    out.dtype = self.dtype;
    return facts.require(is_floating(self.dtype), TAPER_TEXT("needs a floating dtype"));
  }
};
template <>
struct Rule<ops::std_correction> : Rule<ops::var_correction> {};
template <>
struct Rule<ops::var_mean_correction> {
  static constexpr Promotion promotion = Promotion::none;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, internal::SomeDims dims,
                    Maybe<Scalar> correction, bool keepdim, TensorType<D>& out,
                    TensorType<D>& mean) {
    if (!Rule<ops::var_correction>::shape(facts, self, dims, correction, keepdim, out))
      return false;
    mean.like(out);
    return true;
  }
};
template <>
struct Rule<ops::std_mean_correction> : Rule<ops::var_mean_correction> {};
template <>
struct Rule<ops::var_dim> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, internal::SomeDims dims, bool,
                    bool keepdim, TensorType<D>& out) {
    return Rule<ops::var_correction>::shape(facts, self, dims, Maybe<Scalar>(), keepdim, out);
  }
};

}  // namespace taper
