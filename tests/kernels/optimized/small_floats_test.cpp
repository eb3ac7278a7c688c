// The conversions of f16 and bf16 at each CPU level.
#include "taper/kernels/optimized/small_floats.h"

#include <cmath>
#include <cstring>

#include "taper/tests/kernels/optimized/kernel_call.h"

namespace taper::tests {
namespace {

using optimized::CpuLevel;

/// Calls body(conversions, name) for the levels of this machine.
template <class Body>
void for_each_level(const Body& body) {
  const CpuFeatures cpu = cpu_features();
  body(optimized::small_floats<CpuLevel::portable>, "portable");
#if TAPER_X86_LEVELS
  if (cpu.has(CpuFeature::avx2)) body(optimized::small_floats<CpuLevel::avx2>, "avx2");
  if (cpu.has(CpuFeature::avx512)) body(optimized::small_floats<CpuLevel::avx512>, "avx512");
#endif
}

float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// NaNs whose payload lies in the bits that a small float lacks, those with every bit of it, and
/// numbers around each rounding of all exponents.
std::vector<float> numbers() {
  std::vector<float> all;
  for (const uint32_t sign : {0u, 0x80000000u}) {
    for (int bit = 0; bit < 23; ++bit) all.push_back(float_of(sign | 0x7f800000u | 1u << bit));
    for (const uint32_t nan : {0x7f80ffffu, 0x7fbfffffu, 0x7fc00000u, 0x7fffffffu, 0x7fff8000u})
      all.push_back(float_of(sign | nan));
    for (uint32_t exponent = 0; exponent < 256; ++exponent)
      for (const uint32_t upper : {0u, 1u, 2u, 0x3fu, 0x7fu})  // of the seven bits of bf16
        for (const uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
          all.push_back(float_of(sign | exponent << 23 | upper << 16 | lower));
    for (uint32_t tail = 0; tail < 0x4000; tail += 37)  // of the thirteen bits that f16 lacks
      for (const uint32_t exponent : {101u, 102u, 112u, 113u, 127u, 142u, 143u})
        all.push_back(float_of(sign | exponent << 23 | 0x155000u | tail));
  }
  return all;
}

/// The nearest number of `places` bits behind the point and an exponent of at least `least`, of two
/// the even one; beyond `most` it is infinity.
double rounded(float x, int places, int least, double most) {
  if (x == 0 || std::isinf(x)) return x;
  const int exponent = std::max(std::ilogb(x), least);
  const double unit = std::ldexp(1.0, exponent - places);
  const double y = std::nearbyint(double{x} / unit) * unit;  // to the even one
  return std::fabs(y) > most ? std::copysign(INFINITY, y) : y;
}

template <class E>
void expect_nearest(DType dtype, int places, int least, double most) {
  const std::vector<float> x = numbers();
  for_each_level([&](const portable::SmallFloats& conversions, const char* level) {
    for (const size_t n : {x.size(), size_t{1}, size_t{7}, size_t{8}, size_t{9}, size_t{15},
                           size_t{16}, size_t{17}, size_t{33}}) {
      std::vector<E> narrow(n + 32);
      std::vector<float> wide(n + 32, 7.0f);
      conversions.narrow(dtype, static_cast<index_t>(n), x.data(), narrow.data());
      conversions.widen(dtype, static_cast<index_t>(n), narrow.data(), wide.data());
      EXPECT_EQ(wide[n], 7.0f) << level;
      for (size_t i = 0; i < n; ++i) {
        if (std::isnan(x[i]))
          ASSERT_TRUE(std::isnan(wide[i])) << level << ": NaN became " << wide[i] << " at " << i;
        else
          ASSERT_EQ(double{wide[i]}, rounded(x[i], places, least, most)) << level << " of " << x[i];
        ASSERT_EQ(std::signbit(wide[i]), std::signbit(x[i])) << level << " at " << i;
      }
    }
  });
}

TEST(small_floats, are_the_nearest_numbers_and_keep_every_nan) {
  expect_nearest<BFloat16>(DType::bf16, 7, -126, 3.3895313892515355e38);
  expect_nearest<Half>(DType::f16, 10, -14, 65504);
}

TEST(small_floats, have_the_bits_of_the_plain_conversion) {
  const std::vector<float> x = numbers();
  for_each_level([&](const portable::SmallFloats& conversions, const char* level) {
    std::vector<BFloat16> bf16(x.size());
    std::vector<Half> f16(x.size());
    conversions.narrow(DType::bf16, static_cast<index_t>(x.size()), x.data(), bf16.data());
    conversions.narrow(DType::f16, static_cast<index_t>(x.size()), x.data(), f16.data());
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(bf16[i].bits, BFloat16(x[i]).bits) << level << " of " << x[i];
      ASSERT_EQ(f16[i].bits, Half(x[i]).bits) << level << " of " << x[i];
    }
  });
}

}  // namespace
}  // namespace taper::tests
