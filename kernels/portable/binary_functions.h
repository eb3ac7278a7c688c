// The functors of pointwise operators with two or three tensors, or with a tensor and a number. T
// is float, double or int64_t.
#pragma once
#include <cmath>
#include <cstring>
#include <limits>

#include "taper/kernels/portable/elementary.h"
#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/math.h"
#include "taper/kernels/portable/pointwise.h"

namespace taper::portable {

/// a + alpha b for a tensor b.
template <class T>
struct Add {
  using parameters = Parameters<Scalar>;
  T alpha;
  explicit Add(Scalar alpha) : alpha(alpha.to<T>()) {}
  T operator()(T a, T b) const { return wrapping_add(a, wrapping_mul(alpha, b)); }
};
template <class T>
struct Sub {
  using parameters = Parameters<Scalar>;
  T alpha;
  explicit Sub(Scalar alpha) : alpha(alpha.to<T>()) {}
  T operator()(T a, T b) const { return wrapping_sub(a, wrapping_mul(alpha, b)); }
};
template <class T>
struct Mul {
  T operator()(T a, T b) const { return wrapping_mul(a, b); }
};
template <class T>
struct Div {
  T operator()(T a, T b) const { return a / b; }
};

/// a + alpha b for a number b.
template <class T>
struct AddScalar {
  using parameters = Parameters<Scalar, Scalar>;
  T b;
  AddScalar(Scalar other, Scalar alpha) : b(wrapping_mul(alpha.to<T>(), other.to<T>())) {}
  T operator()(T a) const { return wrapping_add(a, b); }
};
template <class T>
struct SubScalar {
  using parameters = Parameters<Scalar, Scalar>;
  T b;
  SubScalar(Scalar other, Scalar alpha) : b(wrapping_mul(alpha.to<T>(), other.to<T>())) {}
  T operator()(T a) const { return wrapping_sub(a, b); }
};

/// Makes a functor of a tensor and a number from one of two tensors.
template <template <class> class F, class T>
struct WithScalar {
  using parameters = Parameters<Scalar>;
  static constexpr bool has_easy = internal::has_easy<F<T>>;
  T b;
  F<T> f;
  explicit WithScalar(Scalar other) : b(other.to<T>()) {}
  auto operator()(T a) const { return f(a, b); }
  auto easy(T a) const { return f.easy(a, b); }
  bool is_hard(T a) const { return f.is_hard(a, b); }
};

/// a^b for integers, by repeated squaring; overflow wraps around. 1 / a^|b| rounds towards zero.
template <class M, class T>
T power(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
    T result = 1;
    for (; b > 0; b /= 2, a = wrapping_mul(a, a))
      if (b % 2 != 0) result = wrapping_mul(result, a);
    return result;
  } else {
    return math::pow<M>(a, b);
  }
}
template <class T, class M = math::Separate>
struct Pow {
  T operator()(T a, T b) const { return power<M>(a, b); }
};
/// Squares and cubes by multiplication.
template <class T>
struct Square {
  T operator()(T a) const { return wrapping_mul(a, a); }
};
template <class T>
struct Cube {
  T operator()(T a) const { return wrapping_mul(wrapping_mul(a, a), a); }
};
/// PyTorch uses the square root for an exponent of 0.5. For -inf the root is NaN; the power would
/// be inf.
template <class T>
struct SquareRoot {
  T operator()(T a) const { return std::sqrt(a); }
};
template <class T>
struct InverseSquareRoot {
  T operator()(T a) const { return T(1) / std::sqrt(a); }
};
template <class T, class M>
struct PowGeneral {
  T exponent;
  T operator()(T a) const { return power<M>(a, exponent); }
};
template <class T, class M = math::Separate>
struct PowScalar {
  using parameters = Parameters<Scalar>;
  T exponent;
  explicit PowScalar(Scalar exponent) : exponent(exponent.to<T>()) {}
  template <class Visitor>
  void visit(const Visitor& visitor) const {
    if (exponent == T(2)) return visitor(Square<T>());
    if (exponent == T(3)) return visitor(Cube<T>());
    if constexpr (!std::is_integral_v<T>) {
      if (exponent == T(0.5)) return visitor(SquareRoot<T>());
      if (exponent == T(-0.5)) return visitor(InverseSquareRoot<T>());
    }
    visitor(PowGeneral<T, M>{exponent});
  }
};
/// base^exponent, where the base is a number.
template <class T, class M = math::Separate>
struct ScalarPow {
  T base;
  explicit ScalarPow(Scalar base) : base(base.to<T>()) {}
  T operator()(T exponent) const { return power<M>(base, exponent); }
};

