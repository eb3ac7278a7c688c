// Half precision: every number of 16 bits, and floats on both sides of each middle.
#include "taper/runtime/core/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "taper/runtime/core/tensor_ref.h"

namespace taper {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

template <class Small>
Small small(int bits) {
  Small s;
  s.bits = static_cast<uint16_t>(bits);
  return s;
}
float float_of(uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

/// What IEEE 754 says of `bits`, which are neither infinite nor NaN.
double value_of(int bits, int mantissa_bits, int bias) {
  const int exponent = (bits & 0x7fff) >> mantissa_bits, one = 1 << mantissa_bits,
            mantissa = bits & (one - 1);
  const double magnitude = exponent == 0
                               ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                               : std::ldexp(one + mantissa, exponent - bias - mantissa_bits);
  return bits & 0x8000 ? -magnitude : magnitude;
}

/// Small numbers grow with their bits, so the neighbours of a number have the next bits.
template <class Small>
void expect_nearest(int mantissa_bits, int bias) {
  const int first_infinite = 0x7fff >> mantissa_bits << mantissa_bits;
  const auto expect = [](float value, int bits) {
    ASSERT_EQ(Small(value).bits, bits) << value;
    ASSERT_EQ(Small(-value).bits, bits | 0x8000) << -value;
  };
  for (int bits = 0; bits < first_infinite; ++bits) {
    const double value = value_of(bits, mantissa_bits, bias);
    ASSERT_EQ(static_cast<float>(small<Small>(bits)), value) << bits;
    ASSERT_EQ(static_cast<float>(small<Small>(bits | 0x8000)), -value) << bits;
    expect(static_cast<float>(value), bits);
    // the next one, or what it would be: from the middle on, infinity takes its place
    const auto middle = static_cast<float>((value + value_of(bits + 1, mantissa_bits, bias)) / 2);
    expect(middle, bits % 2 == 0 ? bits : bits + 1);
    expect(std::nextafter(middle, 0.0f), bits);
    expect(std::nextafter(middle, infinity), bits + 1);
  }
  expect(infinity, first_infinite);
  EXPECT_EQ(static_cast<float>(small<Small>(first_infinite)), infinity);
  for (const uint32_t nan : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0xffffffffu})
    EXPECT_TRUE(std::isnan(static_cast<float>(Small(float_of(nan))))) << nan;
}

TEST(half, is_the_nearest_number_and_in_the_middle_the_even_one) { expect_nearest<Half>(10, 15); }

TEST(bfloat16, is_the_nearest_number_and_in_the_middle_the_even_one) {
  expect_nearest<BFloat16>(7, 127);
}

TEST(scalar, becomes_an_integer_without_undefined_steps) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Scalar(-2.9).to<int64_t>(), -2);
  EXPECT_EQ(Scalar(300.5).to<uint8_t>(), 44);
  EXPECT_EQ(Scalar(-0x1p63).to<int64_t>(), INT64_MIN);
  for (const double none : {nan, 1e300, -1e300, 0x1p63, HUGE_VAL}) {
    EXPECT_EQ(Scalar(none).to<int64_t>(), INT64_MIN) << none;
    EXPECT_EQ(Scalar(none).to<int8_t>(), 0) << none;
  }
  EXPECT_TRUE(Scalar(0.5).to<bool>());
}

}  // namespace
}  // namespace taper
