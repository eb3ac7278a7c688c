// The rules of attention: query (…, queries, features), key (…, keys, features), value (…, keys,
// values) -> (…, queries, values).
#pragma once
#include "taper/kernels/shapes/broadcast.h"
#include "taper/kernels/shapes/checks.h"

namespace taper {
namespace internal {

/// The dimensions before the last two.
template <class D>
TensorType<D> leading(const TensorType<D>& t) {
  TensorType<D> batch = t;
  batch.rank = t.rank > 2 ? t.rank - 2 : 0;
  return batch;
}

/// A head of `t` serves several heads of the query: the batch of `t`, with as many heads as the
/// query has.
template <class D>
bool share_heads(Facts<D>& facts, const TensorType<D>& query, TensorType<D>& batch) {
  const D heads = query[query.rank - 3];
  D& own = batch[batch.rank - 1];
  if (facts.proves_equal(own, heads)) return true;  // 0 of them, too
  if (!facts.at_least(own, D(1), TAPER_TEXT("key and value have {} heads, fewer than query")) ||
      !facts.equal(heads, heads / own * own,
                   TAPER_TEXT("the heads of key and value must divide those of query: of {} heads "
                              "only {} can be served")))
    return false;
  own = heads;
  return true;
}

/// The requirements of every form of attention for query, key and value, but for their leading
/// dimensions.
template <class D>
bool attend(Facts<D>& facts, const TensorType<D>& query, const TensorType<D>& key,
            const TensorType<D>& value, const TensorType<D>* attn_mask, bool is_causal) {
  return facts.require(query.rank >= 2 && key.rank >= 2 && value.rank >= 2,
                       TAPER_TEXT("query, key and value need at least 2 dimensions (length, "
                                  "features), got {}, {} and {}"),
                       query.rank, key.rank, value.rank) &&
         facts.require(!(is_causal && attn_mask != nullptr),
                       TAPER_TEXT("attn_mask and is_causal exclude each other")) &&
         facts.require(
             is_floating(query.dtype) && key.dtype == query.dtype && value.dtype == query.dtype,
             TAPER_TEXT("query, key and value must have one floating dtype")) &&
         facts.equal(query[query.rank - 1], key[key.rank - 1],
                     TAPER_TEXT("query has {} features and key {}")) &&
         facts.equal(key[key.rank - 2], value[value.rank - 2],
                     TAPER_TEXT("there are {} keys and {} values"));
}

/// The mask broadcasts to the scores. `batch` has the leading dimensions of the scores.
template <class D>
bool masks_scores(Facts<D>& facts, const TensorType<D>& mask, const TensorType<D>& batch,
                  const TensorType<D>& query, const TensorType<D>& key) {
  TensorType<D> scores = batch;
  scores[scores.rank++] = query[query.rank - 2], scores[scores.rank++] = key[key.rank - 2];
  return expands_to(facts, mask, scores);
}

/// Flash attention. The leading dimensions do not broadcast, but a head of key and value may serve
/// several of the query. Gives the types of the output and of the logarithms of the sums of
/// exponentials. These logarithms stay f32 for f16 and bf16.
template <class D>
bool flash_attention(Facts<D>& facts, const TensorType<D>& query, const TensorType<D>& key,
                     const TensorType<D>& value, const TensorType<D>* attn_mask, bool is_causal,
                     TensorType<D>& output, TensorType<D>& logsumexp) {
  if (!attend(facts, query, key, value, attn_mask, is_causal)) return false;
  const TensorType<D> batch = leading(query);
  TensorType<D> keys = leading(key);
  const TensorType<D> values = leading(value);
  if (!facts.require(keys.rank == batch.rank && values.rank == batch.rank,
                     TAPER_TEXT("query, key and value must have equally many dimensions, they "
                                "have {}, {} and {}"),
                     query.rank, key.rank, value.rank))
    return false;
  for (int i = 0; i < batch.rank; ++i)
    if (!facts.equal(keys[i], values[i],
                     TAPER_TEXT("key has extent {} in a leading dimension, value {}")))
      return false;
  if (batch.rank > 0 && !share_heads(facts, query, keys)) return false;
  for (int i = 0; i < batch.rank; ++i)
    if (!facts.equal(batch[i], keys[i],
                     TAPER_TEXT("query has extent {} in a leading dimension, key {}")))
      return false;
  if (attn_mask != nullptr &&
      (!facts.require(attn_mask->dtype == DType::boolean || is_floating(attn_mask->dtype),
                      TAPER_TEXT("attn_mask must be bool or floating")) ||
       !masks_scores(facts, *attn_mask, batch, query, key)))
    return false;
  logsumexp.like(batch, is_half(query.dtype) ? DType::f32 : query.dtype);
  logsumexp[logsumexp.rank++] = query[query.rank - 2];
  output.like(batch, query.dtype);
  output[output.rank++] = query[query.rank - 2], output[output.rank++] = value[value.rank - 1];
  return true;
}

}  // namespace internal

template <>
struct Rule<ops::scaled_dot_product_attention> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& query, const TensorType<D>& key,
                    const TensorType<D>& value, const TensorType<D>* attn_mask, double,
                    bool is_causal, Maybe<double>, bool enable_gqa, TensorType<D>& out) {
    if (!internal::attend(facts, query, key, value, attn_mask, is_causal)) return false;
    TensorType<D> keys = internal::leading(key), values = internal::leading(value);
    if (enable_gqa && query.rank >= 3 && key.rank >= 3 && value.rank >= 3 &&
        (!internal::share_heads(facts, query, keys) ||
         !internal::share_heads(facts, query, values)))
      return false;
    if (!internal::broadcast(facts, out, internal::leading(query), keys, values)) return false;
    if (attn_mask != nullptr &&
        (!facts.require(attn_mask->dtype == DType::boolean || attn_mask->dtype == query.dtype,
                        TAPER_TEXT("attn_mask must be bool or have the dtype of query")) ||
         !internal::masks_scores(facts, *attn_mask, out, query, key)))
      return false;
    out.dtype = query.dtype;
    out[out.rank++] = query[query.rank - 2], out[out.rank++] = value[value.rank - 1];
    return true;
  }
};

