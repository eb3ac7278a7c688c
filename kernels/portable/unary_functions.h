// The functors of pointwise operators with one tensor. T is float, double or int64_t.
#pragma once
#include <cstring>
#include <limits>
#include <string_view>

#include "taper/kernels/portable/elementary.h"
#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/math.h"
#include "taper/kernels/portable/pointwise.h"

namespace taper::portable {

template <class T>
struct Abs {
  T operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return x < 0 ? wrapping_neg(x) : x;
    else
      return std::fabs(x);
  }
};
template <class T>
struct Neg {
  T operator()(T x) const { return wrapping_neg(x); }
};
template <class T>
struct Sign {
  T operator()(T x) const { return static_cast<T>((x > T(0)) - (x < T(0))); }
};
/// max(x, 0). NaN and -0 stay.
template <class T>
struct Relu {
  T operator()(T x) const { return x < T(0) ? T(0) : x; }
};

template <class T, class M = math::Separate>
struct Exp {
  T operator()(T x) const { return math::exp<M>(x); }
};
template <class T, class M = math::Separate>
struct Log {
  T operator()(T x) const { return math::log<M>(x); }
};
template <class M>
struct Log<float, M> {
  static constexpr bool has_easy = true;
  static bool is_hard(float x) { return !math::is_positive_and_normal(x); }
  static float easy(float x) { return math::log_of_normal<M>(math::bits_of(x), 0.0f); }
  float operator()(float x) const { return math::log<M>(x); }
};
template <class T, class M = math::Separate>
struct Tanh {
  T operator()(T x) const { return math::tanh<M>(x); }
};
template <class T, class M = math::Separate>
struct Sigmoid {
  T operator()(T x) const { return math::sigmoid<M>(x); }
};
template <class T, class M = math::Separate>
struct Erf {
  T operator()(T x) const { return math::erf<M>(x); }
};
template <class T>
struct Sqrt {
  T operator()(T x) const { return std::sqrt(x); }
};
template <class T>
struct Rsqrt {
  T operator()(T x) const { return T(1) / std::sqrt(x); }
};
template <class T>
struct Reciprocal {
  T operator()(T x) const { return T(1) / x; }
};

template <class T, int quarters, class M = math::Separate>
struct Sine {
  T operator()(T x) const { return quarters == 0 ? std::sin(x) : std::cos(x); }
};
template <int quarters, class M>
struct Sine<float, quarters, M> {
  static constexpr bool has_easy = true;
  static bool is_hard(float x) { return math::is_beyond_trigonometric_limit(x); }
  static float easy(float x) { return math::sine<M>(x, quarters); }
  float operator()(float x) const {
    if (is_hard(x)) return quarters == 0 ? std::sin(x) : std::cos(x);
    return easy(x);
  }
};
template <class T, class M = math::Separate>
using Sin = Sine<T, 0, M>;
template <class T, class M = math::Separate>
using Cos = Sine<T, 1, M>;

template <class T, class M = math::Separate>
struct Tan {
  T operator()(T x) const { return std::tan(x); }
};
template <class M>
struct Tan<float, M> {
  static constexpr bool has_easy = true;
  static bool is_hard(float x) { return math::is_beyond_trigonometric_limit(x); }
  static float easy(float x) { return math::tangent<M>(x); }
  float operator()(float x) const { return is_hard(x) ? std::tan(x) : easy(x); }
};

// The functions of elementary.h under the names of the operators.
#define TAPER_ELEMENTARY_FUNCTION(Name, function)            \
  template <class T, class M = math::Separate>               \
  struct Name {                                              \
    T operator()(T x) const { return math::function<M>(x); } \
  };
