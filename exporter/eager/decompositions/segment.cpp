// Reductions of the segments into which lengths, or offsets, cut a dimension.
#include <cmath>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/recorder.h"

namespace taper::eager::decompositions {
namespace {

[[noreturn]] void fail(const std::string& what) { throw EagerError("segment_reduce: " + what); }

/// How a reduction is done: scatter_reduce's name for it, and its result for no element.
struct Reduction {
  std::string_view scatter;
  double of_nothing;
};
Reduction reduction_of(std::string_view name) {
  if (name == "sum" || name == "mean") return {"sum", 0};
  if (name == "prod") return {"prod", 1};
  if (name == "max") return {"amax", -INFINITY};
  if (name == "min") return {"amin", INFINITY};
  fail("reduce must be sum, mean, max, min or prod, not " + std::string(name));
}

/// Where segments begin and end along their last dimension, both i64.
struct Segments {
  Tensor begins, ends;
};
Segments segments_of(const Arguments<ops::segment_reduce>& a, int64_t axis) {
  const bool by_length = a.has<"lengths">();
  if (!by_length && !a.has<"offsets">()) fail("needs lengths or offsets");
  if (a.has<"indices">()) fail("indices are not supported; give lengths or offsets");
  const Tensor given = by_length ? a.tensor<"lengths">() : a.tensor<"offsets">();
  const Tensor data = a.tensor<"data">();
  const char* name = by_length ? "lengths" : "offsets";
  if (given.dtype() != DType::i64 && given.dtype() != DType::i32)
    fail(std::string(name) + " must be i64 or i32, not " + taper::name_of(given.dtype()));
  bool fits = given.rank() == axis + 1;
  for (int64_t i = 0; fits && i < axis; ++i) fits = !proves_different(given.size(i), data.size(i));
  if (!fits)
    fail(std::string(name) + " must have the sizes of data before axis " + std::to_string(axis) +
         ", and one more dimension, got " + to_string(given.sizes()));
  const Tensor numbers = cast(given.detach(), DType::i64);
  if (by_length) {
    const Tensor ends = cumsum(numbers, -1);
    return {sub(ends, numbers), ends};
  }
  const Dim count = numbers.size(-1);
  if (proves_equal(count, Dim(0))) fail("offsets must have at least one element");
  return {slice(numbers, -1, 0, count - 1), slice(numbers, -1, 1, count)};
}
/// Refuses segments that do not lie one after another in [0, extent). With lengths, the last one
/// ends at the extent.
void check_segments(const Segments& s, Dim extent, bool by_length) {
  if (s.ends.is_traced() || proves_equal(s.ends.numel(), Dim(0))) return;
  const Tensor size = dim_as_tensor(extent, DType::i64);
  if (any(lt(s.ends, s.begins)).item<bool>())
    fail(by_length ? "lengths must not be negative" : "offsets must not descend");
  const Tensor last = select(s.ends, -1, s.ends.size(-1) - 1);
  if (by_length && any(ne(last, size)).item<bool>())
    fail("lengths must sum to the extent of data, " + extent.to_string() +
         "; unsafe=true leaves the rest out");
  if (!by_length && logical_or(any(lt(s.begins, 0)), any(gt(last, size))).item<bool>())
    fail("offsets must lie in [0, " + extent.to_string() + "], the extent of data");
}
/// For each position along the axis its segment. Positions in no segment get one more than the
/// last.
Tensor segment_of_positions(const Segments& s, Dim extent) {
  Dims sizes = s.ends.sizes();
  const Dim count = sizes.back();
  sizes.back() = extent;
  const Tensor places = contiguous(expand(positions(extent), sizes));
  const Tensor segment = searchsorted(contiguous(s.ends), places, true);
  const Tensor last = dim_as_tensor(count, DType::i64);
  if (proves_equal(count, Dim(0))) return segment;
  return where(lt(places, slice(s.begins, -1, 0, 1)), last, segment);
}
/// `t`, shaped (outer…, n), as (outer…, n, 1…) to stand beside data.
Tensor beside_data(Tensor t, int64_t rank) {
  while (t.rank() < rank) t = unsqueeze(t, -1);
  return t;
}

}  // namespace

// Each segment is a place of scatter_reduce. One more place takes the elements of no segment.
TAPER_DECOMPOSITION(segment_reduce) {
  const Tensor data = a.tensor<"data">();
  if (!is_floating(data.dtype()))
    fail(std::string("data must be floating, not ") + taper::name_of(data.dtype()));
  if (data.rank() == 0) fail("data must have a dimension");
  const int64_t axis = checked_dim(a.integer<"axis">(), data.rank(), "segment_reduce", data);
  const std::string_view reduce = a.text<"reduce">();
  const Reduction reduction = reduction_of(reduce);
  const Segments segments = segments_of(a, axis);
  const Dim extent = data.size(axis), count = segments.ends.size(-1);
  if (!a.boolean<"unsafe">()) check_segments(segments, extent, a.has<"lengths">());

  const Scalar initial = a.has<"initial">() ? a.scalar<"initial">() : Scalar(reduction.of_nothing);
  Dims sizes = data.sizes();
  sizes[static_cast<size_t>(axis)] = count + 1;
  const Tensor places = segment_of_positions(segments, extent);
  const Tensor at = expand(beside_data(places, data.rank()), data.sizes());
  const Tensor all =
      scatter_reduce(full(sizes, initial, data.dtype()), axis, at, data, reduction.scatter);
  const Tensor result = slice(all, axis, 0, count);
  if (reduce != "mean") return {result};
  const Tensor lengths = beside_data(sub(segments.ends, segments.begins), data.rank());
  const Tensor mean = div(result, cast(clamp_min(lengths, 1), data.dtype()));
  if (a.has<"initial">()) return {mean};
  return {masked_fill(mean, eq(lengths, 0), NAN)};
}

}  // namespace taper::eager::decompositions
