// The positions of true elements, as many as the caller has counted.
#include "taper/kernels/portable/portable.h"
#include "taper/kernels/shapes/indexing.h"

namespace taper::portable {
namespace {

struct Nothing {};

Error prepare(Context&, Nothing&, View<const bool>, int64_t, View<int64_t>) { return Error::ok; }

Error run(Context& context, const Nothing&, View<const bool> self, int64_t count,
          View<int64_t> out) {
  const Shape& shape = self.shape();
  const bool* const x = self.data();
  int64_t* to = out.data();
  const index_t n = self.numel();
  int64_t found = 0;
  for (index_t i = 0; i < n; ++i) {
    if (!x[i] || ++found > count) continue;
    index_t rest = i;
    for (int d = shape.rank - 1; d >= 0; --d)
      to[d] = static_cast<int64_t>(rest % shape.sizes[d]), rest /= shape.sizes[d];
    to += shape.rank;
  }
  if (found != count)
    return context.fail(Error::invalid_argument,
                        TAPER_TEXT("self is true at {} places, and count is {}"), found, count);
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(taper_nonzero, bool, prepare, run)

}  // namespace taper::portable
