// Kernels that move elements: repeat, flip, roll, constant_pad_nd, tril, triu.
#include "taper/kernels/shapes/movement.h"

#include <cstring>

#include "taper/kernels/portable/lines.h"
#include "taper/kernels/portable/rows.h"

namespace taper::portable {
namespace {

index_t modulo(index_t a, index_t n) { return a % n < 0 ? a % n + n : a % n; }

template <class T>
Error repeat(Context& context, AnyView<const T> self, Span<const int64_t>, View<T> out) {
  if (out.numel() == 0) return Error::ok;
  Shape shape = out.shape(), in = self.shape();
  join_rows(in, shape, nullptr);
  const int last = shape.rank - 1, missing = shape.rank - in.rank;
  const index_t width = last < 0 ? 1 : shape.sizes[last],
                period = in.rank == 0 ? 1 : in.sizes[in.rank - 1];
  const index_t step = in.rank == 0 ? 0 : in.strides[in.rank - 1];
  for_each_row(context.threads, shape, [&](const index_t* at, index_t row) {
    const T* x = self.data();
    for (int d = missing; d < last; ++d)
      x += at[d] % in.sizes[d - missing] * in.strides[d - missing];
    T* y = out.data() + row * width;
    copy_run(x, step, period, y);
    for (index_t i = period; i < width; i += period)
      copy_run(y, 1, width - i < period ? width - i : period, y + i);
  });
  return Error::ok;
}

template <class T>
Error flip(Context& context, AnyView<const T> self, Span<const int64_t> dims, View<T> out) {
  const Shape& shape = out.shape();
  index_t strides[max_rank];
  const T* origin = self.data();
  for (int d = 0; d < shape.rank; ++d) strides[d] = self.stride(d);
  if (out.numel() == 0) return Error::ok;
  for (int64_t dim : dims) {
    if (shape.rank == 0) break;
    const int d = static_cast<int>(dim < 0 ? dim + shape.rank : dim);
    origin += (shape.sizes[d] - 1) * strides[d], strides[d] = -strides[d];
  }
  const int last = shape.rank - 1;
  const index_t width = last < 0 ? 1 : shape.sizes[last], step = last < 0 ? 0 : strides[last];
  for_each_row(context.threads, shape, [&](const index_t* at, index_t row) {
    const T* x = origin;
    for (int d = 0; d < last; ++d) x += at[d] * strides[d];
    T* y = out.data() + row * width;
    copy_run(x, step, width, y);
  });
  return Error::ok;
}

// Without dims, the tensor is rolled as one line.
template <class T>
Error roll(Context& context, AnyView<const T> self, Span<const int64_t> shifts,
           Span<const int64_t> dims, View<T> out) {
  Shape shape = out.shape(), in = self.shape();
  const index_t count = out.numel();
  if (count == 0) return Error::ok;
  if (dims.empty()) {
    const Walk walk = Walk::of(self.shape());
    const Source source(*self.ref, walk, self.dtype());
    const index_t shift = modulo(static_cast<index_t>(shifts[0] % count), count);
    // elements [first, end) of the result come from `from` on
    const auto copy = [&](index_t first, index_t end, index_t from) {
      T* const y = out.data() + first;
      const void* const x = read_block(source, from, end - first, y);
      if (x != y) std::memcpy(y, x, static_cast<size_t>(end - first) * sizeof(T));
    };
    parallel_ranges(context.threads, count, 1, [&](index_t first, index_t end) {
      if (first < shift) copy(first, end < shift ? end : shift, first - shift + count);
      if (end > shift) first = first < shift ? shift : first, copy(first, end, first - shift);
    });
    return Error::ok;
  }
  index_t shift[max_rank] = {};
  for (index_t k = 0; k < dims.size(); ++k) {
    if (shape.rank == 0) break;
    const int d = static_cast<int>(dims[k] < 0 ? dims[k] + shape.rank : dims[k]);
    shift[d] = modulo(shift[d] + static_cast<index_t>(shifts[k] % shape.sizes[d]), shape.sizes[d]);
  }
  join_rows(in, shape, shift);
  const int last = shape.rank - 1;
  const index_t width = last < 0 ? 1 : shape.sizes[last], step = last < 0 ? 0 : in.strides[last],
                turn = last < 0 ? 0 : shift[last];
  for_each_row(context.threads, shape, [&](const index_t* at, index_t row) {
    const T* x = self.data();
    for (int d = 0; d < last; ++d) x += modulo(at[d] - shift[d], shape.sizes[d]) * in.strides[d];
    T* y = out.data() + row * width;
    copy_run(x + (width - turn) * step, step, turn, y);
    copy_run(x, step, width - turn, y + turn);
  });
  return Error::ok;
}

/// Writes the same element n times. Mostly it is zero, and then memset is the fastest way.
template <class T>
void fill_run(T element, bool is_zero, index_t n, T* y) {
  if (is_zero && n >= 16)
    std::memset(y, 0, static_cast<size_t>(n) * sizeof(T));
  else
    for (index_t i = 0; i < n; ++i) y[i] = element;
}

template <class T>
Error constant_pad_nd(Context& context, AnyView<const T> self, Span<const int64_t> pad,
                      Scalar value, View<T> out) {
  Shape shape = out.shape(), in = self.shape();
  const Element element = element_of(value, out.dtype());
  T filler;
  std::memcpy(&filler, element.bytes, sizeof(T));
  const Element zero{};
  const bool is_zero = std::memcmp(&filler, zero.bytes, sizeof(T)) == 0;
  index_t before[max_rank] = {};
  for (index_t k = 0; k < pad.size() / 2; ++k)
    before[shape.rank - 1 - k] = static_cast<index_t>(pad[2 * k]);
  join_rows(in, shape, before);
  const int last = shape.rank - 1;
  const index_t width = last < 0 ? 1 : shape.sizes[last], step = last < 0 ? 0 : in.strides[last];
  const index_t from = last < 0 ? 0 : before[last], extent = last < 0 ? 1 : in.sizes[last];
  const index_t begin = from < 0 ? 0 : from < width ? from : width;
  const index_t end = from + extent < begin ? begin : from + extent < width ? from + extent : width;
  for_each_row(context.threads, shape, [&](const index_t* at, index_t row) {
    const T* x = self.data();
    bool inside = true;
    for (int d = 0; d < last; ++d) {
      const index_t i = at[d] - before[d];
      inside = inside && i >= 0 && i < in.sizes[d];
      if (inside) x += i * in.strides[d];
    }
    T* y = out.data() + row * width;
    const index_t first = inside ? begin : width, behind = inside ? end : width;
    fill_run(filler, is_zero, first, y);
    if (first < behind) copy_run(x + (first - from) * step, step, behind - first, y + first);
    fill_run(filler, is_zero, width - behind, y + behind);
  });
  return Error::ok;
}

// Keeps elements with column - row <= diagonal (lower) or >= diagonal (upper). All others become
// zero.
template <class T, bool lower>
Error triangle(Context& context, AnyView<const T> self, int64_t diagonal, View<T> out) {
  const Shape& shape = out.shape();
  const int last = shape.rank - 1;
  const index_t width = shape.sizes[last], step = self.stride(last), rows = shape.sizes[last - 1];
  // beyond these distances every row is all kept or all zero
  const int64_t shift = diagonal < -rows - 1 ? -rows - 1 : diagonal > width ? width : diagonal;
  for_each_row(context.threads, shape, [&](const index_t* at, index_t row) {
    const T* x = self.data();
    for (int d = 0; d < last; ++d) x += at[d] * self.stride(d);
    T* y = out.data() + row * width;
    const int64_t position = at[last - 1] + shift + (lower ? 1 : 0);
    const index_t edge = position < 0       ? 0
                         : position > width ? width
                                            : static_cast<index_t>(position);
    const index_t first = lower ? 0 : edge, count = lower ? edge : width - edge;
    copy_run(x + first * step, step, count, y + first);
    std::memset(y + (lower ? edge : 0), 0, static_cast<size_t>(width - count) * sizeof(T));
  });
  return Error::ok;
}
template <class T>
constexpr auto tril_of = &triangle<T, true>;
template <class T>
constexpr auto triu_of = &triangle<T, false>;

}  // namespace

TAPER_BYTES(repeat, repeat)
TAPER_BYTES(flip, flip)
TAPER_BYTES(roll, roll)
TAPER_BYTES(constant_pad_nd, constant_pad_nd)
TAPER_BYTES(tril, tril_of)
TAPER_BYTES(triu, triu_of)

}  // namespace taper::portable
