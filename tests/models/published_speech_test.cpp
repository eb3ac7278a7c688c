// silero-vad, which says for every 32 ms of sound whether somebody speaks, over a whole recording:
// each chunk is given the state that the one before left.
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "taper/exporter/io/file.h"
#include "taper/tests/models/imported.h"

namespace taper {
namespace {

using tests::Imported;
TAPER_PUBLISHED(published_speech_detector);

/// The samples of a 16 bit WAV file with one channel, in -1...1. Throws std::runtime_error.
std::vector<float> read_wav(const std::filesystem::path& path) {
  const io::Bytes file = io::read_file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const size_t at = text.find("data");
  if (!text.starts_with("RIFF") || at == text.npos || at + 8 > text.size())
    throw std::runtime_error(path.string() + ": not a WAV file");
  std::vector<int16_t> samples((file.size() - at - 8) / 2);
  std::memcpy(samples.data(), file.data() + at + 8, samples.size() * 2);
  std::vector<float> scaled;
  for (const int16_t s : samples) scaled.push_back(static_cast<float>(s) / 32768);
  return scaled;
}

TEST_P(published_speech_detector, hears_the_speech_of_a_whole_minute) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "pt2/silero_vad_16k.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(recording, "audio/silero_test.wav");
  TAPER_GOLDEN_DATA_OR_SKIP(golden, "checkpoints/silero_vad/golden_probs_silero_test.json");
  const auto want =
      nlohmann::json::parse(std::ifstream(golden))["speech_probability"].get<std::vector<double>>();
  ASSERT_EQ(want.size(), 1875u);

  constexpr size_t context = 64, chunk = 512;
  const std::vector<float> samples = read_wav(recording);
  ASSERT_GE(samples.size(), want.size() * chunk);
  std::vector<float> x(context + chunk, 0), state(2 * 128, 0);
  Imported program(file, exact());
  double worst = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    std::copy(x.end() - context, x.end(), x.begin());
    std::copy_n(samples.begin() + static_cast<std::ptrdiff_t>(i * chunk), chunk,
                x.begin() + context);
    const std::vector<OwnedTensor> got = program.run(
        {Input(x.data(), {1, static_cast<index_t>(x.size())}), Input(state.data(), {2, 1, 128})});
    const double speech = got[0].data<float>()[0];
    worst = std::max(worst, std::abs(speech - want[i]));
    EXPECT_EQ(speech > 0.5, want[i] > 0.5) << "chunk " << i;
    std::copy_n(got[1].data<float>(), state.size(), state.begin());
  }
  EXPECT_LT(worst, 1e-5);
}

}  // namespace
}  // namespace taper
