// A = L L^T for a symmetric positive definite A. Only one half of A is read.
#include <cmath>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/matrices.h"
#include "taper/kernels/shapes/linalg.h"

namespace taper::portable {
namespace {

/// A task has about this many products.
constexpr index_t grain = 16384;

/// Replaces the lower half of a dense matrix by L, column by column. Returns 0, or the order of the
/// first leading minor that is not positive. In that case the value that is not positive stands on
/// the diagonal, and the columns behind it are unchanged, as in LAPACK.
template <class T>
int32_t factor(const Threads* threads, T* a, index_t n) {
  for (index_t j = 0; j < n; ++j) {
    T* const row = a + j * n;
    const T square = row[j] - sum_of<T>(j, [=](index_t k) { return row[k] * row[k]; });
    if (!(square > 0)) {  // also true for NaN
      row[j] = square;
      return static_cast<int32_t>(j + 1);
    }
    const T diagonal = row[j] = std::sqrt(square);
    const index_t per_task = j < grain ? grain / (j + 1) : 1;
    parallel_for(threads, pieces(n - j - 1, per_task), [&](index_t task) {
      const index_t begin = j + 1 + task * per_task;
      for (index_t i = begin; i < n && i < begin + per_task; ++i) {
        T* const y = a + i * n;
        y[j] = (y[j] - sum_of<T>(j, [=](index_t k) { return y[k] * row[k]; })) / diagonal;
      }
    });
  }
  return 0;
}

template <class T>
Error prepare(Context&, Walk& plan, AnyView<const T> self, bool, bool, View<T> l, View<int32_t>) {
  plan = walk_of_matrices(self.shape(), l.shape());
  return Error::ok;
}

template <class T>
Error run(Context& context, const Walk& plan, AnyView<const T> self, bool upper, bool check_errors,
          View<T> l, View<int32_t> info) {
  const index_t n = l.size(-1), count = matrix_count(l.shape());
  parallel_for(outer_threads(context, count), count, [&](index_t matrix) {
    Matrix<const T> from = matrix_at(self, plan.offset_of(matrix));
    if (upper) from = transposed(from);
    T* const a = l.data() + matrix * n * n;
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j < n; ++j) a[i * n + j] = j <= i ? *from.at(i, j) : T(0);
    info.data()[matrix] = factor(inner_threads(context, count), a, n);
    for (index_t i = 0; upper && i < n; ++i)
      for (index_t j = 0; j < i; ++j) exchange(a[i * n + j], a[j * n + i]);
  });
  for (index_t matrix = 0; check_errors && matrix < count; ++matrix)
    if (info.data()[matrix] != 0)
      return context.fail(Error::invalid_argument,
                          TAPER_TEXT("the input is not positive-definite: its leading minor of "
                                     "order {} is not (matrix {} of {})"),
                          info.data()[matrix], matrix, count);
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(linalg_cholesky_ex, f32, prepare<float>, run<float>)
TAPER_KERNEL(linalg_cholesky_ex, f64, prepare<double>, run<double>)

}  // namespace taper::portable
