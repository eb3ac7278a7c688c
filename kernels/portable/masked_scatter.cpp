// The elements of a tensor, one after the other, to the places where a mask is true.
#include <cstring>

#include "taper/kernels/portable/copy.h"
#include "taper/kernels/portable/elements.h"
#include "taper/kernels/shapes/indexing.h"

namespace taper::portable {
namespace {

struct Masked {
  static constexpr uint32_t overwrites = 1;
  Walk self, mask;
};

Error prepare(Context&, Masked& plan, AnyView<const AnyElement> self, AnyView<const bool> mask,
              View<const AnyElement>, View<AnyElement> out) {
  plan.self = Walk::broadcast(self.shape(), out.shape());
  plan.mask = Walk::broadcast(mask.shape(), out.shape());
  return Error::ok;
}

/// Calls body(element) for every true element of the mask, in order.
template <class Body>
void for_each_true(const Source& mask, index_t count, const Body& body) {
  bool buffer[block_bytes];
  for (index_t at = 0; at < count; at += block_bytes) {
    const index_t n = count - at < block_bytes ? count - at : block_bytes;
    const bool* m = static_cast<const bool*>(read_block(mask, at, n, buffer));
    for (index_t i = 0; i < n; ++i)
      if (m[i]) body(at + i);
  }
}

Error run(Context& context, const Masked& plan, AnyView<const AnyElement> self,
          AnyView<const bool> mask, View<const AnyElement> source, View<AnyElement> out) {
  const index_t count = out.numel();
  if (count == 0) return Error::ok;
  const Source places(*mask.ref, plan.mask, DType::boolean);
  index_t needed = 0;
  for_each_true(places, count, [&](index_t) { ++needed; });
  if (needed > source.numel())
    return context.fail(Error::invalid_argument,
                        TAPER_TEXT("mask is true at {} places, source has only {} elements"),
                        needed, source.numel());
  Walk dense;
  dense.add(count, 1);
  if (self.ref->data != out.ref->data)
    copy_elements(context.threads, *self.ref, plan.self, out.ref->data, out.dtype(), dense, count);
  const size_t bytes = static_cast<size_t>(size_bytes(out.dtype()));
  const char* from = static_cast<const char*>(source.ref->data);
  char* const to = static_cast<char*>(out.ref->data);
  for_each_true(places, count, [&](index_t i) {
    std::memcpy(to + static_cast<size_t>(i) * bytes, from, bytes);
    from += bytes;
  });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(masked_scatter, any, prepare, run)

}  // namespace taper::portable
