// Complex numbers in eager: views of their parts, writes, gradients, dtypes, refusals. The values
// of each function are compared with PyTorch's (tests/golden/complex_cases.py).
#include <gmock/gmock.h>

#include <complex>

#include "taper/exporter/eager/eager.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

using testing::ElementsAre;
using Number = std::complex<float>;

Tensor complex_tensor(const std::vector<Number>& values) {
  return Tensor::from(values, {static_cast<int64_t>(values.size())});
}
std::vector<Number> numbers(const Tensor& t) { return t.to_vector<Number>(); }
std::vector<float> reals(const Tensor& t) { return t.to_vector<float>(); }
const Number i{0, 1};

// ---- views

TEST(complex_views, share_their_memory) {
  Tensor z = complex_tensor({1.f + 2.f * i, 3.f - 1.f * i});
  Tensor parts = view_as_real(z), im = imag(z);
  EXPECT_THAT(reals(parts), ElementsAre(1, 2, 3, -1));
  im.add_(10);
  EXPECT_THAT(numbers(z), ElementsAre(1.f + 12.f * i, 3.f + 9.f * i));
  Tensor back = view_as_complex(parts);
  back.mul_(2);
  EXPECT_THAT(reals(parts), ElementsAre(2, 24, 6, 18));
  EXPECT_THAT(numbers(z), ElementsAre(2.f + 24.f * i, 6.f + 18.f * i));
}
TEST(complex_views, take_pairs_with_even_strides) {
  const Tensor x = arange(24).to(DType::f32).reshape({2, 3, 4});
  const Tensor z = view_as_complex(slice(x, 2, 2, 4));  // offset 2, strides 12 and 4
  EXPECT_EQ(z.storage_offset(), 1);
  EXPECT_THAT(numbers(z), ElementsAre(2.f + 3.f * i, 6.f + 7.f * i, 10.f + 11.f * i,
                                      14.f + 15.f * i, 18.f + 19.f * i, 22.f + 23.f * i));
  EXPECT_THAT(numbers(view_as_complex(ones({0, 2}))), ElementsAre());
  EXPECT_THAT(numbers(view_as_complex(ones({2}))), ElementsAre(1.f + 1.f * i));
}
TEST(complex_views, say_what_they_need) {
  EXPECT_THROW_MESSAGE(view_as_complex(ones({3})),
                       "view_as_complex: the last dimension has size 3, it must be 2");
  EXPECT_THROW_MESSAGE(view_as_complex(ones({2, 3}).t()),
                       "the last dimension has stride 3, it must be 1; call contiguous() first");
  EXPECT_THROW_MESSAGE(view_as_complex(slice(ones({4, 3}), 1, 0, 2)), "strides must be even");
  EXPECT_THROW_MESSAGE(view_as_complex(slice(ones({4}), 0, 1, 3)), "strides must be even");
  EXPECT_THROW_MESSAGE(view_as_complex(ones({2}, DType::f64)), "needs a tensor of dtype f32");
  EXPECT_THROW_MESSAGE(view_as_complex(ones({})), "needs a last dimension of size 2");
  EXPECT_THROW_MESSAGE(view_as_real(ones({2})), "needs a tensor of dtype c64");
  EXPECT_THROW_MESSAGE(view_as_real(zeros({1, 1, 1, 1, 1, 1, 1, 1}, DType::c64)),
                       "the tensor has 8 dimensions already");
}
TEST(as_strided, counts_elements_of_its_own_dtype) {
  const Tensor z = zeros({4}, DType::c64);
  EXPECT_EQ(as_strided(view_as_real(z), {8}, {1}, 0).numel(), 8);
  EXPECT_THROW_MESSAGE(as_strided(view_as_real(z), {9}, {1}, 0), "8 elements");
  EXPECT_THROW_MESSAGE(as_strided(z, {5}, {1}, 0), "4 elements");
}

// ---- writes

TEST(complex_writes, keep_the_dtype_of_self) {
  Tensor z = complex_tensor({1.f, 2.f});
  z.add_(Tensor::from<int64_t>({1, 2}, {2})).mul_(complex_tensor({i})).sub_(1);
  EXPECT_THAT(numbers(z), ElementsAre(-1.f + 2.f * i, -1.f + 4.f * i));
  z.fill_(3);
  EXPECT_THAT(numbers(z), ElementsAre(3.f, 3.f));
  z.copy_(ones({}));
  EXPECT_THAT(numbers(z), ElementsAre(1.f, 1.f));
  Tensor x = ones({2});
  EXPECT_THROW_MESSAGE(x.mul_(z), "mul_: a result of c64 cannot be written into self of f32");
  EXPECT_THROW_MESSAGE(x.copy_(z), "a complex tensor cannot become f32");
}

// ---- gradients

