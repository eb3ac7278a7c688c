// Pooling of images whose channels lie last, and means over views that turn them first, through
// eager: the bits of the same image with its channels first.
#include "taper/exporter/eager/ops/pooling.h"
#include "taper/tests/kernels/eager_check.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

Tensor last(const Tensor& x) { return contiguous(permute(x, {0, 2, 3, 1})); }

Tensor max_last(const Tensor& x, const Ints& kernel, const Ints& stride, const Ints& padding,
                const Ints& dilation = {1}, bool ceil_mode = false) {
  return call<ops::taper_max_pool2d>(Location::current(), x, kernel, stride, padding, dilation,
                                     ceil_mode);
}
Tensor average_last(const Tensor& x, const Ints& kernel, const Ints& stride, const Ints& padding,
                    bool ceil_mode, bool count_padding, std::optional<int64_t> divisor) {
  return call<ops::taper_avg_pool2d>(Location::current(), x, kernel, stride, padding, ceil_mode,
                                     count_padding, divisor);
}
Tensor numbers(const Ints& sizes, DType dtype) {
  return mul(random_tensor(sizes, 3, DType::f64), Scalar(30.0)).to(dtype);
}

TEST(taper_max_pool2d, has_the_bits_of_max_pool2d_in_every_dtype) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i64, DType::i32, DType::i16, DType::i8,
                            DType::u8, DType::f16, DType::bf16})
    for (const int64_t channels : {1, 3, 7, 8, 15, 17, 64}) {
      const Tensor x = numbers({2, channels, 9, 11}, dtype);
      for (const bool ceil_mode : {false, true})
        expect_same_bits(max_last(last(x), {3, 2}, {2, 2}, {1, 0}, {1, 2}, ceil_mode),
                         last(max_pool2d(x, {3, 2}, {2, 2}, {1, 0}, {1, 2}, ceil_mode)));
      expect_same_bits(max_last(last(x), {4, 5}, {1, 3}, {2, 0}),  // twenty taps
                       last(max_pool2d(x, {4, 5}, {1, 3}, {2, 0})));
      expect_same_bits(max_last(last(x), {3}, {2}, {1}), last(max_pool2d(x, 3, 2, 1)));
      const Tensor wide = numbers({1, channels, 3, 211}, dtype);  // more windows than join at once
      expect_same_bits(max_last(last(wide), {2, 3}, {1, 2}, {0, 0}),
                       last(max_pool2d(wide, {2, 3}, {1, 2}, {0, 0})));
    }
}

TEST(taper_avg_pool2d, has_the_bits_of_avg_pool2d_in_every_dtype) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i64, DType::f16, DType::bf16})
    for (const int64_t channels : {1, 3, 7, 8, 15, 17, 64}) {
      const Tensor x = numbers({2, channels, 9, 11}, dtype);
      for (const bool count_padding : {false, true})
        for (const std::optional<int64_t> divisor : {std::optional<int64_t>(), {-3}})
          expect_same_bits(
              average_last(last(x), {3, 2}, {2, 2}, {1, 0}, true, count_padding, divisor),
              last(avg_pool2d(x, {3, 2}, {2, 2}, {1, 0}, true, count_padding, divisor)));
      expect_same_bits(average_last(last(x), {4, 5}, {1, 3}, {2, 0}, false, true, {}),
                       last(avg_pool2d(x, {4, 5}, {1, 3}, {2, 0}, false, true, {})));
      const Tensor wide = numbers({1, channels, 3, 211}, dtype);
      expect_same_bits(average_last(last(wide), {2, 3}, {1, 2}, {0, 0}, false, true, {}),
                       last(avg_pool2d(wide, {2, 3}, {1, 2}, {0, 0}, false, true, {})));
    }
}

TEST(taper_max_pool2d, gives_the_same_bits_with_any_number_of_threads) {
  const Tensor x = random_tensor({2, 90, 70, 33});
  expect_same_bits_with_two_threads([&] { return max_last(x, {3}, {2}, {1}); });
  expect_same_bits_with_two_threads(
      [&] { return average_last(x, {3}, {2}, {1}, false, true, {}); });
}

TEST(taper_max_pool2d, takes_a_batch_without_images_and_refuses_other_ranks) {
  EXPECT_EQ(to_string(max_last(zeros({0, 4, 4, 3}), {2}, {}, {0}).sizes()), "(0, 2, 2, 3)");
  EXPECT_THROW(max_last(zeros({4, 4, 3}), {2}, {}, {0}), EagerError);
  EXPECT_THROW(max_last(zeros({1, 4, 4, 3}), {5}, {}, {0}), EagerError);
}

TEST(max_pool2d, has_a_gradient_beside_its_kernel_without_indices) {
  const Tensor x = random_tensor({2, 3, 9, 8});
  const Tensor without = max_pool2d(x, 3, 2, 1);
  x.set_requires_grad();
  const Tensor y = max_pool2d(x, 3, 2, 1);
  expect_same_bits(y.detach(), without);
  sum(y).backward();
  EXPECT_EQ(sum(x.grad()).item(), static_cast<double>(y.numel().value()));
}

TEST(mean, of_an_image_with_channels_last_has_the_bits_of_one_with_channels_first) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16})
    for (const int64_t channels : {1, 3, 16, 70, 129})
      for (const Ints& size : {Ints{1, 1}, Ints{1, 5}, Ints{4, 4}, Ints{7, 7}, Ints{13, 10},
                               Ints{32, 32}, Ints{67, 61}, Ints{129, 130}}) {
        const Tensor x = numbers({2, channels, size[0], size[1]}, dtype);
        const Tensor turned = permute(last(x), {0, 3, 1, 2});
        for (const bool keepdim : {false, true})
          expect_same_bits(mean(turned, {2, 3}, keepdim), mean(x, {2, 3}, keepdim));
      }
}

TEST(reductions, of_an_image_with_channels_last_have_the_bits_of_one_with_channels_first) {
  Tensor x = random_tensor({2, 37, 60, 50});
  for (int round = 0; round < 2; ++round) {
    const Tensor turned = permute(last(x), {0, 3, 1, 2});
    expect_same_bits(sum(turned, {2, 3}), sum(x, {2, 3}));
    expect_same_bits(sum(turned, {3}), sum(x, {3}));
    expect_same_bits(amax(turned, {2, 3}), amax(x, {2, 3}));
    expect_same_bits(var(turned, {2, 3}), var(x, {2, 3}));
    expect_same_bits_with_two_threads([&] { return sum(turned, {2, 3}); });
    // NaN and zeros of both signs
    x = where(gt(x, Scalar(1.5)), div(zeros({}), abs(sub(x, x))), neg(relu(x)));
  }
  EXPECT_EQ(to_string(mean(permute(zeros({2, 0, 4, 3}), {0, 3, 1, 2}), {2, 3}).sizes()), "(2, 3)");
}

}  // namespace
}  // namespace taper::eager
