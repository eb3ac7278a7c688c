// Elements for tests of sizes around the blocks in which kernels work: small whole numbers, whose
// sums and products every dtype holds, so that a result is right to the bit or wrong.
#pragma once
#include <cmath>

#include "taper/tests/kernels/eager_check.h"

namespace taper::eager {

/// Whole numbers in [-most, most], without a pattern that a block could repeat.
inline Tensor whole_numbers(const Ints& sizes, DType dtype = DType::f32, int64_t most = 4,
                            uint32_t seed = 1) {
  size_t count = 1;
  for (const int64_t n : sizes) count *= static_cast<size_t>(n);
  std::vector<float> values(count);
  uint32_t state = seed * 2654435761u;
  for (float& v : values) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(
        static_cast<int64_t>((state >> 8) % static_cast<uint32_t>(2 * most + 1)) - most);
  }
  return Tensor::from(values, sizes).to(dtype);
}
inline std::vector<double> elements(const Tensor& t) {
  return contiguous(t.detach().to(DType::f64)).to_vector<double>();
}
/// Every element is the wanted one, rounded to the dtype of `got`.
inline void expect_elements(const Tensor& got, const std::vector<double>& want) {
  const std::vector<double> a = elements(got);
  ASSERT_EQ(a.size(), want.size());
  const std::vector<double> b =
      elements(Tensor::from(want, {static_cast<int64_t>(want.size())}).to(got.dtype()));
  for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i], b[i]) << "at " << i << " of " << a.size();
}
/// Every element within `tolerance` of the wanted one, relative to numbers above 1.
inline void expect_close(const Tensor& got, const std::vector<double>& want, double tolerance) {
  const std::vector<double> a = elements(got);
  ASSERT_EQ(a.size(), want.size());
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], want[i], tolerance * std::max(1.0, std::fabs(want[i])))
        << "at " << i << " of " << a.size();
}

}  // namespace taper::eager
