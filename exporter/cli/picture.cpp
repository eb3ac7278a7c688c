#include "taper/exporter/cli/picture.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "taper/exporter/base/error.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/files.h"
#include "taper/exporter/io/jpeg.h"
#include "taper/exporter/io/png.h"

namespace taper::cli {
namespace {

std::string lower_extension(const std::filesystem::path& path) {
  std::string kind = path.extension().string();
  std::ranges::transform(kind, kind.begin(), [](unsigned char c) { return std::tolower(c); });
  return kind;
}

// Channel `c` of `channels` requested ones, in [0, 1], from a pixel with 1 to 4 samples.
float channel_of(const uint8_t* pixel, int64_t samples, int64_t c, int64_t channels, bool bgr) {
  if (samples <= 2) return static_cast<float>(pixel[0]) / 255.f;
  if (channels == 3) return static_cast<float>(pixel[bgr ? 2 - c : c]) / 255.f;
  return (0.299f * static_cast<float>(pixel[0]) + 0.587f * static_cast<float>(pixel[1]) +
          0.114f * static_cast<float>(pixel[2])) /
         255.f;
}

std::string size_text(int64_t width, int64_t height) {
  const auto extent = [](int64_t n) { return n == any_extent ? "any" : std::to_string(n); };
  return extent(width) + "x" + extent(height);
}

bool fits(int64_t extent, int64_t expected) { return expected == any_extent || expected == extent; }

float chosen(const std::vector<double>& numbers, int64_t channel, int64_t channels,
             const char* option) {
  if (numbers.size() != 1 && numbers.size() != static_cast<size_t>(channels))
    throw ExportError(std::string(option) + " has " + std::to_string(numbers.size()) +
                      " numbers; give one, or one for each of the " + std::to_string(channels) +
                      " channels");
  return static_cast<float>(numbers[numbers.size() == 1 ? 0 : static_cast<size_t>(channel)]);
}

/// The picture in another size.
io::Array resized(const io::Array& picture, int64_t height, int64_t width) {
  using namespace eager;
  const Tensor pixels = to(unsqueeze(permute(tensor_of(picture), {2, 0, 1}), 0), DType::f32);
  const Tensor small = call<ops::_upsample_bilinear2d_aa>({}, pixels, Dims{height, width}, false,
                                                          std::nullopt, std::nullopt);
  return array_of(
      to(contiguous(permute(squeeze(clamp(round(small), 0, 255), 0), {1, 2, 0})), DType::u8));
}

/// Cuts a square of `side` rows and columns from the middle.
io::Array cut(const io::Array& picture, int64_t side) {
  const int64_t top = std::lround(static_cast<double>(picture.sizes[0] - side) / 2),
                left = std::lround(static_cast<double>(picture.sizes[1] - side) / 2);
  const eager::Tensor square =
      eager::tensor_of(picture).slice(0, top, top + side).slice(1, left, left + side);
  return eager::array_of(square.contiguous());
}

}  // namespace

bool is_picture_file(const std::filesystem::path& path) {
  const std::string kind = lower_extension(path);
  return kind == ".png" || kind == ".jpg" || kind == ".jpeg";
}

io::Array read_picture_file(const std::filesystem::path& path) {
  return lower_extension(path) == ".png" ? io::read_png(path) : io::read_jpeg(path);
}

io::Array fitted(const io::Array& picture, const PictureOptions& options, const std::string& name) {
  io::Array result = picture;
  if (options.resize > 0) {
    const int64_t height = result.sizes[0], width = result.sizes[1],
                  shorter = std::min(height, width);
    if (shorter == 0) throw ExportError(name + ": the picture has no pixels");
    result = resized(result, options.resize * height / shorter, options.resize * width / shorter);
  }
  if (options.crop > 0) {
    if (result.sizes[0] < options.crop || result.sizes[1] < options.crop)
      throw ExportError(name + ": the picture is " + size_text(result.sizes[1], result.sizes[0]) +
                        ", smaller than --crop " + std::to_string(options.crop) +
                        "; give a larger --resize");
    result = cut(result, options.crop);
  }
  return result;
}

io::Array tensor_of_picture(const io::Array& given, const std::vector<int64_t>& expected,
                            const PictureOptions& options, const std::string& name) {
  const PixelScale& scale = options.scale;
  const io::Array picture = fitted(given, options, name);
  const int64_t height = picture.sizes[0], width = picture.sizes[1], samples = picture.sizes[2];
  const size_t rank = expected.size();
  bool is_picture = rank >= 2;
  for (size_t i = 0; i + 3 < rank; ++i) is_picture = is_picture && fits(1, expected[i]);
  int64_t channels = rank >= 3 ? expected[rank - 3] : 1;
  if (channels == any_extent) channels = samples <= 2 ? 1 : 3;
  if (!is_picture || (channels != 1 && channels != 3))
    throw ExportError(name +
                      ": the input does not take one picture; give a .npy file of its shape");
  if (!fits(height, expected[rank - 2]) || !fits(width, expected[rank - 1]))
    throw ExportError(name + ": the picture is " + size_text(width, height) + ", the input takes " +
                      size_text(expected[rank - 1], expected[rank - 2]) +
                      "; give --resize and --crop");

  std::vector<int64_t> sizes(rank, 1);
  sizes[rank - 2] = height, sizes[rank - 1] = width;
  if (rank >= 3) sizes[rank - 3] = channels;
  io::Array array = io::Array::zeros(DType::f32, sizes);
  float* out = array.values<float>().data();
  const uint8_t* pixels = picture.values<uint8_t>().data();
  for (int64_t c = 0; c < channels; ++c) {
    const float mean = chosen(scale.mean, c, channels, "--mean"),
                deviation = chosen(scale.deviation, c, channels, "--std");
    for (int64_t i = 0; i < height * width; ++i)
      *out++ =
          (channel_of(pixels + i * samples, samples, c, channels, options.bgr) - mean) / deviation;
  }
  return array;
}

}  // namespace taper::cli
