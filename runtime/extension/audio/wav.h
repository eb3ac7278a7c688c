/// Reads sounds out of WAV files.
///
///   std::string why;
///   taper::Result<taper::audio::Sound> sound = taper::audio::read_wav("speech.wav", &why);
///   if (!sound.ok()) return fail(why);
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "taper/runtime/core/result.h"
#include "taper/runtime/core/span.h"

namespace taper::audio {

/// One channel.
struct Sound {
  int rate = 0;                ///< samples a second
  std::vector<float> samples;  ///< in -1...1
};

/// A WAV file with samples of 8, 16, 24 or 32 bits, or of 32-bit floating point. Several channels
/// become their mean. `why` says what is wrong.
Result<Sound> read_wav(const std::string& path, std::string* why = nullptr);
/// The same of a file in memory.
Result<Sound> parse_wav(Span<const std::byte> file, std::string* why = nullptr);

}  // namespace taper::audio
