// Losses as modules: `CrossEntropyLoss loss; loss(logits, labels).backward();`
#pragma once
#include "taper/exporter/nn/module.h"
#include "taper/kernels/shapes/loss.h"

namespace taper::nn {

/// How the losses of the elements become the result: none, mean, sum.
using taper::Reduction;

/// A module of an input and a target.
class Loss : public Module {
 public:
  explicit Loss(Reduction reduction) : reduction_(reduction) {}
  virtual Tensor forward(const Tensor& input, const Tensor& target,
                         Location here = Location::current()) = 0;
  Tensor operator()(const Tensor& input, const Tensor& target,
                    Location here = Location::current()) {
    eager::ModuleScope scope(name());
    return forward(input, target, here);
  }

 protected:
  Reduction reduction() const { return reduction_; }

 private:
  Reduction reduction_;
};

struct CrossEntropyLossOptions {
  Tensor weight =
      {};  ///< (C), one for each class; `mean` then divides by the weights of the targets
  int64_t ignore_index = -100;  ///< targets of this class count for nothing
  Reduction reduction = Reduction::mean;
  double label_smoothing = 0;  ///< the part of the target that is spread evenly over all classes
};
/// -log softmax(input)[target]: logits (N, C, size…) and classes i64 (N, size…), or probabilities
/// (N, C, size…).
class CrossEntropyLoss : public Loss {
 public:
  explicit CrossEntropyLoss(CrossEntropyLossOptions options = {})
      : Loss(options.reduction),
        weight(options.weight),
        ignore_index_(options.ignore_index),
        label_smoothing_(options.label_smoothing) {}
  Tensor weight;
  TAPER_LAYER(weight)
  Tensor forward(const Tensor& input, const Tensor& target,
                 Location here = Location::current()) override;

 private:
  int64_t ignore_index_;
  double label_smoothing_;
};

struct NLLLossOptions {
  Tensor weight = {};
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;
};
/// -input[target]: log probabilities (N, C, size…) and classes i64 (N, size…).
class NLLLoss : public Loss {
 public:
  explicit NLLLoss(NLLLossOptions options = {})
      : Loss(options.reduction), weight(options.weight), ignore_index_(options.ignore_index) {}
  Tensor weight;
  TAPER_LAYER(weight)
  Tensor forward(const Tensor& input, const Tensor& target,
                 Location here = Location::current()) override;

 private:
  int64_t ignore_index_;
};

/// (input - target)²
class MSELoss : public Loss {
 public:
  explicit MSELoss(Reduction reduction = Reduction::mean) : Loss(reduction) {}
  Tensor forward(const Tensor& input, const Tensor& target,
                 Location here = Location::current()) override;
};

/// |input - target|
class L1Loss : public Loss {
 public:
  explicit L1Loss(Reduction reduction = Reduction::mean) : Loss(reduction) {}
  Tensor forward(const Tensor& input, const Tensor& target,
                 Location here = Location::current()) override;
};

/// d = |input - target|: d² / (2 beta) below beta, else d - beta / 2.
class SmoothL1Loss : public Loss {
 public:
  explicit SmoothL1Loss(Reduction reduction = Reduction::mean, double beta = 1)
      : Loss(reduction), beta_(beta) {}
  Tensor forward(const Tensor& input, const Tensor& target,
                 Location here = Location::current()) override;

 private:
  double beta_;
};

/// d = |input - target|: d² / 2 below delta, else delta (d - delta / 2).
class HuberLoss : public Loss {
 public:
  explicit HuberLoss(Reduction reduction = Reduction::mean, double delta = 1)
      : Loss(reduction), delta_(delta) {}
  Tensor forward(const Tensor& input, const Tensor& target,
                 Location here = Location::current()) override;

 private:
  double delta_;
};

struct BCELossOptions {
  Tensor weight = {};  ///< broadcast over the elements
  Reduction reduction = Reduction::mean;
};
/// -(t log x + (1 - t) log(1 - x)) of probabilities x; the logarithms are at least -100.
class BCELoss : public Loss {
 public:
  explicit BCELoss(BCELossOptions options = {}) : Loss(options.reduction), weight(options.weight) {}
  Tensor weight;
  TAPER_LAYER(weight)
  Tensor forward(const Tensor& input, const Tensor& target,
                 Location here = Location::current()) override;
};

struct BCEWithLogitsLossOptions {
  Tensor weight = {};      ///< broadcast over the elements
  Tensor pos_weight = {};  ///< multiplies the loss of positive targets
  Reduction reduction = Reduction::mean;
};
/// The same of sigmoid(input), computed without overflow.
class BCEWithLogitsLoss : public Loss {
 public:
  explicit BCEWithLogitsLoss(BCEWithLogitsLossOptions options = {})
      : Loss(options.reduction), weight(options.weight), pos_weight(options.pos_weight) {}
  Tensor weight, pos_weight;
  TAPER_LAYER(weight, pos_weight)
  Tensor forward(const Tensor& input, const Tensor& target,
                 Location here = Location::current()) override;
};

struct KLDivLossOptions {
  Reduction reduction = Reduction::mean;
  bool log_target = false;  ///< the target holds log t
  bool batch_mean = false;  ///< the sum divided by the extent of dimension 0, whatever `reduction`
                            ///< says: the divergence proper
};
/// t (log t - input) of log probabilities.
class KLDivLoss : public Loss {
 public:
  explicit KLDivLoss(KLDivLossOptions options = {})
      : Loss(options.batch_mean ? Reduction::sum : options.reduction), options_(options) {}
  Tensor forward(const Tensor& input, const Tensor& target,
                 Location here = Location::current()) override;

 private:
  KLDivLossOptions options_;
};

}  // namespace taper::nn
