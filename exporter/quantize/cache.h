// Results of `quantize` that calls for copies of the same graphs use again. Internal.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "taper/exporter/quantize/matrix.h"

namespace taper::quantize {

struct Cache {
  /// The elements of a weight, whether it is transposed, and what it becomes.
  using Key = std::tuple<const std::byte*, bool, Layout, Method, int64_t>;

  /// By the names of inputs; one for each matrix.
  std::map<std::string, std::vector<std::shared_ptr<Hessian>>> hessians;
  std::map<Key, Quantized> weights;
};

}  // namespace taper::quantize
