// Derivatives of copies, concatenation, padding and writes to parts.
#include "taper/exporter/eager/ops/movement.h"

#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::derivatives {

TAPER_DERIVATIVE(clone) { return {dy}; }
TAPER_DERIVATIVE(_to_copy) { return {dy}; }
TAPER_DERIVATIVE(copy) { return {zeros_like(dy), dy}; }
TAPER_DERIVATIVE(fill_Scalar) { return {zeros_like(dy)}; }

TAPER_DERIVATIVE(cat) {
  const SavedCall& call = saved.call();
  Gradients gradients;
  Dim from = 0;
  for (int i = 0; i < call.element_count(0); ++i) {
    const Dims sizes = call.sizes(0, i);
    const int64_t dim = saved.template integer<"dim">(), rank = dy.rank();
    if (static_cast<int64_t>(sizes.size()) != rank) {  // an empty tensor, which cat skipped
      gradients.push_back(zeros(sizes, dy.dtype()));
      continue;
    }
    const Dim length = sizes[static_cast<size_t>(dim < 0 ? dim + rank : dim)];
    gradients.push_back(slice(dy, dim, from, from + length));
    from = from + length;
  }
  return gradients;
}

// Reshapes (r0 s0, r1 s1, …) to (r0, s0, r1, s1, …), one dimension at a time, and sums over the
// repeats.
TAPER_DERIVATIVE(repeat) {
  const Dims sizes = saved.sizes<"self">(), repeats = saved.dims<"repeats">();
  const size_t added = repeats.size() - sizes.size();
  Tensor dx = dy;
  for (size_t i = 0; i < added; ++i) dx = sum(dx, Ints{0});
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (same(repeats[added + i], Dim(1))) continue;
    Dims cut = dx.sizes();
    cut[i] = repeats[added + i];
    cut.insert(cut.begin() + static_cast<std::ptrdiff_t>(i) + 1, sizes[i]);
    dx = sum(reshape(dx, cut), Ints{static_cast<int64_t>(i)});
  }
  return {dx};
}

TAPER_DERIVATIVE(flip) { return {flip(dy, saved.integers<"dims">())}; }
TAPER_DERIVATIVE(roll) {
  Dims back = saved.dims<"shifts">();
  for (Dim& d : back) d = -d;
  return {roll(dy, back, saved.integers<"dims">())};
}
TAPER_DERIVATIVE(constant_pad_nd) {
  Dims back = saved.dims<"pad">();
  for (Dim& d : back) d = -d;
  return {constant_pad_nd(dy, back)};
}
TAPER_DERIVATIVE(tril) { return {tril(dy, saved.dim<"diagonal">())}; }
TAPER_DERIVATIVE(triu) { return {triu(dy, saved.dim<"diagonal">())}; }

TAPER_DERIVATIVE(slice_scatter) {
  std::optional<Dim> start, end;
  if (saved.has<"start">()) start = saved.dim<"start">();
  if (saved.has<"end">()) end = saved.dim<"end">();
  const int64_t dim = saved.integer<"dim">();
  const Dim step = saved.dim<"step">();
  return {slice_scatter(dy, zeros(saved.sizes<"src">(), dy.dtype()), dim, start, end, step),
          slice(dy, dim, start, end, step)};
}
TAPER_DERIVATIVE(select_scatter) {
  const int64_t dim = saved.integer<"dim">();
  const Dim index = saved.dim<"index">();
  return {select_scatter(dy, zeros(saved.sizes<"src">(), dy.dtype()), dim, index),
          select(dy, dim, index)};
}
TAPER_DERIVATIVE(diagonal_scatter) {
  const int64_t offset = saved.integer<"offset">(), dim1 = saved.integer<"dim1">(),
                dim2 = saved.integer<"dim2">();
  return {diagonal_scatter(dy, zeros(saved.sizes<"src">(), dy.dtype()), offset, dim1, dim2),
          diagonal(dy, offset, dim1, dim2)};
}
TAPER_DERIVATIVE(as_strided_scatter) {
  const Dims size = saved.dims<"size">(), stride = saved.dims<"stride">();
  const std::optional<Dim> offset =
      saved.has<"storage_offset">() ? saved.dim<"storage_offset">() : Dim(0);
  const Tensor dense = contiguous(dy);
  return {call<ops::as_strided_scatter>(dense, zeros(saved.sizes<"src">(), dy.dtype()), size,
                                        stride, offset),
          as_strided(dense, size, stride, offset)};
}

}  // namespace taper::eager::derivatives
