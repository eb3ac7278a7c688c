#include "taper/exporter/nn/norm.h"

#include "taper/exporter/eager/call.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/nn/check.h"
#include "taper/exporter/nn/init.h"
#include "taper/exporter/nn/positions.h"

namespace taper::nn {

using eager::call;

namespace {
/// Of a norm of channels: the affine parameters and the running statistics that it asks for.
template <class Norm>
void make_members(Norm& norm, int64_t num_features, bool affine, bool track_running_stats) {
  const Ints sizes{num_features};
  if (affine) {
    norm.weight = init::ones_(Tensor::empty(sizes));
    norm.bias = init::zeros_(Tensor::empty(sizes));
  }
  if (!track_running_stats) return;
  norm.running_mean = init::zeros_(Tensor::empty(sizes));
  norm.running_var = init::ones_(Tensor::empty(sizes));
  norm.num_batches_tracked = Tensor::from<int64_t>({0}, {});
}

void check_shape(const char* layer, const Ints& normalized_shape, Location here) {
  if (normalized_shape.empty())
    throw EagerError(here, std::string(layer) + ": normalized_shape must not be empty");
  for (const int64_t extent : normalized_shape)
    internal::check_sizes(layer, {{"normalized_shape", extent}}, here);
}

}  // namespace

BatchNorm::BatchNorm(int64_t num_features, BatchNormOptions options, int least_rank,
                     int greatest_rank, const char* class_name, Location here)
    : options_(options),
      least_rank_(least_rank),
      greatest_rank_(greatest_rank),
      class_name_(class_name) {
  internal::check_sizes(class_name, {{"num_features", num_features}}, here);
  make_members(*this, num_features, options.affine, options.track_running_stats);
  set_names();
}

Tensor BatchNorm::forward(const Tensor& input, Location here) {
  if (input.rank() < least_rank_ || input.rank() > greatest_rank_)
    throw EagerError(
        here, std::string(class_name_) + ": input " + eager::to_string(input.sizes()) + " has " +
                  std::to_string(input.rank()) + " dimensions, it takes " +
                  std::to_string(least_rank_) +
                  (greatest_rank_ > least_rank_ ? " or " + std::to_string(greatest_rank_) : ""));
  if (training() || !running_mean.defined()) {
    Dim values = input.rank() > 0 ? input.size(0) : Dim(1);
    for (int i = 2; i < input.rank(); ++i) values *= input.size(i);
    if (same(values, Dim(1)))
      throw EagerError(here, std::string(class_name_) + ": input " +
                                 eager::to_string(input.sizes()) +
                                 " has one value for each channel; training needs more");
  }
  // Without running statistics a batch's own are used always; the kernels then need no momentum.
  if (!running_mean.defined())
    return std::get<0>(call<ops::_native_batch_norm_legit_no_stats>(here, input, weight, bias, true,
                                                                    0.0, options_.eps));
  if (training()) return normalize_and_track(input, here);
  return std::get<0>(call<ops::_native_batch_norm_legit_no_training>(
      here, input, weight, bias, running_mean, running_var, 0.0, options_.eps));
}

Tensor BatchNorm::normalize_and_track(const Tensor& input, Location here) {
  const PlaceScope scope(here);
  const double momentum =
      options_.momentum.value_or(1);  // 1: the results are this batch's own statistics
  const auto [output, mean, inverse_deviation, new_mean, new_var] =
      call<ops::_native_batch_norm_legit_functional>(input, weight, bias, running_mean, running_var,
                                                     true, momentum, options_.eps);
  if (eager::computes_again()) return output;  // a checkpoint's first run has counted the batch
  eager::NoGrad guard;
  num_batches_tracked.add_(1);
  if (options_.momentum) {
    running_mean.copy_(new_mean);
    running_var.copy_(new_var);
  } else {  // running += (batch - running) / count
    const Tensor count = num_batches_tracked.to(running_mean.dtype());
    for (auto [running, batch] :
         {std::pair(running_mean, new_mean), std::pair(running_var, new_var)})
      running.add_((batch - running) / count);
  }
  return output;
}

LayerNorm::LayerNorm(Ints normalized_shape, LayerNormOptions options, Location here)
    : normalized_shape_(std::move(normalized_shape)), eps_(options.eps) {
  check_shape("LayerNorm", normalized_shape_, here);
  if (options.elementwise_affine) {
    weight = init::ones_(Tensor::empty(normalized_shape_));
    if (options.bias) bias = init::zeros_(Tensor::empty(normalized_shape_));
  }
  set_names();
}

Tensor LayerNorm::forward(const Tensor& input, Location here) {
  const Dims shape(normalized_shape_.begin(), normalized_shape_.end());
  return std::get<0>(call<ops::native_layer_norm>(here, input, shape, weight, bias, eps_));
}

GroupNorm::GroupNorm(int64_t num_groups, int64_t num_channels, GroupNormOptions options,
                     Location here)
    : num_groups_(num_groups), eps_(options.eps) {
  internal::check_sizes("GroupNorm", {{"num_channels", num_channels}}, here);
  if (num_groups < 1 || num_channels % num_groups != 0)
    throw EagerError(here, "GroupNorm: " + std::to_string(num_channels) +
                               " channels are no multiple of " + std::to_string(num_groups) +
                               " groups");
  const Ints sizes{num_channels};
  if (options.affine)
    weight = init::ones_(Tensor::empty(sizes)), bias = init::zeros_(Tensor::empty(sizes));
  set_names();
}

Tensor GroupNorm::forward(const Tensor& input, Location here) {
  const PlaceScope scope(here);
  const Dim n = input.size(0), c = input.size(1);
  Dim rest = 1;
  for (int d = 2; d < input.rank(); ++d) rest *= input.size(d);
  return std::get<0>(
      call<ops::native_group_norm>(input, weight, bias, n, c, rest, num_groups_, eps_));
}

RMSNorm::RMSNorm(Ints normalized_shape, RMSNormOptions options, Location here)
    : normalized_shape_(std::move(normalized_shape)), eps_(options.eps) {
  check_shape("RMSNorm", normalized_shape_, here);
  if (options.elementwise_affine) weight = init::ones_(Tensor::empty(normalized_shape_));
  set_names();
}

Tensor RMSNorm::forward(const Tensor& input, Location here) {
  return eager::rms_norm(input, Dims(normalized_shape_.begin(), normalized_shape_.end()), weight,
                         eps_, here);
}

InstanceNorm::InstanceNorm(int64_t num_features, InstanceNormOptions options, int spatial,
                           Location here)
    : options_(options), spatial_(spatial) {
  internal::check_sizes("InstanceNorm" + std::to_string(spatial) + "d",
                        {{"num_features", num_features}}, here);
  make_members(*this, num_features, options.affine, options.track_running_stats);
  set_names();
}

Tensor InstanceNorm::forward(const Tensor& input, Location here) {
  const bool alone = input.rank() == spatial_ + 1;
  if (!alone && input.rank() != spatial_ + 2)
    throw EagerError(here, "InstanceNorm" + std::to_string(spatial_) + "d: input " +
                               eager::to_string(input.sizes()) + " has " +
                               std::to_string(input.rank()) + " dimensions, it takes " +
                               std::to_string(spatial_ + 1) + " or " +
                               std::to_string(spatial_ + 2));
  const Tensor x = alone ? input.unsqueeze(0, here) : input;
  const Tensor y = eager::instance_norm(x, weight, bias, running_mean, running_var,
                                        training() || !running_mean.defined(), options_.momentum,
                                        options_.eps, here);
  return alone ? y.squeeze(0, here) : y;
}

LocalResponseNorm::LocalResponseNorm(int64_t size, double alpha, double beta, double k,
                                     Location here)
    : size_(size), alpha_(alpha), beta_(beta), k_(k) {
  if (size < 1)
    throw EagerError(here,
                     "LocalResponseNorm: size must be 1 or more, got " + std::to_string(size));
}

Tensor LocalResponseNorm::forward(const Tensor& input, Location here) {
  const PlaceScope scope(here);
  if (input.rank() < 3)
    throw EagerError(here, "LocalResponseNorm: input " + eager::to_string(input.sizes()) +
                               " has fewer than 3 dimensions");
  // The mean over channels is one over the rows of an image (channels, positions).
  Dim positions = 1;
  for (int d = 2; d < input.rank(); ++d) positions *= input.size(d);
  Tensor mean = (input * input).reshape({input.size(0), Dim(1), input.size(1), positions});
  mean = eager::constant_pad_nd(mean, {Dim(0), Dim(0), Dim(size_ / 2), Dim((size_ - 1) / 2)});
  mean = eager::avg_pool2d(mean, {size_, 1}, 1).reshape(input.sizes());
  return input / eager::pow(mean * alpha_ + k_, beta_);
}

CrossMapLRN2d::CrossMapLRN2d(int64_t size, double alpha, double beta, double k, Location here)
    : size_(size), alpha_(alpha), beta_(beta), k_(k) {
  if (size < 1)
    throw EagerError(here, "CrossMapLRN2d: size must be 1 or more, got " + std::to_string(size));
}

Tensor CrossMapLRN2d::forward(const Tensor& input, Location here) {
  const PlaceScope scope(here);
  if (input.rank() != 4)
    throw EagerError(here, "CrossMapLRN2d: input " + eager::to_string(input.sizes()) + " has " +
                               std::to_string(input.rank()) + " dimensions, it takes 4");
  const int64_t reach = (size_ - 1) / 2;  // neighbours on each side
  const Tensor squares = input * input;
  const Dim positions = input.size(2) * input.size(3);
  Tensor sums = squares.reshape({input.size(0), Dim(1), input.size(1), positions});
  sums = eager::constant_pad_nd(sums, {Dim(0), Dim(0), Dim(reach), Dim(reach)});
  sums = eager::avg_pool2d(sums, {2 * reach + 1, 1}, 1).reshape(input.sizes()) *
         static_cast<double>(2 * reach + 1);
  const Tensor channel = internal::positions(input.size(1)).reshape({-1, 1, 1});
  sums = sums + squares.slice(1, 0, 1) * (channel > reach).to(input.dtype());
  return input * eager::pow(sums * (alpha_ / static_cast<double>(size_)) + k_, -beta_);
}

}  // namespace taper::nn
