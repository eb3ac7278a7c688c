// The exponential of a matrix, over `Loops` (elements.h). exp(A) = exp(A / 2^s)^(2^s): A is halved
// s times, the series computes the exponential, and the result is squared s times (Higham,
// "Functions of matrices", 10.3). With s so large that the norm of A / 2^s is below 1/2, the terms
// behind A^15 are below 2^-60. Each squaring doubles a relative error, so f32 is computed in f64.
#pragma once
#include <cmath>
#include <limits>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/math.h"
#include "taper/kernels/portable/matrices.h"
#include "taper/kernels/shapes/linalg.h"

namespace taper::portable {

/// At most so many matrices are computed at the same time. Each has scratch of its own.
inline constexpr index_t most_slots = 16;
/// A, its square, cube and fourth power, and two buffers for the series and its squares.
inline constexpr index_t buffers = 6;

/// The largest sum of the absolute values of a row. NaN if there is a NaN.
inline double norm_of(const double* a, index_t n) {
  double norm = 0;
  for (index_t i = 0; i < n; ++i) {
    const double sum = sum_of<double>(n, [=](index_t j) { return std::fabs(a[i * n + j]); });
    if (!(sum <= norm)) norm = sum;
    if (norm != norm) break;
  }
  return norm;
}

template <class Loops>
struct Exponential {
  Context& context;
  index_t n;
  double* a;  ///< `buffers` matrices; the first is the argument
  double* buffer(int i) const { return a + i * n * n; }

  /// out = x y + out if `adds`, else x y.
  void multiply(const double* x, const double* y, double* out, bool adds) const {
    portable::multiply<Loops>(
        context,
        Product<double>{n, n, n, {x, n, 1}, {y, n, 1}, {adds ? out : nullptr, n, 1}, {out, n, 1}});
  }
  /// out = Σ A^k / (first + k)! for k in [0, 4).
  void write_terms(int first, double* out) const {
    double over[4];  // 1 / (first + k)!
    double factorial = 1;
    for (int k = 2; k < first; ++k) factorial *= k;
    for (int k = 0; k < 4; ++k) {
      if (first + k > 1) factorial *= first + k;
      over[k] = 1 / factorial;
    }
    const double *a2 = buffer(1), *a3 = buffer(2);
    for (index_t i = 0; i < n * n; ++i)
      out[i] =
          (i % (n + 1) == 0 ? over[0] : 0) + over[1] * a[i] + (over[2] * a2[i] + over[3] * a3[i]);
  }

  /// Returns where exp(a) lies. Overwrites `a`.
  const double* compute() const {
    double *y = buffer(4), *next = buffer(5);
    const double norm = norm_of(a, n);
    if (!(norm <= std::numeric_limits<double>::max())) {
      for (index_t i = 0; i < n * n; ++i) y[i] = std::numeric_limits<double>::quiet_NaN();
      return y;
    }
    int halvings = 0;
    std::frexp(norm, &halvings);  // norm < 2^halvings
    halvings = halvings + 1 > 0 ? halvings + 1 : 0;
    for (index_t i = 0; i < n * n; ++i) a[i] = std::ldexp(a[i], -halvings);
    multiply(a, a, buffer(1), false);
    multiply(buffer(1), a, buffer(2), false);
    multiply(buffer(1), buffer(1), buffer(3), false);
    write_terms(12, y);
    for (int first = 8; first >= 0; first -= 4) {
      write_terms(first, next);
      multiply(y, buffer(3), next, true);
      exchange(y, next);
    }
    for (int k = 0; k < halvings; ++k) {
      multiply(y, y, next, false);
      exchange(y, next);
    }
    return y;
  }
};

struct ExponentialPlan {
  Walk self;
  index_t slots;
};

template <class T>
Error prepare_exp(Context& context, ExponentialPlan& plan, AnyView<const T> self, View<T> out) {
  const index_t count = matrix_count(self.shape()), n = self.size(-1);
  plan = {walk_of_matrices(self.shape(), out.shape()), count < most_slots ? count : most_slots};
  context.need_scratch(static_cast<size_t>(plan.slots * buffers * n * n) * sizeof(double));
  return Error::ok;
}

template <class T, class Loops = PlainLoops>
Error run_exp(Context& context, const ExponentialPlan& plan, AnyView<const T> self, View<T> out) {
  const index_t count = matrix_count(self.shape()), n = self.size(-1), size = n * n;
  parallel_for(outer_threads(context, count), plan.slots, [&](index_t slot) {
    Context inner = context;
    inner.threads = inner_threads(context, count);
    const Exponential<Loops> exponential{
        inner, n, static_cast<double*>(context.scratch) + slot * buffers * size};
    for (index_t matrix = slot; matrix < count; matrix += plan.slots) {
      const Matrix<const T> from = matrix_at(self, plan.self.offset_of(matrix));
      T* const to = out.data() + matrix * size;
      if (n == 1) {
        *to = math::exp(*from.at(0, 0));
        continue;
      }
      for (index_t i = 0; i < n; ++i)
        for (index_t j = 0; j < n; ++j) exponential.a[i * n + j] = *from.at(i, j);
      const double* const y = exponential.compute();
      for (index_t i = 0; i < size; ++i) to[i] = static_cast<T>(y[i]);
    }
  });
  return Error::ok;
}

}  // namespace taper::portable
