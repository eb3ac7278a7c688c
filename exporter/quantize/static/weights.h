// Weights as 8-bit integers. Internal.
#pragma once
#include <memory>
#include <vector>

#include "taper/exporter/ir/graph.h"

namespace taper::quantize {

/// Integers in -127..127 with zero point 0.
struct IntegerWeight {
  std::shared_ptr<const ir::Payload> integers;
  std::vector<float> scales;  ///< one for each slice along `axis`, or one in all
  int axis = -1;              ///< -1: one scale
};

/// Rounds an f32 weight of rank 1 or more to the nearest integers. `axis`: -1 for one scale. No
/// scale is less than `least`. Throws ExportError, which begins with `name`, if an element is NaN
/// or infinite.
IntegerWeight round_weight(const ir::Payload& weight, int axis, float least,
                           const std::string& name);
/// The same with a further bound for each slice.
IntegerWeight round_weight(const ir::Payload& weight, int axis, float least,
                           const std::vector<float>& bounds, const std::string& name);

/// The numbers that the integers stand for.
std::shared_ptr<const ir::Payload> values_of(const IntegerWeight& weight);

}  // namespace taper::quantize
