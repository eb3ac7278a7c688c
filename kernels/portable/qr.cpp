// A = Q R by Householder's reflections H = I - tau v v^T (Golub and Van Loan, "Matrix
// computations", 5.2.2). Signs are those of LAPACK: an element of R's diagonal has the opposite
// sign of the first element of the column that is reflected.
#include <cmath>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/matrices.h"
#include "taper/kernels/shapes/linalg.h"

namespace taper::portable {
namespace {

/// At most so many matrices are factored at the same time. Each has a copy of its own.
constexpr index_t most_slots = 16;
/// Columns that one task reflects. Work on fewer than `grain` elements is one task.
constexpr index_t strip = 32;
constexpr index_t grain = 16384;

/// A dense copy (m, n). It becomes R on and above its diagonal, and below it the vectors v of the
/// reflections without their first element, which is 1.
template <class T>
struct Reflections {
  T *a, *tau;
  index_t m, n;
  index_t count() const { return m < n ? m : n; }
  static index_t elements(index_t m, index_t n) { return m * n + (m < n ? m : n); }

  /// Factors a matrix (m, n).
  void factor(const Threads* threads, const Matrix<const T>& from) const {
    for (index_t i = 0; i < m; ++i)
      for (index_t j = 0; j < n; ++j) a[i * n + j] = *from.at(i, j);
    for (index_t k = 0; k < count(); ++k) make(k), apply(threads, k, a, n, k + 1, n);
  }

  /// Computes reflection k, which maps column k to a multiple of the unit vector.
  void make(index_t k) const {
    T* const x = a + k * n + k;
    // divides by the largest element, so that squares stay finite
    T largest = 0;
    for (index_t i = 1; i < m - k; ++i) {
      const T size = std::fabs(x[i * n]);
      if (!(size <= largest)) largest = size;
    }
    tau[k] = 0;
    if (largest == 0) return;  // the column is a multiple already
    if (std::fabs(x[0]) > largest) largest = std::fabs(x[0]);
    const T norm = largest * std::sqrt(sum_of<T>(m - k, [=](index_t i) {
                     const T scaled = x[i * n] / largest;
                     return scaled * scaled;
                   }));
    const T alpha = x[0], beta = alpha < 0 ? norm : -norm;
    tau[k] = (beta - alpha) / beta;
    for (index_t i = 1; i < m - k; ++i) x[i * n] /= alpha - beta;
    x[0] = beta;
  }

  /// Applies reflection k to the rows from k on of columns [begin, end) of y, one strip of columns
  /// at a time.
  void apply(const Threads* threads, index_t k, T* y, index_t row, index_t begin,
             index_t end) const {
    const T scale = tau[k];
    if (scale == 0) return;
    const T* const v = a + k * n + k;
    const index_t strips = pieces(end - begin, strip);
    parallel_for((m - k) * (end - begin) < grain ? nullptr : threads, strips, [&](index_t task) {
      const index_t first = begin + task * strip;
      const index_t width = end - first < strip ? end - first : strip;
      T* const to = y + k * row + first;
      const auto columns = [&](auto full) {
        const index_t many = full.value ? strip : width;
        T sum[strip];
        for (index_t c = 0; c < many; ++c) sum[c] = to[c];
        for (index_t i = 1; i < m - k; ++i)
          for (index_t c = 0; c < many; ++c) sum[c] += v[i * n] * to[i * row + c];
        for (index_t c = 0; c < many; ++c) sum[c] *= scale, to[c] -= sum[c];
        for (index_t i = 1; i < m - k; ++i)
          for (index_t c = 0; c < many; ++c) to[i * row + c] -= v[i * n] * sum[c];
      };
      width == strip ? columns(std::true_type{}) : columns(std::false_type{});
    });
  }
};

/// The first `columns` columns of the product of all reflections: (m, columns).
template <class T>
void write_q(const Threads* threads, const Reflections<T>& h, T* q, index_t columns) {
  for (index_t i = 0; i < h.m; ++i)
    for (index_t j = 0; j < columns; ++j) q[i * columns + j] = i == j ? T(1) : T(0);
  // columns before k are still those of the identity, and reflection k does not change them
  for (index_t k = h.count() - 1; k >= 0; --k) h.apply(threads, k, q, columns, k, columns);
}

struct Plan {
  Walk a;
  index_t slots;
};

template <class T>
Error prepare(Context& context, Plan& plan, AnyView<const T> a, std::string_view, View<T>,
              View<T> r) {
  const index_t count = matrix_count(a.shape());
  plan = {walk_of_matrices(a.shape(), r.shape()), count < most_slots ? count : most_slots};
  context.need_scratch(static_cast<size_t>(plan.slots) *
                       static_cast<size_t>(Reflections<T>::elements(a.size(-2), a.size(-1))) *
                       sizeof(T));
  return Error::ok;
}

template <class T>
Error run(Context& context, const Plan& plan, AnyView<const T> a, std::string_view mode, View<T> q,
          View<T> r) {
  const index_t m = a.size(-2), n = a.size(-1), kept = r.size(-2);
  const index_t count = matrix_count(a.shape());
  const Threads* const threads = inner_threads(context, count);
  parallel_for(outer_threads(context, count), plan.slots, [&](index_t slot) {
    T* const copy = static_cast<T*>(context.scratch) + slot * Reflections<T>::elements(m, n);
    const Reflections<T> h{copy, copy + m * n, m, n};
    for (index_t matrix = slot; matrix < count; matrix += plan.slots) {
      h.factor(threads, matrix_at(a, plan.a.offset_of(matrix)));
      T* const upper = r.data() + matrix * kept * n;
      for (index_t i = 0; i < kept; ++i)
        for (index_t j = 0; j < n; ++j) upper[i * n + j] = j < i ? T(0) : h.a[i * n + j];
      if (mode != "r") write_q(threads, h, q.data() + matrix * m * kept, kept);
    }
  });
  return Error::ok;
}

template <class T>
Error prepare_reflections(Context&, Walk& walk, AnyView<const T> self, View<T> a, View<T>) {
  walk = walk_of_matrices(self.shape(), a.shape());
  return Error::ok;
}

template <class T>
Error run_reflections(Context& context, const Walk& walk, AnyView<const T> self, View<T> a,
                      View<T> tau) {
  const index_t m = a.size(-2), n = a.size(-1), k = tau.size(-1);
  const index_t count = matrix_count(a.shape());
  parallel_for(outer_threads(context, count), count, [&](index_t matrix) {
    const Reflections<T> h{a.data() + matrix * m * n, tau.data() + matrix * k, m, n};
    h.factor(inner_threads(context, count), matrix_at(self, walk.offset_of(matrix)));
  });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(linalg_qr, f32, prepare<float>, run<float>)
TAPER_KERNEL(linalg_qr, f64, prepare<double>, run<double>)
TAPER_KERNEL(geqrf, f32, prepare_reflections<float>, run_reflections<float>)
TAPER_KERNEL(geqrf, f64, prepare_reflections<double>, run_reflections<double>)

}  // namespace taper::portable
