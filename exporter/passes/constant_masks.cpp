#include <cstring>

#include "taper/exporter/ir/call.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/passes/constant_values.h"
#include "taper/exporter/passes/passes.h"

namespace taper::passes {
namespace {

using ir::Node;
using ir::Value;
using Attention = ir::Call<ops::scaled_dot_product_attention>;

/// The elements of a mask (queries, keys) that follows from constants.
class ConstantMask {
 public:
  /// `mask` may be repeated over leading dimensions. `is_known()`: whether the mask follows from
  /// constants, and has the sizes of the scores.
  ConstantMask(ConstantValues& values, const Value* mask, const Dim& queries, const Dim& keys) {
    while (mask->node != nullptr && mask->node->op == &ops::expand) mask = ir::viewed(*mask->node);
    if (!values.find(mask)) return;
    payload_ = ir::payload_of(values.at(mask));
    const std::vector<int64_t>& sizes = payload_->sizes;
    int64_t heads = 1;
    for (size_t i = 0; i + 2 < sizes.size(); ++i) heads *= sizes[i];
    const bool fits = sizes.size() >= 2 && heads == 1 && same(queries, sizes[sizes.size() - 2]) &&
                      same(keys, sizes.back());
    if (!fits || (payload_->dtype != DType::boolean && payload_->dtype != DType::f32))
      payload_ = nullptr;
  }
  bool is_known() const { return payload_ != nullptr; }
  int64_t queries() const { return payload_->sizes[payload_->sizes.size() - 2]; }
  int64_t keys() const { return payload_->sizes.back(); }

  bool shows_all() const {
    return all([](int64_t, int64_t) { return true; });
  }
  /// Whether query i attends to the first i + 1 keys.
  bool is_causal() const {
    return queries() == keys() && all([](int64_t query, int64_t key) { return key <= query; });
  }

 private:
  /// Whether the mask shows exactly the keys for which `shown(query, key)` holds.
  template <class Shown>
  bool all(const Shown& shown) const {
    for (int64_t i = 0; i < queries(); ++i)
      for (int64_t j = 0; j < keys(); ++j)
        if (!(shown(i, j) ? shows(i * keys() + j) : hides(i * keys() + j))) return false;
    return true;
  }
  bool shows(int64_t i) const {
    return payload_->dtype == DType::boolean ? byte(i) != std::byte{0} : number(i) == 0;
  }
  /// Models write -inf, or the most negative number.
  bool hides(int64_t i) const {
    return payload_->dtype == DType::boolean ? byte(i) == std::byte{0} : number(i) < -1e30f;
  }
  std::byte byte(int64_t i) const { return payload_->bytes.get()[i]; }
  float number(int64_t i) const {
    float n;
    std::memcpy(&n, payload_->bytes.get() + i * static_cast<int64_t>(sizeof n), sizeof n);
    return n;
  }

  std::shared_ptr<const ir::Payload> payload_;
};

bool drop_mask(ir::Graph& graph, PassContext& context, ConstantValues& values, Node& node) {
  const Attention call(node);
  const Value* mask = call.get<"attn_mask">();
  if (mask == nullptr) return false;
  const ir::Type &query = call.get<"query">()->type, &key = call.get<"key">()->type;
  const ConstantMask elements(values, mask, query.sizes[query.rank - 2], key.sizes[key.rank - 2]);
  if (!elements.is_known()) return false;
  const bool shows_all = elements.shows_all();
  if (!shows_all && !elements.is_causal()) return false;
  graph.set_argument(&node, Attention::position<"attn_mask">, std::monostate());
  graph.set_argument(&node, Attention::position<"is_causal">, !shows_all);
  context.did(node, shows_all ? "has no mask now: it hid nothing" : "is causal, without its mask");
  return true;
}

}  // namespace

int constant_masks(ir::Graph& graph, PassContext& context) {
  ConstantValues values(graph);
  int dropped = 0;
  for (Node& node : graph.nodes())
    if (node.op == &ops::scaled_dot_product_attention)
      dropped += drop_mask(graph, context, values, node);
  if (dropped > 0) remove_dead_code(graph, context);
  return dropped;
}

}  // namespace taper::passes
