#include "taper/delegates/xnnpack/compile/attention_masks.h"

#include <algorithm>
#include <cmath>

#include "taper/delegates/xnnpack/compile/arguments.h"
#include "taper/delegates/xnnpack/compile/table.h"
#include "taper/exporter/eager/ops/comparison.h"
#include "taper/exporter/eager/ops/creation.h"
#include "taper/exporter/eager/ops/movement.h"
#include "taper/exporter/eager/ops/reduction.h"
#include "taper/exporter/eager/ops/rounding.h"
#include "taper/exporter/eager/ops/view.h"

namespace taper::delegates::xnnpack {
namespace {

using blob::Function, blob::Kind;
using eager::Tensor;

/// The ranges of the dimensions that a mask has, counted from the last, without those that it
/// broadcasts. `tile` has no range of keys, which stay whole.
std::vector<Tile::Range> ranges_of(const ir::Value& mask, const Tile& tile) {
  std::vector<Tile::Range> ranges;
  const int rank = mask.type.rank, ahead = static_cast<int>(tile.ranges.size()) + 1 - rank;
  for (int d = 0; d < rank - 1; ++d) {
    const bool broadcasts = proves_equal(mask.type.sizes[d], 1);
    ranges.push_back(broadcasts ? Tile::Range{0, 1} : tile.ranges[static_cast<size_t>(d + ahead)]);
  }
  return ranges;
}

/// 0 for a key that -infinity hides, and 1 for others.
Ref shown_keys(Lowering& out, Ref mask) {
  // The most negative number becomes -6.8. It hides a key only beside others.
  const Ref small = out.add(Kind::binary, Function::multiply, {mask, out.number(2e-38)}),
            moved = out.add(Kind::binary, Function::add, {small, out.number(8)});
  return out.add(Kind::unary, Function::clamp, {moved}, {}, {0, 1});
}
Ref has_keys(Lowering& out, Ref shown, int rank) {
  const Ref keys = out.add(Kind::sum, Function::none, {shown}, {1, rank - 1});
  return out.add(Kind::unary, Function::clamp, {keys}, {}, {0, 1});
}

}  // namespace

TileMasks::Numbers TileMasks::of(const Tile& tile) {
  if (mask_ == nullptr) return {};
  const std::vector<Tile::Range> ranges = ranges_of(*mask_, tile);
  std::vector<int64_t> key;
  for (const Tile::Range& r : ranges) key.push_back(r.begin), key.push_back(r.is_whole);
  const auto [at, is_new] = made_.try_emplace(std::move(key));
  if (is_new) at->second = is_constant(mask_) ? of_constant(ranges) : of_computed(ranges);
  return at->second;
}

/// The numbers are made here, and those that are not needed are left out.
TileMasks::Numbers TileMasks::of_constant(const std::vector<Tile::Range>& ranges) {
  Tensor x = out_.elements(mask_);
  for (size_t d = 0; d < ranges.size(); ++d)
    if (!ranges[d].is_whole)
      x = eager::slice(x, static_cast<int64_t>(d), ranges[d].begin,
                       ranges[d].begin + ranges[d].size.value());
  const Tensor hidden = eager::full({}, 2 * least), finite = eager::clamp_min(x, least);
  const Tensor added = eager::where(eager::eq(x, -INFINITY), hidden, finite);
  const Tensor keys = eager::gt(eager::amax(x, {-1}, true), -INFINITY);
  const auto constant = [&](const Tensor& t) {
    return for_all_heads(out_.reshaped(mask_, t, numbers(t.sizes())));
  };
  Numbers numbers{constant(added), Ref()};
  if (!eager::all(keys).item<bool>()) numbers.has_keys = constant(eager::to(keys, DType::f32));
  return numbers;
}

TileMasks::Numbers TileMasks::of_computed(const std::vector<Tile::Range>& ranges) {
  const auto binary = [&](Function f, Ref a, Ref b) { return out_.add(Kind::binary, f, {a, b}); };
  const Ref given = slices_(*mask_, ranges), shown = shown_keys(out_, given);
  // max(given, least) + (1 - shown) least
  const Ref finite = binary(Function::maximum, given, out_.number(least)),
            more = binary(Function::multiply, shown, out_.number(-least)),
            hidden = binary(Function::add, more, out_.number(least));
  return {for_all_heads(binary(Function::add, finite, hidden)),
          for_all_heads(has_keys(out_, shown, mask_->type.rank))};
}

/// For the queries of all heads that share keys.
Ref TileMasks::for_all_heads(Ref x) const {
  const int rank = mask_->type.rank;
  if (sharing_ == 1 || rank < 2 || proves_equal(mask_->type.sizes[rank - 2], 1)) return x;
  return out_.joined(std::vector<Ref>(static_cast<size_t>(sharing_), x), rank - 2);
}

}  // namespace taper::delegates::xnnpack
