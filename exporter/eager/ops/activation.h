// Activations, elementwise. Shapes, dtypes and errors: pointwise.h. They take floating dtypes.
// `relu`, `relu6`, `hardtanh` and `threshold` also take integers and keep their dtype.
#pragma once
#include <string_view>

#include "taper/exporter/eager/ops/signatures.h"

namespace taper::eager {

/// max(x, 0)
TAPER_EAGER_UNARY(relu)
/// min(max(x, 0), 6)
TAPER_EAGER_UNARY(relu6)
/// min(max(x, min_val), max_val)
inline Tensor hardtanh(const Tensor& self, Scalar min_val = -1, Scalar max_val = 1,
                       Location here = Location::current()) {
  return call<ops::hardtanh>(here, self, min_val, max_val);
}
/// x for x > threshold, else value.
inline Tensor threshold(const Tensor& self, Scalar threshold, Scalar value,
                        Location here = Location::current()) {
  return call<ops::threshold>(here, self, threshold, value);
}
/// x for x > 0, else negative_slope x.
inline Tensor leaky_relu(const Tensor& self, Scalar negative_slope = 0.01,
                         Location here = Location::current()) {
  return call<ops::leaky_relu>(here, self, negative_slope);
}
/// x for x > 0, else weight x. `weight` has self's dtype and one element, or one element for each
/// channel (dimension 1 of self).
inline Tensor prelu(const Tensor& self, const Tensor& weight, Location here = Location::current()) {
  return call<ops::prelu>(here, self, weight);
}

/// 1 / (1 + exp(-x)); integers give f32.
TAPER_EAGER_UNARY(sigmoid)
/// log(sigmoid(x)), without overflow.
TAPER_EAGER_UNARY(log_sigmoid)
/// min(max(x + 3, 0), 6) / 6
TAPER_EAGER_UNARY(hardsigmoid)
/// x sigmoid(x): Elfwing et al., arXiv:1702.03118.
TAPER_EAGER_UNARY(silu)
/// x min(max(x + 3, 0), 6) / 6: Howard et al., "Searching for MobileNetV3", arXiv:1905.02244.
TAPER_EAGER_UNARY(hardswish)
/// x tanh(log(1 + exp(x))): D. Misra, "Mish", arXiv:1908.08681.
TAPER_EAGER_UNARY(mish)
/// x Φ(x), where Φ is the distribution function of the normal distribution (Hendrycks and Gimpel,
/// arXiv:1606.08415). `approximate` is "none", or "tanh" for the approximation with tanh.
inline Tensor gelu(const Tensor& self, std::string_view approximate = "none",
                   Location here = Location::current()) {
  return call<ops::gelu>(here, self, approximate);
}
/// x for x > 0, else alpha (exp(x) - 1): Clevert et al., arXiv:1511.07289.
inline Tensor elu(const Tensor& self, Scalar alpha = 1, Location here = Location::current()) {
  return call<ops::elu>(here, self, alpha, Scalar(1), Scalar(1));
}
/// scale (x for x > 0, else alpha (exp(x) - 1)), with the constants of Klambauer et al.,
/// arXiv:1706.02515.
TAPER_EAGER_UNARY(selu)
/// x for x > 0, else alpha (exp(x / alpha) - 1): J. T. Barron, arXiv:1704.07483.
inline Tensor celu(const Tensor& self, Scalar alpha = 1.0, Location here = Location::current()) {
  return call<ops::celu>(here, self, alpha);
}
/// log(1 + exp(beta x)) / beta; x itself where beta x > threshold.
inline Tensor softplus(const Tensor& self, Scalar beta = 1, Scalar threshold = 20,
                       Location here = Location::current()) {
  return call<ops::softplus>(here, self, beta, threshold);
}
/// x moved towards 0 by lambd ≥ 0; 0 where |x| <= lambd.
inline Tensor softshrink(const Tensor& self, Scalar lambd = 0.5,
                         Location here = Location::current()) {
  return call<ops::softshrink>(here, self, lambd);
}
/// x where |x| > lambd, else 0.
inline Tensor hardshrink(const Tensor& self, Scalar lambd = 0.5,
                         Location here = Location::current()) {
  return call<ops::hardshrink>(here, self, lambd);
}
/// The first half along `dim` times the sigmoid of the second; throws if the extent is odd.
/// Dauphin et al., arXiv:1612.08083.
inline Tensor glu(const Tensor& self, int64_t dim = -1, Location here = Location::current()) {
  return call<ops::glu>(here, self, dim);
}

// ---- in place ----

/// `relu` in place.
TAPER_EAGER_UNARY_IN_PLACE(relu)
/// `sigmoid` in place.
TAPER_EAGER_UNARY_IN_PLACE(sigmoid)

// ---- backward functions: grad_output times the derivative, of one shape and dtype ----

/// grad_output where self > threshold, else 0.
inline Tensor threshold_backward(const Tensor& grad_output, const Tensor& self, Scalar threshold,
                                 Location here = Location::current()) {
  return call<ops::threshold_backward>(here, grad_output, self, threshold);
}
/// The gradient of gelu, from its argument.
inline Tensor gelu_backward(const Tensor& grad_output, const Tensor& self,
                            std::string_view approximate, Location here = Location::current()) {
  return call<ops::gelu_backward>(here, grad_output, self, approximate);
}
/// The gradient of sigmoid, from its result.
inline Tensor sigmoid_backward(const Tensor& grad_output, const Tensor& output,
                               Location here = Location::current()) {
  return call<ops::sigmoid_backward>(here, grad_output, output);
}
/// The gradient of tanh, from its result.
inline Tensor tanh_backward(const Tensor& grad_output, const Tensor& output,
                            Location here = Location::current()) {
  return call<ops::tanh_backward>(here, grad_output, output);
}
/// The gradient of silu, from its argument.
inline Tensor silu_backward(const Tensor& grad_output, const Tensor& self,
                            Location here = Location::current()) {
  return call<ops::silu_backward>(here, grad_output, self);
}

// ---- in place ----

#define TAPER_EAGER_ACTIVATION_IN_PLACE(name)                                 \
  inline Tensor& name##_(Tensor& self, Location here = Location::current()) { \
    return call_in_place<ops::name>(here, self);                              \
  }
/// The function of this name, in place.
TAPER_EAGER_ACTIVATION_IN_PLACE(relu6)
TAPER_EAGER_ACTIVATION_IN_PLACE(silu)
TAPER_EAGER_ACTIVATION_IN_PLACE(hardswish)
TAPER_EAGER_ACTIVATION_IN_PLACE(hardsigmoid)
#undef TAPER_EAGER_ACTIVATION_IN_PLACE
inline Tensor& hardtanh_(Tensor& self, Scalar min_val = -1, Scalar max_val = 1,
                         Location here = Location::current()) {
  return call_in_place<ops::hardtanh>(here, self, min_val, max_val);
}
inline Tensor& leaky_relu_(Tensor& self, Scalar negative_slope = 0.01,
                           Location here = Location::current()) {
  return call_in_place<ops::leaky_relu>(here, self, negative_slope);
}
inline Tensor& elu_(Tensor& self, Scalar alpha = 1, Location here = Location::current()) {
  return call_in_place<ops::elu>(here, self, alpha, Scalar(1), Scalar(1));
}

}  // namespace taper::eager
