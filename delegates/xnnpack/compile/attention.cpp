// Attention as products around a softmax. The scores need memory of their own.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "taper/delegates/xnnpack/compile/arguments.h"
#include "taper/delegates/xnnpack/compile/table.h"
#include "taper/exporter/eager/ops/comparison.h"
#include "taper/exporter/eager/ops/creation.h"
#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/call.h"
#include "taper/exporter/ir/interpreter.h"

namespace taper::delegates::xnnpack {
namespace attending {
namespace {

using blob::Function, blob::Kind;
using eager::Tensor;
using ir::Call, ir::Node, ir::Value;

// They take 1 MiB. Our kernel keeps few scores at a time, and is faster where there are many.
constexpr int64_t most_scores = 1 << 18;

/// The most scores of a call.
int64_t scores_of(const Value& query, const Value& key) {
  Dim count = key.type.sizes[key.type.rank - 2];
  for (int d = 0; d < query.type.rank - 1; ++d) count = count * query.type.sizes[d];
  return count.upper();
}

int symbolic(std::initializer_list<Dim> sizes) {
  return static_cast<int>(
      std::count_if(sizes.begin(), sizes.end(), [](Dim d) { return !d.is_constant(); }));
}

/// Whether value has the batch, heads and keys of key. The library broadcasts none of them.
bool agree(const Value& key, const Value& value) {
  if (value.type.rank != key.type.rank) return false;
  for (int d = 0; d < key.type.rank - 1; ++d)
    if (!proves_equal(key.type.sizes[d], value.type.sizes[d])) return false;
  return true;
}

/// Whether the dimensions before the heads are equal.
bool have_equal_batches(const Value& query, const Value& key) {
  for (int d = 0; d < query.type.rank - 3; ++d)
    if (!proves_equal(query.type.sizes[d], key.type.sizes[d])) return false;
  return true;
}

Dim heads_of(const Value& v) { return v.type.sizes[v.type.rank - 3]; }

/// Whether a head of key serves several heads of query.
bool shares_heads(const Value& query, const Value& key) {
  return !proves_equal(heads_of(query), heads_of(key));
}

/// Whether a mask is another one for each head.
bool differs_by_heads(const Value* mask) {
  return mask != nullptr && mask->type.rank >= 3 && !proves_equal(heads_of(*mask), 1);
}

/// Why heads cannot share keys. Queries of several heads become those of one head, by a reshape,
/// and so do scores if the mask differs.
std::string refuses_sharing(const Value& query, const Value& key, const Value* mask,
                            bool enable_gqa) {
  if (!heads_of(query).is_constant() || !heads_of(key).is_constant())
    return "the number of heads is symbolic";
  if (!enable_gqa && !proves_equal(heads_of(key), 1)) return "query and key have other heads";
  const int rank = query.type.rank;
  int symbols = differs_by_heads(mask) && !key.type.sizes[rank - 2].is_constant();
  for (int d = 0; d < rank; ++d) symbols += !query.type.sizes[d].is_constant();
  return symbols > 1 ? "heads share keys, and several sizes are symbolic" : "";
}

/// `mask`: the mask of the call, or the one that it will have.
template <const Operator& op>
std::string refuses_under(const Node& node, const Value* mask) {
  const Call<op> c(node);
  if constexpr (&op == &ops::scaled_dot_product_attention)
    if (c.template get<"dropout_p">() != 0) return "it drops weights";
  const Value &query = *c.template get<"query">(), &key = *c.template get<"key">();
  const int rank = query.type.rank;
  if (rank < 3 || key.type.rank != rank)
    return "it has other dimensions than (batch, heads, positions, features)";
  const Dim *q = query.type.sizes, *k = key.type.sizes;
  if (!q[rank - 1].is_constant()) return "the number of features is symbolic";
  if (!have_equal_batches(query, key)) return "batches differ";
  if (!agree(key, *c.template get<"value">())) return "value has other leading sizes than key";
  if (c.template get<"is_causal">() && symbolic({q[rank - 2], k[rank - 2]}) > 0)
    return "later keys are hidden, and their number is symbolic";
  if (scores_of(query, key) > most_scores) return "its scores need more than 1 MiB";
  return shares_heads(query, key)
             ? refuses_sharing(query, key, mask, c.template get<"enable_gqa">())
             : "";
}
template <const Operator& op>
std::string refuses_attention(const Node& node) {
  return refuses_under<op>(node, Call<op>(node).template get<"attn_mask">());
}

// ---- masks: numbers that are added to the scores ----

/// The least number of a mask. It leaves nothing of a score, and a softmax over such scores is no
/// NaN. Twice as much stands for -infinity, which hides a key beside the most negative numbers,
/// too.
constexpr float least = -1e38f;

/// Hides the keys behind a query's own position, for the queries of several heads.
Ref causal_mask(Lowering& out, int64_t queries, int64_t keys, int64_t heads) {
  std::vector<float> mask;
  for (int64_t i = 0; i < heads * queries; ++i)
    for (int64_t j = 0; j < keys; ++j) mask.push_back(j <= i % queries ? 0 : least);
  return out.constant(mask, {heads * queries, keys});
}

/// 0 for a key that -infinity hides, and 1 for others.
Ref shown_keys(Lowering& out, Ref mask) {
  // The most negative number becomes -6.8. It hides a key only beside others.
  const Ref small = out.add(Kind::binary, Function::multiply, {mask, out.number(2e-38)}),
            moved = out.add(Kind::binary, Function::add, {small, out.number(8)});
  return out.add(Kind::unary, Function::clamp, {moved}, {}, {0, 1});
}
/// 1 for a query with a key, and 0 for one without any, which gets zeros.
Ref has_keys(Lowering& out, Ref shown, int rank) {
  const Ref keys = out.add(Kind::sum, Function::none, {shown}, {1, rank - 1});
  return out.add(Kind::unary, Function::clamp, {keys}, {}, {0, 1});
}

/// Attention as nodes, of (…, heads, positions, features). Heads that share keys are more queries
/// of one head.
template <const Operator& op>
class Products {
 public:
  Products(Lowering& out, const Node& node)
      : out_(out),
        call_(node),
        query_(call_.template get<"query">()),
        key_(call_.template get<"key">()),
        value_(call_.template get<"value">()),
        rank_(query_->type.rank),
        shares_(shares_heads(*query_, *key_)),
        splits_scores_(shares_ && differs_by_heads(call_.template get<"attn_mask">())) {}

