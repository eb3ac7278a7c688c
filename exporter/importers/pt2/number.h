// Python's numbers in an exported graph: what `sym_size`, `item` and arithmetic on them give.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "taper/exporter/eager/tensor.h"

namespace taper::pt2 {

/// An int, float or bool. Integers are `Dim`, so they can be sizes; a real is a quotient of two
/// integers where it is one, so that `int(n / 2)` can be a size, too; a boolean may be a comparison
/// that only a run will decide, so that it can be a check. Whatever else depends on the run is a
/// 0-dim tensor.
struct Number {
  Kind kind = Kind::integer;       ///< integer, real or boolean
  Dim numerator, denominator = 1;  ///< integer; boolean: 0 or 1; real: their quotient
  std::optional<double> real;      ///< of a real that is known
  std::optional<Check> condition;  ///< of a boolean: true if this holds
  eager::Tensor tensor;            ///< else: 0-dim, i64, f64 or bool

  static Number of(Dim value);
  static Number of(bool value);
  static Number of(double value);
  static Number of(const Scalar& value);
  static Number of(eager::Tensor value);
  static Number of(Check condition);

  /// i64, f64 or bool.
  DType dtype() const;
  bool is_dim() const { return !tensor.defined() && kind == Kind::integer; }
  bool is_known() const;
  /// Of a number that is known.
  Scalar value() const;
  /// As a size or an index. Throws EagerError if only the run's elements tell it, or if it is no
  /// integer.
  Dim dim() const;
  /// As a 0-dim tensor of `dtype`.
  eager::Tensor as_tensor(DType dtype) const;
};

/// A function on numbers by its name in the graph: "_operator.add", "math.trunc", "torch.sym_max".
using NumberFunction = Number (*)(std::span<const Number> operands);
struct NamedNumberFunction {
  std::string_view name;
  int operands;
  NumberFunction run;
};
/// nullptr: there is none of this name.
const NamedNumberFunction* find_number_function(std::string_view name);

}  // namespace taper::pt2
