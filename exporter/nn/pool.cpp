#include "taper/exporter/nn/pool.h"

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/text.h"

namespace taper::nn {

using eager::call;

template <int n>
Tensor MaxPool<n>::forward(const Tensor& input, Location here) {
  const MaxPoolOptions<n>& o = options_;
  const Ints kernel = o.kernel_size.ints(), stride = o.stride.value_or(o.kernel_size).ints(),
             padding = o.padding.ints(), dilation = o.dilation.ints();
  if constexpr (n == 1)
    return call<ops::max_pool1d>(here, input, kernel, stride, padding, dilation, o.ceil_mode);
  else if constexpr (n == 2)
    return call<ops::max_pool2d>(here, input, kernel, stride, padding, dilation, o.ceil_mode);
  else
    return call<ops::max_pool3d>(here, input, kernel, stride, padding, dilation, o.ceil_mode);
}

template <int n>
std::pair<Tensor, Tensor> MaxPool<n>::with_indices(const Tensor& input, Location here) {
  const MaxPoolOptions<n>& o = options_;
  const auto both = [](const auto& t) { return std::pair(std::get<0>(t), std::get<1>(t)); };
  Ints kernel = o.kernel_size.ints(), stride = o.stride.value_or(o.kernel_size).ints(),
       padding = o.padding.ints(), dilation = o.dilation.ints();
  if constexpr (n == 3)
    return both(call<ops::max_pool3d_with_indices>(here, input, kernel, stride, padding, dilation,
                                                   o.ceil_mode));
  if constexpr (n == 2)
    return both(call<ops::max_pool2d_with_indices>(here, input, kernel, stride, padding, dilation,
                                                   o.ceil_mode));
  // A line is a plane of one row.
  kernel.insert(kernel.begin(), 1), stride.insert(stride.begin(), 1);
  padding.insert(padding.begin(), 0), dilation.insert(dilation.begin(), 1);
  const auto [values, indices] = call<ops::max_pool2d_with_indices>(
      here, input.unsqueeze(-2, here), kernel, stride, padding, dilation, o.ceil_mode);
  return {values.squeeze(-2, here), indices.squeeze(-2, here)};
}

template <int n>
Tensor AvgPool<n>::forward(const Tensor& input, Location here) {
  const AvgPoolOptions<n>& o = options_;
  const Ints kernel = o.kernel_size.ints(), stride = o.stride.value_or(o.kernel_size).ints(),
             padding = o.padding.ints();
  if constexpr (n == 1) {
    if (o.divisor_override) throw EagerError(here, "AvgPool1d has no divisor_override");
    return call<ops::avg_pool1d>(here, input, kernel, stride, padding, o.ceil_mode,
                                 o.count_include_pad);
  } else if constexpr (n == 2) {
    return call<ops::avg_pool2d>(here, input, kernel, stride, padding, o.ceil_mode,
                                 o.count_include_pad, o.divisor_override);
  } else {
    return call<ops::avg_pool3d>(here, input, kernel, stride, padding, o.ceil_mode,
                                 o.count_include_pad, o.divisor_override);
  }
}

template <int n>
Dims AdaptivePool<n>::output_dims(const Tensor& input, Location here) const {
  Dims dims;
  for (int d = 0; d < n; ++d) {
    const std::optional<int64_t>& size = sizes_[static_cast<size_t>(d)];
    dims.push_back(size ? Dim(*size) : input.size(d - n, here));
  }
  return dims;
}
template <int n>
Ints AdaptivePool<n>::output_size(const Tensor& input, Location here) const {
  Ints sizes;
  for (const Dim& d : output_dims(input, here)) sizes.push_back(d.value());
  return sizes;
}

template <int n>
Tensor AdaptiveAvgPool<n>::forward(const Tensor& input, Location here) {
  if constexpr (n == 1)
    return call<ops::adaptive_avg_pool1d>(here, input, this->output_size(input, here));
  else if constexpr (n == 2)
    return call<ops::adaptive_avg_pool2d>(here, input, this->output_dims(input, here));
  else
    return call<ops::adaptive_avg_pool3d>(here, input, this->output_dims(input, here));
}

template <int n>
Tensor AdaptiveMaxPool<n>::forward(const Tensor& input, Location here) {
  const Ints sizes = this->output_size(input, here);
  if constexpr (n == 1)
    return std::get<0>(call<ops::adaptive_max_pool1d>(here, input, sizes));
  else if constexpr (n == 2)
    return std::get<0>(call<ops::adaptive_max_pool2d>(here, input, sizes));
  else
    return std::get<0>(call<ops::adaptive_max_pool3d>(here, input, sizes));
}

FractionalMaxPool2d::FractionalMaxPool2d(FractionalMaxPool2dOptions options, Location here)
    : options_(options) {
  if (options.output_size.has_value() == options.output_ratio.has_value())
    throw EagerError(here, "FractionalMaxPool2d: give either output_size or output_ratio");
  for (const double ratio : options.output_ratio.value_or(std::array{0.5, 0.5}))
    if (!(ratio > 0 && ratio < 1))
      throw EagerError(here, "FractionalMaxPool2d: output_ratio " + eager::to_text(ratio) +
                                 " must lie between 0 and 1");
}

Tensor FractionalMaxPool2d::forward(const Tensor& input, Location here) {
  return with_indices(input, {}, here).first;
}

std::pair<Tensor, Tensor> FractionalMaxPool2d::with_indices(const Tensor& input,
                                                            const Tensor& random_samples,
                                                            Location here) {
  const PlaceScope scope(here);
  if (input.rank() != 3 && input.rank() != 4)
    throw EagerError(here, "FractionalMaxPool2d: input " + eager::to_string(input.sizes()) +
                               " has " + std::to_string(input.rank()) +
                               " dimensions, it takes 3 or 4");
  Ints output = options_.output_size.value_or(1).ints();
  if (options_.output_ratio)
    for (int i = 0; i < 2; ++i)
      output[static_cast<size_t>(i)] =
          static_cast<int64_t>(static_cast<double>(input.size(i - 2).value()) *
                               (*options_.output_ratio)[static_cast<size_t>(i)]);
  Tensor samples = random_samples;
  if (!samples.defined()) {
    const Dim batch = input.rank() == 4 ? input.size(0) : Dim(1);
    samples = eager::rand({batch, input.size(-3), Dim(2)}, input.dtype());
  }
  const auto [values, indices] =
      call<ops::fractional_max_pool2d>(input, options_.kernel_size.ints(), output, samples);
  return {values, indices};
}

template <int n>
Tensor LPPool<n>::forward(const Tensor& input, Location here) {
  const PlaceScope scope(here);
  AvgPool<n> pool({.kernel_size = kernel_size_, .stride = stride_, .ceil_mode = ceil_mode_});
  double elements = 1;
  for (int d = 0; d < n; ++d) elements *= static_cast<double>(kernel_size_[d]);
  const Tensor mean = pool.forward(eager::pow(input, norm_type_));
  // what relu adds is the gradient 0 where the mean is 0, whose root has none
  const Tensor sum = eager::sign(mean) * eager::relu(eager::abs(mean)) * elements;
  return eager::pow(sum, 1 / norm_type_);
}

template <int n>
Tensor MaxUnpool<n>::forward(const Tensor& input, const Tensor& indices,
                             std::optional<Extents<n>> output_size, Location here) {
  Dims sizes;
  for (int d = 0; d < n; ++d)
    sizes.push_back(output_size ? Dim((*output_size)[d])
                                : (input.size(d - n, here) - Dim(1)) * Dim(stride_[d]) +
                                      Dim(kernel_size_[d] - 2 * padding_[d]));
  if constexpr (n == 3)
    return call<ops::max_unpool3d>(here, input, indices, sizes, stride_.ints(), padding_.ints());
  if constexpr (n == 2) return call<ops::max_unpool2d>(here, input, indices, sizes);
  sizes.insert(sizes.begin(), Dim(1));
  return eager::max_unpool2d(input.unsqueeze(-2, here), indices.unsqueeze(-2, here), sizes, here)
      .squeeze(-2, here);
}

#define TAPER_POOLS(n)               \
  template class MaxPool<n>;         \
  template class AvgPool<n>;         \
  template class AdaptivePool<n>;    \
  template class AdaptiveAvgPool<n>; \
  template class AdaptiveMaxPool<n>; \
  template class LPPool<n>;          \
  template class MaxUnpool<n>;
TAPER_POOLS(1)
TAPER_POOLS(2)
TAPER_POOLS(3)
#undef TAPER_POOLS

}  // namespace taper::nn
