// The positions of the true elements. The caller has counted them.
#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/rows.h"
#include "taper/kernels/shapes/indexing.h"

namespace taper::portable {
namespace {

struct Nothing {};

Error prepare(Context&, Nothing&, View<const bool>, int64_t, View<int64_t>) { return Error::ok; }

Error run(Context& context, const Nothing&, View<const bool> self, int64_t count,
          View<int64_t> out) {
  const Shape& shape = self.shape();
  const int last = shape.rank - 1;
  const index_t width = last < 0 ? 1 : shape.sizes[last];
  int64_t* to = out.data();
  int64_t found = 0;
  for_each_row(nullptr, shape, [&](const index_t* at, index_t row) {
    constexpr index_t block = 256;
    // a bool from a file may be any byte
    const auto* const x = reinterpret_cast<const uint8_t*>(self.data() + row * width);
    for (index_t begin = 0; begin < width; begin += block) {
      const index_t end = width - begin < block ? width : begin + block;
      index_t places[block], places_found = 0;
      for (index_t i = begin; i < end; ++i) places[places_found] = i, places_found += x[i] != 0;
      found += places_found;
      for (index_t k = 0; found <= count && k < places_found; ++k, to += shape.rank) {
        for (int d = 0; d < last; ++d) to[d] = at[d];
        if (last >= 0) to[last] = places[k];
      }
    }
  });
  if (found != count)
    return context.fail(Error::invalid_argument,
                        TAPER_TEXT("self is true at {} places, and count is {}"), found, count);
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(taper_nonzero, bool, prepare, run)

}  // namespace taper::portable
