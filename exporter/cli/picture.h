// Pictures as inputs of a model.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "taper/exporter/io/array.h"

namespace taper::cli {

/// Converts pixels to numbers: (p / 255 - mean) / deviation. There is one mean and one deviation
/// for all channels, or one for each.
struct PixelScale {
  std::vector<double> mean{0}, deviation{1};
};

/// The steps from a picture to a tensor.
struct PictureOptions {
  int64_t resize = 0;  ///< length of the shorter side; 0: not resized
  int64_t crop = 0;    ///< side of the square that is cut from the middle; 0: not cut
  bool bgr = false;    ///< blue first
  PixelScale scale;
};

/// Whether the name is that of a picture: .png, .jpg or .jpeg in any case.
bool is_picture_file(const std::filesystem::path& path);
/// u8 (height, width, channels). Throws io::FileError.
io::Array read_picture_file(const std::filesystem::path& path);

/// Resizes the shorter side (bilinear with antialiasing, as in Pillow and torchvision), then cuts
/// out the middle. Throws ExportError, which begins with `name`, if the picture is smaller than the
/// square.
io::Array fitted(const io::Array& picture, const PictureOptions& options, const std::string& name);

/// An extent that may be any number.
inline constexpr int64_t any_extent = -1;

/// Converts a picture, u8 (height, width, channels), to f32 in the shape of an input: (channels,
/// height, width) with any number of leading dimensions that may be 1, or (height, width). Grey and
/// colour are converted into each other (luma of ITU-R BT.601), and transparency is dropped. Throws
/// ExportError, which begins with `name`, if the size differs after `fitted`.
io::Array tensor_of_picture(const io::Array& picture, const std::vector<int64_t>& expected,
                            const PictureOptions& options, const std::string& name);

}  // namespace taper::cli
