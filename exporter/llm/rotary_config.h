// The frequencies of a rotary embedding, with the scalings that stretch it to longer texts.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace taper::llm {

struct Rotary {
  int64_t dims = 0;                ///< features of a head that are turned: the first ones
  bool interleaved = false;        ///< pairs are neighbours, else the same places of both halves
  std::vector<float> frequencies;  ///< dims / 2; empty: no rotary embedding
  std::vector<float> long_frequencies;  ///< of LongRoPE; else empty
  int64_t original_context = 0;
  double scaling = 1;  ///< of cos and sin

  /// Whether LongRoPE turns with its long factors in caches of so many positions. All texts of a
  /// program are turned alike, because keys in caches stay as they are.
  bool is_long(int64_t capacity) const {
    return !long_frequencies.empty() && capacity > original_context;
  }
};

/// What a configuration says. `type`: "default", "linear", "dynamic", "yarn", "llama3", "longrope".
struct RotaryScaling {
  std::string type = "default";
  double theta = 10000, factor = 1;
  double low_freq_factor = 1, high_freq_factor = 4;  ///< llama3
  double beta_fast = 32, beta_slow = 1;              ///< yarn
  double mscale = 0, mscale_all_dim = 0;             ///< yarn
  bool truncate = true;                              ///< yarn: its bounds are whole numbers
  double attention_factor = 0;                       ///< 0: as the type says
  int64_t original_context = 0;
  std::vector<double> short_factor, long_factor;  ///< longrope
};

/// Tables for a head are computed before its weights are read. So a head has a largest size.
inline constexpr int64_t most_head_features = 16384;

/// The formulas are those of the papers: linear interpolation (S. Chen and others,
/// arXiv:2306.15595), YaRN (B. Peng and others, arXiv:2309.00071), LongRoPE (Y. Ding and others,
/// arXiv:2402.13753); llama3: Meta's reference code. "dynamic" changes nothing up to the context
/// that the model was trained for. Throws ExportError for unknown types and factors that do not
/// fit.
Rotary make_rotary(const RotaryScaling& scaling, int64_t dims, bool interleaved);

}  // namespace taper::llm
