// Decompositions: composite operators, written in other operators. They run, and are traced, where
// no kernel computes the whole operator.
#pragma once
#include <initializer_list>
#include <optional>
#include <string_view>

#include "taper/exporter/eager/arguments.h"
#include "taper/exporter/eager/call.h"

namespace taper::eager {

using Results = std::vector<Tensor>;

struct Decomposition {
  const Operator* op;
  Results (*run)(const Boxed* arguments);
  bool rounds_once;  ///< f16 and bf16 arguments are computed in f32
  uint32_t follows;  ///< bit i: the results have the dtype that argument i promotes to, with others
                     ///< whose bits are set; 0: what comes out, or all arguments' if rounded once
  /// Whether no kernel for the whole computes these arguments; nullptr: all do.
  bool (*in_parts)(const Boxed* arguments) = nullptr;
};

/// All that are defined in this folder.
std::span<const Decomposition* const> common_decompositions();
/// Those in exporter/eager/rare, a library of its own: windows, integrals, and the observers of
/// quantization-aware training.
std::span<const Decomposition* const> rare_decompositions();

namespace internal {
template <const Operator& op>
consteval uint32_t follows(std::initializer_list<std::string_view> names) {
  uint32_t mask = 0;
  for (const std::string_view name : names)
    mask |= 1u << position_of(schema<op>, name);  // does not compile for a name not in the row
  return mask;
}
}  // namespace internal

namespace decompositions {

/// `dim`, counted from the front. Throws if self has no such dimension. A 0-dim tensor counts as
/// rank 1.
int64_t checked_dim(int64_t dim, int64_t rank, std::string_view op, const Tensor& self);
/// `t` with new dimensions of size 1, so that it has at least `rank`. They stand in front, and for
/// rank 3 behind.
Tensor with_rank(int rank, Tensor t);  // view.cpp
/// Throws if the elements of `t` are not known, as in a trace. The size of a result depends on
/// them.
void need_elements(const Tensor& t, std::string_view op);
/// 0, 1, …, count - 1 as i64.
Tensor positions(Dim count);
/// `sizes`, and `rest` behind them.
inline Dims joined(Dims sizes, std::initializer_list<Dim> rest) {
  sizes.insert(sizes.end(), rest);
  return sizes;
}
/// The argument `dtype`, if there is one.
template <const Operator& op>
std::optional<DType> dtype_of(const Arguments<op>& a) {
  return a.template has<"dtype">() ? std::optional(a.template dtype<"dtype">()) : std::nullopt;
}

}  // namespace decompositions
}  // namespace taper::eager

/// Defines a decomposition, in namespace taper::eager::decompositions. The build finds and lists
/// it.
///
///   TAPER_DECOMPOSITION(square) { return {mul(a.tensor<"self">(), a.tensor<"self">())};
///   }
#define TAPER_DECOMPOSITION(op) TAPER_DECOMPOSITION_AS(op, false, nullptr)

/// The same for arithmetic that is one kernel in PyTorch. With f16 and bf16 arguments it is
/// computed in f32, and only the results are rounded. The results have the dtype that all arguments
/// promote to. If they follow only some arguments, name these after the operator.
#define TAPER_DECOMPOSITION_ROUNDED_ONCE(op, ...) \
  TAPER_DECOMPOSITION_AS(op, true, nullptr, __VA_ARGS__)

#define TAPER_DECOMPOSITION_AS(op, rounds_once, in_parts, ...)                                   \
  static Results op##_decomposition(const Arguments<::taper::ops::op>& a);                       \
  extern const Decomposition op##_entry; /* not `op`, the function that bodies call */           \
  const Decomposition op##_entry{                                                                \
      &::taper::ops::op,                                                                         \
      [](const Boxed* boxed) { return op##_decomposition(Arguments<::taper::ops::op>(boxed)); }, \
      rounds_once, internal::follows<::taper::ops::op>({__VA_ARGS__}), in_parts};                \
  static Results op##_decomposition([[maybe_unused]] const Arguments<::taper::ops::op>& a)
