#include "taper/exporter/passes/replace.h"

#include <unordered_set>

#include "taper/exporter/ir/boxing.h"

namespace taper::passes {

using ir::Node;
using ir::Value;

bool has_one_reader(const ir::Graph& graph, const Value* value) {
  return value->users.size() == 1 && !graph.is_returned(value);
}

Node* insert_if_it_runs(ir::Graph& graph, PassContext& context, Node& node, const Operator& op,
                        std::vector<ir::Argument> arguments) {
  Node* call =
      ir::insert_before(graph, &node, op, std::move(arguments), node.location, node.module);
  if (context.kernels.runs(*call)) return call;
  graph.erase(call);
  context.declined(node,
                   "the target has no kernel for " + std::string(name_of(op)) + " of these dtypes");
  return nullptr;
}

void take_place_of(ir::Graph& graph, Value* old, Value* replacement) {
  graph.replace_uses(old, replacement);
  graph.swap_names(old, replacement);
}

Value* source_of_reshape(const Value* value) {
  if (value->node == nullptr) return nullptr;
  return ir::tensor_of_any<"self", ops::view, ops::expand, ops::alias, ops::clone>(*value->node);
}

Value* below_copies(Value* value) {
  for (;;) {
    Value* source = source_of_reshape(value);
    if (source == nullptr || !ir::same_sizes(source->type, value->type)) return value;
    value = source;
  }
}

Node* cast_to(const Value* value) {
  return value->node != nullptr && value->node->op == &ops::_to_copy ? value->node : nullptr;
}
Value* insert_cast(ir::Graph& graph, Node* before, const Node& cast, Value* value) {
  std::vector<ir::Argument> arguments = cast.arguments;
  arguments[ir::Call<ops::_to_copy>::position<"self">] = value;
  return ir::insert_before(graph, before, ops::_to_copy, std::move(arguments), cast.location,
                           cast.module)
      ->result();
}

Value* transposed_matrices(const Value* value) {
  const Node* node = value->node;
  const int rank = value->type.rank;
  if (node == nullptr || rank < 2) return nullptr;
  const auto is_dim = [&](const Dim& d, int expected) {
    return same(d, expected) || same(d, expected - rank);
  };
  if (node->op == &ops::transpose_int) {
    const ir::Call<ops::transpose_int> call(*node);
    const Dim a = call.get<"dim0">(), b = call.get<"dim1">();
    const bool fits = (is_dim(a, rank - 2) && is_dim(b, rank - 1)) ||
                      (is_dim(a, rank - 1) && is_dim(b, rank - 2));
    return fits ? call.get<"self">() : nullptr;
  }
  if (node->op != &ops::permute) return nullptr;
  const ir::Call<ops::permute> call(*node);
  const std::vector<Dim>& dims = call.get<"dims">();
  for (int i = 0; i < rank; ++i) {
    const int from = i < rank - 2 ? i : 2 * rank - 3 - i;
    if (!is_dim(dims[static_cast<size_t>(i)], from)) return nullptr;
  }
  return call.get<"self">();
}

}  // namespace taper::passes