TEST(complex_gradients, are_those_of_both_parts) {
  const Tensor z = complex_tensor({3.f + 4.f * i}), x = ones({1});
  z.set_requires_grad(), x.set_requires_grad();
  const Tensor y = sum(abs(mul(z, complex(x, mul(x, 2)))));  // |z| |x| sqrt(5)
  y.backward();
  EXPECT_EQ(z.grad().dtype(), DType::c64);
  const float root = std::sqrt(5.f);
  EXPECT_NEAR(std::abs(numbers(z.grad())[0] - root * Number(0.6f, 0.8f)), 0, 1e-5);
  EXPECT_NEAR(reals(x.grad())[0], 5 * root, 1e-5);
  sum(real(z)).backward();  // is added
  EXPECT_NEAR(std::abs(numbers(z.grad())[0] - root * Number(0.6f, 0.8f) - 1.f), 0, 1e-5);
}
TEST(complex_gradients, of_a_triangle_take_nothing_from_what_is_not_read) {
  std::vector<std::vector<Number>> gradients;
  for (const float other : {0.f, std::numeric_limits<float>::quiet_NaN()}) {
    Tensor a = Tensor::from(std::vector<Number>{2.f + i, other, 1.f, 3.f + i}, {2, 2});
    a.set_requires_grad();
    const Tensor b = Tensor::from(std::vector<Number>{1.f, i}, {2, 1});
    sum(real(linalg_solve_triangular(a, b, /*upper=*/false))).backward();
    gradients.push_back(numbers(a.grad()));
  }
  EXPECT_EQ(gradients[0], gradients[1]);
}
TEST(complex_gradients, of_views_that_were_written) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {2, 2});
  x.set_requires_grad();
  Tensor z = mul(view_as_complex(x), 2);
  Tensor im = imag(z);
  im.mul_(3);  // 6 times the imaginary part
  sum(view_as_real(z)).backward();
  EXPECT_THAT(reals(x.grad()), ElementsAre(2, 6, 2, 6));
}
TEST(complex_gradients, of_writes_in_place) {
  const Tensor z = complex_tensor({1.f + 2.f * i}), w = complex_tensor({2.f - 1.f * i});
  z.set_requires_grad(), w.set_requires_grad();
  Tensor y = clone(z);
  y.mul_(w);
  sum(real(y)).backward();  // Re(z w) = 1*2 + 2*1
  EXPECT_THAT(numbers(z.grad()), ElementsAre(2.f + 1.f * i));
  EXPECT_THAT(numbers(w.grad()), ElementsAre(1.f - 2.f * i));
}
TEST(complex_gradients, can_be_differentiated_again) {
  const Tensor z = complex_tensor({1.f + 2.f * i});
  z.set_requires_grad();
  const Tensor y = sum(square(abs(square(z))));  // (a^2 + b^2)^2
  const Tensor first = grad({y}, {z}, {}, /*create_graph=*/true)[0];
  EXPECT_NEAR(std::abs(numbers(first)[0] - Number(20, 40)), 0, 1e-4);  // 4 |z|^2 z
  const Tensor second = grad({sum(real(first))}, {z})[0];
  EXPECT_NEAR(std::abs(numbers(second)[0] - Number(28, 16)), 0, 1e-4);  // 12a^2 + 4b^2, 8ab
}
TEST(complex_gradients, start_from_a_real_number) {
  const Tensor z = complex_tensor({i});
  z.set_requires_grad();
  const Tensor y = sum(mul(z, 2));
  EXPECT_THROW_MESSAGE(y.backward(), "backward: a complex tensor needs a gradient to start from");
  y.backward(Tensor::from(std::vector{1.f + 1.f * i}, {}));
  EXPECT_THAT(numbers(z.grad()), ElementsAre(2.f + 2.f * i));
}
TEST(complex_gradients, find_nan) {
  const DetectAnomaly guard;
  const Tensor z = complex_tensor({0.f});
  z.set_requires_grad();
  EXPECT_THROW_MESSAGE(sum(real(log(z))).backward(), "gave NaN");
}

// ---- dtypes

TEST(promotion, puts_complex_above_floating) {
  const Tensor z = complex_tensor({1.f + 1.f * i, i});
  EXPECT_EQ(add(z, ones({2}, DType::f16)).dtype(), DType::c64);
  EXPECT_EQ(mul(ones({2}), Tensor::from(std::vector{i}, {})).dtype(), DType::c64);
  EXPECT_EQ(mul(z, ones({}, DType::f64)).dtype(), DType::c64);
  EXPECT_EQ(cat({z, ones({2}), zeros({1}, DType::i64)}).dtype(), DType::c64);
  EXPECT_EQ(abs(z).dtype(), DType::f32);
  EXPECT_EQ(sum(z).dtype(), DType::c64);
}
TEST(complex_numbers, have_two_f32_and_nothing_else) {
  const Tensor z = complex_tensor({i, i}), wide = ones({2}, DType::f64);
  EXPECT_THROW_MESSAGE(mul(z, wide),
                       "mul.Tensor: f64 and c64 together need complex numbers of f64");
  EXPECT_THROW_MESSAGE(complex(wide, wide), "complex: needs two tensors of dtype f32, got f64");
  EXPECT_THROW_MESSAGE(polar(wide, wide), "polar: needs two tensors of dtype f32");
}