TAPER_ELEMENTARY_FUNCTION(Acos, acos)
TAPER_ELEMENTARY_FUNCTION(Acosh, acosh)
TAPER_ELEMENTARY_FUNCTION(Asin, asin)
TAPER_ELEMENTARY_FUNCTION(Asinh, asinh)
TAPER_ELEMENTARY_FUNCTION(Atan, atan)
TAPER_ELEMENTARY_FUNCTION(Atanh, atanh)
TAPER_ELEMENTARY_FUNCTION(Cosh, cosh)
TAPER_ELEMENTARY_FUNCTION(Sinh, sinh)
TAPER_ELEMENTARY_FUNCTION(Erfc, erfc)
TAPER_ELEMENTARY_FUNCTION(Exp2, exp2)
TAPER_ELEMENTARY_FUNCTION(Expm1, expm1)
TAPER_ELEMENTARY_FUNCTION(Log1p, log1p)
TAPER_ELEMENTARY_FUNCTION(Log2, log2)
TAPER_ELEMENTARY_FUNCTION(Log10, log10)
#undef TAPER_ELEMENTARY_FUNCTION

// Rounding leaves integers as they are. `round` rounds halves to the even neighbour.
#define TAPER_ROUNDING(Name, function)     \
  template <class T>                       \
  struct Name {                            \
    T operator()(T x) const {              \
      if constexpr (std::is_integral_v<T>) \
        return x;                          \
      else                                 \
        return std::function(x);           \
    }                                      \
  };
TAPER_ROUNDING(Ceil, ceil)
TAPER_ROUNDING(Floor, floor)
TAPER_ROUNDING(Trunc, trunc)
TAPER_ROUNDING(Round, nearbyint)
#undef TAPER_ROUNDING

template <class T>
struct IsNan {
  bool operator()(T x) const { return x != x; }
};
template <class T>
struct IsInf {
  bool operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return false;
    else
      return std::fabs(x) == static_cast<T>(HUGE_VALF);
  }
};
/// Zeros and NaN have a sign, too.
template <class T>
struct SignBit {
  bool operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return x < 0;
    else
      return std::signbit(x);
  }
};
template <class T>
struct LogicalNot {
  bool operator()(T x) const {
    if constexpr (std::is_same_v<T, bool>) {
      uint8_t byte;  // gcc does not vectorise a comparison of bools
      std::memcpy(&byte, &x, 1);
      return byte == 0;
    } else {
      return x == T(0);
    }
  }
};
template <class T>
struct BitwiseNot {
  T operator()(T x) const { return ~x; }
};

// ---- activations ----

