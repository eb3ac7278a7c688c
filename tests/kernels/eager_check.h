// What tests of kernels share: kernels are called through eager, as users do.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "taper/exporter/eager/eager.h"

namespace taper::eager {

inline Tensor random_tensor(const Ints& sizes, int64_t seed = 1, DType dtype = DType::f32) {
  Generator generator(seed);
  return randn(Dims(sizes.begin(), sizes.end()), dtype, generator);
}
/// The same elements in memory with gaps and in another order.
inline Tensor scattered(const Tensor& x) {
  if (x.rank() == 0) return x;
  Dims wide = x.sizes();
  std::reverse(wide.begin(), wide.end());
  wide[0] = wide[0] * 2;
  Tensor base = zeros(wide, x.dtype());
  Ints back(wide.size());
  for (size_t i = 0; i < back.size(); ++i) back[i] = static_cast<int64_t>(back.size() - 1 - i);
  Tensor view = permute(slice(base, 0, 0, INT64_MAX, 2), back);
  view.copy_(x);
  return view;
}
inline std::vector<std::byte> bytes_of(const Tensor& t) {
  const Tensor dense = contiguous(t);
  const std::byte* first = static_cast<const std::byte*>(dense.ref().data);
  return {first, first + dense.ref().size_bytes()};
}
inline void expect_same_bits(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(to_string(a.sizes()), to_string(b.sizes()));
  EXPECT_EQ(a.dtype(), b.dtype());
  EXPECT_TRUE(bytes_of(a) == bytes_of(b));
}
/// Runs `body` with one and with two threads and expects the same bits.
template <class F>
void expect_same_bits_with_two_threads(const F& body) {
  set_threads(1);
  const Tensor one = body();
  set_threads(2);
  expect_same_bits(one, body());
}

/// Compares first and second derivatives of `function` at `inputs` (f64) with central differences.
inline void expect_right_derivatives(
    const std::function<Tensor(const std::vector<Tensor>&)>& function,
    const std::vector<Tensor>& inputs) {
  for (const Tensor& t : inputs) t.set_requires_grad();
  EXPECT_EQ(gradcheck(function, inputs), "");
  EXPECT_EQ(gradgradcheck(function, inputs), "");
}

}  // namespace taper::eager
