// A = P L U by elimination with row exchanges, and the solution of systems with it. L, without its
// diagonal of ones, and U share one matrix. Step k exchanged the rows k and pivots[k] - 1.
#include <cmath>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/matrices.h"
#include "taper/kernels/shapes/linalg.h"

namespace taper::portable {
namespace {

/// Columns that are eliminated before the rest of the matrix is updated, in one pass over it.
constexpr index_t panel_columns = 32;
/// A task updates about this many elements of the rest.
constexpr index_t grain = 16384;

/// One matrix (m, n), dense.
template <class T>
struct Elimination {
  T* a;
  index_t m, n;
  T* row(index_t i) const { return a + i * n; }

  /// row(i)[c] -= Σ a(i, j) row(j)[c] over j in [first, last), for the columns from `begin` on.
  void subtract_rows(index_t i, index_t first, index_t last, index_t begin) const {
    constexpr index_t strip = 32;
    for (index_t c = begin; c < n; c += strip) {
      const index_t width = n - c < strip ? n - c : strip;
      T sum[strip];
      const auto columns = [&](auto full) {
        const index_t count = full.value ? strip : width;
        for (index_t k = 0; k < count; ++k) sum[k] = row(i)[c + k];
        for (index_t j = first; j < last; ++j) {
          const T factor = row(i)[j];
          const T* const u = row(j) + c;
          for (index_t k = 0; k < count; ++k) sum[k] -= factor * u[k];
        }
        for (index_t k = 0; k < count; ++k) row(i)[c + k] = sum[k];
      };
      width == strip ? columns(std::true_type{}) : columns(std::false_type{});
    }
  }

  /// The row from k on with the largest element in column k. A NaN is never the largest, but a NaN
  /// in row k stays there, as in LAPACK.
  index_t pivot_row(index_t k) const {
    index_t best = k;
    T largest = std::fabs(row(k)[k]);
    for (index_t i = k + 1; i < m; ++i)
      if (const T size = std::fabs(row(i)[k]); size > largest) best = i, largest = size;
    return best;
  }

  /// Eliminates columns [first, last). Returns the first column whose pivot is zero, counted from
  /// 1, or 0.
  int32_t eliminate_panel(index_t first, index_t last, int32_t* pivots) const {
    int32_t zero = 0;
    for (index_t k = first; k < last; ++k) {
      const index_t p = pivot_row(k);
      pivots[k] = static_cast<int32_t>(p + 1);
      for (index_t c = 0; p != k && c < n; ++c) exchange(row(k)[c], row(p)[c]);
      const T pivot = row(k)[k];
      if (pivot == 0) {  // then all elements below it are zero or NaN
        if (zero == 0) zero = static_cast<int32_t>(k + 1);
        continue;
      }
      for (index_t i = k + 1; i < m; ++i) {
        const T factor = row(i)[k] /= pivot;
        for (index_t c = k + 1; c < last; ++c) row(i)[c] -= factor * row(k)[c];
      }
    }
    return zero;
  }

