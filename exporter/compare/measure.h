// How far two tensors are from each other.
#pragma once
#include <optional>
#include <string>

#include "taper/exporter/io/recorded_calls.h"

namespace taper::compare {

/// The distance of `got` from `want`. Floats of different types are compared by value; other types,
/// and sizes, must be equal. Two NaNs are equal, and so are two infinities of one sign. A NaN or an
/// infinity beside anything else is infinitely far.
struct Measure {
  io::Difference difference;  ///< the largest, also relative to the largest magnitude of `want`;
                              ///< integers: `relative` is absolute
  /// The largest difference in steps from one float to the next, in the coarser of the two types.
  /// It is large where values near zero differ in sign. Empty for integers.
  std::optional<double> ulp;
  /// Of the angle between the two, taken as vectors: 1 if they differ at most by a positive factor.
  /// 1 for two vectors of zeros, 0 for one, NaN if `difference` is infinite. Nothing for integers.
  std::optional<double> cosine;

  /// Floats that are at most one step apart are as near as their types allow, whatever the
  /// tolerance.
  bool exceeds(double tolerance) const {
    if (!difference.other.empty()) return true;
    return difference.relative > tolerance && !(ulp && *ulp <= 1);
  }
};

Measure measure(const io::Array& got, const io::Array& want);

}  // namespace taper::compare
