// Batches of matrices, and triangular systems. All factorisations share these.
#pragma once
#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/product.h"
#include "taper/kernels/portable/walk.h"

namespace taper::portable {

/// How many matrices a shape has: the product of its extents without the last `own`.
inline index_t matrix_count(const Shape& shape, int own = 2) {
  index_t n = 1;
  for (int d = 0; d + own < shape.rank; ++d) n *= shape.sizes[d];
  return n;
}

/// Where the matrices of an operand begin, in the order of the result's matrices. The operand is
/// repeated over the result's batch. Its last `own` dimensions are not part of the batch.
inline Walk walk_of_matrices(const Shape& operand, const Shape& result, int own = 2) {
  Shape batch = operand, space = result;
  batch.rank -= own, space.rank -= 2;
  return Walk::broadcast(batch, space);
}

/// The matrix of a tensor that begins at `offset`.
template <class T, Strides strides>
Matrix<T> matrix_at(const View<T, strides>& view, index_t offset) {
  return {view.data() + offset, view.stride(-2), view.stride(-1)};
}
template <class T>
Matrix<T> transposed(const Matrix<T>& m) {
  return {m.data, m.column, m.row};
}

template <class T>
void exchange(T& a, T& b) {
  const T t = a;
  a = b, b = t;
}

/// The threads that compute one matrix together: only if there is a single matrix. Otherwise each
/// thread takes whole matrices. One task computes each element, so the result is the same.
inline const Threads* inner_threads(const Context& context, index_t count) {
  return count == 1 ? context.threads : nullptr;
}
inline const Threads* outer_threads(const Context& context, index_t count) {
  return count == 1 ? nullptr : context.threads;
}

/// One half of a square matrix, to solve T x = b. The lower half is solved from the first row on,
/// the upper half from the last. If `unit`, the diagonal counts as ones and is not read.
template <class T>
struct Triangle {
  Matrix<const T> a;
  index_t n;
  bool upper, unit;
};
template <class T>
Triangle<T> transposed(const Triangle<T>& t) {
  return {transposed(t.a), t.n, !t.upper, t.unit};
}

/// Columns that are solved side by side.
inline constexpr index_t strip_columns = 16;

/// Computes unknowns first … first + rows - 1 of `columns` columns side by side. The system's rows
/// are solved from the first on. The sums do not wait for each other, and each has one order.
template <int rows, int columns, bool dense, class T>
void substitute_rows(const Matrix<const T>& a, bool unit, const Matrix<T>& x, index_t first) {
  const index_t step = dense ? 1 : x.column;
  T sum[rows][columns];
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) sum[r][c] = x.at(first + r, 0)[c * step];
  for (index_t k = 0; k < first; ++k) {
    const T *const known = x.at(k, 0), *factor = a.at(first, k);
    for (int r = 0; r < rows; ++r, factor += a.row) TAPER_LANES
    for (int c = 0; c < columns; ++c) sum[r][c] -= *factor * known[c * step];
  }
  for (int r = 0; r < rows; ++r) {
    const index_t i = first + r;
    for (int k = 0; k < r; ++k)
      for (int c = 0; c < columns; ++c) sum[r][c] -= *a.at(i, first + k) * sum[k][c];
    for (int c = 0; c < columns; ++c) {
      if (!unit) sum[r][c] /= *a.at(i, i);
      x.at(i, 0)[c * step] = sum[r][c];
    }
  }
}
template <int columns, bool dense, class T>
void substitute_columns(const Triangle<T>& t, const Matrix<T>& x) {
  constexpr int rows = columns == 1 ? 8 : 4;  // as many as registers hold
  Matrix<const T> a = t.a;
  Matrix<T> unknown = x;
  if (t.upper) {  // the system in reverse: the last row and column come first
    a = {t.a.at(t.n - 1, t.n - 1), -t.a.row, -t.a.column};
    unknown = {x.at(t.n - 1, 0), -x.row, x.column};
  }
  index_t k = 0;
  for (; k + rows <= t.n; k += rows) substitute_rows<rows, columns, dense>(a, t.unit, unknown, k);
  for (; k < t.n; ++k) substitute_rows<1, columns, dense>(a, t.unit, unknown, k);
}
/// x = T^-1 x for `width` columns of x, at most a strip.
template <bool dense, class T>
void substitute(const Triangle<T>& t, Matrix<T> x, index_t width) {
  for (; width >= 8; width -= 8, x.data = x.at(0, 8)) substitute_columns<8, dense>(t, x);
  for (; width >= 4; width -= 4, x.data = x.at(0, 4)) substitute_columns<4, dense>(t, x);
  for (; width > 0; --width, x.data = x.at(0, 1)) substitute_columns<1, dense>(t, x);
}
template <class T>
void substitute(const Triangle<T>& t, const Matrix<T>& x, index_t width) {
  x.column == 1 ? substitute<true>(t, x, width) : substitute<false>(t, x, width);
}

/// Calls `solve(matrix, x, width)` for every strip of columns of the right sides in `out`. Before,
/// it copies the columns of `b` to the strip. If the system is X A = B (`left` false), it copies
/// the rows of `b` instead, so `solve` always gets a system A X = B.
template <class T, class Solve>
void for_each_right_side(const Context& context, AnyView<const T> b, const Walk& batch_of_b,
                         bool left, View<T> out, const Solve& solve) {
  const index_t n = out.size(left ? -2 : -1), columns = out.size(left ? -1 : -2);
  const index_t strips = pieces(columns, strip_columns);
  parallel_for(context.threads, matrix_count(out.shape()) * strips, [&](index_t task) {
    const index_t matrix = task / strips, column = task % strips * strip_columns;
    const index_t width = columns - column < strip_columns ? columns - column : strip_columns;
    Matrix<const T> from = matrix_at(b, batch_of_b.offset_of(matrix));
    Matrix<T> x = matrix_at(out, matrix * n * columns);
    if (!left) from = transposed(from), x = transposed(x);
    x.data = x.at(0, column);
    for (index_t i = 0; i < n; ++i)
      for (index_t c = 0; c < width; ++c) *x.at(i, c) = *from.at(i, column + c);
    solve(matrix, x, width);
  });
}

}  // namespace taper::portable
