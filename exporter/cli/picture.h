// Pictures as inputs of a model.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "taper/exporter/io/array.h"

namespace taper::cli {

/// How pixels become numbers: (p / 255 - mean) / deviation, one mean and deviation for all channels
/// or one for each.
struct PixelScale {
  std::vector<double> mean{0}, deviation{1};
};

/// What happens to a picture before it becomes a tensor.
struct PictureOptions {
  int64_t resize = 0;  ///< extent of the shorter side; 0: as it is
  int64_t crop = 0;    ///< extent of the square that is cut from the middle; 0: all of it
  bool bgr = false;    ///< blue first
  PixelScale scale;
};

/// A picture with its shorter side resized (bilinear, antialiased, as Pillow and torchvision do)
/// and the middle cut out. Throws ExportError, led by `name`, if it is smaller than the square.
io::Array fitted(const io::Array& picture, const PictureOptions& options, const std::string& name);

/// An extent that may be any number.
inline constexpr int64_t any_extent = -1;

/// A picture, u8 (height, width, channels), as f32 of the shape that an input expects: (channels,
/// height, width) behind any number of extents that may be 1, or (height, width). Grey and colour
/// are converted into each other (luma of ITU-R BT.601), transparency is left out. Throws
/// ExportError, led by `name`, if the size differs after `fitted`.
io::Array tensor_of_picture(const io::Array& picture, const std::vector<int64_t>& expected,
                            const PictureOptions& options, const std::string& name);

}  // namespace taper::cli
