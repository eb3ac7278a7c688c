// The matrix product that mm, linear and their relatives, and recurrent layers, are built on.
//
// Every element is one dot product over k: eight interleaved partial sums, joined by a fixed tree
// (lanes.h). Two loops compute it with the same bits. One runs along k, if both operands are dense
// along it (linear). The other runs along the result's columns (mm). So a row depends neither on
// the other rows nor on how the operands lie in memory. Nothing is packed and no scratch is used:
// this version is for small machines, and the optimized one is compared with it.
#pragma once
#include <cstring>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/small_floats.h"

namespace taper::portable {

/// A matrix in memory. Strides are in elements; a stride of 0 repeats.
template <class T>
struct Matrix {
  T* data;
  index_t row, column;
  T* at(index_t i, index_t j) const { return data + i * row + j * column; }
};

template <class E>
inline constexpr bool is_small_float = std::is_same_v<E, Half> || std::is_same_v<E, BFloat16>;

/// Converts an element to the type of the arithmetic, and back.
template <class T, class E>
T widened(E x) {
  if constexpr (is_small_float<E>)
    return to_float(x);
  else
    return static_cast<T>(x);
}
template <class E, class T>
E narrowed(T x) {
  if constexpr (is_small_float<E>)
    return to_small<E>(x);
  else
    return static_cast<E>(x);
}

/// out = alpha (a b) + beta addend, for (m, k) (k, n) -> (m, n). A factor of 1 is left out. The
/// operands and the result may be narrower than the type of the arithmetic.
template <class T, class A = T, class B = A, class C = T>
struct Product {
  using Sum = T;
  index_t m, n, k;
  Matrix<const A> a;
  Matrix<const B> b;
  Matrix<const C> addend;  ///< absent if addend.data is nullptr
  Matrix<C> out;
  T alpha = 1, beta = 1;
  index_t b_panel = 0;  ///< the distance between panels of b (Layout); 0: b has its strides

  void store(index_t i, index_t j, T sum) const {
    if (alpha != 1) sum *= alpha;
    if (addend.data != nullptr) {
      const T x = widened<T>(*addend.at(i, j));
      sum += beta == 1 ? x : beta * x;
    }
    *out.at(i, j) = narrowed<C>(sum);
  }
};

/// Computes `rows` x `columns` dot products of vectors that are dense along k.
template <int rows, int columns, class T, class A, class B, class C>
void dense_along_k(const Product<T, A, B, C>& p, index_t i, index_t j) {
  T lane[rows][columns][lane_count] = {};
  const A* a[rows];
  const B* b[columns];
  for (int r = 0; r < rows; ++r) a[r] = p.a.at(i + r, 0);
  for (int c = 0; c < columns; ++c) b[c] = p.b.at(0, j + c);
  index_t k = 0;
  for (; k + lane_count <= p.k; k += lane_count)
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c)
        for (int l = 0; l < lane_count; ++l)
          lane[r][c][l] += widened<T>(a[r][k + l]) * widened<T>(b[c][k + l]);
  for (int l = 0; k < p.k; ++k, ++l)
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c) lane[r][c][l] += widened<T>(a[r][k]) * widened<T>(b[c][k]);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) p.store(i + r, j + c, join_lanes(lane[r][c]));
}

inline constexpr int strip = 16;  // columns that are summed side by side

