// Rules of the pointwise operators: the result has the arguments' sizes, broadcast, and their
// common dtype or bool.
#pragma once
#include "taper/kernels/pointwise_program.h"
#include "taper/kernels/shapes/broadcast.h"

namespace taper {
namespace internal {

/// What an operator asks of its dtype.
enum class Wants : uint8_t { any, number, floating, integer, shiftable };

template <class D>
bool dtype_fits(Facts<D>& facts, Wants wants, DType dtype) {
  switch (wants) {
    case Wants::any:
      return true;
    case Wants::number:
      return facts.require(dtype != DType::boolean, TAPER_TEXT("is not defined for bool tensors"));
    case Wants::floating:
      return facts.require(is_floating(dtype), TAPER_TEXT("needs a floating dtype"));
    case Wants::integer:
      return facts.require(!is_floating(dtype), TAPER_TEXT("needs an integer or bool dtype"));
    case Wants::shiftable:
      return facts.require(!is_floating(dtype) && dtype != DType::boolean,
                           TAPER_TEXT("needs an integer dtype"));
  }
  return false;
}

/// One tensor, then S…; a result of its dtype, or bool.
template <Promotion promotion_, Wants wants, bool predicate, class... S>
struct UnaryRule {
  static constexpr Promotion promotion = promotion_;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, S..., TensorType<D>& out) {
    out.like(self, predicate ? DType::boolean : self.dtype);
    return dtype_fits(facts, wants, self.dtype);
  }
};
/// Two tensors, then S….
template <Promotion promotion_, Wants wants, bool predicate, class... S>
struct BinaryRule {
  static constexpr Promotion promotion = promotion_;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& other, S...,
                    TensorType<D>& out) {
    out.dtype = predicate ? DType::boolean : self.dtype;
    return dtype_fits(facts, wants, self.dtype) && same_dtype(facts, self, other) &&
           broadcast(facts, out, self, other);
  }
  template <class D>
  static bool same_dtype(Facts<D>& facts, const TensorType<D>& a, const TensorType<D>& b) {
    return facts.require(a.dtype == b.dtype, TAPER_TEXT("the tensors have different dtypes"));
  }
};

/// alpha of add and sub scales in the tensors' dtype.
template <class D>
bool alpha_fits(Facts<D>& facts, DType dtype, Scalar alpha) {
  return facts.require(is_floating(dtype) || !alpha.is_real,
                       TAPER_TEXT("alpha must be an integer for integer tensors")) &&
         facts.require(dtype == DType::boolean || !alpha.is_bool,
                       TAPER_TEXT("alpha may be a bool for bool tensors only"));
}
template <class D>
bool known_rounding(Facts<D>& facts, const Maybe<std::string_view>& mode) {
  return facts.require(!mode || *mode == "floor" || *mode == "trunc",
                       TAPER_TEXT("rounding_mode must be floor or trunc, or be left out"));
}
/// Without a rounding mode the quotient of integers is no integer.
inline DType quotient_dtype(DType dtype, const Maybe<std::string_view>& mode) {
  return mode || is_floating(dtype) ? dtype : DType::f32;
}
template <class D>
bool nonzero_divisor(Facts<D>& facts, DType dtype, Scalar other) {
  return facts.require(is_floating(dtype) || other.to<int64_t>() != 0,
                       TAPER_TEXT("an integer is divided by zero"));
}
template <class D>
bool known_gelu(Facts<D>& facts, std::string_view approximate) {
  return facts.require(approximate == "none" || approximate == "tanh",
                       TAPER_TEXT("approximate must be none or tanh"));
}

}  // namespace internal

#define TAPER_UNARY_RULE(op, ...) \
  template <>                     \
  struct Rule<ops::op> : internal::UnaryRule<__VA_ARGS__> {};
#define TAPER_BINARY_RULE(op, ...) \
  template <>                      \
  struct Rule<ops::op> : internal::BinaryRule<__VA_ARGS__> {};

