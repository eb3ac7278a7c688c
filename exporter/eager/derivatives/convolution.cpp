#include "taper/exporter/eager/ops/convolution.h"

#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/ops/pointwise.h"

namespace taper::eager::derivatives {
namespace {

Tensor sum_of(const Tensor& a, const Tensor& b) {
  return !a.defined() ? b : !b.defined() ? a : add(a, b);
}

/// convolution_backward with the parameters of `saved`, a call of convolution or
/// convolution_backward.
template <class Saved>
Gradients gradients(const Saved& saved, const Tensor& dy, const Tensor& input, const Tensor& weight,
                    bool want_input, bool want_weight, bool want_bias) {
  const auto [dx, dw, db] = call<ops::convolution_backward>(
      dy, input, weight, want_bias ? std::optional<Dims>({dy.size(1)}) : std::nullopt,
      saved.template dims<"stride">(), saved.template dims<"padding">(),
      saved.template dims<"dilation">(), saved.template boolean<"transposed">(),
      saved.template dims<"output_padding">(), saved.template dim<"groups">(),
      Ints{want_input, want_weight, want_bias});
  return {dx, dw, db};
}

}  // namespace

TAPER_DERIVATIVE(convolution, "input", "weight") {
  const bool want_input = saved.needs<"input">(), want_weight = saved.needs<"weight">(),
             want_bias = saved.needs<"bias">();
  return gradients(saved, dy, saved.tensor<"input">(), saved.tensor<"weight">(), want_input,
                   want_weight, want_bias);
}

// The three results are linear in each of grad_output, input and weight, so their derivatives are
// convolutions again.
TAPER_DERIVATIVE(convolution_backward, "grad_output", "input", "weight") {
  const Tensor &ggx = dys[0], &ggw = dys[1],
               &ggb = dys[2];  // what the results' gradients are multiplied by
  const Tensor gy = saved.tensor<"grad_output">(), x = saved.tensor<"input">(),
               w = saved.tensor<"weight">();
  const auto convolve = [&](const Tensor& input, const Tensor& weight) {
    return convolution(input, weight, {}, saved.dims<"stride">(), saved.dims<"padding">(),
                       saved.dims<"dilation">(), saved.boolean<"transposed">(),
                       saved.dims<"output_padding">(), saved.dim<"groups">());
  };
  Tensor d_gy, dx, dw;
  if (saved.needs<"grad_output">()) {
    if (ggx.defined()) d_gy = convolve(ggx, w);
    if (ggw.defined()) d_gy = sum_of(d_gy, convolve(x, ggw));
    if (ggb.defined()) {
      Dims channels(static_cast<size_t>(gy.rank()), Dim(1));
      channels[1] = ggb.size(0);
      d_gy = sum_of(d_gy, ggb.reshape(channels).expand(gy.sizes()));
    }
  }
  if (saved.needs<"input">() && ggw.defined())
    dx = gradients(saved, gy, x, ggw, true, false, false)[0];
  if (saved.needs<"weight">() && ggx.defined())
    dw = gradients(saved, gy, ggx, w, false, true, false)[1];
  return {d_gy, dx, dw};
}

}  // namespace taper::eager::derivatives
