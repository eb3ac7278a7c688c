// Bits of integers and bool. Floating dtypes are refused. Shapes, dtypes and other errors:
// pointwise.h.
#pragma once
#include "taper/exporter/eager/ops/signatures.h"

namespace taper::eager {

/// ~x. For bool: "not".
TAPER_EAGER_UNARY(bitwise_not)
/// The bits that both have.
TAPER_EAGER_TENSOR_OR_NUMBER(bitwise_and)
/// The bits that either has.
TAPER_EAGER_TENSOR_OR_NUMBER(bitwise_or)
/// The bits that exactly one of them has.
TAPER_EAGER_TENSOR_OR_NUMBER(bitwise_xor)
/// The same with the number first.
inline Tensor bitwise_and(Scalar self, const Tensor& other, Location here = Location::current()) {
  return call<ops::bitwise_and_Scalar_Tensor>(here, self, other);
}
/// The same with the number first.
inline Tensor bitwise_or(Scalar self, const Tensor& other, Location here = Location::current()) {
  return call<ops::bitwise_or_Scalar_Tensor>(here, self, other);
}
/// The same with the number first.
inline Tensor bitwise_xor(Scalar self, const Tensor& other, Location here = Location::current()) {
  return call<ops::bitwise_xor_Scalar_Tensor>(here, self, other);
}

// ---- shifts of integers; a negative count, or one of the width or more, shifts all bits out ----

/// self 2^other. Bits that do not fit are cut off.
inline Tensor bitwise_left_shift(const Tensor& self, const Tensor& other,
                                 Location here = Location::current()) {
  return call<ops::bitwise_left_shift_Tensor>(here, self, other);
}
/// The same by a number.
inline Tensor bitwise_left_shift(const Tensor& self, Scalar other,
                                 Location here = Location::current()) {
  return call<ops::bitwise_left_shift_Tensor_Scalar>(here, self, other);
}
/// The same of a number.
inline Tensor bitwise_left_shift(Scalar self, const Tensor& other,
                                 Location here = Location::current()) {
  return call<ops::bitwise_left_shift_Scalar_Tensor>(here, self, other);
}
/// self / 2^other, rounded towards minus infinity: copies of the sign bit move in.
inline Tensor bitwise_right_shift(const Tensor& self, const Tensor& other,
                                  Location here = Location::current()) {
  return call<ops::bitwise_right_shift_Tensor>(here, self, other);
}
/// The same by a number.
inline Tensor bitwise_right_shift(const Tensor& self, Scalar other,
                                  Location here = Location::current()) {
  return call<ops::bitwise_right_shift_Tensor_Scalar>(here, self, other);
}
/// The same of a number.
inline Tensor bitwise_right_shift(Scalar self, const Tensor& other,
                                  Location here = Location::current()) {
  return call<ops::bitwise_right_shift_Scalar_Tensor>(here, self, other);
}

// ---- operators: a tensor with a tensor or a number ----

/// `bitwise_and`
TAPER_EAGER_OPERATOR(&, bitwise_and)
/// `bitwise_or`
TAPER_EAGER_OPERATOR(|, bitwise_or)
/// `bitwise_xor`
TAPER_EAGER_OPERATOR(^, bitwise_xor)
/// `bitwise_not`
inline Tensor operator~(Operand a) { return call<ops::bitwise_not>(a.here, a.tensor); }

}  // namespace taper::eager