TAPER_UNARY_RULE(abs, Promotion::none, internal::Wants::number, false)
TAPER_UNARY_RULE(neg, Promotion::none, internal::Wants::number, false)
TAPER_UNARY_RULE(sign, Promotion::none, internal::Wants::any, false)
TAPER_UNARY_RULE(relu, Promotion::none, internal::Wants::number, false)
TAPER_UNARY_RULE(ceil, Promotion::none, internal::Wants::number, false)
TAPER_UNARY_RULE(floor, Promotion::none, internal::Wants::number, false)
TAPER_UNARY_RULE(round, Promotion::none, internal::Wants::number, false)
TAPER_UNARY_RULE(trunc, Promotion::none, internal::Wants::number, false)
TAPER_UNARY_RULE(isnan, Promotion::none, internal::Wants::any, true)
TAPER_UNARY_RULE(isinf, Promotion::none, internal::Wants::any, true)
TAPER_UNARY_RULE(signbit, Promotion::none, internal::Wants::any, true)
TAPER_UNARY_RULE(logical_not, Promotion::none, internal::Wants::any, true)
TAPER_UNARY_RULE(bitwise_not, Promotion::none, internal::Wants::integer, false)
TAPER_UNARY_RULE(nan_to_num, Promotion::none, internal::Wants::any, false, Maybe<double>,
                 Maybe<double>, Maybe<double>)

#define TAPER_FLOATING_RULE(op) \
  TAPER_UNARY_RULE(op, Promotion::floating, internal::Wants::floating, false)
TAPER_FLOATING_RULE(acos)
TAPER_FLOATING_RULE(acosh)
TAPER_FLOATING_RULE(asin)
TAPER_FLOATING_RULE(asinh)
TAPER_FLOATING_RULE(atan)
TAPER_FLOATING_RULE(atanh)
TAPER_FLOATING_RULE(cos)
TAPER_FLOATING_RULE(cosh)
TAPER_FLOATING_RULE(digamma)
TAPER_FLOATING_RULE(erf)
TAPER_FLOATING_RULE(erfc)
TAPER_FLOATING_RULE(erfinv)
TAPER_FLOATING_RULE(exp)
TAPER_FLOATING_RULE(exp2)
TAPER_FLOATING_RULE(expm1)
TAPER_FLOATING_RULE(i0)
TAPER_FLOATING_RULE(lgamma)
TAPER_FLOATING_RULE(log)
TAPER_FLOATING_RULE(log10)
TAPER_FLOATING_RULE(log1p)
TAPER_FLOATING_RULE(log2)
TAPER_FLOATING_RULE(reciprocal)
TAPER_FLOATING_RULE(rsqrt)
TAPER_FLOATING_RULE(sigmoid)
TAPER_FLOATING_RULE(sin)
TAPER_FLOATING_RULE(sinh)
TAPER_FLOATING_RULE(sqrt)
TAPER_FLOATING_RULE(special_i0e)
TAPER_FLOATING_RULE(special_i1)
TAPER_FLOATING_RULE(special_i1e)
TAPER_FLOATING_RULE(special_log_ndtr)
TAPER_FLOATING_RULE(tan)
TAPER_FLOATING_RULE(tanh)
#undef TAPER_FLOATING_RULE

// ---- activations ----

TAPER_UNARY_RULE(silu, Promotion::none, internal::Wants::floating, false)
TAPER_UNARY_RULE(mish, Promotion::none, internal::Wants::floating, false)
TAPER_UNARY_RULE(hardshrink, Promotion::none, internal::Wants::floating, false, Scalar)
TAPER_BINARY_RULE(_prelu_kernel, Promotion::none, internal::Wants::floating, false)
TAPER_UNARY_RULE(elu, Promotion::none, internal::Wants::floating, false, Scalar, Scalar, Scalar)
TAPER_UNARY_RULE(hardtanh, Promotion::none, internal::Wants::number, false, Scalar, Scalar)
TAPER_UNARY_RULE(leaky_relu, Promotion::none, internal::Wants::floating, false, Scalar)
TAPER_UNARY_RULE(hardswish, Promotion::none, internal::Wants::floating, false)
TAPER_UNARY_RULE(hardsigmoid, Promotion::none, internal::Wants::floating, false)
TAPER_UNARY_RULE(softplus, Promotion::none, internal::Wants::floating, false, Scalar, Scalar)
TAPER_UNARY_RULE(clamp_min, Promotion::common, internal::Wants::number, false, Scalar)
TAPER_UNARY_RULE(clamp_max, Promotion::common, internal::Wants::number, false, Scalar)
TAPER_BINARY_RULE(threshold_backward, Promotion::common, internal::Wants::any, false, Scalar)
TAPER_BINARY_RULE(sigmoid_backward, Promotion::common, internal::Wants::floating, false)
TAPER_BINARY_RULE(silu_backward, Promotion::common, internal::Wants::floating, false)
TAPER_BINARY_RULE(tanh_backward, Promotion::common, internal::Wants::floating, false)

