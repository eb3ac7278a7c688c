#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

#include "eager_check.h"
#include "taper/tests/support/throw_message.h"

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

// They are read in tiles, whose last row and column may be cut.
TEST(pointwise, gives_the_same_bits_for_transposed_arguments) {
  for (const Ints& sizes :
       {Ints{16, 32}, Ints{17, 33}, Ints{100, 70}, Ints{3, 64, 47}, Ints{65, 500}}) {
    const auto columns = [&](const Tensor& t) {
      return contiguous(transpose(t, -1, -2)).transpose(-1, -2);
    };
    const Tensor x = random_tensor(sizes, 1), y = random_tensor(sizes, 2);
    expect_same_bits(columns(x) * y, x * y);
    expect_same_bits(x - columns(y), x - y);
    expect_same_bits(where(lt(columns(x), columns(y)), columns(y), x), where(lt(x, y), y, x));
    for (const DType d : {DType::f16, DType::f64, DType::i64, DType::u8}) {
      const Tensor a = (abs(x) * 10).to(d), b = (abs(y) * 10).to(d);
      EXPECT_EQ((columns(a) + b).to(DType::f64).to_vector<double>(),
                (a + b).to(DType::f64).to_vector<double>());
    }
    const Tensor row = random_tensor({sizes.back()}, 3);
    expect_same_bits(columns(x) * row, x * row);
  }
}

TEST(pointwise, replaces_infinities_of_halves_by_their_own_largest_numbers) {
  const Tensor x = Tensor::from<float>({HUGE_VALF, -HUGE_VALF, NAN, 1}, {4});
  EXPECT_EQ(nan_to_num(x.to(DType::f16)).to(DType::f32).to_vector<float>(),
            (std::vector<float>{65504, -65504, 0, 1}));
  EXPECT_EQ(nan_to_num(x.to(DType::bf16)).to(DType::f32).to_vector<float>(),
            (std::vector<float>{0x1.fep127f, -0x1.fep127f, 0, 1}));
  EXPECT_EQ(nan_to_num(x.to(DType::f16), {}, 7.0).to(DType::f32).to_vector<float>(),
            (std::vector<float>{7, -65504, 0, 1}));
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
  const Tensor minus_one = Tensor::from(std::vector<int64_t>{-1}, {1});
  EXPECT_EQ(div(least, minus_one, "floor").to_vector<int64_t>(), (std::vector<int64_t>{INT64_MIN}));
  EXPECT_EQ(fmod(least, minus_one).item<int64_t>(), 0);
  EXPECT_EQ(remainder(least, minus_one).item<int64_t>(), 0);
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

template <class T>
void expect_steps_as_std_nextafter() {
  const T tiny = std::numeric_limits<T>::denorm_min(), most = std::numeric_limits<T>::max();
  const T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> numbers{0,    T(-0.0), 1,        -1,        tiny, -tiny,
                               most, -most,   infinity, -infinity, nan};
  const auto n = static_cast<int64_t>(numbers.size());
  const std::vector<T> y =
      nextafter(Tensor::from(numbers, {n, 1}), Tensor::from(numbers, {n})).template to_vector<T>();
  size_t i = 0;
  for (const T a : numbers)
    for (const T b : numbers) {
      const T expected = std::nextafter(a, b), got = y[i++];
      EXPECT_TRUE(std::isnan(expected)
                      ? std::isnan(got)
                      : got == expected && std::signbit(got) == std::signbit(expected))
          << a << " towards " << b << ": " << got << ", not " << expected;
    }
}
TEST(pointwise, raises_to_an_infinite_power_as_std_pow) {
  const std::vector<float> bases = {-2, -1, -0.5f, 0, 0.5f, 1, 2};
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float exponent : {infinity, -infinity}) {
    std::vector<float> want;
    for (const float base : bases) want.push_back(std::pow(base, exponent));
    EXPECT_EQ(pow(Tensor::from(bases, {7}), exponent).to_vector<float>(), want);
  }
}

TEST(pointwise, steps_to_the_next_number_as_std_nextafter) {
  expect_steps_as_std_nextafter<float>();
  expect_steps_as_std_nextafter<double>();
  expect_same_bits(nextafter(scattered(random_tensor({5, 33})), zeros({33})),
                   nextafter(random_tensor({5, 33}), zeros({33})));
}
// The next f32 is not the next half; of integers there is none.
TEST(pointwise, refuses_nextafter_of_halves_and_integers) {
  for (const DType d : {DType::f16, DType::bf16, DType::i32})
    EXPECT_THROW(nextafter(ones({2}).to(d), ones({2}).to(d)), ExportError) << name_of(d);
}

