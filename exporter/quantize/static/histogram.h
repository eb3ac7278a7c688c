// How often the values of an activation occur.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "taper/exporter/quantize/static/grid.h"

namespace taper::quantize {

/// Counts of values in bins of one width. The width is a power of two, and bins lie at its
/// multiples. So a wider range merges pairs of bins exactly, and the counts do not depend on the
/// order of the values. Zeros are counted apart, because a grid holds 0 exactly.
class Histogram {
 public:
  /// There are at most so many bins. They cover all values and 0.
  static constexpr int64_t most_bins = 4096;

  /// `elements` are finite and lie in [low, high].
  void add(std::span<const float> elements, float low, float high);

  const std::vector<int64_t>& counts() const { return counts_; }
  int64_t zeros() const { return zeros_; }
  int64_t total() const { return total_; }
  double width() const { return width_; }
  /// The lower edge of a bin. `bin` may be the number of bins: the upper edge of the last one.
  double edge(size_t bin) const {
    return width_ * static_cast<double>(first_ + static_cast<int64_t>(bin));
  }

  /// The value below which the part `p` of all values lies.
  double quantile(double p) const;

  /// The part of all values that lie outside [low, high], which contains 0. Values count as spread
  /// evenly over their bins.
  double part_outside(double low, double high) const;

  /// The sum of (x - q(x))² over all values, where q rounds to the grid and clamps. Values count as
  /// spread evenly over their bins. Under this assumption the sum is exact.
  double squared_error(const Grid& grid) const;

 private:
  void cover(double low, double high);
  void merge_pairs();

  double width_ = 0;   ///< 0: no value yet but zeros
  int64_t first_ = 0;  ///< the first bin begins at first_ * width_
  std::vector<int64_t> counts_;
  int64_t zeros_ = 0, total_ = 0;
};

}  // namespace taper::quantize
