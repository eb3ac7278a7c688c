// References: mpmath with 60 digits and more.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "taper/kernels/portable/gamma_functions.h"
#include "taper/kernels/portable/normal_functions.h"

namespace {

namespace math = taper::portable::math;

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Incomplete {
  double a, x, p, q;
};
struct Two {
  double first, second, value;
};
struct One {
  double x, value;
};
// clang-format off
constexpr Incomplete incomplete_values[] = {
    {1e-10, 0.5, 0.9999999999440226405, 5.597735948054988113e-11},
    {1e-05, 1.4, 0.9999988377920025313, 1.162207997468747678e-6},
    {0.01, 1e-08, 0.8365102546852333531, 0.1634897453147666469},
    {0.3, 0.2, 0.657506724269721737, 0.342493275730278263},
    {0.5, 0.9, 0.8202875051210001632, 0.1797124948789998368},
    {0.46, 1.0, 0.8581176581661333345, 0.1418823418338666655},
    {1.0, 1e-12, 9.999999999994999799e-13, 0.999999999999},
    {1.0, 1.0, 0.6321205588285576784, 0.3678794411714423216},
    {1.5, 1.49, 0.6052809270809413142, 0.3947190729190586858},
    {1.7, 1.51, 0.5433754850273459453, 0.4566245149726540547},
    {2.5, 0.3, 0.0119967572059062655, 0.9880032427940937345},
    {2.5, 9.0, 0.9970535954121197096, 0.002946404587880290373},
    {5.0, 5.0, 0.5595067149347875886, 0.4404932850652124114},
    {19.5, 60.0, 0.9999999996443536274, 3.556463726148677721e-10},
    {19.0, 720.0, 1.0, 8.802307030836534882e-278},
    {30.0, 5.0, 2.81751761557792256e-14, 0.9999999999999718248},
    {39.9, 40.1, 0.533626732180534903, 0.466373267819465097},
    {40.0, 30.0, 0.04625303764584203639, 0.9537469623541579636},
    {40.0, 50.0, 0.9354296310788670242, 0.06457036892113297576},
    {50.0, 49.0, 0.4621043936009402589, 0.5378956063990597411},
    {60.0, 100.0, 0.9999936584965726312, 6.341503427368770753e-6},
    {123.0, 123.0, 0.5119910030751504889, 0.4880089969248495111},
    {150.0, 90.0, 4.795302327588349461e-9, 0.9999999952046976724},
    {1000.0, 1003.5, 0.5481897145230610107, 0.4518102854769389893},
    {1000.0, 1200.0, 0.9999999987118393914, 1.288160608628143295e-9},
    {1000000.0, 999000.0, 0.1586552135743036525, 0.8413447864256963475},
    {1000000.0, 1000000.0, 0.5001329807608725912, 0.4998670192391274088},
    {100000000.0, 100020000.0, 0.9772444692251447974, 0.02275553077485520261},
    {3.0, 600.0, 1.0, 4.786642678691315377e-256},
};
constexpr Two zeta_values[] = {
    {1.0001, 0.5, 10001.96364537793528},
    {1.5, 0.001, 31625.38696691191329},
    {2.0, 1.0, 1.644934066848226436},
    {2.0, 0.5, 4.934802200544679309},
    {2.5, 7.25, 0.03788575430344531883},
    {3.0, 100.0, 0.0000505024999166749985},
    {3.25, 1000000.0, 1.405458318992299571e-14},
    {7.7, 0.01, 2511886431509582.694},
    {10.0, 1.0, 1.000994575127818085},
    {24.75, 241.25, 1.153329411909260213e-58},
    {60.0, 0.9, 556.4798376768434916},
    {200.5, 1.5, 4.939722581830193649e-36},
    {65.0, 3.0, 9.707746935989309775e-32},
    {1.01, 100000000.0, 83.176377114425832},
    {2.0, -0.5, 8.934802200544679309},
    {3.0, -2.25, -61.94847488703008279},
    {6.0, -7.5, 128.185219822799151},
    {9.0, -3.75, 262130.8100125824135},
};
constexpr One ndtri_values[] = {
    {1e-300, -37.04709629936119924},
    {1e-20, -9.26234008979840758},
    {1e-10, -6.361340902404056199},
    {1e-05, -4.26489079392282461},
    {0.01, -2.326347874040841093},
    {0.075, -1.439531470938455935},
    {0.0751, -1.438825392752539982},
    {0.25, -0.6744897501960817432},
    {0.4999, -0.0002506628300880074924},
    {0.75, 0.6744897501960817432},
    {0.925, 1.439531470938456229},
    {0.95, 1.644853626951472284},
    {0.999, 3.090232306167813278},
    {0.9999999, 5.199337582290661094},
};
constexpr One erfcx_values[] = {
    {-26.5, 1.924553162418568809e+305},
    {-9.3, 7.297258573752794328e+37},
    {-2.7, 2930.944520280639869},
    {-0.5, 1.952360489182557093},
    {-1e-09, 1.000000001128379168},
    {0.0, 1.0},
    {1e-20, 1.0},
    {0.1, 0.8964569799691266367},
    {0.7, 0.5259303373494409585},
    {1.3, 0.3576426690860903088},
    {2.9, 0.1846018259555908247},
    {5.1, 0.1086110263139328018},
    {8.99, 0.06237620011445144899},
    {9.01, 0.06223939726413225034},
    {13.0, 0.04327192186460969266},
    {26.7, 0.02111590664171022046},
    {100.0, 0.005641613782989432904},
    {100000000.0, 5.641895835477562587e-9},
    {1e+200, 5.64189583547756304e-201},
};
constexpr Two poisson_values[] = {
    {0.0, 0.3, -0.2999999999999999889},
    {1.0, 0.3, -1.503972804325936019},
    {5.0, 2.5, -2.706038083411270668},
    {9.0, 30.0, -12.19105104512207123},
    {20.0, 15.0, -3.17461243870928371},
    {100.0, 130.5, -7.102052879288680088},
    {1000000.0, 1002000.0, -9.824031222464124873},
    {1000000000000.0, 1000001000000.0, -15.23444875783594685},
};
// clang-format on

void expect_relative(double got, double want, double bound, double a, double x = 0) {
  EXPECT_LE(std::fabs(got - want), bound * std::fabs(want)) << got << " at " << a << ", " << x;
}
/// The bound of a result that is the exponential of a number with a rounding error.
double bound_of(double value) { return 1e-14 + 4e-16 * std::fabs(std::log(value)); }

TEST(incomplete_gamma, is_right_to_the_last_digits) {
  for (const Incomplete& v : incomplete_values) {
    expect_relative(math::incomplete_gamma(v.a, v.x, false), v.p, bound_of(v.p), v.a, v.x);
    expect_relative(math::incomplete_gamma(v.a, v.x, true), v.q, bound_of(v.q), v.a, v.x);
  }
}
TEST(incomplete_gamma, of_floats_is_rounded_once) {
  for (const Incomplete& v : incomplete_values) {
    const float a = static_cast<float>(v.a), x = static_cast<float>(v.x);
    const double p = math::incomplete_gamma(a, x, false), q = math::incomplete_gamma(a, x, true);
    expect_relative(taper::portable::Igamma<float>()(a, x), p, p > 1e-37 ? 6e-8 : 2, a, x);
    expect_relative(taper::portable::Igammac<float>()(a, x), q, q > 1e-37 ? 6e-8 : 2, a, x);
  }
}
TEST(incomplete_gamma, falls_and_rises_where_formulas_meet) {
  const auto q = [](double a, double x) { return math::incomplete_gamma(a, x, true); };
  for (const double a : {0.2, 0.9, 1.2, 3.0, 19.9, 20.1, 39.99, 40.0, 100.0, 1e5})
    for (const double x : {0.25, 1.5, a * 0.5, a * 0.75, a, a * 1.25, a + 0.0, 2 * a}) {
      const double step = 1e-9 * x;
      const double slope = (q(a, x + step) - q(a, x - step)) / (2 * step);
      const double density = math::gamma_term(a, x) * a / x;
      EXPECT_NEAR(slope, -density, 1e-4 * density + 1e-6 / x) << a << ", " << x;
    }
}
TEST(incomplete_gamma, ends_for_every_argument) {
  for (const double a : {5e-324, 1e-300, 1e-10, 1.0, 1e3, 1e10, 1e17, 1e100, 1e308})
    for (const double x : {5e-324, 1e-300, 1e-10, 1.0, 1e3, 1e10, 1e17, 1e100, 1e308}) {
      const double p = math::incomplete_gamma(a, x, false);
      EXPECT_TRUE(p >= 0 && p <= 1) << p << " at " << a << ", " << x;
      EXPECT_NEAR(p + math::incomplete_gamma(a, x, true), 1, 1e-15) << a << ", " << x;
    }
}
TEST(incomplete_gamma, has_limits_at_the_borders_of_its_domain) {
  const auto p = [](double a, double x) { return math::incomplete_gamma(a, x, false); };
  EXPECT_EQ(p(0, 1), 1);
  EXPECT_EQ(p(2, 0), 0);
  EXPECT_EQ(p(2, infinity), 1);
  EXPECT_EQ(p(infinity, 2), 0);
  EXPECT_TRUE(std::isnan(p(0, 0)));
  EXPECT_TRUE(std::isnan(p(-1, 1)));
  EXPECT_TRUE(std::isnan(p(1, -1)));
  EXPECT_TRUE(std::isnan(p(infinity, infinity)));
  EXPECT_TRUE(std::isnan(p(std::nan(""), 1)));
}

TEST(zeta, is_right_to_the_last_digits) {
  for (const Two& v : zeta_values) {
    expect_relative(math::zeta(v.first, v.second), v.value, 2e-14, v.first, v.second);
    expect_relative(math::zeta(v.first, v.second, 3), v.value, 3e-8, v.first, v.second);
  }
}
TEST(zeta, has_poles_and_no_value_below_one) {
  for (const double q : {0.0, -1.0, -17.0, -infinity}) EXPECT_EQ(math::zeta(2, q), infinity) << q;
  EXPECT_EQ(math::zeta(1, 3), infinity);
  EXPECT_TRUE(std::isnan(math::zeta(0.5, 3)));
  EXPECT_TRUE(std::isnan(math::zeta(2.5, -0.5)));
  EXPECT_TRUE(std::isnan(math::zeta(std::nan(""), 3)));
  EXPECT_TRUE(std::isnan(math::zeta(3, std::nan(""))));
  EXPECT_EQ(math::zeta(3, infinity), 0);
  EXPECT_EQ(math::zeta(infinity, 0.5), infinity);
  EXPECT_EQ(math::zeta(infinity, 1), 1);
  EXPECT_EQ(math::zeta(infinity, 1.5), 0);
  EXPECT_EQ(math::zeta(1e300, 1.5), 0);
}

TEST(ndtri, is_right_to_the_last_digits) {
  for (const One& v : ndtri_values) expect_relative(math::ndtri(v.x), v.value, 2e-15, v.x);
}
TEST(ndtri, is_infinite_at_the_ends_and_nothing_beyond) {
  EXPECT_EQ(math::ndtri(0), -infinity);
  EXPECT_EQ(math::ndtri(1), infinity);
  EXPECT_EQ(math::ndtri(0.5), 0);
  EXPECT_TRUE(std::isfinite(math::ndtri(5e-324)));
  for (const double p : {-1e-300, 1.0000001, infinity, std::nan("")})
    EXPECT_TRUE(std::isnan(math::ndtri(p))) << p;
}

TEST(erfcx, is_right_to_the_last_digits) {
  for (const One& v : erfcx_values) expect_relative(math::erfcx(v.x), v.value, 2e-15, v.x);
}
TEST(erfcx, has_limits_at_both_ends) {
  EXPECT_EQ(math::erfcx(infinity), 0);
  EXPECT_EQ(math::erfcx(-infinity), infinity);
  EXPECT_EQ(math::erfcx(-27), infinity);
  EXPECT_TRUE(std::isnan(math::erfcx(std::nan(""))));
}

TEST(log_poisson, does_not_cancel) {
  for (const Two& v : poisson_values)
    EXPECT_NEAR(math::log_poisson(v.first, v.second), v.value, 1e-14 * (1 + std::fabs(v.value)))
        << v.first << ", " << v.second;
}

}  // namespace
