#include "taper/exporter/quantize/static/histogram.h"

#include <algorithm>
#include <cmath>

namespace taper::quantize {
namespace {

/// The integral of (t - q(t))² over t from the grid's zero to x.
class IntegratedError {
 public:
  explicit IntegratedError(const Grid& grid)
      : scale_(grid.scale), low_(grid.low()), high_(grid.high()) {}

  double operator()(double x) const {
    const double inside = std::clamp(x, low_, high_), outside = x - inside;
    const double u = inside / scale_, cell = std::nearbyint(u), r = u - cell;
    // A whole cell, half a step to either side of an integer, gives 1/12.
    return scale_ * scale_ * scale_ * (cell / 12 + r * r * r / 3) + outside * outside * outside / 3;
  }

 private:
  double scale_, low_, high_;
};

}  // namespace

void Histogram::add(std::span<const float> elements, float low, float high) {
  total_ += static_cast<int64_t>(elements.size());
  if (low == 0 && high == 0) {
    zeros_ += static_cast<int64_t>(elements.size());
    return;
  }
  cover(std::min(low, 0.0f), std::max(high, 0.0f));
  const double bins_per_unit = 1 / width_;
  for (const float x : elements) {
    if (x == 0) {
      ++zeros_;
      continue;
    }
    const auto bin = static_cast<int64_t>(std::floor(x * bins_per_unit)) - first_;
    ++counts_[static_cast<size_t>(bin)];
  }
}

void Histogram::cover(double low, double high) {
  if (width_ == 0) {
    int exponent = 0;
    std::frexp((high - low) / static_cast<double>(most_bins), &exponent);
    width_ = std::ldexp(1.0, exponent - 1);  // at most the quotient
  }
  while (width_ * static_cast<double>(most_bins) < high - low) merge_pairs();
  const auto bin_of = [this](double x) { return static_cast<int64_t>(std::floor(x / width_)); };
  const auto end = [this] { return first_ + static_cast<int64_t>(counts_.size()); };
  while (std::max(bin_of(high) + 1, end()) - std::min(bin_of(low), first_) > most_bins)
    merge_pairs();
  if (counts_.empty()) first_ = bin_of(low);
  if (const int64_t missing = first_ - bin_of(low); missing > 0) {
    counts_.insert(counts_.begin(), static_cast<size_t>(missing), 0);
    first_ -= missing;
  }
  if (const int64_t missing = bin_of(high) + 1 - end(); missing > 0)
    counts_.resize(counts_.size() + static_cast<size_t>(missing));
}

void Histogram::merge_pairs() {
  width_ *= 2;
  const int64_t first = first_ >> 1;  // rounds down, below zero too
  std::vector<int64_t> merged;
  for (size_t i = 0; i < counts_.size(); ++i) {
    const auto bin = static_cast<size_t>(((first_ + static_cast<int64_t>(i)) >> 1) - first);
    merged.resize(bin + 1);
    merged[bin] += counts_[i];
  }
  first_ = first;
  counts_ = std::move(merged);
}

double Histogram::quantile(double p) const {
  double left = p * static_cast<double>(total_);
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (first_ + static_cast<int64_t>(i) == 0) {
      if (left <= static_cast<double>(zeros_)) return 0;
      left -= static_cast<double>(zeros_);
    }
    const auto n = static_cast<double>(counts_[i]);
    if (n > 0 && left <= n) return edge(i) + width_ * std::max(left, 0.0) / n;
    left -= n;
  }
  return edge(counts_.size());
}

double Histogram::part_outside(double low, double high) const {
  double outside = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    const double inside = std::min(edge(i + 1), high) - std::max(edge(i), low);
    outside += static_cast<double>(counts_[i]) * (1 - std::max(inside, 0.0) / width_);
  }
  return total_ == 0 ? 0 : outside / static_cast<double>(total_);
}

double Histogram::squared_error(const Grid& grid) const {
  if (width_ == 0) return 0;
  const IntegratedError integrated(grid);
  double sum = 0, before = integrated(edge(0));
  for (size_t i = 0; i < counts_.size(); ++i) {
    const double behind = integrated(edge(i + 1));
    sum += static_cast<double>(counts_[i]) * (behind - before);
    before = behind;
  }
  return sum / width_;
}

}  // namespace taper::quantize
