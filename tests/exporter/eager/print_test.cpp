#include <gmock/gmock.h>

#include <cmath>

#include "taper/exporter/eager/eager.h"

// The expected texts are what PyTorch prints for the same tensors, without "torch." before dtypes
// and with sizes in parentheses.
namespace taper::eager {
namespace {

std::string printed(const Tensor& t) { return t.to_string(); }

TEST(print, shows_whole_floats_with_a_dot) {
  EXPECT_EQ(printed(Tensor::from<float>({1, 2, 10}, {3})), "tensor([ 1.,  2., 10.])");
}
TEST(print, shows_four_digits) {
  EXPECT_EQ(printed(Tensor::from<float>({1.5f, -0.25f}, {2})), "tensor([ 1.5000, -0.2500])");
}
TEST(print, shows_matrices_row_below_row) {
  EXPECT_EQ(printed(Tensor::from<int64_t>({1, 2, 3, 4}, {2, 2})),
            "tensor([[1, 2],\n        [3, 4]])");
}
TEST(print, separates_planes_by_a_blank_line) {
  EXPECT_EQ(printed(Tensor::from<int64_t>({1, 2, 3, 4}, {2, 1, 2})),
            "tensor([[[1, 2]],\n\n        [[3, 4]]])");
}
TEST(print, shows_scalars_bools_and_other_dtypes) {
  EXPECT_EQ(printed(Tensor::from<float>({2.5f}, {})), "tensor(2.5000)");
  EXPECT_EQ(printed(Tensor::from<int64_t>({3, 4}, {2}).to(DType::boolean)), "tensor([True, True])");
  EXPECT_EQ(printed(Tensor::from<double>({1.5}, {1})), "tensor([1.5000], dtype=float64)");
}
TEST(print, uses_exponents_where_numbers_differ_much) {
  EXPECT_EQ(printed(Tensor::from<float>({1e-5f, 1.0f}, {2})), "tensor([1.0000e-05, 1.0000e+00])");
}
TEST(print, shows_nan_and_infinities) {
  EXPECT_EQ(printed(Tensor::from<float>({NAN, INFINITY, -INFINITY, 1.5f}, {4})),
            "tensor([   nan,    inf,   -inf, 1.5000])");
}
TEST(print, leaves_out_the_middle_of_long_tensors) {
  EXPECT_EQ(printed(Tensor::from(std::vector<float>(2000, 1.0f), {2000})),
            "tensor([1., 1., 1.,  ..., 1., 1., 1.])");
}
TEST(print, says_what_an_empty_tensor_is) {
  EXPECT_EQ(printed(Tensor::empty({0, 3})), "tensor([], size=(0, 3))");
}
TEST(print, says_where_a_tensor_comes_from) {
  const Tensor x = Tensor::from<float>({1}, {1}).set_requires_grad();
  EXPECT_EQ(printed(x), "tensor([1.], requires_grad=True)");
  EXPECT_EQ(printed(relu(x)), "tensor([1.], grad_fn=<relu>)");
}

}  // namespace
}  // namespace taper::eager
