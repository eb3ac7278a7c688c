#include <algorithm>
#include <optional>
#include <vector>

#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/passes/passes.h"
#include "taper/exporter/passes/replace.h"

namespace taper::passes {
namespace {

using ir::Node;
using ir::Type;
using ir::Value;

/// A tensor that is added to the scores, or that says which of them are hidden.
struct Mask {
  Value* value;
  const Value* scores;  ///< those that it is applied to
};

/// scale * query keyᵀ, then masks. Built from the product upwards.
struct Scores {
  const Node* product = nullptr;    ///< bmm(query, keyᵀ)
  const Value* matrices = nullptr;  ///< its result as (…, queries, keys)
  double scale = 1;
  std::vector<Mask> added, hidden;
};

/// Scores below this count as hidden. Models write -inf, or the most negative number.
constexpr double lowest_score = -1e30;

/// The factor of mul.Scalar or div.Scalar; nothing: another node.
std::optional<double> factor_of(const Node& node) {
  const Scalar* number = nullptr;
  if (node.op == &ops::mul_Scalar) number = ir::Call<ops::mul_Scalar>(node).get<"other">();
  if (node.op == &ops::div_Scalar) number = ir::Call<ops::div_Scalar>(node).get<"other">();
  if (number == nullptr) return std::nullopt;
  return node.op == &ops::mul_Scalar ? number->to<double>() : 1 / number->to<double>();
}

bool is_reshape(const Operator& op) {
  return &op == &ops::view || &op == &ops::expand || &op == &ops::alias || &op == &ops::clone;
}

class ScoresReader {
 public:
  explicit ScoresReader(const ir::Graph& graph) : graph_(graph) {}

  std::optional<Scores> read(const Value* value) const {
    const Node* node = value->node;
    if (node == nullptr || !has_one_reader(graph_, value)) return std::nullopt;
    if (node->op == &ops::bmm) {
      Scores scores;
      scores.product = node, scores.matrices = value;
      return scores;
    }
    if (is_reshape(*node->op)) return read_reshaped(value, std::get<Value*>(node->arguments[0]));
    if (node->op == &ops::add_Tensor) return read_sum(value);
    if (node->op == &ops::masked_fill_Scalar) return read_hidden(value);
    const std::optional<double> factor = factor_of(*node);
    if (!factor) return std::nullopt;
    std::optional<Scores> scores = read(std::get<Value*>(node->arguments[0]));
    if (!scores || !scores->added.empty()) return std::nullopt;
    scores->scale *= *factor;
    return scores;
  }

 private:
  std::optional<Scores> read_reshaped(const Value* value, const Value* source) const {
    std::optional<Scores> scores = read(source);
    if (scores && scores->matrices == source) scores->matrices = value;
    return scores;
  }
  std::optional<Scores> read_sum(const Value* value) const {
    const ir::Call<ops::add_Tensor> call(*value->node);
    const Scalar* alpha = call.get<"alpha">();
    if (alpha == nullptr || alpha->to<double>() != 1) return std::nullopt;
    Value *self = call.get<"self">(), *other = call.get<"other">();
    for (const auto& [source, mask] : {std::pair(self, other), std::pair(other, self)}) {
      if (!ir::same_sizes(source->type, value->type) || source == mask) continue;
      std::optional<Scores> scores = read(source);
      if (!scores) continue;
      scores->added.push_back({mask, value});
      return scores;
    }
    return std::nullopt;
  }
  std::optional<Scores> read_hidden(const Value* value) const {
    const ir::Call<ops::masked_fill_Scalar> call(*value->node);
    const Scalar* number = call.get<"value">();
    if (number == nullptr || number->to<double>() > lowest_score ||
        !ir::same_sizes(call.get<"self">()->type, value->type))
      return std::nullopt;
    std::optional<Scores> scores = read(call.get<"self">());
    if (scores) scores->hidden.push_back({call.get<"mask">(), value});
    return scores;
  }

  const ir::Graph& graph_;
};

/// Of the scores that masks are applied to, those with the most dimensions. Windowed attention
/// splits the batch before it adds the mask of the windows.
const Type& widest(const Scores& scores) {
  const Type* widest = &scores.matrices->type;
  for (const std::vector<Mask>* masks : {&scores.added, &scores.hidden})
    for (const Mask& m : *masks)
      if (m.scores->type.rank > widest->rank) widest = &m.scores->type;
  return *widest;
}

/// Whether the mask of some scores also fits these scores, whose leading dimensions are split.
bool fits(const Mask& mask, const Type& wide) {
  const Type &own = mask.scores->type, &m = mask.value->type;
  bool is_same = own.rank == wide.rank;
  for (int i = 0; is_same && i < own.rank; ++i) is_same = same(own.sizes[i], wide.sizes[i]);
  if (is_same) return true;
  constexpr int kept = 3;  // heads, queries, keys
  for (int i = 1; i <= kept; ++i)
    if (i > own.rank || i > wide.rank || !same(own.sizes[own.rank - i], wide.sizes[wide.rank - i]))
      return false;
  for (int i = kept + 1; i <= m.rank; ++i)
    if (!same(m.sizes[m.rank - i], 1)) return false;
  return true;
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
    if (fused > 0) remove_dead_code(graph_, context_);
    return fused;
  }