template <>
struct Rule<ops::taper_attention> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& query, const TensorType<D>& key,
                    const TensorType<D>& value, const TensorType<D>* attn_mask, bool is_causal,
                    Maybe<double> scale, bool enable_gqa, TensorType<D>& out) {
    if (!Rule<ops::scaled_dot_product_attention>::shape(facts, query, key, value, attn_mask, 0,
                                                        is_causal, scale, enable_gqa, out) ||
        !facts.require(
            out.rank >= 3,
            TAPER_TEXT("needs heads: 3 dimensions or more (heads, length, features), got {}"),
            out.rank))
      return false;
    const D heads = out[out.rank - 3];
    out[out.rank - 3] = out[out.rank - 2], out[out.rank - 2] = heads;
    return true;
  }
};

template <>
struct Rule<ops::taper_rotary_embedding> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& x, const TensorType<D>& cos,
                    const TensorType<D>& sin, bool, TensorType<D>& out) {
    if (!facts.require(is_floating(x.dtype) && cos.dtype == x.dtype && sin.dtype == x.dtype,
                       TAPER_TEXT("x, cos and sin must have one floating dtype")) ||
        !facts.require(x.rank >= 1 && cos.rank >= 1 && sin.rank >= 1,
                       TAPER_TEXT("x, cos and sin need 1 dimension or more")))
      return false;
    const D features = x[x.rank - 1];
    if (!facts.equal(features, features / D(2) * D(2),
                     TAPER_TEXT("x has {} features; an even number of them is needed, as {}")))
      return false;
    for (const TensorType<D>* factor : {&cos, &sin})
      if (!facts.equal((*factor)[factor->rank - 1], features,
                       TAPER_TEXT("cos or sin has {} features and x {}")) ||
          !internal::expands_to(facts, *factor, x))
        return false;
    out.like(x);
    return true;
  }
};

template <>
struct Rule<ops::_scaled_dot_product_flash_attention_for_cpu> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& query, const TensorType<D>& key,
                    const TensorType<D>& value, double, bool is_causal,
                    const TensorType<D>* attn_mask, Maybe<double>, TensorType<D>& output,
                    TensorType<D>& logsumexp) {
    return internal::flash_attention(facts, query, key, value, attn_mask, is_causal, output,
                                     logsumexp);
  }
};

template <>
struct Rule<ops::_scaled_dot_product_flash_attention_for_cpu_backward> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& grad_out, const TensorType<D>& query,
                    const TensorType<D>& key, const TensorType<D>& value, const TensorType<D>& out,
                    const TensorType<D>& logsumexp, double, bool is_causal,
                    const TensorType<D>* attn_mask, Maybe<double>, TensorType<D>& grad_query,
                    TensorType<D>& grad_key, TensorType<D>& grad_value) {
    TensorType<D> output, sums;
    if (!internal::flash_attention(facts, query, key, value, attn_mask, is_causal, output, sums))
      return false;
    for (const TensorType<D>* t : {&grad_out, &out})
      if (!facts.require(t->dtype == output.dtype,
                         TAPER_TEXT("grad_out and out must have the dtype of query")) ||
          !internal::same_sizes(facts, *t, output,
                                TAPER_TEXT("grad_out or out has {} dimensions, needs {}"),
                                TAPER_TEXT("grad_out or out has extent {}, needs {}")))
        return false;
    if (!facts.require(logsumexp.dtype == sums.dtype,
                       TAPER_TEXT("logsumexp must have the dtype of query, f32 for halves")) ||
        !internal::same_sizes(facts, logsumexp, sums,
                              TAPER_TEXT("logsumexp has {} dimensions, needs {}"),
                              TAPER_TEXT("logsumexp has extent {}, needs {}")))
      return false;
    grad_query.like(query), grad_key.like(key), grad_value.like(value);
    return true;
  }
};

}  // namespace taper
