#pragma once
#include <optional>
#include <utility>

#include "taper/exporter/nn/module.h"

namespace taper::nn {

struct LinearOptions {
  bool bias = true;
};

/// y = x · weightᵀ + bias
///   x (…, in), weight (out, in), bias (out) -> (…, out)
/// Initial weight and bias: uniform in ±1/√in.
class Linear : public Layer {
 public:
  Linear(int64_t in_features, int64_t out_features, LinearOptions options = {},
         Location here = Location::current());

  Parameter weight, bias;  ///< bias: undefined without one
  TAPER_LAYER(weight, bias)
  Tensor forward(const Tensor& input, Location here = Location::current()) override;
};

/// y = x
class Identity : public Layer {
 public:
  Tensor forward(const Tensor& input, Location = Location::current()) override { return input; }
};

/// Joins dimensions start_dim to end_dim into one: (N, C, H, W) -> (N, C·H·W) by default.
class Flatten : public Layer {
 public:
  explicit Flatten(int64_t start_dim = 1, int64_t end_dim = -1)
      : start_(start_dim), end_(end_dim) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  int64_t start_, end_;
};

/// Cuts dimension `dim` into `sizes`: (N, 6) with 1 and {2, 3} -> (N, 2, 3). One size may be -1.
class Unflatten : public Layer {
 public:
  Unflatten(int64_t dim, Ints sizes) : dim_(dim), sizes_(std::move(sizes)) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  int64_t dim_;
  Ints sizes_;
};

/// y_k = x1ᵀ weight_k x2 + bias_k
///   x1 (…, in1), x2 (…, in2), weight (out, in1, in2), bias (out) -> (…, out)
/// Initial weight and bias: uniform in ±1/√in1.
class Bilinear : public Module {
 public:
  Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features,
           LinearOptions options = {}, Location here = Location::current());

  Parameter weight, bias;  ///< bias: undefined without one
  TAPER_MODULE(weight, bias)
  Tensor forward(const Tensor& input1, const Tensor& input2, Location here = Location::current());
};

/// The cosine of the angle between vectors along `dim`. The two inputs broadcast. A norm below eps
/// counts as eps.
class CosineSimilarity : public Module {
 public:
  explicit CosineSimilarity(int64_t dim = 1, double eps = 1e-8) : dim_(dim), eps_(eps) {}
  TAPER_MODULE()
  Tensor forward(const Tensor& x1, const Tensor& x2, Location here = Location::current());

 private:
  int64_t dim_;
  double eps_;
};

/// The p-norm of x1 - x2 + eps along the last dimension.
class PairwiseDistance : public Module {
 public:
  explicit PairwiseDistance(double p = 2, double eps = 1e-6, bool keepdim = false)
      : p_(p), eps_(eps), keepdim_(keepdim) {}
  TAPER_MODULE()
  Tensor forward(const Tensor& x1, const Tensor& x2, Location here = Location::current());

 private:
  double p_, eps_;
  bool keepdim_;
};

}  // namespace taper::nn
