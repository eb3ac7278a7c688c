// Rules of the pointwise operators. The result has the sizes to which the arguments broadcast. Its
// dtype is their common dtype, or bool.
#pragma once
#include "taper/kernels/half_precision.h"
#include "taper/kernels/pointwise_program.h"
#include "taper/kernels/shapes/broadcast.h"

namespace taper {
namespace internal {

/// The dtypes that an operator takes.
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

/// One tensor, then S…. The result has its dtype, or is bool.
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

/// Three tensors, then S….
template <Promotion promotion_, Wants wants, bool predicate, class... S>
struct TernaryRule {
  static constexpr Promotion promotion = promotion_;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& a, const TensorType<D>& b,
                    const TensorType<D>& c, S..., TensorType<D>& out) {
    out.dtype = predicate ? DType::boolean : a.dtype;
    return dtype_fits(facts, wants, a.dtype) &&
           facts.require(a.dtype == b.dtype && a.dtype == c.dtype,
                         TAPER_TEXT("the tensors have different dtypes")) &&
           broadcast(facts, out, a, b, c);
  }
};

/// The meaning of column `records` of pointwise.def for the result and for f16 and bf16.
constexpr bool gives_bool(std::string_view records) {
  return records == "PREDICATE" || records == "COMPARISON";
}
constexpr HalfPrecision halves_of(std::string_view records) {
  return records == "FLOATS" ? HalfPrecision::refuse : HalfPrecision::widen;
}

/// Requires that the tensors' dtype fits the kind of alpha in add and sub.
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
/// The dtype of a quotient. Without a rounding mode, the quotient of integers is no integer.
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

// A row of the table without `faster`. `records` decides the dtype of the result, and whether
// halves are refused.
#define TAPER_TENSORS_RULE(Tensors, op, records, promotion_, wants, ...)                    \
  template <>                                                                               \
  struct Rule<ops::op> : internal::Tensors<Promotion::promotion_, internal::Wants::wants,   \
                                           internal::gives_bool(#records), ##__VA_ARGS__> { \
    static constexpr HalfPrecision halves = internal::halves_of(#records);                  \
  };
#define TAPER_UNARY_RULE(...) TAPER_TENSORS_RULE(UnaryRule, __VA_ARGS__)
#define TAPER_BINARY_RULE(...) TAPER_TENSORS_RULE(BinaryRule, __VA_ARGS__)
#define TAPER_TERNARY_RULE(...) TAPER_TENSORS_RULE(TernaryRule, __VA_ARGS__)
#define TAPER_RULE(op, arguments, records, ...) TAPER_##arguments##_RULE(op, records, __VA_ARGS__)
#define TAPER_OWN(...)
#define TAPER_POINTWISE_ROW(op, arguments, records, F, faster, rule, ...) \
  TAPER_##rule(op, arguments, records, __VA_ARGS__)
#include "taper/kernels/pointwise.def"
#undef TAPER_RULE
#undef TAPER_OWN

TAPER_UNARY_RULE(bitwise_not, INTEGER, none, integer)
TAPER_BINARY_RULE(logical_and, PREDICATE, boolean, any)
TAPER_BINARY_RULE(logical_or, PREDICATE, boolean, any)
TAPER_BINARY_RULE(logical_xor, PREDICATE, boolean, any)
#undef TAPER_UNARY_RULE
#undef TAPER_BINARY_RULE
#undef TAPER_TERNARY_RULE
#undef TAPER_TENSORS_RULE

// ---- activations ----

template <>
struct Rule<ops::softshrink> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Scalar lambd, TensorType<D>& out) {
    out.like(self);
    return internal::dtype_fits(facts, internal::Wants::floating, self.dtype) &&
           facts.require(lambd.to<double>() >= 0, TAPER_TEXT("lambd must not be negative"));
  }
};
template <>
struct Rule<ops::gelu> {
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
                         exponent.is_real ? 0 : exponent.integer);
  }
};
/// self = mantissa * 2^exponent
template <>
struct Rule<ops::frexp_Tensor> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, TensorType<D>& mantissa,
                    TensorType<D>& exponent) {
    mantissa.like(self);
    exponent.like(self, DType::i32);
    return internal::dtype_fits(facts, internal::Wants::floating, self.dtype);
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
