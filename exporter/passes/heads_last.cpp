#include <algorithm>
#include <vector>

#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/passes/passes.h"
#include "taper/exporter/passes/replace.h"

namespace taper::passes {
namespace {

using ir::Node;
using ir::Value;

/// A dimension of a tensor: how many elements, and how far apart they lie.
struct Extent {
  Dim size, stride;
};
bool operator==(const Extent& a, const Extent& b) {
  return same(a.size, b.size) && same(a.stride, b.stride);
}

/// The dimensions with those of size 1 left out, and with neighbours joined that lie as one.
std::vector<Extent> joined(const std::vector<Extent>& dims) {
  std::vector<Extent> list;
  for (const Extent& d : dims) {
    if (same(d.size, 1)) continue;
    if (!list.empty() && same(list.back().stride, d.size * d.stride))
      list.back() = {list.back().size * d.size, d.stride};
    else
      list.push_back(d);
  }
  return list;
}
std::vector<Extent> extents_of(const ir::Type& type) {
  std::vector<Extent> dims;
  for (int i = 0; i < type.rank; ++i) dims.push_back({type.sizes[i], type.strides[i]});
  return dims;
}

/// Whether a dense copy of `view` holds the elements of `result` (…, heads, queries, values) in the
/// order (…, queries, heads, values).
bool puts_heads_last(const ir::Type& view, const ir::Type& result) {
  std::vector<Extent> turned = extents_of(result);
  std::swap(turned[turned.size() - 3], turned[turned.size() - 2]);
  return view.dtype == result.dtype && same(view.offset, 0) &&
         joined(extents_of(view)) == joined(turned);
}

/// An attention, and the cast behind it, if there is one.
struct CastAttention {
  Node* node = nullptr;
  Node* cast = nullptr;
};
/// The attention whose result the clone alone reads, through views and a cast; none: it reads
/// something else.
CastAttention attention_below(const ir::Graph& graph, const Node& clone) {
  const Value* value = ir::Call<ops::clone>(clone).get<"self">();
  const Value* const base = ir::base_of(value);
  Node* cast = cast_to(base);
  const Value* result = cast != nullptr ? ir::Call<ops::_to_copy>(*cast).get<"self">() : base;
  if (result->node == nullptr || result->node->op != &ops::scaled_dot_product_attention ||
      result->type.rank < 3 || ir::is_dense(value->type) ||
      !puts_heads_last(value->type, base->type) || !has_one_reader(graph, result))
    return {};
  for (;; value = ir::viewed(*value->node)) {
    if (!has_one_reader(graph, value)) return {};
    if (value == base) return {result->node, cast};
  }
}

bool put_heads_last(ir::Graph& graph, PassContext& context, Node& clone) {
  const auto [node, cast] = attention_below(graph, clone);
  if (node == nullptr) return false;
  const ir::Call<ops::scaled_dot_product_attention> call(*node);
  if (call.get<"dropout_p">() != 0) return false;
  const auto argument = [node = node](size_t position) { return node->arguments[position]; };
  using Attention = decltype(call);
  const Node* heads_last =
      insert_if_it_runs(graph, context, *node, ops::taper_attention,
                        {call.get<"query">(), call.get<"key">(), call.get<"value">(),
                         argument(Attention::position<"attn_mask">), call.get<"is_causal">(),
                         argument(Attention::position<"scale">), call.get<"enable_gqa">()});
  if (heads_last == nullptr) return false;
  Value* result = heads_last->result();
  if (cast != nullptr) result = insert_cast(graph, cast, *cast, result);
  const Value* copy = clone.result();
  if (!ir::same_sizes(result->type, copy->type)) {
    const std::vector<Dim> sizes(copy->type.sizes, copy->type.sizes + copy->type.rank);
    result =
        ir::insert_before(graph, &clone, ops::view, {result, sizes}, clone.location, clone.module)
            ->result();
  }
  context.did(*node, "gives its result with heads last, as its reader wants it");
  take_place_of(graph, clone.result(), result);
  return true;
}

}  // namespace

int heads_last(ir::Graph& graph, PassContext& context) {
  int replaced = 0;
  for (auto at = graph.nodes().begin(); at != graph.nodes().end();) {
    Node& node = *at++;
    if (node.op == &ops::clone) replaced += put_heads_last(graph, context, node);
  }
  if (replaced > 0) remove_dead_code(graph, context);
  return replaced;
}

}  // namespace taper::passes
