// Shape rules: what an operator demands of its arguments, and what its results are. A rule is one
// function for each operator, a template over the extent type. With `Extent`, overflow-checked
// integers, it runs in eager and before every `prepare`. With `Dim`, symbolic sizes, it runs while
// tracing and importing. Rules keep memory safe: kernels trust the shapes and dtypes that a rule
// accepted.
#pragma once
#include <limits>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "taper/kernels/operators.h"
#include "taper/runtime/core/error.h"
#include "taper/runtime/core/tensor_ref.h"

namespace taper {

/// An extent whose arithmetic cannot overflow silently: a result outside int64 is `invalid()` and
/// stays so. `/` and `%` round towards minus infinity, as in Python.
struct Extent {
  static constexpr int64_t poison = std::numeric_limits<int64_t>::min();
  int64_t value;

  Extent() = default;
  constexpr Extent(int64_t v) : value(v) {}
  constexpr bool invalid() const { return value == poison; }

#define TAPER_CHECKED(op, builtin)                                                      \
  friend constexpr Extent operator op(Extent a, Extent b) {                             \
    int64_t r = 0;                                                                      \
    return a.invalid() || b.invalid() || builtin(a.value, b.value, &r) ? Extent(poison) \
                                                                       : Extent(r);     \
  }
  TAPER_CHECKED(+, __builtin_add_overflow)
  TAPER_CHECKED(-, __builtin_sub_overflow)
  TAPER_CHECKED(*, __builtin_mul_overflow)
#undef TAPER_CHECKED
  friend constexpr Extent operator/(Extent a, Extent b) {
    if (a.invalid() || b.invalid() || b.value == 0) return poison;
    const int64_t q = a.value / b.value;
    return (a.value % b.value != 0 && (a.value < 0) != (b.value < 0)) ? q - 1 : q;
  }
  friend constexpr Extent operator%(Extent a, Extent b) { return a - (a / b) * b; }
};

/// A tensor's type during shape inference. Only layout rules (views) use `strides` and `offset`.
template <class D>
struct TensorType {
  DType dtype = DType::f32;
  int rank = 0;
  bool present =
      true;  ///< a result that the arguments ask not to compute (`output_mask`) is not present
  D sizes[max_rank];
  D strides[max_rank];
  D offset = D(0);

  D& operator[](int i) { return sizes[i]; }
  const D& operator[](int i) const { return sizes[i]; }
  D numel() const {
    D n(1);
    for (int i = 0; i < rank; ++i) n = n * sizes[i];
    return n;
  }
  /// Takes the dtype and the sizes of another type.
  void like(const TensorType& other) { like(other, other.dtype); }
  void like(const TensorType& other, DType d) {
    dtype = d, rank = other.rank;
    for (int i = 0; i < rank; ++i) sizes[i] = other.sizes[i];
  }
};

/// `Tensor[]` as a rule sees it. Elements of a `Tensor?[]` may be absent (`present == false`).
template <class D>
struct TypeList {
  const void* source = nullptr;
  index_t count = 0;
  TensorType<D> (*read)(const void* source, index_t i) = nullptr;
  TensorType<D> operator[](index_t i) const { return read(source, i); }
};

/// `SymInt[]` as a rule sees it.
template <class D>
struct DimList {
  const void* source = nullptr;
  index_t count = 0;
  D (*read)(const void* source, index_t i) = nullptr;
  index_t size() const { return count; }
  D operator[](index_t i) const { return read(source, i); }
};

/// A `Scalar` for rules that make sizes of it: its integer may be an extent. A rule that takes a
/// plain `Scalar` may look at its kind, but not at the value of a symbolic one.
template <class D>
struct Number {
  bool is_real = false, is_bool = false;
  D integer = D(0);
  double real = 0;
};
/// Whether an extent is a number; `value` is then that number.
inline bool is_number(Extent e, int64_t& value) { return value = e.value, true; }

/// The questions that a rule may ask about extents; it never writes `if (a == b)`. `Facts<Extent>`
/// computes the answer. `Facts<Dim>` (host) proves it by ranges, or records a check that the
/// program evaluates when symbols are bound.
///
/// Messages are static texts with up to three `{}` for extents: "dim {} is outside [{}, {})". The
/// caller adds the operator's name in front and the arguments behind: `softmax: dim 3 is outside
/// [-2, 2) for self (2, 5)`.
template <class D>
struct Facts;

template <>
struct Facts<Extent> {
  const char* message = nullptr;  ///< the first requirement that does not hold
  int64_t values[3] = {0, 0, 0};
  bool failed = false;

