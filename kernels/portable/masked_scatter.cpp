// Writes the elements of a tensor, one after the other, to the places where a mask is true.
#include "taper/kernels/portable/copy.h"
#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/lanes.h"
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

/// Calls body(mask, first element, elements) for blocks of elements [begin, end). The mask is read
/// as bytes, and every byte but 0 counts as true: memory is safe only if counting and writing
/// agree.
template <class Body>
void for_each_block(const Source& mask, index_t begin, index_t end, const Body& body) {
  uint8_t buffer[block_bytes];
  for (index_t at = begin; at < end; at += block_bytes) {
    const index_t n = end - at < block_bytes ? end - at : block_bytes;
    body(static_cast<const uint8_t*>(read_block(mask, at, n, buffer)), at, n);
  }
}

template <class E>
void write_true(const Source& mask, index_t begin, index_t end, const void* source, void* out) {
  const E* from = static_cast<const E*>(source);
  for_each_block(mask, begin, end, [&](const uint8_t* m, index_t first, index_t n) {
    E* const to = static_cast<E*>(out) + first;
    for (index_t i = 0; i < n; ++i) {
      // chosen by bits, because a branch could not be predicted
      const index_t takes = m[i] != 0;
      const auto own = reinterpret_cast<uintptr_t>(to + i),
                 next = reinterpret_cast<uintptr_t>(from);
      const auto x = reinterpret_cast<const E*>(
          own ^ ((own ^ next) & (uintptr_t{0} - static_cast<uintptr_t>(takes))));
      to[i] = *x;
      from += takes;
    }
  });
}

Error run(Context& context, const Masked& plan, AnyView<const AnyElement> self,
          AnyView<const bool> mask, View<const AnyElement> source, View<AnyElement> out) {
  const index_t count = out.numel();
  if (count == 0) return Error::ok;
  const Source places(*mask.ref, plan.mask, DType::boolean);
  // in parts; after all parts have counted, each knows where in the source it begins
  constexpr index_t most = 64, least = 8 * block_bytes;
  const index_t per_part = count > most * least ? pieces(count, most) : least,
                parts = pieces(count, per_part);
  const auto end_of = [&](index_t i) { return i + 1 < parts ? (i + 1) * per_part : count; };
  index_t needed[most];
  parallel_for(context.threads, parts, [&](index_t i) {
    index_t found = 0;
    for_each_block(places, i * per_part, end_of(i), [&](const uint8_t* m, index_t, index_t n) {
      int32_t in_block = 0;
      for (index_t k = 0; k < n; ++k) in_block += m[k] != 0;
      found += in_block;
    });
    needed[i] = found;
  });
  index_t total = 0;
  for (index_t i = 0; i < parts; ++i) {
    const index_t before = total;
    total += needed[i], needed[i] = before;
  }
  if (total > source.numel())
    return context.fail(Error::invalid_argument,
                        TAPER_TEXT("mask is true at {} places, source has only {} elements"), total,
                        source.numel());
  Walk dense;
  dense.add(count, 1);
  if (self.ref->data != out.ref->data)
    copy_elements(context.threads, *self.ref, plan.self, out.ref->data, out.dtype(), dense, count);
  const int bytes = size_bytes(out.dtype());
  const auto write = bytes == 1   ? write_true<Bytes<1>>
                     : bytes == 2 ? write_true<Bytes<2>>
                     : bytes == 4 ? write_true<Bytes<4>>
                                  : write_true<Bytes<8>>;
  parallel_for(context.threads, parts, [&](index_t i) {
    write(places, i * per_part, end_of(i),
          static_cast<const char*>(source.ref->data) + needed[i] * bytes, out.ref->data);
  });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(masked_scatter, any, prepare, run)

}  // namespace taper::portable
