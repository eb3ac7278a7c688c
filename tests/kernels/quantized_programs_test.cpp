// Quantized operators in programs whose sizes are symbols, and what they refuse.
#include <gmock/gmock.h>

#include "taper/tests/kernels/program_check.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

const Location here = Location::current();

/// 7 rows of 12 numbers of 4 bits, two in a byte.
Tensor table() {
  std::vector<int64_t> bytes;
  for (int64_t i = 0; i < 7 * 6; ++i) bytes.push_back(i * 37 % 256);
  return Tensor::from<int64_t>(bytes, {7, 6}).to(DType::u8);
}
Tensor embedded(const Tensor& weight, const Tensor& scales, const Tensor& zeros,
                const Tensor& indices, int64_t low = -8, int64_t high = 7) {
  return call<ops::quantized_decomposed_embedding_4bit>(here, weight, scales, zeros, low, high,
                                                        indices);
}

TEST(embedding_4bit, has_the_first_number_in_the_upper_half_of_a_byte) {
  const Tensor weight = Tensor::from<int64_t>({0x0f, 0x80}, {1, 2}).to(DType::u8);
  EXPECT_EQ(embedded(weight, full({1}, 0.5), {}, zeros({1}, DType::i64)).to_vector<float>(),
            (std::vector<float>{-4, 3.5f, 0, -4}));
}
TEST(embedding_2bit, has_the_first_number_in_the_lowest_bits) {
  const Tensor weight = Tensor::from<int64_t>({0b11100100}, {1, 1}).to(DType::u8);
  EXPECT_EQ(call<ops::quantized_decomposed_embedding_2bit>(
                here, weight, ones({1}), Tensor(), int64_t{-2}, int64_t{1}, zeros({1}, DType::i64))
                .to_vector<float>(),
            (std::vector<float>{-2, -1, 0, 1}));
}
TEST(embedding_4bit, takes_any_number_of_words_in_a_program) {
  const Dim words = Dim::symbol("words", 0, 9);
  const Tensor scales = random_tensor({7, 3}, 1), zero = random_tensor({7, 3}, 2);
  std::vector<std::vector<Tensor>> calls;
  for (const int64_t n : {0, 1, 9}) calls.push_back({arange(n) % 7});
  expect_same_bits_in_program(
      [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
        return {embedded(table(), scales, zero, in[0])};
      },
      {input("words", {words}, DType::i64)}, calls);
}
TEST(embedding_4bit, says_what_does_not_fit) {
  const Tensor word = zeros({1}, DType::i64);
  const auto run = [&](const Tensor& weight, const Tensor& scales, const Tensor& zero = {}) {
    return embedded(weight, scales, zero, word);
  };
  EXPECT_THROW_MESSAGE(run(table().to(DType::i8), ones({7})), "weight must be a matrix of u8");
  EXPECT_THROW_MESSAGE(run(table(), ones({6})), "weight_scales (6) must be floating");
  EXPECT_THROW_MESSAGE(run(table(), ones({7, 5})), "5 groups must divide the 12 features");
  EXPECT_THROW_MESSAGE(run(table(), ones({7, 12})), "into pieces of 2 or more");
  EXPECT_THROW_MESSAGE(run(table(), ones({7}), ones({7, 1})),
                       "weight_zero_points (7, 1) must have the sizes of weight_scales, (7)");
  EXPECT_THROW_MESSAGE(embedded(table(), ones({7}), {}, word, 0, 15),
                       "the integers must lie in [-8, 7], the call says [0, 15]");
  EXPECT_THROW_MESSAGE(embedded(table(), ones({7}), {}, full({1}, 7, DType::i64)),
                       "index 7 is outside [0, 7)");
}

TEST(mixed_linear, takes_any_number_of_rows_in_a_program) {
  const Tensor weight = to(random_tensor({5, 8}) * 50, DType::i8),
               scales = random_tensor({5, 2}, 2);
  const auto f = [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    return {call<ops::quantized_decomposed_mixed_linear>(here, in[0], weight, scales, Tensor(),
                                                         std::nullopt)};
  };
  expect_same_bits_in_program(f, {input("x", {Dim::symbol("rows", 1, 6), 8})},
                              {{random_tensor({1, 8})}, {random_tensor({6, 8})}});
  EXPECT_THROW_MESSAGE(
      call<ops::quantized_decomposed_mixed_linear>(here, ones({2, 8}), weight, ones({5, 3}),
                                                   Tensor(), std::nullopt),
      "weight_scales (5, 3) must have one row for each of weight's, and groups that divide one");
}

Tensor learned(const Tensor& x, const Tensor& scale, const Tensor& zero) {
  return call<ops::_fake_quantize_learnable_per_tensor_affine>(here, x, scale, zero, int64_t{-8},
                                                               int64_t{7}, 0.5);
}
// Gradients as PyTorch gives them: its backward pass rounds -1.7 + 0.5 towards 0, its forward pass
// to -2.
TEST(fake_quantize_learnable, trains_scale_and_zero_point) {
  const Tensor x = Tensor::from<float>({-4, -1, 0.2f, 0.9f, 5}, {5}),
               dy = Tensor::from<float>({1, 2, 3, 4, 5}, {5});
  const auto gradients = [&](float at) {
    const Tensor scale = full({1}, 0.3), zero = full({1}, double{at});
    for (const Tensor& t : {x, scale, zero}) t.set_requires_grad();
    return grad({learned(x, scale, zero)}, {x, scale, zero}, {dy});
  };
  const std::vector<Tensor> g = gradients(-1.7f);
  EXPECT_EQ(g[0].to_vector<float>(), (std::vector<float>{0, 2, 3, 4, 0}));
  EXPECT_EQ(to_string(g[1].sizes()), "(1)");
  EXPECT_NEAR(g[1].item(), 17.33333396911621, 1e-5);
  EXPECT_NEAR(g[2].item(), -0.8999999761581421, 1e-6);
}

TEST(fused_moving_avg_obs_fake_quant, moves_its_range_towards_that_of_the_input) {
  Tensor least = full({1}, INFINITY), most = full({1}, -INFINITY), scale = ones({1}),
         zero = zeros({1}, DType::i32);
  const Tensor on = ones({1}, DType::i64);
  const auto observe = [&](const Tensor& x, const Tensor& observes, bool rows = false) {
    return call<ops::fused_moving_avg_obs_fake_quant>(here, x, observes, on, least, most, scale,
                                                      zero, 0.5, int64_t{-128}, int64_t{127},
                                                      int64_t{0}, rows, false);
  };
  observe(Tensor::from<float>({-1, 2, 0}, {3}), on);
  EXPECT_EQ(least.item(), -1);
  EXPECT_EQ(most.item(), 2);
  EXPECT_NEAR(scale.item(), 3.0 / 255, 1e-8);
  EXPECT_EQ(zero.item<int32_t>(), -43);
  observe(Tensor::from<float>({-3, 0, 0}, {3}), on);  // half of the way
  EXPECT_EQ(least.item(), -2);
  EXPECT_EQ(most.item(), 1);
  observe(Tensor::from<float>({-9, 9, 0}, {3}), zeros({1}, DType::i64));
  EXPECT_EQ(least.item(), -2);
  EXPECT_THROW_MESSAGE(observe(ones({2, 3}), on, true),
                       "running_min and running_max (1) must have 2 elements");
  EXPECT_THROW_MESSAGE(observe(ones({2}), on, true), "those of dimension 0");
}

}  // namespace
}  // namespace taper::eager
