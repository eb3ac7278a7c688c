#include "taper/exporter/eager/ops/convolution.h"

#include "taper/tests/kernels/eager_check.h"

namespace taper::eager {
namespace {

struct Setting {
  int64_t batch, in, out, groups, extent, kernel, stride, padding, dilation;
};
const Setting settings[] = {{2, 3, 5, 1, 9, 3, 1, 1, 1},  {1, 4, 6, 2, 11, 3, 2, 1, 1},
                            {2, 6, 6, 6, 8, 3, 1, 1, 1},  {1, 2, 3, 1, 20, 5, 1, 2, 1},
                            {1, 3, 4, 1, 12, 3, 1, 2, 2}, {3, 5, 7, 1, 6, 1, 1, 0, 1},
                            {1, 2, 9, 1, 17, 2, 3, 0, 1}, {2, 1, 1, 1, 3, 3, 1, 0, 1}};

/// The definition, in double.
std::vector<double> convolve(const Tensor& input, const Tensor& weight, const Setting& s,
                             int64_t& extent) {
  const std::vector<float> x = input.to_vector<float>(), w = weight.to_vector<float>();
  extent = (s.extent + 2 * s.padding - s.dilation * (s.kernel - 1) - 1) / s.stride + 1;
  const int64_t in = s.in / s.groups, out = s.out / s.groups;
  std::vector<double> y;
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t o = 0; o < s.out; ++o)
      for (int64_t h = 0; h < extent; ++h)
        for (int64_t v = 0; v < extent; ++v) {
          double sum = 0;
          for (int64_t c = 0; c < in; ++c)
            for (int64_t a = 0; a < s.kernel; ++a)
              for (int64_t b = 0; b < s.kernel; ++b) {
                const int64_t i = h * s.stride - s.padding + a * s.dilation,
                              j = v * s.stride - s.padding + b * s.dilation;
                if (i < 0 || j < 0 || i >= s.extent || j >= s.extent) continue;
                sum += double{x[static_cast<size_t>(
                           ((n * s.in + o / out * in + c) * s.extent + i) * s.extent + j)]} *
                       w[static_cast<size_t>(((o * in + c) * s.kernel + a) * s.kernel + b)];
              }
          y.push_back(sum);
        }
  return y;
}

TEST(conv2d, matches_the_definition) {
  for (const Setting& s : settings) {
    const Tensor x = random_tensor({s.batch, s.in, s.extent, s.extent}, 1),
                 w = random_tensor({s.out, s.in / s.groups, s.kernel, s.kernel}, 2);
    int64_t extent;
    const std::vector<double> want = convolve(x, w, s, extent);
    const Tensor y = conv2d(x, w, {}, s.stride, s.padding, s.dilation, s.groups);
    ASSERT_EQ(y.sizes(), (Dims{s.batch, s.out, extent, extent}));
    const std::vector<float> got = y.to_vector<float>();
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-4) << "at " << i;
  }
}

TEST(conv2d, is_differentiable_twice) {
  for (const Setting& s : {Setting{2, 2, 4, 2, 5, 3, 1, 1, 1}, Setting{1, 2, 3, 1, 6, 2, 2, 1, 1},
                           Setting{1, 1, 2, 1, 7, 2, 1, 0, 2}}) {
    const std::vector<Tensor> inputs{
        random_tensor({s.batch, s.in, s.extent, s.extent}, 1, DType::f64),
        random_tensor({s.out, s.in / s.groups, s.kernel, s.kernel}, 2, DType::f64),
        random_tensor({s.out}, 3, DType::f64)};
    const auto f = [&](const std::vector<Tensor>& v) {
      const Tensor y = conv2d(v[0], v[1], v[2], s.stride, s.padding, s.dilation, s.groups);
      return sum(y * y);
    };
    expect_right_derivatives(f, inputs);
  }
}

TEST(conv_transpose2d, is_the_gradient_of_conv2d) {
  const Tensor x = random_tensor({1, 2, 7, 7}, 1), w = random_tensor({3, 2, 3, 3}, 2),
               dy = random_tensor({1, 3, 4, 4}, 3);
  x.set_requires_grad();
  const Tensor y = conv2d(x, w, {}, 2, 1);
  expect_same_bits(grad({y}, {x}, {dy})[0], conv_transpose2d(dy, w, {}, 2, 1));
}

TEST(conv1d, and_conv3d_are_conv2d_with_other_extents_of_one) {
  const Tensor x = random_tensor({2, 3, 1, 14}, 1), w = random_tensor({4, 3, 1, 3}, 2),
               y = conv2d(x, w, {}, {1, 2}, {0, 1});
  expect_same_bits(conv1d(x.squeeze(2), w.squeeze(2), {}, 2, 1), y.squeeze(2));
  expect_same_bits(conv3d(x.unsqueeze(2), w.unsqueeze(2), {}, {1, 1, 2}, {0, 0, 1}),
                   y.unsqueeze(2));
}

TEST(conv2d, gives_the_same_bits_with_any_number_of_threads) {
  const Tensor x = random_tensor({3, 5, 13, 13}, 1), w = random_tensor({9, 5, 3, 3}, 2);
  expect_same_bits_with_two_threads([&] { return conv2d(x, w, {}, 1, 1); });
}

TEST(conv2d, keeps_the_extents_with_padding_same) {
  EXPECT_EQ(
      to_string(conv2d(ones({1, 1, 6, 7}), ones({2, 1, 4, 3}), {}, 1, ConvPadding::same).sizes()),
      "(1, 2, 6, 7)");
  EXPECT_THROW(conv2d(ones({1, 1, 6, 7}), ones({2, 1, 4, 3}), {}, 2, ConvPadding::same),
               EagerError);
}

TEST(conv2d, refuses_what_does_not_fit) {
  const Tensor x = ones({1, 3, 5, 5});
  EXPECT_THROW(conv2d(x, ones({2, 4, 3, 3})), EagerError);
  EXPECT_THROW(conv2d(x, ones({2, 3, 6, 6})), EagerError);
  EXPECT_THROW(conv2d(x, ones({2, 3, 3, 3}), {}, 0), EagerError);
  EXPECT_THROW(conv2d(x, ones({2, 3, 3, 3}), ones({3})), EagerError);
  EXPECT_THROW(conv2d(x, ones({2, 3, 3, 3}), {}, INT64_MAX), EagerError);
  EXPECT_THROW(conv2d(x, ones({2, 3, 3, 3}), {}, 1, -1), EagerError);
  EXPECT_THROW(conv2d(x, ones({2, 3, 3, 3}), {}, 1, 0, 0), EagerError);
  EXPECT_THROW(conv_transpose2d(x, ones({3, 2, 3, 3}), {}, 1, -1), EagerError);
  EXPECT_THROW(conv_transpose2d(x, ones({3, 2, 3, 3}), {}, 2, 0, 2), EagerError);
  EXPECT_THROW(conv_transpose2d(x, ones({3, 2, 3, 3}), {}, 2, 0, -1), EagerError);
  EXPECT_EQ(to_string(conv_transpose2d(x, ones({3, 2, 3, 3}), {}, 2, 0, 1).sizes()),
            "(1, 2, 12, 12)");
  EXPECT_EQ(to_string(conv_transpose2d(x, ones({3, 2, 3, 3}), {}, 2, 0, 2, 1, 3).sizes()),
            "(1, 2, 17, 17)");
}

}  // namespace
}  // namespace taper::eager