  /// Factors the whole matrix. Returns the place of the first zero on U's diagonal, counted from 1,
  /// or 0.
  int32_t factor(const Threads* threads, int32_t* pivots) const {
    const index_t steps = m < n ? m : n;
    int32_t zero = 0;
    for (index_t first = 0; first < steps; first += panel_columns) {
      const index_t last = first + panel_columns < steps ? first + panel_columns : steps;
      const int32_t found = eliminate_panel(first, last, pivots);
      if (zero == 0) zero = found;
      if (last == n) break;
      for (index_t i = first + 1; i < last; ++i) subtract_rows(i, first, i, last);
      const index_t per_task = n - last < grain ? grain / (n - last) : 1;
      parallel_for(threads, pieces(m - last, per_task), [&](index_t task) {
        const index_t begin = last + task * per_task;
        for (index_t i = begin; i < m && i < begin + per_task; ++i)
          subtract_rows(i, first, last, last);
      });
    }
    return zero;
  }
};

template <class T>
Error prepare_factor(Context&, Walk& plan, AnyView<const T> a, bool, bool, View<T> lu,
                     View<int32_t>, View<int32_t>) {
  plan = walk_of_matrices(a.shape(), lu.shape());
  return Error::ok;
}
template <class T>
Error factor(Context& context, const Walk& plan, AnyView<const T> a, bool, bool check_errors,
             View<T> lu, View<int32_t> pivots, View<int32_t> info) {
  const index_t m = lu.size(-2), n = lu.size(-1), steps = m < n ? m : n;
  const index_t count = matrix_count(lu.shape());
  parallel_for(outer_threads(context, count), count, [&](index_t matrix) {
    const Matrix<const T> from = matrix_at(a, plan.offset_of(matrix));
    const Elimination<T> e{lu.data() + matrix * m * n, m, n};
    for (index_t i = 0; i < m; ++i)
      for (index_t j = 0; j < n; ++j) e.row(i)[j] = *from.at(i, j);
    info.data()[matrix] = e.factor(inner_threads(context, count), pivots.data() + matrix * steps);
  });
  for (index_t matrix = 0; check_errors && matrix < count; ++matrix)
    if (info.data()[matrix] != 0)
      return context.fail(
          Error::invalid_argument,
          TAPER_TEXT("the input matrix is singular: element {} of the diagonal of U "
                     "is zero (matrix {} of {})"),
          info.data()[matrix], matrix, count);
  return Error::ok;
}

struct Batches {
  Walk lu, pivots, b;
};

template <class T>
Error prepare_solve(Context&, Batches& plan, AnyView<const T> lu, AnyView<const int32_t> pivots,
                    AnyView<const T> b, bool, bool, View<T> out) {
  plan = {walk_of_matrices(lu.shape(), out.shape()),
          walk_of_matrices(pivots.shape(), out.shape(), 1),
          walk_of_matrices(b.shape(), out.shape())};
  return Error::ok;
}

/// Solves P L U X = B, or its transpose U^T L^T P^T X = B.
template <class T>
Error solve(Context& context, const Batches& plan, AnyView<const T> lu,
            AnyView<const int32_t> pivots, AnyView<const T> b, bool left, bool adjoint,
            View<T> out) {
  const index_t n = lu.size(-1), count = out.numel() == 0 ? 0 : matrix_count(out.shape());
  const auto pivot = [&](index_t matrix, index_t k) {
    return pivots.data()[plan.pivots.offset_of(matrix) + k * pivots.stride(-1)];
  };
  for (index_t matrix = 0; matrix < count; ++matrix)
    for (index_t k = 0; k < n; ++k)
      if (const int32_t p = pivot(matrix, k); p < 1 || p > n)
        return context.fail(Error::invalid_argument, TAPER_TEXT("pivot {} is outside [1, {}]"), p,
                            n);
  const bool turned = adjoint == left;  // X A = B is A^T X^T = B^T
  for_each_right_side<T>(
      context, b, plan.b, left, out, [&](index_t matrix, const Matrix<T>& x, index_t width) {
        const auto exchange_rows = [&](index_t k) {
          const index_t p = pivot(matrix, k) - 1;
          for (index_t c = 0; p != k && c < width; ++c) exchange(*x.at(k, c), *x.at(p, c));
        };
        const Matrix<const T> both = matrix_at(lu, plan.lu.offset_of(matrix));
        const Triangle<T> lower{both, n, false, true}, upper{both, n, true, false};
        if (turned) {
          substitute(transposed(upper), x, width);
          substitute(transposed(lower), x, width);
          for (index_t k = n - 1; k >= 0; --k) exchange_rows(k);
        } else {
          for (index_t k = 0; k < n; ++k) exchange_rows(k);
          substitute(lower, x, width);
          substitute(upper, x, width);
        }
      });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(linalg_lu_factor_ex, f32, prepare_factor<float>, factor<float>)
TAPER_KERNEL(linalg_lu_factor_ex, f64, prepare_factor<double>, factor<double>)
TAPER_KERNEL(linalg_lu_solve, f32, prepare_solve<float>, solve<float>)
TAPER_KERNEL(linalg_lu_solve, f64, prepare_solve<double>, solve<double>)

}  // namespace taper::portable
