// The portable pointwise loops, compiled for AVX2 and AVX-512. Every element goes through the same
// IEEE 754 operations in the same order, so a record gives the portable one's bits; but for the
// elementary functions, which use fused multiply-adds at these levels. fused_pointwise.cpp holds
// the same functions.
#include "taper/kernels/portable/pointwise.h"

#include <cstring>

#include "taper/kernels/optimized/optimized.h"
#include "taper/kernels/optimized/wide.h"
#include "taper/kernels/portable/binary_functions.h"
#include "taper/kernels/portable/small_floats.h"
#include "taper/kernels/portable/unary_functions.h"
#include "taper/kernels/shapes/movement.h"
#include "taper/kernels/shapes/pointwise.h"

#if TAPER_X86_LEVELS
#include <immintrin.h>

namespace taper::optimized {

using portable::AfterNumber, portable::Elementwise, portable::WithScalar, portable::math::Fused;

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

// f16 through the processor's instructions, eight at a time.
__attribute__((target("avx2,f16c"))) inline void narrow_eight(const float* x, Half* y) {
  const __m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT);
  std::memcpy(y, &h, sizeof h);
}
__attribute__((target("avx2,f16c"))) inline void widen_eight(const Half* x, float* y) {
  __m128i h;
  std::memcpy(&h, x, sizeof h);
  _mm256_storeu_ps(y, _mm256_cvtph_ps(h));
}

void narrow(index_t n, const float* x, Half* y) {
  index_t i = 0;
  for (; i + 8 <= n; i += 8) narrow_eight(x + i, y + i);
  for (; i < n; ++i) y[i] = portable::to_small<Half>(x[i]);
}
// The instruction makes every NaN quiet; the portable loop keeps its bits.
void widen(index_t n, const Half* x, float* y) {
  constexpr index_t part = 256;
  for (index_t at = 0; at < n; at += part) {
    const index_t end = n - at < part ? n : at + part;
    int nan = 0;
    for (index_t i = at; i < end; ++i) nan |= (x[i].bits & 0x7fff) > 0x7c00;
    index_t i = at;
    for (; nan == 0 && i + 8 <= end; i += 8) widen_eight(x + i, y + i);
    for (; i < end; ++i) y[i] = portable::to_float(x[i]);
  }
}
template <class From, class To, void (*cast)(index_t, const From*, To*)>
void cast_rows(const void*, index_t rows, index_t n, const portable::Rows* in, void* out) {
  for (index_t r = 0; r < rows; ++r)
    cast(n, static_cast<const From*>(in->data) + r * in->stride, static_cast<To*>(out) + r * n);
}

using FromHalf = Elementwise<Cast<Half, float>, float, Half>;
using ToHalf = Elementwise<Cast<float, Half>, Half, float>;

struct And {
  bool operator()(bool a, bool b) const { return a & b; }
};
struct IsNotZero {
  using parameters = portable::Parameters<Maybe<DType>>;
  explicit IsNotZero(Maybe<DType>) {}
  bool operator()(int64_t x) const { return x != 0; }
};

}  // namespace

#define TAPER_WIDE(op, variant, level, ...)                   \
  TAPER_WIDE_KERNEL(op, variant, level, __VA_ARGS__::prepare, \
                    __VA_ARGS__::run_with<AtLevel<CpuLevel::level, __VA_ARGS__::loop>::call>)
#define TAPER_WIDE_HALF(variant, level, Casts, From, To, cast) \
  TAPER_WIDE_KERNEL(_to_copy, variant, level, Casts::prepare,  \
                    Casts::run_with<AtLevel<CpuLevel::level, &cast_rows<From, To, cast>>::call>)