TEST(pointwise, lets_nan_through_maximum_relu_and_clamp) {
  const Tensor x = Tensor::from(std::vector<float>{NAN, 1}, {2});
  EXPECT_TRUE(std::isnan(maximum(x, zeros({2})).to_vector<float>()[0]));
  EXPECT_TRUE(std::isnan(maximum(zeros({2}), x).to_vector<float>()[0]));
  EXPECT_TRUE(std::isnan(relu(x).to_vector<float>()[0]));
  EXPECT_TRUE(std::isnan(clamp(x, Scalar(0), Scalar(1)).to_vector<float>()[0]));
}

TEST(pointwise, prefers_numbers_to_nan_in_fmax_and_fmin) {
  const Tensor x = Tensor::from(std::vector<float>{NAN, 1, NAN}, {3}),
               y = Tensor::from(std::vector<float>{2, NAN, NAN}, {3});
  const std::vector<float> most = fmax(x, y).to_vector<float>(),
                           least = fmin(x, y).to_vector<float>();
  EXPECT_EQ(most[0], 2);
  EXPECT_EQ(most[1], 1);
  EXPECT_TRUE(std::isnan(most[2]));
  EXPECT_EQ(least[0], 2);
  EXPECT_EQ(least[1], 1);
  EXPECT_TRUE(std::isnan(least[2]));
}

TEST(pointwise, shifts_everything_out_by_counts_beyond_the_width) {
  const Tensor x = Tensor::from(std::vector<int8_t>{5, -5, 5, -5, 1, -128}, {6}),
               count = Tensor::from(std::vector<int8_t>{-1, -1, 100, 100, 7, 7}, {6});
  EXPECT_EQ(bitwise_left_shift(x, count).to_vector<int8_t>(),
            (std::vector<int8_t>{0, 0, 0, 0, -128, 0}));
  EXPECT_EQ(bitwise_right_shift(x, count).to_vector<int8_t>(),
            (std::vector<int8_t>{0, -1, 0, -1, 0, -1}));
  EXPECT_EQ(bitwise_left_shift(x, 1).to_vector<int8_t>(),
            (std::vector<int8_t>{10, -10, 10, -10, 2, 0}));
  EXPECT_EQ(bitwise_right_shift(x, 1).to_vector<int8_t>(),
            (std::vector<int8_t>{2, -3, 2, -3, 0, -64}));
  EXPECT_THROW(bitwise_left_shift(ones({2}), 1), ExportError);
  EXPECT_THROW(bitwise_left_shift(ones({2}, DType::boolean), ones({2}, DType::boolean)),
               ExportError);
}

TEST(pointwise, adds_logarithms_of_infinities) {
  const float inf = INFINITY;
  const Tensor x = Tensor::from(std::vector<float>{-inf, inf, -inf, 500, 0}, {5}),
               y = Tensor::from(std::vector<float>{-inf, inf, 3, 500, -500}, {5});
  EXPECT_EQ(logaddexp(x, y).to_vector<float>(),
            (std::vector<float>{-inf, inf, 3, 500 + std::log(2.0f), 0}));
  EXPECT_EQ(logaddexp2(x, y).to_vector<float>(), (std::vector<float>{-inf, inf, 3, 501, 0}));
}

TEST(pointwise, has_the_second_derivatives_of_its_formulas) {
  const auto check = [](Tensor (*f)(const Tensor&, Location)) {
    // both sides of 0, and 0.01 on the series of sinc
    const Tensor x = Tensor::from(std::vector<double>{0.01, 0.3, 0.7, -0.6, -0.2}, {5});
    expect_right_derivatives([&](const std::vector<Tensor>& v) { return sum(f(v[0], {})); }, {x});
  };
  check(mish), check(erfinv), check(exp2), check(sinc), check(digamma);
  expect_right_derivatives(
      [](const std::vector<Tensor>& v) {
        return sum(logaddexp(v[0], v[1]) + logaddexp2(v[0], v[1]) + hypot(v[0], v[1]) +
                   xlogy(v[0], exp(v[1])));
      },
      {random_tensor({4}, 1, DType::f64), random_tensor({3, 1}, 2, DType::f64)});
}

