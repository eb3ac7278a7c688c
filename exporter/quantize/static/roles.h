// What static quantization does with each operator.
#pragma once
#include <optional>

#include "taper/exporter/ir/graph.h"
#include "taper/exporter/quantize/static/grid.h"

namespace taper::quantize {

enum class Role : uint8_t {
  none,        ///< stays float
  product,     ///< of an activation and a constant weight: convolution, linear, mm, addmm
  arithmetic,  ///< of two activations: add, sub, mul, bmm
  limit,       ///< relu, hardtanh, clamp: joins the node before it, or keeps the scale of its input
  move,        ///< keeps the scale of its input: views, max_pool2d, cat, constant_pad_nd, …
  average,     ///< means and average pools, upsampling: has a scale of its own
  function,    ///< of one activation: gelu, hardswish, …; has a scale of its own
  bounded,     ///< sigmoid, tanh, softmax: their range is known
};
Role role_of(const Operator& op);

/// Zero point and scale of a function whose range is known.
Grid grid_of_bounded(const Operator& op);

/// The operands of a node of role `product`.
struct Product {
  ir::Value* input;
  ir::Value* weight;       ///< the constant, perhaps below a transposing view
  ir::Value* bias;         ///< nullptr: none
  int axis;                ///< the dimension of the weight that numbers output channels
  bool one_scale = false;  ///< channels cannot be told apart along one axis
};
/// nullopt: the node is no product, or not one of a constant f32 weight.
std::optional<Product> product_of(const ir::Node& node);

/// The tensors of a node that count as activations: neither weight nor bias.
std::vector<ir::Value*> activations_of(const ir::Node& node);

}  // namespace taper::quantize
