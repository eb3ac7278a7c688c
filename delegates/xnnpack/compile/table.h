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

/// Rows of what moves elements (moves.cpp), and of static 8-bit operators (integers.cpp).
std::span<const Row> moving_rows();
std::span<const Row> integer_rows();
/// Rows of attention (attention.cpp).
std::span<const Row> attention_rows();
/// Gives masks of attention that are bool as numbers, where attention is taken otherwise.
void number_masks(ir::Graph& graph);
/// Rows of products whose input is rounded while the program runs (rounded.cpp).
std::span<const Row> rounded_rows();

/// nullptr: the operator is not taken.
const Row* find_row(const Operator& op);

/// Why the whole call is refused, by its row and by what holds for all rows; empty: it is taken.
std::string refusal(const ir::Node& node);
/// Why a value is refused that may be read or computed; empty: it is taken.
std::string refuses_value(const ir::Value& value);
/// Whether a value is a constant, perhaps through views that are taken.
bool is_constant(const ir::Value* value);

}  // namespace taper::delegates::xnnpack
