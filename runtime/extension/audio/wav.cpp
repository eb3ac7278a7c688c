#include "taper/runtime/extension/audio/wav.h"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>

namespace taper::audio {
namespace {

constexpr uint32_t pcm = 1, floating = 3, extensible = 0xfffe;

/// Bytes of a file, little-endian.
class Reader {
 public:
  explicit Reader(Span<const std::byte> bytes) : bytes_(bytes) {}
  size_t left() const { return static_cast<size_t>(bytes_.size()) - at_; }
  bool skip(size_t count) { return count <= left() && (at_ += count, true); }
  const std::byte* here() const { return bytes_.data() + at_; }
  /// 0 behind the end.
  uint32_t number(size_t size) {
    uint32_t value = 0;
    if (size > left()) return at_ += left(), 0;
    for (size_t i = 0; i < size; ++i) value |= static_cast<uint32_t>(here()[i]) << (8 * i);
    at_ += size;
    return value;
  }
  bool is(const char* tag) {
    const bool same = left() >= 4 && std::memcmp(here(), tag, 4) == 0;
    at_ += left() < 4 ? left() : 4;
    return same;
  }

 private:
  Span<const std::byte> bytes_;
  size_t at_ = 0;
};

struct Format {
  uint32_t kind = 0, channels = 0, rate = 0, bits = 0;
  bool known() const {
    if (kind == floating) return bits == 32;
    return kind == pcm && (bits == 8 || bits == 16 || bits == 24 || bits == 32);
  }
};

Format read_format(Reader chunk) {
  Format f;
  f.kind = chunk.number(2), f.channels = chunk.number(2), f.rate = chunk.number(4);
  chunk.skip(6);  // bytes a second, and of a frame
  f.bits = chunk.number(2);
  // the extension names the kind in the first bytes of an identifier
  if (f.kind == extensible && chunk.skip(8)) f.kind = chunk.number(2);
  return f;
}

float sample(Reader& bytes, const Format& f) {
  const uint32_t value = bytes.number(f.bits / 8);
  if (f.kind == floating) {
    float number;
    std::memcpy(&number, &value, sizeof number);
    return number;
  }
  if (f.bits == 8) return (static_cast<float>(value) - 128) / 128;  // the only one without a sign
  const auto whole = static_cast<int32_t>(value << (32 - f.bits));
  return static_cast<float>(whole) / 2147483648.0f;
}

std::vector<float> mean_of_channels(Reader bytes, const Format& f) {
  const size_t frame = f.channels * (f.bits / 8);
  std::vector<float> samples(bytes.left() / frame);
  for (float& s : samples) {
    float sum = 0;
    for (uint32_t c = 0; c < f.channels; ++c) sum += sample(bytes, f);
    s = sum / static_cast<float>(f.channels);
  }
  return samples;
}

/// Why there is no sound; or nullptr.
const char* parse(Span<const std::byte> file, Sound& sound) {
  Reader reader(file);
  if (!reader.is("RIFF") || !reader.skip(4) || !reader.is("WAVE")) return "it is not a WAV file";
  Format format;
  while (reader.left() >= 8) {
    const bool describes = reader.left() >= 4 && std::memcmp(reader.here(), "fmt ", 4) == 0;
    const bool holds = std::memcmp(reader.here(), "data", 4) == 0;
    reader.skip(4);
    const size_t told = reader.number(4);
    // a file that is still being written tells no length, or too much
    const size_t size = told < reader.left() ? told : reader.left();
    const Reader chunk(Span<const std::byte>(reader.here(), static_cast<index_t>(size)));
    if (describes) format = read_format(chunk);
    if (holds) {
      if (!format.known()) return "its samples are of a kind that is not supported";
      if (format.channels == 0 || format.rate == 0 ||
          format.rate > static_cast<uint32_t>(std::numeric_limits<int>::max()))
        return "its number of channels or its rate is out of range";
      sound = {static_cast<int>(format.rate), mean_of_channels(chunk, format)};
      return nullptr;
    }
    reader.skip(size + size % 2);  // chunks begin at even places
  }
  return "it has no samples";
}

Result<Sound> fail(std::string text, std::string* why) {
  if (why != nullptr) *why = std::move(text);
  return Error::invalid_argument;
}

}  // namespace

Result<Sound> parse_wav(Span<const std::byte> file, std::string* why) {
  Sound sound;
  if (const char* wrong = parse(file, sound)) return fail(wrong, why);
  return sound;
}

Result<Sound> read_wav(const std::string& path, std::string* why) {
  std::ifstream stream(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(stream)),
                                std::istreambuf_iterator<char>());
  if (!stream && bytes.empty()) return fail(path + ": it cannot be read", why);
  Sound sound;
  const Span<const std::byte> file(reinterpret_cast<const std::byte*>(bytes.data()),
                                   static_cast<index_t>(bytes.size()));
  if (const char* wrong = parse(file, sound)) return fail(path + ": " + wrong, why);
  return sound;
}

}  // namespace taper::audio
