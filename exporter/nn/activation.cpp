#include "taper/exporter/nn/activation.h"

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/eager/text.h"
#include "taper/exporter/nn/init.h"

namespace taper::nn {

using eager::call;

Tensor Tanhshrink::forward(const Tensor& x, Location here) {
  const PlaceScope scope(here);
  return x - eager::tanh(x);
}
Tensor Softsign::forward(const Tensor& x, Location here) {
  const PlaceScope scope(here);
  return x / (eager::abs(x) + 1);
}

Tensor GELU::forward(const Tensor& x, Location here) {
  return call<ops::gelu>(here, x, approximate_);
}
Tensor LeakyReLU::forward(const Tensor& x, Location here) {
  return call<ops::leaky_relu>(here, x, Scalar(negative_slope_));
}

RReLU::RReLU(double lower, double upper, Location here) : lower_(lower), upper_(upper) {
  if (!(lower <= upper))
    throw EagerError(here, "RReLU: lower " + eager::to_text(lower) + " must be at most upper " +
                               eager::to_text(upper));
}
Tensor RReLU::forward(const Tensor& x, Location here) {
  return eager::rrelu(x, lower_, upper_, training(), here);
}

PReLU::PReLU(int64_t num_parameters, double init) {
  weight = init::constant_(Tensor::empty({num_parameters}), init);
  set_names();
}
Tensor PReLU::forward(const Tensor& x, Location here) { return call<ops::prelu>(here, x, weight); }

Tensor ELU::forward(const Tensor& x, Location here) {
  return call<ops::elu>(here, x, Scalar(alpha_), Scalar(1), Scalar(1));
}
Tensor CELU::forward(const Tensor& x, Location here) {
  return call<ops::celu>(here, x, Scalar(alpha_));
}
Tensor Softplus::forward(const Tensor& x, Location here) {
  return call<ops::softplus>(here, x, Scalar(beta_), Scalar(threshold_));
}
Tensor Hardtanh::forward(const Tensor& x, Location here) {
  return call<ops::hardtanh>(here, x, Scalar(min_), Scalar(max_));
}
Tensor Softmax::forward(const Tensor& x, Location here) {
  return call<ops::_softmax>(here, x, dim_, false);
}
Tensor Softmin::forward(const Tensor& x, Location here) {
  return call<ops::_softmax>(here, call<ops::neg>(here, x), dim_, false);
}
Tensor LogSoftmax::forward(const Tensor& x, Location here) {
  return call<ops::_log_softmax>(here, x, dim_, false);
}
Tensor GLU::forward(const Tensor& x, Location here) { return call<ops::glu>(here, x, dim_); }
Tensor Threshold::forward(const Tensor& x, Location here) {
  return call<ops::threshold>(here, x, Scalar(threshold_), Scalar(value_));
}
Tensor Softshrink::forward(const Tensor& x, Location here) {
  return call<ops::softshrink>(here, x, Scalar(lambd_));
}
Tensor Hardshrink::forward(const Tensor& x, Location here) {
  return call<ops::hardshrink>(here, x, Scalar(lambd_));
}
Tensor Softmax2d::forward(const Tensor& x, Location here) {
  if (x.rank() != 3 && x.rank() != 4)
    throw EagerError(here, "Softmax2d: input " + eager::to_string(x.sizes()) + " has " +
                               std::to_string(x.rank()) + " dimensions, it takes 3 or 4");
  return call<ops::_softmax>(here, x, int64_t{-3}, false);
}

}  // namespace taper::nn
