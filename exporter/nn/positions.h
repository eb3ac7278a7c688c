#pragma once
#include "taper/exporter/eager/eager.h"

namespace taper::nn::internal {

/// The numbers 0 … count - 1, also if `count` is symbolic.
inline eager::Tensor positions(Dim count) {
  if (count.is_constant()) return eager::arange(count.value(), DType::i64);
  return eager::cumsum(eager::ones({count}, DType::i64), 0) - 1;
}

}  // namespace taper::nn::internal
