// The rules of attention over a cache: query (batch, heads, n, features), key (batch, own heads,
// capacity, features), value (batch, own heads, capacity, values) -> (batch, n, heads, values).
// With the argument `batch` the caches may have other rows than the query: row b uses row batch[b].
// Beside a query in f32, caches may be f16, bf16, or u8: then a row of features lies in blocks.
#pragma once
#include "taper/kernels/shapes/attention.h"

namespace taper {

/// A row of a cache in blocks: 32 elements each, the last one filled up with zeros. Blocks of 8
/// bits are those of Layout::q8_0, and blocks of 4 bits those of Layout::q4_0.
struct CacheBlocks {
  static constexpr int64_t elements = 32, bytes_of_8_bits = 34, bytes_of_4_bits = 18;
};

namespace internal {

/// The bytes of a row in blocks of so many bytes.
template <class D>
D bytes_of_blocks(const D& features, int64_t bytes) {
  return (features + D(CacheBlocks::elements - 1)) / D(CacheBlocks::elements) * D(bytes);
}

/// Whether a cache of this type holds rows of so many f32.
template <class D>
bool holds_rows(Facts<D>& facts, const TensorType<D>& cache, const D& features) {
  if (cache.dtype != DType::u8)
    return facts.require(cache.dtype == DType::f32 || is_half(cache.dtype),
                         TAPER_TEXT("a cache of rows in f32 must be f32, f16, bf16 or u8")) &&
           facts.equal(cache[cache.rank - 1], features,
                       TAPER_TEXT("the cache has rows of {} elements where {} are given"));
  const D eight = bytes_of_blocks(features, CacheBlocks::bytes_of_8_bits),
          four = bytes_of_blocks(features, CacheBlocks::bytes_of_4_bits);
  return facts.require(facts.proves_equal(cache[cache.rank - 1], eight) ||
                           facts.proves_equal(cache[cache.rank - 1], four),
                       TAPER_TEXT("the cache has rows of {} bytes; in blocks of 8 bits they take "
                                  "{}, and of 4 bits {}"),
                       cache[cache.rank - 1], eight, four);
}

/// A row of the caches for each row of the batch. nullptr: row b uses row b.
template <class D>
bool names_rows(Facts<D>& facts, const TensorType<D>* batch, const D& rows, const D& in_cache) {
  if (batch == nullptr)
    return facts.equal(rows, in_cache, TAPER_TEXT("there are {} rows, and {} in the cache"));
  return facts.require(batch->dtype == DType::i64 && batch->rank == 1,
                       TAPER_TEXT("batch must be i64 and have 1 dimension, got {}"), batch->rank) &&
         facts.equal((*batch)[0], rows, TAPER_TEXT("batch names {} rows of the cache for {} rows"));
}

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

/// The rule of writing. `batch`: nullptr if row b is row b of the cache.
template <class D>
bool write_cache(Facts<D>& facts, const TensorType<D>& cache, const TensorType<D>& rows,
                 const TensorType<D>& start, const TensorType<D>* batch, TensorType<D>& out) {
  if (!facts.require(cache.rank == 4 && rows.rank == 4,
                     TAPER_TEXT("cache and rows need 4 dimensions (batch, heads, length, "
                                "features), got {} and {}"),
                     cache.rank, rows.rank) ||
      !facts.require(cache.dtype == rows.dtype || rows.dtype == DType::f32,
                     TAPER_TEXT("cache and rows must have one dtype, or rows must be f32")) ||
      !starts_rows(facts, start, rows[0]) || !names_rows(facts, batch, rows[0], cache[0]) ||
      !facts.equal(cache[1], rows[1], TAPER_TEXT("cache has {} heads where rows have {}")))
    return false;
  if (cache.dtype != rows.dtype) {
    if (!holds_rows(facts, cache, rows[3])) return false;
  } else if (!facts.equal(cache[3], rows[3],
                          TAPER_TEXT("cache has extent {} where rows have {}"))) {
    return false;
  }
  out.like(cache);
  return true;
}

/// Query, key and value: of one dtype, or caches of other ones beside a query in f32. Gives the
/// features of a value.
template <class D>
bool attend_to_rows(Facts<D>& facts, const TensorType<D>& query, const TensorType<D>& key,
                    const TensorType<D>& value, D& values) {
  values = value[3];
  if (key.dtype == query.dtype) return attend<D>(facts, query, key, value, nullptr, false);
  if (!facts.require(query.dtype == DType::f32 && key.dtype == value.dtype,
                     TAPER_TEXT("key and value must have one dtype, and beside another one query "
                                "must be f32")) ||
      !holds_rows(facts, key, query[3]) ||
      !facts.equal(key[2], value[2], TAPER_TEXT("there are {} keys and {} values")))
    return false;
  if (key.dtype != DType::u8) return true;
  values = query[3];
  return holds_rows(facts, value, query[3]);
}

/// The rule of attention, likewise.
template <class D>
bool attend_to_cache(Facts<D>& facts, const TensorType<D>& query, const TensorType<D>& key,
                     const TensorType<D>& value, const TensorType<D>& start,
                     const TensorType<D>* batch, int64_t window, double softcap,
                     const TensorType<D>* sinks, const TensorType<D>* slopes, TensorType<D>& out) {
  D values(0);
  if (!facts.require(query.rank == 4 && key.rank == 4 && value.rank == 4,
                     TAPER_TEXT("query, key and value need 4 dimensions (batch, heads, length, "
                                "features), got {}, {} and {}"),
                     query.rank, key.rank, value.rank) ||
      !attend_to_rows(facts, query, key, value, values) ||
      !facts.require(window >= 0 && softcap >= 0,
                     TAPER_TEXT("window and softcap must not be negative")) ||
      !starts_rows(facts, start, query[0]))
    return false;
  TensorType<D> keys = leading(key);
  if (!share_heads(facts, query, keys) ||
      !facts.equal(key[1], value[1], TAPER_TEXT("key has {} heads and value {}")) ||
      !facts.equal(key[0], value[0], TAPER_TEXT("key has a batch of {} and value of {}")) ||
      !names_rows(facts, batch, query[0], key[0]) || !has_heads(facts, sinks, query) ||
      !has_heads(facts, slopes, query))
    return false;
  out.like(query);
  out[1] = query[2], out[2] = query[1], out[3] = values;
  return true;
}

}  // namespace internal

template <>
struct Rule<ops::taper_cache_write> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& cache, const TensorType<D>& rows,
                    const TensorType<D>& start, TensorType<D>& out) {
    return internal::write_cache<D>(facts, cache, rows, start, nullptr, out);
  }
};

template <>
struct Rule<ops::taper_cache_write_batch> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& cache, const TensorType<D>& rows,
                    const TensorType<D>& start, const TensorType<D>& batch, TensorType<D>& out) {
    return internal::write_cache<D>(facts, cache, rows, start, &batch, out);
  }
};

template <>
struct Rule<ops::taper_attention_cached> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& query, const TensorType<D>& key,
                    const TensorType<D>& value, const TensorType<D>& start, double, int64_t window,
                    double softcap, const TensorType<D>* sinks, const TensorType<D>* slopes,
                    TensorType<D>& out) {
    return internal::attend_to_cache<D>(facts, query, key, value, start, nullptr, window, softcap,
                                        sinks, slopes, out);
  }
};

template <>
struct Rule<ops::taper_attention_cached_batch> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& query, const TensorType<D>& key,
                    const TensorType<D>& value, const TensorType<D>& start,
                    const TensorType<D>& batch, double, int64_t window, double softcap,
                    const TensorType<D>* sinks, const TensorType<D>* slopes, TensorType<D>& out) {
    return internal::attend_to_cache<D>(facts, query, key, value, start, &batch, window, softcap,
                                        sinks, slopes, out);
  }
};

}  // namespace taper
