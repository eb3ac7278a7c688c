// Attention as products around a softmax, in tiles of scores.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "taper/delegates/xnnpack/compile/arguments.h"
#include "taper/delegates/xnnpack/compile/attention_masks.h"
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
  if (shares_heads(query, key)) {
    const std::string why = refuses_sharing(query, key, mask, c.template get<"enable_gqa">());
    if (!why.empty()) return why;
  }
  return refuses_cuts(cut_attention(query, key));
}
template <const Operator& op>
std::string refuses_attention(const Node& node) {
  return refuses_under<op>(node, Call<op>(node).template get<"attn_mask">());
}

/// Attention as nodes, of (…, heads, positions, features). Heads that share keys are more queries
/// of one head.
template <const Operator& op>
class Products {
 public:
  Products(Lowering& out, const Node& node)
      : out_(out),
        call_(node),
        query_(*call_.template get<"query">()),
        key_(*call_.template get<"key">()),
        value_(*call_.template get<"value">()),
        rank_(query_.type.rank),
        sharing_(shares_heads(query_, key_) ? heads_of(query_).value() / heads_of(key_).value()
                                            : 1),
        splits_scores_(sharing_ > 1 && differs_by_heads(call_.template get<"attn_mask">())),
        cuts_(cut_attention(query_, key_)),
        slices_(out),
        masks_(out, slices_, call_.template get<"attn_mask">(), splits_scores_ ? 1 : sharing_) {}

  Ref add() {
    return in_tiles(out_, query_, key_, cuts_, [&](const Tile& tile) { return attend(tile); });
  }

 private:
  Ref attend(const Tile& tile) {
    const Tile of_keys = keys_of(tile);
    const Dim keys = of_keys.ranges.back().size, features = value_.type.sizes[rank_ - 1];
    Ref scores = out_.add(Kind::batch_matmul, Function::none,
                          {joined(tile, scaled_query(tile), query_.type.sizes[rank_ - 1]),
                           slices_(key_, of_keys.ranges)},
                          {1});  // the key is turned
    if (splits_scores_) scores = apart(tile, scores, keys);
    if (call_.template get<"is_causal">()) scores = sum(scores, later_keys(tile, keys));
    const TileMasks::Numbers mask = masks_.of(tile);
    if (mask.added != Ref()) scores = sum(scores, mask.added);
    Ref weights = out_.add(Kind::softmax, Function::none, {scores});
    if (splits_scores_) weights = joined(tile, weights, keys);
    Ref result =
        out_.add(Kind::batch_matmul, Function::none, {weights, slices_(value_, of_keys.ranges)});
    if (splits_scores_) return shown_alone(apart(tile, result, features), mask);
    return apart(tile, shown_alone(result, mask), features);
  }

  Ref scaled_query(const Tile& tile) {
    const double* scale = call_.template get<"scale">();
    const double features = static_cast<double>(query_.type.sizes[rank_ - 1].value());
    const Ref factor = out_.number(scale != nullptr ? *scale : 1 / std::sqrt(features));
    return out_.add(Kind::binary, Function::multiply, {slices_(query_, tile.ranges), factor});
  }
  /// The keys for a tile of queries, without those that all of them hide.
  Tile keys_of(const Tile& tile) const {
    Tile keys = tile;
    Tile::Range& heads = keys.ranges[static_cast<size_t>(rank_ - 3)];
    heads.begin /= sharing_;
    heads.size = heads.is_whole ? heads_of(key_) : Dim(heads.size.value() / sharing_);
    const Tile::Range& queries = tile.ranges.back();
    Tile::Range& positions = keys.ranges.back();
    positions = {0, key_.type.sizes[rank_ - 2]};
    if (!call_.template get<"is_causal">()) return keys;
    const int64_t end = queries.begin + queries.size.value();
    if (end < positions.size.value()) positions = {0, end, false};
    return keys;
  }
  /// Numbers that hide the keys behind a query's own position, for heads that share keys.
  Ref later_keys(const Tile& tile, Dim keys) {
    const Tile::Range& queries = tile.ranges.back();
    const int64_t begin = queries.begin, rows = queries.size.value(), columns = keys.value();
    // Row i of a band hides its columns behind last + i. A tile begins there at last - begin.
    const int64_t all = query_.type.sizes[rank_ - 2].value(), cuts = cuts_.counts.back();
    const int64_t last = all * (cuts - 1) / cuts;
    const int64_t width = cuts == 1 ? columns : last + rows;
    Ref& band = bands_[{rows, width}];
    if (band == Ref()) {
      std::vector<float> numbers;
      for (int64_t i = 0; i < (splits_scores_ ? 1 : sharing_) * rows; ++i)
        for (int64_t j = 0; j < width; ++j) numbers.push_back(j <= last + i % rows ? 0 : least);
      const auto height = static_cast<int64_t>(numbers.size()) / width;
      band = out_.constant(numbers, {height, width});
    }
    if (cuts == 1) return band;
    return out_.add(Kind::slice, Function::none, {band}, {0, last - begin, 0, columns});
  }
  /// The results of queries that have a key. Those of others become zeros.
  Ref shown_alone(Ref result, const TileMasks::Numbers& mask) {
    if (mask.has_keys == Ref()) return result;
    return out_.add(Kind::binary, Function::multiply, {result, mask.has_keys});
  }
  Ref sum(Ref a, Ref b) { return out_.add(Kind::binary, Function::add, {a, b}); }

  /// (…, heads, queries, n) with the queries of heads that share keys in one, and back.
  Ref joined(const Tile& tile, Ref x, Dim n) {
    if (sharing_ == 1) return x;
    const Dim queries = tile.ranges.back().size * Dim(sharing_);
    return reshaped(tile, x, keys_of(tile).ranges[static_cast<size_t>(rank_ - 3)].size, queries, n);
  }
  Ref apart(const Tile& tile, Ref x, Dim n) {
    if (sharing_ == 1) return x;
    return reshaped(tile, x, tile.ranges[static_cast<size_t>(rank_ - 3)].size,
                    tile.ranges.back().size, n);
  }
  Ref reshaped(const Tile& tile, Ref x, Dim heads, Dim queries, Dim n) {
    std::vector<int64_t> sizes;
    for (int d = 0; d < rank_ - 3; ++d)
      sizes.push_back(numbers_or_zero({tile.ranges[static_cast<size_t>(d)].size})[0]);
    for (const int64_t size : numbers_or_zero({heads, queries, n})) sizes.push_back(size);
    return out_.add(Kind::reshape, Function::none, {x}, std::move(sizes));
  }

  Lowering& out_;
  const Call<op> call_;
  const Value &query_, &key_, &value_;
  int rank_;
  int64_t sharing_;     ///< so many heads of query share one of key
  bool splits_scores_;  ///< and each of them has a mask of its own
  Cuts cuts_;
  Slices slices_;
  TileMasks masks_;
  std::map<std::pair<int64_t, int64_t>, Ref> bands_;
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

constexpr bool heavy = true;

const Row rows[] = {
    {&ops::scaled_dot_product_attention, refuses_attention<ops::scaled_dot_product_attention>,
     lower_attention, heavy},
    {&ops::taper_attention, refuses_attention<ops::taper_attention>, lower_heads_last, heavy},
};

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
    if (!is_taken) return;
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
