// What the integers of i8 values stand for. Internal to compile.
#pragma once
#include <optional>
#include <string>

#include "taper/exporter/ir/graph.h"

namespace taper::delegates::xnnpack {

/// Integers q that stand for scale * (q - zero_point).
struct Scale {
  float scale = 1;
  int32_t zero_point = 0;

  bool operator==(const Scale&) const = default;
};

/// What the operator that made the value says, or one that reads it. Views, `cat`, padding and max
/// pooling keep a scale. Empty: nobody says it.
std::optional<Scale> scale_of(const ir::Value& value);

/// What the operator says of its result, and of the tensor at this position.
std::optional<Scale> result_scale(const ir::Node& node);
std::optional<Scale> input_scale(const ir::Node& node, size_t position);

/// Why the dtypes of the call, or the scales of its integers, are not taken; empty: they are.
std::string refuses_types(const ir::Node& node);

/// Whether the operator moves elements, so that its result has the scale of its inputs.
bool moves(const Operator& op);

}  // namespace taper::delegates::xnnpack
