// Whisper's features against those of transformers' WhisperFeatureExtractor, which computes them in
// double precision.
#include "taper/runtime/extension/audio/log_mel.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "taper/runtime/extension/audio/wav.h"
#include "taper/tests/support/data.h"

namespace taper::audio {
namespace {

constexpr int frames = 3000, places[] = {0, 1, 60, 100, 500, 999, 1099, 1101, 2999};

struct Row {
  int band;
  float values[std::size(places)];
};

void expect_recorded(const Sound& sound, int bands, const std::vector<Row>& rows, double mean) {
  const LogMel log_mel(bands);
  const std::vector<float> features = log_mel(
      Span<const float>(sound.samples.data(), static_cast<index_t>(sound.samples.size())), frames);
  ASSERT_EQ(features.size(), static_cast<size_t>(bands) * frames);
  for (const Row& row : rows)
    for (size_t i = 0; i < std::size(places); ++i)
      EXPECT_NEAR(features[static_cast<size_t>(row.band * frames + places[i])], row.values[i], 5e-5)
          << "band " << row.band << " of frame " << places[i];
  const double sum = std::accumulate(features.begin(), features.end(), 0.0);
  EXPECT_NEAR(sum / static_cast<double>(features.size()), mean, 1e-5);
}

TEST(log_mel, is_as_recorded_for_a_speech) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "audio/jfk.wav");
  const Result<Sound> sound = read_wav(file.string());
  ASSERT_TRUE(sound.ok());
  EXPECT_EQ(sound.value().rate, LogMel::rate);
  EXPECT_EQ(sound.value().samples.size(), 176000u);
  constexpr float none = -0.538742f, silent = -0.506308f;
  expect_recorded(
      sound.value(), 80,
      {{0, {none, none, -0.010158f, 0.035237f, 0.277946f, 0.156855f, 0.164647f, -0.349955f, none}},
       {1, {none, none, 0.348580f, 0.276446f, 0.349333f, 0.373989f, 0.188196f, -0.336647f, none}},
       {17, {none, none, 0.532898f, 0.506961f, 0.069100f, 0.899862f, 0.822841f, -0.139734f, none}},
       {40, {none, none, 0.248774f, 0.145013f, -0.044362f, 0.072203f, 0.635808f, -0.346211f, none}},
       {79, {none, none, none, none, none, none, none, none, none}}},
      -0.29502904);
  expect_recorded(sound.value(), 128,
                  {{17,
                    {silent, silent, 0.302490f, 0.386275f, 0.202634f, 0.635544f, 0.489894f,
                     -0.244813f, silent}},
                   {40,
                    {silent, silent, 0.165600f, 0.681013f, -0.046033f, 0.603331f, 0.804500f,
                     -0.166637f, silent}}},
                  -0.28117013);
}

TEST(log_mel, finds_the_band_of_a_tone) {
  std::vector<float> tone(16000);
  for (size_t i = 0; i < tone.size(); ++i)
    tone[i] = static_cast<float>(
        0.5 * std::sin(2 * 3.14159265358979 * 440 * static_cast<double>(i) / 16000));
  const std::vector<float> features =
      LogMel(80)(Span<const float>(tone.data(), static_cast<index_t>(tone.size())), 100);
  const auto at = [&](size_t band) { return features[band * 100 + 50]; };
  size_t loudest = 0;
  for (size_t b = 0; b < 80; ++b)
    if (at(b) > at(loudest)) loudest = b;
  EXPECT_EQ(loudest, 11u);
  EXPECT_NEAR(at(10), 1.348738, 5e-5);
}

TEST(log_mel, of_no_sound_is_silence) {
  const std::vector<float> features = LogMel(80)(Span<const float>(), 4);
  // the logarithm of the least energy is -10
  EXPECT_EQ(features, std::vector<float>(320, -1.5f));
}

}  // namespace
}  // namespace taper::audio
