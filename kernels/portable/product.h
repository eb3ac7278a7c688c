// The matrix product below mm, linear and their relatives, and below recurrent layers.
//
// Every element is one dot product over k, in eight interleaved partial sums joined by a fixed tree
// (lanes.h). Two loops compute it, bit for bit alike: one runs along k where both operands are
// dense along it (linear), one runs along the result's columns (mm). So a row depends neither on
// the other rows nor on how the operands lie in memory. Nothing is packed and no scratch is used:
// this is the version for small machines and the reference of the optimized one.
#pragma once
#include <cstring>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/lanes.h"

namespace taper::portable {

/// A matrix in memory: strides in elements. 0 repeats.
template <class T>
struct Matrix {
  T* data;
  index_t row, column;
  T* at(index_t i, index_t j) const { return data + i * row + j * column; }
};

/// out = alpha (a b) + beta addend, each without its factor if that is 1; (m, k) (k, n) -> (m, n).
/// The operands may be narrower than what is computed.
template <class T, class A = T, class B = A>
struct Product {
  index_t m, n, k;
  Matrix<const A> a;
  Matrix<const B> b;
  Matrix<const T> addend;  ///< addend.data may be nullptr
  Matrix<T> out;
  T alpha = 1, beta = 1;

  void store(index_t i, index_t j, T sum) const {
    if (alpha != 1) sum *= alpha;
    if (addend.data != nullptr) sum += beta == 1 ? *addend.at(i, j) : beta * *addend.at(i, j);
    *out.at(i, j) = sum;
  }
};

/// `rows` x `columns` dot products of vectors that are dense along k.
template <int rows, int columns, class T, class A, class B>
void dense_along_k(const Product<T, A, B>& p, index_t i, index_t j) {
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
          lane[r][c][l] += static_cast<T>(a[r][k + l]) * static_cast<T>(b[c][k + l]);
  for (int l = 0; k < p.k; ++k, ++l)
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c)
        lane[r][c][l] += static_cast<T>(a[r][k]) * static_cast<T>(b[c][k]);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) p.store(i + r, j + c, join_lanes(lane[r][c]));
}

inline constexpr int strip = 16;  // columns that are summed side by side

/// `rows` x `width` dot products, `width` at most `strip`, for operands of any strides. One partial
/// sum at a time, so that a strip of it stays in registers.
template <int rows, bool full, bool dense_columns, class T, class A, class B>
void along_columns(const Product<T, A, B>& p, index_t i, index_t j, int width) {
  if (full) width = strip;
  const index_t step = dense_columns ? 1 : p.b.column;
  T lane[lane_count][rows][strip];
  for (int l = 0; l < lane_count; ++l) {
    T sum[rows][strip] = {};
    for (index_t k = l; k < p.k; k += lane_count) {
      const B* b = p.b.at(k, j);
      for (int r = 0; r < rows; ++r) {
        const T a = static_cast<T>(*p.a.at(i + r, k));
        for (int c = 0; c < width; ++c) sum[r][c] += a * static_cast<T>(b[c * step]);
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

/// The same for one row and a dense strip, all partial sums at a time: for processors that have
/// registers for them, which then read b once, row by row.
template <class T, class A, class B>
void along_columns_at_once(const Product<T, A, B>& p, index_t i, index_t j) {
  T sum[lane_count][strip] = {};
  index_t k = 0;
  for (; k + lane_count <= p.k; k += lane_count) {
    TAPER_UNROLLED
    for (int l = 0; l < lane_count; ++l) {
      const T a = static_cast<T>(*p.a.at(i, k + l));
      const B* b = p.b.at(k + l, j);
      for (int c = 0; c < strip; ++c) sum[l][c] += a * static_cast<T>(b[c]);
    }
  }
  T lane[lane_count][strip];
  std::memcpy(lane, sum, sizeof lane);  // those above stay in registers
  for (int l = 0; k < p.k; ++k, ++l) {
    const T a = static_cast<T>(*p.a.at(i, k));
    const B* b = p.b.at(k, j);
    for (int c = 0; c < strip; ++c) lane[l][c] += a * static_cast<T>(b[c]);
  }
  for (int c = 0; c < strip; ++c) {
    const T column[lane_count] = {lane[0][c], lane[1][c], lane[2][c], lane[3][c],
                                  lane[4][c], lane[5][c], lane[6][c], lane[7][c]};
    p.store(i, j + c, join_lanes(column));
  }
}

/// Rows [i, i_end) of columns [j, j_end). `wide`: compiled for wide vectors.
template <bool wide, class T, class A, class B>
void block(const Product<T, A, B>& p, index_t i, index_t i_end, index_t j, index_t j_end) {
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
  const bool dense = p.b.column == 1;
  for (index_t c = j; c < j_end; c += strip) {
    const int width = static_cast<int>(j_end - c < strip ? j_end - c : strip);
    const auto rows = [&](auto full, auto dense_columns) {
      index_t r = i;
      for (; r + 2 <= i_end; r += 2)
        along_columns<2, full.value, dense_columns.value>(p, r, c, width);
      if (r < i_end) along_columns<1, full.value, dense_columns.value>(p, r, c, width);
    };
    if (wide && dense && width == strip)
      for (index_t r = i; r < i_end; ++r) along_columns_at_once(p, r, c);
    else if (!dense)
      rows(std::false_type{}, std::false_type{});
    else if (width == strip)
      rows(std::true_type{}, std::true_type{});
    else
      rows(std::false_type{}, std::true_type{});
  }
}

/// `batch` products, `next(p, i)` moving p from the first to number i. `Loops`: see elements.h.
template <class Loops = PlainLoops, class T, class A, class B, class Next>
void multiply(const Context& context, index_t batch, const Product<T, A, B>& product,
              const Next& next) {
  constexpr index_t rows = 32, columns = 64;
  constexpr bool wide = !std::is_same_v<Loops, PlainLoops>;
  const index_t down = pieces(product.m, rows), across = pieces(product.n, columns);
  parallel_for(context.threads, batch * down * across, [&](index_t task) {
    Product<T, A, B> p = product;
    next(p, task / (down * across));
    const index_t i = task / across % down * rows, j = task % across * columns;
    Loops::template call<block<wide, T, A, B>>(p, i, i + rows < p.m ? i + rows : p.m, j,
                                               j + columns < p.n ? j + columns : p.n);
  });
}

/// One product.
template <class Loops = PlainLoops, class T, class A, class B>
void multiply(const Context& context, const Product<T, A, B>& product) {
  multiply<Loops>(context, 1, product, [](Product<T, A, B>&, index_t) {});
}

}  // namespace taper::portable