template <>
struct Rule<ops::softshrink> {
  static constexpr Promotion promotion = Promotion::none;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Scalar lambd, TensorType<D>& out) {
    out.like(self);
    return internal::dtype_fits(facts, internal::Wants::floating, self.dtype) &&
           facts.require(lambd.to<double>() >= 0, TAPER_TEXT("lambd must not be negative"));
  }
};
template <>
struct Rule<ops::gelu> {
  static constexpr Promotion promotion = Promotion::none;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, std::string_view approximate,
                    TensorType<D>& out) {
    out.like(self);
    return internal::dtype_fits(facts, internal::Wants::floating, self.dtype) &&
           internal::known_gelu(facts, approximate);
  }
};
template <>
struct Rule<ops::gelu_backward> {
  static constexpr Promotion promotion = Promotion::common;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& gradient, const TensorType<D>& self,
                    std::string_view approximate, TensorType<D>& out) {
    using Same = internal::BinaryRule<Promotion::common, internal::Wants::floating, false>;
    return Same::shape(facts, gradient, self, out) && internal::known_gelu(facts, approximate);
  }
};
template <>
struct Rule<ops::clamp> {
  static constexpr Promotion promotion = Promotion::common;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Maybe<Scalar> min,
                    Maybe<Scalar> max, TensorType<D>& out) {
    out.like(self);
    return internal::dtype_fits(facts, internal::Wants::number, self.dtype) &&
           facts.require(min || max, TAPER_TEXT("needs min, max, or both"));
  }
};
template <>
struct Rule<ops::clamp_Tensor> {
  static constexpr Promotion promotion = Promotion::common;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>* min,
                    const TensorType<D>* max, TensorType<D>& out) {
    out.dtype = self.dtype;
    return internal::dtype_fits(facts, internal::Wants::number, self.dtype) &&
           facts.require(min != nullptr || max != nullptr, TAPER_TEXT("needs min, max, or both")) &&
           internal::broadcast(facts, out, self, min != nullptr ? *min : self,
                               max != nullptr ? *max : self) &&
           facts.require((min == nullptr || min->dtype == self.dtype) &&
                             (max == nullptr || max->dtype == self.dtype),
                         TAPER_TEXT("the tensors have different dtypes"));
  }
};

// ---- arithmetic ----

TAPER_BINARY_RULE(mul_Tensor, Promotion::common, internal::Wants::any, false)
TAPER_UNARY_RULE(mul_Scalar, Promotion::common, internal::Wants::any, false, Scalar)
TAPER_BINARY_RULE(div_Tensor, Promotion::common_floating, internal::Wants::floating, false)
TAPER_UNARY_RULE(div_Scalar, Promotion::common_floating, internal::Wants::floating, false, Scalar)
TAPER_BINARY_RULE(pow_Tensor_Tensor, Promotion::common, internal::Wants::any, false)
TAPER_BINARY_RULE(fmod_Tensor, Promotion::common, internal::Wants::any, false)
TAPER_BINARY_RULE(remainder_Tensor, Promotion::common, internal::Wants::any, false)
TAPER_BINARY_RULE(maximum, Promotion::common, internal::Wants::any, false)
TAPER_BINARY_RULE(minimum, Promotion::common, internal::Wants::any, false)
TAPER_BINARY_RULE(fmax, Promotion::common, internal::Wants::any, false)
TAPER_BINARY_RULE(fmin, Promotion::common, internal::Wants::any, false)
TAPER_BINARY_RULE(hypot, Promotion::common, internal::Wants::floating, false)
TAPER_BINARY_RULE(copysign_Tensor, Promotion::common_floating, internal::Wants::floating, false)
TAPER_UNARY_RULE(copysign_Scalar, Promotion::common_floating, internal::Wants::floating, false,
                 Scalar)
TAPER_BINARY_RULE(logaddexp, Promotion::common, internal::Wants::floating, false)
TAPER_BINARY_RULE(logaddexp2, Promotion::common, internal::Wants::floating, false)
TAPER_BINARY_RULE(xlogy_Tensor, Promotion::common_floating, internal::Wants::floating, false)
TAPER_BINARY_RULE(bitwise_left_shift_Tensor, Promotion::common, internal::Wants::shiftable, false)
TAPER_UNARY_RULE(bitwise_left_shift_Tensor_Scalar, Promotion::common, internal::Wants::shiftable,
                 false, Scalar)
TAPER_BINARY_RULE(bitwise_right_shift_Tensor, Promotion::common, internal::Wants::shiftable, false)
TAPER_UNARY_RULE(bitwise_right_shift_Tensor_Scalar, Promotion::common, internal::Wants::shiftable,
                 false, Scalar)
