// Attention as products around a softmax. The scores need memory of their own.
#include <cmath>

#include "taper/delegates/xnnpack/compile/table.h"
#include "taper/exporter/ir/call.h"

namespace taper::delegates::xnnpack {
namespace attending {
namespace {

using blob::Function, blob::Kind;
using ir::Call, ir::Node, ir::Value;

// They take 1 MiB. Our kernel keeps few scores at a time, and is faster where there are many.
constexpr int64_t most_scores = 1 << 18;

/// The most scores of a call.
int64_t scores_of(const Value& query, const Value& key) {
  return (query.type.sizes[0] * query.type.sizes[1] * query.type.sizes[2] * key.type.sizes[2])
      .upper();
}

template <const Operator& op>
std::string refuses_attention(const Node& node) {
  const Call<op> c(node);
  if constexpr (&op == &ops::scaled_dot_product_attention)
    if (c.template get<"dropout_p">() != 0) return "it drops weights";
  const Value &query = *c.template get<"query">(), &key = *c.template get<"key">();
  if (query.type.rank != 4)
    return "it has other dimensions than (batch, heads, positions, features)";
  // a query without any key gets zeros, where a softmax over nothing gives NaN
  if (c.template get<"attn_mask">() != nullptr || c.template get<"is_causal">())
    return "keys may be hidden";
  if (c.template get<"enable_gqa">()) return "heads share keys";
  if (!query.type.sizes[3].is_constant()) return "the number of features is symbolic";
  for (const int d : {0, 1})
    if (!proves_equal(query.type.sizes[d], key.type.sizes[d])) return "batches or heads differ";
  if (scores_of(query, key) > most_scores) return "its scores need more than 1 MiB";
  return "";
}

template <const Operator& op>
Ref products_of(Lowering& out, const Call<op>& c) {
  const Value* query = c.template get<"query">();
  const double* scale = c.template get<"scale">();
  const double features = static_cast<double>(query->type.sizes[3].value());
  const Ref factor = out.number(scale != nullptr ? *scale : 1 / std::sqrt(features));
  constexpr int64_t turned = 1;
  const Ref scaled = out.add(Kind::binary, Function::multiply, {out.ref(query), factor});
  const Ref scores = out.add(Kind::batch_matmul, Function::none,
                             {scaled, out.ref(c.template get<"key">())}, {turned});
  const Ref weights = out.add(Kind::softmax, Function::none, {scores});
  return out.add(Kind::batch_matmul, Function::none, {weights, out.ref(c.template get<"value">())});
}

void lower_attention(Lowering& out, const Node& node) {
  out.define(node.result(), products_of(out, Call<ops::scaled_dot_product_attention>(node)));
}
void lower_heads_last(Lowering& out, const Node& node) {
  const Ref result = products_of(out, Call<ops::taper_attention>(node));
  out.define(node.result(), out.add(Kind::transpose, Function::none, {result}, {0, 2, 1, 3}));
}

const Row rows[] = {
    {&ops::scaled_dot_product_attention, refuses_attention<ops::scaled_dot_product_attention>,
     lower_attention},
    {&ops::taper_attention, refuses_attention<ops::taper_attention>, lower_heads_last},
};

}  // namespace
}  // namespace attending

std::span<const Row> attention_rows() { return attending::rows; }

}  // namespace taper::delegates::xnnpack
