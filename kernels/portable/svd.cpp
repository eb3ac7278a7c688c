// A = U diag(S) V^T. With an exchange of columns, A becomes Q R. Then rotations make the rows of R
// orthogonal to each other: one-sided Jacobi, which finds small singular values as exactly as large
// ones (Drmač and Veselić, "New fast and accurate Jacobi SVD algorithm", 2008). A wide matrix is
// transposed.
#include <cmath>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/orthogonal.h"
#include "taper/kernels/shapes/matrices.h"

namespace taper::portable {
namespace {

/// About ten sweeps over all pairs of rows are needed. The limit only stops an angle that hovers
/// around the threshold.
constexpr int most_sweeps = 60;
/// A row whose norm is below counts as zero. No element lies above 2^100.
constexpr double least_norm = 0x1p-700;

/// One matrix (length, width) with length >= width. A vector of its longer side has `length`
/// elements, one of its shorter side `width`.
struct Rectangle {
  index_t length, width;
  double* columns;  ///< (width, length): a row for each column of A; then R and the reflections
  double* tau;      ///< (width)
  double* norms;    ///< (width): of columns, then of the rows of `rows`: the singular values
  double* one;      ///< (length): one vector
  double* rows;     ///< (width, width): R, then the vectors of the shorter side
  double* turns;    ///< (width, width): the rotations; nullptr: no vectors are wanted
  index_t* order;   ///< (width): the columns of A, in the order of R's

  static size_t numbers(index_t length, index_t width, bool with_vectors) {
    const size_t l = static_cast<size_t>(length), w = static_cast<size_t>(width);
    return l * w + l + 3 * w + w * w * (with_vectors ? 2 : 1);
  }
  Rectangle(index_t length, index_t width, double* numbers, bool with_vectors)
      : length(length),
        width(width),
        columns(numbers),
        tau(columns + width * length),
        norms(tau + width),
        one(norms + width),
        rows(one + length),
        turns(with_vectors ? rows + width * width : nullptr) {
    static_assert(sizeof(index_t) <= sizeof(double));
    void* const last = rows + width * width * (with_vectors ? 2 : 1);
    order = static_cast<index_t*>(last);
  }

  template <class T>
  Scaled load(const Matrix<const T>& from) const {
    for (index_t j = 0; j < width; ++j)
      for (index_t i = 0; i < length; ++i)
        columns[j * length + i] = static_cast<double>(*from.at(i, j));
    return scale(columns, width * length);
  }

  // ---- A = Q R, where the largest column that is left comes next ----

  void exchange_columns(index_t j, index_t k) const {
    if (j == k) return;
    portable::exchange_rows(columns + j * length, columns + k * length, length);
    exchange(norms[j], norms[k]);
    exchange(order[j], order[k]);
  }
  /// Writes R to `rows`, its columns in the order of A's. Leaves the reflections in `columns`.
  void make_triangular() const {
    fill(rows, width * width, 0.0);
    for (index_t j = 0; j < width; ++j)
      order[j] = j, norms[j] = dot(columns + j * length, columns + j * length, length);
    for (index_t k = 0; k < width; ++k) {
      exchange_columns(largest_norm(k), k);
      double* const v = columns + k * length + k;
      const Reflection h = make_reflection(v, length - k);
      tau[k] = h.tau;
      rows[k * width + order[k]] = h.first;
      for (index_t j = k + 1; j < width; ++j) {
        double* const rest = columns + j * length + k;
        reflect(h.tau, v, rest, length - k);
        norms[j] = dot(rest + 1, rest + 1, length - k - 1);
      }
    }
    for (index_t j = 0; j < width; ++j)  // later exchanges moved what lies above the diagonal
      for (index_t k = 0; k < j; ++k) rows[k * width + order[j]] = columns[j * length + k];
  }
  index_t largest_norm(index_t from) const {
    index_t best = from;
    for (index_t k = from + 1; k < width; ++k)
      if (norms[k] > norms[best]) best = k;
    return best;
  }

