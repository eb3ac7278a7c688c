#include "taper/delegates/xnnpack/runtime/precision.h"

#include "taper/delegates/xnnpack/runtime/part.h"

namespace taper::delegates::xnnpack {
namespace {

index_t readers_of(const Part& part, uint32_t value) {
  index_t readers = 0;
  for (index_t i = 0; i < part.nodes(); ++i)
    for (const uint32_t input : part.node(i).inputs) readers += input == value ? 1 : 0;
  return readers;
}

bool has_f16_kernel(const Part& part, const NodeView& n) {
  switch (n.kind) {
    case blob::Kind::unary:
      return n.function != blob::Function::exp && n.function != blob::Function::gelu &&
             n.function != blob::Function::log;
    case blob::Kind::batch_matmul:
      // The library would pack a copy in f16, which has another address for each engine.
      return !part.is_constant(n.inputs[1]);
    case blob::Kind::grouped_product:
      return false;  // its operators read f32, and nothing rounds their operands
    case blob::Kind::pad:
      // Zeros around images become a part of the convolution behind them. The library then rounds
      // the operand there, which is too late for a node before the convolution.
      return static_cast<index_t>(n.inputs[0]) >= part.inputs() ||
             readers_of(part, n.inputs[0]) == 1;
    default:
      return true;
  }
}

}  // namespace

bool fits_f16(const Part& part) {
  for (index_t v = 0; v < part.values(); ++v)
    if (part.quantized(v) != nullptr) return false;
  for (index_t i = 0; i < part.nodes(); ++i)
    if (!has_f16_kernel(part, part.node(i))) return false;
  return true;
}

}  // namespace taper::delegates::xnnpack
