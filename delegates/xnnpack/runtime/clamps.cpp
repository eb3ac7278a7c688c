#include "taper/delegates/xnnpack/runtime/clamps.h"

#include <limits>

namespace taper::delegates::xnnpack {
namespace {

bool reads(const NodeView& n, index_t value) {
  for (const uint32_t input : n.inputs)
    if (static_cast<index_t>(input) == value) return true;
  return false;
}

// The clamp that alone reads the value, or -1. The first reader mostly is no clamp.
index_t clamp_behind(const Part& part, index_t value) {
  index_t first = value - part.inputs() + 1;
  while (first < part.nodes() && !reads(part.node(first), value)) ++first;
  const bool may = first < part.nodes() && is_clamp(part.node(first));
  return may && only_reader(part, value) == first ? first : -1;
}

float between(float x, float low, float high) {
  if (x < low) return low;
  return x > high ? high : x;
}

}  // namespace

bool is_clamp(const NodeView& n) {
  return n.kind == blob::Kind::unary && n.function == blob::Function::clamp;
}

bool has_bounds(const NodeView& n) {
  switch (n.kind) {
    case blob::Kind::convolution:
    case blob::Kind::depthwise:
    case blob::Kind::deconvolution:
    case blob::Kind::fully_connected:
    case blob::Kind::max_pool:
    case blob::Kind::average_pool:
      return true;
    default:
      return is_clamp(n);
  }
}

index_t only_reader(const Part& part, index_t value) {
  index_t reader = -1;
  for (index_t r = 0; r < part.results(); ++r)
    if (part.result(r) == value) return -1;
  for (index_t i = value - part.inputs() + 1; i < part.nodes(); ++i)
    for (const uint32_t input : part.node(i).inputs) {
      if (static_cast<index_t>(input) != value) continue;
      if (reader >= 0) return -1;
      reader = i;
    }
  return reader;
}

Bounded with_clamps(const Part& part, index_t node, NodeSet& fused) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const NodeView n = part.node(node);
  Bounded b{-infinity, infinity, static_cast<uint32_t>(part.inputs() + node)};
  if (!n.parameters.empty()) b.low = n.parameters[0], b.high = n.parameters[1];
  for (;;) {
    const index_t behind = clamp_behind(part, static_cast<index_t>(b.result));
    if (behind < 0) return b;
    const Span<const float> bounds = part.node(behind).parameters;
    const float low = between(b.low, bounds[0], bounds[1]);
    const float high = between(b.high, bounds[0], bounds[1]);
    if (!(low < high)) return b;
    b = {low, high, static_cast<uint32_t>(part.inputs() + behind)};
    fused.add(behind);
  }
}

}  // namespace taper::delegates::xnnpack
