// Cuts attention into tiles whose scores stay in the second-level cache. Internal to compile.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "taper/delegates/xnnpack/compile/lowering.h"

namespace taper::delegates::xnnpack {

/// How often to cut each dimension of a query but the features: (…, heads, positions).
struct Cuts {
  std::vector<int64_t> counts;
  int64_t most_scores = 0;  ///< of a tile

  int64_t tiles() const;
};

/// Outer dimensions are cut first. Symbolic ones stay whole, and so do heads that share keys.
Cuts cut_attention(const ir::Value& query, const ir::Value& key);
/// Why cuts are too many, or not enough; empty: they are neither.
std::string refuses_cuts(const Cuts& cuts);

/// A part of each dimension of a query but the features.
struct Tile {
  struct Range {
    int64_t begin = 0;
    Dim size;
    bool is_whole = true;
  };
  std::vector<Range> ranges;
};

/// What `attend` gives for each tile, joined.
Ref in_tiles(Lowering& out, const ir::Value& query, const ir::Value& key, const Cuts& cuts,
             const std::function<Ref(const Tile&)>& attend);

/// Slices of tensors for tiles. Equal ones are made once.
class Slices {
 public:
  explicit Slices(Lowering& out) : out_(out) {}

  /// The ranges of the dimensions of `value`, which may be fewer than it has.
  Ref operator()(const ir::Value& value, const std::vector<Tile::Range>& ranges);

 private:
  Lowering& out_;
  std::map<std::pair<const ir::Value*, std::vector<int64_t>>, Ref> made_;
};

}  // namespace taper::delegates::xnnpack