TAPER_BINARY_RULE(lerp_Scalar, Promotion::none, internal::Wants::floating, false, Scalar)
TAPER_BINARY_RULE(atan2, Promotion::common_floating, internal::Wants::floating, false)
TAPER_BINARY_RULE(gcd, Promotion::common, internal::Wants::integer, false)
TAPER_BINARY_RULE(bitwise_and_Tensor, Promotion::common, internal::Wants::integer, false)
TAPER_UNARY_RULE(bitwise_and_Scalar, Promotion::common, internal::Wants::integer, false, Scalar)
TAPER_BINARY_RULE(bitwise_or_Tensor, Promotion::common, internal::Wants::integer, false)
TAPER_UNARY_RULE(bitwise_or_Scalar, Promotion::common, internal::Wants::integer, false, Scalar)
TAPER_BINARY_RULE(bitwise_xor_Tensor, Promotion::common, internal::Wants::integer, false)
TAPER_UNARY_RULE(bitwise_xor_Scalar, Promotion::common, internal::Wants::integer, false, Scalar)

namespace internal {

template <bool subtracts>
struct AddTensorRule {
  static constexpr Promotion promotion = Promotion::common;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& other,
                    Scalar alpha, TensorType<D>& out) {
    using Same = BinaryRule<promotion, subtracts ? Wants::number : Wants::any, false>;
    return Same::shape(facts, self, other, out) && alpha_fits(facts, self.dtype, alpha);
  }
};
template <bool subtracts>
struct AddScalarRule {
  static constexpr Promotion promotion = Promotion::common;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Scalar, Scalar alpha,
                    TensorType<D>& out) {
    out.like(self);
    return dtype_fits(facts, subtracts ? Wants::number : Wants::any, self.dtype) &&
           alpha_fits(facts, self.dtype, alpha);
  }
};
/// Three tensors broadcast together.
template <Promotion promotion_, Wants wants, class... S>
struct TernaryRule {
  static constexpr Promotion promotion = promotion_;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& a, const TensorType<D>& b,
                    const TensorType<D>& c, S..., TensorType<D>& out) {
    out.dtype = a.dtype;
    return dtype_fits(facts, wants, a.dtype) &&
           facts.require(a.dtype == b.dtype && a.dtype == c.dtype,
                         TAPER_TEXT("the tensors have different dtypes")) &&
           broadcast(facts, out, a, b, c);
  }
};
struct DivisionScalarRule {
  static constexpr Promotion promotion = Promotion::common;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Scalar other, TensorType<D>& out) {
    out.like(self);
    return nonzero_divisor(facts, self.dtype, other);
  }
};

}  // namespace internal

template <>
struct Rule<ops::add_Tensor> : internal::AddTensorRule<false> {};
template <>
struct Rule<ops::sub_Tensor> : internal::AddTensorRule<true> {};
template <>
struct Rule<ops::add_Scalar> : internal::AddScalarRule<false> {};
template <>
struct Rule<ops::sub_Scalar> : internal::AddScalarRule<true> {};
template <>
struct Rule<ops::addcmul> : internal::TernaryRule<Promotion::common, internal::Wants::any, Scalar> {
};
template <>
struct Rule<ops::addcdiv>
    : internal::TernaryRule<Promotion::common, internal::Wants::floating, Scalar> {};
template <>
struct Rule<ops::lerp_Tensor> : internal::TernaryRule<Promotion::none, internal::Wants::floating> {
};
template <>
struct Rule<ops::fmod_Scalar> : internal::DivisionScalarRule {};
template <>
struct Rule<ops::remainder_Scalar> : internal::DivisionScalarRule {};

