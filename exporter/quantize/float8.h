// Weights as 8-bit floats. Internal.
#pragma once
#include <memory>
#include <vector>

#include "taper/exporter/ir/graph.h"

namespace taper::quantize {

/// A weight in f8_e4m3fn, and a factor for each slice of one dimension.
struct Float8Weight {
  std::shared_ptr<const ir::Payload> elements;
  std::shared_ptr<const ir::Payload> scales;  ///< sizes are 1, but that of the dimension
  std::vector<float> values;                  ///< what they stand for

  int64_t size_bytes() const {
    return static_cast<int64_t>(elements->size_bytes + scales->size_bytes);
  }
};

/// Rounds a floating weight of rank 1 or more. The largest magnitude of a slice along `dim` becomes
/// 448, the largest number of the format.
Float8Weight round_to_float8(const ir::Payload& weight, int64_t dim);

/// Gives all readers of a constant the weight, which is widened when the program runs.
void read_float8(ir::Graph& graph, ir::Constant& constant, const Float8Weight& weight);

}  // namespace taper::quantize
