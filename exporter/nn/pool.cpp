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

template <int n>
FractionalMaxPool<n>::FractionalMaxPool(FractionalMaxPoolOptions<n> options, Location here)
    : options_(options) {
  if (options.output_size.has_value() == options.output_ratio.has_value())
    throw EagerError(here, name() + ": give either output_size or output_ratio");
  if (!options.output_ratio) return;
  for (const double ratio : *options.output_ratio)
    if (!(ratio > 0 && ratio < 1))
      throw EagerError(
          here, name() + ": output_ratio " + eager::to_text(ratio) + " must lie between 0 and 1");
}

template <int n>
Ints FractionalMaxPool<n>::output_size(const Tensor& input) const {
  if (options_.output_size) return options_.output_size->ints();
  Ints sizes;
  for (int d = 0; d < n; ++d)
    sizes.push_back(static_cast<int64_t>(static_cast<double>(input.size(d - n).value()) *
                                         (*options_.output_ratio)[static_cast<size_t>(d)]));
  return sizes;
}

template <int n>
Tensor FractionalMaxPool<n>::forward(const Tensor& input, Location here) {
  return with_indices(input, {}, here).first;
}

template <int n>
std::pair<Tensor, Tensor> FractionalMaxPool<n>::with_indices(const Tensor& input,
                                                             const Tensor& random_samples,
                                                             Location here) {
  const PlaceScope scope(here);
  if (input.rank() != n + 1 && input.rank() != n + 2)
    throw EagerError(here, name() + ": input " + eager::to_string(input.sizes()) + " has " +
                               std::to_string(input.rank()) + " dimensions, it takes " +
                               std::to_string(n + 1) + " or " + std::to_string(n + 2));
  Tensor samples = random_samples;
  if (!samples.defined()) {
    const Dim batch = input.rank() == n + 2 ? input.size(0) : Dim(1);
    samples = eager::rand({batch, input.size(-n - 1), Dim(n)}, input.dtype());
  }
  const Ints kernel = options_.kernel_size.ints(), output = output_size(input);
  const auto [values, indices] = [&] {
    if constexpr (n == 2)
      return call<ops::fractional_max_pool2d>(input, kernel, output, samples);
    else
      return call<ops::fractional_max_pool3d>(input, kernel, output, samples);
  }();
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
template class FractionalMaxPool<2>;
template class FractionalMaxPool<3>;

}  // namespace taper::nn
