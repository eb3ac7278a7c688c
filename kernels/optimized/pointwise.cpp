// The portable pointwise loops, compiled for AVX2 and AVX-512. Every element goes through the same
// IEEE 754 operations in the same order, so the bits are those of the portable record. Only the
// elementary functions differ: at these levels they use fused multiply-adds. fused_pointwise.cpp
// has the same functions.
#include "taper/kernels/portable/pointwise.h"

#include <cstring>

#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/small_floats.h"
#include "taper/kernels/portable/binary_functions.h"
#include "taper/kernels/portable/division_functions.h"
#include "taper/kernels/portable/special_functions.h"
#include "taper/kernels/portable/unary_functions.h"
#include "taper/kernels/shapes/movement.h"
#include "taper/kernels/shapes/pointwise.h"

#if TAPER_X86_LEVELS

namespace taper::optimized {

using portable::AfterNumber, portable::Elementwise, portable::SmallFloat, portable::WithScalar,
    portable::math::Fused;

namespace {

template <class From, class To>
struct Cast {
  using parameters = portable::Parameters<Maybe<DType>>;
  explicit Cast(Maybe<DType>) {}
  To operator()(From x) const {
    if constexpr (std::is_same_v<From, BFloat16>) {
      return portable::to_float(x);
    } else if constexpr (std::is_same_v<To, BFloat16>) {
      return portable::to_small<To>(x);
    } else if constexpr (std::is_same_v<From, bool>) {
      uint8_t byte;  // 0 or 1
      std::memcpy(&byte, &x, 1);
      return static_cast<To>(byte);
    } else {
      return static_cast<To>(x);
    }
  }
};

template <class From, class To, void (*cast)(index_t, const From*, To*)>
void cast_rows(const void*, index_t rows, index_t n, const portable::Rows* in, void* out) {
  for (index_t r = 0; r < rows; ++r)
    cast(n, static_cast<const From*>(in->data) + r * in->stride, static_cast<To*>(out) + r * n);
}

// Real numbers to integers, rounded towards zero. If a 32-bit integer holds the result, every level
// has an instruction for it. Otherwise a 64-bit conversion is used. Numbers outside i64 become the
// smallest i64, as in the portable cast.
template <class To>
struct Truncate {
  using parameters = portable::Parameters<Maybe<DType>>;
  static constexpr bool has_easy = true;
  explicit Truncate(Maybe<DType>) {}
  bool is_hard(float x) const { return !(x >= -2147483648.0f && x < 2147483648.0f); }
  To easy(float x) const { return static_cast<To>(static_cast<int32_t>(x)); }
  To operator()(float x) const {
    constexpr float limit = 9223372036854775808.0f;  // 2^63
    const bool holds = x >= -limit && x < limit;
    return static_cast<To>(holds ? static_cast<int64_t>(x) : INT64_MIN);
  }
};

using FromHalf = Elementwise<Cast<Half, float>, float, Half>;
using ToHalf = Elementwise<Cast<float, Half>, Half, float>;

// The sign bit of a small float, without a conversion.
struct SmallBits {
  uint16_t bits;
};
struct NegateBits {
  SmallBits operator()(SmallBits x) const { return {static_cast<uint16_t>(x.bits ^ 0x8000u)}; }
};
struct ClearSign {
  SmallBits operator()(SmallBits x) const { return {static_cast<uint16_t>(x.bits & 0x7fffu)}; }
};

struct And {
  bool operator()(bool a, bool b) const { return a & b; }
};
struct IsNotZero {
  using parameters = portable::Parameters<Maybe<DType>>;
  explicit IsNotZero(Maybe<DType>) {}
  bool operator()(int64_t x) const { return x != 0; }
};

}  // namespace
}  // namespace taper::optimized

template <>
struct taper::dtypes_of<taper::optimized::SmallBits> : dtypes_of<taper::portable::SmallFloat> {};

