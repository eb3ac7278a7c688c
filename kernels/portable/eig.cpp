// Eigenvalues and right eigenvectors of real matrices, as pairs of a real and an imaginary part.
// The matrix is balanced (James, Langou and Lowery, "On matrix balancing and eigenvector
// computation", 2014) and becomes triangular (schur.h). Substitution gives the eigenvectors.
#include <cmath>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/schur.h"
#include "taper/kernels/shapes/matrices.h"

namespace taper::portable {
namespace {

struct Complex {
  double re, im;
};
Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
double size_of(Complex a) { return std::hypot(a.re, a.im); }
/// Divides by the larger part of b first, so that nothing overflows on the way (Smith, 1962).
Complex operator/(Complex a, Complex b) {
  if (b.im == 0) return {a.re / b.re, a.im / b.re};
  if (std::fabs(b.re) >= std::fabs(b.im)) {
    const double ratio = b.im / b.re, whole = b.re + b.im * ratio;
    return {(a.re + a.im * ratio) / whole, (a.im - a.re * ratio) / whole};
  }
  const double ratio = b.re / b.im, whole = b.re * ratio + b.im;
  return {(a.re * ratio + a.im) / whole, (a.im * ratio - a.re) / whole};
}

/// Divides rows and multiplies columns by powers of two, until both have about the same norm.
/// `factors` says what the rows of an eigenvector must be multiplied with.
void equilibrate(const Schur& schur, double* factors) {
  constexpr int most_rounds = 100;
  constexpr double most = 0x1p400;
  const index_t n = schur.n;
  bool changed = true;
  for (int round = 0; changed && round < most_rounds; ++round) {
    changed = false;
    for (index_t i = 0; i < n; ++i) {
      for (index_t j = 0; j < n; ++j) schur.work[j] = schur.at(j, i);
      double column = norm_of_row(schur.work, n), row = norm_of_row(schur.row(i), n), factor = 1;
      if (column == 0 || row == 0) continue;
      const double before = column + row;
      for (; 2 * column <= row; column *= 2, row /= 2) factor *= 2;
      for (; 2 * row <= column; column /= 2, row *= 2) factor /= 2;
      const double after = factors[i] * factor;
      if (column + row >= 0.95 * before || after > most || after < 1 / most) continue;
      changed = true;
      factors[i] = after;
      for (index_t j = 0; j < n; ++j) schur.at(i, j) /= factor;
      for (index_t j = 0; j < n; ++j) schur.at(j, i) *= factor;
    }
  }
}
/// Balances the matrix, but only if that keeps every residual small. The rounding errors of the
/// balanced matrix count up to `spread` times in the original one.
void balance(const Schur& schur, double* factors) {
  constexpr double bound = 8;
  const index_t n = schur.n;
  const double before = schur.norm();
  fill(factors, n, 1.0);
  equilibrate(schur, factors);
  double least = factors[0], largest = factors[0];
  for (index_t i = 1; i < n; ++i) {
    if (factors[i] < least) least = factors[i];
    if (factors[i] > largest) largest = factors[i];
  }
  const double spread = largest / least;
  if (spread * schur.norm() <= bound * before) return;
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j < n; ++j) schur.at(i, j) *= factors[i] / factors[j];
  fill(factors, n, 1.0);
}

/// Eigenvectors of the triangular T, and those of A.
struct Eigenvectors {
  const Schur& schur;
  const double* factors;
  double *re, *im;  ///< (n): one eigenvector
  double least;     ///< stands for a pivot that is smaller

  Complex x(index_t i) const { return {re[i], im[i]}; }
  void set(index_t i, Complex value) const { re[i] = value.re, im[i] = value.im; }
  Complex pivot(Complex value) const { return size_of(value) < least ? Complex{least, 0} : value; }
  /// Σ T(row, j) x(j) over j in [first, end).
  Complex known(index_t row, index_t first, index_t end) const {
    const double* const t = schur.row(row) + first;
    return {dot(t, re + first, end - first), dot(t, im + first, end - first)};
  }