/// Computes `rows` x `width` dot products for operands of any strides; `width` is at most `strip`.
/// Only one of the eight partial sums is computed at a time, so that a strip of it stays in
/// registers.
template <int rows, bool full, bool dense_columns, class T, class A, class B, class C>
void along_columns(const Product<T, A, B, C>& p, index_t i, index_t j, int width) {
  if (full) width = strip;
  const index_t step = dense_columns ? 1 : p.b.column;
  T lane[lane_count][rows][strip];
  for (int l = 0; l < lane_count; ++l) {
    T sum[rows][strip] = {};
    for (index_t k = l; k < p.k; k += lane_count) {
      const B* b = p.b.at(k, j);
      for (int r = 0; r < rows; ++r) {
        const T a = widened<T>(*p.a.at(i + r, k));
        for (int c = 0; c < width; ++c) sum[r][c] += a * widened<T>(b[c * step]);
      }
    }
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < strip; ++c) lane[l][r][c] = sum[r][c];
  }
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < width; ++c) {
      const T column[lane_count] = {lane[0][r][c], lane[1][r][c], lane[2][r][c], lane[3][r][c],
                                    lane[4][r][c], lane[5][r][c], lane[6][r][c], lane[7][r][c]};
      p.store(i + r, j + c, join_lanes(column));
    }
}

/// The same for processors with enough registers for all partial sums of some rows. Rows of b at a
/// large stride would evict each other from the cache. So b is read once, into a strip of its own.
template <class P>
struct WideStrip {
  using T = typename P::Sum;
  static_assert(std::is_same_v<P, Product<T>>);
  static constexpr int width = 64 / sizeof(T), most_depth = 128, most_rows = 64;

  typedef T Row __attribute__((vector_size(64)));

  const P& p;
  const index_t i, j, rows, columns;
  Row b[most_depth];
  Row sums[most_rows][lane_count];

  WideStrip(const P& p, index_t i, index_t i_end, index_t j, index_t j_end)
      : p(p),
        i(i),
        j(j),
        rows(i_end - i < most_rows ? i_end - i : most_rows),
        columns(j_end - j < width ? j_end - j : width) {}

  /// Copies rows [k, k + depth) of b.
  void copy(index_t k, index_t depth) {
    for (index_t d = 0; d < depth; ++d) {
      const T* from = p.b.at(k + d, j);
      if (p.b.column == 1 && columns == width) {
        std::memcpy(&b[d], from, sizeof(Row));
      } else {
        b[d] = Row{};
        for (index_t c = 0; c < columns; ++c) b[d][c] = from[c * p.b.column];
      }
    }
  }
  /// Adds the part of those rows to the sums of `count` rows from i + r on.
  template <int count>
  void add(index_t r, index_t k, index_t depth) {
    Row sum[count][lane_count];
    TAPER_UNROLLED
    for (int q = 0; q < count; ++q) TAPER_UNROLLED
    for (int l = 0; l < lane_count; ++l) sum[q][l] = k == 0 ? Row{} : sums[r + q][l];
    index_t at = 0;
    for (; at + lane_count <= depth; at += lane_count) {
      TAPER_UNROLLED
      for (int l = 0; l < lane_count; ++l) TAPER_UNROLLED
      for (int q = 0; q < count; ++q) sum[q][l] += *p.a.at(i + r + q, k + at + l) * b[at + l];
    }
    TAPER_UNROLLED
    for (int q = 0; q < count; ++q) TAPER_UNROLLED
    for (int l = 0; l < lane_count; ++l) sums[r + q][l] = sum[q][l];
    for (int l = 0; at < depth; ++at, ++l)
      for (int q = 0; q < count; ++q) sums[r + q][l] += *p.a.at(i + r + q, k + at) * b[at];
  }
  void store(index_t row, const Row& total) const {
    if (columns == width && p.out.column == 1 && p.alpha == 1 && p.beta == 1 &&
        (p.addend.data == nullptr || p.addend.column == 1)) {
      Row y = total, addend;
      if (p.addend.data != nullptr) {
        std::memcpy(&addend, p.addend.at(row, j), sizeof addend);
        y += addend;
      }
      std::memcpy(p.out.at(row, j), &y, sizeof y);
    } else {
      for (index_t c = 0; c < columns; ++c) p.store(row, j + c, total[c]);
    }
  }
  void run() {
    for (index_t k = 0; k == 0 || k < p.k; k += most_depth) {
      const index_t depth = p.k - k < most_depth ? p.k - k : most_depth;
      copy(k, depth);
      index_t r = 0;
      for (; r + 2 <= rows; r += 2) add<2>(r, k, depth);
      if (r < rows) add<1>(r, k, depth);
    }
    for (index_t r = 0; r < rows; ++r) {
      const Row* s = sums[r];  // in the order of join_lanes
      const Row total = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
      store(i + r, total);
    }
  }
};

