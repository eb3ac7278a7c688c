// Matrices that are easy and hard to decompose, and comparisons, for the tests of matrices.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "taper/tests/kernels/eager_check.h"

namespace taper::eager {

inline Tensor matrix(const std::vector<double>& elements, int64_t rows) {
  return Tensor::from<double>(elements, {rows, static_cast<int64_t>(elements.size()) / rows});
}
inline Tensor some_square() { return matrix({0.5, -1.5, 2, 3, 0.25, -1, -2, 1.75, 4}, 3); }
inline Tensor some_right() { return matrix({1, 2, -3, 0.5, 0.25, 4}, 3); }
inline Tensor some_tall() { return cat({some_square(), matrix({1, 2, 3}, 1)}); }
inline Tensor some_wide() { return cat({some_square(), some_right()}, 1); }
/// Rank 2.
inline Tensor some_deficient() { return matrix({1, 2, 3, 2, 4, 6, 1, 0, 1, 0, 2, 2}, 4); }

inline double distance(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(to_string(a.sizes()), to_string(b.sizes()));
  EXPECT_EQ(a.dtype(), b.dtype());
  return a.numel().value() == 0 ? 0 : max(abs(a - b)).item();
}
inline double largest(const Tensor& a) { return a.numel().value() == 0 ? 0 : max(abs(a)).item(); }
/// The root of the sum of squares, without overflow.
inline double size_of(const Tensor& a) {
  const double scale = largest(a);
  return scale == 0 ? 0 : scale * vector_norm(a / scale).item();
}
inline void expect_values(const Tensor& got, const std::vector<double>& want,
                          double tolerance = 1e-12) {
  const std::vector<double> elements = contiguous(got.to(DType::f64)).to_vector<double>();
  ASSERT_EQ(elements.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(elements[i], want[i], tolerance * (1 + std::fabs(want[i]))) << i;
}
inline bool all_nan(const Tensor& t) { return all(isnan(t)).item() != 0; }

struct Named {
  std::string name;
  Tensor matrix;
};
/// Square matrices of f64 on which decompositions fail that are not careful.
inline std::vector<Named> hard_matrices(int64_t n) {
  const Tensor random = random_tensor({n, n}, n, DType::f64),
               other = random_tensor({n, n}, n + 1, DType::f64);
  const Tensor place = arange(static_cast<double>(n), DType::f64) / std::max<double>(1, n - 1);
  const auto powers = [&](double from, double to) {
    return pow(full({}, 10.0, DType::f64), place * (to - from) + from);
  };
  const Tensor orthogonal = std::get<0>(linalg_qr(random)), identity = eye(n, DType::f64);
  const Tensor line = arange(static_cast<double>(n), DType::f64);
  const Tensor shifted =
      n > 1 ? constant_pad_nd(eye(n - 1, DType::f64), {1, 0, 0, 1}) : identity * 0;
  return {
      {"random", random},
      {"Hilbert", reciprocal(unsqueeze(line, 0) + unsqueeze(line, 1) + 1)},
      {"zero", identity * 0},
      {"one", identity},
      {"equal", ones({n, n}, DType::f64)},
      {"rank one", matmul(narrow(random, 1, 0, 1), narrow(other, 0, 0, 1))},
      {"half rank", matmul(narrow(random, 1, 0, (n + 1) / 2), narrow(other, 0, 0, (n + 1) / 2))},
      {"graded rows", random * unsqueeze(powers(-30, 30), 1)},
      {"graded columns", random * unsqueeze(powers(-30, 30), 0)},
      {"graded", random * unsqueeze(powers(-15, 15), 1) * unsqueeze(powers(-15, 15), 0)},
      {"graded by a similar one",
       random * unsqueeze(powers(-8, 8), 1) * unsqueeze(powers(8, -8), 0)},
      {"near singular", matmul(matmul(orthogonal, diag_embed(powers(0, -18))), orthogonal)},
      {"cluster", matmul(orthogonal * unsqueeze(line * 1e-15 + 1, 0), mT(orthogonal))},
      {"Jordan", identity * 3 + shifted},
      {"nilpotent", shifted},
      {"cycle", roll(identity, {1}, {0})},
      {"orthogonal", orthogonal},
      {"skew", random - mT(random)},
      {"lower", tril(random)},
      {"upper", triu(random)},
      {"huge", random * 1e300},
      {"tiny", random * 1e-300},
      {"of denormals", random * 1e-310},
  };
}

}  // namespace taper::eager
