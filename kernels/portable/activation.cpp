// Activations, and what their derivatives call.
#include "taper/kernels/portable/binary_functions.h"
#include "taper/kernels/portable/unary_functions.h"
#include "taper/kernels/shapes/pointwise.h"

namespace taper::portable {
namespace {

template <class T>
using ClampMin = WithScalar<Maximum, T>;
template <class T>
using ClampMax = WithScalar<Minimum, T>;

// The largest finite numbers of f16 and bf16 are not those of the f32 in which they are computed.
struct NanToNumSmall : Elementwise<NanToNum<float>, SmallFloat, SmallFloat> {
  using Base = Elementwise<NanToNum<float>, SmallFloat, SmallFloat>;
  static Error run(Context& context, const Plan& plan, AnyView<const SmallFloat> x,
                   Maybe<double> nan, Maybe<double> posinf, Maybe<double> neginf,
                   View<SmallFloat> out) {
    const double largest = out.ref->dtype == DType::f16 ? 65504.0 : 0x1.fep127;
    if (!posinf) posinf = {largest, true};
    if (!neginf) neginf = {-largest, true};
    return Base::run(context, plan, x, nan, posinf, neginf, out);
  }
};

}  // namespace

TAPER_UNARY_NUMERIC(relu, Relu)
TAPER_UNARY_NUMERIC(hardtanh, Hardtanh)
TAPER_UNARY_NUMERIC(clamp, Clamp)
TAPER_UNARY_NUMERIC(clamp_min, ClampMin)
TAPER_UNARY_NUMERIC(clamp_max, ClampMax)
TAPER_UNARY_FLOATING(gelu, Gelu)
TAPER_UNARY_FLOATING(silu, Silu)
TAPER_UNARY_FLOATING(mish, Mish)
TAPER_UNARY_FLOATING(softshrink, Softshrink)
TAPER_UNARY_FLOATING(hardshrink, Hardshrink)
TAPER_BINARY_FLOATING(_prelu_kernel, Prelu)
TAPER_UNARY_FLOATING(elu, Elu)
TAPER_UNARY_FLOATING(leaky_relu, LeakyRelu)
TAPER_UNARY_FLOATING(hardswish, Hardswish)
TAPER_UNARY_FLOATING(hardsigmoid, Hardsigmoid)
TAPER_UNARY_FLOATING(softplus, Softplus)
TAPER_POINTWISE(nan_to_num, f32, Elementwise<NanToNum<float>, float, float>)
TAPER_POINTWISE(nan_to_num, f64, Elementwise<NanToNum<double>, double, double>)
TAPER_POINTWISE(nan_to_num, small_float, NanToNumSmall)
TAPER_UNARY_INTEGER(nan_to_num, NanToNum)

TAPER_BINARY_NUMERIC(threshold_backward, ThresholdBackward)
TAPER_BINARY_FLOATING(gelu_backward, GeluBackward)
TAPER_BINARY_FLOATING(sigmoid_backward, SigmoidBackward)
TAPER_BINARY_FLOATING(silu_backward, SiluBackward)
TAPER_BINARY_FLOATING(tanh_backward, TanhBackward)

}  // namespace taper::portable
