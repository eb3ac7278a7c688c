#include "taper/exporter/eager/ops/convolution.h"

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/movement.h"
#include "taper/exporter/eager/ops/view.h"

namespace taper::eager::decompositions {
namespace {

/// `n` spatial dimensions; an input without a batch gets one for the call.
Tensor convolve(std::string_view name, int n, const Tensor& input, const Tensor& weight,
                const Tensor& bias, const Dims& stride, const Dims& padding, const Dims& dilation,
                bool transposed, const Dims& output_padding, Dim groups) {
  if (weight.rank() != n + 2 || (input.rank() != n + 1 && input.rank() != n + 2))
    throw EagerError(std::string(name) + ": needs input with " + std::to_string(n + 1) + " or " +
                     std::to_string(n + 2) + " dimensions and weight with " +
                     std::to_string(n + 2) + ", got " + to_string(input.sizes()) + " and " +
                     to_string(weight.sizes()));
  if (input.rank() == n + 2)
    return convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding,
                       groups);
  return convolution(input.unsqueeze(0), weight, bias, stride, padding, dilation, transposed,
                     output_padding, groups)
      .squeeze(0);
}

template <class A>
Tensor forward(const char* name, int n, const A& a) {
  return convolve(name, n, a.template tensor<"input">(), a.template tensor<"weight">(),
                  a.template tensor<"bias">(), a.template dims<"stride">(),
                  a.template dims<"padding">(), a.template dims<"dilation">(), false, {Dim(0)},
                  a.template dim<"groups">());
}
template <class A>
Tensor transposed(const char* name, int n, const A& a) {
  return convolve(name, n, a.template tensor<"input">(), a.template tensor<"weight">(),
                  a.template tensor<"bias">(), a.template dims<"stride">(),
                  a.template dims<"padding">(), a.template dims<"dilation">(), true,
                  a.template dims<"output_padding">(), a.template dim<"groups">());
}

/// "same": dilation (kernel - 1) zeros around each dimension; where that is odd, the one too many
/// goes to the right.
template <class A>
Tensor padded(const char* name, int n, const A& a) {
  const Tensor weight = a.template tensor<"weight">();
  Tensor input = a.template tensor<"input">();
  const std::string_view padding = a.template text<"padding">();
  const Dims stride = a.template dims<"stride">(), dilation = a.template dims<"dilation">();
  Dims sides(static_cast<size_t>(n), Dim(0));
  if (padding == "same") {
    for (const Dim& s : stride)
      if (!s.is_constant() || s.value() != 1)
        throw EagerError(std::string(name) + ": padding \"same\" needs stride 1, got " +
                         to_string(stride));
    if (weight.rank() == n + 2) {
      Dims around;  // (last left, last right, …)
      bool uneven = false;
      for (int i = n - 1; i >= 0; --i) {
        const Dim total = dilation[dilation.size() == 1 ? 0 : static_cast<size_t>(i)] *
                          (weight.size(i + 2) - Dim(1)),
                  left = total / Dim(2);
        sides[static_cast<size_t>(i)] = left;
        around.insert(around.end(), {Dim(0), total - left - left});
        uneven = uneven || !same(total, left + left);
      }
      if (uneven) input = constant_pad_nd(input, around);
    }
  } else if (padding != "valid") {
    throw EagerError(std::string(name) + ": padding must be \"same\" or \"valid\", got \"" +
                     std::string(padding) + "\"");
  }
  return convolve(name, n, input, weight, a.template tensor<"bias">(), stride, sides, dilation,
                  false, {Dim(0)}, a.template dim<"groups">());
}

}  // namespace

TAPER_DECOMPOSITION(conv1d) { return {forward("conv1d", 1, a)}; }
TAPER_DECOMPOSITION(conv2d) { return {forward("conv2d", 2, a)}; }
TAPER_DECOMPOSITION(conv3d) { return {forward("conv3d", 3, a)}; }
TAPER_DECOMPOSITION(conv1d_padding) { return {padded("conv1d", 1, a)}; }
TAPER_DECOMPOSITION(conv2d_padding) { return {padded("conv2d", 2, a)}; }
TAPER_DECOMPOSITION(conv3d_padding) { return {padded("conv3d", 3, a)}; }
TAPER_DECOMPOSITION(conv_transpose1d) { return {transposed("conv_transpose1d", 1, a)}; }
TAPER_DECOMPOSITION(conv_transpose2d_input) { return {transposed("conv_transpose2d", 2, a)}; }
TAPER_DECOMPOSITION(conv_transpose3d_input) { return {transposed("conv_transpose3d", 3, a)}; }

// (time, batch, in) and (kernel, in, out) instead of (batch, in, time) and (out, in, kernel)
TAPER_DECOMPOSITION(conv_tbc) {
  const Tensor self = a.tensor<"self">(), weight = a.tensor<"weight">();
  if (self.rank() != 3 || weight.rank() != 3)
    throw EagerError(
        "conv_tbc: self (time, batch, in) and weight (kernel, in, out) must have 3 "
        "dimensions, got " +
        to_string(self.sizes()) + " and " + to_string(weight.sizes()));
  const Tensor out = conv1d(permute(self, {1, 2, 0}), permute(weight, {2, 1, 0}),
                            a.tensor<"bias">(), 1, a.integer<"pad">());
  return {permute(out, {2, 0, 1}).contiguous()};
}

}  // namespace taper::eager::decompositions
