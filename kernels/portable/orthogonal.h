// Rows of f64 numbers, rotated and reflected. The kernels that find eigenvalues and singular values
// share these functions. They compute in f64, whatever the dtype of the matrix is.
#pragma once
#include <cmath>
#include <limits>

#include "taper/kernels/portable/matrices.h"

namespace taper::portable {

/// At most so many matrices are decomposed at the same time. Each has scratch of its own.
inline constexpr index_t most_decompositions = 16;
inline constexpr double epsilon = std::numeric_limits<double>::epsilon();
/// Elements that shall become zero count as zero up to this number. The largest element of a
/// matrix lies above 2^-100 (`scale`).
inline constexpr double vanishing = 0x1p-900;

inline double dot(const double* x, const double* y, index_t n) {
  return sum_of<double>(n, [=](index_t i) { return x[i] * y[i]; });
}
/// y += factor x.
inline void add_scaled(double factor, const double* x, double* y, index_t n) {
  for_each_element(n, [=](index_t i) { y[i] += factor * x[i]; });
}
/// x becomes c x - s y, and y becomes s x + c y.
inline void rotate(double* x, double* y, index_t n, double c, double s) {
  for_each_element(n, [=](index_t i) {
    const double a = x[i], b = y[i];
    x[i] = c * a - s * b;
    y[i] = s * a + c * b;
  });
}
inline void exchange_rows(double* x, double* y, index_t n) {
  for (index_t i = 0; i < n; ++i) exchange(x[i], y[i]);
}

inline double largest_of(const double* x, index_t n) {
  double largest = 0;
  for (index_t i = 0; i < n; ++i)
    if (const double size = std::fabs(x[i]); size > largest) largest = size;
  return largest;
}
/// The root of the sum of squares. It divides by the largest element, so that no square overflows
/// or vanishes.
inline double norm_of_row(const double* x, index_t n) {
  const double largest = largest_of(x, n);
  if (largest == 0) return 0;
  return largest * std::sqrt(sum_of<double>(n, [=](index_t i) {
           const double scaled = x[i] / largest;
           return scaled * scaled;
         }));
}

/// A reflection H = I - tau v v^T, which maps a vector to (first, 0, …, 0).
struct Reflection {
  double tau, first;
};
/// Replaces the vector x by v, whose first element is 1 (Golub and Van Loan, "Matrix
/// computations", 5.1.3). Where all elements behind the first vanish, v would lose its digits, so H
/// is the identity.
inline Reflection make_reflection(double* x, index_t n) {
  const double alpha = x[0];
  x[0] = 1;
  if (largest_of(x + 1, n - 1) <= vanishing) return {0, alpha};
  x[0] = alpha;
  const double norm = norm_of_row(x, n), beta = alpha < 0 ? norm : -norm;
  for (index_t i = 1; i < n; ++i) x[i] /= alpha - beta;
  x[0] = 1;
  return {(beta - alpha) / beta, beta};
}
/// y = H y.
inline void reflect(double tau, const double* v, double* y, index_t n) {
  if (tau != 0) add_scaled(-tau * dot(v, y, n), v, y, n);
}

/// Says how a matrix was copied: the copy, times two to the power `exponent`, is the matrix.
struct Scaled {
  bool finite;  ///< false: an element is infinite or NaN, and the copy has no meaning
  int exponent;
};
/// Brings the largest of n elements between 2^-100 and 2^100, so that products of elements stay in
/// the range of f64. Most matrices are there already; then no element changes.
inline Scaled scale(double* a, index_t n) {
  constexpr int most = 100;
  double largest = 0;
  for (index_t i = 0; i < n; ++i) {
    const double size = std::fabs(a[i]);
    if (!(size <= std::numeric_limits<double>::max())) return {false, 0};
    if (size > largest) largest = size;
  }
  int exponent = 0;
  std::frexp(largest, &exponent);
  exponent = exponent > most ? exponent - most : exponent < -most ? exponent + most : 0;
  for (index_t i = 0; exponent != 0 && i < n; ++i) a[i] = std::ldexp(a[i], -exponent);
  return {true, exponent};
}

template <class T>
void fill(T* to, index_t n, T value) {
  for (index_t i = 0; i < n; ++i) to[i] = value;
}
/// What stands in the results for a matrix without eigenvalues: one that is not finite.
template <class T>
void fill_with_nan(T* to, index_t n) {
  fill(to, n, std::numeric_limits<T>::quiet_NaN());
}
inline void make_identity(double* a, index_t n) {
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j < n; ++j) a[i * n + j] = i == j ? 1 : 0;
}

/// Asks for scratch in `prepare`: `each` numbers for every matrix that is decomposed at a time.
inline void need_numbers(Context& context, index_t count, size_t each) {
  const index_t slots = count < most_decompositions ? count : most_decompositions;
  context.need_scratch(static_cast<size_t>(slots) * each * sizeof(double));
}
/// Calls `body(matrix, numbers)` for every matrix. `numbers` is its scratch.
template <class Body>
void for_each_matrix(const Context& context, index_t count, size_t each, const Body& body) {
  const index_t slots = count < most_decompositions ? count : most_decompositions;
  parallel_for(context.threads, slots, [&](index_t slot) {
    double* const numbers =
        static_cast<double*>(context.scratch) + static_cast<size_t>(slot) * each;
    for (index_t matrix = slot; matrix < count; matrix += slots) body(matrix, numbers);
  });
}

}  // namespace taper::portable
