#include "taper/kernels/portable/math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "taper/kernels/portable/elementary.h"
#include "taper/kernels/portable/small_floats.h"

namespace {

namespace math = taper::portable::math;

// The largest distance to the function in double, in units of the result's last place, over a
// sample of all floats.
template <class F, class G>
double worst_error(F function, G exact) {
  double worst = 0;
  for (uint64_t u = 0; u < 0x100000000ull; u += 4099) {
    const float x = math::float_of(static_cast<uint32_t>(u));
    const double want = exact(static_cast<double>(x));
    const float rounded = static_cast<float>(want), got = function(x);
    if (std::isnan(rounded) || std::isinf(rounded)) {
      EXPECT_TRUE(got == rounded || (std::isnan(got) && std::isnan(rounded))) << x;
      continue;
    }
    const int exponent = rounded == 0 ? -149 : std::max(std::ilogb(rounded) - 23, -149);
    worst = std::max(worst, std::fabs(got - want) / std::ldexp(1.0, exponent));
  }
  return worst;
}

// With two roundings, and with fused multiply-adds.
template <class M>
class formulas : public testing::Test {};
struct FormulaNames {
  template <class M>
  static std::string GetName(int) {
    return std::is_same_v<M, math::Fused> ? "fused" : "separate";
  }
};
using Roundings = testing::Types<math::Separate, math::Fused>;
TYPED_TEST_SUITE(formulas, Roundings, FormulaNames);

TYPED_TEST(formulas, exp_is_within_one_and_a_fifth_units_in_the_last_place) {
  EXPECT_LT(worst_error([](float x) { return math::exp<TypeParam>(x); },
                        [](double x) { return std::exp(x); }),
            1.2);
}
TYPED_TEST(formulas, log_is_within_one_unit_in_the_last_place) {
  EXPECT_LT(worst_error([](float x) { return math::log<TypeParam>(x); },
                        [](double x) { return std::log(x); }),
            1.0);
}
TYPED_TEST(formulas, pow_is_within_six_tenths_of_a_unit_in_the_last_place) {
  for (const float y :
       {0.75f, -0.5f, 1.0f / 3, 7.0f, -2.0f, 33.3f, 1e-3f, -4e-5f, 1e30f, 16777215.0f})
    EXPECT_LT(worst_error([=](float x) { return math::pow<TypeParam>(x, y); },
                          [=](double x) { return std::pow(x, static_cast<double>(y)); }),
              0.6)
        << y;
  for (const float x : {10000.0f, 0.3f, 2.0f, 1.00001f, -1.5f, -1e-40f})
    EXPECT_LT(worst_error([=](float y) { return math::pow<TypeParam>(x, y); },
                          [=](double y) { return std::pow(static_cast<double>(x), y); }),
              0.6)
        << x;
}
TYPED_TEST(formulas, pow_has_the_special_cases_of_ieee_754) {
  const float infinity = HUGE_VALF, subnormal = 1e-45f, largest = 3.4e38f;
  const float values[] = {0, subnormal,  1e-30f,   0.25f,    0.5f,    1,        1.5f,         2,
                          3, 8388607.5f, 16777215, 16777216, largest, infinity, std::nanf("")};
  for (const float a : values)
    for (const float b : values)
      for (const float x : {a, -a})
        for (const float y : {b, -b}) {
          const float want = std::pow(x, y), got = math::pow<TypeParam>(x, y);
          if (std::isnan(want))
            EXPECT_TRUE(std::isnan(got)) << x << " ^ " << y;
          else if (want == 0 || std::isinf(want) || want == 1)
            EXPECT_EQ(math::bits_of(got), math::bits_of(want)) << x << " ^ " << y;
          else
            EXPECT_FLOAT_EQ(got, want) << x << " ^ " << y;
        }
}
TYPED_TEST(formulas, log1p_of_positive_numbers_is_within_three_units_in_the_last_place) {
  const auto in_range = [](double x) { return std::min(std::fabs(x), 1e30); };
  EXPECT_LT(
      worst_error(
          [&](float x) { return math::log1p_positive<TypeParam>(static_cast<float>(in_range(x))); },
          [&](double x) { return std::log1p(in_range(x)); }),
      3.0);
}
TYPED_TEST(formulas, sin_and_cos_are_within_one_and_a_half_units_in_the_last_place) {
  const auto in_range = [](double x) { return std::fabs(x) < math::trigonometric_limit ? x : 0.0; };
  EXPECT_LT(
      worst_error(
          [&](float x) { return math::sine<TypeParam>(static_cast<float>(in_range(x)), 0); },
          [&](double x) { return std::sin(static_cast<double>(static_cast<float>(in_range(x)))); }),
      1.5);
  EXPECT_LT(
      worst_error(
          [&](float x) { return math::sine<TypeParam>(static_cast<float>(in_range(x)), 1); },
          [&](double x) { return std::cos(static_cast<double>(static_cast<float>(in_range(x)))); }),
      1.5);
  EXPECT_EQ(math::bits_of(math::sine<TypeParam>(-0.0f, 0)), 0x80000000u);
}
TYPED_TEST(formulas, tanh_is_within_one_and_a_half_units_in_the_last_place) {
  EXPECT_LT(worst_error([](float x) { return math::tanh<TypeParam>(x); },
                        [](double x) { return std::tanh(x); }),
            1.5);
}
TYPED_TEST(formulas, erf_is_within_1_7_units_in_the_last_place) {
  EXPECT_LT(worst_error([](float x) { return math::erf<TypeParam>(x); },
                        [](double x) { return std::erf(x); }),
            1.7);
  EXPECT_EQ(math::erf<TypeParam>(HUGE_VALF), 1);
  EXPECT_EQ(math::erf<TypeParam>(-HUGE_VALF), -1);
  EXPECT_TRUE(std::isnan(math::erf<TypeParam>(NAN)));
}
TYPED_TEST(formulas, x_sigmoid_of_twice_gelus_argument_is_its_approximation_by_tanh) {
  using M = TypeParam;
  for (float x = -12; x < 12; x += 0.0037f) {
    const double z = x,
                 want = 0.5 * z * (1 + std::tanh(std::sqrt(2 / M_PI) * (z + 0.044715 * z * z * z)));
    const float got = x / math::inverse_sigmoid<M>(math::twice_gelu_argument<M>(x));
    EXPECT_NEAR(got, want, 2e-7 * std::max(1.0, std::fabs(want))) << x;
  }
}
TYPED_TEST(formulas, sigmoid_is_within_two_units_in_the_last_place_where_it_does_not_vanish) {
  const auto in_range = [](double x) { return std::max(x, -87.0); };
  EXPECT_LT(worst_error(
                [&](float x) { return math::sigmoid<TypeParam>(static_cast<float>(in_range(x))); },
                [&](double x) { return 1 / (1 + std::exp(-in_range(x))); }),
            2.0);
}
TYPED_TEST(formulas, sigmoid_and_silu_keep_their_limits_and_nan) {
  using M = TypeParam;
  for (const float x : {-88.5f, -89.0f, -1e4f, -1e38f, -HUGE_VALF}) {
    EXPECT_EQ(math::sigmoid<M>(x), 0) << x;
    EXPECT_EQ(math::inverse_sigmoid<M>(x), HUGE_VALF) << x;
  }
  for (const float x : {17.5f, 88.5f, 1e4f, 1e38f, HUGE_VALF}) {
    EXPECT_EQ(math::sigmoid<M>(x), 1) << x;
    EXPECT_EQ(math::inverse_sigmoid<M>(x), 1) << x;
  }
  // between them it stays finite, also where 2^n is infinite or its exponent the largest
  for (float x = -88.3f; x < -87.0f; x += 1e-3f)
    EXPECT_NEAR(math::sigmoid<M>(x) / std::exp(static_cast<double>(x)), 1, 1e-6) << x;
  for (const float nan : {NAN, -NAN}) {
    EXPECT_TRUE(std::isnan(math::exp<M>(nan)));
    EXPECT_TRUE(std::isnan(math::sigmoid<M>(nan)));
    EXPECT_TRUE(std::isnan(math::tanh<M>(nan)));
    EXPECT_TRUE(std::isnan(math::erf<M>(nan)));
  }
}
TYPED_TEST(formulas, log1p_and_expm1_are_within_three_units_in_the_last_place_where_they_hold) {
  const auto unit = [](double u) { return u >= 0 && u <= 1 ? u : 0.5; };
  EXPECT_LT(
      worst_error([&](float x) { return math::log1p_near<TypeParam>(static_cast<float>(unit(x))); },
                  [&](double x) { return std::log1p(unit(x)); }),
      3.0);
  const auto negative = [](double x) { return x <= 0 && x > -87 ? x : -1.0; };
  EXPECT_LT(
      worst_error(
          [&](float x) { return math::expm1_near<TypeParam>(static_cast<float>(negative(x))); },
          [&](double x) { return std::expm1(negative(x)); }),
      3.0);
}
TYPED_TEST(formulas, powers_and_hyperbolic_functions_are_within_their_bounds) {
#define TAPER_EXPECT_FORMULA_WITHIN(bound, name)                          \
  EXPECT_LT(worst_error([](float x) { return math::name<TypeParam>(x); }, \
                        [](double x) { return std::name(x); }),           \
            bound)                                                        \
      << #name
  TAPER_EXPECT_FORMULA_WITHIN(1.2, exp2);
  TAPER_EXPECT_FORMULA_WITHIN(1.6, expm1);
  TAPER_EXPECT_FORMULA_WITHIN(0.6, sinh);
  TAPER_EXPECT_FORMULA_WITHIN(0.6, cosh);
}
TYPED_TEST(formulas, logarithms_and_their_kin_are_within_six_tenths_of_a_unit_in_the_last_place) {
  TAPER_EXPECT_FORMULA_WITHIN(0.6, log2);
  TAPER_EXPECT_FORMULA_WITHIN(0.6, log10);
  TAPER_EXPECT_FORMULA_WITHIN(0.6, log1p);
  TAPER_EXPECT_FORMULA_WITHIN(0.6, asinh);
  TAPER_EXPECT_FORMULA_WITHIN(0.6, acosh);
  TAPER_EXPECT_FORMULA_WITHIN(0.6, atanh);
}
TYPED_TEST(formulas, angles_and_erfc_are_within_six_tenths_of_a_unit_in_the_last_place) {
  TAPER_EXPECT_FORMULA_WITHIN(0.6, atan);
  TAPER_EXPECT_FORMULA_WITHIN(0.6, asin);
  TAPER_EXPECT_FORMULA_WITHIN(0.6, acos);
  TAPER_EXPECT_FORMULA_WITHIN(0.6, erfc);
  const auto in_range = [](double x) { return std::fabs(x) < math::trigonometric_limit ? x : 0.0; };
  EXPECT_LT(worst_error(
                [&](float x) { return math::tangent<TypeParam>(static_cast<float>(in_range(x))); },
                [&](double x) { return std::tan(in_range(x)); }),
            0.6);
}
TYPED_TEST(formulas, atan2_and_hypot_are_within_six_tenths_of_a_unit_in_the_last_place) {
  for (const float y : {1.0f, -2.5f, 1e-40f, 1e20f, HUGE_VALF, -HUGE_VALF, NAN}) {
    const double yd = y;
    EXPECT_LT(worst_error([=](float x) { return math::atan2<TypeParam>(y, x); },
                          [=](double x) { return std::atan2(yd, x); }),
              0.6)
        << y;
    EXPECT_LT(worst_error([=](float x) { return math::atan2<TypeParam>(x, y); },
                          [=](double x) { return std::atan2(x, yd); }),
              0.6)
        << y;
    EXPECT_LT(worst_error([=](float x) { return math::hypot<TypeParam>(x, y); },
                          [=](double x) { return std::hypot(x, yd); }),
              0.6)
        << y;
  }
}
TYPED_TEST(formulas, atan2_has_the_special_cases_of_ieee_754) {
  const float values[] = {0, 1e-45f, 1, 3.4e38f, HUGE_VALF};
  for (const float a : values)
    for (const float b : values)
      for (const float y : {a, -a})
        for (const float x : {b, -b}) {
          const double want = std::atan2(static_cast<double>(y), static_cast<double>(x));
          EXPECT_EQ(math::bits_of(math::atan2<TypeParam>(y, x)),
                    math::bits_of(static_cast<float>(want)))
              << y << ", " << x;
        }
}
TYPED_TEST(formulas, odd_functions_keep_the_sign_of_zero) {
  using M = TypeParam;
  for (const float zero : {0.0f, -0.0f})
    for (const float y :
         {math::expm1<M>(zero), math::sinh<M>(zero), math::log1p<M>(zero), math::asinh<M>(zero),
          math::atanh<M>(zero), math::tangent<M>(zero), math::atan<M>(zero), math::asin<M>(zero)})
      EXPECT_EQ(math::bits_of(y), math::bits_of(zero));
}
#undef TAPER_EXPECT_FORMULA_WITHIN
TYPED_TEST(formulas, normal_cdf_is_close_and_its_tail_relatively_close) {
  for (float x = -12; x < 12; x += 0.0037f) {
    const double want = 0.5 * std::erfc(-static_cast<double>(x) * std::sqrt(0.5));
    const float got = math::normal_cdf<TypeParam>(x, math::bell<TypeParam>(x));
    EXPECT_NEAR(got, want, 2e-7) << x;
    if (x < 0) {
      EXPECT_NEAR(got / want, 1, 2e-5) << x;
    }
  }
  EXPECT_EQ(math::normal_cdf<TypeParam>(-HUGE_VALF, 0.0f), 0);
  EXPECT_EQ(math::normal_cdf<TypeParam>(HUGE_VALF, 0.0f), 1);
  EXPECT_TRUE(std::isnan(math::normal_cdf<TypeParam>(NAN, math::bell<TypeParam>(NAN))));
}
TEST(small_floats, have_the_bits_of_their_types_conversions) {
  using taper::Half, taper::BFloat16;
  for (uint32_t u = 0; u < 65536; ++u) {
    Half h;
    BFloat16 b;
    h.bits = b.bits = static_cast<uint16_t>(u);
    EXPECT_EQ(math::bits_of(taper::portable::to_float(h)), math::bits_of(float(h))) << u;
    EXPECT_EQ(math::bits_of(taper::portable::to_float(b)), math::bits_of(float(b))) << u;
  }
  for (uint64_t u = 0; u < 0x100000000ull; u += 997) {
    const float x = math::float_of(static_cast<uint32_t>(u));
    EXPECT_EQ(taper::portable::to_small<Half>(x).bits, Half(x).bits) << x;
    EXPECT_EQ(taper::portable::to_small<BFloat16>(x).bits, BFloat16(x).bits) << x;
  }
}
TYPED_TEST(formulas, exp_reaches_subnormals_zero_and_infinity) {
  EXPECT_EQ(math::exp<TypeParam>(-200.0f), 0.0f);
  EXPECT_EQ(math::exp<TypeParam>(-103.0f), std::exp(-103.0f));
  EXPECT_EQ(math::exp<TypeParam>(89.0f), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(math::exp<TypeParam>(std::numeric_limits<float>::quiet_NaN())));
}
TYPED_TEST(formulas, gives_the_same_bits_at_every_position_of_a_loop) {
  std::vector<float> x(67, 0.7316f), y(67);
  for (size_t i = 0; i < x.size(); ++i)
    y[i] = math::erf<TypeParam>(x[i]) + math::exp<TypeParam>(x[i]) + math::tanh<TypeParam>(x[i]) +
           math::log<TypeParam>(x[i]);
  for (const float v : y) EXPECT_EQ(math::bits_of(v), math::bits_of(y[0]));
}

}  // namespace
