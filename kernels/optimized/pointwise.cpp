// The portable pointwise loops, compiled for AVX2 and AVX-512. Every element goes through the same
// IEEE 754 operations in the same order, so a record gives the portable one's bits; but for the
// elementary functions, which use fused multiply-adds at these levels. fused_pointwise.cpp holds
// the same functions.
#include "taper/kernels/portable/pointwise.h"

#include "taper/kernels/optimized/optimized.h"
#include "taper/kernels/optimized/wide.h"
#include "taper/kernels/portable/binary_functions.h"
#include "taper/kernels/portable/small_floats.h"
#include "taper/kernels/portable/unary_functions.h"
#include "taper/kernels/shapes/movement.h"
#include "taper/kernels/shapes/pointwise.h"

#if TAPER_X86_LEVELS
namespace taper::optimized {

using portable::Elementwise, portable::WithScalar, portable::math::Fused;

namespace {

template <class From>
struct ToFloat {
  using parameters = portable::Parameters<Maybe<DType>>;
  explicit ToFloat(Maybe<DType>) {}
  float operator()(From x) const { return portable::to_float(x); }
};
template <class To>
struct ToSmall {
  using parameters = portable::Parameters<Maybe<DType>>;
  explicit ToSmall(Maybe<DType>) {}
  To operator()(float x) const { return portable::to_small<To>(x); }
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

#define TAPER_WIDE_LEVEL(level)                                                                    \
  TAPER_WIDE(_to_copy, f16_f32, level, Elementwise<ToFloat<Half>, float, Half>)                    \
  TAPER_WIDE(_to_copy, bf16_f32, level, Elementwise<ToFloat<BFloat16>, float, BFloat16>)           \
  TAPER_WIDE(_to_copy, f32_f16, level, Elementwise<ToSmall<Half>, Half, float>)                    \
  TAPER_WIDE(_to_copy, f32_bf16, level, Elementwise<ToSmall<BFloat16>, BFloat16, float>)           \
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
  TAPER_WIDE(pow_Tensor_Scalar, f32, level, Elementwise<portable::PowScalar<float>, float, float>) \
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
