// T5's positions: a number for each head is added to a score, by the distance of key and query.
// Near distances have a bucket of their own, farther ones share buckets that grow. C. Raffel and
// others, "Exploring the limits of transfer learning", arXiv:1910.10683.
#pragma once
#include <vector>

#include "taper/exporter/llm/blocks.h"

namespace taper::llm {

/// The bucket of each distance, a key's position less the query's, from -most to most. Without
/// `both_ways` a later key has the bucket of distance 0: no query sees it.
std::vector<int64_t> distance_buckets(int64_t buckets, int64_t most, bool both_ways);

class RelativeBias : public nn::Module {
 public:
  /// `weights`: those of the first layer's attention.
  RelativeBias(const Config& config, const Weights& weights, bool both_ways);
  Tensor table;  ///< (distances, heads)
  TAPER_LAYER(table)

  /// Queries i64 (batch, n), keys i64 (m) -> f32 (batch, heads, n, m)
  Tensor at(const Tensor& queries, const Tensor& keys) const;

 private:
  int64_t most_;
};

}  // namespace taper::llm
