#include "taper/exporter/llm/rotary_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "taper/exporter/base/error.h"

namespace taper::llm {
namespace {

using std::numbers::pi;

std::vector<double> plain(double theta, int64_t dims) {
  std::vector<double> f;
  for (int64_t i = 0; i < dims; i += 2)
    f.push_back(1 / std::pow(theta, static_cast<double>(i) / static_cast<double>(dims)));
  return f;
}

/// Slow frequencies are stretched, fast ones stay, those between are mixed.
double as_llama3(double f, const RotaryScaling& s) {
  const double waves = static_cast<double>(s.original_context) * f / (2 * pi);
  if (waves < s.low_freq_factor) return f / s.factor;
  if (waves > s.high_freq_factor) return f;
  const double kept = (waves - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  return (1 - kept) * f / s.factor + kept * f;
}

std::vector<double> as_yarn(const std::vector<double>& f, const RotaryScaling& s, int64_t dims) {
  const auto place_of = [&](double rotations) {
    return static_cast<double>(dims) *
           std::log(static_cast<double>(s.original_context) / (rotations * 2 * pi)) /
           (2 * std::log(s.theta));
  };
  double low = place_of(s.beta_fast), high = place_of(s.beta_slow);
  if (s.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, static_cast<double>(dims - 1));
  if (low == high) high += 0.001;
  std::vector<double> scaled;
  for (size_t i = 0; i < f.size(); ++i) {
    const double stretched = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    scaled.push_back(f[i] / s.factor * stretched + f[i] * (1 - stretched));
  }
  return scaled;
}

double yarn_attention(const RotaryScaling& s) {
  const auto scale = [&](double m) { return s.factor <= 1 ? 1 : 0.1 * m * std::log(s.factor) + 1; };
  if (s.mscale != 0 && s.mscale_all_dim != 0) return scale(s.mscale) / scale(s.mscale_all_dim);
  return scale(1);
}

std::vector<double> divided(std::vector<double> f, const std::vector<double>& by,
                            const char* name) {
  if (by.size() != f.size())
    throw ExportError(std::string("rotary embedding: ") + name + " has " +
                      std::to_string(by.size()) + " numbers, needs " + std::to_string(f.size()));
  for (size_t i = 0; i < f.size(); ++i) f[i] /= by[i];
  return f;
}

double longrope_attention(const RotaryScaling& s) {
  if (s.factor <= 1) return 1;
  return std::sqrt(1 + std::log(s.factor) / std::log(static_cast<double>(s.original_context)));
}

std::vector<float> in_f32(const std::vector<double>& f) { return {f.begin(), f.end()}; }

}  // namespace

Rotary make_rotary(const RotaryScaling& s, int64_t dims, bool interleaved) {
  if (dims < 2 || dims % 2 != 0)
    throw ExportError("rotary embedding: " + std::to_string(dims) +
                      " features; an even number is needed");
  if (dims > most_head_features)
    throw ExportError("rotary embedding: " + std::to_string(dims) + " features; a head can have " +
                      std::to_string(most_head_features));
  const bool needs_context = s.type == "llama3" || s.type == "yarn" || s.type == "longrope";
  if (needs_context && s.original_context <= 0)
    throw ExportError("rotary embedding " + s.type +
                      ": original_max_position_embeddings is missing");
  Rotary r{dims, interleaved, {}, {}, s.original_context, 1};
  std::vector<double> f = plain(s.theta, dims);
  if (s.type == "linear") {
    for (double& x : f) x /= s.factor;
  } else if (s.type == "llama3") {
    for (double& x : f) x = as_llama3(x, s);
  } else if (s.type == "yarn") {
    f = as_yarn(f, s, dims);
    r.scaling = yarn_attention(s);
  } else if (s.type == "longrope") {
    r.long_frequencies = in_f32(divided(f, s.long_factor, "long_factor"));
    f = divided(f, s.short_factor, "short_factor");
    r.scaling = longrope_attention(s);
  } else if (s.type != "default" && s.type != "dynamic") {
    throw ExportError("rotary embedding of type \"" + s.type +
                      "\" is unknown; known are default, linear, dynamic, yarn, llama3, longrope");
  }
  if (s.attention_factor != 0) r.scaling = s.attention_factor;
  r.frequencies = in_f32(f);
  return r;
}

}  // namespace taper::llm
