// Tensors filled with one number, over `Loops` (elements.h).
#pragma once
#include <cstring>

#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/rows.h"

namespace taper::portable {

/// Copies of one number, enough for the widest vector of any machine.
struct FillLine {
  static constexpr index_t size = 64;
  char bytes[size];

  FillLine(const Element& element, index_t element_bytes) {
    for (index_t i = 0; i < size; ++i) bytes[i] = element.bytes[i % element_bytes];
  }
  bool is_one_byte() const {
    for (char byte : bytes)
      if (byte != bytes[0]) return false;
    return true;
  }
};

inline void repeat_line(const FillLine& line, index_t size, char* to) {
  const FillLine own = line;  // a copy that cannot be part of `to`
  index_t i = 0;
  for (; i + FillLine::size <= size; i += FillLine::size)
    std::memcpy(to + i, own.bytes, FillLine::size);
  std::memcpy(to + i, own.bytes, static_cast<size_t>(size - i));
}

template <class Loops>
void fill(Context& context, const View<AnyElement>& out, Scalar value) {
  const index_t bytes = size_bytes(out.dtype()), count = out.numel();
  const FillLine line(element_of(value, out.dtype()), bytes);
  const bool is_one_byte = line.is_one_byte();
  parallel_for(context.threads, (count + pointwise_grain - 1) / pointwise_grain, [&](index_t task) {
    const index_t first = task * pointwise_grain,
                  n = count - first < pointwise_grain ? count - first : pointwise_grain;
    char* to = static_cast<char*>(out.ref->data) + first * bytes;
    if (is_one_byte)  // mostly zeros; memset is the fastest way
      std::memset(to, line.bytes[0], static_cast<size_t>(n * bytes));
    else
      Loops::template call<repeat_line>(line, n * bytes, to);
  });
}

template <class Loops>
Error full(Context& context, Span<const int64_t>, Scalar value, Maybe<DType>,
           View<AnyElement> out) {
  fill<Loops>(context, out, value);
  return Error::ok;
}

struct Filling {
  static constexpr uint32_t overwrites = 1;  // its elements are not read
};
inline Error prepare_fill(Context&, Filling&, AnyView<const AnyElement>, Scalar, View<AnyElement>) {
  return Error::ok;
}
template <class Loops>
Error fill_scalar(Context& context, const Filling&, AnyView<const AnyElement>, Scalar value,
                  View<AnyElement> out) {
  fill<Loops>(context, out, value);
  return Error::ok;
}

}  // namespace taper::portable
