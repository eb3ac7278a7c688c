// WAV files of every kind, and files that are none.
#include "taper/runtime/extension/audio/wav.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "taper/tests/support/data.h"

namespace taper::audio {
namespace {

using testing::ElementsAre;

std::string number(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}
std::string chunk(const std::string& name, const std::string& content) {
  return name + number(content.size(), 4) + content;
}
std::string wav_of(const std::string& chunks) { return chunk("RIFF", "WAVE" + chunks); }
std::string format(int kind, int channels, int bits) {
  const int frame = channels * bits / 8;
  return chunk("fmt ", number(kind, 2) + number(channels, 2) + number(8000, 4) +
                           number(8000 * frame, 4) + number(frame, 2) + number(bits, 2));
}
Result<Sound> parse(const std::string& file, std::string* why = nullptr) {
  return parse_wav(
      {reinterpret_cast<const std::byte*>(file.data()), static_cast<index_t>(file.size())}, why);
}
std::vector<float> samples(const std::string& file) {
  std::string why;
  const Result<Sound> sound = parse(file, &why);
  EXPECT_TRUE(sound.ok()) << why;
  return sound.ok() ? sound.value().samples : std::vector<float>();
}
std::string refusal(const std::string& file) {
  std::string why = "none";
  EXPECT_FALSE(parse(file, &why).ok());
  return why;
}

TEST(wav, has_samples_of_every_size) {
  EXPECT_THAT(samples(wav_of(format(1, 1, 8) + chunk("data", number(0x40c000, 3)))),
              ElementsAre(-1, 0.5f, -0.5f));
  EXPECT_THAT(samples(wav_of(format(1, 1, 16) + chunk("data", number(0xc0004000, 4)))),
              ElementsAre(0.5f, -0.5f));
  EXPECT_THAT(samples(wav_of(format(1, 1, 24) + chunk("data", number(0x800000400000, 6)))),
              ElementsAre(0.5f, -1));
  EXPECT_THAT(samples(wav_of(format(1, 1, 32) + chunk("data", number(0xc0000000, 4)))),
              ElementsAre(-0.5f));
  EXPECT_THAT(samples(wav_of(format(3, 1, 32) + chunk("data", number(0x3e800000, 4)))),
              ElementsAre(0.25f));
}

TEST(wav, becomes_the_mean_of_its_channels) {
  EXPECT_THAT(samples(wav_of(format(1, 2, 16) + chunk("data", number(0x00004000, 4)))),
              ElementsAre(0.25f));
  TAPER_GOLDEN_DATA_OR_SKIP(file, "audio/marvin_617de221_0.wav");
  const Result<Sound> sound = read_wav(file.string());
  ASSERT_TRUE(sound.ok());
  EXPECT_EQ(sound.value().rate, 16000);
  EXPECT_EQ(sound.value().samples.size(), (std::filesystem::file_size(file) - 44) / 4);
}

TEST(wav, has_chunks_that_do_not_matter_and_a_longer_format) {
  const std::string odd = "LIST" + number(3, 4) + "abc" + std::string(1, '\0');
  const std::string longer =
      chunk("fmt ", number(0xfffe, 2) + number(1, 2) + number(8000, 4) + number(16000, 4) +
                        number(2, 2) + number(16, 2) + number(22, 2) + number(16, 2) +
                        number(4, 4) + number(1, 2) + std::string(14, 'x'));
  EXPECT_THAT(samples(wav_of(odd + longer + chunk("data", number(0x4000, 2)))), ElementsAre(0.5f));
}

TEST(wav, ends_where_the_file_ends) {
  const std::string file =
      wav_of(format(1, 1, 16) + "data" + number(0xffffffff, 4) + number(0x4000, 2) + number(1, 1));
  EXPECT_THAT(samples(file), ElementsAre(0.5f));
}

TEST(wav, is_refused_with_a_reason) {
  EXPECT_EQ(refusal(""), "it is not a WAV file");
  EXPECT_EQ(refusal("RIFF1234WAVX"), "it is not a WAV file");
  EXPECT_EQ(refusal(wav_of("")), "it has no samples");
  EXPECT_EQ(refusal(wav_of(format(1, 1, 16))), "it has no samples");
  EXPECT_EQ(refusal(wav_of(chunk("data", "1234"))),
            "its samples are of a kind that is not supported");
  EXPECT_EQ(refusal(wav_of(format(6, 1, 8) + chunk("data", "1234"))),
            "its samples are of a kind that is not supported");
  EXPECT_EQ(refusal(wav_of(format(1, 0, 16) + chunk("data", "1234"))),
            "its number of channels or its rate is out of range");
  std::string why;
  EXPECT_FALSE(read_wav("/nowhere.wav", &why).ok());
  EXPECT_EQ(why, "/nowhere.wav: it cannot be read");
}

/// Every beginning of a file: under the sanitizers, a read behind its end is found.
TEST(wav, may_end_anywhere) {
  const std::string file = wav_of(format(1, 2, 24) + chunk("data", std::string(30, 'a')));
  for (size_t n = 0; n < file.size(); ++n) {
    const std::vector<char> beginning(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(n));
    (void)parse_wav({reinterpret_cast<const std::byte*>(beginning.data()),
                     static_cast<index_t>(beginning.size())});
  }
}

}  // namespace
}  // namespace taper::audio
