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
TAPER_UNARY_NUMERIC(nan_to_num, NanToNum)

TAPER_BINARY_NUMERIC(threshold_backward, ThresholdBackward)
TAPER_BINARY_FLOATING(gelu_backward, GeluBackward)
TAPER_BINARY_FLOATING(sigmoid_backward, SigmoidBackward)
TAPER_BINARY_FLOATING(silu_backward, SiluBackward)
TAPER_BINARY_FLOATING(tanh_backward, TanhBackward)

}  // namespace taper::portable
