#include "taper/runtime/extension/audio/log_mel.h"

#include <algorithm>
#include <cmath>

namespace taper::audio {
namespace {

constexpr double pi = 3.14159265358979323846;
constexpr int half = LogMel::window / 2, bins = half + 1;

/// The mel scale of M. Slaney, "Auditory toolbox", 1998: linear up to 1000 Hz, where it has 15
/// steps, then a factor of 6.4 in 27 steps.
constexpr double linear_end = 1000, linear_steps = 15;
double step_factor() { return std::log(6.4) / 27; }

double mel_of(double hertz) {
  if (hertz < linear_end) return hertz * linear_steps / linear_end;
  return linear_steps + std::log(hertz / linear_end) / step_factor();
}
double hertz_of(double mel) {
  if (mel < linear_steps) return mel * linear_end / linear_steps;
  return linear_end * std::exp((mel - linear_steps) * step_factor());
}

/// The samples around the middle of a frame. Before its start a sound is mirrored, and so it is
/// behind its end.
void cut(Span<const float> samples, index_t length, index_t middle, float* frame) {
  for (index_t i = 0; i < LogMel::window; ++i) {
    index_t at = middle - half + i;
    if (at < 0) at = -at;
    if (at >= length) at = 2 * (length - 1) - at;
    frame[i] = at >= 0 && at < samples.size() ? samples[at] : 0;
  }
}

/// Energies as Whisper scales them: 8 powers of ten below the largest one, then about -1...1.
void compress(std::vector<float>& features) {
  constexpr float least = 1e-10f, depth = 8;
  float largest = -INFINITY;
  for (float& x : features) x = std::log10(std::max(x, least)), largest = std::max(largest, x);
  for (float& x : features) x = (std::max(x, largest - depth) + 4) / 4;
}

}  // namespace

LogMel::LogMel(int bands) {
  for (int i = 0; i < window; ++i)
    hann_.push_back(static_cast<float>(0.5 - 0.5 * std::cos(2 * pi * i / window)));
  for (int i = 0; i <= half; ++i)
    for (int k = 0; k < bins; ++k) {
      const double angle = 2 * pi * (k * i % window) / window;
      cos_.push_back(static_cast<float>(std::cos(angle)));
      sin_.push_back(static_cast<float>(std::sin(angle)));
    }
  const double last = mel_of(rate / 2.0);
  const auto edge = [&](int i) { return hertz_of(last * i / (bands + 1)); };
  for (int b = 0; b < bands; ++b) {
    const double low = edge(b), top = edge(b + 1), high = edge(b + 2);
    Band band;
    for (int k = 0; k < bins; ++k) {
      const double hertz = static_cast<double>(rate) * k / window;
      const double weight = std::min((hertz - low) / (top - low), (high - hertz) / (high - top));
      if (weight <= 0) continue;
      if (band.weights.empty()) band.first = k;
      band.weights.push_back(static_cast<float>(weight * 2 / (high - low)));
    }
    bands_.push_back(band);
  }
}

/// A discrete Fourier transform. Cosines are even and sines odd about the middle of the frame, so
/// sums and differences of mirrored samples halve the work.
void LogMel::energies(const float* frame, float* powers) const {
  float even[half + 1], odd[half + 1];
  even[0] = frame[0] * hann_[0], odd[0] = 0;
  for (int i = 1; i < half; ++i) {
    const float a = frame[i] * hann_[static_cast<size_t>(i)];
    const float b = frame[window - i] * hann_[static_cast<size_t>(window - i)];
    even[i] = a + b, odd[i] = a - b;
  }
  even[half] = frame[half] * hann_[half], odd[half] = 0;
  float real[bins] = {}, imaginary[bins] = {};
  for (int i = 0; i <= half; ++i) {
    const float* c = cos_.data() + i * bins;
    const float* s = sin_.data() + i * bins;
    for (int k = 0; k < bins; ++k) real[k] += even[i] * c[k], imaginary[k] += odd[i] * s[k];
  }
  for (int k = 0; k < bins; ++k) powers[k] = real[k] * real[k] + imaginary[k] * imaginary[k];
}

float LogMel::band_energy(const Band& band, const float* powers) const {
  float sum = 0;
  for (size_t i = 0; i < band.weights.size(); ++i)
    sum += band.weights[i] * powers[static_cast<size_t>(band.first) + i];
  return sum;
}

std::vector<float> LogMel::operator()(Span<const float> samples, int frames) const {
  const index_t length = index_t{frames} * hop;
  std::vector<float> features(bands_.size() * static_cast<size_t>(frames));
  float frame[window], powers[bins];
  for (int f = 0; f < frames; ++f) {
    cut(samples, length, index_t{f} * hop, frame);
    energies(frame, powers);
    for (size_t b = 0; b < bands_.size(); ++b)
      features[b * static_cast<size_t>(frames) + static_cast<size_t>(f)] =
          band_energy(bands_[b], powers);
  }
  compress(features);
  return features;
}

}  // namespace taper::audio
