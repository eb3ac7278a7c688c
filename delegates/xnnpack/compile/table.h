// The table of what is taken. Internal to compile.
#pragma once
#include <span>
#include <string>

#include "taper/delegates/xnnpack/compile/lowering.h"

namespace taper::delegates::xnnpack {

/// A row: an operator, what the library asks of a call beyond its types, and how the call becomes
/// nodes.
struct Row {
  const Operator* op;
  std::string (*refuses)(const ir::Node& node);  ///< nullptr: nothing
  void (*lower)(Lowering& out, const ir::Node& node);
  bool is_heavy = false;  ///< worth a part of its own
};

// Each list is in the file of its name. Matrix products and softmax are in table.cpp.
std::span<const Row> convolution_rows();
std::span<const Row> pool_rows();    ///< and of reductions
std::span<const Row> volume_rows();  ///< pools of volumes
std::span<const Row> resizing_rows();
std::span<const Row> pointwise_rows();
std::span<const Row> moving_rows();   ///< what moves elements
std::span<const Row> integer_rows();  ///< static 8-bit operators
std::span<const Row> attention_rows();
std::span<const Row> rounded_rows();  ///< products whose input is rounded while the program runs

/// Gives masks of attention that are bool as numbers, where a part takes the attention then.
void number_masks(ir::Graph& graph);

/// nullptr: the operator is not taken.
const Row* find_row(const Operator& op);

/// Why the whole call is refused, by its row and by what holds for all rows; empty: it is taken.
std::string refusal(const ir::Node& node);
/// Why a value is refused that may be read or computed; empty: it is taken.
std::string refuses_value(const ir::Value& value);
/// Why a product is refused whose weight or bias is no constant; empty: both are.
std::string refuses_weights(const ir::Value* weight, const ir::Value* bias);
/// Whether a value is a constant, perhaps through views that are taken.
bool is_constant(const ir::Value* value);

}  // namespace taper::delegates::xnnpack
