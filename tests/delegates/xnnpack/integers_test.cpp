// Static 8-bit operators: XNNPACK gives the integers of our kernels.
#include <gmock/gmock.h>

#include "delegated.h"

namespace taper::delegates::xnnpack {
namespace {

/// The values of x as integers q with scale * (q - zero_point).
Tensor rounded(const Tensor& x, double scale, int64_t zero_point) {
  const auto here = Location::current();
  const Tensor q = eager::call<ops::quantized_decomposed_quantize_per_tensor>(
      here, x, scale, zero_point, -128, 127, DType::i8);
  return eager::call<ops::quantized_decomposed_dequantize_per_tensor>(
      here, q, scale, zero_point, -128, 127, DType::i8, std::optional<DType>());
}

/// A weight of integers, with a scale for each element of its first dimension.
struct IntegerWeight {
  IntegerWeight(const std::vector<int64_t>& sizes, unsigned seed) {
    const std::vector<float> numbers = random_tensor(sizes, seed, -127, 127).to_vector<float>();
    integers = Tensor::from<int8_t>({numbers.begin(), numbers.end()}, {sizes.begin(), sizes.end()});
    scales = random_tensor({sizes[0]}, seed + 1, 0.001f, 0.01f);
  }
  Tensor operator()() const {
    return eager::call<ops::quantized_decomposed_dequantize_per_channel>(
        Location::current(), integers, scales, Tensor(), 0, -127, 127, DType::i8,
        std::optional<DType>());
  }
  Tensor integers, scales;
};

const Tensor images = random_tensor({2, 6, 9, 11}, 1), vectors = random_tensor({3, 5, 8}, 2);

/// The results of a program that runs the kernels.
template <class F>
std::vector<float> of_kernels(F&& function, const Tensor& x) {
  const std::vector<index_t> sizes = sizes_of(x);
  ExportOptions options;
  options.exact = false;
  Exporter exporter;
  exporter.method("forward", function, {input("x", eager::Dims(sizes.begin(), sizes.end()))});
  emit::Report report;
  const std::vector<std::byte> file = exporter.write(options, &report);
  EXPECT_GT(report.methods[0].operators["taper::conv2d_q8"] +
                report.methods[0].operators["taper::linear_q8"],
            0);
  Result<Module> module = Module::load(file);
  if (!module.ok()) return ADD_FAILURE(), std::vector<float>();
  return call(module.value(), x);
}

/// XNNPACK takes all of the function, and gives the same bits.
template <class F>
void expect_same_integers(F&& function, const Tensor& x) {
  const std::vector<index_t> sizes = sizes_of(x);
  Delegated program(function, eager::Dims(sizes.begin(), sizes.end()));
  EXPECT_EQ(program.delegates(), 1);
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  EXPECT_THAT(call(module.value(), x), testing::Pointwise(testing::Eq(), of_kernels(function, x)));
}

TEST(xnnpack_integers, are_equal_in_convolutions) {
  const IntegerWeight plain({8, 6, 3, 3}, 10), grouped({4, 3, 3, 3}, 12),
      depthwise({6, 1, 3, 3}, 14), doubled({12, 1, 3, 3}, 16), pixel({20, 6, 1, 1}, 18);
  const Tensor bias = random_tensor({8}, 20);
  const auto with = [](const IntegerWeight& w, const Tensor& b, int64_t stride, int64_t padding,
                       int64_t dilation, int64_t groups) {
    expect_same_integers(
        [&](const Tensor& x) {
          const Tensor y = conv2d(rounded(x, 0.01, 5), w(), b, stride, padding, dilation, groups);
          return rounded(y, 0.05, -3);
        },
        images);
  };
  with(plain, bias, 1, 1, 1, 1);
  with(plain, {}, 2, 0, 2, 1);
  with(grouped, {}, 1, 1, 1, 2);
  with(depthwise, {}, 1, 1, 1, 6);
  with(depthwise, {}, 2, 1, 1, 6);
  with(doubled, {}, 1, 0, 1, 6);
  with(pixel, {}, 1, 0, 1, 1);
}

TEST(xnnpack_integers, are_equal_in_products) {
  const IntegerWeight weight({20, 8}, 30);
  const Tensor bias = random_tensor({20}, 32);
  expect_same_integers(
      [&](const Tensor& x) {
        return rounded(linear(rounded(x, 0.01, 5), weight(), bias), 0.02, 1);
      },
      vectors);
}

TEST(xnnpack_integers, are_equal_behind_clamps) {
  const IntegerWeight weight({8, 6, 3, 3}, 40);
  const auto behind = [&](auto clamp) {
    expect_same_integers(
        [&](const Tensor& x) {
          return rounded(clamp(conv2d(rounded(x, 0.01, 5), weight())), 0.03, -128);
        },
        images);
  };
  behind([](const Tensor& x) { return relu(x); });
  behind([](const Tensor& x) { return hardtanh(x, 0, 1.5); });
}

TEST(xnnpack_integers, are_equal_in_sums_and_products_of_elements) {
  const IntegerWeight weight({6, 6, 3, 3}, 50);
  const auto of_two = [&](auto function) {
    expect_same_integers(
        [&](const Tensor& x) {
          const Tensor a = rounded(x, 0.01, 5);
          const Tensor b = rounded(conv2d(a, weight(), {}, 1, 1), 0.04, -7);
          return rounded(function(a, b), 0.045, 9);
        },
        images);
  };
  of_two([](const Tensor& a, const Tensor& b) { return a + b; });
  of_two([](const Tensor& a, const Tensor& b) { return relu(a + b); });
  of_two([](const Tensor& a, const Tensor& b) { return a - b; });
  of_two([](const Tensor& a, const Tensor& b) { return a * b; });
}

TEST(xnnpack_integers, are_equal_where_elements_move) {
  const IntegerWeight weight({6, 6, 3, 3}, 60), head({4, 6}, 62);
  expect_same_integers(
      [&](const Tensor& x) {
        const Tensor a = rounded(x, 0.04, 5);
        const Tensor b = rounded(conv2d(a, weight(), {}, 1, 1), 0.04, 5);
        return rounded(max_pool2d(cat({a, b}, 1), 3, 2, 1), 0.04, 5);
      },
      images);
  expect_same_integers(
      [&](const Tensor& x) {
        const Tensor a = rounded(conv2d(rounded(x, 0.01, 5), weight()), 0.05, 0);
        const Tensor b = rounded(mean(a, {2, 3}, false), 0.0625, 0);
        return rounded(linear(b, head()), 0.01, 0);
      },
      images);
}

TEST(xnnpack_integers, leaves_functions_of_tables_to_the_kernels) {
  const IntegerWeight weight({6, 6, 3, 3}, 70);
  const auto network = [&](const Tensor& x) {
    const Tensor a = rounded(conv2d(rounded(x, 0.01, 5), weight()), 0.05, 0);
    return rounded(conv2d(rounded(hardswish(a), 0.03, 3), weight()), 0.1, 0);
  };
  Delegated program(network, {2, 6, 9, 11}, false);
  EXPECT_EQ(program.delegates(), 2);
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  EXPECT_EQ(call(module.value(), images), of_kernels(network, images));
}

TEST(xnnpack_integers, leaves_large_depthwise_windows_to_the_kernels) {
  const IntegerWeight weight({6, 6, 3, 3}, 74), large({6, 1, 7, 7}, 76);
  const auto network = [&](const Tensor& x) {
    const Tensor a = rounded(conv2d(rounded(x, 0.01, 5), weight()), 0.05, 0);
    return rounded(conv2d(a, large(), {}, 1, 3, 1, 6), 0.1, 0);
  };
  Delegated program(network, {2, 6, 9, 11}, false);
  EXPECT_EQ(program.delegates(), 1);
  EXPECT_EQ(program.report.methods[0].operators["taper::conv2d_q8"], 1);
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  EXPECT_EQ(call(module.value(), images), of_kernels(network, images));
}

}  // namespace
}  // namespace taper::delegates::xnnpack
