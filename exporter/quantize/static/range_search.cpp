#include "taper/exporter/quantize/static/range_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace taper::quantize {
namespace {

/// A range as parts of the observed one.
struct Parts {
  double low = 1, high = 1;
};

class LeastError {
 public:
  LeastError(const Histogram& histogram, float low, float high)
      : histogram_(histogram), low_(std::min(low, 0.0f)), high_(std::max(high, 0.0f)) {}

  Grid grid_of(const Parts& parts) const {
    return affine_grid(static_cast<float>(low_ * parts.low),
                       static_cast<float>(high_ * parts.high));
  }
  /// Keeps `parts` if they are better than the best ones so far.
  bool take_if_better(const Parts& parts) {
    const double error = histogram_.squared_error(grid_of(parts));
    if (error >= least_) return false;
    least_ = error, best_ = parts;
    return true;
  }
  const Parts& best() const { return best_; }

  /// Tries all pairs of tenths, where an end that is 0 has one choice.
  void try_tenths() {
    for (int low = 10; low >= (low_ == 0 ? 10 : 1); --low)
      for (int high = 10; high >= (high_ == 0 ? 10 : 1); --high)
        take_if_better({low / 10.0, high / 10.0});
  }
  /// Moves one end at a time, by ever smaller steps.
  void descend() {
    for (double step = 0.05; step > 0.0005;) {
      const Parts from = best_;
      bool moved = false;
      for (const double by : {-step, step}) {
        moved |= low_ < 0 && take_if_better({inside(from.low + by), from.high});
        moved |= high_ > 0 && take_if_better({from.low, inside(from.high + by)});
      }
      if (!moved) step /= 2;
    }
  }

 private:
  static double inside(double part) { return std::clamp(part, 0.001, 1.0); }

  const Histogram& histogram_;
  float low_, high_;
  Parts best_;
  double least_ = std::numeric_limits<double>::infinity();
};

/// The divergence of the values on the grid from the clipped values. Both are distributions over
/// the histogram's bins.
double divergence(const Histogram& histogram, const Grid& grid) {
  const std::vector<int64_t>& counts = histogram.counts();
  struct Level {
    double values = 0;
    int bins = 0;
  };
  std::array<Level, 256> levels{};
  std::vector<double> clipped(counts.size());
  std::vector<int> level_of(counts.size(), -1);
  size_t first = counts.size(), last = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double middle = histogram.edge(i) + histogram.width() / 2;
    if (middle < grid.low() || middle > grid.high()) continue;
    first = std::min(first, i), last = i;
    const auto q = static_cast<int64_t>(std::nearbyint(middle / grid.scale)) + grid.zero_point;
    level_of[i] = static_cast<int>(std::clamp(q, grid.lowest, grid.highest) - grid.lowest);
    if (counts[i] == 0) continue;
    Level& level = levels[static_cast<size_t>(level_of[i])];
    level.values += static_cast<double>(counts[i]);
    ++level.bins;
  }
  if (first > last) return std::numeric_limits<double>::infinity();
  double total = 0, kept = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const auto n = static_cast<double>(counts[i]);
    clipped[std::clamp(i, first, last)] += n;
    total += n;
    if (level_of[i] >= 0) kept += n;
  }
  if (kept == 0) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (size_t i = first; i <= last; ++i) {
    if (clipped[i] == 0) continue;
    const Level& level = levels[static_cast<size_t>(level_of[i])];
    // An end bin may hold clipped values alone. Then one value in all keeps the logarithm finite.
    const double rounded = counts[i] == 0 ? 1 : level.values / level.bins;
    sum += clipped[i] / total * std::log(clipped[i] / total * kept / rounded);
  }
  return sum;
}

/// Clips magnitudes by one limit, and takes the limit of least cost. Below an eighth of the largest
/// magnitude, a step of the grid would be smaller than a bin.
Grid best_limit(const Histogram& histogram, float low, float high,
                const std::function<double(const Grid&)>& cost) {
  Grid best = affine_grid(low, high);
  if (histogram.width() == 0) return best;
  double least = cost(best);
  const float most = std::max(-low, high);
  for (int part = 127; part >= 16; --part) {
    const float limit = most * static_cast<float>(part) / 128;
    const Grid grid = affine_grid(std::max(low, -limit), std::min(high, limit));
    const double here = cost(grid);
    if (here < least) least = here, best = grid;
  }
  return best;
}

}  // namespace

Grid grid_of_percentile(const Histogram& histogram, double percent) {
  if (histogram.width() == 0) return affine_grid(0, 0);
  const double p = percent / 100;
  return affine_grid(static_cast<float>(histogram.quantile(1 - p)),
                     static_cast<float>(histogram.quantile(p)));
}

Grid grid_of_least_error(const Histogram& histogram, float low, float high, bool ends_apart) {
  LeastError search(histogram, low, high);
  if (ends_apart) {
    search.try_tenths();
    search.descend();
    return search.grid_of(search.best());
  }
  return best_limit(histogram, low, high,
                    [&](const Grid& g) { return histogram.squared_error(g); });
}

Grid grid_of_least_divergence(const Histogram& histogram, float low, float high) {
  return best_limit(histogram, low, high, [&](const Grid& g) { return divergence(histogram, g); });
}

}  // namespace taper::quantize
