// What rounds the input of a product to 8 bits while the program runs. Internal to compile.
#pragma once
#include <optional>

#include "taper/exporter/ir/call.h"
#include "taper/exporter/partition/delegate.h"

namespace taper::delegates::xnnpack {

/// The node that a value is the result of, if it calls one of `list`.
template <const Operator&... list>
ir::Node* producer(const ir::Value* value) {
  ir::Node* node = value == nullptr ? nullptr : value->node;
  return node != nullptr && ((node->op == &list) || ...) ? node : nullptr;
}

/// Numbers are chosen, and `input` is quantized with them.
struct Quantized {
  const ir::Node* chooses;
  const ir::Value* input;  ///< f32
};
/// What `node` quantizes to i8 with numbers that follow from the least and the largest element of
/// each row, or of the whole tensor. The numbers that the library chooses for each row make no
/// larger steps. Absent: it does something else.
std::optional<Quantized> quantized(const ir::Node& node);
/// The same where the integers become f32 again, as `value`.
std::optional<Quantized> quantized_and_back(const ir::Value* value);

/// All that computes the result of `last` from `input` and constants, each behind what it reads.
/// Empty: the result needs something else, too.
partition::Group nodes_between(const ir::Value& input, ir::Node& last);

}  // namespace taper::delegates::xnnpack
