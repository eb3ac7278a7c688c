// The rule of attention: query (…, queries, features), key (…, keys, features), value (…, keys,
// values)
// -> (…, queries, values).
#pragma once
#include "taper/kernels/shapes/broadcast.h"

namespace taper {
namespace internal {

/// What lies in front of the last two dimensions.
template <class D>
TensorType<D> leading(const TensorType<D>& t) {
  TensorType<D> batch = t;
  batch.rank = t.rank > 2 ? t.rank - 2 : 0;
  return batch;
}

/// A head of `t` serves several of the query: its batch with as many heads as that has.
template <class D>
bool share_heads(Facts<D>& facts, const TensorType<D>& query, TensorType<D>& batch) {
  const D heads = query[query.rank - 3];
  D& own = batch[batch.rank - 1];
  if (!facts.equal(heads / own * own, heads,
                   TAPER_TEXT("the heads of key and value must divide those of query: of {} heads "
                              "only {} can be served")))
    return false;
  own = heads;
  return true;
}

}  // namespace internal

template <>
struct Rule<ops::scaled_dot_product_attention> {
  static constexpr Promotion promotion = Promotion::none;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& query, const TensorType<D>& key,
                    const TensorType<D>& value, const TensorType<D>* attn_mask, double,
                    bool is_causal, Maybe<double>, bool enable_gqa, TensorType<D>& out) {
    if (!facts.require(query.rank >= 2 && key.rank >= 2 && value.rank >= 2,
                       TAPER_TEXT("query, key and value need at least 2 dimensions (length, "
                                  "features), got {}, {} and {}"),
                       query.rank, key.rank, value.rank) ||
        !facts.require(!(is_causal && attn_mask != nullptr),
                       TAPER_TEXT("attn_mask and is_causal exclude each other")) ||
        !facts.require(
            is_floating(query.dtype) && key.dtype == query.dtype && value.dtype == query.dtype,
            TAPER_TEXT("query, key and value must have one floating dtype")) ||
        !facts.equal(query[query.rank - 1], key[key.rank - 1],
                     TAPER_TEXT("query has {} features and key {}")) ||
        !facts.equal(key[key.rank - 2], value[value.rank - 2],
                     TAPER_TEXT("there are {} keys and {} values")))
      return false;
    TensorType<D> keys = internal::leading(key), values = internal::leading(value);
    if (enable_gqa && query.rank >= 3 && key.rank >= 3 && value.rank >= 3 &&
        (!internal::share_heads(facts, query, keys) ||
         !internal::share_heads(facts, query, values)))
      return false;
    if (!internal::broadcast(facts, out, internal::leading(query), keys, values)) return false;
    if (attn_mask != nullptr) {
      if (!facts.require(attn_mask->dtype == DType::boolean || attn_mask->dtype == query.dtype,
                         TAPER_TEXT("attn_mask must be bool or have the dtype of query")))
        return false;
      TensorType<D> scores = out;
      scores[scores.rank++] = query[query.rank - 2], scores[scores.rank++] = key[key.rank - 2];
      if (!internal::expands_to(facts, *attn_mask, scores)) return false;
    }
    out.dtype = query.dtype;
    out[out.rank++] = query[query.rank - 2], out[out.rank++] = value[value.rank - 1];
    return true;
  }
};

}  // namespace taper