template <class T>
struct Maximum {
  T operator()(T a, T b) const { return a != a || a > b ? a : b; }
};
template <class T>
struct Minimum {
  T operator()(T a, T b) const { return a != a || a < b ? a : b; }
};
/// The larger of a and b; NaN only if both are NaN.
template <class T>
struct Fmax {
  T operator()(T a, T b) const { return b != b || a > b ? a : b; }
};
template <class T>
struct Fmin {
  T operator()(T a, T b) const { return b != b || a < b ? a : b; }
};
template <class T, class M = math::Separate>
struct Atan2 {
  T operator()(T a, T b) const { return math::atan2<M>(a, b); }
};
template <class T, class M = math::Separate>
struct Hypot {
  T operator()(T a, T b) const { return math::hypot<M>(a, b); }
};
template <class T>
struct Copysign {
  T operator()(T a, T b) const { return std::copysign(a, b); }
};
/// The number of T next to a in the direction of b. It is b if both are equal, and NaN if one is
/// NaN.
template <class T>
struct Nextafter {
  T operator()(T a, T b) const { return std::nextafter(a, b); }
};
/// log(exp(a) + exp(b)) = m + log(1 + exp(-|a - b|)), where m is the larger. Two equal infinities
/// give that infinity.
template <class T, class M = math::Separate>
struct Logaddexp {
  T operator()(T a, T b) const {
    const T m = a > b ? a : b, same = m + T(0.69314718055994530942);
    const T y = m + math::log1p_positive<M>(math::exp<M>(-std::fabs(a - b)));
    return a == b ? same : y;
  }
};
/// log2(2^a + 2^b), in the same way.
template <class T, class M = math::Separate>
struct Logaddexp2 {
  T operator()(T a, T b) const {
    const T m = a > b ? a : b, same = m + T(1);
    const T y =
        m + T(1.44269504088896340736) * math::log1p_positive<M>(math::exp2<M>(-std::fabs(a - b)));
    return a == b ? same : y;
  }
};
/// a log(b); 0 if a = 0, unless b is NaN.
template <class T, class M = math::Separate>
struct Xlogy {
  T operator()(T a, T b) const {
    const T product = a * math::log<M>(b), y = a == T(0) ? T(0) : product;
    return b != b ? b : y;
  }
};

