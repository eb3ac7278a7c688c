// The layout rule of view.dtype: the same bytes as elements of another dtype.
#pragma once
#include "taper/kernels/shapes/checks.h"

namespace taper {

template <>
struct Rule<ops::view_dtype> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, DType dtype, TensorType<D>& out) {
    const int from = size_bytes(self.dtype), to = size_bytes(dtype);
    out.like(self, dtype);
    out.offset = self.offset;
    for (int i = 0; i < self.rank; ++i) out.strides[i] = self.strides[i];
    // any byte but 0 and 1 would be no bool
    if (!facts.require(dtype != DType::boolean || self.dtype == dtype,
                       TAPER_TEXT("elements of another dtype are no bool; compare them with 0")))
      return false;
    return from == to ||
           (has_dense_line(facts, self, from, to) &&
            (from > to ? divide(facts, D(from / to), out) : join(facts, D(to / from), out)));
  }

 private:
  template <class D>
  static bool has_dense_line(Facts<D>& facts, const TensorType<D>& self, int from, int to) {
    return facts.require(self.rank > 0,
                         TAPER_TEXT("elements of {} bytes become some of {} bytes, and a tensor "
                                    "without dimensions has no room for them"),
                         from, to) &&
           (facts.is_one(self.sizes[self.rank - 1]) ||
            facts.equal(self.strides[self.rank - 1], D(1),
                        TAPER_TEXT("the last dimension has stride {}, it must be {}; call "
                                   "contiguous() first")));
  }
  /// Each element becomes n smaller ones.
  template <class D>
  static bool divide(Facts<D>&, const D& n, TensorType<D>& out) {
    const int last = out.rank - 1;
    for (int i = 0; i < last; ++i) out.strides[i] = out.strides[i] * n;
    out.sizes[last] = out.sizes[last] * n, out.strides[last] = D(1);
    out.offset = out.offset * n;
    return true;
  }
  /// Each n elements become a larger one.
  template <class D>
  static bool join(Facts<D>& facts, const D& n, TensorType<D>& out) {
    const int last = out.rank - 1;
    if (!is_multiple(facts, out.sizes[last], n) || !is_multiple(facts, out.offset, n)) return false;
    for (int i = 0; i < last; ++i) {
      if (!facts.is_one(out.sizes[i]) && !is_multiple(facts, out.strides[i], n)) return false;
      out.strides[i] = out.strides[i] / n;
    }
    out.sizes[last] = out.sizes[last] / n, out.strides[last] = D(1);
    out.offset = out.offset / n;
    return true;
  }
  template <class D>
  static bool is_multiple(Facts<D>& facts, const D& d, const D& n) {
    return facts.equal(d % n, D(0),
                       TAPER_TEXT("a rest of {} instead of {}: {} elements become one, so the last "
                                  "size, the offset and the other strides must be multiples of it"),
                       n);
  }
};

}  // namespace taper