  bool require(bool holds, const char* text, Extent a = 0, Extent b = 0, Extent c = 0) {
    if (!holds && !failed)
      failed = true, message = text, values[0] = a.value, values[1] = b.value, values[2] = c.value;
    return holds;
  }
  /// Whether an extent is known to be one. Broadcasting asks this: any other extent counts as
  /// another number.
  bool is_one(Extent d) { return d.value == 1; }
  bool equal(Extent a, Extent b, const char* text, Extent c = 0) {
    return require(a.value == b.value, text, a, b, c);
  }
  bool at_least(Extent a, Extent b, const char* text) {
    return require(a.value >= b.value, text, a, b);
  }
  bool less(Extent a, Extent b, const char* text) { return require(a.value < b.value, text, a, b); }
  /// Whether equality is known; never adds a check. For choices that are right either way, such as
  /// whether a result can be a view.
  bool proves_equal(Extent a, Extent b) { return a.value == b.value; }
  bool proves_less(Extent a, Extent b) { return a.value < b.value; }
  Extent max(Extent a, Extent b) { return a.value > b.value ? a : b; }
  Extent min(Extent a, Extent b) { return a.value < b.value ? a : b; }
};

/// Brings `dim` into [0, rank). A 0-dim tensor counts as rank 1.
template <class D>
bool normalize_dim(Facts<D>& facts, int64_t& dim, int rank,
                   const char* text = TAPER_TEXT("dim {} is outside [{}, {})")) {
  const int64_t n = rank > 0 ? rank : 1;
  if (!facts.require(dim >= -n && dim < n, text, dim, -n, n)) return false;
  if (dim < 0) dim += n;
  return true;
}

/// How the tensor arguments of an operator come to common dtypes before a kernel sees them. One
/// host function does it (exporter/eager/promotion.h), with visible casts. Rules and kernels may
/// rely on it.
enum class Promotion : uint8_t {
  none,    ///< arguments are taken as they are
  common,  ///< all tensor arguments (and Scalars) to their common dtype: add, where, cat, maximum,
           ///< comparisons
  conditional,      ///< the same, and `condition` from u8 to bool: where
  floating,         ///< integers to the default floating dtype: exp, sigmoid, mean
  common_floating,  ///< to the common dtype, integers to the default floating one: div, atan2
  integer_sum,      ///< bool and integers to i64, or to `dtype` if given: sum, prod, cumsum
  boolean,          ///< arguments to bool: logical_and
  truth,            ///< the same, but u8 stays: any, all
  index,    ///< `index`, a tensor of positions, from i32 (or without elements) to i64: gather,
            ///< scatter
  indices,  ///< `indices`, a list of them, too; a bool mask (or one of u8) becomes the positions
            ///< where it is true, one tensor for each of its dimensions: index, index_put
};

namespace internal {
struct NoRule {};
}  // namespace internal

/// Specialised for each operator in kernels/shapes/<family>.h:
///
///   template <> struct Rule<ops::_softmax> {
///     template <class D>
///     static bool shape(Facts<D>& facts, const TensorType<D>& self, int64_t dim, bool,
///     TensorType<D>& out) {…}
///   };
///
/// `static constexpr Promotion promotion` in front of `shape` says how arguments are brought to
/// common dtypes; without it, they are taken as they are.
///
/// Parameters follow the row: Tensor → const TensorType<D>&, Tensor? → const TensorType<D>*
/// (nullptr: absent), Tensor[] and Tensor?[] → TypeList<D>, SymInt → D, SymInt? → Maybe<D>,
/// SymInt[] → DimList<D>, SymInt[]? → Maybe<DimList<D>>, int → int64_t, int[] and bool[] →
/// Span<const int64_t>, float[] → Span<const double>, float → double, bool → bool, Scalar → Scalar
/// (or Number<D>), str → std::string_view, ScalarType → DType, `?` → Maybe<…>, results →
/// TensorType<D>&. A rule must set every result's dtype, rank and sizes; a layout rule (category
/// `view`) strides and offset too.
template <const Operator& op>
struct Rule : internal::NoRule {};

template <const Operator& op>
inline constexpr bool has_rule = !std::is_base_of_v<internal::NoRule, Rule<op>>;

/// How a rule's parameter is read from an argument: for `Extent` from slots (kernel.h), for `Dim`
/// from the host's boxed arguments (exporter/eager/boxed.h). A specialisation has `using Argument`
/// and `template <class P> static P read(const Argument&)`.
template <class D>
struct RuleReader;

namespace internal {

template <class P>
inline constexpr bool is_result =
    std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>>;

template <class D, class... P, size_t... i>
bool apply_rule(bool (*rule)(Facts<D>&, P...), Facts<D>& facts,
                const typename RuleReader<D>::Argument* arguments, TensorType<D>* results,
                std::index_sequence<i...>) {
  constexpr size_t inputs = (size_t{0} + ... + size_t{!is_result<P>});
  const auto read = [&](auto index) -> decltype(auto) {
    using Parameter_ = std::tuple_element_t<decltype(index)::value, std::tuple<P...>>;
    if constexpr (is_result<Parameter_>)
      return static_cast<Parameter_>(results[decltype(index)::value - inputs]);
    else
      return RuleReader<D>::template read<std::decay_t<Parameter_>>(
          arguments[decltype(index)::value]);
  };
  return rule(facts, read(std::integral_constant<size_t, i>{})...);
}

template <class D, class... P>
bool apply_rule(bool (*rule)(Facts<D>&, P...), Facts<D>& facts,
                const typename RuleReader<D>::Argument* arguments, TensorType<D>* results) {
  return apply_rule<D>(rule, facts, arguments, results, std::index_sequence_for<P...>{});
}

}  // namespace internal

/// Runs an operator's rule on arguments without their C++ types: those that reach kernels, in the
/// row's order.
template <const Operator& op, class D>
bool run_rule(Facts<D>& facts, const typename RuleReader<D>::Argument* arguments,
              TensorType<D>* results) {
  static_assert(
      has_rule<op>,
      "this operator has no shape rule: write one in kernels/shapes/ and include it here");
  return internal::apply_rule<D>(&Rule<op>::template shape<D>, facts, arguments, results);
}

}  // namespace taper
