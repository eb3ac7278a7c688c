#include "taper/exporter/nn/padding.h"

#include "taper/exporter/eager/ops/padding.h"

namespace taper::nn {

const char* word(PaddingMode mode) {
  switch (mode) {
    case PaddingMode::reflect:
      return "reflect";
    case PaddingMode::replicate:
      return "replicate";
    case PaddingMode::circular:
      return "circular";
    case PaddingMode::zeros:
      break;
  }
  return "constant";
}

template <int n>
Tensor Pad<n>::forward(const Tensor& input, Location here) {
  const Dims sides(padding_.values.begin(), padding_.values.end());
  const std::optional<double> value =
      mode_ == PaddingMode::zeros ? std::optional(value_) : std::nullopt;
  return eager::pad(input, sides, word(mode_), value, here);
}

template class Pad<1>;
template class Pad<2>;
template class Pad<3>;

}  // namespace taper::nn
