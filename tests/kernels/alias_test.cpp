// Operators in terms of others, for which PyTorch's goldens have no cases: its results stand here.
#include <cmath>

#include "taper/exporter/eager/ops/distance.h"
#include "taper/tests/kernels/eager_check.h"

namespace taper::eager {
namespace {

const double inf = INFINITY;

/// Equal, NaN included, up to a few last digits.
void expect(const Tensor& got, const std::vector<double>& want) {
  const std::vector<double> values = got.to(DType::f64).to_vector<double>();
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i]) || std::isinf(want[i]))
      EXPECT_TRUE(values[i] == want[i] || (std::isnan(values[i]) && std::isnan(want[i]))) << i;
    else
      EXPECT_NEAR(values[i], want[i], 1e-7 * std::fabs(want[i])) << i;
  }
}
Tensor special() { return Tensor::from<double>({1.5, -2, 0, inf, NAN}, {5}); }

TEST(deg2rad, and_rad2deg_scale) {
  expect(deg2rad(special()), {0.026179938779914945, -0.03490658503988659, 0, inf, NAN});
  expect(rad2deg(special()), {85.94366926962348, -114.59155902616465, 0, inf, NAN});
  EXPECT_EQ(deg2rad(ones({2}, DType::i32)).dtype(), DType::f32);
}
TEST(isfinite, is_false_for_infinities_and_nan) {
  EXPECT_EQ(to(isfinite(special()), DType::u8).to_vector<uint8_t>(),
            (std::vector<uint8_t>{1, 1, 1, 0, 0}));
  EXPECT_EQ(sum(isfinite(ones({3}, DType::i64))).item<int64_t>(), 3);
}
TEST(copysign, takes_the_sign_of_a_number) {
  expect(copysign(special(), -2), {-1.5, -2, -0.0, -inf, NAN});
  EXPECT_TRUE(std::signbit(copysign(zeros({1}), -0.0).item()));
}
TEST(xlogy, takes_a_number) {
  expect(xlogy(special(), 3), {1.6479184330021646, -2.1972245773362196, 0, inf, NAN});
}
TEST(float_power, computes_in_f64) {
  const Tensor x = Tensor::from<int64_t>({2, 3}, {2});
  const Tensor y = float_power(x, Tensor::from<float>({0.5, -1}, {2}));
  EXPECT_EQ(y.dtype(), DType::f64);
  EXPECT_NEAR(y[0].item(), 1.4142135623730951, 1e-15);
  expect(float_power(2, Tensor::from<int64_t>({3, -1}, {2})), {8, 0.5});
}
TEST(diff, subtracts_neighbours_n_times) {
  EXPECT_EQ(diff(Tensor::from<int64_t>({1, 4, 9, 16}, {4}), 2).to_vector<int64_t>(),
            (std::vector<int64_t>{2, 2}));
  const Tensor x = Tensor::from<float>({1, 4, 2, 8}, {2, 2});
  expect(diff(x, 1, 0, zeros({1, 2}), ones({1, 2})), {1, 4, 1, 4, -1, -7});
  expect(diff(Tensor::from<int64_t>({1, 0, 0}, {3}).to(DType::boolean)), {1, 0});
  EXPECT_EQ(to_string(diff(ones({2}), 5).sizes()), "(0)");
  EXPECT_THROW(diff(ones({2}), -1), EagerError);
}
TEST(clamp_min, of_a_tensor_shares_the_gradient_of_equal_elements) {
  const Tensor x = Tensor::from<float>({1, 2, 3}, {3}).set_requires_grad(),
               low = full({3}, 2.0).set_requires_grad();
  sum(clamp_min(x, low)).backward();
  expect(x.grad(), {0, 0.5, 1});
  expect(low.grad(), {1, 0.5, 0});
  expect(clamp_max(x, low), {1, 2, 2});
  expect(clip(x, full({3}, 1.5), full({3}, 2.5)), {1.5, 2, 2.5});
}
TEST(pairwise_distance, is_the_norm_of_the_difference) {
  const Tensor a = Tensor::from<float>({1, 2, 3, 5}, {2, 2}),
               b = Tensor::from<float>({1, 0, 0, 1}, {2, 2});
  expect(pairwise_distance(a, b, 1, 0), {2, 7});
  const Tensor kept = pairwise_distance(a, b, 2, 1e-6, true);
  expect(kept, {2.0000009536743164, 5.000001430511475});
  EXPECT_EQ(to_string(kept.sizes()), "(2, 1)");
}
TEST(broadcast_to, and_reshape_as_change_sizes) {
  EXPECT_EQ(to_string(broadcast_to(ones({3, 1}), {2, 3, 4}).sizes()), "(2, 3, 4)");
  EXPECT_EQ(to_string(reshape_as(ones({2, 6}), ones({3, 4})).sizes()), "(3, 4)");
}
TEST(empty_permuted, has_the_sizes_asked_for) {
  const auto make = [](const Ints& order) {
    return call<ops::empty_permuted>(Location::current(), Dims{2, 3}, order, DType::i32);
  };
  EXPECT_EQ(to_string(make({1, 0}).sizes()), "(2, 3)");
  EXPECT_EQ(make({1, 0}).dtype(), DType::i32);
  EXPECT_THROW(make({1, 1}), EagerError);
}

}  // namespace
}  // namespace taper::eager
