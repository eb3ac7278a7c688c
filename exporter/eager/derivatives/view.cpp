// Derivatives of views: the gradient in the layout of the argument, with zeros at the elements that
// the view does not show.
#include "taper/exporter/eager/ops/view.h"

#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::derivatives {
namespace {

Tensor zeros_of(const Tensor& dy, const Dims& sizes) { return zeros(sizes, dy.dtype()); }

// Zeros of `count` elements, to which the elements of dy are added at `positions` (i64, the sizes
// of dy).
Tensor add_at(const Tensor& positions, const Tensor& dy, Dim count) {
  return call<ops::scatter_add>(zeros({count}, dy.dtype()), int64_t{0},
                                reshape(positions, {Dim(-1)}), reshape(dy, {Dim(-1)}));
}
Dim product(const Dims& sizes) {
  Dim n = 1;
  for (const Dim& d : sizes) n = n * d;
  return n;
}
// The line 0, 1, … count - 1.
Tensor positions_of(Dim count) { return arange(Scalar(count.value())); }

}  // namespace

TAPER_DERIVATIVE(view) { return {reshape(dy, saved.sizes<"self">())}; }
TAPER_DERIVATIVE(alias) { return {dy}; }
TAPER_DERIVATIVE(expand) { return {dy}; }
TAPER_DERIVATIVE(unsqueeze) { return {reshape(dy, saved.sizes<"self">())}; }
TAPER_DERIVATIVE(squeeze_dim) { return {reshape(dy, saved.sizes<"self">())}; }
TAPER_DERIVATIVE(squeeze_dims) { return {reshape(dy, saved.sizes<"self">())}; }
TAPER_DERIVATIVE(transpose_int) {
  return {transpose(dy, saved.integer<"dim0">(), saved.integer<"dim1">())};
}
TAPER_DERIVATIVE(permute) {
  const Ints dims = saved.integers<"dims">();
  Ints inverse(dims.size());
  const int64_t rank = static_cast<int64_t>(dims.size());
  for (int64_t i = 0; i < rank; ++i)
    inverse[static_cast<size_t>(dims[static_cast<size_t>(i)] < 0
                                    ? dims[static_cast<size_t>(i)] + rank
                                    : dims[static_cast<size_t>(i)])] = i;
  return {permute(dy, inverse)};
}
TAPER_DERIVATIVE(select_int) {
  return {select_scatter(zeros_of(dy, saved.sizes<"self">()), dy, saved.integer<"dim">(),
                         saved.dim<"index">())};
}
TAPER_DERIVATIVE(slice_Tensor) {
  std::optional<Dim> start, end;
  if (saved.has<"start">()) start = saved.dim<"start">();
  if (saved.has<"end">()) end = saved.dim<"end">();
  return {slice_scatter(zeros_of(dy, saved.sizes<"self">()), dy, saved.integer<"dim">(), start, end,
                        saved.dim<"step">())};
}
TAPER_DERIVATIVE(diagonal) {
  return {diagonal_scatter(zeros_of(dy, saved.sizes<"self">()), dy, saved.integer<"offset">(),
                           saved.integer<"dim1">(), saved.integer<"dim2">())};
}
// Windows may overlap, so their gradients are added.
TAPER_DERIVATIVE(unfold) {
  const Dims sizes = saved.sizes<"self">();
  const Dim count = product(sizes);
  const Tensor windows = unfold(view(positions_of(count), sizes), saved.integer<"dimension">(),
                                saved.integer<"size">(), saved.integer<"step">());
  return {reshape(add_at(windows, dy, count), sizes)};
}
// Works on the storage, where elements of the argument and of the view may share a place. The
// gradients of the view are summed for each place. Elements of the argument at the same place share
// the sum evenly.
TAPER_DERIVATIVE(as_strided) {
  const TensorType<Dim> self = saved.call().source_type();
  const Dims size = saved.dims<"size">(), stride = saved.dims<"stride">();
  const Dims self_sizes(self.sizes, self.sizes + self.rank),
      self_strides(self.strides, self.strides + self.rank);
  const Dim offset = saved.has<"storage_offset">() ? saved.dim<"storage_offset">() : self.offset;
  const auto end_of = [](const Dims& sizes, const Dims& strides, Dim first) {
    for (size_t i = 0; i < sizes.size(); ++i)
      first = first + max(sizes[i] - 1, Dim(0)) * strides[i];
    return first + 1;
  };
  const Dim count =
      max(end_of(size, stride, offset), end_of(self_sizes, self_strides, self.offset));
  const Tensor line = positions_of(count);
  const Tensor at_storage = add_at(as_strided(line, size, stride, offset), dy, count);
  const Tensor own = as_strided(line, self_sizes, self_strides, self.offset);
  const Tensor owners = add_at(own, ones(self_sizes, dy.dtype()), count);
  return {as_strided(at_storage, self_sizes, self_strides, self.offset) /
          as_strided(owners, self_sizes, self_strides, self.offset)};
}

}  // namespace taper::eager::derivatives
