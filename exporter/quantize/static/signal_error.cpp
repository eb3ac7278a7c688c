#include "taper/exporter/quantize/static/signal_error.h"

#include <cassert>
#include <cmath>
#include <limits>

namespace taper::quantize {

double decibels(double noise) {
  return noise == 0 ? std::numeric_limits<double>::infinity() : -10 * std::log10(noise);
}

void SignalError::add(std::span<const float> got, std::span<const float> want) {
  assert(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const double g = got[i], w = want[i];
    got_ += g * g, want_ += w * w, both_ += g * w;
    error_ += (g - w) * (g - w);
  }
}

double SignalError::noise() const {
  if (error_ == 0) return 0;
  return want_ == 0 ? std::numeric_limits<double>::infinity() : error_ / want_;
}

double SignalError::sqnr_db() const { return decibels(noise()); }

double SignalError::cosine() const {
  if (got_ == 0 || want_ == 0) return got_ == want_ ? 1 : 0;
  return both_ / std::sqrt(got_ * want_);
}

}  // namespace taper::quantize