TEST(pointwise, has_a_mish_that_is_x_far_out) {
  const Tensor x = Tensor::from(std::vector<float>{-80, -1, 0, 1, 19.9f, 20.1f, 200}, {7});
  const std::vector<float> y = mish(x).to_vector<float>(), at = x.to_vector<float>();
  for (size_t i = 0; i < y.size(); ++i) {
    const double want = double{at[i]} * std::tanh(std::log1p(std::exp(double{at[i]})));
    EXPECT_NEAR(y[i], want, 2e-7 * std::fabs(want)) << at[i];
  }
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

// The numbers are PyTorch's.
TEST(clamp, shares_its_gradient_with_its_bounds) {
  const Tensor x = Tensor::from<float>({-1, 0, 2, 3}, {4});
  x.set_requires_grad();
  const auto gradient = [&](const Tensor& y) { return grad({sum(y)}, {x})[0].to_vector<float>(); };
  EXPECT_EQ(gradient(clamp(x, -1, 2)), (std::vector<float>{0, 1, 0, 0}));
  EXPECT_EQ(gradient(clamp(x, full({}, -1), full({}, 2))), (std::vector<float>{0.5f, 1, 0.5f, 0}));
}
// The numbers are PyTorch's.
TEST(promotion, comes_before_a_number_minus_an_integer_tensor) {
  const Tensor u = Tensor::from<uint8_t>({0, 1, 200}, {3});
  EXPECT_EQ((1.0 - u).to_vector<float>(), (std::vector<float>{1, 0, -199}));
  EXPECT_EQ((1 - u).to_vector<uint8_t>(), (std::vector<uint8_t>{1, 0, 57}));
  EXPECT_EQ(call<ops::rsub_Scalar>(Location{}, u, Scalar(2.0), Scalar(0.5)).to_vector<float>(),
            (std::vector<float>{2, 1.5f, -98}));
}
TEST(promotion, leaves_a_tensor_without_dimensions_its_dtype_beside_an_integer) {
  const Tensor condition = full({}, true, DType::boolean), z = full({}, 3, DType::i32);
  EXPECT_EQ(where(condition, z, Scalar(1)).dtype(), DType::i32);
  EXPECT_EQ(where(condition, Scalar(1), z).dtype(), DType::i32);
  EXPECT_EQ(where(condition, z, Scalar(1.5)).dtype(), DType::f32);
  EXPECT_EQ(where(condition, condition, Scalar(1)).dtype(), DType::i64);
}
TEST(xlogy, has_a_gradient_where_self_is_zero_and_other_is_not) {
  const Tensor x = Tensor::from<float>({0, 0, 1, 0}, {4}).set_requires_grad();
  const Tensor y = Tensor::from<float>({8, -1, 8, 0}, {4});
  const std::vector<float> dx = grad({sum(xlogy(x, y))}, {x})[0].to_vector<float>();
  EXPECT_NEAR(dx[0], std::log(8.0f), 1e-6);
  EXPECT_EQ(dx[1], 0);
  EXPECT_NEAR(dx[2], std::log(8.0f), 1e-6);
  EXPECT_EQ(dx[3], 0);
}
// The numbers are PyTorch's.
TEST(xlogy, of_f64_takes_numbers_in_f64) {
  const Tensor x = Tensor::from<double>({2, 3}, {2});
  const auto expect_near = [](const Tensor& got, double first, double second) {
    ASSERT_EQ(got.dtype(), DType::f64);
    EXPECT_NEAR(got.to_vector<double>()[0], first, 1e-15);
    EXPECT_NEAR(got.to_vector<double>()[1], second, 1e-15);
  };
  expect_near(xlogy(x, 0.1), -4.605170185988091, -6.907755278982137);
  expect_near(xlogy(0.1, x), 0.06931471805599453, 0.10986122886681099);
  expect_near(call<ops::special_xlogy_self_scalar>(Location{}, Scalar(0.1), x), 0.06931471805599453,
              0.10986122886681099);
  expect_near(call<ops::special_xlog1py_other_scalar>(Location{}, x, Scalar(0.1)),
              0.19062035960864973, 0.2859305394129746);
  expect_near(call<ops::special_xlog1py_self_scalar>(Location{}, Scalar(0.1), x),
              0.10986122886681096, 0.13862943611198905);
  EXPECT_EQ(xlogy(full({}, 2, DType::f64), 0.1).dtype(), DType::f64);
  EXPECT_EQ(xlogy(full({}, 2, DType::f16), 0.1).dtype(), DType::f16);
  EXPECT_EQ(xlogy(full({1}, 2, DType::i8), 300).item<float>(), 2 * std::log(300.0f));
}
// The numbers are PyTorch's.
TEST(comparisons, cast_a_number_to_the_dtype_of_the_tensor) {
  using Answers = std::vector<bool>;
  const auto answers = [](const Tensor& t) {
    Answers result;
    for (const uint8_t b : t.to(DType::u8).to_vector<uint8_t>()) result.push_back(b != 0);
    return result;
  };
  const Tensor x = Tensor::from<float>({0.1f, 0.2f, 65504, INFINITY}, {4}), f16 = x.to(DType::f16),
               bf16 = x.to(DType::bf16);
  for (const Tensor& t : {f16, bf16, x, x.to(DType::f64)})
    EXPECT_EQ(answers(t == 0.1), (Answers{t.dtype() != DType::f64, false, false, false}));
  EXPECT_EQ(answers(f16 != 0.1), (Answers{false, true, true, true}));
  EXPECT_EQ(answers(f16 < 0.1), (Answers{false, false, false, false}));
  EXPECT_EQ(answers(f16 <= 0.1), (Answers{true, false, false, false}));
  EXPECT_EQ(answers(f16 > 0.1), (Answers{false, true, true, true}));
  EXPECT_EQ(answers(f16 >= 0.1), (Answers{true, true, true, true}));
  EXPECT_EQ(answers(f16 == 70000), (Answers{false, false, false, true}));
  EXPECT_EQ(answers(f16 == 65519), (Answers{false, false, true, false}));
  EXPECT_EQ(answers(bf16 == 70000), (Answers{false, false, false, false}));
  EXPECT_EQ(answers(bf16 == 65519), (Answers{false, false, true, false}));

  const Tensor u8 = Tensor::from<uint8_t>({0, 1, 5}, {3}), i8 = u8.to(DType::i8),
               boolean = u8.to(DType::boolean);
  EXPECT_EQ(answers(u8 <= -3), (Answers{true, true, true}));
  EXPECT_EQ(answers(i8 <= -3), (Answers{false, false, false}));
  EXPECT_EQ(answers(u8 == 261), (Answers{false, false, true}));
  // of another category: in f32, and bools beside an integer in i64
  EXPECT_EQ(answers(u8 <= 5.5), (Answers{true, true, true}));
  EXPECT_EQ(answers(u8 == 0.1), (Answers{false, false, false}));
  EXPECT_EQ(answers(boolean <= 0.1), (Answers{true, false, false}));
  EXPECT_EQ(answers(boolean == 1), (Answers{false, true, true}));
  EXPECT_EQ(answers(boolean <= -3), (Answers{false, false, false}));
}
// The numbers are PyTorch's.
TEST(masked_fill, of_bools_takes_every_number_but_zero_for_true) {
  const Tensor x = zeros({2}, DType::boolean), mask = Tensor::from<float>({1, 0}, {2}) == 1;
  for (const double value : {0.1, -1.0, 256.0, double(NAN)}) {
    EXPECT_EQ(masked_fill(x, mask, value).to(DType::u8).to_vector<uint8_t>(),
              (std::vector<uint8_t>{1, 0}))
        << value;
  }
  EXPECT_EQ(sum(masked_fill(x, mask, 0.0)).item<int64_t>(), 0);
}
// The numbers are PyTorch's.
TEST(ldexp, has_the_dtype_of_a_floating_self_beside_integers) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64})
    for (const Dims& sizes : {Dims{}, Dims{2}})
      for (const Dims& others : {Dims{}, Dims{2}}) {
        EXPECT_EQ(ldexp(ones(sizes, dtype), ones(others, DType::i32)).dtype(), dtype);
        EXPECT_EQ(ldexp(ones(sizes, DType::i32), ones(others, dtype)).dtype(), dtype);
      }
  EXPECT_EQ(ldexp(ones({}, DType::i64), ones({}, DType::u8)).dtype(), DType::f32);
  EXPECT_EQ(ldexp(ones({2}, DType::f16), ones({2}, DType::bf16)).dtype(), DType::f32);
  EXPECT_EQ(ldexp(ones({2}, DType::f16), ones({2})).dtype(), DType::f32);
  EXPECT_EQ(ldexp(ones({2}, DType::f16), ones({})).dtype(), DType::f16);
}
TEST(ldexp, is_exact_where_the_power_is_no_number) {
  const Tensor x = Tensor::from<float>({0x1p-140f, 1, 1, 0, INFINITY, 3}, {6}),
               e = Tensor::from<int64_t>({260, 128, -150, 5000, -5000, -1}, {6});
  EXPECT_EQ(ldexp(x, e).to_vector<float>(),
            (std::vector<float>{0x1p120f, INFINITY, 0, 0, INFINITY, 1.5f}));
  EXPECT_EQ(ldexp(full({1}, 0x1p-1074, DType::f64), full({1}, 2000, DType::i64)).item(), 0x1p926);
  EXPECT_EQ(ldexp(full({1}, 0x1p-24, DType::f16), full({1}, 30, DType::i32)).to(DType::f32).item(),
            64);
  const Tensor powers = arange(-149, 128), all = ldexp(ones({277}), powers.to(DType::i64));
  for (int k = -149; k < 128; ++k)
    EXPECT_EQ(all.to_vector<float>()[static_cast<size_t>(k + 149)], std::ldexp(1.0f, k)) << k;
}
// The numbers are PyTorch's.
TEST(logit, has_a_gradient_at_its_ends) {
  const auto gradient = [](std::optional<double> eps) {
    const Tensor x =
        Tensor::from<double>({0, 1, 0.5, -0.5, 1.5, NAN, 0.1}, {7}).set_requires_grad();
    return grad({sum(logit(x, eps))}, {x})[0].to_vector<double>();
  };
  const auto expect_same = [](const std::vector<double>& got, const std::vector<double>& want) {
    for (size_t i = 0; i < want.size(); ++i)
      if (std::isnan(want[i]))
        EXPECT_TRUE(std::isnan(got[i])) << i;
      else
        EXPECT_DOUBLE_EQ(got[i], want[i]) << i;
  };
  expect_same(gradient({}), {INFINITY, INFINITY, 4, NAN, NAN, NAN, 11.111111111111109});
  expect_same(gradient(0.1), {0, 0, 4, 0, 0, NAN, 11.111111111111109});
  expect_same(gradient(0.0), {INFINITY, INFINITY, 4, 0, 0, NAN, 11.111111111111109});
  expect_same(gradient(0.6), {0, 0, 0, 0, 0, NAN, 0});
}
// The numbers are PyTorch's.
TEST(special_entr, has_a_gradient_at_zero_and_infinity) {
  const Tensor x =
      Tensor::from<float>({0, -0.0f, 1, INFINITY, -0.5f, NAN}, {6}).set_requires_grad();
  const Tensor y = entr(x);
  const std::vector<float> entropy = y.to_vector<float>(),
                           dx = grad({sum(y)}, {x})[0].to_vector<float>();
  EXPECT_EQ((std::vector<float>(entropy.begin(), entropy.begin() + 5)),
            (std::vector<float>{0, 0, 0, -INFINITY, -INFINITY}));
  EXPECT_FALSE(std::signbit(entropy[0]) || std::signbit(entropy[1]));
  EXPECT_TRUE(std::signbit(entropy[2]));
  EXPECT_EQ((std::vector<float>(dx.begin(), dx.begin() + 4)),
            (std::vector<float>{INFINITY, INFINITY, -1, -INFINITY}));
  EXPECT_TRUE(std::isnan(entropy[5]) && std::isnan(dx[4]) && std::isnan(dx[5]));
}
TEST(atan2, has_a_gradient_of_zero_at_the_origin) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor y = Tensor::from<double>({0, -0.0, 0, 0, -3, 3}, {6}).to(dtype),
                 x = Tensor::from<double>({0, 0, -0.0, 2, 0, -4}, {6}).to(dtype);
    y.set_requires_grad(), x.set_requires_grad();
    const std::vector<Tensor> slopes = grad({sum(atan2(y, x))}, {y, x});
    // x / (x² + y²) and -y / (x² + y²)
    const std::vector<double> to_y = slopes[0].to(DType::f64).to_vector<double>(),
                              to_x = slopes[1].to(DType::f64).to_vector<double>();
    const double want_y[] = {0, 0, 0, 0.5, 0, -0.16}, want_x[] = {0, 0, 0, 0, 1.0 / 3, -0.12};
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_NEAR(to_y[i], want_y[i], 1e-7) << i;
      EXPECT_NEAR(to_x[i], want_x[i], 1e-7) << i;
    }
  }
}

TEST(linspace, of_integers_takes_its_ends_without_their_fractions) {
  EXPECT_EQ(linspace(0.5, 5, 4, DType::i64).to_vector<int64_t>(),
            (std::vector<int64_t>{0, 1, 3, 5}));
}
TEST(composites, name_themselves_in_the_errors_of_their_parts) {
  EXPECT_THROW_MESSAGE(
      call<ops::addr>(Location{}, ones({2}), ones({2}), ones({3}), Scalar(1), Scalar(1)),
      "addr: in addmm: ");
}

}  // namespace
}  // namespace taper::eager