  Ref add() {
    const Ref scores =
        out_.add(Kind::batch_matmul, Function::none,
                 {joined(scaled_query(), query_->type.sizes[rank_ - 1]), out_.ref(key_)},
                 {1});  // the key is turned
    const Dim keys = key_->type.sizes[rank_ - 2], features = value_->type.sizes[rank_ - 1];
    Ref weights = out_.add(Kind::softmax, Function::none,
                           {masked(splits_scores_ ? apart(scores, keys) : scores)});
    if (splits_scores_) weights = joined(weights, keys);
    Ref result = out_.add(Kind::batch_matmul, Function::none, {weights, out_.ref(value_)});
    if (splits_scores_) return shown_alone(apart(result, features));
    return apart(shown_alone(result), features);
  }

 private:
  Ref scaled_query() {
    const double* scale = call_.template get<"scale">();
    const double features = static_cast<double>(query_->type.sizes[rank_ - 1].value());
    const Ref factor = out_.number(scale != nullptr ? *scale : 1 / std::sqrt(features));
    return out_.add(Kind::binary, Function::multiply, {out_.ref(query_), factor});
  }
  Ref masked(Ref scores) {
    const Dim *q = query_->type.sizes, *k = key_->type.sizes;
    if (call_.template get<"is_causal">())
      scores =
          sum(scores, causal_mask(out_, q[rank_ - 2].value(), k[rank_ - 2].value(), sharing()));
    const Value* mask = call_.template get<"attn_mask">();
    if (mask == nullptr) return scores;
    const Ref given = for_all_heads(*mask), shown = shown_keys(out_, given);
    has_keys_ = has_keys(out_, shown, mask->type.rank);
    // max(given, least) + (1 - shown) least
    const Ref finite = out_.add(Kind::binary, Function::maximum, {given, out_.number(least)}),
              more = out_.add(Kind::binary, Function::multiply, {shown, out_.number(-least)});
    return sum(scores, sum(finite, sum(more, out_.number(least))));
  }
  /// The results of queries that have a key. Those of others become zeros.
  Ref shown_alone(Ref result) {
    if (has_keys_.kind == Ref::Kind::none) return result;
    return out_.add(Kind::binary, Function::multiply, {result, has_keys_});
  }
  /// How many heads of query share one of key.
  int64_t sharing() const {
    return shares_ ? heads_of(*query_).value() / heads_of(*key_).value() : 1;
  }
  /// The mask for the queries of all heads that share keys.
  Ref for_all_heads(const Value& mask) {
    const Ref own = out_.ref(&mask);
    const int rank = mask.type.rank;
    if (!shares_ || splits_scores_ || rank < 2 || proves_equal(mask.type.sizes[rank - 2], 1))
      return own;
    return out_.joined(std::vector<Ref>(static_cast<size_t>(sharing()), own), rank - 2);
  }
  Ref sum(Ref a, Ref b) { return out_.add(Kind::binary, Function::add, {a, b}); }

