#include "taper/exporter/quantize/fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "taper/runtime/core/dtype.h"

namespace taper::quantize {
namespace {

/// Chooses the grid of neighbours that share one.
class GridFit {
 public:
  GridFit(const BlockFormat& format, std::span<const float> w, std::span<const float> importance)
      : format_(format), w_(w), importance_(importance) {
    const auto [low, high] = std::ranges::minmax(w_);
    low_ = low, high_ = high;
    // offsets of small integers are subtracted: they cannot be positive
    if (format_.scales == Scales::small_integers && format_.has_offset) low_ = std::min(low_, 0.0f);
    // and a zero point lies within the integers
    if (format_.zero_steps > 0) low_ = std::min(low_, 0.0f), high_ = std::max(high_, 0.0f);
  }

  BlockGrid by_range() const {
    return format_.scales == Scales::power_of_two ? power_of_two(0) : grid_of(1, false);
  }

  BlockGrid by_error() const {
    BlockGrid best = by_range();
    double least = error(best);
    const auto try_grid = [&](BlockGrid g) {
      g = stored(g);
      const double e = error(g);
      if (e < least) least = e, best = g;
    };
    if (format_.scales == Scales::power_of_two) {
      for (const int more : {-1, 1}) try_grid(power_of_two(more));
      return best;
    }
    constexpr int steps = 24;  // the range times 1, 0.975, … 0.4
    for (int i = 0; i <= steps; ++i) {
      const float part = 1 - 0.025f * static_cast<float>(i);
      const BlockGrid g = grid_of(part, false);
      try_grid(g);
      if (format_.zero_steps > 0) {
        const float step = g.scale / static_cast<float>(format_.zero_steps);
        for (const float steps : {-2.0f, -1.0f, 1.0f, 2.0f})
          try_grid({g.scale, g.offset + step * steps});
      }
      if (!format_.has_offset) try_grid(grid_of(part, true));
    }
    constexpr int refinements = 4;
    for (int i = 0; i < refinements; ++i) try_grid(refined(best));
    return best;
  }

 private:
  /// `part` of the range. `flipped`: the largest element goes to the highest integer; else, where
  /// there is no offset, to the lowest, which has the largest magnitude.
  BlockGrid grid_of(float part, bool flipped) const {
    const auto lowest = static_cast<float>(format_.lowest),
               highest = static_cast<float>(format_.highest);
    if (format_.has_offset) return stored({(high_ - low_) * part / highest, low_ * part});
    const float largest = -low_ > high_ ? low_ : high_;
    if (format_.levels != nullptr)  // to the level of the other sign, if flipped
      return stored({std::fabs(largest) * part / format_.levels->largest * (flipped ? -1 : 1), 0});
    return stored({largest * part / (flipped ? highest : lowest), 0});
  }

  /// The scale of the MX specification, section 6.3, and `more` doublings: the largest element has
  /// the exponent of the largest level.
  BlockGrid power_of_two(int more) const {
    const float largest = std::max(-low_, high_);
    if (largest == 0) return {};
    return {std::ldexp(1.0f, std::ilogb(largest) - std::ilogb(format_.levels->largest) + more), 0};
  }

  /// As the block will hold it. Scales that are small integers are rounded with those of the block.
  BlockGrid stored(BlockGrid g) const {
    if (format_.scales != Scales::half) return g;
    return stored_grid(format_, g);
  }

  double error(const BlockGrid& g) const {
    double sum = 0;
    for (size_t i = 0; i < w_.size(); ++i) {
      const double d =
          static_cast<double>(w_[i]) - value_of(format_, g, nearest(format_, g, w_[i]));
      sum += d * d * weight(i);
    }
    return sum;
  }

  /// The best scale and offset for the integers that a grid gives: least squares.
  BlockGrid refined(const BlockGrid& g) const {
    double n = 0, q1 = 0, q2 = 0, w1 = 0, qw = 0;
    for (size_t i = 0; i < w_.size(); ++i) {
      const double q = number_of(format_, nearest(format_, g, w_[i])), w = w_[i], a = weight(i);
      n += a, q1 += a * q, q2 += a * q * q, w1 += a * w, qw += a * q * w;
    }
    if (!format_.has_offset) return q2 > 0 ? BlockGrid{static_cast<float>(qw / q2), 0} : g;
    const double determinant = n * q2 - q1 * q1;
    if (!(determinant > 0)) return g;
    const double scale = (n * qw - q1 * w1) / determinant;
    double offset = (w1 - scale * q1) / n;
    if (format_.scales == Scales::small_integers) offset = std::min(offset, 0.0);
    return {static_cast<float>(scale), static_cast<float>(offset)};
  }

  double weight(size_t i) const { return importance_.empty() ? 1 : importance_[i]; }

  const BlockFormat& format_;
  std::span<const float> w_, importance_;
  float low_, high_;
};

}  // namespace

void fit_block(const BlockFormat& format, Fit how, std::span<const float> w,
               std::span<const float> importance, std::byte* block) {
  std::array<BlockGrid, most_grids> grids;
  const auto shared = static_cast<size_t>(format.shared);
  for (int g = 0; g < format.grids(); ++g) {
    const size_t first = static_cast<size_t>(g) * shared;
    const GridFit fit(format, w.subspan(first, shared),
                      importance.empty() ? importance : importance.subspan(first, shared));
    grids[static_cast<size_t>(g)] = how == Fit::mse ? fit.by_error() : fit.by_range();
  }
  write_grids(format, std::span(grids).first(static_cast<size_t>(format.grids())), block);
}

void round_block(const BlockFormat& format, std::span<const float> w, std::byte* block) {
  std::array<BlockGrid, most_grids> grids;
  std::array<int8_t, most_elements> values;
  read_grids(format, block, grids);
  for (int e = 0; e < format.elements; ++e)
    values[static_cast<size_t>(e)] = static_cast<int8_t>(
        nearest(format, grids[static_cast<size_t>(e / format.shared)], w[static_cast<size_t>(e)]));
  write_values(format, std::span(values).first(static_cast<size_t>(format.elements)), block);
}

}  // namespace taper::quantize
