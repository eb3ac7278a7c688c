#include "taper/exporter/nn/attention.h"

#include <cmath>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/nn/init.h"

namespace taper::nn {
namespace {

/// A mask that is added: -infinity where a bool one is true.
Tensor additive(const Tensor& mask, DType dtype) {
  if (mask.dtype() != DType::boolean) return mask.to(dtype);
  return eager::masked_fill(eager::zeros(mask.sizes(), dtype), mask, Scalar(-INFINITY));
}

}  // namespace

MultiheadAttention::MultiheadAttention(int64_t embed_dim, int64_t num_heads,
                                       MultiheadAttentionOptions options, Location here)
    : out_proj(embed_dim, embed_dim, {.bias = options.bias}, here),
      embed_dim_(embed_dim),
      num_heads_(num_heads),
      options_(options) {
  if (num_heads < 1 || embed_dim % num_heads != 0)
    throw EagerError(here, "MultiheadAttention: embed_dim " + std::to_string(embed_dim) +
                               " is no multiple of " + std::to_string(num_heads) + " heads");
  const int64_t e = embed_dim, k = options.kdim.value_or(e), v = options.vdim.value_or(e);
  if (k == e && v == e) {
    in_proj_weight = init::xavier_uniform_(Tensor::empty({3 * e, e}));
  } else {
    q_proj_weight = init::xavier_uniform_(Tensor::empty({e, e}));
    k_proj_weight = init::xavier_uniform_(Tensor::empty({e, k}));
    v_proj_weight = init::xavier_uniform_(Tensor::empty({e, v}));
  }
  if (options.bias) {
    in_proj_bias = init::zeros_(Tensor::empty({3 * e}));
    init::zeros_(out_proj.bias);
  }
  if (options.add_bias_kv) {
    bias_k = init::xavier_normal_(Tensor::empty({1, 1, e}));
    bias_v = init::xavier_normal_(Tensor::empty({1, 1, e}));
  }
  set_names();
}

Tensor MultiheadAttention::project(const Tensor& x, int64_t part) const {
  const Dim e(embed_dim_), at(part * embed_dim_);
  const Tensor separate[] = {q_proj_weight, k_proj_weight, v_proj_weight};
  const Tensor weight =
      in_proj_weight.defined() ? eager::narrow(in_proj_weight, 0, at, e) : separate[part];
  const Tensor bias = in_proj_bias.defined() ? eager::narrow(in_proj_bias, 0, at, e) : Tensor();
  return eager::linear(x, weight, bias);
}

Tensor MultiheadAttention::heads(const Tensor& x) const {
  return x.reshape({x.size(0), x.size(1), Dim(num_heads_), Dim(embed_dim_ / num_heads_)})
      .transpose(1, 2);
}

Tensor MultiheadAttention::added_mask(const AttentionArguments& a, const Tensor& query, Dim batch,
                                      int64_t more) const {
  Tensor mask;
  if (a.attn_mask.defined()) {
    mask = additive(a.attn_mask, query.dtype());
    if (mask.rank() == 3) mask = mask.reshape({batch, Dim(num_heads_), mask.size(1), mask.size(2)});
  }
  if (a.key_padding_mask.defined()) {
    const Tensor keys = additive(a.key_padding_mask, query.dtype())
                            .reshape({batch, Dim(1), Dim(1), a.key_padding_mask.size(-1)});
    mask = mask.defined() ? mask + keys : keys;
  }
  if (mask.defined() && more > 0) mask = eager::constant_pad_nd(mask, {Dim(0), Dim(more)});
  return mask;
}

std::tuple<Tensor, Tensor> MultiheadAttention::forward(const Tensor& query, const Tensor& key,
                                                       const Tensor& value,
                                                       const AttentionArguments& a, Location here) {
  const PlaceScope scope(here);
  const int rank = query.rank();
  if ((rank != 2 && rank != 3) || key.rank() != rank || value.rank() != rank)
    throw EagerError(here,
                     "MultiheadAttention: query, key and value have 3 dimensions, or 2 without a "
                     "batch; they are " +
                         eager::to_string(query.sizes()) + ", " + eager::to_string(key.sizes()) +
                         " and " + eager::to_string(value.sizes()));
  const auto batch_first = [&](const Tensor& x) {
    return rank == 2 ? x.unsqueeze(0) : options_.batch_first ? x : x.transpose(0, 1);
  };
  const Tensor q = heads(project(batch_first(query), 0));
  Tensor k = project(batch_first(key), 1), v = project(batch_first(value), 2);
  const Dim batch = q.size(0);
  int64_t more = 0;
  if (bias_k.defined()) {
    const Dims sizes{batch, Dim(1), Dim(embed_dim_)};
    k = eager::cat({k, bias_k.expand(sizes)}, 1);
    v = eager::cat({v, bias_v.expand(sizes)}, 1);
    ++more;
  }
  if (options_.add_zero_attn) {
    const Dims pad{Dim(0), Dim(0), Dim(0), Dim(1)};
    k = eager::constant_pad_nd(k, pad);
    v = eager::constant_pad_nd(v, pad);
    ++more;
  }
  k = heads(k), v = heads(v);
  const Tensor mask = added_mask(a, query, batch, more);
  const double dropout = training() ? options_.dropout : 0;

  Tensor joined, weights;
  if (!a.need_weights) {
    joined = eager::scaled_dot_product_attention(q, k, v, mask, dropout);
  } else {
    const double scale = 1 / std::sqrt(static_cast<double>(embed_dim_ / num_heads_));
    Tensor scores = eager::matmul(q * scale, k.transpose(-2, -1));
    if (mask.defined()) scores = scores + mask;
    weights = eager::softmax(scores, -1);
    weights = eager::dropout(weights, dropout, true);
    joined = eager::matmul(weights, v);
  }
  joined = joined.transpose(1, 2);
  Tensor output = out_proj(joined.reshape({batch, joined.size(1), Dim(embed_dim_)}));
  if (!a.need_weights)
    weights = {};
  else if (a.average_attn_weights)
    weights = eager::mean(weights, {1});
  if (rank == 2) {
    output = output.squeeze(0);
    if (weights.defined()) weights = weights.squeeze(0);
  } else if (!options_.batch_first) {
    output = output.transpose(0, 1);
  }
  return {output, weights};
}

}  // namespace taper::nn
