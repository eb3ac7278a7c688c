// The distance between two tensors.
#pragma once
#include <optional>
#include <string>

#include "taper/exporter/io/recorded_calls.h"
#include "taper/exporter/io/tolerance.h"

namespace taper::compare {

/// The distance of `got` from `want`. Floats of different types are compared by value. All other
/// types, and sizes, must be equal. Two NaNs are equal, and so are two infinities of the same sign.
/// A NaN or an infinity is infinitely far from everything else.
struct Measure {
  io::Difference difference;  ///< the largest, also relative to the largest magnitude of `want`;
                              ///< for integers, `relative` is the same as absolute
  /// The largest difference, counted in steps from one float to the next in the coarser of the two
  /// types. It is large if values near zero differ in sign. Empty for integers.
  std::optional<double> ulp;
  /// The cosine of the angle between both, taken as vectors. 1 if they differ only by a positive
  /// factor, and for two zero vectors. 0 if one vector is zero. NaN if `difference` is infinite.
  /// Empty for integers.
  std::optional<double> cosine;
  double scale = 0;  ///< io::Scale of the call; 0: only `difference.relative` counts

  /// Floats that are at most one step apart are as close as their types allow, so they always fit.
  bool exceeds(double tolerance) const {
    if (!difference.other.empty()) return true;
    return difference.relative > tolerance && !(ulp && *ulp <= 1) &&
           difference.absolute > io::allowed_difference(tolerance, scale);
  }
};

Measure measure(const io::Array& got, const io::Array& want);

}  // namespace taper::compare
