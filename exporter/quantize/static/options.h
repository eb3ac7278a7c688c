// What a user chooses for static quantization.
#pragma once
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
  /// Adds to each bias what the rounding of the weights takes from the mean of the result.
  bool correct_bias = false;
};

}  // namespace taper::quantize
