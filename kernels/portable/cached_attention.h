// What the kernels of attention over a cache share: strides, and which keys a query sees.
#pragma once
#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/index_check.h"

namespace taper::portable {

/// The steps of a tensor (batch, heads, rows, features).
struct HeadSteps {
  index_t batch, head, row, feature;
};
inline HeadSteps head_steps(const Shape& t) {
  return {t.strides[0], t.strides[1], t.strides[2], t.strides[3]};
}

struct CachedHeads {
  index_t batch, heads, queries, features, values, capacity;
  index_t sharing;  ///< heads of the query that one head of key and value serves
  index_t window;   ///< 0: none
  HeadSteps query, key, value;

  /// The first key that the query at `position` sees.
  index_t first_key(index_t position) const {
    return window == 0 || position < window ? 0 : position - window + 1;
  }
};

/// `out`: the shape of the result, since a cache in blocks does not tell how many elements a row
/// has.
inline CachedHeads cached_heads(const Shape& query, const Shape& key, const Shape& value,
                                const Shape& out, int64_t window) {
  const index_t own = key.sizes[1] > 0 ? key.sizes[1] : 1;
  return {query.sizes[0],    query.sizes[1],  query.sizes[2],       query.sizes[3],
          out.sizes[3],      key.sizes[2],    query.sizes[1] / own, static_cast<index_t>(window),
          head_steps(query), head_steps(key), head_steps(value)};
}

/// Which row of the caches a row of the batch uses.
class CacheRows {
 public:
  CacheRows() = default;  ///< row b uses row b
  explicit CacheRows(View<const int64_t> batch) : rows_(batch.data()) {}
  index_t operator[](index_t b) const {
    return rows_ == nullptr ? b : static_cast<index_t>(rows_[b]);
  }

 private:
  const int64_t* rows_ = nullptr;
};

/// The caches must have the rows that `batch` names.
inline Error check_rows(Context& context, View<const int64_t> batch, index_t rows) {
  return check_indices(context, batch, rows, 0,
                       TAPER_TEXT("batch names row {} of the cache, which is outside [{}, {})"));
}

/// All rows of the batch must lie inside the cache.
inline Error check_places(Context& context, View<const int64_t> start, index_t count,
                          index_t capacity) {
  if (count > capacity)
    return context.fail(Error::invalid_argument, TAPER_TEXT("{} positions, and the cache has {}"),
                        count, capacity);
  return check_indices(context, start, capacity - count + 1, 0,
                       TAPER_TEXT("start {} is outside [{}, {}): the cache is full"));
}

}  // namespace taper::portable
