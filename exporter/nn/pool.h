#pragma once
#include <optional>

#include "taper/exporter/nn/extents.h"
#include "taper/exporter/nn/module.h"

namespace taper::nn {

struct MaxPool2dOptions {
  Extents<2> kernel_size;
  std::optional<Extents<2>> stride = std::nullopt;  ///< absent: kernel_size
  Extents<2> padding = 0;
  Extents<2> dilation = 1;
  bool ceil_mode = false;  ///< round the number of windows up
};

/// The greatest element of each window: (…, C, H, W) -> (…, C, H', W').
class MaxPool2d : public Layer {
 public:
  explicit MaxPool2d(MaxPool2dOptions options) : options_(options) {}
  explicit MaxPool2d(int64_t kernel_size) : options_{.kernel_size = kernel_size} {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  MaxPool2dOptions options_;
};

struct AvgPool2dOptions {
  Extents<2> kernel_size;
  std::optional<Extents<2>> stride = std::nullopt;  ///< absent: kernel_size
  Extents<2> padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< padding counts as zeros in the mean
  std::optional<int64_t> divisor_override = std::nullopt;
};

/// The mean of each window: (…, C, H, W) -> (…, C, H', W').
class AvgPool2d : public Layer {
 public:
  explicit AvgPool2d(AvgPool2dOptions options) : options_(options) {}
  explicit AvgPool2d(int64_t kernel_size) : options_{.kernel_size = kernel_size} {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  AvgPool2dOptions options_;
};

/// The means of windows that are chosen so that `output_size` (height, width) come out; an absent
/// one keeps the input's.
class AdaptiveAvgPool2d : public Layer {
 public:
  explicit AdaptiveAvgPool2d(std::optional<int64_t> height, std::optional<int64_t> width)
      : height_(height), width_(width) {}
  explicit AdaptiveAvgPool2d(int64_t both) : height_(both), width_(both) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  std::optional<int64_t> height_, width_;
};

}  // namespace taper::nn
