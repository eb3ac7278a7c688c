#pragma once
#include <optional>

#include "taper/exporter/nn/module.h"

namespace taper::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  /// The share of a new batch in the running statistics. Absent: they are the plain average over
  /// all batches.
  std::optional<double> momentum = 0.1;
  bool affine = true;               ///< with weight and bias
  bool track_running_stats = true;  ///< without: a batch's own statistics also in eval()
};

/// y = (x - mean) / √(variance + eps) · weight + bias, for each channel (dimension 1):
///   x (N, C) or (N, C, size…) -> the same shape
/// In training, mean and (biased) variance are those of the batch. They also update the running
/// statistics, with the unbiased variance. eval() uses the running statistics. Initial values:
/// weight 1, bias 0, running_mean 0, running_var 1.
class BatchNorm : public Layer {
 public:
  Parameter weight, bias;                                 ///< (C)
  Tensor running_mean, running_var, num_batches_tracked;  ///< (C), (C), i64 ()
  TAPER_LAYER(weight, bias, running_mean, running_var, num_batches_tracked)
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 protected:
  BatchNorm(int64_t num_features, BatchNormOptions options, int least_rank, int greatest_rank,
            const char* class_name, Location here);

 private:
  Tensor normalize_and_track(const Tensor& input, Location here);

  BatchNormOptions options_;
  int least_rank_, greatest_rank_;
  const char* class_name_;
};

/// For (N, C) or (N, C, L).
struct BatchNorm1d : BatchNorm {
  explicit BatchNorm1d(int64_t num_features, BatchNormOptions options = {},
                       Location here = Location::current())
      : BatchNorm(num_features, options, 2, 3, "BatchNorm1d", here) {}
};
/// For (N, C, H, W).
struct BatchNorm2d : BatchNorm {
  explicit BatchNorm2d(int64_t num_features, BatchNormOptions options = {},
                       Location here = Location::current())
      : BatchNorm(num_features, options, 4, 4, "BatchNorm2d", here) {}
};
/// For (N, C, D, H, W).
struct BatchNorm3d : BatchNorm {
  explicit BatchNorm3d(int64_t num_features, BatchNormOptions options = {},
                       Location here = Location::current())
      : BatchNorm(num_features, options, 5, 5, "BatchNorm3d", here) {}
};

/// For (N, C) or (N, C, size…) with any number of sizes. PyTorch's layer shares the statistics of
/// several processes. Here is one process, so this is a BatchNorm.
struct SyncBatchNorm : BatchNorm {
  explicit SyncBatchNorm(int64_t num_features, BatchNormOptions options = {},
                         Location here = Location::current())
      : BatchNorm(num_features, options, 2, max_rank, "SyncBatchNorm", here) {}
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;  ///< with weight, and with bias too if `bias`
  bool bias = true;
};

/// Normalises over the last dimensions, whose extents are `normalized_shape`. weight and bias have
/// that shape.
class LayerNorm : public Layer {
 public:
  explicit LayerNorm(Ints normalized_shape, LayerNormOptions options = {},
                     Location here = Location::current());
  explicit LayerNorm(int64_t last_extent, LayerNormOptions options = {},
                     Location here = Location::current())
      : LayerNorm(Ints{last_extent}, options, here) {}

  Parameter weight, bias;
  TAPER_LAYER(weight, bias)
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  Ints normalized_shape_;
  double eps_;
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
};

/// Normalises each of `num_groups` groups of neighbouring channels of each example: x (N, C, size…)
/// -> the same shape.
class GroupNorm : public Layer {
 public:
  GroupNorm(int64_t num_groups, int64_t num_channels, GroupNormOptions options = {},
            Location here = Location::current());

  Parameter weight, bias;  ///< (C)
  TAPER_LAYER(weight, bias)
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  int64_t num_groups_;
  double eps_;
};

struct RMSNormOptions {
  std::optional<double> eps = std::nullopt;  ///< absent: the machine epsilon of the dtype
  bool elementwise_affine = true;            ///< with weight
};

/// x / √(mean(x²) + eps) · weight over the last dimensions, whose extents are `normalized_shape`.
/// Zhang and Sennrich, "Root mean square layer normalization", 2019.
class RMSNorm : public Layer {
 public:
  explicit RMSNorm(Ints normalized_shape, RMSNormOptions options = {},
                   Location here = Location::current());
  explicit RMSNorm(int64_t last_extent, RMSNormOptions options = {},
                   Location here = Location::current())
      : RMSNorm(Ints{last_extent}, options, here) {}

  Parameter weight;
  TAPER_LAYER(weight)
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  Ints normalized_shape_;
  std::optional<double> eps_;
};

struct InstanceNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = false;               ///< with weight and bias
  bool track_running_stats = false;  ///< with running statistics, which eval() then uses
};

/// Normalises each example as a batch of its own: x (N, C, size…) or (C, size…) -> the same shape.
/// The averages over the batch update the running statistics. Ulyanov et al., "Instance
/// normalization: the missing ingredient for fast stylization", 2016.
class InstanceNorm : public Layer {
 public:
  Parameter weight, bias;                                 ///< (C)
  Tensor running_mean, running_var, num_batches_tracked;  ///< (C), (C), i64 ()
  TAPER_LAYER(weight, bias, running_mean, running_var, num_batches_tracked)
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 protected:
  InstanceNorm(int64_t num_features, InstanceNormOptions options, int spatial, Location here);

 private:
  InstanceNormOptions options_;
  int spatial_;
};

struct InstanceNorm1d : InstanceNorm {
  explicit InstanceNorm1d(int64_t num_features, InstanceNormOptions options = {},
                          Location here = Location::current())
      : InstanceNorm(num_features, options, 1, here) {}
};
struct InstanceNorm2d : InstanceNorm {
  explicit InstanceNorm2d(int64_t num_features, InstanceNormOptions options = {},
                          Location here = Location::current())
      : InstanceNorm(num_features, options, 2, here) {}
};
struct InstanceNorm3d : InstanceNorm {
  explicit InstanceNorm3d(int64_t num_features, InstanceNormOptions options = {},
                          Location here = Location::current())
      : InstanceNorm(num_features, options, 3, here) {}
};

/// y_c = x_c (k + alpha / size · Σ x²)^-beta. The sum goes over `size` neighbouring channels. x is
/// (N, C, size…) with at least one size. Krizhevsky et al., "ImageNet classification …", 2012.
class LocalResponseNorm : public Layer {
 public:
  explicit LocalResponseNorm(int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1,
                             Location here = Location::current());
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  int64_t size_;
  double alpha_, beta_, k_;
};

/// The same with the sums of PyTorch's CrossMapLRN2d, for images (N, C, H, W): an even `size`
/// counts as size - 1 neighbours, and channel 0 belongs to the sums of all channels behind its
/// window.
class CrossMapLRN2d : public Layer {
 public:
  explicit CrossMapLRN2d(int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1,
                         Location here = Location::current());
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  int64_t size_;
  double alpha_, beta_, k_;
};

}  // namespace taper::nn
