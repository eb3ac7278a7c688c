// The positions of the true elements. The caller has counted them, or says how many it wants.
#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/rows.h"
#include "taper/kernels/shapes/indexing.h"

namespace taper::portable {
namespace {

struct Nothing {};

Error prepare(Context&, Nothing&, View<const bool>, int64_t, View<int64_t>) { return Error::ok; }

/// Writes the positions of the first true elements, at most `limit`, one after another. The result
/// is how many are true.
int64_t write_positions(View<const bool> self, int64_t limit, int64_t* to) {
  const Shape& shape = self.shape();
  const int last = shape.rank - 1;
  const index_t width = last < 0 ? 1 : shape.sizes[last];
  int64_t found = 0, written = 0;
  for_each_row(nullptr, shape, [&](const index_t* at, index_t row) {
    constexpr index_t block = 256;
    // a bool from a file may be any byte
    const auto* const x = reinterpret_cast<const uint8_t*>(self.data() + row * width);
    for (index_t begin = 0; begin < width; begin += block) {
      const index_t end = width - begin < block ? width : begin + block;
      index_t places[block], places_found = 0;
      for (index_t i = begin; i < end; ++i) places[places_found] = i, places_found += x[i] != 0;
      found += places_found;
      for (index_t k = 0; written < limit && k < places_found; ++k, ++written, to += shape.rank) {
        for (int d = 0; d < last; ++d) to[d] = at[d];
        if (last >= 0) to[last] = places[k];
      }
    }
  });
  return found;
}

Error run(Context& context, const Nothing&, View<const bool> self, int64_t count,
          View<int64_t> out) {
  const int64_t found = write_positions(self, count, out.data());
  if (found != count)
    return context.fail(Error::invalid_argument,
                        TAPER_TEXT("self is true at {} places, and count is {}"), found, count);
  return Error::ok;
}

Error fixed_size(Context&, View<const bool> self, int64_t size, int64_t fill_value,
                 View<int64_t> out) {
  const int64_t found = write_positions(self, size, out.data());
  for (index_t i = (found < size ? found : size) * self.shape().rank; i < out.numel(); ++i)
    out.data()[i] = fill_value;
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(taper_nonzero, bool, prepare, run)
TAPER_KERNEL(nonzero_static, bool, fixed_size)

}  // namespace taper::portable
