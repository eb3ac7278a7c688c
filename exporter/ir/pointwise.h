#pragma once
#include <unordered_set>

#include "taper/kernels/operators.h"

namespace taper::ir {

/// Operators that compute each element from those at its place, whatever the order of dimensions.
inline bool is_pointwise(const Operator& op) {
  static const std::unordered_set<const Operator*> rows = {
#define TAPER_POINTWISE_ROW(op, ...) &taper::ops::op,
#include "taper/kernels/pointwise.def"
#undef TAPER_POINTWISE_ROW
  };
  return rows.contains(&op);
}

}  // namespace taper::ir
