// References: mpmath with 40 digits.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "taper/kernels/portable/special_functions.h"

namespace {

namespace math = taper::portable::math;

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Gamma {
  double x, lgamma, digamma, trigamma, second, fifth;
};
// clang-format off
constexpr Gamma gamma_values[] = {
    {1e-20, 46.05170185988091374, -1.000000000000000055e+20, 1.00000000000000011e+40, -2.000000000000000329e+60, 1.200000000000000395e+122},
    {0.01, 4.599479878042021702, -100.5608854578686724, 10001.6212135283128, -2000002.34039867696, 120000000000115.0525},
    {0.5, 0.5723649429247000871, -1.963510026021423479, 4.934802200544679309, -16.82879664423432, 7691.113548602435496},
    {1.0000001, -5.772155829918507097e-8, -0.5772155004081381003, 1.644933826436878134, -2.404113156925372396, 122.0810948370111856},
    {1.4, -0.1196129141723712932, -0.0613845445851162368, 1.025356590529597525, -0.9891286235783571122, 16.66746925876944425},
    {1.9999, -0.00004227520877215345801, 0.4227198396711309653, 0.6449744806987030819, -0.4041632046910927518, 2.081768688868269235},
    {2.5, 0.2846828704729191596, 0.7031566406452431872, 0.490357756100234865, -0.236204051641727403, 0.5785691785671834846},
    {3.7, 1.428072326665388129, 1.167153539361511441, 0.3100378576700383022, -0.09539530872855403348, 0.06393975390203978743},
    {9.99, 12.77931521435019336, 2.250700372831201122, 0.1052769501482417844, -0.01107307053146105116, 0.0003075517086645632892},
    {10.01, 12.82435026244824728, 2.252803700318135737, 0.1050559532055150914, -0.01102667240339336656, 0.0003043486667327588133},
    {123.456, 469.6055471299294835, 4.811829323828985412, 0.008132945834278197807, -0.00006614444336394040627, 8.539387166790097261e-10},
    {1000000.0, 12815504.56914761166, 13.81551005796419077, 1.000000500000166667e-6, -1.0000010000005e-12, 2.400006000006e-29},
    {1e+18, 4.044653167389282229e+19, 41.44653167389282231, 1.0e-18, -1.000000000000000001e-36, 2.400000000000000006e-89},
    {-1e-09, 20.72326583752362676, 999999999.4227842712, 999999999999999877.1, 1.999999999999999626e+27, 1.199999999999999552e+56},
    {-0.3, 1.46484005085760253, 2.113309779635398873, 13.94516026780572249, 67.63908119988316004, 165634.3818520858948},
    {-1.5, 0.8600470153764810145, 0.7031566406452431872, 9.379246644989123754, -0.236204051641727403, 15381.64852802630381},
    {-2.9999, 7.418706529543073472, -9998.743581706345325, 100000003.0056151763, -1999999999987.416874, 1.199999999984805754e+26},
    {-7.25, -7.541883443475750024, 5.189977214956287888, 19.61035453929326902, 124.0085260365657337, 492231.266269527756},
    {-100.5, -364.9009683094273518, 4.615124601338064117, 9.859703491870086152, -0.00009802720262719757107, 15382.22709720258775},
};
// clang-format on

/// Near to `want` relative to it and, where a function has a zero, to 1.
void expect_near(double got, double want, double x) {
  EXPECT_LE(std::fabs(got - want), 2e-15 * std::fmax(1, std::fabs(want))) << got << " at " << x;
}
void expect_relative(double got, double want, double x) {
  EXPECT_LE(std::fabs(got - want), 4e-15 * std::fabs(want)) << got << " at " << x;
}

TEST(lgamma, is_right_to_the_last_digits) {
  for (const Gamma& g : gamma_values) expect_near(math::lgamma(g.x), g.lgamma, g.x);
  // near its zeros also relative to itself
  expect_relative(math::lgamma(1.0000001), -5.772155829918507097e-8, 1.0000001);
}
TEST(lgamma, is_infinite_at_its_poles) {
  for (const double x : {0.0, -0.0, -1.0, -2.0, -1e17, infinity, -infinity})
    EXPECT_EQ(math::lgamma(x), infinity) << x;
  EXPECT_TRUE(std::isnan(math::lgamma(std::nan(""))));
}

// Floats of both signs and all sizes, and many where the functions bend.
std::vector<float> floats() {
  std::vector<float> x;
  for (uint64_t u = 0; u < 0x100000000ull; u += 100003)
    x.push_back(math::float_of(static_cast<uint32_t>(u)));
  for (float v = -12; v < 12; v += 0.00371f) x.push_back(v);
  return x;
}
// Equal but for roundings: `bound` in units of the last place.
void expect_float(float got, double want, double bound, float x) {
  const float rounded = static_cast<float>(want);
  if (std::isnan(rounded) || std::isinf(rounded)) {
    EXPECT_TRUE(got == rounded || (std::isnan(got) && std::isnan(rounded))) << got << " at " << x;
    return;
  }
  const int exponent = rounded == 0 ? -149 : std::max(std::ilogb(rounded) - 23, -149);
  EXPECT_LE(std::fabs(got - want), bound * std::ldexp(1.0, exponent)) << got << " at " << x;
}

TEST(lgamma, of_floats_is_that_of_double) {
  for (const float x : floats()) {
    const double want = math::lgamma(double{x});
    // near the zeros of negative numbers two logarithms cancel
    const double bound = x < 0 ? 2 + 1e-9 / std::fabs(want) : 0.6;
    expect_float(taper::portable::Lgamma<float>()(x), want, bound, x);
    expect_float(taper::portable::Lgamma<float, math::Fused>()(x), want, bound, x);
  }
}
TEST(polygamma, of_floats_is_that_of_double) {
  for (const int n : {1, 2, 7})
    for (const float x : floats())
      if (x > 0 || n == 1)
        expect_float(taper::portable::Polygamma<float>(n)(x), math::polygamma(n, double{x}), 0.6,
                     x);
}
TEST(bessel_functions, of_floats_are_those_of_double) {
  using taper::portable::BesselI, taper::portable::ScaledBesselI, math::Fused;
  for (const float x : floats()) {
    expect_float(BesselI<float, 0>()(x), math::bessel_i(0, x), 0.6, x);
    expect_float(BesselI<float, 1>()(x), math::bessel_i(1, x), 0.6, x);
    expect_float(ScaledBesselI<float, 0>()(x), math::scaled_bessel_i(0, x), 0.6, x);
    expect_float(ScaledBesselI<float, 1>()(x), math::scaled_bessel_i(1, x), 0.6, x);
    expect_float(ScaledBesselI<float, 0, Fused>()(x), math::scaled_bessel_i(0, x), 0.6, x);
    expect_float(ScaledBesselI<float, 1, Fused>()(x), math::scaled_bessel_i(1, x), 0.6, x);
  }
}

TEST(digamma, is_right_to_the_last_digits) {
  for (const Gamma& g : gamma_values) {
    // the reference at -2.9999 is of the nearest double: its distance to the pole has 4 digits less
    const double digits = g.x == -2.9999 ? 1e-11 : 4e-15;
    EXPECT_LE(std::fabs(math::digamma(g.x) - g.digamma),
              digits * std::fmax(1, std::fabs(g.digamma)))
        << g.x;
  }
}
TEST(digamma, has_the_sign_of_the_side_at_zero_and_none_at_other_poles) {
  EXPECT_EQ(math::digamma(0.0), -infinity);
  EXPECT_EQ(math::digamma(-0.0), infinity);
  EXPECT_TRUE(std::isnan(math::digamma(-3)));
  EXPECT_TRUE(std::isnan(math::digamma(-infinity)));
  EXPECT_EQ(math::digamma(infinity), infinity);
}

TEST(polygamma, is_right_to_the_last_digits) {
  for (const Gamma& g : gamma_values) {
    expect_relative(math::polygamma(0, g.x), math::digamma(g.x), g.x);
    // below 0 two sums cancel, at half integers wholly in the even derivatives; and the distance to
    // a pole has lost digits
    const double allowed = g.x < 0 ? 1e-11 : 4e-15, cancelled = g.x < 0 ? 1e-14 : 0;
    const auto expect = [&](int64_t n, double want) {
      const double got = math::polygamma(n, g.x);
      EXPECT_LE(std::fabs(got - want), allowed * std::fabs(want) + cancelled) << n << " at " << g.x;
    };
    expect(1, g.trigamma), expect(2, g.second), expect(5, g.fifth);
  }
}
TEST(polygamma, ends_for_every_order_and_argument) {
  EXPECT_EQ(math::polygamma(1, -3.0), infinity);
  EXPECT_EQ(math::polygamma(2, 0.0), -infinity);
  EXPECT_EQ(math::polygamma(3, infinity), 0);
  (void)math::polygamma(std::numeric_limits<int64_t>::max(), 0.5);
  (void)math::polygamma(7, -1e300);
  EXPECT_TRUE(std::isnan(math::polygamma(1, std::nan(""))));
}

struct Inverse {
  double x, y;
};
constexpr Inverse erfinv_values[] = {
    {1e-300, 8.862269254527580359e-301},   {1e-09, 8.862269254527580691e-10},
    {0.1, 0.08885599049425769197},         {-0.3, -0.272462714726754345},
    {0.499, 0.4758242808830923486},        {0.5, 0.4769362762044698734},
    {0.7, 0.7328690779592167849},          {-0.9, -1.163087153676674163},
    {0.99, 1.821386367718449456},          {0.999999, 3.458910737275498778},
    {0.999999999999, 5.04203189857269613}, {0.9999999999999999, 5.863584748755167927}};

TEST(erfinv, is_right_to_the_last_digits) {
  for (const Inverse& e : erfinv_values) {
    expect_relative(math::erfinv(e.x), e.y, e.x);
    const float x = static_cast<float>(e.x);
    if (std::fabs(x) < 1 && std::fabs(x) > 1e-30f) {
      const double want = math::erfinv(double{x});
      EXPECT_LE(std::fabs(math::erfinv(x) - want), 5e-7 * std::fabs(want)) << x;
    }
  }
}
TEST(erfinv, is_infinite_at_one_and_nan_beyond) {
  EXPECT_EQ(math::erfinv(1.0), infinity);
  EXPECT_EQ(math::erfinv(-1.0), -infinity);
  EXPECT_EQ(math::erfinv(1.0f), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(math::erfinv(1.5)));
  EXPECT_TRUE(std::isnan(math::erfinv(std::nan(""))));
  EXPECT_TRUE(std::signbit(math::erfinv(-0.0)));
}

}  // namespace
