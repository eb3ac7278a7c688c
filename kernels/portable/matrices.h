// Batches of matrices, and the solution of triangular systems: what the factorisations share.
#pragma once
#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/product.h"
#include "taper/kernels/portable/walk.h"

namespace taper::portable {

/// How many matrices a shape has: the product of its extents but the last `own`.
inline index_t matrix_count(const Shape& shape, int own = 2) {
  index_t n = 1;
  for (int d = 0; d + own < shape.rank; ++d) n *= shape.sizes[d];
  return n;
}

/// Where the matrices of an operand begin, in the order of the result's, over whose batch it is
/// repeated. `own`: the operand's dimensions behind its batch.
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

/// Threads for the inside of one matrix, where there is only one; many are shared out whole. The
/// result is the same: every element is computed by one task.
inline const Threads* inner_threads(const Context& context, index_t count) {
  return count == 1 ? context.threads : nullptr;
}
inline const Threads* outer_threads(const Context& context, index_t count) {
  return count == 1 ? nullptr : context.threads;
}

/// Half of a square matrix: the system T x = b is solved by it, from the first row on if it is the
/// lower half, from the last if the upper one. `unit`: its diagonal counts as ones and is not read.
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

/// x = T^-1 x for `width` columns of x, at most a strip. Each column's sums have one order.
template <bool full, bool dense, class T>
void substitute(const Triangle<T>& t, const Matrix<T>& x, index_t width) {
  if (full) width = strip_columns;
  const index_t step = dense ? 1 : x.column;
  for (index_t k = 0; k < t.n; ++k) {
    const index_t i = t.upper ? t.n - 1 - k : k;
    T* const row = x.at(i, 0);
    T sum[strip_columns];
    for (index_t c = 0; c < width; ++c) sum[c] = row[c * step];
    for (index_t j = t.upper ? i + 1 : 0; j < (t.upper ? t.n : i); ++j) {
      const T factor = *t.a.at(i, j);
      const T* const known = x.at(j, 0);
      for (index_t c = 0; c < width; ++c) sum[c] -= factor * known[c * step];
    }
    const T divisor = t.unit ? T(1) : *t.a.at(i, i);
    for (index_t c = 0; c < width; ++c) row[c * step] = t.unit ? sum[c] : sum[c] / divisor;
  }
}
template <class T>
void substitute(const Triangle<T>& t, const Matrix<T>& x, index_t width) {
  if (x.column == 1)
    width == strip_columns ? substitute<true, true>(t, x, width)
                           : substitute<false, true>(t, x, width);
  else
    width == strip_columns ? substitute<true, false>(t, x, width)
                           : substitute<false, false>(t, x, width);
}

/// Calls `solve(matrix, x, width)` for every strip of columns of the right sides in `out`, which it
/// first sets to those of `b`: to their rows, if the unknown stands on the left of its matrix
/// (`left` false), so that a system A X = B is left to solve.
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
