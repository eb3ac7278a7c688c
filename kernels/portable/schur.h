// The real Schur form Z^T A Z = T of one matrix, dense: T is upper triangular, but for blocks of
// two rows that hold a pair of complex eigenvalues. Reflections make A a Hessenberg matrix, which
// is zero below its subdiagonal. Francis's double steps find the eigenvalues (Golub and Van Loan,
// "Matrix computations", 7.4 and 7.5).
#pragma once
#include <cmath>

#include "taper/kernels/portable/orthogonal.h"

namespace taper::portable {

/// An eigenvalue takes a few steps. After some, what is small beside the whole matrix counts as
/// zero. So many steps without an eigenvalue mean that something is wrong.
inline constexpr int patient_double_steps = 40, most_double_steps = 120;
/// Now and then a step with other shifts, because a few matrices are the same after every step.
inline constexpr int steps_between_exceptions = 10;

struct Schur {
  index_t n;
  double* h;     ///< (n, n): A, then T
  double* z;     ///< (n, n), a row for each column of Z; nullptr: not wanted
  double* re;    ///< (n): the eigenvalues
  double* im;    ///< (n)
  double* work;  ///< (2 n)

  double* row(index_t i) const { return h + i * n; }
  double& at(index_t i, index_t j) const { return h[i * n + j]; }

  /// M = H M, for `count` rows of a matrix, in `columns` columns from `first` on. The rows lie n
  /// apart.
  void reflect_rows(double tau, const double* v, index_t count, double* first,
                    index_t columns) const {
    if (tau == 0) return;
    double* const sum = work + n;
    fill(sum, columns, 0.0);
    for (index_t i = 0; i < count; ++i) add_scaled(v[i], first + i * n, sum, columns);
    for (index_t i = 0; i < count; ++i) add_scaled(-tau * v[i], sum, first + i * n, columns);
  }
  void make_hessenberg() const {
    if (z != nullptr) make_identity(z, n);
    for (index_t k = 0; k + 2 < n; ++k) {
      const index_t first = k + 1, rest = n - first;
      double* const v = work;
      for (index_t i = 0; i < rest; ++i) v[i] = at(first + i, k), at(first + i, k) = 0;
      const Reflection r = make_reflection(v, rest);
      at(first, k) = r.first;
      reflect_rows(r.tau, v, rest, row(first) + first, rest);
      for (index_t i = 0; i < n; ++i) reflect(r.tau, v, row(i) + first, rest);
      if (z != nullptr) reflect_rows(r.tau, v, rest, z + first * n, n);
    }
  }

  /// The first row of the block that ends with row `last`: the element before it is as good as
  /// zero, and becomes zero. It is if it is not above `small`, or small beside its neighbours.
  /// `norm` stands for the size of the diagonal where that is zero.
  index_t start_of_block(index_t last, double norm, double small) const {
    for (index_t i = last; i > 0; --i) {
      double size = std::fabs(at(i - 1, i - 1)) + std::fabs(at(i, i));
      if (size == 0) size = norm;
      const double beside = std::fabs(at(i, i - 1));
      if (beside <= epsilon * size || beside <= small) {
        at(i, i - 1) = 0;
        return i;
      }
    }
    return 0;
  }

