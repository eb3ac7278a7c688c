// Layers that change their input at random in training, and do nothing in eval(). They draw from
// eager's default generator.
#pragma once
#include "taper/exporter/nn/module.h"

namespace taper::nn {

/// Makes each element zero with probability p, and divides the others by 1 - p. Srivastava et al.,
/// 2014.
class Dropout : public Layer {
 public:
  /// Throws EagerError unless 0 <= p <= 1.
  explicit Dropout(double p = 0.5, Location here = Location::current());
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  double p_;
};

/// Makes whole channels zero, for (N, C, size…) or (C, size…) with n spatial dimensions.
template <int n>
class FeatureDropout : public Layer {
 public:
  explicit FeatureDropout(double p = 0.5, Location here = Location::current());
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  double p_;
};
using Dropout1d = FeatureDropout<1>;
using Dropout2d = FeatureDropout<2>;
using Dropout3d = FeatureDropout<3>;

/// Dropout that keeps mean 0 and variance 1: dropped elements become -λα, then everything is scaled
/// and shifted. Klambauer et al., "Self-normalizing neural networks", 2017.
class AlphaDropout : public Layer {
 public:
  explicit AlphaDropout(double p = 0.5, Location here = Location::current());
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  double p_;
};

/// AlphaDropout of whole channels of (N, C, size…).
class FeatureAlphaDropout : public Layer {
 public:
  explicit FeatureAlphaDropout(double p = 0.5, Location here = Location::current());
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  double p_;
};

}  // namespace taper::nn
