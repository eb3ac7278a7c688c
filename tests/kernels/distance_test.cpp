#include "taper/exporter/eager/ops/distance.h"

#include <cmath>

#include "taper/tests/kernels/eager_check.h"

namespace taper::eager {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(cdist, is_the_norm_of_every_difference) {
  for (const int64_t m : {0, 1, 7, 8, 37}) {
    const Tensor x = random_tensor({2, 1, 5, m}, 1, DType::f64),
                 y = random_tensor({3, 4, m}, 2, DType::f64);
    const Tensor difference = unsqueeze(x, -2) - unsqueeze(y, -3);
    for (const double p : {0.0, 0.5, 1.0, 2.0, 3.0, infinity}) {
      if (m == 0 && p == infinity) continue;  // the norm of nothing
      const Tensor want = vector_norm(difference, p, {-1});
      EXPECT_LE(m == 0 ? 0 : max(abs(cdist(x, y, p) - want)).item(), 1e-12) << p << " " << m;
      EXPECT_EQ(to_string(cdist(x, y, p).sizes()), "(2, 3, 5, 4)");
    }
  }
}
// The numbers are PyTorch's.
TEST(cdist, keeps_nan_but_for_order_infinity) {
  for (const int64_t n : {3, 8, 20}) {
    const Tensor x = zeros({1, n}), y = arange(n).to(DType::f32).reshape({1, n}).clone();
    y.slice(1, n - 1, n).fill_(NAN);
    for (const double p : {0.0, 0.5, 1.0, 2.0, 3.0}) {
      EXPECT_TRUE(std::isnan(cdist(x, y, p, 2).item())) << p;
      EXPECT_TRUE(std::isnan(pdist(cat({x, y}, 0), p).item())) << p;
    }
    EXPECT_EQ(cdist(x, y, infinity).item(), n - 2);
    EXPECT_TRUE(std::isnan(pdist(cat({x, y}, 0), infinity).item()));
  }
}
// The numbers are PyTorch's.
TEST(cdist, has_a_gradient_of_nan_where_the_difference_is_none) {
  const auto gradient = [](std::vector<float> x, std::vector<float> y, double p) {
    const Tensor a = Tensor::from<float>(x, {1, 2}).set_requires_grad();
    return grad({sum(cdist(a, Tensor::from<float>(y, {1, 2}), p))}, {a})[0].to_vector<float>();
  };
  for (const double p : {1.0, infinity}) {
    const std::vector<float> nan = gradient({NAN, 2}, {1, 0}, p),
                             none = gradient({INFINITY, 0}, {INFINITY, 1}, p);
    EXPECT_TRUE(std::isnan(nan[0]) && std::isnan(none[0]));
    EXPECT_EQ(nan[1], 1);
    EXPECT_EQ(none[1], -1);
  }
  EXPECT_EQ(gradient({NAN, 2}, {1, 0}, 0), (std::vector<float>{0, 0}));
  EXPECT_EQ(gradient({INFINITY, 0}, {0, 0}, 1), (std::vector<float>{1, 0}));
  const std::vector<float> infinite = gradient({INFINITY, 0}, {0, 0}, infinity);
  EXPECT_TRUE(std::isnan(infinite[0]));
  EXPECT_EQ(infinite[1], 0);
}
TEST(cdist, by_matrix_products_is_near_to_the_direct_one) {
  const Tensor x = random_tensor({30, 6}, 1, DType::f64), y = random_tensor({40, 6}, 2, DType::f64);
  EXPECT_LE(max(abs(cdist(x, y) - cdist(x, y, 2, 2))).item(), 1e-12);
  EXPECT_LE(max(abs(cdist(x, x, 2, 1))).item(), max(cdist(x, x, 2, 2)).item() + 1e-12);
}
TEST(cdist, is_differentiable_twice) {
  for (const double p : {1.5, 2.0, 3.0})
    expect_right_derivatives(
        [&](const std::vector<Tensor>& v) { return sum(pow(cdist(v[0], v[1], p), 2)); },
        {random_tensor({2, 3, 4}, 1, DType::f64), random_tensor({5, 4}, 2, DType::f64)});
}
TEST(cdist, has_a_gradient_of_zero_at_equal_vectors) {
  for (const double p : {1.0, 1.5, 2.0, 3.0, infinity})
    for (const int64_t mode : {1, 2}) {
      const Tensor x = ones({2, 3}).set_requires_grad();
      sum(cdist(x, ones({2, 3}), p, mode)).backward();
      EXPECT_EQ(max(abs(x.grad())).item(), 0) << p << " " << mode;
    }
}
TEST(cdist, does_not_depend_on_strides_or_threads) {
  const Tensor x = random_tensor({70, 90}, 1), y = random_tensor({50, 90}, 2);
  expect_same_bits(cdist(scattered(x), scattered(y), 2, 2), cdist(x, y, 2, 2));
  expect_same_bits_with_two_threads([&] { return cdist(x, y, 3); });
  expect_same_bits_with_two_threads([&] { return pdist(x, 2); });
}
TEST(cdist, says_what_does_not_fit) {
  EXPECT_THROW(cdist(ones({2, 3}), ones({2, 4})), EagerError);
  EXPECT_THROW(cdist(ones({2, 3}), ones({2, 3}), -1), EagerError);
  EXPECT_THROW(cdist(ones({3}), ones({2, 3})), EagerError);
}

TEST(pdist, is_the_upper_triangle_of_cdist) {
  const Tensor x = random_tensor({9, 5}, 1, DType::f64), all = cdist(x, x, 3);
  const Tensor pairs = triu_indices(9, 9, 1);
  const std::vector<int64_t> at = pairs.to_vector<int64_t>();
  const std::vector<double> got = pdist(x, 3).to_vector<double>(), want = all.to_vector<double>();
  ASSERT_EQ(got.size(), 36u);
  for (size_t k = 0; k < got.size(); ++k)
    EXPECT_EQ(got[k], want[static_cast<size_t>(at[k] * 9 + at[36 + k])]);
  EXPECT_EQ(to_string(pdist(ones({1, 4})).sizes()), "(0)");
  EXPECT_EQ(to_string(pdist(ones({0, 4})).sizes()), "(0)");
}

TEST(cosine_similarity, is_differentiable_also_where_eps_is_the_larger) {
  for (const double eps : {1e-8, 10.0}) {
    const Tensor x = random_tensor({2, 4}, 1, DType::f64).set_requires_grad(),
                 y = random_tensor({3, 1, 4}, 2, DType::f64);
    const Tensor c = cosine_similarity(x, y, -1, eps);
    EXPECT_EQ(to_string(c.sizes()), "(3, 2)");
    sum(c).backward();
    EXPECT_GT(max(abs(x.grad())).item(), 0);
  }
}

}  // namespace
}  // namespace taper::eager