  /// Two shifts, as the eigenvalues of two rows.
  struct Shifts {
    double x, y;          ///< the numbers on the diagonal
    double above, below;  ///< those beside it
  };
  Shifts shifts(index_t first, index_t last, int step) const {
    if (step % steps_between_exceptions != 0)
      return {at(last, last), at(last - 1, last - 1), at(last - 1, last), at(last, last - 1)};
    // the exceptional shifts of LAPACK's dlahqr, from the block's upper or lower corner
    const bool upper = step % (2 * steps_between_exceptions) != 0;
    const double s = upper ? std::fabs(at(first + 1, first)) + std::fabs(at(first + 2, first + 1))
                           : std::fabs(at(last, last - 1)) + std::fabs(at(last - 1, last - 2));
    const double x = 0.75 * s + (upper ? at(first, first) : at(last, last));
    return {x, x, -0.4375 * s, s};
  }
  /// The row at which the step begins. Before it, two small elements in a row keep what it does
  /// apart. `v` becomes the first column of (T - a) (T - b) for the shifts a and b.
  index_t begin_step(index_t first, index_t last, const Shifts& shift, double* v) const {
    for (index_t m = last - 2;; --m) {
      const double corner = at(m, m), x = shift.x - corner, y = shift.y - corner;
      // divided by the sizes of the factors, because products of small numbers vanish
      const double below = at(m + 1, m);
      const double scale = std::fabs(x) + std::fabs(y) + std::fabs(below) + std::fabs(shift.below);
      v[0] = x * (y / scale) - shift.above * (shift.below / scale) + below / scale * at(m, m + 1);
      v[1] = below / scale * (at(m + 1, m + 1) - corner - x - y);
      v[2] = below / scale * at(m + 2, m + 1);
      const double size = std::fabs(v[0]) + std::fabs(v[1]) + std::fabs(v[2]);
      for (int i = 0; size != 0 && i < 3; ++i) v[i] /= size;
      if (m == first) return m;
      const double before = std::fabs(at(m, m - 1)) * (std::fabs(v[1]) + std::fabs(v[2]));
      const double beside =
          std::fabs(at(m - 1, m - 1)) + std::fabs(corner) + std::fabs(at(m + 1, m + 1));
      if (before <= epsilon * std::fabs(v[0]) * beside) return m;
    }
  }
  /// One double step over the rows [first, last] of a block. Without Z, only the block counts.
  void step(index_t first, index_t last, int number) const {
    const index_t begin_row = z != nullptr ? 0 : first, end_column = z != nullptr ? n : last + 1;
    double v[3];
    const index_t begin = begin_step(first, last, shifts(first, last, number), v);
    for (index_t k = begin; k < last; ++k) {
      const index_t count = k + 2 <= last ? 3 : 2;
      for (index_t i = 0; k != begin && i < count; ++i) {
        v[i] = at(k + i, k - 1);
        if (i > 0) at(k + i, k - 1) = 0;
      }
      const Reflection r = make_reflection(v, count);
      if (k != begin)
        at(k, k - 1) = r.first;
      else if (k != first)
        at(k, k - 1) *= 1 - r.tau;
      reflect_rows(r.tau, v, count, row(k) + k, end_column - k);
      const index_t end_row = k + 3 < last ? k + 3 : last;
      for (index_t i = begin_row; i <= end_row; ++i) reflect(r.tau, v, row(i) + k, count);
      if (z != nullptr) reflect_rows(r.tau, v, count, z + k * n, n);
    }
  }
  /// Two eigenvalues from a block of two rows. If they are real, the block becomes triangular.
  void split(index_t first) const {
    const index_t last = first + 1;
    const double half = (at(first, first) - at(last, last)) / 2;
    const double square = half * half + at(first, last) * at(last, first);
    if (square < 0) {
      re[first] = re[last] = at(last, last) + half;
      im[first] = std::sqrt(-square), im[last] = -im[first];
      return;
    }
    const double x = at(last, first), y = half + std::copysign(std::sqrt(square), half);
    const double norm = std::hypot(x, y), s = x / norm, c = y / norm;
    // added to the diagonal, small eigenvalues keep their digits
    const double change = at(first, last) * x / (y == 0 ? 1 : y);
    re[first] = at(first, first) + change, re[last] = at(last, last) - change;
    for (index_t i = z != nullptr ? 0 : first; i <= last; ++i) {
      const double a = at(i, first), b = at(i, last);
      at(i, first) = c * a + s * b;
      at(i, last) = c * b - s * a;
    }
    rotate(row(first) + first, row(last) + first, (z != nullptr ? n : last + 1) - first, c, -s);
    if (z != nullptr) rotate(z + first * n, z + last * n, n, c, -s);
    at(last, first) = 0;
    at(first, first) = re[first], at(last, last) = re[last];
    im[first] = im[last] = 0;
  }
  double norm() const {
    double most = 0;
    for (index_t i = 0; i < n; ++i) {
      double sum = 0;
      for (index_t j = 0; j < n; ++j) sum += std::fabs(at(i, j));
      if (sum > most) most = sum;
    }
    return most;
  }
  /// Makes T of a Hessenberg matrix. Returns whether every eigenvalue was found.
  bool make_triangular() const {
    const double size = norm();
    int steps = 0;
    for (index_t last = n - 1; last >= 0;) {
      const index_t first =
          start_of_block(last, size, steps < patient_double_steps ? vanishing : epsilon * size);
      if (last - first < 2) {
        if (first == last)
          re[last] = at(last, last), im[last] = 0;
        else
          split(first);
        last = first - 1, steps = 0;
        continue;
      }
      if (++steps > most_double_steps) return false;
      step(first, last, steps);
    }
    return true;
  }
};

}  // namespace taper::portable
