#include "taper/exporter/eager/ops/pooling.h"

#include "taper/exporter/eager/decompositions/decomposition.h"

namespace taper::eager::decompositions {

TAPER_DECOMPOSITION(max_pool2d) {
  return {std::get<0>(call<ops::max_pool2d_with_indices>(
      a.here(), a.tensor<"self">(), a.integers<"kernel_size">(), a.integers<"stride">(),
      a.integers<"padding">(), a.integers<"dilation">(), a.boolean<"ceil_mode">()))};
}

TAPER_DECOMPOSITION(max_pool3d) {
  return {std::get<0>(call<ops::max_pool3d_with_indices>(
      a.here(), a.tensor<"self">(), a.integers<"kernel_size">(), a.integers<"stride">(),
      a.integers<"padding">(), a.integers<"dilation">(), a.boolean<"ceil_mode">()))};
}

// One dimension is two, the first of extent 1.
TAPER_DECOMPOSITION(max_pool1d) {
  const Location here = a.here();
  const Tensor self = a.tensor<"self">();
  if (self.rank() != 2 && self.rank() != 3)
    throw EagerError(
        here, "max_pool1d: self must have 2 or 3 dimensions, it is " + to_string(self.sizes()));
  const auto pair = [](const Ints& list, int64_t first) {
    return list.empty() ? Ints() : Ints{first, list[0]};
  };
  const Tensor pooled = std::get<0>(call<ops::max_pool2d_with_indices>(
      here, self.unsqueeze(-2, here), pair(a.integers<"kernel_size">(), 1),
      pair(a.integers<"stride">(), 1), pair(a.integers<"padding">(), 0),
      pair(a.integers<"dilation">(), 1), a.boolean<"ceil_mode">()));
  return {pooled.squeeze(-2, here)};
}

TAPER_DECOMPOSITION(adaptive_avg_pool2d) {
  return {call<ops::_adaptive_avg_pool2d>(a.here(), a.tensor<"self">(), a.dims<"output_size">())};
}

TAPER_DECOMPOSITION(adaptive_avg_pool3d) {
  return {call<ops::_adaptive_avg_pool3d>(a.here(), a.tensor<"self">(), a.dims<"output_size">())};
}

}  // namespace taper::eager::decompositions
