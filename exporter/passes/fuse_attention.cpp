#include <optional>
#include <vector>

#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/passes/attention_scores.h"
#include "taper/exporter/passes/passes.h"
#include "taper/exporter/passes/replace.h"

namespace taper::passes {
namespace {

using ir::Node;
using ir::Type;
using ir::Value;

bool has_same_sizes(const Type& a, const Type& b) {
  bool equal = a.rank == b.rank;
  for (int i = 0; equal && i < a.rank; ++i) equal = same(a.sizes[i], b.sizes[i]);
  return equal;
}
/// Whether the last `n` sizes are the same.
bool ends_alike(const Type& a, const Type& b, int n) {
  bool equal = a.rank >= n && b.rank >= n;
  for (int i = 1; equal && i <= n; ++i) equal = same(a.sizes[a.rank - i], b.sizes[b.rank - i]);
  return equal;
}
bool starts_with_ones(const Type& type, int but_for) {
  for (int i = but_for + 1; i <= type.rank; ++i)
    if (!same(type.sizes[type.rank - i], 1)) return false;
  return true;
}

/// Of the scores that masks are applied to, those with the most dimensions. Windowed attention
/// splits the batch before it adds the mask of the windows.
const Type& widest(const AttentionScores& scores) {
  const Type* widest = &scores.matrices->type;
  for (const ScoreMask& m : scores.masks)
    if (m.scores->type.rank > widest->rank) widest = &m.scores->type;
  return *widest;
}

/// Whether a mask of (batch, queries, keys) differs from one of the batch to the next.
bool is_of_flat_batch(const ScoreMask& mask, const Type& wide) {
  return mask.scores->type.rank == 3 && wide.rank > 3 && ends_alike(mask.scores->type, wide, 2) &&
         mask.value->type.rank == 3 && same(mask.value->type.sizes[0], mask.scores->type.sizes[0]);
}
/// Whether a mask also fits these scores, whose leading dimensions are split.
bool fits(const ScoreMask& mask, const Type& wide) {
  const Type &own = mask.scores->type, &m = mask.value->type;
  return has_same_sizes(own, wide) || is_of_flat_batch(mask, wide) ||
         (ends_alike(own, wide, 3) && starts_with_ones(m, 3)) ||
         (ends_alike(own, wide, 2) && starts_with_ones(m, 2));
}

class AttentionFuser {
 public:
  AttentionFuser(ir::Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  int run() {
    int fused = 0;
    for (auto at = graph_.nodes().begin(); at != graph_.nodes().end();) {
      Node& node = *at++;
      if (node.op == &ops::bmm) fused += visit(node);
    }
    if (at_ != nullptr) remove_dead_code(graph_, context_);
    return fused;
  }

 private:
  using Product = ir::Call<ops::bmm>;

  bool visit(Node& product) {
    bool shared = false;
    const Value* weights = below_reshapes(Product(product).get<"self">(), shared);
    size_t readers = 1;
    const Node* softmax = softmax_of(graph_, weights, readers);
    if (softmax == nullptr || softmax->op != &ops::_softmax) return false;
    const auto decline = [&](const char* why) { return context_.declined(*softmax, why), false; };
    const ir::Call<ops::_softmax> call(*softmax);
    const Dim dim = call.get<"dim">();
    if (!same(dim, -1) && !same(dim, weights->type.rank - 1))
      return decline("it runs over another dimension than the keys");
    if (call.get<"half_to_float">()) return decline("it changes the dtype");
    if (shared) return decline("its weights are used elsewhere, too");
    const std::optional<AttentionScores> scores = read_scores(graph_, call.get<"self">(), readers);
    if (!scores)
      return decline("its scores are no scaled product with masks, or are used elsewhere, too");
    const Type wide = widest(*scores);
    for (const ScoreMask& m : scores->masks)
      if (!fits(m, wide)) return decline("a mask has other leading dimensions than the scores");
    return replace(product, *scores, wide);
  }

  bool replace(Node& product, const AttentionScores& scores, const Type& wide) {
    at_ = &product;
    const Type& narrow = scores.matrices->type;
    double scale = scores.scale;
    Value* query = unscaled(matrices(scores.query, narrow), scale);
    Value* key = unscaled(matrices(scores.key, narrow), scale);
    Value* turned = transposed_matrices(key);
    key = turned != nullptr ? unscaled(below_copies(turned), scale)
                            : insert(ops::transpose_int, {key, Dim(-2), Dim(-1)});
    Value* value = matrices(Product(product).get<"mat2">(), narrow);
    for (Value** v : {&query, &key, &value}) *v = with_leading_dims(*v, wide);
    Value* mask = mask_of(scores, wide);
    Node* attention = insert_if_it_runs(
        graph_, context_, product, ops::scaled_dot_product_attention,
        {query, key, value, mask != nullptr ? ir::Argument(mask) : std::monostate(), 0.0, false,
         scale, false});
    if (attention == nullptr) return false;
    Value* result = attention->result();
    Value* old = product.result();
    if (has_one_reader(graph_, old) && old->users[0]->op == &ops::view)
      old = old->users[0]->result();
    context_.did(*attention, "was written as products around a softmax");
    take_place_of(graph_, old, reshaped(result, old->type));
    return true;
  }

  Value* insert(const Operator& op, std::vector<ir::Argument> arguments) {
    return ir::insert_before(graph_, at_, op, std::move(arguments), at_->location, at_->module)
        ->result();
  }

  /// `shared`: whether several nodes read the value, or a reshape of it.
  const Value* below_reshapes(const Value* value, bool& shared) const {
    for (;;) {
      shared = shared || !has_one_reader(graph_, value);
      const Value* source = source_of_reshape(value);
      if (source == nullptr || !keeps_matrices(source->type, value->type)) return value;
      value = source;
    }
  }

  /// An operand of bmm, (batch, rows, columns), with the leading dimensions of the scores.
  Value* matrices(Value* operand, const Type& scores) {
    const Type wanted = with_leading_dims(operand->type, scores);
    for (Value* v = operand; v != nullptr; v = source_of_reshape(v))
      if (has_same_sizes(v->type, wanted)) return below_copies(v);
    return with_leading_dims(operand, scores);
  }
  static Type with_leading_dims(const Type& matrices, const Type& scores) {
    Type type = scores;
    for (const int i : {1, 2}) type.sizes[type.rank - i] = matrices.sizes[matrices.rank - i];
    return type;
  }
  Value* with_leading_dims(Value* matrices, const Type& scores) {
    return reshaped(matrices, with_leading_dims(matrices->type, scores));
  }
  Value* reshaped(Value* value, const Type& type) {
    if (has_same_sizes(value->type, type)) return value;
    return insert(ops::view, {value, std::vector<Dim>(type.sizes, type.sizes + type.rank)});
  }

  /// Takes factors off a value and puts them into `scale`.
  static Value* unscaled(Value* value, double& scale) {
    while (value->node != nullptr) {
      const std::optional<Scaled> scaled = scaled_by(*value->node);
      if (!scaled) break;
      scale *= scaled->number;
      value = below_copies(scaled->value);
    }
    return value;
  }

  /// One mask for all: a sum, or a bool that says what is shown. A sum hides by lowest numbers.
  Value* mask_of(const AttentionScores& scores, const Type& wide) {
    using Kind = ScoreMask::Kind;
    if (scores.masks.size() == 1 && scores.masks[0].kind == Kind::shows)
      return with_split_batch(scores.masks[0], wide);
    Value *sum = nullptr, *hidden = nullptr;
    double lowest = 0;
    for (const ScoreMask& m : scores.masks) {
      Value* mask = with_split_batch(m, wide);
      if (m.kind == Kind::added) {
        sum = sum == nullptr ? mask : insert(ops::add_Tensor, {sum, mask, Scalar(1)});
        continue;
      }
      if (m.kind == Kind::shows) mask = insert(ops::logical_not, {mask});
      hidden = hidden == nullptr ? mask : insert(ops::logical_or, {hidden, mask});
      lowest = m.number;
    }
    if (hidden == nullptr) return sum;
    return sum == nullptr ? insert(ops::logical_not, {hidden})
                          : insert(ops::masked_fill_Scalar, {sum, hidden, Scalar(lowest)});
  }
  Value* with_split_batch(const ScoreMask& mask, const Type& wide) {
    return is_of_flat_batch(mask, wide) ? with_leading_dims(mask.value, wide) : mask.value;
  }

  ir::Graph& graph_;
  PassContext& context_;
  Node* at_ = nullptr;  ///< where nodes are inserted
};

}  // namespace

int fuse_attention(ir::Graph& graph, PassContext& context) {
  return AttentionFuser(graph, context).run();
}

}  // namespace taper::passes
