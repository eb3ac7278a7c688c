// Masks of attention as numbers that are added to the scores. Internal to compile.
#pragma once
#include <limits>
#include <map>
#include <vector>

#include "taper/delegates/xnnpack/compile/attention_tiles.h"

namespace taper::delegates::xnnpack {

/// The least number of a mask. It leaves nothing of a score, and a softmax over such scores is no
/// NaN. Twice as much stands for -infinity, which hides a key beside the most negative numbers,
/// too.
constexpr float least = -1e38f;

/// The parts of a mask for tiles of scores. Equal ones are made once.
class TileMasks {
 public:
  /// `mask`: nullptr for none. `sharing`: the queries of so many heads are those of one.
  TileMasks(Lowering& out, Slices& slices, const ir::Value* mask, int64_t sharing)
      : out_(out), slices_(slices), mask_(mask), sharing_(sharing) {}

  struct Numbers {
    Ref added;     ///< to scores; none without a mask
    Ref has_keys;  ///< 1 for a query with a key, 0 for one without any; none if each has one
  };
  Numbers of(const Tile& tile);

 private:
  Numbers of_constant(const std::vector<Tile::Range>& ranges);
  Numbers of_computed(const std::vector<Tile::Range>& ranges);
  Ref for_all_heads(Ref x) const;

  Lowering& out_;
  Slices& slices_;
  const ir::Value* mask_;
  int64_t sharing_;
  std::map<std::vector<int64_t>, Numbers> made_;
};

}  // namespace taper::delegates::xnnpack
