// How far a result may be from the expected one: the one rule of `taper check`, of the tests that
// programs carry, and of `taper compare`. Relative to the largest magnitude of the expected result.
#pragma once
#include <algorithm>

#include "taper/exporter/io/element.h"
#include "taper/runtime/core/dtype.h"

namespace taper::io {

/// Of a run that computes in this dtype: a few roundings, or a step of quantized values. Integers
/// that are one apart exceed it, so they must be equal.
constexpr double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 2e-2;
    case DType::i8:
      return 5e-2;
    case DType::bf16:
    case DType::f8_e4m3fn:
      return 1e-1;
    case DType::f8_e5m2:
      return 2e-1;
    default:
      return 1e-4;
  }
}

/// Of a run that computes in several dtypes: the largest of theirs.
class Tolerance {
 public:
  void add(DType dtype) { value_ = std::max(value_, tolerance_of(dtype)); }
  double value() const { return value_; }

 private:
  double value_ = tolerance_of(DType::f32);
};

/// How large the floating results of one call are: the largest magnitude in all of them, at most 1.
class Scale {
 public:
  void add(const Array& result) {
    if (is_floating(result.dtype) || is_complex(result.dtype))
      value_ = std::min(1.0, std::max(value_, largest_magnitude(result)));
  }
  double value() const { return value_; }

 private:
  double value_ = 0;
};

/// A result may be a sum whose terms cancel, such as the gradient of a bias before a normalization.
/// What is left of the sum is rounding. So this difference is allowed too, whatever the magnitude
/// of the result.
constexpr double allowed_difference(double tolerance, double scale) {
  return tolerance / 100 * scale;
}

}  // namespace taper::io