 private:
  using Product = ir::Call<ops::bmm>;

  bool visit(Node& product) {
    const Value* weights = below_reshapes(Product(product).get<"self">());
    const Node* softmax = weights->node;
    if (softmax == nullptr || softmax->op != &ops::_softmax) return false;
    const auto decline = [&](const char* why) { return context_.declined(*softmax, why), false; };
    const ir::Call<ops::_softmax> call(*softmax);
    const Dim dim = call.get<"dim">();
    if (!same(dim, -1) && !same(dim, weights->type.rank - 1))
      return decline("it runs over another dimension than the keys");
    if (call.get<"half_to_float">()) return decline("it changes the dtype");
    if (!has_one_reader(graph_, weights)) return decline("its weights are used elsewhere, too");
    const std::optional<Scores> scores = ScoresReader(graph_).read(call.get<"self">());
    if (!scores)
      return decline("its scores are no scaled product with masks, or are used elsewhere, too");
    if (!scores->hidden.empty() && scores->hidden.size() + scores->added.size() > 1)
      return decline("its scores are masked several times");
    const Type wide = widest(*scores);
    for (const std::vector<Mask>* masks : {&scores->added, &scores->hidden})
      for (const Mask& m : *masks)
        if (!fits(m, wide) || (m.value->type.dtype != wide.dtype && masks == &scores->added))
          return decline("a mask has other leading dimensions than the scores, or another dtype");
    return replace(product, *scores, wide);
  }

  bool replace(Node& product, const Scores& scores, const Type& wide) {
    at_ = &product;
    const Product first(*scores.product), second(product);
    const Type& narrow = scores.matrices->type;
    double scale = scores.scale;
    Value* query = unscaled(matrices(first.get<"self">(), narrow), scale);
    Value* key = unscaled(matrices(first.get<"mat2">(), narrow), scale);
    Value* turned = transposed_matrices(key);
    key = turned != nullptr ? unscaled(below_copies(turned), scale)
                            : insert(ops::transpose_int, {key, Dim(-2), Dim(-1)});
    Value* value = matrices(second.get<"mat2">(), narrow);
    for (Value** v : {&query, &key, &value}) *v = with_leading_dims(*v, wide);
    Value* mask = mask_of(scores);
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

  static bool same_extents(const Type& a, const Type& b) {
    bool equal = a.rank == b.rank;
    for (int i = 0; equal && i < a.rank; ++i) equal = same(a.sizes[i], b.sizes[i]);
    return equal;
  }
  Value* insert(const Operator& op, std::vector<ir::Argument> arguments) {
    return ir::insert_before(graph_, at_, op, std::move(arguments), at_->location, at_->module)
        ->result();
  }

  static Value* below_reshapes(Value* value) {
    while (value->node != nullptr && is_reshape(*value->node->op))
      value = std::get<Value*>(value->node->arguments[0]);
    return value;
  }

  /// An operand of bmm, (batch, rows, columns), with the leading dimensions of the scores.
  Value* matrices(Value* operand, const Type& scores) {
    const Type wanted = with_leading_dims(operand->type, scores);
    for (Value* v = operand;; v = std::get<Value*>(v->node->arguments[0])) {
      if (same_extents(v->type, wanted)) return below_copies(v);
      if (v->node == nullptr || !is_reshape(*v->node->op)) break;
    }
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
    if (same_extents(value->type, type)) return value;
    return insert(ops::view, {value, std::vector<Dim>(type.sizes, type.sizes + type.rank)});
  }

  /// Takes factors off a value and puts them into `scale`.
  static Value* unscaled(Value* value, double& scale) {
    while (value->node != nullptr) {
      const std::optional<double> factor = factor_of(*value->node);
      if (!factor) break;
      scale *= *factor;
      value = below_copies(std::get<Value*>(value->node->arguments[0]));
    }
    return value;
  }

  Value* mask_of(const Scores& scores) {
    if (!scores.hidden.empty()) return insert(ops::logical_not, {scores.hidden[0].value});
    Value* sum = nullptr;
    for (const Mask& m : scores.added)
      sum = sum == nullptr ? m.value : insert(ops::add_Tensor, {sum, m.value, Scalar(1)});
    return sum;
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