/// Prepares a product whose second operand is a constant in panels: b(k, j) lies as `Layout` says.
template <class P>
void read_panels(P& p) {
  p.b_panel = panel_width * p.k;
  p.b.row = panel_width, p.b.column = 1;  // strides within a panel
}

/// Computes rows [i, i_end) of columns [j, j_end). `wide`: the code is compiled for wide vectors.
template <bool wide, class P>
void block(const P& p, index_t i, index_t i_end, index_t j, index_t j_end) {
  if (p.b_panel != 0) {  // a panel begins at j
    for (; j < j_end; j += panel_width) {
      P panel = p;
      panel.b_panel = 0, panel.b.data += j / panel_width * p.b_panel;
      panel.out.data += j * p.out.column;
      if (p.addend.data != nullptr) panel.addend.data += j * p.addend.column;
      block<wide>(panel, i, i_end, 0, j_end - j < panel_width ? j_end - j : panel_width);
    }
    return;
  }
  if (p.a.column == 1 && p.b.row == 1) {
    for (; i + 2 <= i_end; i += 2) {
      index_t c = j;
      for (; c + 2 <= j_end; c += 2) dense_along_k<2, 2>(p, i, c);
      if (c < j_end) dense_along_k<2, 1>(p, i, c);
    }
    if (i < i_end) {
      index_t c = j;
      for (; c + 4 <= j_end; c += 4) dense_along_k<1, 4>(p, i, c);
      for (; c < j_end; ++c) dense_along_k<1, 1>(p, i, c);
    }
    return;
  }
  if constexpr (wide) {
    using Strip = WideStrip<P>;
    for (index_t r = i; r < i_end; r += Strip::most_rows)
      for (index_t c = j; c < j_end; c += Strip::width) Strip(p, r, i_end, c, j_end).run();
    return;
  }
  const bool dense = p.b.column == 1;
  for (index_t c = j; c < j_end; c += strip) {
    const int width = static_cast<int>(j_end - c < strip ? j_end - c : strip);
    const auto rows = [&](auto full, auto dense_columns) {
      index_t r = i;
      for (; r + 2 <= i_end; r += 2)
        along_columns<2, full.value, dense_columns.value>(p, r, c, width);
      if (r < i_end) along_columns<1, full.value, dense_columns.value>(p, r, c, width);
    };
    if (!dense)
      rows(std::false_type{}, std::false_type{});
    else if (width == strip)
      rows(std::true_type{}, std::true_type{});
    else
      rows(std::false_type{}, std::true_type{});
  }
}

/// Computes `batch` products. next(p, i) moves p from the first product to number i. `Loops`: see
/// elements.h.
template <class Loops = PlainLoops, class P, class Next>
void multiply(const Context& context, index_t batch, const P& product, const Next& next) {
  constexpr bool wide = !std::is_same_v<Loops, PlainLoops>;
  constexpr index_t rows = wide ? 64 : 32, columns = 64;
  const index_t down = pieces(product.m, rows), across = pieces(product.n, columns);
  parallel_for(context.threads, batch * down * across, [&](index_t task) {
    P p = product;
    next(p, task / (down * across));
    const index_t i = task / across % down * rows, j = task % across * columns;
    Loops::template call<block<wide, P>>(p, i, i + rows < p.m ? i + rows : p.m, j,
                                         j + columns < p.n ? j + columns : p.n);
  });
}

/// One product.
template <class Loops = PlainLoops, class P>
void multiply(const Context& context, const P& product) {
  multiply<Loops>(context, 1, product, [](P&, index_t) {});
}

}  // namespace taper::portable
