// Layout rules of complex numbers: the same bytes as pairs of real numbers, and back.
#pragma once
#include "taper/kernels/shapes/checks.h"

namespace taper {

/// (..., n) c64 as (..., n, 2) f32: the real parts and the imaginary parts.
template <>
struct Rule<ops::view_as_real> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, TensorType<D>& out) {
    if (!facts.require(is_complex(self.dtype), TAPER_TEXT("needs a tensor of dtype c64")) ||
        !facts.require(self.rank < max_rank, TAPER_TEXT("the tensor has {} dimensions already"),
                       self.rank))
      return false;
    out.like(self, DType::f32);
    for (int i = 0; i < self.rank; ++i) out.strides[i] = self.strides[i] * D(2);
    out.sizes[out.rank] = D(2), out.strides[out.rank] = D(1), ++out.rank;
    out.offset = self.offset * D(2);
    return true;
  }
};

/// The reverse. A pair must lie side by side, at an even place of the storage.
template <>
struct Rule<ops::view_as_complex> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, TensorType<D>& out) {
    const int last = self.rank - 1;
    if (!facts.require(self.dtype == DType::f32,
                       TAPER_TEXT("needs a tensor of dtype f32; cast it first")) ||
        !facts.require(self.rank > 0,
                       TAPER_TEXT("needs a last dimension of size 2, and self has none")) ||
        !facts.equal(self.sizes[last], D(2),
                     TAPER_TEXT("the last dimension has size {}, it must be {}")) ||
        !facts.equal(self.strides[last], D(1),
                     TAPER_TEXT("the last dimension has stride {}, it must be {}; call "
                                "contiguous() first")) ||
        !is_even(facts, self.offset))
      return false;
    out.like(self, DType::c64);
    out.rank = last;
    out.offset = self.offset / D(2);
    for (int i = 0; i < last; ++i) {
      out.strides[i] = self.strides[i] / D(2);  // that of a size of 1 does not matter
      if (!facts.is_one(self.sizes[i]) && !is_even(facts, self.strides[i])) return false;
    }
    return true;
  }

 private:
  template <class D>
  static bool is_even(Facts<D>& facts, const D& d) {
    return facts.equal(d % D(2), D(0),
                       TAPER_TEXT("offset and strides must be even, except the last stride; call "
                                  "contiguous() first"));
  }
};

}  // namespace taper