/// Euclid's algorithm, without the sign. gcd(the most negative integer, 0) wraps around.
template <class T>
struct Gcd {
  T operator()(T a, T b) const {
    uint64_t x = size(a), y = size(b);
    while (y != 0) {
      const uint64_t rest = x % y;
      x = y, y = rest;
    }
    return static_cast<T>(x);
  }
  static uint64_t size(T a) {
    const auto bits = static_cast<uint64_t>(a);
    return a < 0 ? 0 - bits : bits;
  }
};
template <class T>
struct BitwiseAnd {
  T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct BitwiseOr {
  T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct BitwiseXor {
  T operator()(T a, T b) const { return a ^ b; }
};

/// Narrower integers are shifted as int64_t: a bit that leaves an int64_t has left them too. A
/// negative count gives 0.
template <class T>
struct LeftShift {
  T operator()(T a, T b) const {
    return b < 0 || b > 63 ? 0 : static_cast<T>(static_cast<uint64_t>(a) << b);
  }
};
/// Fills with copies of the sign bit. A negative count leaves nothing but them.
template <class T>
struct RightShift {
  T operator()(T a, T b) const { return a >> (b < 0 || b > 63 ? 63 : b); }
};

template <class T>
struct Eq {
  bool operator()(T a, T b) const { return a == b; }
};
template <class T>
struct Ne {
  bool operator()(T a, T b) const { return a != b; }
};
template <class T>
struct Lt {
  bool operator()(T a, T b) const { return a < b; }
};
template <class T>
struct Le {
  bool operator()(T a, T b) const { return a <= b; }
};
template <class T>
struct Gt {
  bool operator()(T a, T b) const { return a > b; }
};
template <class T>
struct Ge {
  bool operator()(T a, T b) const { return a >= b; }
};

/// a + value b c
template <class T>
struct Addcmul {
  using parameters = Parameters<Scalar>;
  T value;
  explicit Addcmul(Scalar value) : value(value.to<T>()) {}
  T operator()(T a, T b, T c) const {
    return wrapping_add(a, wrapping_mul(wrapping_mul(value, b), c));
  }
};
/// a + value b / c
template <class T>
struct Addcdiv {
  using parameters = Parameters<Scalar>;
  T value;
  explicit Addcdiv(Scalar value) : value(value.to<T>()) {}
  T operator()(T a, T b, T c) const { return a + value * b / c; }
};
/// From a to b, computed from the nearer end, so that weight 1 gives exactly b.
template <class T>
struct Lerp {
  T operator()(T a, T b, T weight) const {
    return std::fabs(weight) < T(0.5) ? a + weight * (b - a) : b - (b - a) * (T(1) - weight);
  }
};
template <class T>
struct LerpScalar {
  using parameters = Parameters<Scalar>;
  T weight;
  explicit LerpScalar(Scalar weight) : weight(weight.to<T>()) {}
  T operator()(T a, T b) const { return Lerp<T>()(a, b, weight); }
};

/// a if the condition holds, else b. Selects by bits: the compiler would make a choice between
/// elements a branch.
template <class T>
T choose(bool condition, T a, T b) {
  using Bits = std::conditional_t<
      sizeof(T) == 1, uint8_t,
      std::conditional_t<sizeof(T) == 2, uint16_t,
                         std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
  Bits x, y;
  std::memcpy(&x, &a, sizeof(T)), std::memcpy(&y, &b, sizeof(T));
  const Bits all = static_cast<Bits>(Bits(0) - Bits(condition));
  const Bits chosen = static_cast<Bits>((x & all) | (y & static_cast<Bits>(~all)));
  T result;
  std::memcpy(&result, &chosen, sizeof(T));
  return result;
}
/// b where the mask is true, else a: `masked_fill`.
template <class T>
struct MaskedFill {
  using parameters = Parameters<Scalar>;
  T value;
  explicit MaskedFill(Scalar value) : value(value.to<T>()) {}
  T operator()(T a, bool mask) const { return choose(mask, value, a); }
};
template <class T>
struct Where {
  T operator()(bool condition, T a, T b) const { return choose(condition, a, b); }
};

// With a number as second argument.
template <class T>
using ClampMin = WithScalar<Maximum, T>;
template <class T>
using ClampMax = WithScalar<Minimum, T>;
template <class T>
using MulScalar = WithScalar<Mul, T>;
template <class T>
using DivScalar = WithScalar<Div, T>;
template <class T>
using AndScalar = WithScalar<BitwiseAnd, T>;
template <class T>
using OrScalar = WithScalar<BitwiseOr, T>;
template <class T>
using XorScalar = WithScalar<BitwiseXor, T>;
template <class T>
using LeftShiftScalar = WithScalar<LeftShift, T>;
template <class T>
using RightShiftScalar = WithScalar<RightShift, T>;
template <class T>
using CopysignScalar = WithScalar<Copysign, T>;
template <class T>
using EqScalar = WithScalar<Eq, T>;
template <class T>
using NeScalar = WithScalar<Ne, T>;
template <class T>
using LtScalar = WithScalar<Lt, T>;
template <class T>
using LeScalar = WithScalar<Le, T>;
template <class T>
using GtScalar = WithScalar<Gt, T>;
template <class T>
using GeScalar = WithScalar<Ge, T>;

/// Limits x to the bounds that are present. A NaN in x stays; a NaN bound gives NaN.
template <class T>
struct ClampTensor {
  bool has_low, has_high;
  T operator()(T x, T low, T high) const {
    const T y = has_low && (x < low || low != low) ? low : x;
    return has_high && (y > high || high != high) ? high : y;
  }
};
/// The kernel of clamp.Tensor. In place of an absent bound it reads `self`, which limits nothing.
template <class E>
struct ClampByTensors {
  using T = Compute<E>;
  static Error prepare(Context&, Pointwise<3>& plan, AnyView<const E> self,
                       Maybe<AnyView<const E>> min, Maybe<AnyView<const E>> max, View<E> out) {
    const Shape& space = out.shape();
    plan = {
        out.numel(),
        {Walk::broadcast(self.shape(), space), Walk::broadcast((min ? *min : self).shape(), space),
         Walk::broadcast((max ? *max : self).shape(), space)}};
    return Error::ok;
  }
  static constexpr BlockFunction loop = &internal::block<ClampTensor<T>, T, T, T, T>;
  template <BlockFunction loop_>
  static Error run_with(Context& context, const Pointwise<3>& plan, AnyView<const E> self,
                        Maybe<AnyView<const E>> min, Maybe<AnyView<const E>> max, View<E> out) {
    const ClampTensor<T> f{min.present, max.present};
    const DType dtype = internal::computed_dtype<E>(*out.ref);
    const Source sources[] = {Source(*self.ref, plan.walks[0], dtype),
                              Source(*(min ? *min : self).ref, plan.walks[1], dtype),
                              Source(*(max ? *max : self).ref, plan.walks[2], dtype)};
    run_pointwise(context, plan.count, sources, *out.ref, dtype, loop_, &f);
    return Error::ok;
  }
  static Error run(Context& context, const Pointwise<3>& plan, AnyView<const E> self,
                   Maybe<AnyView<const E>> min, Maybe<AnyView<const E>> max, View<E> out) {
    return run_with<loop>(context, plan, self, min, max, out);
  }
};

/// x for x > 0, else weight x
template <class T>
struct Prelu {
  T operator()(T x, T weight) const { return x > T(0) ? x : weight * x; }
};

// ---- derivatives of activations, as functions of the incoming gradient and the saved tensor ----

template <class T>
struct ThresholdBackward {
  using parameters = Parameters<Scalar>;
  T threshold;
  explicit ThresholdBackward(Scalar threshold) : threshold(threshold.to<T>()) {}
  T operator()(T gradient, T x) const { return x <= threshold ? T(0) : gradient; }
};
/// dy y (1 - y)
template <class T>
struct SigmoidBackward {
  T operator()(T dy, T y) const { return dy * (T(1) - y) * y; }
};
/// dy (1 - y^2)
template <class T>
struct TanhBackward {
  T operator()(T dy, T y) const { return dy * (T(1) - y * y); }
};
/// dy s (1 + x (1 - s)), s = sigmoid(x)
template <class T, class M = math::Separate>
struct SiluBackward {
  T operator()(T dy, T x) const {
    const T s = math::sigmoid<M>(x);
    return dy * s * (T(1) + x * (T(1) - s));
  }
};
/// dy (Φ(x) + x φ(x)), or the derivative of x sigmoid(2 u): dy (s + x s (1 - s) 2 u').
template <class T, class M = math::Separate>
struct GeluErfBackward {
  T operator()(T dy, T x) const {
    const T bell = math::bell<M>(x);
    return dy * (math::normal_cdf<M>(x, bell) + x * T(0.39894228040143267794) * bell);
  }
};
template <class T, class M = math::Separate>
struct GeluTanhBackward {
  T operator()(T dy, T x) const {
    const T s = math::sigmoid<M>(math::twice_gelu_argument<M>(x));
    const T slope = M::multiply_add(x * x, T(0.21406444881780079), T(1.5957691216057308));
    return dy * M::multiply_add(x * (s - s * s), slope, s);
  }
};
template <class T, class M = math::Separate>
struct GeluBackward {
  using parameters = Parameters<std::string_view>;
  bool approximate;
  explicit GeluBackward(std::string_view approximate) : approximate(approximate == "tanh") {}
  template <class Visitor>
  void visit(const Visitor& visitor) const {
    approximate ? visitor(GeluTanhBackward<T, M>()) : visitor(GeluErfBackward<T, M>());
  }
};

}  // namespace taper::portable
