#include <cmath>

#include "eager_check.h"

namespace taper::eager {
namespace {

TEST(pointwise, gives_the_same_bits_for_any_strides) {
  for (const Ints& sizes :
       {Ints{}, Ints{0, 3}, Ints{1}, Ints{7, 129}, Ints{3, 5, 130}, Ints{300}}) {
    const Tensor x = random_tensor(sizes, 1), y = random_tensor(sizes, 2);
    expect_same_bits(exp(scattered(x)), exp(x));
    expect_same_bits(add(scattered(x), y, 0.5), add(x, y, 0.5));
    expect_same_bits(where(lt(scattered(x), y), scattered(y), x), where(lt(x, y), y, x));
  }
}

TEST(pointwise, broadcasts_every_dimension) {
  const Tensor x = random_tensor({4, 1, 6}), y = random_tensor({5, 1}), wide = expand(x, {4, 5, 6});
  expect_same_bits(x * y, contiguous(wide) * contiguous(expand(y, {4, 5, 6})));
  const Tensor number = random_tensor({}), large = random_tensor({3, 400});
  expect_same_bits(large - number, large - contiguous(expand(number, {3, 400})));
}

TEST(pointwise, refuses_sizes_that_do_not_broadcast) {
  EXPECT_THROW(add(ones({2, 3}), ones({2, 4})), ExportError);
}

TEST(pointwise, does_not_depend_on_the_number_of_threads) {
  const Tensor x = random_tensor({3, 70001});
  expect_same_bits_with_two_threads([&] {
    return tanh(x * transpose(random_tensor({3, 1}, 5), 0, 1).reshape({3, 1}));
  });
}

TEST(pointwise, wraps_integers_at_their_width) {
  const Tensor x = Tensor::from(std::vector<int8_t>{127, -128, 5}, {3});
  EXPECT_EQ((x + x).to_vector<int8_t>(), (std::vector<int8_t>{-2, 0, 10}));
  EXPECT_EQ(neg(x).to_vector<int8_t>(), (std::vector<int8_t>{-127, -128, -5}));
  const Tensor least = Tensor::from(std::vector<int64_t>{INT64_MIN}, {1});
  EXPECT_EQ(abs(least).to_vector<int64_t>(), (std::vector<int64_t>{INT64_MIN}));
  EXPECT_EQ(div(least, Tensor::from(std::vector<int64_t>{-1}, {1}), "floor").to_vector<int64_t>(),
            (std::vector<int64_t>{INT64_MIN}));
}

TEST(pointwise, rounds_quotients_as_asked) {
  const Tensor a = Tensor::from(std::vector<int64_t>{7, -7, 7, -7}, {4}),
               b = Tensor::from(std::vector<int64_t>{2, 2, -2, -2}, {4});
  EXPECT_EQ(div(a, b, "floor").to_vector<int64_t>(), (std::vector<int64_t>{3, -4, -4, 3}));
  EXPECT_EQ(div(a, b, "trunc").to_vector<int64_t>(), (std::vector<int64_t>{3, -3, -3, 3}));
  EXPECT_EQ(remainder(a, b).to_vector<int64_t>(), (std::vector<int64_t>{1, 1, -1, -1}));
  EXPECT_EQ(fmod(a, b).to_vector<int64_t>(), (std::vector<int64_t>{1, -1, 1, -1}));
}

TEST(pointwise, refuses_to_divide_an_integer_by_zero) {
  const Tensor a = Tensor::from(std::vector<int64_t>{1, 2}, {2}),
               b = Tensor::from(std::vector<int64_t>{1, 0}, {2});
  EXPECT_THROW(fmod(a, b), ExportError);
  EXPECT_THROW(div(a, Scalar(0), "floor"), ExportError);
}

TEST(pointwise, computes_halves_in_float_and_rounds_once) {
  const Tensor x = to(random_tensor({1000}), DType::bf16),
               y = to(random_tensor({1000}, 2), DType::bf16);
  expect_same_bits(x * y, to(to(x, DType::f32) * to(y, DType::f32), DType::bf16));
  expect_same_bits(gelu(x), to(gelu(to(x, DType::f32)), DType::bf16));
}

TEST(pointwise, lets_nan_through_maximum_relu_and_clamp) {
  const Tensor x = Tensor::from(std::vector<float>{NAN, 1}, {2});
  EXPECT_TRUE(std::isnan(maximum(x, zeros({2})).to_vector<float>()[0]));
  EXPECT_TRUE(std::isnan(maximum(zeros({2}), x).to_vector<float>()[0]));
  EXPECT_TRUE(std::isnan(relu(x).to_vector<float>()[0]));
  EXPECT_TRUE(std::isnan(clamp(x, Scalar(0), Scalar(1)).to_vector<float>()[0]));
}

TEST(pointwise, is_the_same_in_a_fused_chain) {
  // gelu(x * y + 0.5) - y, then exp; y a 0-dim tensor
  const Tensor x = random_tensor({5, 777}), y = random_tensor({});
  const Ints program = {/*mul*/ 2,   0, 0, 1, 0, /*add*/ 0, 1, 2, -1, 0,
                        /*gelu*/ 19, 0, 3, 0, 0, /*sub*/ 1, 0, 2, 1,  0,
                        /*exp*/ 12,  0, 2, 0, 0};
  const Tensor fused = call<ops::taper_pointwise>(Location::current(), std::vector<Tensor>{x, y},
                                                  program, std::vector<double>{0.5});
  expect_same_bits(fused, exp(gelu(x * y + 0.5) - y));
}

TEST(cast, takes_reals_towards_zero_and_wraps_integers) {
  const Tensor x = Tensor::from(std::vector<float>{1.9f, -1.9f, 300.0f}, {3});
  EXPECT_EQ(to(x, DType::i64).to_vector<int64_t>(), (std::vector<int64_t>{1, -1, 300}));
  EXPECT_EQ(to(x, DType::u8).to_vector<uint8_t>(), (std::vector<uint8_t>{1, 255, 44}));
  EXPECT_EQ(to(to(x, DType::boolean), DType::f64).to_vector<double>(),
            (std::vector<double>{1, 1, 1}));
}

TEST(cast, keeps_large_integers_exact) {
  const int64_t large = (int64_t{1} << 53) + 1;
  const Tensor x = Tensor::from(std::vector<int64_t>{large}, {1});
  EXPECT_EQ(to(to(x, DType::i64), DType::f32).to_vector<float>()[0], static_cast<float>(large));
}

}  // namespace
}  // namespace taper::eager
