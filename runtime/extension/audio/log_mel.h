/// The features that Whisper reads: logarithms of the energy in bands of frequencies, for each 10
/// ms of sound. A. Radford and others, "Robust speech recognition via large-scale weak
/// supervision", arXiv:2212.04356.
#pragma once
#include <cstddef>
#include <vector>

#include "taper/runtime/core/span.h"

namespace taper::audio {

class LogMel {
 public:
  static constexpr int rate = 16000, hop = 160, window = 400;

  /// `bands`: 80, or 128 for Whisper's third large version.
  explicit LogMel(int bands);

  /// Features (bands, frames) of a sound with 16000 samples a second. Where the sound is shorter
  /// than the frames, silence follows; where it is longer, the rest is left out.
  std::vector<float> operator()(Span<const float> samples, int frames) const;

 private:
  /// One band: a triangle over neighbouring frequencies.
  struct Band {
    int first = 0;
    std::vector<float> weights;
  };
  void energies(const float* frame, float* powers) const;
  float band_energy(const Band& band, const float* powers) const;

  std::vector<float> hann_, cos_, sin_;
  std::vector<Band> bands_;
};

}  // namespace taper::audio
