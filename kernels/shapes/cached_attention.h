// The rules of attention over a cache: query (batch, heads, n, features), key (batch, own heads,
// capacity, features), value (batch, own heads, capacity, values) -> (batch, n, heads, values).
#pragma once
#include "taper/kernels/shapes/attention.h"

namespace taper {
namespace internal {

/// One position for each row of the batch.
template <class D>
bool starts_rows(Facts<D>& facts, const TensorType<D>& start, const D& batch) {
  return facts.require(start.dtype == DType::i64 && start.rank == 1,
                       TAPER_TEXT("start must be i64 and have 1 dimension, got {}"), start.rank) &&
         facts.equal(start[0], batch, TAPER_TEXT("start has {} positions for a batch of {}"));
}

/// One number for each head of the query, or none.
template <class D>
bool has_heads(Facts<D>& facts, const TensorType<D>* numbers, const TensorType<D>& query) {
  if (numbers == nullptr) return true;
  return facts.require(numbers->dtype == query.dtype && numbers->rank == 1,
                       TAPER_TEXT("sinks and slopes must have the dtype of query and 1 dimension, "
                                  "got {}"),
                       numbers->rank) &&
         facts.equal((*numbers)[0], query[1],
                     TAPER_TEXT("sinks or slopes have {} numbers for {} heads"));
}

}  // namespace internal

template <>
struct Rule<ops::taper_cache_write> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& cache, const TensorType<D>& rows,
                    const TensorType<D>& start, TensorType<D>& out) {
    if (!facts.require(cache.rank == 4 && rows.rank == 4,
                       TAPER_TEXT("cache and rows need 4 dimensions (batch, heads, length, "
                                  "features), got {} and {}"),
                       cache.rank, rows.rank) ||
        !facts.require(cache.dtype == rows.dtype,
                       TAPER_TEXT("cache and rows must have one dtype")) ||
        !internal::starts_rows(facts, start, cache[0]))
      return false;
    for (const int d : {0, 1, 3})
      if (!facts.equal(cache[d], rows[d], TAPER_TEXT("cache has extent {} where rows have {}")))
        return false;
    out.like(cache);
    return true;
  }
};

template <>
struct Rule<ops::taper_attention_cached> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& query, const TensorType<D>& key,
                    const TensorType<D>& value, const TensorType<D>& start, double, int64_t window,
                    double softcap, const TensorType<D>* sinks, const TensorType<D>* slopes,
                    TensorType<D>& out) {
    if (!facts.require(query.rank == 4 && key.rank == 4 && value.rank == 4,
                       TAPER_TEXT("query, key and value need 4 dimensions (batch, heads, length, "
                                  "features), got {}, {} and {}"),
                       query.rank, key.rank, value.rank) ||
        !internal::attend<D>(facts, query, key, value, nullptr, false) ||
        !facts.require(window >= 0 && softcap >= 0,
                       TAPER_TEXT("window and softcap must not be negative")) ||
        !internal::starts_rows(facts, start, query[0]))
      return false;
    TensorType<D> keys = internal::leading(key);
    if (!internal::share_heads(facts, query, keys) ||
        !facts.equal(key[1], value[1], TAPER_TEXT("key has {} heads and value {}")) ||
        !facts.equal(query[0], key[0], TAPER_TEXT("query has a batch of {} and key of {}")) ||
        !facts.equal(query[0], value[0], TAPER_TEXT("query has a batch of {} and value of {}")) ||
        !internal::has_heads(facts, sinks, query) || !internal::has_heads(facts, slopes, query))
      return false;
    out.like(query);
    out[1] = query[2], out[2] = query[1], out[3] = value[3];
    return true;
  }
};

}  // namespace taper
