// How far tensors are from each other, against the C++ library's own neighbours of floats.
#include "taper/exporter/compare/measure.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace taper::compare {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

template <class T>
io::Array row(const std::vector<T>& values) {
  return io::Array::of<T>({static_cast<int64_t>(values.size())}, std::span<const T>(values));
}

TEST(measure, gives_zeros_for_equal_tensors) {
  const io::Array x = row<float>({1, -2, nan, inf, -inf, 0});
  const Measure m = measure(x.clone(), x);
  EXPECT_EQ(m.difference.absolute, 0);
  EXPECT_EQ(m.difference.relative, 0);
  EXPECT_EQ(m.ulp, 0);
  EXPECT_EQ(m.cosine, 1);
  EXPECT_FALSE(m.exceeds(0));
}

TEST(measure, takes_both_zeros_as_equal) {
  const Measure m = measure(row<float>({0.0f, 1}), row<float>({-0.0f, 1}));
  EXPECT_EQ(m.difference.absolute, 0);
  EXPECT_EQ(m.ulp, 0);
}

TEST(measure, is_relative_to_the_largest_magnitude_of_what_is_wanted) {
  const Measure m = measure(row<float>({1, 99}), row<float>({3, -100 + 199}));
  EXPECT_EQ(m.difference.absolute, 2);
  EXPECT_DOUBLE_EQ(m.difference.relative, 2.0 / 99);
  EXPECT_EQ(m.difference.element, 0);
}

TEST(measure, takes_the_magnitude_of_complex_differences) {
  const Measure m = measure(row<Complex64>({{1, 1}, {3, 4}}), row<Complex64>({{1, 1}, {6, 8}}));
  EXPECT_EQ(m.difference.absolute, 5);
  EXPECT_EQ(m.difference.relative, 0.5);
  EXPECT_EQ(m.difference.element, 1);
  EXPECT_EQ(m.difference.got, "3+4j");
  EXPECT_EQ(m.difference.want, "6+8j");
  EXPECT_GT(*m.cosine, 0.9);
  EXPECT_FALSE(measure(row<Complex64>({{nan, 1}}), row<Complex64>({{nan, 1}})).exceeds(0));
  EXPECT_TRUE(measure(row<Complex64>({{nan, 1}}), row<Complex64>({{1, nan}})).exceeds(1));
}

TEST(measure, counts_steps_between_neighbouring_floats) {
  const auto steps = [](auto from, int count) {
    auto x = from;
    for (int i = 0; i < count; ++i) x = std::nextafter(x, decltype(x)(10));
    return measure(row<decltype(x)>({x}), row<decltype(x)>({from})).ulp;
  };
  EXPECT_EQ(steps(1.0f, 3), 3);
  EXPECT_EQ(steps(1.0, 3), 3);
  EXPECT_EQ(steps(0.9999999f, 5), 5);                                     // across a power of two
  EXPECT_EQ(steps(-std::numeric_limits<float>::denorm_min() * 2, 4), 4);  // across zero
  EXPECT_EQ(steps(-std::numeric_limits<double>::denorm_min() * 2, 4), 4);
  EXPECT_EQ(measure(row<Half>({Half(1.0009765625f)}), row<Half>({Half(1)})).ulp, 1);
  EXPECT_EQ(measure(row<BFloat16>({BFloat16(1.0078125f)}), row<BFloat16>({BFloat16(1)})).ulp, 1);
}

TEST(measure, does_not_overflow_between_the_ends_of_a_type) {
  const double most = std::numeric_limits<double>::max();
  const Measure m = measure(row<double>({most}), row<double>({-most}));
  EXPECT_NEAR(*m.ulp, 2.0 * static_cast<double>(0x7fefffffffffffff), 1e4);
  EXPECT_EQ(m.cosine, -1);
}

TEST(measure, counts_in_the_coarser_type_of_two) {
  const Measure m = measure(row<Half>({Half(0.1f)}), row<float>({0.1f}));
  EXPECT_EQ(m.difference.other, "");
  EXPECT_GT(m.difference.absolute, 0);
  EXPECT_EQ(m.ulp, 0);  // 0.1 rounded is what is there
  EXPECT_EQ(measure(row<float>({1 + 0x1p-7f}), row<BFloat16>({BFloat16(1)})).ulp, 1);
  EXPECT_EQ(measure(row<double>({0.1}), row<float>({0.1f})).ulp, 0);
}

