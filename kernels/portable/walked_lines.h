// Lines of a tensor with any strides, read block by block in the type in which a kernel computes.
// Running sums, and the positions of maxima and minima, share this. Lines that lie side by side
// form strips, which are read row by row. So elements that are neighbours in memory are read
// together, in one vector.
#pragma once
#include <limits>

#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/lines.h"
#include "taper/kernels/portable/walk.h"

namespace taper::portable {

/// Lines in a strip, and elements of a line in a block.
inline constexpr index_t strip_width = 64;

/// The walk visits the elements in the order in which a dense tensor holds the lines.
struct WalkedLines {
  Lines lines;
  Walk walk;

  static WalkedLines along(const Shape& shape, int64_t dim) {
    return {lines_along(shape, dim), Walk::of(shape)};
  }
  /// All elements as one line.
  static WalkedLines whole(const Shape& shape) { return {{1, shape.numel(), 1}, Walk::of(shape)}; }

  index_t across() const { return pieces(lines.inner, strip_width); }
  index_t strips() const { return lines.outer * across(); }
};

/// Strip number `number`: the number of its first line, the place of that line's first element, and
/// how many lines it has.
struct Strip {
  index_t line, first, width;
  Strip(const WalkedLines& plan, index_t number) {
    const auto [outer, extent, inner] = plan.lines;
    const index_t o = number / plan.across(), at = number % plan.across() * strip_width;
    line = o * inner + at, first = o * extent * inner + at;
    width = inner - at < strip_width ? inner - at : strip_width;
  }
};

/// Reads blocks of at most strip_width elements. If possible, it reads them where they lie.
template <class T>
class BlockReader {
 public:
  explicit BlockReader(const Source& source)
      : source_(source),
        dense_(source.is_direct() ? static_cast<const T*>(source.data) : nullptr) {}
  const T* read(index_t first, index_t n) {
    if (dense_ != nullptr) return dense_ + first;
    return static_cast<const T*>(read_block(source_, first, n, buffer_));
  }

 private:
  const Source& source_;
  const T* dense_;
  T buffer_[strip_width];
};

/// Writes blocks to a dense tensor, which may have another type. A block is computed at `place`;
/// then `store` writes it.
template <class T>
class BlockWriter {
 public:
  BlockWriter(const TensorRef& out, DType computes, Store store)
      : data_(static_cast<char*>(out.data)),
        bytes_(size_bytes(out.dtype)),
        store_(out.dtype == computes ? nullptr : store) {}
  T* place(index_t first) {
    return store_ == nullptr ? reinterpret_cast<T*>(data_) + first : buffer_;
  }
  void store(index_t first, index_t n) {
    if (store_ != nullptr) store_(buffer_, n, data_ + first * bytes_);
  }

 private:
  char* data_;
  index_t bytes_;
  Store store_;
  T buffer_[strip_width];
};

/// The order of maxima and minima: `before(a, b)` says whether a comes strictly before b. NaN comes
/// before everything else. No value comes after `last`.
template <class T>
struct Greater {
  static constexpr T last = std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity()
                                                        : std::numeric_limits<T>::lowest();
  static bool before(T a, T b) { return (a > b) | ((a != a) & (b == b)); }
};
template <class T>
struct Less {
  static constexpr T last = std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity()
                                                        : std::numeric_limits<T>::max();
  static bool before(T a, T b) { return (a < b) | ((a != a) & (b == b)); }
};

}  // namespace taper::portable

/// The record of a kernel that is a struct.
#define TAPER_LINES(op, variant, ...) \
  TAPER_KERNEL(op, variant, __VA_ARGS__::prepare, __VA_ARGS__::run)
/// Records over all numeric dtypes, with the order of an extreme or the operation of a scan.
#define TAPER_LINES_NUMERIC(op, Kernel, F)            \
  TAPER_LINES(op, f32, Kernel<F, float>)              \
  TAPER_LINES(op, f64, Kernel<F, double>)             \
  TAPER_LINES(op, small_float, Kernel<F, SmallFloat>) \
  TAPER_LINES(op, i64, Kernel<F, int64_t>)            \
  TAPER_LINES(op, small_integer, Kernel<F, SmallInteger>)
