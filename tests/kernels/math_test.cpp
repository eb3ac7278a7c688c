#include "taper/kernels/portable/math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

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

TEST(math, exp_is_within_one_unit_in_the_last_place) {
  EXPECT_LT(worst_error([](float x) { return math::exp(x); }, [](double x) { return std::exp(x); }),
            1.0);
}
TEST(math, log_is_within_one_unit_in_the_last_place) {
  EXPECT_LT(worst_error([](float x) { return math::log(x); }, [](double x) { return std::log(x); }),
            1.0);
}
TEST(math, tanh_is_within_one_and_a_half_units_in_the_last_place) {
  EXPECT_LT(
      worst_error([](float x) { return math::tanh(x); }, [](double x) { return std::tanh(x); }),
      1.5);
}
TEST(math, erf_is_within_three_units_in_the_last_place) {
  EXPECT_LT(worst_error([](float x) { return math::erf(x); }, [](double x) { return std::erf(x); }),
            3.0);
}
TEST(math, sigmoid_is_within_three_units_in_the_last_place_where_it_does_not_vanish) {
  const auto in_range = [](double x) { return std::max(x, -87.0); };
  EXPECT_LT(worst_error([&](float x) { return math::sigmoid(static_cast<float>(in_range(x))); },
                        [&](double x) { return 1 / (1 + std::exp(-in_range(x))); }),
            3.0);
}
TEST(math, exp_reaches_subnormals_zero_and_infinity) {
  EXPECT_EQ(math::exp(-200.0f), 0.0f);
  EXPECT_EQ(math::exp(-103.0f), std::exp(-103.0f));
  EXPECT_EQ(math::exp(89.0f), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(math::exp(std::numeric_limits<float>::quiet_NaN())));
}
TEST(math, gives_the_same_bits_at_every_position_of_a_loop) {
  std::vector<float> x(67, 0.7316f), y(67);
  for (size_t i = 0; i < x.size(); ++i)
    y[i] = math::erf(x[i]) + math::exp(x[i]) + math::tanh(x[i]) + math::log(x[i]);
  for (const float v : y) EXPECT_EQ(math::bits_of(v), math::bits_of(y[0]));
}

}  // namespace