// ---- refusals

TEST(complex_numbers, are_refused_where_there_is_no_form) {
  const Tensor z = complex_tensor({i, i});
  EXPECT_THROW_MESSAGE(relu(z),
                       "relu: has no form for complex numbers; apply it to the real numbers");
  EXPECT_THROW_MESSAGE(sign(z), "sign: has no form for complex numbers");
  EXPECT_THROW_MESSAGE(softmax(z, 0), "has no form for complex numbers");
  EXPECT_THROW_MESSAGE(lt(z, z), "lt.Tensor: has no form for complex numbers");
  EXPECT_THROW_MESSAGE(maximum(z, z), "maximum: has no form for complex numbers");
  EXPECT_THROW_MESSAGE(sort(z), "sort: has no form for complex numbers");
  // the real part of a matrix has other eigenvalues
  EXPECT_THROW_MESSAGE(
      linalg_eigh(eye(2, DType::c64)),
      "has no form for complex numbers; use the real matrix [[re, -im], [im, re]]");
  EXPECT_THROW_MESSAGE(div(z, z, "floor"), "div.Tensor_mode: complex numbers cannot be rounded");
  EXPECT_THROW_MESSAGE(z.to(DType::f32),
                       "_to_copy: a complex tensor cannot become f32, which would drop its "
                       "imaginary part; take real(x), imag(x), abs(x) or view_as_real(x)");
  EXPECT_THROW_MESSAGE(imag(ones({2})), "imag: needs a complex tensor, not f32");
  EXPECT_THROW_MESSAGE(sum(z).item(),
                       "item: a complex number is not one real number; take real() or imag()");
  EXPECT_THROW_MESSAGE(matrix_H(ones({2})), "matrix_H: needs 2 dimensions");
}
TEST(dropout, of_complex_numbers_drops_both_parts) {
  const Tensor z = complex(ones({64}), full({64}, 3.0));
  int dropped = 0;
  for (const Number& y : numbers(dropout(z, 0.5))) {
    EXPECT_TRUE(y == Number(0) || y == Number(2, 6)) << y;
    dropped += y == Number(0);
  }
  EXPECT_GT(dropped, 10);
  EXPECT_LT(dropped, 54);
}
TEST(complex_numbers, of_size_zero_and_without_dimensions) {
  const Tensor none = zeros({0, 3}, DType::c64), one = Tensor::from(std::vector{2.f * i}, {});
  EXPECT_EQ(to_string(matmul(none, zeros({3, 2}, DType::c64)).sizes()), "(0, 2)");
  EXPECT_THAT(numbers(prod(none)), ElementsAre(1.f));
  EXPECT_THAT(numbers(prod(none, 0)), ElementsAre(1.f, 1.f, 1.f));
  EXPECT_THAT(numbers(cumprod(one, 0)), ElementsAre(2.f * i));
  EXPECT_THAT(numbers(square(one)), ElementsAre(-4.f));
  EXPECT_EQ(to_string(std(none, Ints{1}, 1).sizes()), "(0)");
}
TEST(complex_numbers, do_not_overflow_in_between) {
  const Tensor z = complex_tensor({3e30f + 4e30f * i, 3e-30f + 4e-30f * i});
  EXPECT_THAT(reals(abs(z)), ElementsAre(testing::FloatEq(5e30f), testing::FloatEq(5e-30f)));
  EXPECT_THAT(reals(abs(div(z, z))), ElementsAre(testing::FloatEq(1), testing::FloatEq(1)));
  EXPECT_THAT(reals(abs(reciprocal(z))),
              ElementsAre(testing::FloatEq(2e-31f), testing::FloatEq(2e29f)));
  EXPECT_THAT(reals(real(tanh(complex_tensor({80.f + 1.f * i})))), ElementsAre(1));
}

// ---- printing

TEST(print, shows_complex_numbers_as_pytorch) {
  EXPECT_EQ(complex_tensor({1.f + 2.f * i, 3.5f - 1.f * i}).to_string(),
            "tensor([1.0000+2.j, 3.5000-1.j])");
  EXPECT_EQ(complex_tensor({1.f + 2.f * i, 3.f - 1.f * i}).to_string(), "tensor([1.+2.j, 3.-1.j])");
  EXPECT_EQ(Tensor::from(std::vector{1.5f - 2.f * i}, {}).to_string(), "tensor(1.5000-2.j)");
  EXPECT_EQ(
      Tensor::from(std::vector{1e-5f + 2.f * i, 3.f - 1e4f * i, Number(0), Number(NAN, INFINITY)},
                   {2, 2})
          .to_string(),
      "tensor([[1.0000e-05+2.0000e+00j, 3.0000e+00-1.0000e+04j],\n"
      "        [0.0000e+00+0.0000e+00j,        nan+infj]])");
  EXPECT_EQ(zeros({0}, DType::c64).to_string(), "tensor([], dtype=complex64)");
}

}  // namespace
}  // namespace taper::eager
