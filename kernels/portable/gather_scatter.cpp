// Elements read and written at a tensor of indices along one dimension: gather, index_select,
// scatter, scatter_add, index_add, index_copy, index_fill. Writes happen in the row-major order of
// the index. So the last of several writes to one place wins, and sums are the same each time.
#include <algorithm>
#include <cstring>

#include "taper/kernels/portable/index_walk.h"
#include "taper/kernels/portable/records.h"
#include "taper/kernels/portable/rows.h"
#include "taper/kernels/shapes/indexing.h"

namespace taper::portable {
namespace {

/// Copies elements of x to y. The processor cannot predict the order of the indices. So if a line
/// of x fits into the first-level cache and most of it is read, the line is prefetched from one end
/// to the other.
template <class E>
struct Pick : WalkBody {
  E* y;
  const E* x;
  index_t fetched;  ///< elements of a line that are prefetched
  Pick(E* y, const E* x, index_t fetched) : y(y), x(x), fetched(fetched) {}
  void line(index_t from) const {
    constexpr index_t cache_line = 64 / static_cast<index_t>(sizeof(E));
    for (index_t i = 0; i < fetched; i += cache_line) __builtin_prefetch(x + from + i);
  }
  void operator()(index_t from, index_t to) const { y[to] = x[from]; }
  void slice(index_t from, index_t to, index_t n) const {
    std::memcpy(y + to, x + from, static_cast<size_t>(n) * sizeof(E));
  }
};

template <class E>
Error prepare_gather(Context&, Along& plan, View<const E> self, int64_t dim,
                     View<const int64_t> index, bool, View<E>) {
  plan = along(self.shape(), dim, index.shape(), index.shape());
  return Error::ok;
}
template <class E>
Error gather(Context& context, const Along& a, View<const E> self, int64_t,
             View<const int64_t> index, bool, View<E> out) {
  if (index.numel() == 0) return Error::ok;
  constexpr index_t near_bytes = 16 * 1024;  // fits into the first-level cache
  const bool reads_most = a.step.target == 1 && 4 * a.length >= a.extent &&
                          a.extent * static_cast<index_t>(sizeof(E)) <= near_bytes;
  const Pick<E> pick(out.data(), self.data(), reads_most ? a.extent : 0);
  if (for_each_index_in_any_order(context.threads, a, index.data(), pick)) return Error::ok;
  return check_indices(context, index, a.extent);
}

template <class E, class I>
Error prepare_select(Context&, Along& plan, View<const E> self, int64_t dim, View<const I>,
                     View<E> out) {
  plan = along_slices(self.shape(), dim, out.shape());
  return Error::ok;
}
template <class E, class I>
Error index_select(Context& context, const Along& a, View<const E> self, int64_t,
                   View<const I> index, View<E> out) {
  TAPER_TRY(check_indices(context, index, a.extent));
  for_each_index_in_any_order(context.threads, a, index.data(),
                              Pick<E>(out.data(), self.data(), 0));
  return Error::ok;
}

template <class E>
Error prepare_source(Context&, AlongInPlace& plan, View<const E> self, int64_t dim,
                     View<const int64_t> index, View<const E> src, View<E>) {
  plan = {along(self.shape(), dim, index.shape(), src.shape())};
  return Error::ok;
}
template <class E>
Error scatter_src(Context& context, const AlongInPlace& a, View<const E> self, int64_t,
                  View<const int64_t> index, View<const E> src, View<E> out) {
  return write_along(context, a, self, index, out, Move<E>(out.data(), src.data()));
}
template <class T>
Error scatter_add(Context& context, const AlongInPlace& a, View<const T> self, int64_t,
                  View<const int64_t> index, View<const T> src, View<T> out) {
  T* const y = out.data();
  const T* const x = src.data();
  return write_along(context, a, self, index, out,
                     Each([=](index_t to, index_t from) { y[to] = wrapping_add(y[to], x[from]); }));
}

/// A Scalar as an element of `dtype`.
template <class E>
E element_for(Scalar value, DType dtype) {
  const Element element = element_of(value, dtype);
  E result;
  std::memcpy(&result, element.bytes, sizeof(E));
  return result;
}

template <class E>
Error prepare_value(Context&, AlongInPlace& plan, View<const E> self, int64_t dim,
                    View<const int64_t> index, Scalar, View<E>) {
  plan = {along(self.shape(), dim, index.shape(), index.shape())};
  return Error::ok;
}
template <class E>
Error scatter_value(Context& context, const AlongInPlace& a, View<const E> self, int64_t,
                    View<const int64_t> index, Scalar value, View<E> out) {
  return write_along(context, a, self, index, out,
                     Each([y = out.data(), v = element_for<E>(value, out.dtype())](
                              index_t to, index_t) { y[to] = v; }));
}

template <class T>
Error prepare_add(Context&, AlongInPlace& plan, View<const T> self, int64_t dim,
                  View<const int64_t>, View<const T> source, Scalar, View<T>) {
  plan = {along_slices(self.shape(), dim, source.shape())};
  return Error::ok;
}
template <class T>
Error index_add(Context& context, const AlongInPlace& a, View<const T> self, int64_t,
                View<const int64_t> index, View<const T> source, Scalar alpha_, View<T> out) {
  T* const y = out.data();
  const T* const x = source.data();
  const T alpha = alpha_.to<T>();
  return write_along(context, a, self, index, out, Each([=](index_t to, index_t from) {
                       y[to] = wrapping_add(y[to], wrapping_mul(alpha, x[from]));
                     }));
}

template <class E>
Error prepare_copy(Context&, AlongInPlace& plan, View<const E> self, int64_t dim,
                   View<const int64_t>, View<const E> source, View<E>) {
  plan = {along_slices(self.shape(), dim, source.shape())};
  return Error::ok;
}
template <class E>
Error index_copy(Context& context, const AlongInPlace& a, View<const E> self, int64_t,
                 View<const int64_t> index, View<const E> source, View<E> out) {
  return write_along(context, a, self, index, out, Move<E>(out.data(), source.data()));
}

struct FilledLines : Lines {
  static constexpr uint32_t overwrites = 1;
};
template <class E>
Error prepare_fill(Context&, FilledLines& plan, View<const E> self, int64_t dim,
                   View<const int64_t>, Scalar, View<E>) {
  plan = {lines_along(self.shape(), dim)};
  return Error::ok;
}
/// Negative indices count from the end, as in PyTorch.
template <class E>
Error index_fill(Context& context, const FilledLines& lines, View<const E> self, int64_t,
                 View<const int64_t> index, Scalar value, View<E> out) {
  const index_t extent = lines.extent, inner = lines.inner, count = index.numel();
  TAPER_TRY(check_indices(context, index, extent, -extent));
  copy_unless_in_place(context.threads, self, out);
  const E element = element_for<E>(value, out.dtype());
  const int64_t* at = index.data();
  E* const y = out.data();
  const auto fill = [=](index_t o, index_t left, index_t right) {
    for (index_t k = 0; k < count; ++k) {
      E* line = y + (o * extent + (at[k] < 0 ? at[k] + extent : at[k])) * inner;
      std::fill(line + left, line + right, element);
    }
  };
  parallel_columns(context.threads, lines.outer, count, inner, fill);
  return Error::ok;
}

}  // namespace

#define TAPER_INDEX_SELECT_I32(variant, T, op) \
  TAPER_KERNEL(op, variant##_i32, prepare_select<T, int32_t>, index_select<T, int32_t>)
#define TAPER_INDEX_SELECT(variant, T, op) \
  TAPER_KERNEL(op, variant, prepare_select<T, int64_t>, index_select<T, int64_t>)
TAPER_BY_SIZE(gather, prepare_gather, gather)
TAPER_SIZES(TAPER_INDEX_SELECT, index_select)
TAPER_SIZES(TAPER_INDEX_SELECT_I32, index_select)
TAPER_BY_SIZE(scatter_src, prepare_source, scatter_src)
TAPER_BY_SIZE(scatter_value, prepare_value, scatter_value)
TAPER_BY_SIZE(index_copy, prepare_copy, index_copy)
TAPER_BY_SIZE(index_fill_int_Scalar, prepare_fill, index_fill)
TAPER_BY_DTYPE(scatter_add, prepare_source, scatter_add)
TAPER_BY_DTYPE(index_add, prepare_add, index_add)

}  // namespace taper::portable
