// Pooling over the last n dimensions of (C, size…) or (N, C, size…), n = 1, 2, 3.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "taper/exporter/nn/extents.h"
#include "taper/exporter/nn/module.h"

namespace taper::nn {

template <int n>
struct MaxPoolOptions {
  Extents<n> kernel_size;
  std::optional<Extents<n>> stride = std::nullopt;  ///< absent: kernel_size
  Extents<n> padding = 0;
  Extents<n> dilation = 1;
  bool ceil_mode = false;  ///< round the number of windows up
};

/// The largest element of each window.
template <int n>
class MaxPool : public Layer {
 public:
  explicit MaxPool(MaxPoolOptions<n> options) : options_(options) {}
  explicit MaxPool(int64_t kernel_size) : options_{.kernel_size = kernel_size} {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;
  /// The same, and the position of each maximum in its plane, i64, for MaxUnpool.
  std::pair<Tensor, Tensor> with_indices(const Tensor& input, Location here = Location::current());

 private:
  MaxPoolOptions<n> options_;
};
using MaxPool1dOptions = MaxPoolOptions<1>;
using MaxPool2dOptions = MaxPoolOptions<2>;
using MaxPool3dOptions = MaxPoolOptions<3>;
using MaxPool1d = MaxPool<1>;
using MaxPool2d = MaxPool<2>;
using MaxPool3d = MaxPool<3>;

template <int n>
struct AvgPoolOptions {
  Extents<n> kernel_size;
  std::optional<Extents<n>> stride = std::nullopt;  ///< absent: kernel_size
  Extents<n> padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;                           ///< padding counts as zeros in the mean
  std::optional<int64_t> divisor_override = std::nullopt;  ///< not with one dimension
};

/// The mean of each window.
template <int n>
class AvgPool : public Layer {
 public:
  explicit AvgPool(AvgPoolOptions<n> options) : options_(options) {}
  explicit AvgPool(int64_t kernel_size) : options_{.kernel_size = kernel_size} {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  AvgPoolOptions<n> options_;
};
using AvgPool1dOptions = AvgPoolOptions<1>;
using AvgPool2dOptions = AvgPoolOptions<2>;
using AvgPool3dOptions = AvgPoolOptions<3>;
using AvgPool1d = AvgPool<1>;
using AvgPool2d = AvgPool<2>;
using AvgPool3d = AvgPool<3>;

/// The output sizes of an adaptive pooling. An absent size keeps the input's. `3` stands for all.
template <int n>
class AdaptivePool : public Layer {
 public:
  explicit AdaptivePool(int64_t all) { sizes_.fill(all); }
  template <class... Sizes>
  requires(n > 1 && sizeof...(Sizes) == n) explicit AdaptivePool(Sizes... each)
      : sizes_{std::optional<int64_t>(each)...} {}

 protected:
  Ints output_size(const Tensor& input, Location here) const;
  Dims output_dims(const Tensor& input, Location here) const;

 private:
  std::array<std::optional<int64_t>, n> sizes_;
};

/// The means of windows that are chosen to give the output size.
template <int n>
class AdaptiveAvgPool : public AdaptivePool<n> {
 public:
  using AdaptivePool<n>::AdaptivePool;
  Tensor forward(const Tensor& input, Location here = Location::current()) override;
};
using AdaptiveAvgPool1d = AdaptiveAvgPool<1>;
using AdaptiveAvgPool2d = AdaptiveAvgPool<2>;
using AdaptiveAvgPool3d = AdaptiveAvgPool<3>;

/// The largest elements of such windows.
template <int n>
class AdaptiveMaxPool : public AdaptivePool<n> {
 public:
  using AdaptivePool<n>::AdaptivePool;
  Tensor forward(const Tensor& input, Location here = Location::current()) override;
};
using AdaptiveMaxPool1d = AdaptiveMaxPool<1>;
using AdaptiveMaxPool2d = AdaptiveMaxPool<2>;
using AdaptiveMaxPool3d = AdaptiveMaxPool<3>;

template <int n>
struct FractionalMaxPoolOptions {
  Extents<n> kernel_size;
  std::optional<Extents<n>> output_size = std::nullopt;              ///< this or output_ratio
  std::optional<std::array<double, n>> output_ratio = std::nullopt;  ///< of the input, in (0, 1)
};

/// The largest element of each window. The windows begin at random distances, so that images and
/// volumes shrink by any factor. The distances are drawn in eval() too. Graham, "Fractional
/// max-pooling", 2014. There is none over one dimension.
template <int n>
class FractionalMaxPool : public Layer {
 public:
  /// Throws EagerError unless exactly one of output_size and output_ratio is given.
  explicit FractionalMaxPool(FractionalMaxPoolOptions<n> options,
                             Location here = Location::current());
  Tensor forward(const Tensor& input, Location here = Location::current()) override;
  /// The same, and the position of each maximum in its image or volume, i64, for MaxUnpool.
  /// `random_samples` (N, C, n) in [0, 1) decides the distances; absent: they are drawn.
  std::pair<Tensor, Tensor> with_indices(const Tensor& input, const Tensor& random_samples = {},
                                         Location here = Location::current());

 private:
  static std::string name() { return "FractionalMaxPool" + std::to_string(n) + "d"; }
  Ints output_size(const Tensor& input) const;

  FractionalMaxPoolOptions<n> options_;
};
using FractionalMaxPool2dOptions = FractionalMaxPoolOptions<2>;
using FractionalMaxPool3dOptions = FractionalMaxPoolOptions<3>;
using FractionalMaxPool2d = FractionalMaxPool<2>;
using FractionalMaxPool3d = FractionalMaxPool<3>;

/// (Σ x^p)^(1/p) over each window, and 0 where the sum is not positive.
template <int n>
class LPPool : public Layer {
 public:
  LPPool(double norm_type, Extents<n> kernel_size, std::optional<Extents<n>> stride = std::nullopt,
         bool ceil_mode = false)
      : norm_type_(norm_type), kernel_size_(kernel_size), stride_(stride), ceil_mode_(ceil_mode) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  double norm_type_;
  Extents<n> kernel_size_;
  std::optional<Extents<n>> stride_;
  bool ceil_mode_;
};
using LPPool1d = LPPool<1>;
using LPPool2d = LPPool<2>;
using LPPool3d = LPPool<3>;

/// Each element of the input at the position where MaxPool::with_indices found it, and zeros
/// elsewhere. Without `output_size`: (size - 1) stride - 2 padding + kernel_size.
template <int n>
class MaxUnpool : public Module {
 public:
  explicit MaxUnpool(Extents<n> kernel_size, std::optional<Extents<n>> stride = std::nullopt,
                     Extents<n> padding = 0)
      : kernel_size_(kernel_size), stride_(stride.value_or(kernel_size)), padding_(padding) {}
  TAPER_MODULE()
  Tensor forward(const Tensor& input, const Tensor& indices,
                 std::optional<Extents<n>> output_size = std::nullopt,
                 Location here = Location::current());

 private:
  Extents<n> kernel_size_, stride_, padding_;
};
using MaxUnpool1d = MaxUnpool<1>;
using MaxUnpool2d = MaxUnpool<2>;
using MaxUnpool3d = MaxUnpool<3>;

}  // namespace taper::nn
