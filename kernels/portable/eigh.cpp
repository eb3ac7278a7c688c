// A = V diag(eigenvalues) V^T of symmetric matrices. Reflections make A tridiagonal, and the
// implicit QL algorithm makes it diagonal (Golub and Van Loan, "Matrix computations", 8.3).
#include <cmath>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/orthogonal.h"
#include "taper/kernels/shapes/matrices.h"

namespace taper::portable {
namespace {

/// An eigenvalue takes two or three steps. Numbers of very different sizes may hide a shift from
/// the rows that need it. After some steps, what is small beside the whole matrix counts as zero.
constexpr int patient_steps = 20, most_steps = 100;

/// One symmetric matrix.
struct Symmetric {
  index_t n;
  double* a;        ///< (n, n): the matrix, then the vectors of the reflections
  double* d;        ///< (n): the diagonal, then the eigenvalues
  double* e;        ///< (n): e[i] stands beside d[i] and d[i + 1]
  double* tau;      ///< (n)
  double* w;        ///< (n): for one product
  double* vectors;  ///< (n, n), a row for each eigenvector; nullptr: not wanted

  static size_t numbers(index_t n, bool with_vectors) {
    const size_t size = static_cast<size_t>(n);
    return size * size * (with_vectors ? 2 : 1) + 4 * size;
  }
  Symmetric(index_t n, double* numbers, bool with_vectors)
      : n(n),
        a(numbers),
        d(a + n * n),
        e(d + n),
        tau(e + n),
        w(tau + n),
        vectors(with_vectors ? w + n : nullptr) {}

  /// Reads one half of a matrix, and mirrors it.
  template <class T>
  Scaled load(Matrix<const T> from, bool upper) const {
    if (upper) from = transposed(from);
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j <= i; ++j)
        a[i * n + j] = a[j * n + i] = static_cast<double>(*from.at(i, j));
    return scale(a, n * n);
  }

  /// T = H A H, for the reflection H of the rows and columns behind k. `v` is its vector.
  void reflect_behind(index_t k, const double* v) const {
    const index_t rest = n - k - 1;
    double *const first = a + (k + 1) * n + k + 1, *const product = w;
    for (index_t i = 0; i < rest; ++i) product[i] = tau[k] * dot(first + i * n, v, rest);
    add_scaled(-0.5 * tau[k] * dot(product, v, rest), v, product, rest);
    for (index_t i = 0; i < rest; ++i) {
      double* const row = first + i * n;
      const double vi = v[i], pi = product[i];
      for_each_element(rest, [=](index_t j) { row[j] -= vi * product[j] + pi * v[j]; });
    }
  }
  void make_tridiagonal() const {
    for (index_t k = 0; k < n; ++k) {
      d[k] = a[k * n + k];
      e[k] = k + 1 < n ? a[k * n + k + 1] : 0;
      tau[k] = 0;
      if (k + 2 >= n) continue;
      double* const v = a + k * n + k + 1;
      const Reflection h = make_reflection(v, n - k - 1);
      tau[k] = h.tau, e[k] = h.first;
      if (h.tau != 0) reflect_behind(k, v);
    }
  }
  /// The product of all reflections, transposed.
  void multiply_reflections() const {
    make_identity(vectors, n);
    for (index_t k = n - 3; k >= 0; --k)
      for (index_t i = k + 1; i < n; ++i)
        reflect(tau[k], a + k * n + k + 1, vectors + i * n + k + 1, n - k - 1);
  }

