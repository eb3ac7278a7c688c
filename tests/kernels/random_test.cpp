#include "eager_check.h"

namespace taper::eager {
namespace {

TEST(rand, lies_in_zero_to_one_with_the_right_mean) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    Generator generator(7);
    const Tensor x = rand({100000}, dtype, generator).to(DType::f64);
    EXPECT_GE(amin(x).item(), 0) << name_of(dtype);
    EXPECT_LT(amax(x).item(), 1) << name_of(dtype);
    EXPECT_NEAR(mean(x).item(), 0.5, 0.005) << name_of(dtype);
  }
}
TEST(randn, has_mean_zero_and_deviation_one) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor x = to(random_tensor({100000}, 3, dtype), DType::f64);
    EXPECT_NEAR(mean(x).item(), 0, 0.015);
    EXPECT_NEAR(std(x).item(), 1, 0.015);
  }
}
TEST(random_stream, is_a_function_of_seed_and_position) {
  Generator a(5), b(5);
  const Tensor first = rand({6}, DType::f32, a), second = rand({6}, DType::f32, a);
  expect_same_bits(first, rand({6}, DType::f32, b));
  EXPECT_EQ(a.state().to_vector<int64_t>(),
            (std::vector<int64_t>{5, 4}));  // groups of four: two for six elements
  EXPECT_FALSE(bytes_of(first) == bytes_of(second));
  b.seed(5);
  expect_same_bits(first, rand({6}, DType::f32, b));
}
TEST(random_stream, does_not_depend_on_the_number_of_threads) {
  expect_same_bits_with_two_threads([] { return random_tensor({200001}); });
}
TEST(dropout, keeps_the_mean_and_passes_gradients_where_it_keeps) {
  Generator generator(2);
  const Tensor x = ones({50000});
  x.set_requires_grad();
  const Tensor y = dropout(x, 0.25, true, generator);
  EXPECT_NEAR(mean(y).item(), 1, 0.02);
  sum(y).backward();
  expect_same_bits(x.grad(), y.detach());
  EXPECT_TRUE(dropout(x, 0.25, false, generator).is_same(x));
}

}  // namespace
}  // namespace taper::eager