template <>
struct Rule<ops::div_Tensor_mode> {
  static constexpr Promotion promotion = Promotion::common;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& other,
                    Maybe<std::string_view> mode, TensorType<D>& out) {
    using Same = internal::BinaryRule<promotion, internal::Wants::any, false>;
    const bool fits = Same::shape(facts, self, other, out) && internal::known_rounding(facts, mode);
    out.dtype = internal::quotient_dtype(self.dtype, mode);
    return fits;
  }
};
template <>
struct Rule<ops::div_Scalar_mode> {
  static constexpr Promotion promotion = Promotion::common;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Scalar other,
                    Maybe<std::string_view> mode, TensorType<D>& out) {
    out.like(self, internal::quotient_dtype(self.dtype, mode));
    return internal::known_rounding(facts, mode) &&
           (!mode || internal::nonzero_divisor(facts, self.dtype, other));
  }
};
template <>
struct Rule<ops::pow_Tensor_Scalar> {
  static constexpr Promotion promotion = Promotion::common;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Scalar exponent,
                    TensorType<D>& out) {
    out.like(self);
    return facts.require(is_floating(self.dtype) || exponent.is_real || exponent.integer >= 0,
                         TAPER_TEXT("an integer to the negative power {}: use a floating tensor"),
                         exponent.to<int64_t>());
  }
};
template <>
struct Rule<ops::polygamma> {
  static constexpr Promotion promotion = Promotion::floating;
  template <class D>
  static bool shape(Facts<D>& facts, int64_t n, const TensorType<D>& self, TensorType<D>& out) {
    out.like(self);
    return internal::dtype_fits(facts, internal::Wants::floating, self.dtype) &&
           facts.require(n >= 0, TAPER_TEXT("n must not be negative, it is {}"), n);
  }
};
template <>
struct Rule<ops::pow_Scalar> {
  static constexpr Promotion promotion = Promotion::common;
  template <class D>
  static bool shape(Facts<D>&, Scalar, const TensorType<D>& exponent, TensorType<D>& out) {
    out.like(exponent);
    return true;
  }
};

// ---- comparisons, logic, masks ----

#define TAPER_COMPARISON_RULES(op)                                              \
  TAPER_BINARY_RULE(op##_Tensor, Promotion::common, internal::Wants::any, true) \
  TAPER_UNARY_RULE(op##_Scalar, Promotion::common, internal::Wants::any, true, Scalar)
TAPER_COMPARISON_RULES(eq)
TAPER_COMPARISON_RULES(ne)
TAPER_COMPARISON_RULES(lt)
TAPER_COMPARISON_RULES(le)
TAPER_COMPARISON_RULES(gt)
TAPER_COMPARISON_RULES(ge)
#undef TAPER_COMPARISON_RULES
TAPER_BINARY_RULE(logical_and, Promotion::boolean, internal::Wants::any, true)
TAPER_BINARY_RULE(logical_or, Promotion::boolean, internal::Wants::any, true)
TAPER_BINARY_RULE(logical_xor, Promotion::boolean, internal::Wants::any, true)

#undef TAPER_UNARY_RULE
#undef TAPER_BINARY_RULE

template <>
struct Rule<ops::where_self> {
  static constexpr Promotion promotion = Promotion::conditional;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& condition, const TensorType<D>& self,
                    const TensorType<D>& other, TensorType<D>& out) {
    out.dtype = self.dtype;
    return facts.require(condition.dtype == DType::boolean,
                         TAPER_TEXT("condition must be a bool tensor")) &&
           facts.require(self.dtype == other.dtype,
                         TAPER_TEXT("the tensors have different dtypes")) &&
           internal::broadcast(facts, out, condition, self, other);
  }
};
/// Mask and self are broadcast together.
template <>
struct Rule<ops::masked_fill_Scalar> {
  static constexpr Promotion promotion = Promotion::none;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& mask, Scalar,
                    TensorType<D>& out) {
    out.dtype = self.dtype;
    return facts.require(mask.dtype == DType::boolean, TAPER_TEXT("mask must be a bool tensor")) &&
           internal::broadcast(facts, out, self, mask);
  }
};

/// A chain of pointwise operators; kernels/pointwise_program.h describes the program.
template <>
struct Rule<ops::taper_pointwise> {
  static constexpr Promotion promotion = Promotion::none;
  template <class D>
  static bool shape(Facts<D>& facts, TypeList<D> inputs, Span<const int64_t> program,
                    Span<const double> constants, TensorType<D>& out) {
    if (!facts.require(is_valid_pointwise(program, inputs.count, constants.size()),
                       TAPER_TEXT("the program is not valid")))
      return false;
    out.dtype = DType::f32, out.rank = 0;
    for (index_t i = 0; i < inputs.count; ++i) {
      const TensorType<D> in = inputs[i];
      if (!facts.require(in.dtype == DType::f32, TAPER_TEXT("input {} is not f32"), i))
        return false;
      if (in.rank == 0) continue;
      if (out.rank == 0) out.like(in);
      if (!facts.require(in.rank == out.rank,
                         TAPER_TEXT("input {} has another rank than the first"), i))
        return false;
      for (int d = 0; d < in.rank; ++d)
        if (!facts.equal(in[d], out[d], TAPER_TEXT("sizes {} and {} of inputs differ")))
          return false;
    }
    return true;
  }
};

}  // namespace taper