  /// The last place of the block that begins at `first`: behind it, e is as good as zero. It is if
  /// it is not above `small`, or small beside its neighbours.
  index_t end_of_block(index_t first, double small) const {
    for (index_t last = first; last + 1 < n; ++last) {
      const double beside = std::fabs(e[last]);
      if (beside <= epsilon * (std::fabs(d[last]) + std::fabs(d[last + 1])) || beside <= small)
        return last;
    }
    return n - 1;
  }
  /// One QL step over the block [first, last], with the shift of Wilkinson.
  void step(index_t first, index_t last) const {
    const double half = (d[first + 1] - d[first]) / (2 * e[first]);
    double g = d[last] - d[first] + e[first] / (half + std::copysign(std::hypot(half, 1.0), half));
    double s = 1, c = 1, p = 0;
    for (index_t i = last - 1; i >= first; --i) {
      const double f = s * e[i], b = c * e[i], r = std::hypot(f, g);
      e[i + 1] = r;
      if (r == 0) {  // the block falls apart here
        d[i + 1] -= p;
        e[last] = 0;
        return;
      }
      s = f / r, c = g / r;
      const double corner = d[i + 1] - p, turned = (d[i] - corner) * s + 2 * c * b;
      p = s * turned;
      d[i + 1] = corner + p;
      g = c * turned - b;
      if (vectors != nullptr) rotate(vectors + i * n, vectors + (i + 1) * n, n, c, s);
    }
    d[first] -= p;
    e[first] = g;
    e[last] = 0;
  }
  /// Whether every eigenvalue was found.
  bool make_diagonal() const {
    const double size = largest_of(d, n) + largest_of(e, n);
    for (index_t first = 0; first < n; ++first)
      for (int steps = 0;; ++steps) {
        const index_t last =
            end_of_block(first, steps < patient_steps ? vanishing : epsilon * size);
        if (last == first) break;
        if (steps == most_steps) return false;
        step(first, last);
      }
    return true;
  }
  /// Brings the eigenvalues into ascending order.
  void sort() const {
    for (index_t i = 0; i + 1 < n; ++i) {
      index_t least = i;
      for (index_t k = i + 1; k < n; ++k)
        if (d[k] < d[least]) least = k;
      if (least == i) continue;
      exchange(d[i], d[least]);
      if (vectors != nullptr) portable::exchange_rows(vectors + i * n, vectors + least * n, n);
    }
  }
  bool decompose() const {
    make_tridiagonal();
    if (vectors != nullptr) multiply_reflections();
    if (!make_diagonal()) return false;
    sort();
    return true;
  }
};

template <class T>
Error prepare(Context& context, Walk& plan, AnyView<const T> a, std::string_view, bool compute_v,
              View<T> values, View<T>) {
  Shape matrices = a.shape();
  matrices.make_dense();
  plan = walk_of_matrices(a.shape(), matrices);
  need_numbers(context, matrix_count(values.shape(), 1), Symmetric::numbers(a.size(-1), compute_v));
  return Error::ok;
}

template <class T>
Error run(Context& context, const Walk& plan, AnyView<const T> a, std::string_view uplo,
          bool compute_v, View<T> values, View<T> vectors) {
  const index_t n = a.size(-1), count = n == 0 ? 0 : matrix_count(values.shape(), 1);
  const bool upper = uplo == "U" || uplo == "u";
  const size_t each = Symmetric::numbers(n, compute_v);
  for_each_matrix(context, count, each, [&](index_t matrix, double* numbers) {
    const Symmetric symmetric(n, numbers, compute_v);
    T* const value = values.data() + matrix * n;
    T* const vector = compute_v ? vectors.data() + matrix * n * n : nullptr;
    const Scaled scaled = symmetric.load(matrix_at(a, plan.offset_of(matrix)), upper);
    if (!scaled.finite || !symmetric.decompose()) {
      fill_with_nan(value, n);
      if (compute_v) fill_with_nan(vector, n * n);
      return;
    }
    for (index_t i = 0; i < n; ++i)
      value[i] = static_cast<T>(std::ldexp(symmetric.d[i], scaled.exponent));
    for (index_t i = 0; compute_v && i < n; ++i)
      for (index_t j = 0; j < n; ++j)
        vector[i * n + j] = static_cast<T>(symmetric.vectors[j * n + i]);
  });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(_linalg_eigh, f32, prepare<float>, run<float>)
TAPER_KERNEL(_linalg_eigh, f64, prepare<double>, run<double>)

}  // namespace taper::portable
