// Python's numbers in an exported graph: results of `sym_size` and `item`, and arithmetic with
// them.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "taper/exporter/eager/tensor.h"

namespace taper::pt2 {

/// An int, float or bool. An integer is a `Dim`, so it can be a size. A real may be a quotient of
/// two integers, so that `int(n / 2)` can be a size, too. A boolean may be a comparison that only a
/// run decides, so it can be a check. Every other number that depends on the run is a 0-dim tensor.
struct Number {
  Kind kind = Kind::integer;       ///< integer, real or boolean
  Dim numerator, denominator = 1;  ///< integer; boolean: 0 or 1; real: their quotient
  std::optional<double> real;      ///< a real that is known
  std::optional<Check> condition;  ///< a boolean that is true if this check holds
  eager::Tensor tensor;            ///< otherwise: 0-dim, i64, f64 or bool

  static Number of(Dim value);
  static Number of(bool value);
  static Number of(double value);
  static Number of(const Scalar& value);
  static Number of(eager::Tensor value);
  static Number of(Check condition);

  /// The dtype of a tensor of the number: i64, f64 or bool.
  DType dtype() const;
  bool is_dim() const { return !tensor.defined() && kind == Kind::integer; }
  bool is_known() const;
  /// The value; it must be known.
  Scalar value() const;
  /// The number as a size or an index. Throws EagerError if it is not an integer, or if it depends
  /// on the elements of a run.
  Dim dim() const;
  /// The number as a 0-dim tensor of `dtype`.
  eager::Tensor as_tensor(DType dtype) const;
};

/// A function on numbers that a graph calls by name: "_operator.add", "math.trunc",
/// "torch.sym_max".
using NumberFunction = Number (*)(std::span<const Number> operands);
struct NamedNumberFunction {
  std::string_view name;
  int operands;
  NumberFunction run;
};
/// The function of this name; nullptr if there is none.
const NamedNumberFunction* find_number_function(std::string_view name);

}  // namespace taper::pt2
