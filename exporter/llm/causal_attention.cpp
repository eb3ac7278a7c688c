#include "taper/exporter/llm/causal_attention.h"

#include <cmath>

namespace taper::llm {

using namespace eager;

namespace {

/// position of the key - position of the query: (n, n).
Tensor distances(const Dim& n) {
  const Tensor positions = arange(n.value(), DType::i64);
  return positions.unsqueeze(0) - positions.unsqueeze(1);
}

/// What is added to the scores of each head, -infinity where a query must not see a key.
Tensor bias_of(const CachedAttentionOptions& o, const Dim& n) {
  const Tensor distance = distances(n);
  Tensor hidden = gt(distance, 0);
  if (o.window > 0) hidden = logical_or(hidden, le(distance, -o.window));
  const Tensor from = o.slopes.defined()
                          ? distance.to(DType::f32) * o.slopes.unsqueeze(-1).unsqueeze(-1)
                          : zeros_like(distance, DType::f32);
  return masked_fill(from, hidden, -INFINITY);
}

/// (batch, own heads, n, features) -> (batch, heads, n, features)
Tensor for_each_query(const Tensor& x, int64_t sharing) {
  return sharing == 1 ? x : repeat_interleave(x, sharing, 1);
}

/// With the matrix of scores, for what the operator of attention does not know.
Tensor in_parts(const Tensor& q, const Tensor& k, const Tensor& v, const CachedAttentionOptions& o,
                const Tensor& bias) {
  const int64_t sharing = q.size(1).value() / k.size(1).value();
  Tensor scores = matmul(q * o.scale, for_each_query(k, sharing).transpose(2, 3));
  if (o.softcap > 0) scores = tanh(scores / o.softcap) * o.softcap;
  scores = scores + bias;
  const Dim n = scores.size(-1);
  if (o.sinks.defined()) {
    const Tensor sinks = o.sinks.unsqueeze(-1).unsqueeze(-1);
    scores = cat({scores, sinks.expand({q.size(0), q.size(1), q.size(2), 1})}, -1);
  }
  const Tensor weights = narrow(softmax(scores, -1), -1, 0, n);
  return matmul(weights, for_each_query(v, sharing));
}

}  // namespace

Tensor causal_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                        const CachedAttentionOptions& o, const Tensor& bias) {
  const bool shares_keys = q.size(1).value() != k.size(1).value();
  const bool is_plain = o.window == 0 && !o.slopes.defined() && !bias.defined();
  if (o.softcap > 0 || o.sinks.defined())
    return in_parts(q, k, v, o, bias.defined() ? bias : bias_of(o, q.size(2))).transpose(1, 2);
  const Tensor mask = is_plain ? Tensor() : bias.defined() ? bias : bias_of(o, q.size(2));
  return scaled_dot_product_attention(q, k, v, mask, 0, is_plain, o.scale, shares_keys)
      .transpose(1, 2);
}

}  // namespace taper::llm