  // ---- rotations ----

  double* row(index_t k) const { return rows + k * width; }
  double* turn(index_t k) const { return turns + k * width; }
  void exchange_both(index_t p, index_t q) const {
    if (p == q) return;
    portable::exchange_rows(row(p), row(q), width);
    if (turns != nullptr) portable::exchange_rows(turn(p), turn(q), width);
    exchange(norms[p], norms[q]);
  }
  void set_norm(index_t k, double norm) const {
    norms[k] = norm;
    if (norm >= least_norm) return;
    fill(row(k), width, 0.0);
    norms[k] = 0;
  }
  /// Makes rows p and q orthogonal, and row p the longer one. Returns whether a rotation was
  /// needed.
  bool make_orthogonal(index_t p, index_t q, double tolerance) const {
    if (norms[p] < norms[q]) exchange_both(p, q);
    if (norms[q] == 0) return false;
    double *const x = row(p), *const y = row(q);
    const double per_x = 1 / norms[p], per_y = 1 / norms[q];
    const double cosine =
        sum_of<double>(width, [=](index_t i) { return (x[i] * per_x) * (y[i] * per_y); });
    if (std::fabs(cosine) <= tolerance) return false;
    // the tangent of the smaller angle that makes them orthogonal
    const double zeta = (norms[q] * per_x - norms[p] * per_y) / (2 * cosine);
    const double size = std::fabs(zeta);
    const double t =
        (zeta < 0 ? -1 : 1) / (size > 1e8 ? 2 * size : size + std::sqrt(1 + size * size));
    const double c = 1 / std::sqrt(1 + t * t), s = c * t;
    rotate(x, y, width, c, s);
    if (turns != nullptr) rotate(turn(p), turn(q), width, c, s);
    const auto norm_after = [&](const double* z, double before, double per) {
      return before * std::sqrt(sum_of<double>(width, [=](index_t i) {
               const double scaled = z[i] * per;
               return scaled * scaled;
             }));
    };
    set_norm(p, norm_after(x, norms[p], per_x));
    set_norm(q, norm_after(y, norms[q], per_y));
    return true;
  }
  void measure() const {
    for (index_t k = 0; k < width; ++k) set_norm(k, norm_of_row(row(k), width));
  }
  /// Makes all rows orthogonal to each other, and sorts them: the longest comes first.
  void make_orthogonal() const {
    const double tolerance = epsilon * std::sqrt(static_cast<double>(width));
    if (turns != nullptr) make_identity(turns, width);
    bool rotated = true;
    for (int sweep = 0; rotated && sweep < most_sweeps; ++sweep) {
      measure();
      rotated = false;
      for (index_t p = 0; p < width; ++p)
        for (index_t q = p + 1; q < width; ++q) rotated |= make_orthogonal(p, q, tolerance);
    }
    measure();
    for (index_t k = 0; k < width; ++k) exchange_both(k, largest_norm(k));
  }

  // ---- vectors ----

