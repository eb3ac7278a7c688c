#include "taper/exporter/nn/conv.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "taper/exporter/eager/call.h"
#include "taper/exporter/eager/ops/padding.h"
#include "taper/exporter/nn/check.h"
#include "taper/exporter/nn/init.h"

namespace taper::nn {
namespace {

using eager::call;

template <int n>
std::string class_name() {
  return "Conv" + std::to_string(n) + "d";
}

template <int n>
void check(const std::string& name, int64_t in_channels, int64_t out_channels, int64_t groups,
           const Extents<n>& kernel_size, Location here) {
  internal::check_sizes(name, {{"in_channels", in_channels}, {"out_channels", out_channels}}, here);
  for (int d = 0; d < n; ++d) internal::check_sizes(name, {{"kernel_size", kernel_size[d]}}, here);
  if (groups < 1 || in_channels % groups != 0 || out_channels % groups != 0)
    throw EagerError(here, name + ": " + std::to_string(in_channels) + " and " +
                               std::to_string(out_channels) + " channels are no multiples of " +
                               std::to_string(groups) + " groups");
}

/// A weight (channels…, kernel…) and a bias, unless it has no elements; both even in ±1/√fan_in,
/// the fan counted as if the second extent were that of the inputs.
template <int n>
void make_parameters(Parameter& weight, Parameter& bias, Ints sizes, const Extents<n>& kernel_size,
                     int64_t biases) {
  int64_t fan_in = sizes[1];
  for (int d = 0; d < n; ++d) sizes.push_back(kernel_size[d]), fan_in *= kernel_size[d];
  weight = init::kaiming_uniform_(Tensor::empty(sizes), std::sqrt(5.0));
  const double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
  if (biases > 0) bias = init::uniform_(Tensor::empty({biases}), -bound, bound);
}

}  // namespace

template <int n>
Padding<n>::Padding(const char* word) : same(std::string_view(word) == "same") {
  if (!same && std::string_view(word) != "valid")
    throw ExportError(class_name<n>() + ": padding \"" + word +
                      "\" is neither \"same\" nor \"valid\"");
}

template <int n>
Conv<n>::Conv(int64_t in_channels, int64_t out_channels, ConvOptions<n> options, Location here)
    : options_(options) {
  check<n>(class_name<n>(), in_channels, out_channels, options.groups, options.kernel_size, here);
  for (int d = 0; d < n; ++d)
    if (options.padding.same && options.stride[d] != 1)
      throw EagerError(here, class_name<n>() + ": padding \"same\" needs stride 1");
  make_parameters(weight, bias, {out_channels, in_channels / options.groups}, options.kernel_size,
                  options.bias ? out_channels : 0);
  set_names();
}

template <int n>
Tensor Conv<n>::forward(const Tensor& input, Location here) {
  const ConvOptions<n>& o = options_;
  Tensor x = input;
  Dims padding = o.padding.extents.dims();
  Dims around;         // what stands before and behind each dimension, the last one first
  if (o.padding.same)  // dilation (kernel - 1) rows in all; where that is odd, one more at the end
    for (int d = 0; d < n; ++d) {
      const int64_t total = o.dilation[d] * (o.kernel_size[d] - 1);
      padding[static_cast<size_t>(d)] = total / 2;
      around.insert(around.begin(), {Dim(0), Dim(total % 2)});
    }
  if (o.padding_mode != PaddingMode::zeros) {  // all of it beforehand
    if (around.empty()) around.resize(2 * n, Dim(0));
    for (int d = 0; d < n; ++d) {
      const size_t at = static_cast<size_t>(2 * (n - 1 - d));
      around[at] += padding[static_cast<size_t>(d)];
      around[at + 1] += padding[static_cast<size_t>(d)];
      padding[static_cast<size_t>(d)] = 0;
    }
  }
  if (std::any_of(around.begin(), around.end(), [](const Dim& a) { return a.value() != 0; }))
    x = eager::pad(x, around, word(o.padding_mode), {}, here);
  const Dims stride = o.stride.dims(), dilation = o.dilation.dims();
  const Dim groups(o.groups);
  if constexpr (n == 1)
    return call<ops::conv1d>(here, x, weight, bias, stride, padding, dilation, groups);
  else if constexpr (n == 2)
    return call<ops::conv2d>(here, x, weight, bias, stride, padding, dilation, groups);
  else
    return call<ops::conv3d>(here, x, weight, bias, stride, padding, dilation, groups);
}

template <int n>
ConvTranspose<n>::ConvTranspose(int64_t in_channels, int64_t out_channels,
                                ConvTransposeOptions<n> options, Location here)
    : options_(options) {
  check<n>("ConvTranspose" + std::to_string(n) + "d", in_channels, out_channels, options.groups,
           options.kernel_size, here);
  make_parameters(weight, bias, {in_channels, out_channels / options.groups}, options.kernel_size,
                  options.bias ? out_channels : 0);
  set_names();
}

template <int n>
Tensor ConvTranspose<n>::run(const Tensor& input, Extents<n> output_padding, Location here) {
  const ConvTransposeOptions<n>& o = options_;
  const Dims stride = o.stride.dims(), padding = o.padding.dims(), more = output_padding.dims(),
             dilation = o.dilation.dims();
  const Dim groups(o.groups);
  if constexpr (n == 1)
    return call<ops::conv_transpose1d>(here, input, weight, bias, stride, padding, more, groups,
                                       dilation);
  else if constexpr (n == 2)
    return call<ops::conv_transpose2d_input>(here, input, weight, bias, stride, padding, more,
                                             groups, dilation);
  else
    return call<ops::conv_transpose3d_input>(here, input, weight, bias, stride, padding, more,
                                             groups, dilation);
}

template <int n>
Tensor ConvTranspose<n>::forward(const Tensor& input, Extents<n> output_size, Location here) {
  const ConvTransposeOptions<n>& o = options_;
  Extents<n> more = 0;
  for (int d = 0; d < n; ++d) {
    const int64_t least = (input.size(d - n, here).value() - 1) * o.stride[d] - 2 * o.padding[d] +
                          o.dilation[d] * (o.kernel_size[d] - 1) + 1;
    const int64_t greatest = least + o.stride[d] - 1;
    if (output_size[d] < least || output_size[d] > greatest)
      throw EagerError(here, "ConvTranspose" + std::to_string(n) + "d: output_size " +
                                 std::to_string(output_size[d]) + " is outside [" +
                                 std::to_string(least) + ", " + std::to_string(greatest) +
                                 "] for input " + eager::to_string(input.sizes()));
    more.values[static_cast<size_t>(d)] = output_size[d] - least;
  }
  return run(input, more, here);
}

template struct Padding<1>;
template struct Padding<2>;
template struct Padding<3>;
template class Conv<1>;
template class Conv<2>;
template class Conv<3>;
template class ConvTranspose<1>;
template class ConvTranspose<2>;
template class ConvTranspose<3>;

}  // namespace taper::nn
