// How drivers over `Loops` (elements.h) read and write f16 and bf16: block by block, through a
// buffer of floats, with the conversions of a CPU level.
#pragma once
#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/small_floats.h"
#include "taper/runtime/core/tensor_ref.h"

namespace taper::portable {

/// `self` as a source for the loops of a CPU level.
template <class Loops>
Source source_of(const TensorRef& self, const Walk& walk, DType computes) {
  Source source(self, walk, computes);
  if (source.converts) source.load = Loops::loader(self.dtype, computes);
  return source;
}

/// Calls body(n, x, y) for elements [first, first + count) of two dense tensors: once, on the
/// tensors' own memory, or once for each block of f16 or bf16.
template <class Loops, class E, class Body>
void for_each_part(const TensorRef& in, const TensorRef& out, index_t first, index_t count,
                   const Body& body) {
  using T = Compute<E>;
  if constexpr (std::is_same_v<T, E>) {
    body(count, static_cast<const T*>(in.data) + first, static_cast<T*>(out.data) + first);
  } else {
    constexpr index_t longest = 512;
    alignas(64) T x[longest], y[longest];
    const Load load = Loops::loader(in.dtype, DType::f32);
    const Store store = Loops::storer(DType::f32, out.dtype);
    const char* from = static_cast<const char*>(in.data) + first * size_bytes(in.dtype);
    char* to = static_cast<char*>(out.data) + first * size_bytes(out.dtype);
    for (index_t n; count > 0; count -= n) {
      n = count < longest ? count : longest;
      load(from, 1, n, x);
      body(n, static_cast<const T*>(x), static_cast<T*>(y));
      store(y, n, to);
      from += n * size_bytes(in.dtype), to += n * size_bytes(out.dtype);
    }
  }
}

/// Element i, converted to the type of the arithmetic.
template <class E>
Compute<E> value_of(const View<const E>& v, index_t i) {
  if constexpr (std::is_same_v<Compute<E>, E>)
    return v.data()[i];
  else if (v.dtype() == DType::f16)
    return to_float(static_cast<const Half*>(v.ref->data)[i]);
  else
    return to_float(static_cast<const BFloat16*>(v.ref->data)[i]);
}

}  // namespace taper::portable
