// Operators of language models: rotary embedding, and attention over a cache of keys and values,
// with which they make one token after the other.
#pragma once
#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// The cache (batch, heads, capacity, features) with `rows` (batch, heads, n, features) at places
/// start[b], start[b] + 1, … of row b. `start` is i64 (batch). A place outside is an error. With
/// `batch`, i64, the cache may have other rows: row b writes to row batch[b] of the cache, and no
/// two write to the same one.
inline Tensor cache_write(const Tensor& cache, const Tensor& rows, const Tensor& start,
                          const Tensor& batch = {}, Location here = Location::current()) {
  return batch.defined() ? call<ops::taper_cache_write_batch>(here, cache, rows, start, batch)
                         : call<ops::taper_cache_write>(here, cache, rows, start);
}

/// x cos + turned(x) sin, where `turned` makes (-b, a) of each pair (a, b) of the last dimension:
/// of the same places in both halves or, if `interleaved`, of neighbours. `cos` and `sin` broadcast
/// to the sizes of x. J. Su and others, "RoFormer", arXiv:2104.09864.
inline Tensor rotary_embedding(const Tensor& x, const Tensor& cos, const Tensor& sin,
                               bool interleaved = false, Location here = Location::current()) {
  return call<ops::taper_rotary_embedding>(here, x, cos, sin, interleaved);
}

struct CachedAttentionOptions {
  double scale = 1;    ///< of the scores
  int64_t window = 0;  ///< a query attends to its own position and window - 1 before it; 0: to all
  double softcap = 0;  ///< scores become softcap tanh(score / softcap); 0: they do not
  Tensor sinks;        ///< (heads): one more score per head, without a value
  Tensor slopes;       ///< (heads): slope * (key's position - query's) is added to a score (ALiBi)
  Tensor batch;        ///< i64 (batch): row b reads row batch[b] of the caches; none: row b
};

/// softmax(scores) value over a cache, for n queries at positions start[b], start[b] + 1, …:
///   query (batch, heads, n, features), key (batch, own heads, capacity, features),
///   value (batch, own heads, capacity, values), start i64 (batch) -> (batch, n, heads, values)
/// The caches already hold the keys and values of the queries' positions. Each of their heads
/// serves heads / own heads of the query. The time depends on the positions, not on the capacity.
inline Tensor attention_cached(const Tensor& query, const Tensor& key, const Tensor& value,
                               const Tensor& start, const CachedAttentionOptions& options,
                               Location here = Location::current()) {
  if (options.batch.defined())
    return call<ops::taper_attention_cached_batch>(here, query, key, value, start, options.batch,
                                                   options.scale, options.window, options.softcap,
                                                   options.sinks, options.slopes);
  return call<ops::taper_attention_cached>(here, query, key, value, start, options.scale,
                                           options.window, options.softcap, options.sinks,
                                           options.slopes);
}

}  // namespace taper::eager
