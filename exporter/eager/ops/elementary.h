// Powers, exponentials, logarithms, trigonometric and hyperbolic functions, elementwise. Shapes,
// dtypes and errors: pointwise.h. Integers and bool give f32, except in `pow`. `hypot`, `logaddexp`
// and `logaddexp2` refuse integers and bool. An argument outside the domain gives NaN.
#pragma once
#include "taper/exporter/eager/ops/signatures.h"

namespace taper::eager {

// ---- exponentials and logarithms ----

/// e^x
TAPER_EAGER_UNARY(exp)
/// 2^x
TAPER_EAGER_UNARY(exp2)
/// e^x - 1, exact near 0.
TAPER_EAGER_UNARY(expm1)
/// The natural logarithm.
TAPER_EAGER_UNARY(log)
/// The logarithm to base 2.
TAPER_EAGER_UNARY(log2)
/// The logarithm to base 10.
TAPER_EAGER_UNARY(log10)
/// log(1 + x), exact near 0.
TAPER_EAGER_UNARY(log1p)
/// log(exp(self) + exp(other)), without overflow.
TAPER_EAGER_BINARY(logaddexp)
/// The same to base 2.
TAPER_EAGER_BINARY(logaddexp2)
/// self log(other). Where self is 0, the result is 0, or NaN if other is NaN.
inline Tensor xlogy(const Tensor& self, const Tensor& other, Location here = Location::current()) {
  return call<ops::xlogy_Tensor>(here, self, other);
}
/// The same with a number for `other`.
inline Tensor xlogy(const Tensor& self, Scalar other, Location here = Location::current()) {
  return call<ops::xlogy_Scalar_Other>(here, self, other);
}
/// The same with a number for `self`.
inline Tensor xlogy(Scalar self, const Tensor& other, Location here = Location::current()) {
  return call<ops::xlogy_Scalar_Self>(here, self, other);
}
/// self log1p(other). Where self is 0, the result is 0, or NaN if other is NaN.
inline Tensor xlog1py(const Tensor& self, const Tensor& other,
                      Location here = Location::current()) {
  return call<ops::special_xlog1py>(here, self, other);
}
/// The same with a number for `other`.
inline Tensor xlog1py(const Tensor& self, Scalar other, Location here = Location::current()) {
  return call<ops::special_xlog1py_other_scalar>(here, self, other);
}
/// The same with a number for `self`.
inline Tensor xlog1py(Scalar self, const Tensor& other, Location here = Location::current()) {
  return call<ops::special_xlog1py_self_scalar>(here, self, other);
}
/// self 2^other
inline Tensor ldexp(const Tensor& self, const Tensor& other, Location here = Location::current()) {
  return call<ops::ldexp_Tensor>(here, self, other);
}
/// (mantissa, exponent): self = mantissa 2^exponent with 1/2 ≤ |mantissa| < 1, or both 0. The
/// exponent is i32. Infinities and NaN have the exponent 0.
inline std::tuple<Tensor, Tensor> frexp(const Tensor& self, Location here = Location::current()) {
  return call<ops::frexp_Tensor>(here, self);
}

// ---- powers and roots ----

/// √x
TAPER_EAGER_UNARY(sqrt)
/// 1 / √x
TAPER_EAGER_UNARY(rsqrt)
/// self to the power `exponent`, in the common dtype. Integers give integers, and 0 where the power
/// is not a whole number.
inline Tensor pow(const Tensor& self, const Tensor& exponent, Location here = Location::current()) {
  return call<ops::pow_Tensor_Tensor>(here, self, exponent);
}
/// The same with a number for `exponent`. Throws if self is an integer and the number a negative
/// integer.
inline Tensor pow(const Tensor& self, Scalar exponent, Location here = Location::current()) {
  return call<ops::pow_Tensor_Scalar>(here, self, exponent);
}
/// The same with a number for `self`.
inline Tensor pow(Scalar self, const Tensor& exponent, Location here = Location::current()) {
  return call<ops::pow_Scalar>(here, self, exponent);
}
/// The power in f64, whatever the arguments' dtypes.
inline Tensor float_power(const Tensor& self, const Tensor& exponent,
                          Location here = Location::current()) {
  return call<ops::float_power_Tensor_Tensor>(here, self, exponent);
}
/// The same with a number for `exponent`.
inline Tensor float_power(const Tensor& self, Scalar exponent,
                          Location here = Location::current()) {
  return call<ops::float_power_Tensor_Scalar>(here, self, exponent);
}
/// The same with a number for `self`.
inline Tensor float_power(Scalar self, const Tensor& exponent,
                          Location here = Location::current()) {
  return call<ops::float_power_Scalar>(here, self, exponent);
}
/// √(self² + other²), without overflow.
TAPER_EAGER_BINARY(hypot)
/// |self| with the sign of other. The sign of -0.0 counts, too.
TAPER_EAGER_TENSOR_OR_NUMBER(copysign)
/// The next number after self, towards other; f32 or f64. The gradient goes to self.
TAPER_EAGER_BINARY(nextafter)

// ---- angles, in radians ----

/// The sine.
TAPER_EAGER_UNARY(sin)
/// The cosine.
TAPER_EAGER_UNARY(cos)
/// The tangent.
TAPER_EAGER_UNARY(tan)
/// The angle in [-π/2, π/2] with this sine.
TAPER_EAGER_UNARY(asin)
/// The angle in [0, π] with this cosine.
TAPER_EAGER_UNARY(acos)
/// The angle in (-π/2, π/2) with this tangent.
TAPER_EAGER_UNARY(atan)
/// The angle of the point (x, y) = (other, self), in (-π, π].
TAPER_EAGER_BINARY(atan2)
/// sin(πx) / (πx), and 1 at 0.
TAPER_EAGER_UNARY(sinc)
/// Degrees to radians.
TAPER_EAGER_UNARY(deg2rad)
/// Radians to degrees.
TAPER_EAGER_UNARY(rad2deg)

// ---- hyperbolic functions ----

/// (e^x - e^-x) / 2
TAPER_EAGER_UNARY(sinh)
/// (e^x + e^-x) / 2
TAPER_EAGER_UNARY(cosh)
/// sinh(x) / cosh(x)
TAPER_EAGER_UNARY(tanh)
/// The y with sinh(y) = x.
TAPER_EAGER_UNARY(asinh)
/// The y ≥ 0 with cosh(y) = x, for x ≥ 1.
TAPER_EAGER_UNARY(acosh)
/// The y with tanh(y) = x, for x in [-1, 1].
TAPER_EAGER_UNARY(atanh)

// ---- in place; of floating dtypes ----

/// `exp` in place.
TAPER_EAGER_UNARY_IN_PLACE(exp)
/// `sqrt` in place.
TAPER_EAGER_UNARY_IN_PLACE(sqrt)
/// `tanh` in place.
TAPER_EAGER_UNARY_IN_PLACE(tanh)

}  // namespace taper::eager
