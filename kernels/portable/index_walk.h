// Walking a tensor of indices along one dimension beside what it is applied to: what gather,
// scatter and their kin share.
#pragma once
#include <cstring>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/lines.h"

namespace taper::portable {

/// Whether all of some indices lie in [lowest, extent).
template <class I>
bool are_inside(const I* at, index_t count, index_t extent, index_t lowest = 0) {
  const uint64_t range = static_cast<uint64_t>(extent - lowest);
  bool outside = false;
  for (index_t i = 0; i < count; ++i)
    outside |= static_cast<uint64_t>(at[i]) - static_cast<uint64_t>(lowest) >= range;
  return !outside;
}
/// The same, with the error that names the first one outside.
template <class I>
Error check_indices(Context& context, View<const I> index, index_t extent, index_t lowest = 0) {
  const I* at = index.data();
  const index_t count = index.numel();
  if (are_inside(at, count, extent, lowest)) return Error::ok;
  for (index_t i = 0; i < count; ++i)
    if (at[i] < lowest || at[i] >= extent)
      return context.fail(Error::invalid_argument, TAPER_TEXT("index {} is outside [{}, {})"),
                          at[i], lowest, extent);
  return Error::ok;
}

inline int normalized(int64_t dim, int rank) {
  return static_cast<int>(dim < 0 ? dim + (rank > 0 ? rank : 1) : dim);
}
inline index_t extent_along(const Shape& s, int dim) { return s.rank == 0 ? 1 : s.sizes[dim]; }

/// The extents of an index tensor beside the strides of what it is applied to. A scalar counts as
/// one dimension.
struct Along {
  int rank;
  int dim;
  index_t sizes[max_rank];           ///< of the index
  index_t target_strides[max_rank];  ///< of the tensor that is indexed
  index_t source_strides[max_rank];  ///< of the tensor that is read beside the index; that of the
                                     ///< index if there is none

  index_t rows() const {
    index_t n = 1;
    for (int i = 0; i + 1 < rank; ++i) n *= sizes[i];
    return n;
  }
  /// Where row number `row` of the index begins in the target, apart from `dim`, and in the source.
  void begin(index_t row, index_t& target, index_t& source) const {
    target = source = 0;
    for (int i = rank - 2; i >= 0; --i) {
      const index_t at = row % sizes[i];
      row /= sizes[i];
      source += at * source_strides[i];
      if (i != dim) target += at * target_strides[i];
    }
  }
  /// From one element of a row to the next, apart from `dim`.
  index_t target_step() const { return dim == rank - 1 ? 0 : target_strides[rank - 1]; }
};

inline Along along(const Shape& target, int dim, const Shape& index, const Shape& source) {
  Along a;
  a.rank = index.rank > 0 ? index.rank : 1, a.dim = dim;
  for (int i = 0; i < a.rank; ++i) {
    a.sizes[i] = index.rank > 0 ? index.sizes[i] : 1;
    a.target_strides[i] = i < target.rank ? target.strides[i] : 1;
    a.source_strides[i] = i < source.rank ? source.strides[i] : 1;
  }
  return a;
}

/// Calls write(offset in the target, offset in the source) for each index, in row-major order.
template <class I, class Write>
void for_each_target(const Along& a, const I* at, const Write& write) {
  const index_t width = a.sizes[a.rank - 1], step = a.target_step(),
                stride = a.target_strides[a.dim], source_step = a.source_strides[a.rank - 1];
  const index_t rows = a.rows();
  for (index_t row = 0; row < rows; ++row, at += width) {
    index_t to, from;
    a.begin(row, to, from);
    for (index_t i = 0; i < width; ++i)
      write(to + i * step + static_cast<index_t>(at[i]) * stride, from + i * source_step);
  }
}

/// Calls write(offset of a slice of the target, offset of the source's) for each index of `outer`
/// number o, in order. A slice has lines.inner elements.
template <class I, class Write>
void for_each_slice(const Lines& lines, index_t o, const I* at, index_t count, const Write& write) {
  for (index_t k = 0; k < count; ++k)
    write((o * lines.extent + static_cast<index_t>(at[k])) * lines.inner,
          (o * count + k) * lines.inner);
}

/// Result 0 may lie on self, so that a write into a long tensor costs what it writes.
struct InPlace {
  static constexpr uint32_t overwrites = 1;
};

template <class E>
void copy_unless_in_place(View<const E> self, View<E> out) {
  if (out.data() != self.data() && self.numel() > 0)
    std::memcpy(out.data(), self.data(), static_cast<size_t>(self.numel()) * sizeof(E));
}

}  // namespace taper::portable