#define TAPER_WIDE_LEVEL(level)                                                                    \
  TAPER_WIDE_HALF(f16_f32, level, FromHalf, Half, float, widen)                                    \
  TAPER_WIDE_HALF(f32_f16, level, ToHalf, float, Half, narrow)                                     \
  TAPER_WIDE(_to_copy, bf16_f32, level, Elementwise<Cast<BFloat16, float>, float, BFloat16>)       \
  TAPER_WIDE(_to_copy, f32_bf16, level, Elementwise<Cast<float, BFloat16>, BFloat16, float>)       \
  TAPER_WIDE(_to_copy, f32_f64, level, Elementwise<Cast<float, double>, double, float>)            \
  TAPER_WIDE(_to_copy, i64_f32, level, Elementwise<Cast<int64_t, float>, float, int64_t>)          \
  TAPER_WIDE(_to_copy, bool_f32, level, Elementwise<Cast<bool, float>, float, bool>)               \
  TAPER_WIDE(_to_copy, i64_bool, level, Elementwise<IsNotZero, bool, int64_t>)                     \
  TAPER_WIDE(neg, f32, level, Elementwise<portable::Neg<float>, float, float>)                     \
  TAPER_WIDE(abs, f32, level, Elementwise<portable::Abs<float>, float, float>)                     \
  TAPER_WIDE(sqrt, f32, level, Elementwise<portable::Sqrt<float>, float, float>)                   \
  TAPER_WIDE(rsqrt, f32, level, Elementwise<portable::Rsqrt<float>, float, float>)                 \
  TAPER_WIDE(reciprocal, f32, level, Elementwise<portable::Reciprocal<float>, float, float>)       \
  TAPER_WIDE(exp, f32, level, Elementwise<portable::Exp<float, Fused>, float, float>)              \
  TAPER_WIDE(log, f32, level, Elementwise<portable::Log<float, Fused>, float, float>)              \
  TAPER_WIDE(sin, f32, level, Elementwise<portable::Sin<float, Fused>, float, float>)              \
  TAPER_WIDE(cos, f32, level, Elementwise<portable::Cos<float, Fused>, float, float>)              \
  TAPER_WIDE(erf, f32, level, Elementwise<portable::Erf<float, Fused>, float, float>)              \
  TAPER_WIDE(tanh, f32, level, Elementwise<portable::Tanh<float, Fused>, float, float>)            \
  TAPER_WIDE(sigmoid, f32, level, Elementwise<portable::Sigmoid<float, Fused>, float, float>)      \
  TAPER_WIDE(silu, f32, level, Elementwise<portable::Silu<float, Fused>, float, float>)            \
  TAPER_WIDE(gelu, f32, level, Elementwise<portable::Gelu<float, Fused>, float, float>)            \
  TAPER_WIDE(relu, f32, level, Elementwise<portable::Relu<float>, float, float>)                   \
  TAPER_WIDE(hardtanh, f32, level, Elementwise<portable::Hardtanh<float>, float, float>)           \
  TAPER_WIDE(hardswish, f32, level, Elementwise<portable::Hardswish<float>, float, float>)         \
  TAPER_WIDE(hardsigmoid, f32, level, Elementwise<portable::Hardsigmoid<float>, float, float>)     \
  TAPER_WIDE(elu, f32, level, Elementwise<portable::Elu<float, Fused>, float, float>)              \
  TAPER_WIDE(softplus, f32, level, Elementwise<portable::Softplus<float, Fused>, float, float>)    \
  TAPER_WIDE(leaky_relu, f32, level, Elementwise<portable::LeakyRelu<float>, float, float>)        \
  TAPER_WIDE(clamp, f32, level, Elementwise<portable::Clamp<float>, float, float>)                 \
  TAPER_WIDE(add_Scalar, f32, level, Elementwise<portable::AddScalar<float>, float, float>)        \
  TAPER_WIDE(sub_Scalar, f32, level, Elementwise<portable::SubScalar<float>, float, float>)        \
  TAPER_WIDE(pow_Tensor_Scalar, f32, level,                                                        \
             Elementwise<portable::PowScalar<float, Fused>, float, float>)                         \
  TAPER_WIDE(pow_Tensor_Tensor, f32, level,                                                        \
             Elementwise<portable::Pow<float, Fused>, float, float, float>)                        \
  TAPER_WIDE(pow_Scalar, f32, level,                                                               \
             AfterNumber<portable::ScalarPow<float, Fused>, Scalar, float>)                        \
  TAPER_WIDE(_prelu_kernel, f32, level, Elementwise<portable::Prelu<float>, float, float, float>)  \
  TAPER_WIDE(bitwise_and_Tensor, bool, level, Elementwise<And, bool, bool, bool>)                  \
  TAPER_WIDE(logical_not, bool, level, Elementwise<portable::LogicalNot<bool>, bool, bool>)        \
  TAPER_WIDE(mul_Scalar, f32, level, Elementwise<WithScalar<portable::Mul, float>, float, float>)  \
  TAPER_WIDE(div_Scalar, f32, level, Elementwise<WithScalar<portable::Div, float>, float, float>)  \
  TAPER_WIDE(add_Tensor, f32, level, Elementwise<portable::Add<float>, float, float, float>)       \
  TAPER_WIDE(sub_Tensor, f32, level, Elementwise<portable::Sub<float>, float, float, float>)       \
  TAPER_WIDE(mul_Tensor, f32, level, Elementwise<portable::Mul<float>, float, float, float>)       \
  TAPER_WIDE(div_Tensor, f32, level, Elementwise<portable::Div<float>, float, float, float>)       \
  TAPER_WIDE(maximum, f32, level, Elementwise<portable::Maximum<float>, float, float, float>)      \
  TAPER_WIDE(minimum, f32, level, Elementwise<portable::Minimum<float>, float, float, float>)      \
  TAPER_WIDE(threshold_backward, f32, level,                                                       \
             Elementwise<portable::ThresholdBackward<float>, float, float, float>)                 \
  TAPER_WIDE(gelu_backward, f32, level,                                                            \
             Elementwise<portable::GeluBackward<float, Fused>, float, float, float>)               \
  TAPER_WIDE(sigmoid_backward, f32, level,                                                         \
             Elementwise<portable::SigmoidBackward<float>, float, float, float>)                   \
  TAPER_WIDE(silu_backward, f32, level,                                                            \
             Elementwise<portable::SiluBackward<float, Fused>, float, float, float>)               \
  TAPER_WIDE(tanh_backward, f32, level,                                                            \
             Elementwise<portable::TanhBackward<float>, float, float, float>)                      \
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

}  // namespace taper::optimized
#endif