  /// The part of the eigenvector in its own block, which ends with `last`. Returns the block's
  /// first row.
  index_t begin(index_t last, Complex value) const {
    set(last, {1, 0});
    if (value.im == 0) return last;
    const index_t first = last - 1;
    const double above = schur.at(first, last), below = schur.at(last, first);
    if (std::fabs(below) >= std::fabs(above)) {
      set(first, (value - Complex{schur.at(last, last), 0}) / Complex{below, 0});
    } else {
      set(first, {1, 0});
      set(last, (value - Complex{schur.at(first, first), 0}) / Complex{above, 0});
    }
    return first;
  }
  /// x(i) from the row i of (T - value) x = 0.
  void solve_row(index_t i, index_t end, Complex value) const {
    const Complex diagonal = pivot(Complex{schur.at(i, i), 0} - value);
    set(i, Complex{0, 0} - known(i, i + 1, end) / diagonal);
  }
  /// x(i) and x(i + 1) from the rows of a block, by elimination with an exchange of rows.
  void solve_rows(index_t i, index_t end, Complex value) const {
    Complex a = Complex{schur.at(i, i), 0} - value, b{schur.at(i, i + 1), 0},
            c{schur.at(i + 1, i), 0}, d = Complex{schur.at(i + 1, i + 1), 0} - value;
    Complex first = Complex{0, 0} - known(i, i + 2, end),
            second = Complex{0, 0} - known(i + 1, i + 2, end);
    if (size_of(c) > size_of(a)) exchange(a, c), exchange(b, d), exchange(first, second);
    const Complex factor = c / a;  // c is not 0, so a is not either
    set(i + 1, (second - factor * first) / pivot(d - factor * b));
    set(i, (first - b * x(i + 1)) / a);
  }
  void shrink(index_t first, index_t end) const {
    constexpr double most = 0x1p300;
    const double a = largest_of(re + first, end - first), b = largest_of(im + first, end - first);
    const double largest = a > b ? a : b;
    if (!(largest > most)) return;
    for (index_t i = first; i < end; ++i) re[i] /= largest, im[i] /= largest;
  }
  /// Solves (T - value) x = 0 from the block that ends with `last` upwards.
  void substitute(index_t last, Complex value) const {
    index_t i = begin(last, value);
    while (i > 0) {
      const bool block = i > 1 && schur.at(i - 1, i - 2) != 0;
      i -= block ? 2 : 1;
      block ? solve_rows(i, last + 1, value) : solve_row(i, last + 1, value);
      shrink(i, last + 1);
    }
  }
  /// Multiplies a part by Z, and takes the balance back. Uses the scratch of `schur`.
  void turn(double* part, index_t last) const {
    double* const sum = schur.work;
    fill(sum, schur.n, 0.0);
    for (index_t j = 0; j <= last; ++j) add_scaled(part[j], schur.z + j * schur.n, sum, schur.n);
    for (index_t i = 0; i < schur.n; ++i) part[i] = sum[i] * factors[i];
  }
  /// Makes the length 1, and the largest element of a complex vector real.
  void normalize(bool real) const {
    const index_t n = schur.n;
    const double a = largest_of(re, n), b = largest_of(im, n), largest = a > b ? a : b;
    for (index_t i = 0; i < n; ++i) re[i] /= largest, im[i] /= largest;
    const double norm = std::hypot(norm_of_row(re, n), norm_of_row(im, n));
    for (index_t i = 0; i < n; ++i) re[i] /= norm, im[i] /= norm;
    if (real) return;
    index_t peak = 0;
    for (index_t i = 1; i < n; ++i)
      if (size_of(x(i)) > size_of(x(peak))) peak = i;
    const double size = size_of(x(peak));
    const Complex phase{re[peak] / size, -im[peak] / size};
    for (index_t i = 0; i < n; ++i) set(i, x(i) * phase);
    set(peak, {size, 0});
  }
  /// Computes the eigenvector of the eigenvalue that ends with row `last` of T. Its imaginary part
  /// is not negative.
  void compute(index_t last, Complex value) const {
    fill(re, schur.n, 0.0), fill(im, schur.n, 0.0);
    substitute(last, value);
    turn(re, last);
    if (value.im != 0) turn(im, last);
    normalize(value.im == 0);
  }
};

/// The scratch of one matrix.
struct Numbers {
  double *h, *re, *im, *work, *factors, *x, *z;
  static size_t count(index_t n, bool with_vectors) {
    const size_t size = static_cast<size_t>(n);
    return size * size * (with_vectors ? 2 : 1) + 7 * size;
  }
  Numbers(index_t n, double* all, bool with_vectors)
      : h(all),
        re(h + n * n),
        im(re + n),
        work(im + n),
        factors(work + 2 * n),
        x(factors + n),
        z(with_vectors ? x + 2 * n : nullptr) {}
};

template <class T>
void write_pair(T* to, double re, double im) {
  to[0] = static_cast<T>(re), to[1] = static_cast<T>(im);
}
/// Writes column `j`, and column j + 1 if the eigenvalue is complex: that of its conjugate.
template <class T>
void write_vectors(const Eigenvectors& v, index_t j, bool pair, T* vectors) {
  const index_t n = v.schur.n;
  for (index_t i = 0; i < n; ++i) {
    T* const to = vectors + (i * n + j) * 2;
    write_pair(to, v.re[i], v.im[i]);
    if (pair) write_pair(to + 2, v.re[i], -v.im[i]);
  }
}

template <class T>
Error prepare(Context& context, Walk& plan, AnyView<const T> a, bool compute_v, View<T> values,
              View<T>) {
  Shape matrices = a.shape();
  matrices.make_dense();
  plan = walk_of_matrices(a.shape(), matrices);
  need_numbers(context, matrix_count(values.shape()), Numbers::count(a.size(-1), compute_v));
  return Error::ok;
}

template <class T>
Error run(Context& context, const Walk& plan, AnyView<const T> a, bool compute_v, View<T> values,
          View<T> vectors) {
  const index_t n = a.size(-1), count = n == 0 ? 0 : matrix_count(values.shape());
  const size_t each = Numbers::count(n, compute_v);
  for_each_matrix(context, count, each, [&](index_t matrix, double* all) {
    const Numbers numbers(n, all, compute_v);
    const Schur schur{n, numbers.h, numbers.z, numbers.re, numbers.im, numbers.work};
    T* const value = values.data() + matrix * n * 2;
    T* const vector = compute_v ? vectors.data() + matrix * n * n * 2 : nullptr;
    const Matrix<const T> from = matrix_at(a, plan.offset_of(matrix));
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j < n; ++j) schur.at(i, j) = static_cast<double>(*from.at(i, j));
    const Scaled scaled = scale(schur.h, n * n);
    if (scaled.finite) balance(schur, numbers.factors), schur.make_hessenberg();
    if (!scaled.finite || !schur.make_triangular()) {
      fill_with_nan(value, n * 2);
      if (compute_v) fill_with_nan(vector, n * n * 2);
      return;
    }
    for (index_t i = 0; i < n; ++i)
      write_pair(value + i * 2, std::ldexp(schur.re[i], scaled.exponent),
                 std::ldexp(schur.im[i], scaled.exponent));
    const Eigenvectors v{schur, numbers.factors, numbers.x, numbers.x + n,
                         epsilon * schur.norm() + 0x1p-900};
    for (index_t i = 0; compute_v && i < n; ++i) {
      const bool pair = schur.im[i] != 0;
      v.compute(pair ? i + 1 : i, {schur.re[i], schur.im[i]});
      write_vectors(v, i, pair, vector);
      if (pair) ++i;
    }
  });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(taper_eig, f32, prepare<float>, run<float>)
TAPER_KERNEL(taper_eig, f64, prepare<double>, run<double>)

}  // namespace taper::portable
