// Complex numbers: their parts, angles and conjugates.
#include "taper/exporter/eager/ops/complex.h"

#include <numbers>

#include "taper/exporter/eager/complex/pair.h"
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"

namespace taper::eager::decompositions {
namespace {

/// Two real tensors that become the parts of a complex one.
Pair real_pair(const Tensor& re, const Tensor& im, const char* op) {
  for (const Tensor& t : {re, im})
    if (t.dtype() != DType::f32)
      throw EagerError(std::string(op) + ": needs two tensors of dtype f32, got " +
                       taper::name_of(re.dtype()) + " and " + taper::name_of(im.dtype()) +
                       "; cast them, because complex numbers are two f32");
  return {re, im};
}

Tensor conjugated(const Tensor& t) {
  return is_complex(t.dtype()) ? complex_of(conjugate(pair_of(t))) : t;
}
Tensor conjugated_copy(const Tensor& t) { return is_complex(t.dtype()) ? conjugated(t) : clone(t); }
Tensor adjoint_of(const Tensor& t, const char* op) {
  if (t.rank() < 2)
    throw EagerError(std::string(op) + ": needs at least 2 dimensions, not " +
                     to_string(t.sizes()));
  return conjugated(transpose(t, -2, -1));
}

}  // namespace

TAPER_DECOMPOSITION(real) {
  const Tensor self = a.tensor<"self">();
  return {is_complex(self.dtype()) ? pair_of(self).re : call<ops::alias>(self)};
}
TAPER_DECOMPOSITION(imag) {
  const Tensor self = a.tensor<"self">();
  if (!is_complex(self.dtype()))
    throw EagerError(std::string("imag: needs a complex tensor, not ") +
                     taper::name_of(self.dtype()) + "; the imaginary part of a real one is 0");
  return {pair_of(self).im};
}
TAPER_DECOMPOSITION(complex) {
  return {complex_of(real_pair(a.tensor<"real">(), a.tensor<"imag">(), "complex"))};
}
TAPER_DECOMPOSITION(polar) {
  const Pair p = real_pair(a.tensor<"abs">(), a.tensor<"angle">(), "polar");
  return {complex_of({mul(p.re, cos(p.im)), mul(p.re, sin(p.im))})};
}
TAPER_DECOMPOSITION_ROUNDED_ONCE(angle) {
  const Tensor self = a.tensor<"self">();
  if (is_complex(self.dtype())) return {phase(pair_of(self))};
  const Tensor x = is_floating(self.dtype()) ? self : cast(self, DType::f32);
  const Tensor angle = where(lt(x, 0), Scalar(std::numbers::pi), Scalar(0.0));
  return {where(isnan(x), floor(x), cast(angle, x.dtype()))};  // floor has no gradient
}

TAPER_DECOMPOSITION(conj) { return {conjugated(a.tensor<"self">())}; }
TAPER_DECOMPOSITION(_conj) { return {conjugated(a.tensor<"self">())}; }
TAPER_DECOMPOSITION(conj_physical) { return {conjugated_copy(a.tensor<"self">())}; }
TAPER_DECOMPOSITION(_conj_physical) { return {conjugated_copy(a.tensor<"self">())}; }
TAPER_DECOMPOSITION(resolve_conj) { return {a.tensor<"self">()}; }
TAPER_DECOMPOSITION(resolve_neg) { return {a.tensor<"self">()}; }
TAPER_DECOMPOSITION(adjoint) { return {adjoint_of(a.tensor<"self">(), "adjoint")}; }
TAPER_DECOMPOSITION(mH) { return {adjoint_of(a.tensor<"self">(), "mH")}; }
TAPER_DECOMPOSITION(matrix_H) {
  const Tensor self = a.tensor<"self">();
  if (self.rank() != 2)
    throw EagerError("matrix_H: needs 2 dimensions, not " + to_string(self.sizes()) + "; use mH");
  return {adjoint_of(self, "matrix_H")};
}

}  // namespace taper::eager::decompositions
