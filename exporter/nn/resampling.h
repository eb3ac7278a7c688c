// Layers that rearrange images or change their resolution.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "taper/exporter/nn/extents.h"
#include "taper/exporter/nn/module.h"

namespace taper::nn {

/// (…, C r², H, W) -> (…, C, H r, W r): r² channels become a square of elements. Shi et al.,
/// "Real-time single image and video super-resolution …", 2016.
class PixelShuffle : public Layer {
 public:
  explicit PixelShuffle(int64_t upscale_factor) : factor_(upscale_factor) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  int64_t factor_;
};

/// The inverse of PixelShuffle.
class PixelUnshuffle : public Layer {
 public:
  explicit PixelUnshuffle(int64_t downscale_factor) : factor_(downscale_factor) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  int64_t factor_;
};

/// Sees channels as (groups, rest) and exchanges them to (rest, groups).
class ChannelShuffle : public Layer {
 public:
  explicit ChannelShuffle(int64_t groups) : groups_(groups) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  int64_t groups_;
};

struct UpsampleOptions {
  Ints size = {};  ///< of the 1, 2 or 3 last dimensions; or, where empty, factors for them
  std::vector<double> scale_factor = {};  ///< one alone stands for all
  /// "nearest", "linear" (1 dimension), "bilinear", "bicubic" (2), "trilinear" (3)
  std::string mode = "nearest";
  bool align_corners = false;
};
/// (N, C, size…) at another resolution; see eager::interpolate.
class Upsample : public Layer {
 public:
  explicit Upsample(UpsampleOptions options, Location here = Location::current());
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  UpsampleOptions options_;
};

struct WindowOptions {
  Extents<2> dilation = 1;
  Extents<2> padding = 0;
  Extents<2> stride = 1;
};

/// The windows of an image as columns: (N, C, H, W) -> (N, C · kernel elements, windows).
class Unfold : public Layer {
 public:
  explicit Unfold(Extents<2> kernel_size, WindowOptions options = {})
      : kernel_size_(kernel_size), options_(options) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  Extents<2> kernel_size_;
  WindowOptions options_;
};

/// The sum of such columns in an image of `output_size`.
class Fold : public Layer {
 public:
  Fold(Extents<2> output_size, Extents<2> kernel_size, WindowOptions options = {})
      : output_size_(output_size), kernel_size_(kernel_size), options_(options) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  Extents<2> output_size_, kernel_size_;
  WindowOptions options_;
};

}  // namespace taper::nn
