// Elementwise arithmetic. Shapes, dtypes and errors: pointwise.h. Integers wrap around. A division
// by 0 whose result is an integer is an error.
#pragma once
#include <string_view>

#include "taper/exporter/eager/ops/signatures.h"

namespace taper::eager {

// ---- of one tensor ----

/// -x
TAPER_EAGER_UNARY(neg)
/// x itself, the same tensor.
TAPER_EAGER_UNARY(positive)
/// |x|
TAPER_EAGER_UNARY(abs)
/// `abs` by another name.
TAPER_EAGER_UNARY(absolute)
/// -1, 0 or 1, in the dtype of x; of bool, too. NaN gives 0.
TAPER_EAGER_UNARY(sign)
/// The same as `sign`; of a complex number z, z / |z|, and 0 for 0.
TAPER_EAGER_UNARY(sgn)
/// x²
TAPER_EAGER_UNARY(square)
/// 1 / x; integers give f32.
TAPER_EAGER_UNARY(reciprocal)

// ---- sums and products ----

/// self + alpha other. For bool: "or".
inline Tensor add(const Tensor& self, const Tensor& other, Scalar alpha = 1,
                  Location here = Location::current()) {
  return call<ops::add_Tensor>(here, self, other, alpha);
}
/// The same with a number.
inline Tensor add(const Tensor& self, Scalar other, Scalar alpha = 1,
                  Location here = Location::current()) {
  return call<ops::add_Scalar>(here, self, other, alpha);
}
/// self - alpha other
inline Tensor sub(const Tensor& self, const Tensor& other, Scalar alpha = 1,
                  Location here = Location::current()) {
  return call<ops::sub_Tensor>(here, self, other, alpha);
}
/// The same with a number.
inline Tensor sub(const Tensor& self, Scalar other, Scalar alpha = 1,
                  Location here = Location::current()) {
  return call<ops::sub_Scalar>(here, self, other, alpha);
}
/// `sub` by another name.
inline Tensor subtract(const Tensor& self, const Tensor& other, Scalar alpha = 1,
                       Location here = Location::current()) {
  return call<ops::subtract_Tensor>(here, self, other, alpha);
}
/// other - alpha self
inline Tensor rsub(const Tensor& self, const Tensor& other, Scalar alpha = 1,
                   Location here = Location::current()) {
  return call<ops::rsub_Tensor>(here, self, other, alpha);
}
/// The same with a number.
inline Tensor rsub(const Tensor& self, Scalar other, Scalar alpha = 1,
                   Location here = Location::current()) {
  return call<ops::rsub_Scalar>(here, self, other, alpha);
}
/// self times other. For bool: "and".
TAPER_EAGER_TENSOR_OR_NUMBER(mul)
/// `mul` by another name.
inline Tensor multiply(const Tensor& self, const Tensor& other,
                       Location here = Location::current()) {
  return call<ops::multiply_Tensor>(here, self, other);
}
/// self + value tensor1 tensor2
inline Tensor addcmul(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2,
                      Scalar value = 1, Location here = Location::current()) {
  return call<ops::addcmul>(here, self, tensor1, tensor2, value);
}
/// self + value tensor1 / tensor2. An error if all tensors are integers.
inline Tensor addcdiv(const Tensor& self, const Tensor& tensor1, const Tensor& tensor2,
                      Scalar value = 1, Location here = Location::current()) {
  return call<ops::addcdiv>(here, self, tensor1, tensor2, value);
}
/// self + weight (end - self). All have one floating dtype.
inline Tensor lerp(const Tensor& self, const Tensor& end, Scalar weight,
                   Location here = Location::current()) {
  return call<ops::lerp_Scalar>(here, self, end, weight);
}
/// The same with a weight for each element.
inline Tensor lerp(const Tensor& self, const Tensor& end, const Tensor& weight,
                   Location here = Location::current()) {
  return call<ops::lerp_Tensor>(here, self, end, weight);
}

// ---- quotients ----

/// The true quotient: integers and bool give f32.
TAPER_EAGER_TENSOR_OR_NUMBER(div)
/// The quotient rounded to an integer: `rounding_mode` is "floor" or "trunc". Integers stay
/// integers.
inline Tensor div(const Tensor& self, const Tensor& other, std::string_view rounding_mode,
                  Location here = Location::current()) {
  return call<ops::div_Tensor_mode>(here, self, other, rounding_mode);
}
/// The same by a number.
inline Tensor div(const Tensor& self, Scalar other, std::string_view rounding_mode,
                  Location here = Location::current()) {
  return call<ops::div_Scalar_mode>(here, self, other, rounding_mode);
}
/// `div` by another name.
inline Tensor divide(const Tensor& self, const Tensor& other, Location here = Location::current()) {
  return call<ops::divide_Tensor>(here, self, other);
}
/// `div` by another name.
inline Tensor true_divide(const Tensor& self, const Tensor& other,
                          Location here = Location::current()) {
  return call<ops::true_divide_Tensor>(here, self, other);
}
/// The quotient rounded towards minus infinity.
inline Tensor floor_divide(const Tensor& self, const Tensor& other,
                           Location here = Location::current()) {
  return call<ops::floor_divide>(here, self, other);
}
/// The same by a number.
inline Tensor floor_divide(const Tensor& self, Scalar other, Location here = Location::current()) {
  return call<ops::floor_divide_Scalar>(here, self, other);
}
/// The remainder of a division that rounds towards zero. It has the sign of `self`, as in C.
TAPER_EAGER_TENSOR_OR_NUMBER(fmod)
/// The remainder of a division that rounds towards minus infinity. It has the sign of `other`, as
/// in Python.
TAPER_EAGER_TENSOR_OR_NUMBER(remainder)
/// The same of a number.
inline Tensor remainder(Scalar self, const Tensor& other, Location here = Location::current()) {
  return call<ops::remainder_Scalar_Tensor>(here, self, other);
}
/// The greatest common divisor of integers; gcd(0, 0) is 0.
TAPER_EAGER_BINARY(gcd)
/// The least common multiple of integers; 0 where one of them is 0.
TAPER_EAGER_BINARY(lcm)

// ---- the larger and the smaller of two elements; bool is accepted, too ----

/// The larger of two; NaN if either is.
TAPER_EAGER_BINARY(maximum)
/// The smaller of two; NaN if either is.
TAPER_EAGER_BINARY(minimum)
/// The larger of two. If one of them is NaN, the other one.
TAPER_EAGER_BINARY(fmax)
/// The smaller of two. If one of them is NaN, the other one.
TAPER_EAGER_BINARY(fmin)
/// Another name of `maximum`. With one tensor, `max` gives its largest element: see reduction.h.
inline Tensor max(const Tensor& self, const Tensor& other, Location here = Location::current()) {
  return call<ops::max_other>(here, self, other);
}
/// Another name of `minimum`. With one tensor, `min` gives its smallest element: see reduction.h.
inline Tensor min(const Tensor& self, const Tensor& other, Location here = Location::current()) {
  return call<ops::min_other>(here, self, other);
}

// ---- in place; add_, mul_, div_ and others are members of Tensor ----

/// self += value tensor1 tensor2
inline Tensor& addcmul_(Tensor& self, const Tensor& tensor1, const Tensor& tensor2,
                        Scalar value = 1, Location here = Location::current()) {
  return call_in_place<ops::addcmul>(here, self, tensor1, tensor2, value);
}
/// self += value tensor1 / tensor2
inline Tensor& addcdiv_(Tensor& self, const Tensor& tensor1, const Tensor& tensor2,
                        Scalar value = 1, Location here = Location::current()) {
  return call_in_place<ops::addcdiv>(here, self, tensor1, tensor2, value);
}
/// self += weight (end - self)
inline Tensor& lerp_(Tensor& self, const Tensor& end, Scalar weight,
                     Location here = Location::current()) {
  return call_in_place<ops::lerp_Scalar>(here, self, end, weight);
}

// ---- operators: a tensor with a tensor or a number, or a number with a tensor ----

/// `add`
TAPER_EAGER_OPERATOR(+, add, Scalar(1))
/// `sub`
TAPER_EAGER_OPERATOR(-, sub, Scalar(1))
/// `mul`
TAPER_EAGER_OPERATOR(*, mul)
/// `div`
TAPER_EAGER_OPERATOR(/, div)
/// `remainder`
TAPER_EAGER_OPERATOR(%, remainder)
/// `add`
inline Tensor operator+(Scalar a, Operand b) {
  return call<ops::add_Scalar>(b.here, b.tensor, a, Scalar(1));
}
/// `rsub`
inline Tensor operator-(Scalar a, Operand b) {
  return call<ops::rsub_Scalar>(b.here, b.tensor, a, Scalar(1));
}
/// `mul`
inline Tensor operator*(Scalar a, Operand b) { return call<ops::mul_Scalar>(b.here, b.tensor, a); }
/// a times `reciprocal(b)`, which is how PyTorch computes it.
inline Tensor operator/(Scalar a, Operand b) {
  return call<ops::mul_Scalar>(b.here, call<ops::reciprocal>(b.here, b.tensor), a);
}
/// `neg`
inline Tensor operator-(Operand a) { return call<ops::neg>(a.here, a.tensor); }

}  // namespace taper::eager
