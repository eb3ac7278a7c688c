// Losses as modules: `CrossEntropyLoss loss; loss(logits, labels).backward();`
#pragma once
#include <functional>
#include <utility>

#include "taper/exporter/eager/call.h"
#include "taper/exporter/nn/module.h"
#include "taper/kernels/shapes/loss.h"

namespace taper::nn {

/// What the losses of the elements become: none leaves them, mean and sum combine them.
using taper::Reduction;

/// A loss of an input and a target.
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

/// A loss of three tensors, such as two inputs and a target.
class LossOfThree : public Module {
 public:
  explicit LossOfThree(Reduction reduction) : reduction_(reduction) {}
  virtual Tensor forward(const Tensor& a, const Tensor& b, const Tensor& c,
                         Location here = Location::current()) = 0;
  Tensor operator()(const Tensor& a, const Tensor& b, const Tensor& c,
                    Location here = Location::current()) {
    eager::ModuleScope scope(name());
    return forward(a, b, c, here);
  }

 protected:
  Reduction reduction() const { return reduction_; }

 private:
  Reduction reduction_;
};

/// A Loss that is one operator of input, target and the reduction.
template <const Operator& op>
class OperatorLoss : public Loss {
 public:
  explicit OperatorLoss(Reduction reduction = Reduction::mean) : Loss(reduction) {}
  Tensor forward(const Tensor& input, const Tensor& target,
                 Location here = Location::current()) override {
    return eager::call<op>(here, input, target, static_cast<int64_t>(reduction()));
  }
};
using MSELoss = OperatorLoss<ops::mse_loss>;  ///< (input - target)²
using L1Loss = OperatorLoss<ops::l1_loss>;    ///< |input - target|
/// log(1 + exp(-t x)) for targets 1 and -1.
using SoftMarginLoss = OperatorLoss<ops::soft_margin_loss>;
/// Σ max(0, 1 - x_t + x_c) / C over the target classes t and the others c: (N, C) and classes i64
/// (N, C), those before the first -1.
using MultiLabelMarginLoss = OperatorLoss<ops::multilabel_margin_loss>;

struct CrossEntropyLossOptions {
  Tensor weight =
      {};  ///< (C), one for each class; `mean` then divides by the weights of the targets
  int64_t ignore_index = -100;  ///< targets of this class count for nothing
  Reduction reduction = Reduction::mean;
  double label_smoothing = 0;  ///< the part of the target that is spread evenly over all classes
};
/// -log softmax(input)[target]. The input is logits (N, C, size…). The target is classes i64 (N,
/// size…), or probabilities (N, C, size…).
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
/// -input[target]. The input is log probabilities (N, C, size…), the target classes i64 (N, size…).
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

/// With d = |input - target|: d² / 2 where d < delta, else delta (d - delta / 2).
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
/// -(t log x + (1 - t) log(1 - x)), where x are probabilities. The logarithms are at least -100.
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
/// BCELoss of sigmoid(input), computed without overflow.
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
/// t (log t - input), where the input is log probabilities.
class KLDivLoss : public Loss {
 public:
  explicit KLDivLoss(KLDivLossOptions options = {})
      : Loss(options.batch_mean ? Reduction::sum : options.reduction), options_(options) {}
  Tensor forward(const Tensor& input, const Tensor& target,
                 Location here = Location::current()) override;

 private:
  KLDivLossOptions options_;
};

struct PoissonNLLLossOptions {
  bool log_input = true;  ///< the input x is the logarithm of the rate: exp(x) - t x
  bool full = false;      ///< with Stirling's approximation of log t! where t > 1
  double eps = 1e-8;      ///< of a plain rate: x - t log(x + eps)
  Reduction reduction = Reduction::mean;
};
/// The negative log-likelihood of counts t under a Poisson distribution.
class PoissonNLLLoss : public Loss {
 public:
  explicit PoissonNLLLoss(PoissonNLLLossOptions options = {})
      : Loss(options.reduction), options_(options) {}
  Tensor forward(const Tensor& input, const Tensor& target,
                 Location here = Location::current()) override;

 private:
  PoissonNLLLossOptions options_;
};

struct GaussianNLLLossOptions {
  bool full = false;  ///< with the constant log(2π) / 2
  double eps = 1e-6;  ///< smaller variances count as this
  Reduction reduction = Reduction::mean;
};
/// (log var + (input - target)² / var) / 2. var has the input's shape, or 1 as its last extent, or
/// lacks the last dimension. eps does not enter the gradient.
class GaussianNLLLoss : public LossOfThree {
 public:
  explicit GaussianNLLLoss(GaussianNLLLossOptions options = {})
      : LossOfThree(options.reduction), options_(options) {}
  Tensor forward(const Tensor& input, const Tensor& target, const Tensor& var,
                 Location here = Location::current()) override;

