#pragma once
#include <optional>
#include <tuple>

#include "taper/exporter/nn/linear.h"

namespace taper::nn {

struct MultiheadAttentionOptions {
  double dropout = 0;          ///< of the attention weights, while training
  bool bias = true;            ///< of the projections
  bool add_bias_kv = false;    ///< one more key and value, which are trained: bias_k, bias_v
  bool add_zero_attn = false;  ///< one more key and value of zeros
  std::optional<int64_t> kdim = std::nullopt, vdim = std::nullopt;  ///< absent: embed_dim
  bool batch_first = false;  ///< (batch, length, …), not (length, batch, …)
};

struct AttentionArguments {
  /// (batch, keys), or (keys) without a batch. bool: true = this key does not count. Float: added
  /// to the scores.
  Tensor key_padding_mask = {};
  bool need_weights = true;  ///< false: only the output, by a faster way
  /// (queries, keys) or (batch · heads, queries, keys). bool: true = not allowed. Float: added to
  /// the scores.
  Tensor attn_mask = {};
  bool average_attn_weights = true;  ///< over the heads
};

/// Vaswani et al., "Attention is all you need", 2017. With E = embed_dim, d = E / heads:
///   head_i = softmax(Q_i K_iᵀ / √d + masks) V_i,  Q = query W_qᵀ + b_q, K, V likewise
///   output = [head_1 … head_h] out_proj
/// Arguments: query (queries, batch, E), key (keys, batch, kdim), value (keys, batch, vdim); or all
/// without batch. Results: the output, like query; and the weights (batch, queries, keys). Without
/// averaging the weights are (batch, heads, queries, keys). They are undefined if they are not
/// needed. If kdim and vdim are E, in_proj_weight (3 E, E) holds the three projections. Otherwise
/// they are q_proj_weight, k_proj_weight and v_proj_weight. Initial values: xavier_uniform for
/// projections, 0 for biases, xavier_normal for bias_k and bias_v.
class MultiheadAttention : public Module {
 public:
  MultiheadAttention(int64_t embed_dim, int64_t num_heads, MultiheadAttentionOptions options = {},
                     Location here = Location::current());

  Parameter in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias;
  Parameter bias_k, bias_v;  ///< (1, 1, E)
  Linear out_proj;
  void visit_members(Members& members) override {
    members.all(
        "in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias, bias_k, "
        "bias_v, out_proj",
        in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias, bias_k, bias_v,
        out_proj);
  }

  std::tuple<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const AttentionArguments& arguments = {},
                                     Location here = Location::current());
  std::tuple<Tensor, Tensor> operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                                        const AttentionArguments& arguments = {},
                                        Location here = Location::current()) {
    eager::ModuleScope scope(name());
    return forward(query, key, value, arguments, here);
  }

 private:
  /// Of `part` 0, 1, 2: query, key, value; (batch, length, …) -> (batch, length, E).
  Tensor project(const Tensor& x, int64_t part) const;
  /// (batch, length, E) -> (batch, heads, length, d)
  Tensor heads(const Tensor& x) const;
  /// Both masks as one that is added; undefined: none. `more`: keys that are never masked.
  Tensor added_mask(const AttentionArguments& arguments, const Tensor& query, Dim batch,
                    int64_t more) const;

  int64_t embed_dim_, num_heads_;
  MultiheadAttentionOptions options_;
};

}  // namespace taper::nn
