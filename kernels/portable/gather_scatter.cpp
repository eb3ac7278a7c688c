// Elements picked and written by a tensor of indices along one dimension: gather, index_select,
// scatter, scatter_add, index_add, index_copy, index_fill. Writes happen in the row-major order of
// the index, so the last of several to one place wins, and sums are the same each time.
#include <atomic>
#include <cstring>

#include "taper/kernels/portable/index_walk.h"
#include "taper/kernels/portable/lines.h"
#include "taper/kernels/portable/records.h"
#include "taper/kernels/portable/rows.h"
#include "taper/kernels/shapes/indexing.h"

namespace taper::portable {
namespace {

/// Elements that will be read in an order that the processor cannot foresee.
template <class E>
void prefetch(const E* x, index_t count) {
  constexpr index_t line = 64 / static_cast<index_t>(sizeof(E));
  for (index_t i = 0; i < count; i += line) __builtin_prefetch(x + i);
}

template <class E>
Error gather(Context& context, View<const E> self, int64_t dim, View<const int64_t> index, bool,
             View<E> out) {
  if (index.numel() == 0) return Error::ok;
  const int d = normalized(dim, self.rank());
  const index_t extent = extent_along(self.shape(), d);
  const Along a = along(self.shape(), d, index.shape(), index.shape());
  const index_t width = a.sizes[a.rank - 1], step = a.target_step(), stride = a.target_strides[d];
  constexpr index_t near_bytes = 16 * 1024;  // stay in the first-level cache
  const bool reads_most =
      4 * width >= extent && extent * static_cast<index_t>(sizeof(E)) <= near_bytes;
  std::atomic<bool> outside{false};
  parallel_lines(context.threads, a.rows(), width, [&](index_t row) {
    index_t from, at;
    a.begin(row, from, at);
    const E* x = self.data() + from;
    const int64_t* picked = index.data() + at;
    E* y = out.data() + at;
    // row by row, so that the indices are read from memory once
    if (!are_inside(picked, width, extent)) return outside.store(true, std::memory_order_relaxed);
    if (step == 0 && stride == 1) {
      if (reads_most) prefetch(x, extent);
      for (index_t i = 0; i < width; ++i) y[i] = x[picked[i]];
    } else {
      for (index_t i = 0; i < width; ++i) y[i] = x[i * step + picked[i] * stride];
    }
  });
  return outside ? check_indices(context, index, extent) : Error::ok;
}

template <class E, class Write>
Error scatter(Context& context, View<const E> self, int64_t dim, View<const int64_t> index,
              const Shape& source, View<E> out, const Write& write) {
  const int d = normalized(dim, self.rank());
  if (index.numel() > 0) TAPER_TRY(check_indices(context, index, extent_along(self.shape(), d)));
  copy_unless_in_place(self, out);
  if (index.numel() > 0)
    for_each_target(along(self.shape(), d, index.shape(), source), index.data(), write);
  return Error::ok;
}

template <class E>
Error prepare_source(Context&, InPlace&, View<const E>, int64_t, View<const int64_t>, View<const E>,
                     View<E>) {
  return Error::ok;
}
template <class E>
Error scatter_src(Context& context, const InPlace&, View<const E> self, int64_t dim,
                  View<const int64_t> index, View<const E> src, View<E> out) {
  return scatter(context, self, dim, index, src.shape(), out,
                 [&](index_t to, index_t from) { out.data()[to] = src.data()[from]; });
}
template <class T>
Error scatter_add(Context& context, const InPlace&, View<const T> self, int64_t dim,
                  View<const int64_t> index, View<const T> src, View<T> out) {
  return scatter(context, self, dim, index, src.shape(), out, [&](index_t to, index_t from) {
    out.data()[to] = wrapping_add(out.data()[to], src.data()[from]);
  });
}

/// A Scalar as an element of the tensor's dtype.
template <class E>
E element_for(Scalar value, DType dtype) {
  const Element element = element_of(value, dtype);
  E result;
  std::memcpy(&result, element.bytes, sizeof(E));
  return result;
}

template <class E>
Error prepare_value(Context&, InPlace&, View<const E>, int64_t, View<const int64_t>, Scalar,
                    View<E>) {
  return Error::ok;
}
template <class E>
Error scatter_value(Context& context, const InPlace&, View<const E> self, int64_t dim,
                    View<const int64_t> index, Scalar value, View<E> out) {
  return scatter(
      context, self, dim, index, index.shape(), out,
      [&, v = element_for<E>(value, out.dtype())](index_t to, index_t) { out.data()[to] = v; });
}

template <class E, class I = int64_t>
Error index_select(Context& context, View<const E> self, int64_t dim, View<const I> index,
                   View<E> out) {
  const Lines lines = lines_along(self.shape(), dim);
  TAPER_TRY(check_indices(context, index, lines.extent));
  const index_t count = index.numel(), inner = lines.inner;
  if (out.numel() == 0) return Error::ok;
  parallel_lines(context.threads, lines.outer * count, inner, [&](index_t row) {
    std::memcpy(out.data() + row * inner,
                self.data() + (row / count * lines.extent + index.data()[row % count]) * inner,
                static_cast<size_t>(inner) * sizeof(E));
  });
  return Error::ok;
}

template <class T>
Error prepare_add(Context&, InPlace&, View<const T>, int64_t, View<const int64_t>, View<const T>,
                  Scalar, View<T>) {
  return Error::ok;
}
template <class T>
Error index_add(Context& context, const InPlace&, View<const T> self, int64_t dim,
                View<const int64_t> index, View<const T> source, Scalar alpha_, View<T> out) {
  const Lines lines = lines_along(self.shape(), dim);
  TAPER_TRY(check_indices(context, index, lines.extent));
  copy_unless_in_place(self, out);
  const T alpha = alpha_.to<T>();
  parallel_for(context.threads, lines.outer, [&](index_t o) {
    for_each_slice(lines, o, index.data(), index.numel(), [&](index_t to_, index_t from_) {
      T* to = out.data() + to_;
      const T* from = source.data() + from_;
      for_each_element(lines.inner, [=](index_t i) {
        to[i] = wrapping_add(to[i], wrapping_mul(alpha, from[i]));
      });
    });
  });
  return Error::ok;
}

template <class E>
Error prepare_copy(Context&, InPlace&, View<const E>, int64_t, View<const int64_t>, View<const E>,
                   View<E>) {
  return Error::ok;
}
template <class E>
Error index_copy(Context& context, const InPlace&, View<const E> self, int64_t dim,
                 View<const int64_t> index, View<const E> source, View<E> out) {
  const Lines lines = lines_along(self.shape(), dim);
  TAPER_TRY(check_indices(context, index, lines.extent));
  copy_unless_in_place(self, out);
  if (source.numel() == 0) return Error::ok;
  parallel_for(context.threads, lines.outer, [&](index_t o) {
    for_each_slice(lines, o, index.data(), index.numel(), [&](index_t to, index_t from) {
      std::memcpy(out.data() + to, source.data() + from,
                  static_cast<size_t>(lines.inner) * sizeof(E));
    });
  });
  return Error::ok;
}

/// Negative indices count from the end, as in PyTorch.
template <class E>
Error index_fill(Context& context, const InPlace&, View<const E> self, int64_t dim,
                 View<const int64_t> index, Scalar value, View<E> out) {
  const Lines lines = lines_along(self.shape(), dim);
  TAPER_TRY(check_indices(context, index, lines.extent, -lines.extent));
  copy_unless_in_place(self, out);
  const E element = element_for<E>(value, out.dtype());
  parallel_for(context.threads, lines.outer, [&](index_t o) {
    for_each_slice(lines, o, index.data(), index.numel(), [&](index_t to_, index_t) {
      const index_t wrapped = to_ < o * lines.extent * lines.inner ? lines.extent : 0;
      E* to = out.data() + to_ + wrapped * lines.inner;
      for (index_t i = 0; i < lines.inner; ++i) to[i] = element;
    });
  });
  return Error::ok;
}

}  // namespace

#define TAPER_INDEX_SELECT_I32(variant, T, op) TAPER_KERNEL(op, variant##_i32, op<T, int32_t>)
TAPER_BYTES(gather, gather)
TAPER_BYTES(index_select, index_select)
TAPER_SIZES(TAPER_INDEX_SELECT_I32, index_select)
TAPER_BY_SIZE(scatter_src, prepare_source, scatter_src)
TAPER_BY_SIZE(scatter_value, prepare_value, scatter_value)
TAPER_BY_SIZE(index_copy, prepare_copy, index_copy)
TAPER_BY_SIZE(index_fill_int_Scalar, prepare_value, index_fill)
TAPER_BY_DTYPE(scatter_add, prepare_source, scatter_add)
TAPER_BY_DTYPE(index_add, prepare_add, index_add)

}  // namespace taper::portable
