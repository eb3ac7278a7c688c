#pragma once
#include <vector>

#include "taper/exporter/nn/containers.h"
#include "taper/exporter/nn/linear.h"

namespace taper::nn {

struct AdaptiveLogSoftmaxOptions {
  double div_value = 4;    ///< the features of cluster i are in_features / div_value^(i + 1)
  bool head_bias = false;  ///< with a bias in `head`
};

/// A softmax over many classes that are sorted by how often they occur, the commonest first. `head`
/// scores the classes before the first cutoff, and each later cluster as a whole. The cluster's
/// part of `tail` scores its classes. Grave et al., "Efficient softmax approximation for GPUs",
/// arXiv:1609.04309.
///
/// All clusters are computed for all rows, and masks choose among them. So sizes do not depend on
/// the targets, and a program needs no data for its shapes. PyTorch computes only the rows of each
/// cluster, with the same results.
class AdaptiveLogSoftmaxWithLoss : public Module {
 public:
  /// `cutoffs` are the first classes of the clusters behind the head, sorted, in [1, n_classes).
  /// Throws EagerError for others.
  AdaptiveLogSoftmaxWithLoss(int64_t in_features, int64_t n_classes, std::vector<int64_t> cutoffs,
                             AdaptiveLogSoftmaxOptions options = {},
                             Location here = Location::current());

  Linear head;
  ModuleList<Sequential> tail;
  TAPER_MODULE(head, tail)

  struct Result {
    Tensor output;  ///< the log probability of each target
    Tensor loss;    ///< the mean of -output
  };
  /// input (N, in) and classes i64 (N); or (in) and a 0-dim class.
  Result forward(const Tensor& input, const Tensor& target, Location here = Location::current());
  /// The log probabilities of all classes: (N, in) -> (N, n_classes).
  Tensor log_prob(const Tensor& input, Location here = Location::current());
  /// The likeliest classes, i64: (N, in) -> (N); or (in) -> 0-dim.
  Tensor predict(const Tensor& input, Location here = Location::current());

 private:
  int64_t head_classes() const { return cutoffs_.front(); }
  int64_t clusters() const { return static_cast<int64_t>(cutoffs_.size()) - 1; }
  Tensor log_prob_of(const Tensor& input, const Tensor& scores);

  std::vector<int64_t> cutoffs_;  // with n_classes at the end
};

}  // namespace taper::nn