namespace taper::optimized {

#define TAPER_WIDE(op, variant, level, ...)                   \
  TAPER_WIDE_KERNEL(op, variant, level, __VA_ARGS__::prepare, \
                    __VA_ARGS__::run_with<AtLevel<CpuLevel::level, __VA_ARGS__::loop>::call>)
#define TAPER_WIDE_HALF(variant, level, Casts, From, To, cast) \
  TAPER_WIDE_KERNEL(                                           \
      _to_copy, variant, level, Casts::prepare,                \
      Casts::run_with<                                         \
          AtLevel<CpuLevel::level, &cast_rows<From, To, cast<CpuLevel::level>>>::call>)

#define TAPER_GROUP(...) __VA_ARGS__
#define TAPER_WIDE_SMALL(op, level, loop, ...)      \
  TAPER_WIDE_KERNEL(                                \
      op, small_float, level, __VA_ARGS__::prepare, \
      __VA_ARGS__::run_small<AtLevel<CpuLevel::level, loop>::call, small_floats<CpuLevel::level>>)
// An operator over floats: f32, and small floats with the same loop.
#define TAPER_WIDE_UNARY(op, level, ...)                                                 \
  TAPER_WIDE(op, f32, level, Elementwise<__VA_ARGS__, float, float>)                     \
  TAPER_WIDE_SMALL(op, level, TAPER_GROUP(Elementwise<__VA_ARGS__, float, float>::loop), \
                   Elementwise<__VA_ARGS__, SmallFloat, SmallFloat>)
#define TAPER_WIDE_BINARY(op, level, ...)                                                       \
  TAPER_WIDE(op, f32, level, Elementwise<__VA_ARGS__, float, float, float>)                     \
  TAPER_WIDE_SMALL(op, level, TAPER_GROUP(Elementwise<__VA_ARGS__, float, float, float>::loop), \
                   Elementwise<__VA_ARGS__, SmallFloat, SmallFloat, SmallFloat>)
#define TAPER_WIDE_LEVEL(level)                                                                    \
  TAPER_WIDE_HALF(f16_f32, level, FromHalf, Half, float, widen)                                    \
  TAPER_WIDE_HALF(f32_f16, level, ToHalf, float, Half, narrow)                                     \
  TAPER_WIDE(_to_copy, bf16_f32, level, Elementwise<Cast<BFloat16, float>, float, BFloat16>)       \
  TAPER_WIDE(_to_copy, f32_bf16, level, Elementwise<Cast<float, BFloat16>, BFloat16, float>)       \
  TAPER_WIDE(_to_copy, f32_f64, level, Elementwise<Cast<float, double>, double, float>)            \
  TAPER_WIDE(_to_copy, i64_f32, level, Elementwise<Cast<int64_t, float>, float, int64_t>)          \
  TAPER_WIDE(_to_copy, bool_f32, level, Elementwise<Cast<bool, float>, float, bool>)               \
  TAPER_WIDE(_to_copy, bool_i64, level, Elementwise<Cast<bool, int64_t>, int64_t, bool>)           \
  TAPER_WIDE(_to_copy, u8_f32, level, Elementwise<Cast<uint8_t, float>, float, uint8_t>)           \
  TAPER_WIDE(_to_copy, i8_f32, level, Elementwise<Cast<int8_t, float>, float, int8_t>)             \
  TAPER_WIDE(_to_copy, f32_i8, level, Elementwise<Truncate<int8_t>, int8_t, float>)                \
  TAPER_WIDE(_to_copy, i32_f32, level, Elementwise<Cast<int32_t, float>, float, int32_t>)          \
  TAPER_WIDE(_to_copy, f64_f32, level, Elementwise<Cast<double, float>, float, double>)            \
  TAPER_WIDE(_to_copy, i64_i32, level, Elementwise<Cast<int64_t, int32_t>, int32_t, int64_t>)      \
  TAPER_WIDE(_to_copy, i32_i64, level, Elementwise<Cast<int32_t, int64_t>, int64_t, int32_t>)      \
  TAPER_WIDE(_to_copy, f32_u8, level, Elementwise<Truncate<uint8_t>, uint8_t, float>)              \
  TAPER_WIDE(_to_copy, f32_i32, level, Elementwise<Truncate<int32_t>, int32_t, float>)             \
  TAPER_WIDE(_to_copy, f32_i64, level, Elementwise<Truncate<int64_t>, int64_t, float>)             \
  TAPER_WIDE(_to_copy, i64_bool, level, Elementwise<IsNotZero, bool, int64_t>)                     \
  TAPER_WIDE(neg, f32, level, Elementwise<portable::Neg<float>, float, float>)                     \
  TAPER_WIDE(neg, small_float, level, Elementwise<NegateBits, SmallBits, SmallBits>)               \
  TAPER_WIDE(abs, f32, level, Elementwise<portable::Abs<float>, float, float>)                     \
  TAPER_WIDE(abs, small_float, level, Elementwise<ClearSign, SmallBits, SmallBits>)                \
  TAPER_WIDE(pow_Scalar, f32, level,                                                               \
             AfterNumber<portable::ScalarPow<float, Fused>, Scalar, float>)                        \
  TAPER_WIDE(bitwise_and_Tensor, bool, level, Elementwise<And, bool, bool, bool>)                  \
  TAPER_WIDE(logical_not, bool, level, Elementwise<portable::LogicalNot<bool>, bool, bool>)        \
  TAPER_WIDE(nan_to_num, f32, level, Elementwise<portable::NanToNum<float>, float, float>)         \
  TAPER_WIDE(lerp_Tensor, f32, level,                                                              \
             Elementwise<portable::Lerp<float>, float, float, float, float>)                       \
  TAPER_WIDE(clamp_Tensor, f32, level, portable::ClampByTensors<float>)                            \
  TAPER_WIDE(add_Tensor, f64, level, Elementwise<portable::Add<double>, double, double, double>)   \
  TAPER_WIDE(sub_Tensor, f64, level, Elementwise<portable::Sub<double>, double, double, double>)   \
  TAPER_WIDE(mul_Tensor, f64, level, Elementwise<portable::Mul<double>, double, double, double>)   \
  TAPER_WIDE(div_Tensor, f64, level, Elementwise<portable::Div<double>, double, double, double>)   \
  TAPER_WIDE(bitwise_and_Tensor, i64, level,                                                       \
             Elementwise<portable::BitwiseAnd<int64_t>, int64_t, int64_t, int64_t>)                \
  TAPER_WIDE(bitwise_or_Tensor, i64, level,                                                        \
             Elementwise<portable::BitwiseOr<int64_t>, int64_t, int64_t, int64_t>)                 \
  TAPER_WIDE(bitwise_left_shift_Tensor, i64, level,                                                \
             Elementwise<portable::LeftShift<int64_t>, int64_t, int64_t, int64_t>)                 \
  TAPER_WIDE(bitwise_right_shift_Tensor, i64, level,                                               \
             Elementwise<portable::RightShift<int64_t>, int64_t, int64_t, int64_t>)                \
  TAPER_WIDE(bitwise_left_shift_Tensor_Scalar, i64, level,                                         \
             Elementwise<WithScalar<portable::LeftShift, int64_t>, int64_t, int64_t>)              \
  TAPER_WIDE(bitwise_right_shift_Tensor_Scalar, i64, level,                                        \
             Elementwise<WithScalar<portable::RightShift, int64_t>, int64_t, int64_t>)             \
  TAPER_WIDE(bitwise_not, i64, level,                                                              \
             Elementwise<portable::BitwiseNot<int64_t>, int64_t, int64_t>)                         \
  TAPER_WIDE(neg, i64, level, Elementwise<portable::Neg<int64_t>, int64_t, int64_t>)               \
  TAPER_WIDE(lerp_Scalar, f32, level,                                                              \
             Elementwise<portable::LerpScalar<float>, float, float, float>)                        \
  TAPER_WIDE(addcdiv, f32, level,                                                                  \
             Elementwise<portable::Addcdiv<float>, float, float, float, float>)                    \
  TAPER_WIDE(addcmul, f32, level,                                                                  \
             Elementwise<portable::Addcmul<float>, float, float, float, float>)                    \
  TAPER_WIDE(abs, i64, level, Elementwise<portable::Abs<int64_t>, int64_t, int64_t>)               \
  TAPER_WIDE(clamp, i64, level, Elementwise<portable::Clamp<int64_t>, int64_t, int64_t>)           \
  TAPER_WIDE(maximum, i64, level,                                                                  \
             Elementwise<portable::Maximum<int64_t>, int64_t, int64_t, int64_t>)                   \
  TAPER_WIDE(minimum, i64, level,                                                                  \
             Elementwise<portable::Minimum<int64_t>, int64_t, int64_t, int64_t>)                   \
  TAPER_WIDE(eq_Tensor, f32, level, Elementwise<portable::Eq<float>, bool, float, float>)          \
  TAPER_WIDE(eq_Scalar, f32, level, Elementwise<WithScalar<portable::Eq, float>, bool, float>)     \
  TAPER_WIDE(eq_Tensor, i64, level, Elementwise<portable::Eq<int64_t>, bool, int64_t, int64_t>)    \
  TAPER_WIDE(eq_Scalar, i64, level, Elementwise<WithScalar<portable::Eq, int64_t>, bool, int64_t>) \
  TAPER_WIDE(ne_Tensor, f32, level, Elementwise<portable::Ne<float>, bool, float, float>)          \
  TAPER_WIDE(ne_Scalar, f32, level, Elementwise<WithScalar<portable::Ne, float>, bool, float>)     \
  TAPER_WIDE(ne_Tensor, i64, level, Elementwise<portable::Ne<int64_t>, bool, int64_t, int64_t>)    \
  TAPER_WIDE(ne_Scalar, i64, level, Elementwise<WithScalar<portable::Ne, int64_t>, bool, int64_t>) \
  TAPER_WIDE(lt_Tensor, f32, level, Elementwise<portable::Lt<float>, bool, float, float>)          \
  TAPER_WIDE(lt_Scalar, f32, level, Elementwise<WithScalar<portable::Lt, float>, bool, float>)     \
  TAPER_WIDE(lt_Tensor, i64, level, Elementwise<portable::Lt<int64_t>, bool, int64_t, int64_t>)    \
  TAPER_WIDE(lt_Scalar, i64, level, Elementwise<WithScalar<portable::Lt, int64_t>, bool, int64_t>) \
  TAPER_WIDE(le_Tensor, f32, level, Elementwise<portable::Le<float>, bool, float, float>)          \
  TAPER_WIDE(le_Scalar, f32, level, Elementwise<WithScalar<portable::Le, float>, bool, float>)     \
  TAPER_WIDE(le_Tensor, i64, level, Elementwise<portable::Le<int64_t>, bool, int64_t, int64_t>)    \
  TAPER_WIDE(le_Scalar, i64, level, Elementwise<WithScalar<portable::Le, int64_t>, bool, int64_t>) \
  TAPER_WIDE(gt_Tensor, f32, level, Elementwise<portable::Gt<float>, bool, float, float>)          \
  TAPER_WIDE(gt_Scalar, f32, level, Elementwise<WithScalar<portable::Gt, float>, bool, float>)     \
  TAPER_WIDE(gt_Tensor, i64, level, Elementwise<portable::Gt<int64_t>, bool, int64_t, int64_t>)    \
  TAPER_WIDE(gt_Scalar, i64, level, Elementwise<WithScalar<portable::Gt, int64_t>, bool, int64_t>) \
  TAPER_WIDE(ge_Tensor, f32, level, Elementwise<portable::Ge<float>, bool, float, float>)          \
  TAPER_WIDE(ge_Scalar, f32, level, Elementwise<WithScalar<portable::Ge, float>, bool, float>)     \
  TAPER_WIDE(ge_Tensor, i64, level, Elementwise<portable::Ge<int64_t>, bool, int64_t, int64_t>)    \
  TAPER_WIDE(ge_Scalar, i64, level, Elementwise<WithScalar<portable::Ge, int64_t>, bool, int64_t>) \
  TAPER_WIDE(where_self, b4, level,                                                                \
             Elementwise<portable::Where<Bytes<4>>, Bytes<4>, bool, Bytes<4>, Bytes<4>>)           \
  TAPER_WIDE(masked_fill_Scalar, f32, level,                                                       \
             Elementwise<portable::MaskedFill<float>, float, float, bool>)
TAPER_WIDE_LEVEL(avx2)
TAPER_WIDE_LEVEL(avx512)

#define TAPER_NONE(...)
#define TAPER_PLAIN(op, arguments, F, level) TAPER_WIDE_##arguments(op, level, portable::F<float>)
#define TAPER_FUSED(op, arguments, F, level) \
  TAPER_WIDE_##arguments(op, level, portable::F<float, Fused>)
#define TAPER_POINTWISE_ROW(op, arguments, records, F, faster, ...) \
  TAPER_##faster(op, arguments, F, avx2) TAPER_##faster(op, arguments, F, avx512)
#include "taper/kernels/pointwise.def"

}  // namespace taper::optimized
#endif