  /// (…, heads, queries, n) with the queries of heads that share keys in one, and back.
  Ref joined(Ref x, Dim n) {
    if (!shares_) return x;
    return reshaped(x, heads_of(*key_), query_->type.sizes[rank_ - 2] * Dim(sharing()), n);
  }
  Ref apart(Ref x, Dim n) {
    return shares_ ? reshaped(x, heads_of(*query_), query_->type.sizes[rank_ - 2], n) : x;
  }
  Ref reshaped(Ref x, Dim heads, Dim queries, Dim n) {
    std::vector<int64_t> sizes = numbers_or_zero({heads, queries, n});
    for (int d = rank_ - 4; d >= 0; --d)
      sizes.insert(sizes.begin(), numbers_or_zero({query_->type.sizes[d]})[0]);
    return out_.add(Kind::reshape, Function::none, {x}, std::move(sizes));
  }

  Lowering& out_;
  const Call<op> call_;
  const Value *query_, *key_, *value_;
  int rank_;
  bool shares_;         ///< a head of key serves several heads of query
  bool splits_scores_;  ///< and each of them has a mask of its own
  Ref has_keys_;
};

void lower_attention(Lowering& out, const Node& node) {
  out.define(node.result(), Products<ops::scaled_dot_product_attention>(out, node).add());
}
void lower_heads_last(Lowering& out, const Node& node) {
  const Ref result = Products<ops::taper_attention>(out, node).add();
  std::vector<int64_t> order(static_cast<size_t>(node.result()->type.rank));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 3], order[order.size() - 2]);
  out.define(node.result(), out.add(Kind::transpose, Function::none, {result}, std::move(order)));
}

const Row rows[] = {
    {&ops::scaled_dot_product_attention, refuses_attention<ops::scaled_dot_product_attention>,
     lower_attention},
    {&ops::taper_attention, refuses_attention<ops::taper_attention>, lower_heads_last},
};

/// Whether nodes that are taken lead to a product. Then the part of the attention pays.
bool reaches_product(const Node& attention) {
  std::vector<const Node*> open = {&attention};
  std::set<const Node*> seen = {&attention};
  const auto visit = [&](const Node* node) {
    if (node != nullptr && seen.insert(node).second && refusal(*node).empty()) open.push_back(node);
  };
  while (!open.empty()) {
    const Node& node = *open.back();
    open.pop_back();
    if (find_row(*node.op)->is_heavy) return true;
    ir::for_each_value(node, [&](const Value* v) { visit(v->node); });
    for (const Node* user : node.result()->users) visit(user);
  }
  return false;
}

/// Masks of bool become numbers, which the library can add.
class MaskNumbers {
 public:
  explicit MaskNumbers(ir::Graph& graph) : graph_(graph), constants_(graph) {}

  template <const Operator& op>
  void give(Node& node) {
    Value* mask = Call<op>(node).template get<"attn_mask">();
    if (mask == nullptr || mask->type.dtype != DType::boolean || !refuses_value(*mask).empty())
      return;
    constexpr size_t at = Call<op>::template position<"attn_mask">;
    graph_.set_argument(&node, at, static_cast<Value*>(nullptr));
    const bool is_taken = refusal(node).empty() && refuses_under<op>(node, mask).empty();
    graph_.set_argument(&node, at, mask);
    if (!is_taken || !reaches_product(node)) return;
    Value*& numbers = numbers_[mask];
    if (numbers == nullptr) numbers = numbers_of(mask, node);
    graph_.set_argument(&node, at, numbers);
  }

 private:
  Value* numbers_of(Value* mask, Node& node) {
    const Tensor zero = eager::full({}, 0.0f), minus = eager::full({}, -INFINITY);
    if (constants_.find(mask))
      return graph_.add_constant("",
                                 ir::payload_of(eager::where(constants_.at(mask), zero, minus)));
    return ir::insert_before(graph_, &node, ops::where_self,
                             {mask, constant(zero), constant(minus)}, node.location, node.module)
        ->result();
  }
  Value* constant(const Tensor& number) { return graph_.add_constant("", ir::payload_of(number)); }

  ir::Graph& graph_;
  passes::ConstantValues constants_;
  std::map<const Value*, Value*> numbers_;
};

}  // namespace
}  // namespace attending

void number_masks(ir::Graph& graph) {
  attending::MaskNumbers masks(graph);
  for (ir::Node& node : graph.nodes()) {
    if (node.op == &ops::scaled_dot_product_attention)
      masks.give<ops::scaled_dot_product_attention>(node);
    if (node.op == &ops::taper_attention) masks.give<ops::taper_attention>(node);
  }
}

std::span<const Row> attention_rows() { return attending::rows; }

}  // namespace taper::delegates::xnnpack
