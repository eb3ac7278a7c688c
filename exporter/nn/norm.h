#pragma once
#include <optional>

#include "taper/exporter/nn/module.h"

namespace taper::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  /// How much of a new batch enters the running statistics. Absent: their plain average over all
  /// batches.
  std::optional<double> momentum = 0.1;
  bool affine = true;               ///< with weight and bias
  bool track_running_stats = true;  ///< without: a batch's own statistics also in eval()
};

/// y = (x - mean) / √(variance + eps) · weight + bias, for each channel (dimension 1):
///   x (N, C) or (N, C, size…) -> the same shape
/// While training, mean and (biased) variance are those of the batch and move the running ones
/// (which get the unbiased variance); in eval() the running ones are used. weight 1, bias 0,
/// running_mean 0, running_var 1 at the start.
class BatchNorm : public Layer {
 public:
  Parameter weight, bias;                                 ///< (C)
  Tensor running_mean, running_var, num_batches_tracked;  ///< (C), (C), i64 ()
  TAPER_LAYER(weight, bias, running_mean, running_var, num_batches_tracked)
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 protected:
  BatchNorm(int64_t num_features, BatchNormOptions options, int least_rank, int greatest_rank,
            const char* class_name);

 private:
  Tensor normalize_and_track(const Tensor& input, Location here);

  BatchNormOptions options_;
  int least_rank_, greatest_rank_;
  const char* class_name_;
};

/// Of (N, C) or (N, C, L).
struct BatchNorm1d : BatchNorm {
  explicit BatchNorm1d(int64_t num_features, BatchNormOptions options = {})
      : BatchNorm(num_features, options, 2, 3, "BatchNorm1d") {}
};
/// Of (N, C, H, W).
struct BatchNorm2d : BatchNorm {
  explicit BatchNorm2d(int64_t num_features, BatchNormOptions options = {})
      : BatchNorm(num_features, options, 4, 4, "BatchNorm2d") {}
};
/// Of (N, C, D, H, W).
struct BatchNorm3d : BatchNorm {
  explicit BatchNorm3d(int64_t num_features, BatchNormOptions options = {})
      : BatchNorm(num_features, options, 5, 5, "BatchNorm3d") {}
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;  ///< with weight, and with bias too if `bias`
  bool bias = true;
};

/// Normalises over the last dimensions, whose extents are `normalized_shape`, then weight and bias
/// of that shape.
class LayerNorm : public Layer {
 public:
  explicit LayerNorm(Ints normalized_shape, LayerNormOptions options = {});
  explicit LayerNorm(int64_t last_extent, LayerNormOptions options = {})
      : LayerNorm(Ints{last_extent}, options) {}

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

/// Normalises each of `num_groups` groups of neighbouring channels of an example: x (N, C, size…)
/// -> the same shape.
class GroupNorm : public Layer {
 public:
  GroupNorm(int64_t num_groups, int64_t num_channels, GroupNormOptions options = {});

  Parameter weight, bias;  ///< (C)
  TAPER_LAYER(weight, bias)
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  int64_t num_groups_;
  double eps_;
};

}  // namespace taper::nn