TEST(measure, accepts_one_step_whatever_the_tolerance) {
  const Measure one = measure(row<Half>({Half(1.0009765625f)}), row<Half>({Half(1)}));
  EXPECT_FALSE(one.exceeds(1e-4));
  const Measure two = measure(row<Half>({Half(1.001953125f)}), row<Half>({Half(1)}));
  EXPECT_TRUE(two.exceeds(1e-4));
  EXPECT_FALSE(two.exceeds(1e-2));
}

TEST(measure, accepts_little_beside_the_other_results_of_a_call) {
  Measure m = measure(row<float>({3e-8f}), row<float>({-3e-8f}));
  EXPECT_TRUE(m.exceeds(1e-4));
  io::Scale scale;
  scale.add(row<int64_t>({1000}));
  EXPECT_EQ(scale.value(), 0);
  scale.add(row<float>({-0.25f, inf}));
  EXPECT_EQ(scale.value(), 0.25);
  m.scale = scale.value();
  EXPECT_FALSE(m.exceeds(1e-4));
  EXPECT_TRUE(m.exceeds(1e-5));
  scale.add(row<float>({1000}));
  EXPECT_EQ(scale.value(), 1);
}

TEST(measure, is_infinite_where_only_one_side_is_not_finite) {
  for (const float odd : {nan, inf, -inf})
    for (const bool first : {true, false}) {
      const io::Array x = row<float>({1, odd}), y = row<float>({1, 2});
      const Measure m = first ? measure(x, y) : measure(y, x);
      EXPECT_TRUE(std::isinf(m.difference.absolute));
      EXPECT_EQ(m.difference.element, 1);
      EXPECT_TRUE(std::isinf(*m.ulp));
      EXPECT_TRUE(std::isnan(*m.cosine));
      EXPECT_TRUE(m.exceeds(1e30));
    }
  EXPECT_TRUE(measure(row<float>({inf}), row<float>({-inf})).exceeds(1));
}

TEST(measure, gives_the_cosine_of_the_angle) {
  EXPECT_NEAR(*measure(row<float>({1, 1}), row<float>({1, 0})).cosine, std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(*measure(row<float>({2, 4}), row<float>({1, 2})).cosine, 1, 1e-12);
  EXPECT_NEAR(*measure(row<float>({-1, 0}), row<float>({1, 0})).cosine, -1, 1e-12);
  EXPECT_EQ(measure(row<float>({0, 0}), row<float>({1, 0})).cosine, 0);
  EXPECT_NEAR(*measure(row<double>({1e200, 2e200}), row<double>({1e-200, 2e-200})).cosine, 1,
              1e-12);
  EXPECT_NEAR(*measure(row<float>({nan, 2, 1}), row<float>({nan, 1, 2})).cosine, 0.8, 1e-12);
}

TEST(measure, compares_integers_exactly) {
  const int64_t large = int64_t{1} << 60;
  const Measure m = measure(row<int64_t>({large + 1}), row<int64_t>({large}));
  EXPECT_EQ(m.difference.relative, 1);
  EXPECT_FALSE(m.ulp || m.cosine);
  EXPECT_TRUE(m.exceeds(1e-4));
  EXPECT_FALSE(measure(row<int64_t>({large}), row<int64_t>({large})).exceeds(0));
  EXPECT_EQ(measure(row<uint8_t>({7}), row<uint8_t>({9})).difference.absolute, 2);
}

TEST(measure, says_what_cannot_be_compared) {
  const io::Array x = row<float>({1, 2});
  EXPECT_EQ(measure(x, row<float>({1})).difference.other, "f32 (2,), not f32 (1,)");
  EXPECT_EQ(measure(x, row<int64_t>({1, 2})).difference.other, "f32 (2,), not i64 (2,)");
  EXPECT_TRUE(measure(x, row<float>({1})).exceeds(1e30));
}

TEST(measure, takes_empty_tensors_as_equal) {
  const Measure m = measure(row<float>({}), row<float>({}));
  EXPECT_EQ(m.difference.absolute, 0);
  EXPECT_FALSE(m.exceeds(0));
}

}  // namespace
}  // namespace taper::compare
