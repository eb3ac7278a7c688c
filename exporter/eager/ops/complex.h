// Complex numbers: tensors of dtype c64, two f32 for each number. Most functions of the other files
// take them, too. A real tensor beside a complex one counts as complex.
//
// Errors are thrown as EagerError: a function without a form for complex numbers; complex numbers
// where real ones are needed; f64, because there are no complex numbers of f64.
#pragma once
#include "taper/exporter/eager/complex_number.h"
#include "taper/exporter/eager/ops/signatures.h"

namespace taper::eager {

// ---- the parts ----

/// (…) c64 -> (…, 2) f32, a view: the real and the imaginary part of each number.
TAPER_EAGER_UNARY(view_as_real)
/// (…, 2) f32 -> (…) c64, a view. The last dimension must be dense, and other strides even.
TAPER_EAGER_UNARY(view_as_complex)
/// The real parts, a view. Of a real tensor, the tensor itself.
TAPER_EAGER_UNARY(real)
/// The imaginary parts, a view. An error for a real tensor.
TAPER_EAGER_UNARY(imag)
/// real + imag i, of two f32 tensors that broadcast.
inline Tensor complex(const Tensor& real, const Tensor& imag, Location here = Location::current()) {
  return call<ops::complex>(here, real, imag);
}
/// abs (cos(angle) + sin(angle) i), of two f32 tensors that broadcast.
inline Tensor polar(const Tensor& abs, const Tensor& angle, Location here = Location::current()) {
  return call<ops::polar>(here, abs, angle);
}
/// The angle in (-pi, pi]. Of a real number 0 or pi; NaN gives NaN.
TAPER_EAGER_UNARY(angle)

// ---- conjugates ----

/// a - bi for a + bi, a copy. Of a real tensor, the tensor itself.
TAPER_EAGER_UNARY(conj)
/// `conj`, but always a copy.
TAPER_EAGER_UNARY(conj_physical)
/// The tensor itself. In PyTorch, conjugates may be lazy; here they are not.
TAPER_EAGER_UNARY(resolve_conj)
/// The tensor itself, for the same reason.
TAPER_EAGER_UNARY(resolve_neg)
/// The conjugate with the last two dimensions exchanged.
TAPER_EAGER_UNARY(adjoint)
/// `adjoint` by another name.
TAPER_EAGER_UNARY(mH)
/// `adjoint` of a matrix.
TAPER_EAGER_UNARY(matrix_H)

}  // namespace taper::eager
