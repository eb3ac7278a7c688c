// Rules of im2col and col2im: windows of an image as the columns of a matrix, and the sum of such
// columns.
#pragma once
#include "taper/kernels/shapes/pooling.h"

namespace taper {
namespace internal {

/// The windows of (…, height, width): `count` columns, with `rows` elements for each channel.
template <class D>
bool read_columns(Facts<D>& facts, const D& height, const D& width, Span<const int64_t> kernel_size,
                  Span<const int64_t> dilation, Span<const int64_t> padding,
                  Span<const int64_t> stride, D& rows, D& count) {
  Window windows[2];
  D down, right;
  if (!read_windows<2>(facts, kernel_size, stride, padding, dilation, windows,
                       /*half_padded=*/false) ||
      !window_count(facts, height, windows[0], false, down) ||
      !window_count(facts, width, windows[1], false, right))
    return false;
  rows = D(windows[0].kernel) * D(windows[1].kernel);
  count = down * right;
  return true;
}

}  // namespace internal

/// ([batch,] channels, height, width) -> ([batch,] channels × kernel elements, windows)
template <>
struct Rule<ops::im2col> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Span<const int64_t> kernel_size,
                    Span<const int64_t> dilation, Span<const int64_t> padding,
                    Span<const int64_t> stride, TensorType<D>& out) {
    if (!internal::check_pooled<2>(facts, self)) return false;
    const int rank = self.rank - 1;
    D rows;
    out.like(self), out.rank = rank;
    if (!internal::read_columns(facts, self[rank - 1], self[rank], kernel_size, dilation, padding,
                                stride, rows, out[rank - 1]))
      return false;
    out[rank - 2] = self[rank - 2] * rows;
    return true;
  }
};

template <>
struct Rule<ops::col2im> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, DimList<D> output_size,
                    Span<const int64_t> kernel_size, Span<const int64_t> dilation,
                    Span<const int64_t> padding, Span<const int64_t> stride, TensorType<D>& out) {
    if (!facts.require(self.rank == 2 || self.rank == 3,
                       TAPER_TEXT("self must have 2 or 3 dimensions, it has {}"), self.rank) ||
        !facts.require(output_size.size() == 2,
                       TAPER_TEXT("output_size must have 2 elements, it has {}"),
                       output_size.size()))
      return false;
    for (int i = 0; i < 2; ++i)
      if (!facts.at_least(output_size[i], D(1), TAPER_TEXT("output_size must be positive, got {}")))
        return false;
    const int rank = self.rank;
    D rows, count;
    if (!internal::read_columns(facts, output_size[0], output_size[1], kernel_size, dilation,
                                padding, stride, rows, count) ||
        !facts.equal(self[rank - 1], count,
                     TAPER_TEXT("self has {} columns where output_size has {} windows")) ||
        !facts.at_least(self[rank - 2], D(1), TAPER_TEXT("self has {} rows")) ||
        !facts.equal(self[rank - 2] % rows, D(0),
                     TAPER_TEXT("self's rows are not a multiple of the kernel's elements ({} "
                                "remain, not {})")))
      return false;
    out.like(self), out.rank = rank + 1;
    out[rank - 2] = self[rank - 2] / rows;
    out[rank - 1] = output_size[0], out[rank] = output_size[1];
    return true;
  }
};

}  // namespace taper
