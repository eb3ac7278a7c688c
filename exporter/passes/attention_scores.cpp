#include "taper/exporter/passes/attention_scores.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "taper/exporter/ir/call.h"
#include "taper/exporter/passes/match.h"
#include "taper/exporter/passes/replace.h"

namespace taper::passes {

using ir::Node;
using ir::Value;
using Kind = ScoreMask::Kind;

bool keeps_matrices(const ir::Type& from, const ir::Type& to) {
  if (from.rank < 2 || to.rank < 2) return false;
  for (const int i : {1, 2})
    if (!proves_equal(from.sizes[from.rank - i], to.sizes[to.rank - i])) return false;
  return proves_equal(from.numel(), to.numel());
}

std::optional<Scaled> scaled_by(const Node& node) {
  const Scalar* number = nullptr;
  if (node.op == &ops::mul_Scalar) number = ir::Call<ops::mul_Scalar>(node).get<"other">();
  if (node.op == &ops::div_Scalar) number = ir::Call<ops::div_Scalar>(node).get<"other">();
  if (number == nullptr) return std::nullopt;
  const double factor = number->to<double>();
  return Scaled{ir::tensor_of_any<"self", ops::mul_Scalar, ops::div_Scalar>(node),
                node.op == &ops::mul_Scalar ? factor : 1 / factor};
}

namespace {

/// A score below this counts as hidden. Models write -inf, or the most negative number.
constexpr double lowest_score = -1e30;

const ir::Payload* payload_of(const ir::Graph& graph, const Value* value) {
  for (const ir::Constant& c : graph.constants())
    if (c.value.get() == value) return c.payload.get();
  return nullptr;
}
/// An f32 constant of one element.
std::optional<double> number_in(const ir::Graph& graph, const Value* value) {
  const ir::Payload* payload = payload_of(graph, value);
  float number;
  if (payload == nullptr || payload->dtype != DType::f32 || payload->size_bytes != sizeof number)
    return std::nullopt;
  std::memcpy(&number, payload->bytes.get(), sizeof number);
  return number;
}
bool is_all_zero(const ir::Graph& graph, const Value* value) {
  const ir::Payload* payload = payload_of(graph, value);
  return payload != nullptr &&
         std::all_of(payload->bytes.get(), payload->bytes.get() + payload->size_bytes,
                     [](std::byte b) { return b == std::byte{0}; });
}

class ScoresReader {
 public:
  explicit ScoresReader(const ir::Graph& graph) : graph_(graph) {}

  std::optional<AttentionScores> read(const Value* value, size_t readers = 1) const {
    const Node* node = value->node;
    if (node == nullptr || value->users.size() != readers || graph_.is_returned(value))
      return std::nullopt;
    if (node->op == &ops::bmm) {
      const ir::Call<ops::bmm> call(*node);
      return AttentionScores{call.get<"self">(), call.get<"mat2">(), value};
    }
    if (node->op == &ops::baddbmm) return read_product_and_sum(value);
    if (node->op == &ops::add_Tensor) return read_sum(value);
    if (node->op == &ops::masked_fill_Scalar) return read_hidden(value);
    if (node->op == &ops::where_self) return read_shown(value);
    if (const Value* source = source_of_reshape(value)) return read_reshaped(value, source);
    return read_scaled(value);
  }

 private:
  using Found = std::optional<AttentionScores>;

  Found read_reshaped(const Value* value, const Value* source) const {
    if (!keeps_matrices(source->type, value->type)) return std::nullopt;
    Found scores = read(source);
    if (scores && scores->matrices == source) scores->matrices = value;
    return scores;
  }
  /// A factor of masked scores would be one of the mask, too.
  Found read_scaled(const Value* value) const {
    const std::optional<Scaled> scaled = scaled_by(*value->node);
    if (!scaled) return std::nullopt;
    Found scores = read(scaled->value);
    if (!scores || !scores->masks.empty()) return std::nullopt;
    scores->scale *= scaled->number;
    return scores;
  }
  Found read_product_and_sum(const Value* value) const {
    const ir::Call<ops::baddbmm> call(*value->node);
    const Scalar *beta = call.get<"beta">(), *alpha = call.get<"alpha">();
    if (beta == nullptr || alpha == nullptr || beta->to<double>() != 1) return std::nullopt;
    AttentionScores scores{call.get<"batch1">(), call.get<"batch2">(), value, alpha->to<double>()};
    scores.masks.push_back({Kind::added, call.get<"self">(), value});
    return scores;
  }
  Found read_sum(const Value* value) const {
    const ir::Call<ops::add_Tensor> call(*value->node);
    const Scalar* alpha = call.get<"alpha">();
    if (alpha == nullptr || alpha->to<double>() != 1) return std::nullopt;
    Value *self = call.get<"self">(), *other = call.get<"other">();
    for (const auto& [source, mask] : {std::pair(self, other), std::pair(other, self)})
      if (Found scores = masked(value, source, {Kind::added, mask, value})) return scores;
    return std::nullopt;
  }
  Found read_hidden(const Value* value) const {
    const ir::Call<ops::masked_fill_Scalar> call(*value->node);
    const Scalar* number = call.get<"value">();
    if (number == nullptr) return std::nullopt;
    return masked(value, call.get<"self">(),
                  {Kind::hides, call.get<"mask">(), value, number->to<double>()});
  }
  Found read_shown(const Value* value) const {
    const ir::Call<ops::where_self> call(*value->node);
    const std::optional<double> number = number_in(graph_, call.get<"other">());
    if (!number) return std::nullopt;
    return masked(value, call.get<"self">(),
                  {Kind::shows, call.get<"condition">(), value, *number});
  }
  /// The scores in `source`, then a mask of their sizes.
  Found masked(const Value* value, const Value* source, const ScoreMask& mask) const {
    if (!ir::same_sizes(source->type, value->type) ||
        (mask.kind == Kind::added ? mask.value->type.dtype != value->type.dtype
                                  : !(mask.number < lowest_score)))
      return std::nullopt;
    Found scores = read(source);
    if (scores) scores->masks.push_back(mask);
    return scores;
  }

  const ir::Graph& graph_;
};

}  // namespace

std::optional<AttentionScores> read_scores(const ir::Graph& graph, const Value* scores,
                                           size_t readers) {
  return ScoresReader(graph).read(scores, readers);
}

const Node* softmax_of(const ir::Graph& graph, const Value* weights, size_t& readers) {
  readers = 1;
  const Node* node = weights->node;
  if (node == nullptr || node->op == &ops::_softmax) return node;
  if (node->op != &ops::where_self) return nullptr;
  static const match::Variable scores, zeros;
  static const match::Pattern has_keys = match::call<ops::any_dim>(match::arg<"self">(
      match::call<ops::logical_not>(match::arg<"self">(match::call<ops::eq_Scalar>(
          match::arg<"self">(any(scores)), match::arg<"other">(match::number(-HUGE_VAL)))))));
  static const match::Pattern safe = match::call<ops::where_self>(
      match::arg<"condition">(match::call<ops::logical_not>(match::arg<"self">(has_keys))),
      match::arg<"self">(constant(zeros)),
      match::arg<"other">(match::call<ops::_softmax>(match::arg<"self">(any(scores)))));
  const auto found = find(safe, *node);
  if (!found || !is_all_zero(graph, (*found)[zeros])) return nullptr;
  const Value* unsafe = ir::Call<ops::where_self>(*node).get<"other">();
  readers = 2;
  return has_one_reader(graph, unsafe) ? unsafe->node : nullptr;
}

}  // namespace taper::passes
