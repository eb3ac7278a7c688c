#include <optional>

#include "taper/exporter/passes/passes.h"
#include "taper/exporter/passes/replace.h"

namespace taper::passes {
namespace {

using ir::Node;
using ir::Value;

Node* node_of(const Value* value, const Operator& op) {
  return value != nullptr && value->node != nullptr && value->node->op == &op ? value->node
                                                                              : nullptr;
}

/// Whether `slice` looks at half of the last dimension of `x`: at elements `first`, `first` + step,
/// and so on.
bool is_slice(const Value* slice, const Value* x, const Dim& first, const Dim& step) {
  const Node* node = node_of(slice, ops::slice_Tensor);
  if (node == nullptr || ir::viewed(*node) != x) return false;
  const ir::Type &part = slice->type, &all = x->type;
  const int last = all.rank - 1;
  for (int i = 0; i < last; ++i)
    if (!same(part.sizes[i], all.sizes[i])) return false;
  return same(part.sizes[last] * 2, all.sizes[last]) &&
         same(part.strides[last], all.strides[last] * step) &&
         same(part.offset - all.offset, all.strides[last] * first);
}

bool is_last(const Dim& dim, const Value* of) {
  return same(dim, -1) || same(dim, of->type.rank - 1);
}

/// cat([first, second], -1)
const std::vector<Value*>* joined_pair(const Value* value) {
  const Node* node = node_of(value, ops::cat);
  if (node == nullptr) return nullptr;
  const ir::Call<ops::cat> call(*node);
  const std::vector<Value*>& tensors = call.get<"tensors">();
  return tensors.size() == 2 && is_last(call.get<"dim">(), value) ? &tensors : nullptr;
}

Value* negated(const Value* value) {
  const Node* node = node_of(value, ops::neg);
  return node == nullptr ? nullptr : ir::Call<ops::neg>(*node).get<"self">();
}
/// The value that got a new last dimension.
Value* below_unsqueeze(const Value* value) {
  const Node* node = node_of(value, ops::unsqueeze);
  if (node == nullptr || !is_last(ir::Call<ops::unsqueeze>(*node).get<"dim">(), value))
    return nullptr;
  return ir::viewed(*node);
}

/// Halves (a, b) of x became (-b, a).
bool has_turned_halves(const Value* turned, const Value* x) {
  const std::vector<Value*>* pair = joined_pair(turned);
  if (pair == nullptr) return false;
  const Dim half = x->type.sizes[x->type.rank - 1] / 2;
  return is_slice(negated((*pair)[0]), x, half, 1) && is_slice((*pair)[1], x, 0, 1);
}
/// Neighbours (a, b) of x became (-b, a).
bool has_turned_neighbours(const Value* turned, const Value* x) {
  const Node* flattened = node_of(turned, ops::view);
  if (flattened == nullptr) return false;
  const std::vector<Value*>* pair = joined_pair(ir::viewed(*flattened));
  return pair != nullptr && is_slice(negated(below_unsqueeze((*pair)[0])), x, 1, 2) &&
         is_slice(below_unsqueeze((*pair)[1]), x, 0, 2);
}

struct Rotation {
  Value *x, *cos, *sin;
  bool interleaved;
};

/// x * cos + turned(x) * sin, with these operands in this order.
std::optional<Rotation> rotation_of(Value* x, Value* cos, const Value* turned, Value* sin) {
  if (x->type.rank == 0 || !ir::same_sizes(turned->type, x->type)) return std::nullopt;
  const Dim features = x->type.sizes[x->type.rank - 1];
  for (const Value* factor : {cos, sin})
    if (factor->type.rank == 0 || factor->type.dtype != x->type.dtype ||
        !same(factor->type.sizes[factor->type.rank - 1], features))
      return std::nullopt;
  if (has_turned_halves(turned, x)) return Rotation{x, cos, sin, false};
  if (has_turned_neighbours(turned, x)) return Rotation{x, cos, sin, true};
  return std::nullopt;
}

/// The rotation that a sum ends, in whatever order its terms and their factors stand. Nobody else
/// may read its parts.
std::optional<Rotation> rotation_in(const ir::Graph& graph, const Node& sum) {
  const ir::Call<ops::add_Tensor> call(sum);
  const Scalar* alpha = call.get<"alpha">();
  if (alpha == nullptr || alpha->to<double>() != 1) return std::nullopt;
  const Node *first = node_of(call.get<"self">(), ops::mul_Tensor),
             *second = node_of(call.get<"other">(), ops::mul_Tensor);
  if (first == nullptr || second == nullptr || !has_one_reader(graph, first->result()) ||
      !has_one_reader(graph, second->result()))
    return std::nullopt;
  for (const auto& [a, b] : {std::pair(first, second), std::pair(second, first)})
    for (const int x : {0, 1})
      for (const int turned : {0, 1}) {
        const auto factor = [](const Node* product, int i) {
          return std::get<Value*>(product->arguments[static_cast<size_t>(i)]);
        };
        const auto found =
            rotation_of(factor(a, x), factor(a, 1 - x), factor(b, turned), factor(b, 1 - turned));
        if (found && ir::same_sizes(sum.result()->type, found->x->type) &&
            has_one_reader(graph, factor(b, turned)))
          return found;
      }
  return std::nullopt;
}

}  // namespace

int fuse_rotary_embedding(ir::Graph& graph, PassContext& context) {
  int fused = 0;
  for (auto at = graph.nodes().begin(); at != graph.nodes().end();) {
    Node& node = *at++;
    if (node.op != &ops::add_Tensor) continue;
    const std::optional<Rotation> rotation = rotation_in(graph, node);
    if (!rotation) continue;
    const Node* call =
        insert_if_it_runs(graph, context, node, ops::taper_rotary_embedding,
                          {rotation->x, rotation->cos, rotation->sin, rotation->interleaved});
    if (call == nullptr) continue;
    context.did(node, "is the end of a rotary embedding");
    take_place_of(graph, node.result(), call->result());
    ++fused;
  }
  if (fused > 0) remove_dead_code(graph, context);
  return fused;
}

}  // namespace taper::passes
