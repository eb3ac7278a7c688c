#include "taper/exporter/nn/conv.h"

#include <cmath>
#include <string_view>

#include "taper/exporter/eager/call.h"
#include "taper/exporter/nn/init.h"

namespace taper::nn {
namespace {

using eager::call;

template <int n>
std::string class_name() {
  return "Conv" + std::to_string(n) + "d: ";
}

}  // namespace

template <int n>
Padding<n>::Padding(const char* word) : same(std::string_view(word) == "same") {
  if (!same && std::string_view(word) != "valid")
    throw ExportError(class_name<n>() + "padding \"" + word +
                      "\" is neither \"same\" nor \"valid\"");
}

template <int n>
Conv<n>::Conv(int64_t in_channels, int64_t out_channels, ConvOptions<n> options)
    : options_(options) {
  const int64_t groups = options.groups;
  if (groups < 1 || in_channels % groups != 0 || out_channels % groups != 0)
    throw ExportError(class_name<n>() + std::to_string(in_channels) + " and " +
                      std::to_string(out_channels) + " channels are no multiples of " +
                      std::to_string(groups) + " groups");
  Ints sizes{out_channels, in_channels / groups};
  int64_t fan_in = in_channels / groups;
  for (int d = 0; d < n; ++d) {
    sizes.push_back(options.kernel_size[d]);
    fan_in *= options.kernel_size[d];
    if (options.padding.same && options.stride[d] != 1)
      throw ExportError(class_name<n>() + "padding \"same\" needs stride 1");
  }
  weight = init::kaiming_uniform_(Tensor::empty(sizes), std::sqrt(5.0));
  const double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
  if (options.bias) bias = init::uniform_(Tensor::empty({out_channels}), -bound, bound);
  set_names();
}

template <int n>
Tensor Conv<n>::forward(const Tensor& input, Location here) {
  const ConvOptions<n>& o = options_;
  Tensor x = input;
  Dims padding = o.padding.extents.dims();
  if (o.padding.same) {  // dilation (kernel - 1) rows in all; where that is odd, the additional one
                         // stands at the end
    Dims odd;
    for (int d = 0; d < n; ++d) {
      const int64_t total = o.dilation[d] * (o.kernel_size[d] - 1);
      padding[static_cast<size_t>(d)] = total / 2;
      odd.insert(odd.begin(), {Dim(0), Dim(total % 2)});
    }
    for (const Dim& extra : odd)
      if (extra.value() != 0) {
        x = call<ops::constant_pad_nd>(here, x, odd, Scalar(0));
        break;
      }
  }
  if constexpr (n == 1)
    return call<ops::conv1d>(here, x, weight, bias, o.stride.dims(), padding, o.dilation.dims(),
                             Dim(o.groups));
  else if constexpr (n == 2)
    return call<ops::conv2d>(here, x, weight, bias, o.stride.dims(), padding, o.dilation.dims(),
                             Dim(o.groups));
  else
    return call<ops::conv3d>(here, x, weight, bias, o.stride.dims(), padding, o.dilation.dims(),
                             Dim(o.groups));
}

template struct Padding<1>;
template struct Padding<2>;
template struct Padding<3>;
template class Conv<1>;
template class Conv<2>;
template class Conv<3>;

}  // namespace taper::nn
