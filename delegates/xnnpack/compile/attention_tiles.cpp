#include "taper/delegates/xnnpack/compile/attention_tiles.h"

#include <algorithm>

namespace taper::delegates::xnnpack {
namespace {

using ir::Value;

constexpr int64_t scores_of_a_tile = 1 << 18;  // 1 MiB
constexpr int64_t most_tiles = 256;

/// What a dimension of the query can be cut into: heads that share keys stay together.
int64_t pieces(const Value& query, const Value& key, int d) {
  const Dim size = query.type.sizes[d];
  if (!size.is_constant()) return 1;
  return d == query.type.rank - 3 ? key.type.sizes[d].value() : size.value();
}

Tile whole(const Value& query) {
  Tile tile;
  for (int d = 0; d < query.type.rank - 1; ++d) tile.ranges.push_back({0, query.type.sizes[d]});
  return tile;
}

}  // namespace

int64_t Cuts::tiles() const {
  int64_t product = 1;
  for (const int64_t count : counts) product *= count;
  return product;
}

Cuts cut_attention(const Value& query, const Value& key) {
  Dim all = key.type.sizes[key.type.rank - 2];
  for (int d = 0; d < query.type.rank - 1; ++d) all = all * query.type.sizes[d];
  Cuts cuts{{}, all.upper()};
  for (int d = 0; d < query.type.rank - 1; ++d) {
    const int64_t n = pieces(query, key, d), of_piece = cuts.most_scores / n;
    const int64_t together =
        std::clamp<int64_t>(scores_of_a_tile / std::max<int64_t>(of_piece, 1), 1, n);
    cuts.counts.push_back((n + together - 1) / together);
    cuts.most_scores = of_piece * ((n + cuts.counts.back() - 1) / cuts.counts.back());
  }
  return cuts;
}

std::string refuses_cuts(const Cuts& cuts) {
  if (cuts.most_scores > scores_of_a_tile)
    return "its scores need more than 1 MiB, and the sizes that could be cut are symbolic";
  if (cuts.tiles() > most_tiles)
    return "its scores need more than " + std::to_string(most_tiles) + " tiles of 1 MiB";
  return "";
}

Ref in_tiles(Lowering& out, const Value& query, const Value& key, const Cuts& cuts,
             const std::function<Ref(const Tile&)>& attend) {
  Tile tile = whole(query);
  const auto cut_from = [&](const auto& self, size_t d) -> Ref {
    if (d == tile.ranges.size()) return attend(tile);
    const int64_t count = cuts.counts[d];
    if (count == 1) return self(self, d + 1);
    const int64_t n = pieces(query, key, static_cast<int>(d));
    const int64_t piece = tile.ranges[d].size.value() / n;
    const Tile::Range before = tile.ranges[d];
    std::vector<Ref> results;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t begin = n * i / count * piece, end = n * (i + 1) / count * piece;
      tile.ranges[d] = {begin, end - begin, false};
      results.push_back(self(self, d + 1));
    }
    tile.ranges[d] = before;
    return out.joined(std::move(results), static_cast<int64_t>(d));
  };
  return cut_from(cut_from, 0);
}

Ref Slices::operator()(const Value& value, const std::vector<Tile::Range>& ranges) {
  const auto rank = static_cast<size_t>(value.type.rank);
  std::vector<int64_t> bounds(2 * rank);  // offsets, sizes; size 0: the whole dimension
  bool is_whole = true;
  for (size_t d = 0; d < std::min(rank, ranges.size()); ++d) {
    if (ranges[d].is_whole) continue;
    is_whole = false;
    bounds[d] = ranges[d].begin;
    bounds[rank + d] = ranges[d].size.value();
  }
  if (is_whole) return out_.ref(&value);
  const auto [at, is_new] = made_.try_emplace({&value, bounds});
  if (is_new)
    at->second = out_.add(blob::Kind::slice, blob::Function::none, {out_.ref(&value)}, bounds);
  return at->second;
}

}  // namespace taper::delegates::xnnpack
