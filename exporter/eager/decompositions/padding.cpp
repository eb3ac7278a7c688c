#include "taper/exporter/eager/ops/padding.h"

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::decompositions {
namespace {

/// Puts a copy of each dimension's end before it, and of its beginning after it. Negative numbers
/// crop first.
Tensor circular(Tensor x, const Dims& pad) {
  for (size_t k = 0; k < pad.size() / 2; ++k) {
    const int64_t dim = -1 - static_cast<int64_t>(k);
    const Dim size = x.size(dim), before = pad[2 * k], after = pad[2 * k + 1];
    const Dim zero(0), begin = max(zero, -before), end = size - max(zero, -after);
    const Dim left = max(zero, before), right = max(zero, after);
    if (proves_less(end - begin, left) || proves_less(end - begin, right))
      throw EagerError("pad: circular padding (" + before.to_string() + ", " + after.to_string() +
                       ") is more than the size " + size.to_string() + " of " +
                       to_string(x.sizes()));
    x = cat({narrow(x, dim, end - left, left), narrow(x, dim, begin, end - begin),
             narrow(x, dim, begin, right)},
            dim);
  }
  return x;
}

}  // namespace

TAPER_DECOMPOSITION(pad) {
  const Tensor self = a.tensor<"self">();
  const Dims pad = a.dims<"pad">();
  const std::string_view mode = a.text<"mode">();
  if (mode == "constant")
    return {constant_pad_nd(self, pad, a.has<"value">() ? Scalar(a.real<"value">()) : Scalar(0))};
  const bool reflects = mode == "reflect", replicates = mode == "replicate";
  if (!reflects && !replicates && mode != "circular")
    throw EagerError("pad: mode must be constant, reflect, replicate or circular, not " +
                     std::string(mode));
  if (a.has<"value">() && a.real<"value">() != 0)
    throw EagerError("pad: mode " + std::string(mode) + " takes no value");
  const int n = static_cast<int>(pad.size() / 2);
  if (pad.size() % 2 != 0 || n < 1 || n > 3 || (self.rank() != n + 1 && self.rank() != n + 2))
    throw EagerError("pad: mode " + std::string(mode) +
                     " needs 1 to 3 pairs in pad, and a tensor of 1 or 2 dimensions "
                     "more; pad has " +
                     std::to_string(pad.size()) + " elements for " + to_string(self.sizes()));
  if (reflects)
    return {n == 1   ? call<ops::reflection_pad1d>(self, pad)
            : n == 2 ? call<ops::reflection_pad2d>(self, pad)
                     : call<ops::reflection_pad3d>(self, pad)};
  if (replicates)
    return {n == 1   ? call<ops::replication_pad1d>(self, pad)
            : n == 2 ? call<ops::replication_pad2d>(self, pad)
                     : call<ops::replication_pad3d>(self, pad)};
  return {circular(self, pad)};
}

}  // namespace taper::eager::decompositions
