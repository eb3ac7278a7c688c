// Products of complex matrices and tensors, as products of real ones.
#include "taper/exporter/eager/complex/form.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::complex_forms {

TAPER_COMPLEX_FORM(mm, bilinear<ops::mm, "self", "mat2">)
TAPER_COMPLEX_FORM(bmm, bilinear<ops::bmm, "self", "mat2">)

TAPER_COMPLEX(addmm) {
  const Scalar alpha = a.scalar<"alpha">(), beta = a.scalar<"beta">();
  Tensor product = mm(a.tensor<"mat1">(), a.tensor<"mat2">());
  if (alpha.to<double>() != 1) product = mul(product, alpha);
  return {beta.to<double>() == 0 ? product : add(product, a.tensor<"self">(), beta)};
}

TAPER_COMPLEX(vdot) { return {dot(conj(a.tensor<"self">()), a.tensor<"other">())}; }
TAPER_COMPLEX(linalg_vecdot) {
  const Tensor product = mul(conj(a.tensor<"x">()), a.tensor<"y">());
  return {sum(product, {a.integer<"dim">()})};
}

// The bias is added once, so that each real convolution is linear.
static Results convolution_of(const OperatorInfo& info, const Boxed* arguments) {
  constexpr int at = position<ops::convolution, "bias">();
  Boxed without_bias[Schema::max_parameters];
  std::copy_n(arguments, info.argument_count, without_bias);
  without_bias[at] = Boxed::absent(Kind::tensor);
  const Tensor result = bilinear<ops::convolution, "input", "weight">(info, without_bias)[0];
  if (!arguments[at].present) return {result};
  const Tensor bias = arguments[at].tensor();
  Dims beside(static_cast<size_t>(result.rank()), Dim(1));
  beside[static_cast<size_t>(result.rank() - arguments[3].size - 1)] = Dim(-1);
  return {add(result, reshape(bias, beside))};
}
TAPER_COMPLEX_FORM(convolution, convolution_of)

}  // namespace taper::eager::complex_forms
