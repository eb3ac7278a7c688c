// What a user chooses for static quantization.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "taper/exporter/quantize/static/observer.h"

namespace taper::quantize {

struct StaticOptions {
  ObserverOptions observer;
  /// A scale for each output channel of a weight. Otherwise a weight has one scale.
  bool per_channel = true;
  /// Nodes that stay float: patterns with `*` and `?` for the module ("features.0.*"), the operator
  /// ("_softmax") or the name of the result ("conv2d_3"). A pattern that fits no node is an error.
  std::vector<std::string> exclude;
  /// More nodes that stay float, by the names of their results.
  std::set<std::string> float_results;
  /// Adds to each bias what the rounding of the weights takes from the mean of the result. Takes
  /// one more run over the calibration data.
  bool correct_bias = true;
  /// No scale of a weight is smaller. PyTorch's quantizers for XNNPACK take 2^-12. That is too much
  /// for the small channels behind folded batch norms: with less, RetinaFace gains 1.3 dB.
  float least_weight_scale = 0x1p-30f;
  /// 2 to 8: weights are integers of so many bits, from -(2^(bits-1) - 1) on. They are stored in 8.
  int weight_bits = 8;

  int highest_weight() const { return (1 << (weight_bits - 1)) - 1; }
};

}  // namespace taper::quantize
