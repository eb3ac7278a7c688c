#include "taper/exporter/llm/relative_bias.h"

#include <algorithm>
#include <cmath>

#include "taper/exporter/eager/eager.h"

namespace taper::llm {

using namespace eager;

namespace {

/// Of a distance in one direction. In f32, as the models were trained: elsewhere a distance at the
/// edge of a bucket may fall into the other one.
int64_t bucket_of(int64_t distance, int64_t buckets, int64_t most) {
  const int64_t exact = buckets / 2;
  if (distance < exact) return distance;
  const auto ratio = static_cast<double>(most) / static_cast<double>(exact);
  const float near = static_cast<float>(distance) / static_cast<float>(exact);
  const float part = std::log(near) / static_cast<float>(std::log(ratio));
  return std::min(exact + static_cast<int64_t>(part * static_cast<float>(buckets - exact)),
                  buckets - 1);
}

}  // namespace

std::vector<int64_t> distance_buckets(int64_t buckets, int64_t most, bool both_ways) {
  const int64_t of_one_way = both_ways ? buckets / 2 : buckets;
  std::vector<int64_t> list;
  for (int64_t d = -most; d <= most; ++d) {
    if (d <= 0)
      list.push_back(bucket_of(-d, of_one_way, most));
    else
      list.push_back(both_ways ? of_one_way + bucket_of(d, of_one_way, most) : 0);
  }
  return list;
}

RelativeBias::RelativeBias(const Config& c, const Weights& weights, bool both_ways)
    : most_(c.bucket_distance) {
  const Tensor of_buckets = weights["relative_bias"].matrix(c.distance_buckets, c.heads).widened();
  const std::vector<int64_t> buckets = distance_buckets(c.distance_buckets, most_, both_ways);
  table = index_select(of_buckets, 0, Tensor::from(buckets, {2 * most_ + 1}));
  set_names();
}

Tensor RelativeBias::at(const Tensor& queries, const Tensor& keys) const {
  const Tensor distances = clamp(keys - queries.unsqueeze(-1), -most_, most_) + most_;
  return embedding(table, distances).permute({0, 3, 1, 2});
}

}  // namespace taper::llm
