#pragma once
#include <string>

#include "taper/exporter/nn/extents.h"
#include "taper/exporter/nn/module.h"
#include "taper/exporter/nn/padding.h"

namespace taper::nn {

/// The number of elements of padding on each side; or a word: "same" keeps the extents (stride 1
/// only), "valid" adds none.
template <int n>
struct Padding {
  Extents<n> extents = 0;
  bool same = false;

  template <std::integral T>
  Padding(T all) : extents(all) {}
  template <std::integral... T>
  requires(n > 1 && sizeof...(T) == n) Padding(T... each) : extents(each...) {}
  /// Throws ExportError for another word.
  Padding(const char* word);
};

template <int n>
struct ConvOptions {
  Extents<n> kernel_size;
  Extents<n> stride = 1;
  Padding<n> padding = 0;
  Extents<n> dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  PaddingMode padding_mode = PaddingMode::zeros;
};

/// Cross-correlation over n spatial dimensions (PyTorch's ConvNd):
///   x (batch, in, size…) or (in, size…), weight (out, in / groups, kernel…), bias (out)
///     -> (batch, out, size…)
///   size = (size + 2 padding - dilation (kernel - 1) - 1) / stride + 1, rounded down
/// Initial weight and bias: uniform in ±1/√(in / groups · kernel). Throws EagerError if the
/// channels are no multiple of groups, or if "same" has a stride.
template <int n>
class Conv : public Layer {
 public:
  Conv(int64_t in_channels, int64_t out_channels, ConvOptions<n> options,
       Location here = Location::current());

  Parameter weight, bias;  ///< bias: undefined without one
  TAPER_LAYER(weight, bias)
  Tensor forward(const Tensor& input, Location here = Location::current()) override;
  const ConvOptions<n>& options() const { return options_; }

 private:
  ConvOptions<n> options_;
};

using Conv1d = Conv<1>;
using Conv2d = Conv<2>;
using Conv3d = Conv<3>;

template <int n>
struct ConvTransposeOptions {
  Extents<n> kernel_size;
  Extents<n> stride = 1;
  Extents<n> padding = 0;
  Extents<n> output_padding =
      0;  ///< added to one side of the result, smaller than stride or dilation
  int64_t groups = 1;
  bool bias = true;
  Extents<n> dilation = 1;
};

/// The transpose of Conv as a linear map (its gradient):
///   x (batch, in, size…) or (in, size…), weight (in, out / groups, kernel…), bias (out)
///   size = (size - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1
/// If `output_size` is given, it is the size of the result, and output_padding follows from it.
/// Initial weight and bias: uniform in ±1/√(out / groups · kernel).
template <int n>
class ConvTranspose : public Layer {
 public:
  ConvTranspose(int64_t in_channels, int64_t out_channels, ConvTransposeOptions<n> options,
                Location here = Location::current());

  Parameter weight, bias;  ///< bias: undefined without one
  TAPER_LAYER(weight, bias)
  Tensor forward(const Tensor& input, Location here = Location::current()) override {
    return run(input, options_.output_padding, here);
  }
  /// Throws EagerError if no output_padding gives this size.
  Tensor forward(const Tensor& input, Extents<n> output_size, Location here = Location::current());

 private:
  Tensor run(const Tensor& input, Extents<n> output_padding, Location here);
  ConvTransposeOptions<n> options_;
};

using ConvTranspose1d = ConvTranspose<1>;
using ConvTranspose2d = ConvTranspose<2>;
using ConvTranspose3d = ConvTranspose<3>;

}  // namespace taper::nn