/// x Φ(x), where Φ is the normal distribution function or its approximation by tanh. Hendrycks and
/// Gimpel, "Gaussian Error Linear Units", arXiv:1606.08415.
template <class T, class M = math::Separate>
struct GeluErf {
  T operator()(T x) const { return x * math::normal_cdf<M>(x, math::bell<M>(x)); }
};
template <class T, class M = math::Separate>
struct GeluTanh {
  T operator()(T x) const { return x / math::inverse_sigmoid<M>(math::twice_gelu_argument<M>(x)); }
};
template <class T, class M = math::Separate>
struct Gelu {
  using parameters = Parameters<std::string_view>;
  bool approximate;
  explicit Gelu(std::string_view approximate) : approximate(approximate == "tanh") {}
  template <class Visitor>
  void visit(const Visitor& visitor) const {
    approximate ? visitor(GeluTanh<T, M>()) : visitor(GeluErf<T, M>());
  }
};
/// x sigmoid(x)
template <class T, class M = math::Separate>
struct Silu {
  T operator()(T x) const { return x / math::inverse_sigmoid<M>(x); }
};
/// x tanh(log(1 + exp(x))) = x n / (n + 2) with n = exp(x) (exp(x) + 2). From x = 20 on, the factor
/// is 1.
template <class T, class M = math::Separate>
struct Mish {
  T operator()(T x) const {
    const T e = math::exp<M>(x > T(20) ? T(20) : x), n = e * (e + T(2)), y = x * (n / (n + T(2)));
    return x > T(20) ? x : y;
  }
};
/// x moved towards 0 by lambd; 0 if |x| <= lambd. NaN stays.
template <class T>
struct Softshrink {
  using parameters = Parameters<Scalar>;
  T lambd;
  explicit Softshrink(Scalar lambd) : lambd(lambd.to<T>()) {}
  T operator()(T x) const { return x > lambd ? x - lambd : x < -lambd ? x + lambd : x * T(0); }
};
template <class T>
struct Hardshrink {
  using parameters = Parameters<Scalar>;
  T lambd;
  explicit Hardshrink(Scalar lambd) : lambd(lambd.to<T>()) {}
  T operator()(T x) const { return x >= -lambd && x <= lambd ? T(0) : x; }
};
/// scale * (x > 0 ? x : alpha * (exp(input_scale * x) - 1))
template <class T, class M = math::Separate>
struct Elu {
  using parameters = Parameters<Scalar, Scalar, Scalar>;
  T negative, positive, input_scale;
  Elu(Scalar alpha, Scalar scale, Scalar input_scale)
      : negative(static_cast<T>(alpha.to<double>() * scale.to<double>())),
        positive(scale.to<T>()),
        input_scale(input_scale.to<T>()) {}
  T operator()(T x) const {
    const T below = math::expm1_near<M>(x * input_scale) * negative, above = x * positive;
    return x < T(0) ? below : above;
  }
};
template <class T>
struct Hardtanh {
  using parameters = Parameters<Scalar, Scalar>;
  T low, high;
  Hardtanh(Scalar low, Scalar high) : low(low.to<T>()), high(high.to<T>()) {}
  T operator()(T x) const { return x < low ? low : x > high ? high : x; }
};
template <class T>
struct LeakyRelu {
  using parameters = Parameters<Scalar>;
  T slope;
  explicit LeakyRelu(Scalar slope) : slope(slope.to<T>()) {}
  T operator()(T x) const { return x > T(0) ? x : x * slope; }
};
/// x min(max(x + 3, 0), 6) / 6
template <class T>
struct Hardswish {
  T operator()(T x) const {
    const T y = x + T(3), low = y < T(0) ? T(0) : y;
    return x * (low > T(6) ? T(6) : low) / T(6);
  }
};
/// min(max(x + 3, 0), 6) / 6
template <class T>
struct Hardsigmoid {
  T operator()(T x) const {
    const T y = x + T(3), low = y < T(0) ? T(0) : y;
    return (low > T(6) ? T(6) : low) / T(6);
  }
};
/// log(1 + exp(beta x)) / beta; x itself if beta x > threshold.
template <class T, class M = math::Separate>
struct Softplus {
  using parameters = Parameters<Scalar, Scalar>;
  T beta, threshold;
  Softplus(Scalar beta, Scalar threshold) : beta(beta.to<T>()), threshold(threshold.to<T>()) {}
  T operator()(T x) const {
    const T z = x * beta;
    // log(1 + exp(z)) = max(z, 0) + log(1 + exp(-|z|))
    const T y =
        ((z > T(0) ? z : T(0)) + math::log1p_near<M>(math::exp_of_negative<M>(-std::fabs(z)))) /
        beta;
    return z > threshold ? x : y;
  }
};
/// Limits x to `min` and `max`, if present. A NaN in x stays; a NaN bound gives NaN.
template <class T>
struct Clamp {
  using parameters = Parameters<Maybe<Scalar>, Maybe<Scalar>>;
  bool has_low, has_high;
  T low, high;
  Clamp(Maybe<Scalar> min, Maybe<Scalar> max)
      : has_low(min.present), has_high(max.present), low(min->to<T>()), high(max->to<T>()) {}
  T operator()(T x) const {
    const T y = has_low && (x < low || low != low) ? low : x;
    return has_high && (y > high || high != high) ? high : y;
  }
};
/// Replaces NaN and the infinities. Without given values, by 0 and the largest finite numbers.
template <class T>
struct NanToNum {
  using parameters = Parameters<Maybe<double>, Maybe<double>, Maybe<double>>;
  T nan, high, low;
  NanToNum(Maybe<double> nan, Maybe<double> posinf, Maybe<double> neginf)
      : nan(static_cast<T>(nan.value)),
        high(posinf ? static_cast<T>(*posinf) : std::numeric_limits<T>::max()),
        low(neginf ? static_cast<T>(*neginf) : std::numeric_limits<T>::lowest()) {}
  T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return x;
    } else {
      constexpr T infinity = static_cast<T>(HUGE_VALF);
      T y = x == infinity ? high : x;
      y = x == -infinity ? low : y;
      return x == x ? y : nan;
    }
  }
};

}  // namespace taper::portable
