// Activations as modules, for Sequential. Each computes the operator of its name.
#pragma once
#include <string>

#include "taper/exporter/eager/call.h"
#include "taper/exporter/nn/module.h"

namespace taper::nn {

/// A Layer that is one operator of its input alone.
template <const Operator& op>
class OperatorLayer : public Layer {
 public:
  Tensor forward(const Tensor& input, Location here = Location::current()) override {
    return eager::call<op>(here, input);
  }
};
using ReLU = OperatorLayer<ops::relu>;               ///< max(x, 0)
using ReLU6 = OperatorLayer<ops::relu6>;             ///< min(max(x, 0), 6)
using Sigmoid = OperatorLayer<ops::sigmoid>;         ///< 1 / (1 + exp(-x))
using LogSigmoid = OperatorLayer<ops::log_sigmoid>;  ///< log(1 / (1 + exp(-x)))
using Tanh = OperatorLayer<ops::tanh>;
using SiLU = OperatorLayer<ops::silu>;  ///< x · sigmoid(x)
using Mish = OperatorLayer<ops::mish>;  ///< x · tanh(log(1 + exp(x)))
/// Klambauer et al., "Self-normalizing neural networks", 2017
using SELU = OperatorLayer<ops::selu>;
using Hardsigmoid = OperatorLayer<ops::hardsigmoid>;  ///< min(max(x + 3, 0), 6) / 6
using Hardswish = OperatorLayer<ops::hardswish>;      ///< x · hardsigmoid(x)

/// x - tanh(x)
struct Tanhshrink : Layer {
  Tensor forward(const Tensor& input, Location here = Location::current()) override;
};
/// x / (1 + |x|)
struct Softsign : Layer {
  Tensor forward(const Tensor& input, Location here = Location::current()) override;
};
/// Softmax over the channels of (N, C, H, W) or (C, H, W)
struct Softmax2d : Layer {
  Tensor forward(const Tensor& input, Location here = Location::current()) override;
};

/// x · Φ(x), where Φ is the normal distribution function. "tanh" takes its usual approximation.
class GELU : public Layer {
 public:
  explicit GELU(std::string approximate = "none") : approximate_(std::move(approximate)) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  std::string approximate_;
};

/// x for x > 0, else negative_slope · x.
class LeakyReLU : public Layer {
 public:
  explicit LeakyReLU(double negative_slope = 0.01) : negative_slope_(negative_slope) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  double negative_slope_;
};

/// LeakyReLU whose slope is drawn for each element from [lower, upper) in training. eval() uses
/// their mean. Xu et al., "Empirical evaluation of rectified activations", 2015.
class RReLU : public Layer {
 public:
  /// Throws EagerError if lower is above upper.
  explicit RReLU(double lower = 1.0 / 8, double upper = 1.0 / 3,
                 Location here = Location::current());
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  double lower_, upper_;
};

/// LeakyReLU with a trained slope: one for all, or one for each channel (dimension 1).
class PReLU : public Layer {
 public:
  explicit PReLU(int64_t num_parameters = 1, double init = 0.25);

  Parameter weight;
  TAPER_LAYER(weight)
  Tensor forward(const Tensor& input, Location here = Location::current()) override;
};

/// x for x > 0, else alpha · (exp(x) - 1).
class ELU : public Layer {
 public:
  explicit ELU(double alpha = 1) : alpha_(alpha) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  double alpha_;
};

/// x for x > 0, else alpha · (exp(x / alpha) - 1).
class CELU : public Layer {
 public:
  explicit CELU(double alpha = 1) : alpha_(alpha) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  double alpha_;
};

/// log(1 + exp(beta · x)) / beta; x itself where beta · x > threshold.
class Softplus : public Layer {
 public:
  explicit Softplus(double beta = 1, double threshold = 20) : beta_(beta), threshold_(threshold) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  double beta_, threshold_;
};

/// min(max(x, min_val), max_val)
class Hardtanh : public Layer {
 public:
  explicit Hardtanh(double min_val = -1, double max_val = 1) : min_(min_val), max_(max_val) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  double min_, max_;
};

/// x where x > threshold, else value.
class Threshold : public Layer {
 public:
  Threshold(double threshold, double value) : threshold_(threshold), value_(value) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  double threshold_, value_;
};

/// x moved towards zero by lambd; zero where |x| <= lambd.
class Softshrink : public Layer {
 public:
  explicit Softshrink(double lambd = 0.5) : lambd_(lambd) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  double lambd_;
};

/// x where |x| > lambd, else zero.
class Hardshrink : public Layer {
 public:
  explicit Hardshrink(double lambd = 0.5) : lambd_(lambd) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  double lambd_;
};

/// exp(x), scaled so that the sum along `dim` is 1.
class Softmax : public Layer {
 public:
  explicit Softmax(int64_t dim) : dim_(dim) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  int64_t dim_;
};

/// softmax(-x)
class Softmin : public Layer {
 public:
  explicit Softmin(int64_t dim) : dim_(dim) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  int64_t dim_;
};

/// log(softmax(x)) along `dim`.
class LogSoftmax : public Layer {
 public:
  explicit LogSoftmax(int64_t dim) : dim_(dim) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  int64_t dim_;
};

/// a · sigmoid(b), where a and b are the halves of x along `dim`.
class GLU : public Layer {
 public:
  explicit GLU(int64_t dim = -1) : dim_(dim) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  int64_t dim_;
};

}  // namespace taper::nn
