// Divisions by the formula without a branch have the bits of those by the C library.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "taper/kernels/portable/division_functions.h"
#include "taper/kernels/portable/math.h"

namespace taper::portable {
namespace {

uint32_t bits(float x) { return x == x ? math::bits_of(x) : 0x7fc00000u; }

float floored_rest(float a, float b) {
  const float rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/// Whether a / b is one of those that take the formula for rests.
bool check(float a, float b) {
  const bool easy = !Fmod<float>::is_hard(a, b);
  if (easy) {
    EXPECT_EQ(bits(Fmod<float>::easy(a, b)), bits(std::fmod(a, b))) << a << ", " << b;
    EXPECT_EQ(bits(Remainder<float>::easy(a, b)), bits(floored_rest(a, b))) << a << ", " << b;
  }
  if (!FloorDivide<float>::is_hard(a, b)) {
    EXPECT_EQ(bits(FloorDivide<float>::easy(a, b)), bits(floor_divide(a, b))) << a << ", " << b;
  }
  return easy;
}

TEST(easy_divisions, have_the_bits_of_the_library_for_any_quotient) {
  std::mt19937_64 engine(3);
  int easy = 0;
  for (int i = 0; i < 500000; ++i) {
    const uint64_t random = engine();
    const float a = math::float_of(static_cast<uint32_t>(random)),
                b = math::float_of(static_cast<uint32_t>(random >> 32));
    easy += check(a, b);
    // near in size, and around multiples
    int exponent;
    const float mantissa = std::frexp(b, &exponent);
    easy += check(std::ldexp(mantissa * 0.7f, exponent + static_cast<int>(random % 40)), b);
    const float multiple = b * static_cast<float>(static_cast<int>(random % 4000000) - 2000000);
    for (const float near :
         {multiple, std::nextafter(multiple, HUGE_VALF), std::nextafter(multiple, -HUGE_VALF)})
      easy += check(near, b);
  }
  EXPECT_GT(easy, 1500000);
}

TEST(easy_divisions, leave_zero_infinite_and_huge_quotients_to_the_library) {
  const float values[] = {0.0f, 1e-45f, 1.0f, 3.0f, 3.4e38f, HUGE_VALF, NAN};
  for (const float a : values)
    for (const float b : values)
      for (const float x : {a, -a})
        for (const float y : {b, -b}) check(x, y);
  EXPECT_TRUE(Fmod<float>::is_hard(1, 0));
  EXPECT_TRUE(Fmod<float>::is_hard(HUGE_VALF, 1));
  EXPECT_TRUE(Fmod<float>::is_hard(1, HUGE_VALF));
  EXPECT_TRUE(Fmod<float>::is_hard(NAN, 1));
  EXPECT_TRUE(Fmod<float>::is_hard(1, NAN));
  EXPECT_TRUE(Fmod<float>::is_hard(1e20f, 1));
  EXPECT_FALSE(Fmod<float>::is_hard(1e-45f, 3.4e38f));
}

TEST(floor_divide, of_integers_rounds_down_for_all_signs) {
  for (int64_t a = -20; a <= 20; ++a)
    for (const int64_t b : {-7, -3, -1, 1, 2, 5, 30}) {
      const auto want =
          static_cast<int64_t>(std::floor(static_cast<double>(a) / static_cast<double>(b)));
      EXPECT_EQ(floor_divide(a, b), want) << a << ", " << b;
      EXPECT_EQ(Remainder<int64_t>()(a, b), a - want * b) << a << ", " << b;
    }
}

}  // namespace
}  // namespace taper::portable
