#include "taper/exporter/passes/passes.h"
#include "taper/exporter/passes/replace.h"

namespace taper::passes {
namespace {

using ir::Node;
using ir::Value;
using Attention = ir::Call<ops::scaled_dot_product_attention>;

/// `repeated` (…, heads, length, features) holds each head of another tensor several times in a
/// row: the other tensor; nullptr: it does not. Models write unsqueeze, expand and a reshape.
Value* unrepeated(Value* repeated) {
  const int rank = repeated->type.rank, head = rank - 3;
  if (head < 0 || repeated->node == nullptr || repeated->node->op != &ops::view) return nullptr;
  const Value* expanded = below_copies(ir::viewed(*repeated->node));
  if (expanded->node == nullptr || expanded->node->op != &ops::expand) return nullptr;
  const Value* unsqueezed = ir::viewed(*expanded->node);
  if (unsqueezed->node == nullptr || unsqueezed->node->op != &ops::unsqueeze) return nullptr;
  Value* source = ir::viewed(*unsqueezed->node);
  const Dim dim = ir::Call<ops::unsqueeze>(*unsqueezed->node).get<"dim">();
  if (source->type.rank != rank || expanded->type.rank != rank + 1 ||
      !(same(dim, head + 1) || same(dim, head + 1 - (rank + 1))))
    return nullptr;
  for (int i = 0; i < rank; ++i) {
    const Dim size = source->type.sizes[i];
    if (!same(expanded->type.sizes[i <= head ? i : i + 1], size) ||
        (i != head && !same(repeated->type.sizes[i], size)))
      return nullptr;
  }
  return source;
}

/// What a repeated value repeats, and the cast that stands between, if there is one. Models in half
/// precision have attention in f32.
struct Source {
  Value* value = nullptr;  ///< nullptr: it repeats nothing
  const Node* cast = nullptr;
};
Source source_of(Value* value) {
  Node* cast = cast_to(value);
  if (cast != nullptr) value = ir::Call<ops::_to_copy>(*cast).get<"self">();
  return {unrepeated(value), cast};
}
Value* with_cast(ir::Graph& graph, Node& before, const Source& source) {
  return source.cast == nullptr ? source.value
                                : insert_cast(graph, &before, *source.cast, source.value);
}

bool group(ir::Graph& graph, PassContext& context, Node& node) {
  const Attention attention(node);
  const Value* query = attention.get<"query">();
  Value *key = attention.get<"key">(), *value = attention.get<"value">();
  const Source keys = source_of(key), values = source_of(value);
  if (keys.value == nullptr && values.value == nullptr) return false;
  const auto heads = [](const Value* v) { return v->type.sizes[v->type.rank - 3]; };
  if (keys.value == nullptr || values.value == nullptr || query->type.rank < 3 ||
      !same(heads(keys.value), heads(values.value)) || !same(heads(key), heads(value)) ||
      !same(heads(key), heads(query))) {
    context.declined(node, "its keys and values are not repeated in the same way");
    return false;
  }
  graph.set_argument(&node, Attention::position<"key">, with_cast(graph, node, keys));
  graph.set_argument(&node, Attention::position<"value">, with_cast(graph, node, values));
  graph.set_argument(&node, Attention::position<"enable_gqa">, true);
  context.did(node, "reads its keys and values without repeating them");
  return true;
}

}  // namespace

int group_heads(ir::Graph& graph, PassContext& context) {
  int grouped = 0;
  for (Node& node : graph.nodes())
    if (node.op == &ops::scaled_dot_product_attention && !Attention(node).get<"enable_gqa">())
      grouped += group(graph, context, node);
  if (grouped > 0) remove_dead_code(graph, context);
  return grouped;
}

}  // namespace taper::passes
