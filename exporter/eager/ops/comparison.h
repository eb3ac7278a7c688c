// Comparisons and logic, which give bool, and choices by a condition. They take every dtype.
// Shapes, dtypes and errors: pointwise.h.
#pragma once
#include "taper/exporter/eager/ops/signatures.h"

namespace taper::eager {

// ---- comparisons of a tensor with a tensor or a number ----
// NaN is not equal to anything, and neither less nor greater.

/// self = other
TAPER_EAGER_TENSOR_OR_NUMBER(eq)
/// self ≠ other
TAPER_EAGER_TENSOR_OR_NUMBER(ne)
/// self < other
TAPER_EAGER_TENSOR_OR_NUMBER(lt)
/// self ≤ other
TAPER_EAGER_TENSOR_OR_NUMBER(le)
/// self > other
TAPER_EAGER_TENSOR_OR_NUMBER(gt)
/// self ≥ other
TAPER_EAGER_TENSOR_OR_NUMBER(ge)
/// True where |self - other| <= atol + rtol |other|; with `equal_nan` also where both are NaN. self
/// and other have one dtype.
inline Tensor isclose(const Tensor& self, const Tensor& other, double rtol = 1e-5,
                      double atol = 1e-8, bool equal_nan = false,
                      Location here = Location::current()) {
  return call<ops::isclose>(here, self, other, rtol, atol, equal_nan);
}

// ---- what kind of number each element is; integers are finite ----

/// Whether it is NaN.
TAPER_EAGER_UNARY(isnan)
/// Whether it is an infinity.
TAPER_EAGER_UNARY(isinf)
/// Whether it is plus infinity.
TAPER_EAGER_UNARY(isposinf)
/// Whether it is minus infinity.
TAPER_EAGER_UNARY(isneginf)
/// Whether it is neither NaN nor an infinity.
TAPER_EAGER_UNARY(isfinite)
/// Whether it is real: always, but for complex numbers with an imaginary part other than 0.
TAPER_EAGER_UNARY(isreal)
/// Whether it has the sign bit set: also -0.0 and some NaN.
TAPER_EAGER_UNARY(signbit)

// ---- logic; every element other than zero counts as true, NaN too ----

/// Whether it is zero.
TAPER_EAGER_UNARY(logical_not)
/// Whether both are true.
TAPER_EAGER_BINARY(logical_and)
/// Whether either is true.
TAPER_EAGER_BINARY(logical_or)
/// Whether exactly one is true.
TAPER_EAGER_BINARY(logical_xor)

// ---- choices; all three arguments are broadcast ----

/// self where the bool tensor `condition` is true, else other. The result has the common dtype.
inline Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other,
                    Location here = Location::current()) {
  return call<ops::where_self>(here, condition, self, other);
}
/// The same with two numbers. Two integers give i64, else the result is f32.
inline Tensor where(const Tensor& condition, Scalar self, Scalar other,
                    Location here = Location::current()) {
  return call<ops::where_Scalar>(here, condition, self, other);
}
/// The same with a number for `other`.
inline Tensor where(const Tensor& condition, const Tensor& self, Scalar other,
                    Location here = Location::current()) {
  return call<ops::where_ScalarOther>(here, condition, self, other);
}
/// The same with a number for `self`.
inline Tensor where(const Tensor& condition, Scalar self, const Tensor& other,
                    Location here = Location::current()) {
  return call<ops::where_ScalarSelf>(here, condition, self, other);
}
/// `value` where the bool tensor `mask` is true, else self. The result has the dtype of self.
inline Tensor masked_fill(const Tensor& self, const Tensor& mask, Scalar value,
                          Location here = Location::current()) {
  return call<ops::masked_fill_Scalar>(here, self, mask, value);
}
/// The same with a 0-dim tensor for `value`.
inline Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value,
                          Location here = Location::current()) {
  return call<ops::masked_fill_Tensor>(here, self, mask, value);
}
/// `masked_fill` in place; mask must broadcast to the sizes of self.
inline Tensor& masked_fill_(Tensor& self, const Tensor& mask, Scalar value,
                            Location here = Location::current()) {
  return call_in_place<ops::masked_fill_Scalar>(here, self, mask, value);
}
/// 0 below 0, 1 above, and at 0 what `values`, of the same dtype, says.
inline Tensor heaviside(const Tensor& self, const Tensor& values,
                        Location here = Location::current()) {
  return call<ops::heaviside>(here, self, values);
}

// ---- operators: a tensor with a tensor or a number ----

/// `eq`
TAPER_EAGER_OPERATOR(==, eq)
/// `ne`
TAPER_EAGER_OPERATOR(!=, ne)
/// `lt`
TAPER_EAGER_OPERATOR(<, lt)
/// `le`
TAPER_EAGER_OPERATOR(<=, le)
/// `gt`
TAPER_EAGER_OPERATOR(>, gt)
/// `ge`
TAPER_EAGER_OPERATOR(>=, ge)

}  // namespace taper::eager
