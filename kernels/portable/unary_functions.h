// What the pointwise operators of one tensor compute, one functor each. T is float, double or
// int64_t.
#pragma once
#include <string_view>

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
/// max(x, 0); NaN stays.
template <class T>
struct Relu {
  T operator()(T x) const { return x <= T(0) ? T(0) : x; }
};

template <class T>
struct Exp {
  T operator()(T x) const { return math::exp(x); }
};
template <class T>
struct Log {
  T operator()(T x) const { return math::log(x); }
};
template <class T>
struct Tanh {
  T operator()(T x) const { return math::tanh(x); }
};
template <class T>
struct Sigmoid {
  T operator()(T x) const { return math::sigmoid(x); }
};
template <class T>
struct Erf {
  T operator()(T x) const { return math::erf(x); }
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

// Functions of the C library under the operators' names.
#define TAPER_LIBRARY_FUNCTION(Name, function)           \
  template <class T>                                     \
  struct Name {                                          \
    T operator()(T x) const { return std::function(x); } \
  };
TAPER_LIBRARY_FUNCTION(Acos, acos)
TAPER_LIBRARY_FUNCTION(Acosh, acosh)
TAPER_LIBRARY_FUNCTION(Asin, asin)
TAPER_LIBRARY_FUNCTION(Asinh, asinh)
TAPER_LIBRARY_FUNCTION(Atan, atan)
TAPER_LIBRARY_FUNCTION(Atanh, atanh)
TAPER_LIBRARY_FUNCTION(Cos, cos)
TAPER_LIBRARY_FUNCTION(Cosh, cosh)
TAPER_LIBRARY_FUNCTION(Sin, sin)
TAPER_LIBRARY_FUNCTION(Sinh, sinh)
TAPER_LIBRARY_FUNCTION(Tan, tan)
TAPER_LIBRARY_FUNCTION(Erfc, erfc)
TAPER_LIBRARY_FUNCTION(Expm1, expm1)
TAPER_LIBRARY_FUNCTION(Log1p, log1p)
TAPER_LIBRARY_FUNCTION(Log2, log2)
TAPER_LIBRARY_FUNCTION(Log10, log10)
#undef TAPER_LIBRARY_FUNCTION

// Roundings leave integers alone. `round` takes halves to the even neighbour.
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
template <class T>
struct LogicalNot {
  bool operator()(T x) const { return x == T(0); }
};
template <class T>
struct BitwiseNot {
  T operator()(T x) const { return ~x; }
};

// ---- activations
// -------------------------------------------------------------------------------------------------------

/// x Φ(x), with Φ the normal distribution function, or its approximation by tanh: Hendrycks and
/// Gimpel, "Gaussian Error Linear Units", arXiv:1606.08415.
template <class T>
struct GeluErf {
  T operator()(T x) const { return x * T(0.5) * (T(1) + math::erf(x * T(0.70710678118654752440))); }
};
template <class T>
struct GeluTanh {
  T operator()(T x) const {
    return T(0.5) * x *
           (T(1) + math::tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
  }
};
template <class T>
struct Gelu {
  using parameters = Parameters<std::string_view>;
  bool approximate;
  explicit Gelu(std::string_view approximate) : approximate(approximate == "tanh") {}
  template <class Visitor>
  void visit(const Visitor& visitor) const {
    approximate ? visitor(GeluTanh<T>()) : visitor(GeluErf<T>());
  }
};
/// x sigmoid(x)
template <class T>
struct Silu {
  T operator()(T x) const { return x / (T(1) + math::exp(-x)); }
};
/// scale * (x > 0 ? x : alpha * (exp(input_scale * x) - 1))
template <class T>
struct Elu {
  using parameters = Parameters<Scalar, Scalar, Scalar>;
  T negative, positive, input_scale;
  Elu(Scalar alpha, Scalar scale, Scalar input_scale)
      : negative(static_cast<T>(alpha.to<double>() * scale.to<double>())),
        positive(scale.to<T>()),
        input_scale(input_scale.to<T>()) {}
  T operator()(T x) const {
    return x <= T(0) ? std::expm1(x * input_scale) * negative : x * positive;
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
/// log(1 + exp(beta x)) / beta, and x itself where beta x > threshold
template <class T>
struct Softplus {
  using parameters = Parameters<Scalar, Scalar>;
  T beta, threshold;
  Softplus(Scalar beta, Scalar threshold) : beta(beta.to<T>()), threshold(threshold.to<T>()) {}
  T operator()(T x) const {
    const T z = x * beta;
    return z > threshold ? x : std::log1p(std::exp(z)) / beta;
  }
};
/// Between `min` and `max`, where given; NaN stays, a NaN bound gives NaN.
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
/// NaN and the infinities replaced; where no value is given by 0 and the largest finite numbers.
template <class T>
struct NanToNum {
  using parameters = Parameters<Maybe<double>, Maybe<double>, Maybe<double>>;
  Maybe<double> nan, posinf, neginf;
  NanToNum(Maybe<double> nan, Maybe<double> posinf, Maybe<double> neginf)
      : nan(nan), posinf(posinf), neginf(neginf) {}
  T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return x;
    } else {
      return replace(x);
    }
  }
  T replace(T x) const {
    if (x != x) return static_cast<T>(nan.value);
    const T infinity = static_cast<T>(HUGE_VALF);
    if (x == infinity) return posinf ? static_cast<T>(*posinf) : std::nextafter(infinity, T(0));
    if (x == -infinity) return neginf ? static_cast<T>(*neginf) : std::nextafter(-infinity, T(0));
    return x;
  }
};

}  // namespace taper::portable