  /// A unit vector that is orthogonal to rows [0, k), which are unit vectors, too.
  void complete_row(index_t k) const {
    double* const x = row(k);
    fill(x, width, 0.0);
    for (index_t i = 0; i < k; ++i)
      for (index_t j = 0; j < width; ++j) x[j] += row(i)[j] * row(i)[j];
    index_t farthest = 0;  // the axis of which the rows hold the smallest part
    for (index_t j = 1; j < width; ++j)
      if (x[j] < x[farthest]) farthest = j;
    fill(x, width, 0.0);
    x[farthest] = 1;
    for (int twice = 0; twice < 2; ++twice)
      for (index_t i = 0; i < k; ++i) add_scaled(-dot(row(i), x, width), row(i), x, width);
    const double norm = norm_of_row(x, width);
    for (index_t j = 0; j < width; ++j) x[j] /= norm;
  }
  /// Makes unit vectors of the rows.
  void normalize() const {
    for (index_t k = 0; k < width; ++k) {
      if (norms[k] == 0) {
        complete_row(k);
        continue;
      }
      for (index_t j = 0; j < width; ++j) row(k)[j] /= norms[k];
    }
  }
  /// Vector k of the longer side. The one that belongs to no singular value is a column of Q.
  const double* long_vector(index_t k) const {
    fill(one, length, 0.0);
    if (k < width)
      for (index_t j = 0; j < width; ++j) one[j] = turn(k)[j];
    else
      one[k] = 1;
    for (index_t j = width - 1; j >= 0; --j)
      reflect(tau[j], columns + j * length + j, one + j, length - j);
    return one;
  }
};

template <class T>
Error prepare(Context& context, Walk& plan, AnyView<const T> a, bool, bool compute_uv,
              Maybe<std::string_view>, View<T>, View<T> s, View<T>) {
  Shape matrices = a.shape();
  matrices.make_dense();
  plan = walk_of_matrices(a.shape(), matrices);
  const index_t m = a.size(-2), n = a.size(-1);
  need_numbers(context, matrix_count(s.shape(), 1),
               Rectangle::numbers(m < n ? n : m, m < n ? m : n, compute_uv));
  return Error::ok;
}

template <class T>
Error run(Context& context, const Walk& plan, AnyView<const T> a, bool full_matrices,
          bool compute_uv, Maybe<std::string_view>, View<T> u, View<T> s, View<T> vh) {
  const index_t m = a.size(-2), n = a.size(-1);
  const bool wide = m < n;
  const index_t length = wide ? n : m, width = wide ? m : n;
  const index_t long_vectors = full_matrices ? length : width;
  const index_t results = s.numel() + (compute_uv ? u.numel() + vh.numel() : 0);
  const index_t count = results == 0 ? 0 : matrix_count(s.shape(), 1);
  const size_t each = Rectangle::numbers(length, width, compute_uv);
  for_each_matrix(context, count, each, [&](index_t matrix, double* numbers) {
    const Rectangle r(length, width, numbers, compute_uv);
    T* const values = s.data() + matrix * width;
    const index_t u_size = m * (wide ? width : long_vectors),
                  vh_size = n * (wide ? long_vectors : width);
    // vectors of U are columns, those of Vh are rows
    const Matrix<T> u_vectors{compute_uv ? u.data() + matrix * u_size : nullptr, 1,
                              wide ? width : long_vectors};
    const Matrix<T> vh_vectors{compute_uv ? vh.data() + matrix * vh_size : nullptr, n, 1};
    Matrix<const T> from = matrix_at(a, plan.offset_of(matrix));
    if (wide) from = transposed(from);
    const Scaled scaled = r.load(from);
    if (!scaled.finite) {
      fill_with_nan(values, width);
      if (compute_uv)
        fill_with_nan(u_vectors.data, u_size), fill_with_nan(vh_vectors.data, vh_size);
      return;
    }
    r.make_triangular();
    r.make_orthogonal();
    for (index_t k = 0; k < width; ++k)
      values[k] = static_cast<T>(std::ldexp(r.norms[k], scaled.exponent));
    if (!compute_uv) return;
    r.normalize();
    const auto write = [](const Matrix<T>& to, index_t k, const double* vector, index_t size) {
      for (index_t i = 0; i < size; ++i) *to.at(k, i) = static_cast<T>(vector[i]);
    };
    for (index_t k = 0; k < width; ++k) write(wide ? u_vectors : vh_vectors, k, r.row(k), width);
    for (index_t k = 0; k < long_vectors; ++k)
      write(wide ? vh_vectors : u_vectors, k, r.long_vector(k), length);
  });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(_linalg_svd, f32, prepare<float>, run<float>)
TAPER_KERNEL(_linalg_svd, f64, prepare<double>, run<double>)

}  // namespace taper::portable
