#include "taper/exporter/eager/ops/softmax.h"

#include <gmock/gmock.h>

#include "taper/tests/kernels/eager_check.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

void expect_near(const Tensor& got, const Tensor& want, double tolerance) {
  const std::vector<double> a = got.to(DType::f64).contiguous().to_vector<double>(),
                            b = want.to(DType::f64).contiguous().to_vector<double>();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << "at " << i;
}
Tensor softmax_in_double(const Tensor& x, int64_t dim) {
  const Tensor e = exp(x.to(DType::f64));
  return e / sum(e, {dim}, true);
}

TEST(softmax, matches_the_formula_along_every_axis) {
  for (const Ints& sizes : std::vector<Ints>{{2, 3, 17}, {5}, {1, 1, 1}, {3, 40, 33}, {2, 0, 3}})
    for (int64_t dim = -static_cast<int64_t>(sizes.size());
         dim < static_cast<int64_t>(sizes.size()); ++dim) {
      const Tensor x = random_tensor(sizes);
      expect_near(softmax(x, dim), softmax_in_double(x, dim), 1e-6);
      expect_near(log_softmax(x, dim), log(softmax_in_double(x, dim)), 2e-6);
    }
}

TEST(softmax, stays_finite_for_large_values) {
  const Tensor x = Tensor::from<float>({1e30f, 1e30f, -1e30f}, {3});
  EXPECT_EQ(softmax(x, 0).to_vector<float>(), (std::vector<float>{0.5f, 0.5f, 0}));
}

TEST(softmax, is_differentiable_twice) {
  const Tensor w = random_tensor({2, 4, 3}, 7, DType::f64);
  for (int64_t dim : {0, 1, 2}) {
    const auto f = [&](const std::vector<Tensor>& v) { return sum(softmax(v[0], dim) * w); };
    const auto g = [&](const std::vector<Tensor>& v) { return sum(log_softmax(v[0], dim) * w); };
    const std::vector<Tensor> x{random_tensor({2, 4, 3}, 1, DType::f64)};
    expect_right_derivatives(f, x);
    expect_right_derivatives(g, x);
  }
}

TEST(softmax, gives_the_same_bits_with_any_number_of_threads_and_strides) {
  const Tensor x = random_tensor({300, 40, 33});
  for (int64_t dim : {0, 1, 2}) expect_same_bits_with_two_threads([&] { return softmax(x, dim); });
  expect_same_bits(softmax(scattered(x), 2), softmax(x, 2));
}

TEST(softmax, has_one_dtype_in_its_gradient) {
  const auto expect_refused = [](const Tensor& dy, DType input_dtype, const char* message) {
    const Tensor y = ones({2, 3});
    EXPECT_THROW_MESSAGE(call<ops::_softmax_backward_data>(Location(), dy, y, 1, input_dtype),
                         message);
    EXPECT_THROW_MESSAGE(call<ops::_log_softmax_backward_data>(Location(), dy, y, 1, input_dtype),
                         message);
  };
  for (const DType dtype : {DType::f64, DType::f16, DType::bf16, DType::i32})
    expect_refused(ones({2, 3}), dtype, "input_dtype must be the dtype of output");
  expect_refused(ones({2, 3}, DType::f64), DType::f32,
                 "grad_output and output must have the same dtype");
}

TEST(softmax, refuses_a_dim_out_of_range) {
  try {
    softmax(ones({2, 3}), 2);
    FAIL();
  } catch (const EagerError& e) {
    EXPECT_NE(std::string(e.what()).find("dim 2 is outside [-2, 2) for self (2, 3)"),
              std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace taper::eager
