// Weights as 8-bit integers. Internal.
#pragma once
#include <memory>
#include <vector>

#include "taper/exporter/ir/graph.h"
#include "taper/exporter/quantize/static/options.h"

namespace taper::quantize {

/// Integers with zero point 0.
struct IntegerWeight {
  std::shared_ptr<const ir::Payload> integers;
  std::vector<float> scales;  ///< one for each slice along `axis`, or one in all
  int axis = -1;              ///< -1: one scale
};

/// Rounds a constant, f32 of rank 1 or more, to the nearest integers in -highest..highest. `axis`:
/// -1 for one scale. No scale is less than that of the options, nor than the bound of its slice if
/// there are bounds. Throws ExportError, which begins with the path, if an element is NaN or
/// infinite.
IntegerWeight round_weight(const ir::Constant& weight, int axis, const StaticOptions& options,
                           const std::vector<float>& bounds = {});

/// The numbers that the integers stand for.
std::shared_ptr<const ir::Payload> values_of(const IntegerWeight& weight);

}  // namespace taper::quantize