 private:
  GaussianNLLLossOptions options_;
};

struct MultiLabelSoftMarginLossOptions {
  Tensor weight = {};  ///< (C), one for each class
  Reduction reduction = Reduction::mean;
};
/// The mean of BCEWithLogits over the classes. Logits and targets (0 or 1) are (N, C) or (C).
class MultiLabelSoftMarginLoss : public Loss {
 public:
  explicit MultiLabelSoftMarginLoss(MultiLabelSoftMarginLossOptions options = {})
      : Loss(options.reduction), weight(options.weight) {}
  Tensor weight;
  TAPER_LAYER(weight)
  Tensor forward(const Tensor& input, const Tensor& target,
                 Location here = Location::current()) override;
};

/// x where the target is 1, and max(0, margin - x) where it is -1.
class HingeEmbeddingLoss : public Loss {
 public:
  explicit HingeEmbeddingLoss(double margin = 1, Reduction reduction = Reduction::mean)
      : Loss(reduction), margin_(margin) {}
  Tensor forward(const Tensor& input, const Tensor& target,
                 Location here = Location::current()) override;

 private:
  double margin_;
};

/// Of two batches of vectors: 1 - cos where the target is 1, and max(0, cos - margin) where it is
/// -1.
class CosineEmbeddingLoss : public LossOfThree {
 public:
  explicit CosineEmbeddingLoss(double margin = 0, Reduction reduction = Reduction::mean)
      : LossOfThree(reduction), margin_(margin) {}
  Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target,
                 Location here = Location::current()) override;

 private:
  double margin_;
};

/// max(0, margin - t (x1 - x2)), where targets are 1 and -1.
class MarginRankingLoss : public LossOfThree {
 public:
  explicit MarginRankingLoss(double margin = 0, Reduction reduction = Reduction::mean)
      : LossOfThree(reduction), margin_(margin) {}
  Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target,
                 Location here = Location::current()) override;

 private:
  double margin_;
};

struct TripletMarginLossOptions {
  double margin = 1;
  double p = 2;       ///< of the norm
  double eps = 1e-6;  ///< added to the differences
  bool swap = false;  ///< the negative's distance is the lesser of those to anchor and positive
  Reduction reduction = Reduction::mean;
};
/// max(0, |anchor - positive| - |anchor - negative| + margin). Schroff et al., "FaceNet", 2015.
class TripletMarginLoss : public LossOfThree {
 public:
  explicit TripletMarginLoss(TripletMarginLossOptions options = {})
      : LossOfThree(options.reduction), options_(options) {}
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                 Location here = Location::current()) override;

 private:
  TripletMarginLossOptions options_;
};

struct TripletMarginWithDistanceLossOptions {
  /// Of two tensors like anchor and positive. Absent: the 2-norm, as PairwiseDistance.
  std::function<Tensor(const Tensor&, const Tensor&)> distance_function = nullptr;
  double margin = 1;
  bool swap = false;  ///< the negative's distance is the lesser of those to anchor and positive
  Reduction reduction = Reduction::mean;
};
/// max(0, d(anchor, positive) - d(anchor, negative) + margin) with a distance d of your own.
class TripletMarginWithDistanceLoss : public LossOfThree {
 public:
  explicit TripletMarginWithDistanceLoss(TripletMarginWithDistanceLossOptions options = {})
      : LossOfThree(options.reduction), options_(std::move(options)) {}
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                 Location here = Location::current()) override;

 private:
  TripletMarginWithDistanceLossOptions options_;
};

struct MultiMarginLossOptions {
  int64_t p = 1;  ///< or 2
  double margin = 1;
  Tensor weight = {};  ///< (C), one for each class
  Reduction reduction = Reduction::mean;
};
/// Σ max(0, margin - x_target + x_c)^p / C over the classes c other than the target. Input (N, C),
/// target i64 (N).
class MultiMarginLoss : public Loss {
 public:
  explicit MultiMarginLoss(MultiMarginLossOptions options = {})
      : Loss(options.reduction), weight(options.weight), options_(options) {}
  Tensor weight;
  TAPER_LAYER(weight)
  Tensor forward(const Tensor& input, const Tensor& target,
                 Location here = Location::current()) override;

 private:
  MultiMarginLossOptions options_;
};

struct CTCLossOptions {
  int64_t blank = 0;
  Reduction reduction = Reduction::mean;
  bool zero_infinity = false;  ///< targets that are too long for their input count as zero
};
/// Graves et al., "Connectionist temporal classification", 2006. The arguments are those of
/// eager::ctc_loss.
class CTCLoss : public Module {
 public:
  explicit CTCLoss(CTCLossOptions options = {}) : options_(options) {}
  TAPER_MODULE()
  Tensor forward(const Tensor& log_probs, const Tensor& targets, const Ints& input_lengths,
                 const Ints& target_lengths, Location here = Location::current());
  /// Reads the lengths from tensors, so it cannot be traced.
  Tensor forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                 const Tensor& target_lengths, Location here = Location::current());

 private:
  CTCLossOptions options_;
};

}  // namespace taper::nn
