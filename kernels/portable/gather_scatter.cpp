// Elements picked and written by a tensor of indices along one dimension: gather, index_select,
// scatter, scatter_add, index_add. Writes happen in the row-major order of the index, so the last
// of several to one place wins, and sums are the same each time.
#include <cstring>

#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/lines.h"
#include "taper/kernels/portable/portable.h"
#include "taper/kernels/shapes/indexing.h"

namespace taper::portable {
namespace {

template <class I>
Error check(Context& context, View<const I> index, index_t extent) {
  const I* at = index.data();
  for (index_t i = 0; i < index.numel(); ++i)
    if (at[i] < 0 || at[i] >= extent)
      return context.fail(Error::invalid_argument, TAPER_TEXT("index {} is outside [0, {})"), at[i],
                          extent);
  return Error::ok;
}

int normalized(int64_t dim, int rank) {
  return static_cast<int>(dim < 0 ? dim + (rank > 0 ? rank : 1) : dim);
}
index_t extent_along(const Shape& s, int dim) { return s.rank == 0 ? 1 : s.sizes[dim]; }

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

Along along(const Shape& target, int dim, const Shape& index, const Shape& source) {
  Along a;
  a.rank = index.rank > 0 ? index.rank : 1, a.dim = dim;
  for (int i = 0; i < a.rank; ++i) {
    a.sizes[i] = index.rank > 0 ? index.sizes[i] : 1;
    a.target_strides[i] = i < target.rank ? target.strides[i] : 1;
    a.source_strides[i] = i < source.rank ? source.strides[i] : 1;
  }
  return a;
}

template <class E, class I>
Error gather(Context& context, View<const E> self, int64_t dim, View<const I> index, bool,
             View<E> out) {
  if (index.numel() == 0) return Error::ok;
  const int d = normalized(dim, self.rank());
  TAPER_TRY(check(context, index, extent_along(self.shape(), d)));
  const Along a = along(self.shape(), d, index.shape(), index.shape());
  const index_t width = a.sizes[a.rank - 1], step = a.target_step(), stride = a.target_strides[d];
  const index_t rows = pieces(4096, width);  // a task
  parallel_for(context.threads, pieces(a.rows(), rows), [&](index_t task) {
    for (index_t row = task * rows; row < a.rows() && row < (task + 1) * rows; ++row) {
      index_t from, at;
      a.begin(row, from, at);
      for (index_t i = 0; i < width; ++i)
        out.data()[at + i] = self.data()[from + i * step + index.data()[at + i] * stride];
    }
  });
  return Error::ok;
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

/// Calls write(element of out, element of src's offset) for each index, in row-major order.
template <class E, class I, class Write>
Error scatter(Context& context, View<const E> self, int64_t dim, View<const I> index,
              const Shape& source, View<E> out, const Write& write) {
  const int d = normalized(dim, self.rank());
  if (index.numel() > 0) TAPER_TRY(check(context, index, extent_along(self.shape(), d)));
  copy_unless_in_place(self, out);
  if (index.numel() == 0) return Error::ok;
  const Along a = along(self.shape(), d, index.shape(), source);
  const index_t width = a.sizes[a.rank - 1], step = a.target_step(), stride = a.target_strides[d],
                source_step = a.source_strides[a.rank - 1];
  const I* at = index.data();
  for (index_t row = 0; row < a.rows(); ++row, at += width) {
    index_t to, from;
    a.begin(row, to, from);
    for (index_t i = 0; i < width; ++i)
      write(out.data()[to + i * step + at[i] * stride], from + i * source_step);
  }
  return Error::ok;
}

template <class E, class I>
Error prepare_source(Context&, InPlace&, View<const E>, int64_t, View<const I>, View<const E>,
                     View<E>) {
  return Error::ok;
}
template <class E, class I>
Error scatter_src(Context& context, const InPlace&, View<const E> self, int64_t dim,
                  View<const I> index, View<const E> src, View<E> out) {
  return scatter(context, self, dim, index, src.shape(), out,
                 [&](E& to, index_t from) { to = src.data()[from]; });
}
template <class T, class I>
Error scatter_add(Context& context, const InPlace&, View<const T> self, int64_t dim,
                  View<const I> index, View<const T> src, View<T> out) {
  return scatter(context, self, dim, index, src.shape(), out,
                 [&](T& to, index_t from) { to = wrapping_add(to, src.data()[from]); });
}

template <class T, class I>
Error prepare_value(Context&, InPlace&, View<const T>, int64_t, View<const I>, Scalar, View<T>) {
  return Error::ok;
}
template <class T, class I>
Error scatter_value(Context& context, const InPlace&, View<const T> self, int64_t dim,
                    View<const I> index, Scalar value, View<T> out) {
  return scatter(context, self, dim, index, index.shape(), out,
                 [v = value.to<T>()](T& to, index_t) { to = v; });
}

template <class E, class I>
Error index_select(Context& context, View<const E> self, int64_t dim, View<const I> index,
                   View<E> out) {
  const Lines lines = lines_along(self.shape(), dim);
  TAPER_TRY(check(context, index, lines.extent));
  const index_t count = index.numel(), inner = lines.inner;
  if (out.numel() == 0) return Error::ok;
  const index_t rows = pieces(4096, inner);  // a task
  parallel_for(context.threads, pieces(lines.outer * count, rows), [&](index_t task) {
    for (index_t row = task * rows; row < lines.outer * count && row < (task + 1) * rows; ++row)
      std::memcpy(out.data() + row * inner,
                  self.data() + (row / count * lines.extent + index.data()[row % count]) * inner,
                  static_cast<size_t>(inner) * sizeof(E));
  });
  return Error::ok;
}

template <class T, class I>
Error prepare_add(Context&, InPlace&, View<const T>, int64_t, View<const I>, View<const T>, Scalar,
                  View<T>) {
  return Error::ok;
}
template <class T, class I>
Error index_add(Context& context, const InPlace&, View<const T> self, int64_t dim,
                View<const I> index, View<const T> source, Scalar alpha_, View<T> out) {
  const Lines lines = lines_along(self.shape(), dim);
  TAPER_TRY(check(context, index, lines.extent));
  copy_unless_in_place(self, out);
  const T alpha = alpha_.to<T>();
  const index_t count = index.numel();
  parallel_for(context.threads, lines.outer, [&](index_t o) {
    for (index_t k = 0; k < count; ++k) {
      T* to = out.data() + (o * lines.extent + index.data()[k]) * lines.inner;
      const T* from = source.data() + (o * count + k) * lines.inner;
      for_each_element(lines.inner, [=](index_t i) {
        to[i] = wrapping_add(to[i], wrapping_mul(alpha, from[i]));
      });
    }
  });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(gather, b1, gather<Bytes<1>, int64_t>)
TAPER_KERNEL(gather, b2, gather<Bytes<2>, int64_t>)
TAPER_KERNEL(gather, b4, gather<Bytes<4>, int64_t>)
TAPER_KERNEL(gather, b8, gather<Bytes<8>, int64_t>)
TAPER_KERNEL(index_select, b1, index_select<Bytes<1>, int64_t>)
TAPER_KERNEL(index_select, b2, index_select<Bytes<2>, int64_t>)
TAPER_KERNEL(index_select, b4, index_select<Bytes<4>, int64_t>)
TAPER_KERNEL(index_select, b8, index_select<Bytes<8>, int64_t>)
TAPER_KERNEL(index_select, b1_i32, index_select<Bytes<1>, int32_t>)
TAPER_KERNEL(index_select, b2_i32, index_select<Bytes<2>, int32_t>)
TAPER_KERNEL(index_select, b4_i32, index_select<Bytes<4>, int32_t>)
TAPER_KERNEL(index_select, b8_i32, index_select<Bytes<8>, int32_t>)
TAPER_KERNEL(scatter_src, b1, prepare_source<Bytes<1>, int64_t>, scatter_src<Bytes<1>, int64_t>)
TAPER_KERNEL(scatter_src, b2, prepare_source<Bytes<2>, int64_t>, scatter_src<Bytes<2>, int64_t>)
TAPER_KERNEL(scatter_src, b4, prepare_source<Bytes<4>, int64_t>, scatter_src<Bytes<4>, int64_t>)
TAPER_KERNEL(scatter_src, b8, prepare_source<Bytes<8>, int64_t>, scatter_src<Bytes<8>, int64_t>)
TAPER_KERNEL(scatter_value, f32, prepare_value<float, int64_t>, scatter_value<float, int64_t>)
TAPER_KERNEL(scatter_value, f64, prepare_value<double, int64_t>, scatter_value<double, int64_t>)
TAPER_KERNEL(scatter_value, i64, prepare_value<int64_t, int64_t>, scatter_value<int64_t, int64_t>)
TAPER_KERNEL(scatter_value, i32, prepare_value<int32_t, int64_t>, scatter_value<int32_t, int64_t>)
TAPER_KERNEL(scatter_value, u8, prepare_value<uint8_t, int64_t>, scatter_value<uint8_t, int64_t>)
TAPER_KERNEL(scatter_value, boolean, prepare_value<bool, int64_t>, scatter_value<bool, int64_t>)
TAPER_KERNEL(scatter_add, f32, prepare_source<float, int64_t>, scatter_add<float, int64_t>)
TAPER_KERNEL(scatter_add, f64, prepare_source<double, int64_t>, scatter_add<double, int64_t>)
TAPER_KERNEL(scatter_add, i64, prepare_source<int64_t, int64_t>, scatter_add<int64_t, int64_t>)
TAPER_KERNEL(scatter_add, i32, prepare_source<int32_t, int64_t>, scatter_add<int32_t, int64_t>)
TAPER_KERNEL(scatter_add, u8, prepare_source<uint8_t, int64_t>, scatter_add<uint8_t, int64_t>)
TAPER_KERNEL(index_add, f32, prepare_add<float, int64_t>, index_add<float, int64_t>)
TAPER_KERNEL(index_add, f64, prepare_add<double, int64_t>, index_add<double, int64_t>)
TAPER_KERNEL(index_add, i64, prepare_add<int64_t, int64_t>, index_add<int64_t, int64_t>)
TAPER_KERNEL(index_add, i32, prepare_add<int32_t, int64_t>, index_add<int32_t, int64_t>)

}  // namespace taper::portable
