#include "taper/exporter/eager/ops/norm.h"

#include "taper/tests/kernels/eager_check.h"

namespace taper::eager {
namespace {

void expect_near(const Tensor& got, const Tensor& want, double tolerance) {
  const std::vector<double> a = got.to(DType::f64).contiguous().to_vector<double>(),
                            b = want.to(DType::f64).contiguous().to_vector<double>();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << "at " << i;
}
Tensor normalized(const Tensor& x, const Ints& dims, double eps) {
  const Tensor d = x - mean(x, dims, true);
  return d / sqrt(mean(d * d, dims, true) + eps);
}

TEST(batch_norm, normalises_by_the_batch_and_moves_the_running_statistics) {
  const Tensor x = random_tensor({4, 3, 5, 5}, 1, DType::f64) * 3.0 + 2.0;
  Tensor running_mean = zeros({3}, DType::f64), running_var = ones({3}, DType::f64);
  const Tensor y = batch_norm(x, {}, {}, running_mean, running_var, true, 0.25, 1e-5);
  expect_near(y, normalized(x, {0, 2, 3}, 1e-5), 1e-9);
  expect_near(running_mean, 0.25 * mean(x, {0, 2, 3}), 1e-12);
  expect_near(running_var, 0.75 + 0.25 * var(x, {0, 2, 3}), 1e-9);
}

// The numbers are PyTorch's.
TEST(norms, of_halves_with_float_weights_and_statistics_are_half) {
  const Tensor x = Tensor::from<float>({0.1f, 0.7f, 1.3f, 2.1f, 0.45f, 0.9f}, {2, 3}),
               w = Tensor::from<float>({0.3f, 0.2f, 0.9f}, {3}),
               b = Tensor::from<float>({0.6f, 0.85f, 0.15f}, {3});
  const Tensor layer = layer_norm(x.to(DType::f16), {3}, w, b);
  EXPECT_EQ(layer.dtype(), DType::f16);
  expect_near(layer,
              Tensor::from<float>({0.232543945f, 0.850097656f, 1.25195312f, 1.00878906f,
                                   0.648925781f, -0.173095703f},
                                  {2, 3}),
              1e-3);
  const Tensor batch = batch_norm(x.to(DType::f16), w, b, x[0], x[1], false);
  EXPECT_EQ(batch.dtype(), DType::f16);
  expect_near(batch,
              Tensor::from<float>({0.600097656f, 0.850097656f, 0.149780273f, 1.01367188f,
                                   0.775390625f, -0.229614258f},
                                  {2, 3}),
              1e-3);
  Tensor mean = zeros({3}), var = ones({3});
  EXPECT_EQ(batch_norm(x.to(DType::f16), w, b, mean, var, true).dtype(), DType::f16);
  expect_near(mean, Tensor::from<float>({0.11f, 0.0575f, 0.11f}, {3}), 1e-4);
  expect_near(var, Tensor::from<float>({1.0999f, 0.9031f, 0.9080f}, {3}), 1e-4);
  EXPECT_EQ(layer_norm(x, {3}, w.to(DType::f16), b.to(DType::f16)).dtype(), DType::f32);
}

TEST(batch_norm, uses_the_running_statistics_in_evaluation) {
  const Tensor x = random_tensor({2, 2, 3}, 1, DType::f64), m = Tensor::from<double>({1, 2}, {2}),
               v = Tensor::from<double>({4, 9}, {2});
  const Tensor y = batch_norm(x, {}, {}, m, v, false, 0.1, 0);
  expect_near(y, (x - m.reshape({1, 2, 1})) / sqrt(v.reshape({1, 2, 1})), 1e-12);
}

TEST(batch_norm, of_halves_is_that_of_floats_rounded_once) {
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const int64_t n : {1, 7, 512, 1300}) {
      const auto half = [&](const Ints& sizes, int64_t seed) {
        return random_tensor(sizes, seed).to(dtype);
      };
      const Tensor x = half({2, 3, n}, 1), w = half({3}, 2), b = half({3}, 3), m = half({3}, 4),
                   v = half({3}, 5) * half({3}, 5) + 1;
      const auto wide = [](const Tensor& t) { return t.to(DType::f32); };
      expect_same_bits(batch_norm(x, w, b, m, v, false),
                       batch_norm(wide(x), wide(w), wide(b), wide(m), wide(v), false).to(dtype));
      expect_same_bits(batch_norm(x, {}, {}, m, v, false),
                       batch_norm(wide(x), {}, {}, wide(m), wide(v), false).to(dtype));
    }
}

TEST(batch_norm, is_differentiable_twice) {
  for (const bool training : {true, false}) {
    const Tensor m = zeros({2}, DType::f64), v = ones({2}, DType::f64);
    const auto f = [&](const std::vector<Tensor>& in) {
      const Tensor y = batch_norm(in[0], in[1], in[2], m.clone(), v.clone(), training);
      return sum(y * y * y);
    };
    const std::vector<Tensor> inputs{random_tensor({3, 2, 2}, 1, DType::f64),
                                     random_tensor({2}, 2, DType::f64),
                                     random_tensor({2}, 3, DType::f64)};
    expect_right_derivatives(f, inputs);
  }
}

TEST(layer_norm, normalises_each_row) {
  for (const int64_t width : {1, 5, 8, 65, 300}) {
    const Tensor x = random_tensor({3, width}, 1, DType::f64) * 2.0 + 1.0,
                 w = random_tensor({width}, 2, DType::f64),
                 b = random_tensor({width}, 3, DType::f64);
    expect_near(layer_norm(x, {width}, w, b), normalized(x, {1}, 1e-5) * w + b, 1e-9);
  }
}

TEST(layer_norm, is_differentiable_twice) {
  const auto f = [](const std::vector<Tensor>& v) {
    const Tensor y = layer_norm(v[0], {2, 3}, v[1], v[2]);
    return sum(y * y * y);
  };
  const std::vector<Tensor> inputs{random_tensor({3, 2, 3}, 1, DType::f64),
                                   random_tensor({2, 3}, 2, DType::f64),
                                   random_tensor({2, 3}, 3, DType::f64)};
  expect_right_derivatives(f, inputs);
}

TEST(group_norm, normalises_each_group_of_channels) {
  const Tensor x = random_tensor({2, 4, 3, 3}, 1, DType::f64);
  expect_near(group_norm(x, 2), normalized(x.reshape({2, 2, 18}), {2}, 1e-5).reshape({2, 4, 3, 3}),
              1e-9);
  const auto f = [](const std::vector<Tensor>& v) {
    const Tensor y = group_norm(v[0], 2, v[1], v[2]);
    return sum(y * y * y);
  };
  const std::vector<Tensor> inputs{random_tensor({2, 4, 2}, 1, DType::f64),
                                   random_tensor({4}, 2, DType::f64),
                                   random_tensor({4}, 3, DType::f64)};
  expect_right_derivatives(f, inputs);
}

TEST(rms_norm, has_the_bits_of_its_parts) {
  for (const int64_t width : {1, 16, 100, 128, 300, 2048}) {
    const Tensor x = random_tensor({5, width}, 1), w = random_tensor({width}, 2);
    const Tensor whole = rms_norm(x, {width}, w, 1e-6);
    expect_same_bits(whole, w * (x * rsqrt(mean(pow(x, 2), {-1}, true) + 1e-6)));
  }
}

TEST(rms_norm, divides_by_the_root_of_the_mean_square) {
  const Tensor x = random_tensor({3, 7}, 1, DType::f64), w = random_tensor({7}, 2, DType::f64);
  expect_near(rms_norm(x, {7}, w, 1e-6), x / sqrt(mean(x * x, {1}, true) + 1e-6) * w, 1e-12);
}

TEST(normalisation, gives_the_same_bits_with_any_number_of_threads) {
  const Tensor x = random_tensor({4, 6, 7, 7});
  expect_same_bits_with_two_threads([&] { return batch_norm(x, {}, {}, {}, {}, true); });
  expect_same_bits_with_two_threads([&] { return layer_norm(x, {7, 7}); });
  expect_same_bits_with_two_threads([&] { return group_norm(x, 3); });
}

TEST(normalisation, refuses_weights_of_another_size) {
  const Tensor x = ones({2, 3, 4});
  EXPECT_THROW(batch_norm(x, ones({4}), {}, {}, {}, true), EagerError);
  EXPECT_THROW(batch_norm(x, {}, {}, ones({3}), ones({4}), true), EagerError);
  EXPECT_THROW(layer_norm(x, {4}, ones({3})), EagerError);
  EXPECT_THROW(layer_norm(x, {3}), EagerError);
  EXPECT_THROW(group_norm(x, 2), EagerError);
}

}  // namespace
}  // namespace taper::eager
