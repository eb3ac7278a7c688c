#include "taper/exporter/eager/ops/indexing.h"

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/view.h"

namespace taper::eager::decompositions {

TAPER_DECOMPOSITION(argsort) {
  return {std::get<1>(call<ops::sort>(a.here(), a.tensor<"self">(), a.integer<"dim">(),
                                      a.boolean<"descending">()))};
}

// Both are expanded to each other's sizes, but not along `dim`.
TAPER_DECOMPOSITION(take_along_dim) {
  const Location here = a.here();
  const Tensor self = a.tensor<"self">(), indices = a.tensor<"indices">();
  if (!a.has<"dim">())
    return {gather(flatten(self, 0, -1, here), 0, flatten(indices, 0, -1, here), here)};
  const int64_t rank = self.rank(), dim = a.integer<"dim">();
  if (indices.rank() != rank || dim < -rank || dim >= rank)
    throw EagerError(here,
                     "take_along_dim: needs as many dimensions of self and indices, and one "
                     "of them, got " +
                         to_string(self.sizes()) + ", " + to_string(indices.sizes()) + " and dim " +
                         std::to_string(dim));
  Dims from = self.sizes(), to = indices.sizes();
  for (size_t i = 0; i < from.size(); ++i) {
    if (static_cast<int64_t>(i) == (dim + rank) % rank) continue;
    if (proves_equal(from[i], Dim(1)))
      from[i] = to[i];
    else
      to[i] = from[i];
  }
  return {gather(expand(self, from, here), dim, expand(indices, to, here), here)};
}

}  // namespace taper::eager::decompositions
